//! The one statement of a commit: a common table expression for each table that changes, each fed by arrays, and guards that
//! make the whole statement fail where a row is not as it was read.

use std::fmt::{self, Write as _};

use tokio_postgres::types::ToSql;

use crate::postgres::{
    schema::LEVEL,
    values::{Columns, Kind, Values},
};

/// A statement under construction.
#[derive(Debug, Default)]
pub(crate) struct Statement {
    parts: String,
    guards: Vec<String>,
    values: Vec<Values>,
    expected: Vec<i64>,
}

/// The last column of each statement that commits: how durable its commit is.
pub(crate) const DURABILITY: &str = "current_setting('synchronous_commit')";

/// Aborts the statement, by the logarithm of 0, where programs of this level may not use the database any more.
pub(crate) fn schema_guard() -> String {
    format!("ln(CASE WHEN (SELECT max(oldest_program) FROM schema_migrations) > {LEVEL} THEN 0 ELSE 1 END::float8)")
}

/// Returns the type that a list of values has in SQL.
const fn kind_of(values: &Values) -> Kind {
    match values {
        Values::Uuid(_) => Kind::Uuid,
        Values::Integer(_) => Kind::Integer,
        Values::Small(_) => Kind::Small,
        Values::Whole(_) => Kind::Whole,
        Values::Flag(_) => Kind::Flag,
        Values::Text(_) => Kind::Text,
        Values::Bytes(_) => Kind::Bytes,
        Values::Time(_) => Kind::Time,
    }
}

/// Returns a table of the rows whose columns are parameters from `$first` on.
pub(crate) fn unnest(first: usize, columns: &Columns) -> String {
    let lists = columns.lists.iter().enumerate();
    let lists = lists.map(|(at, values)| format!("${}::{}[]", first + at, kind_of(values).sql()));
    format!("unnest({})", lists.collect::<Vec<_>>().join(", "))
}

impl Statement {
    /// Adds a part that changes one table. `{unnest}` in its text stands for the rows. With `expected`, the statement fails
    /// unless the part changes this number of rows.
    pub(crate) fn add(&mut self, name: fmt::Arguments<'_>, sql: &str, rows: Columns, expected: Option<usize>) {
        let text = sql.replace("{unnest}", &unnest(self.values.len() + 1, &rows));
        let separator = if self.parts.is_empty() { "WITH" } else { "," };
        let returning = if expected.is_some() && !sql.starts_with("SELECT") { " RETURNING 1" } else { "" };
        write!(self.parts, "{separator} {name} AS ({text}{returning})").expect("a string takes everything");
        if let Some(expected) = expected {
            self.guards.push(name.to_string());
            self.expected.push(i64::try_from(expected).unwrap_or(i64::MAX));
        }
        self.values.extend(rows.lists);
    }

    /// Adds a part whose text names its arrays one by one: `{0}`, `{1}` and so on.
    pub(crate) fn add_with(&mut self, name: fmt::Arguments<'_>, sql: &str, arrays: Columns) {
        let mut text = sql.to_owned();
        for (at, values) in arrays.lists.iter().enumerate() {
            let array = format!("${}::{}[]", self.values.len() + 1 + at, kind_of(values).sql());
            text = text.replace(&format!("{{{at}}}"), &array);
        }
        let separator = if self.parts.is_empty() { "WITH" } else { "," };
        write!(self.parts, "{separator} {name} AS ({text})").expect("a string takes everything");
        self.values.extend(arrays.lists);
    }

    /// Returns the text.
    pub(crate) fn sql(&self) -> String {
        let first = self.values.len() + 1;
        let guards = self.guards.iter().enumerate();
        let guards = guards.map(|(at, name)| format!("(SELECT count(*) FROM {name}) = ${}::bigint", first + at));
        // A division by zero aborts the statement in every database with this protocol.
        let guarded = match self.guards.is_empty() {
            true => "1".to_owned(),
            false => format!("1 / ({})::integer", guards.collect::<Vec<_>>().join(" AND ")),
        };
        format!("{} SELECT {guarded}, {}, {DURABILITY}", self.parts, schema_guard())
    }

    /// Returns the parameters.
    pub(crate) fn parameters(&self) -> Vec<&(dyn ToSql + Sync)> {
        let expected = self.expected.iter().map(|count| -> &(dyn ToSql + Sync) { count });
        self.values.iter().map(Values::parameter).chain(expected).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::values::Cell;

    #[test]
    fn a_part_that_changes_too_few_rows_fails_the_statement() {
        let mut statement = Statement::default();
        let mut rows = Columns::of([Kind::Uuid, Kind::Integer]);
        rows.push([Cell::from(7_u128), Cell::from(1_u64)]);
        statement.add(format_args!("a"), "INSERT INTO a SELECT * FROM {unnest}", rows.clone(), None);
        statement.add(format_args!("b"), "DELETE FROM b USING {unnest}", rows, Some(1));
        assert_eq!(
            statement.sql(),
            "WITH a AS (INSERT INTO a SELECT * FROM unnest($1::uuid[], $2::bigint[])), \
             b AS (DELETE FROM b USING unnest($3::uuid[], $4::bigint[]) RETURNING 1) \
             SELECT 1 / ((SELECT count(*) FROM b) = $5::bigint)::integer, \
             ln(CASE WHEN (SELECT max(oldest_program) FROM schema_migrations) > 1 THEN 0 ELSE 1 END::float8), \
             current_setting('synchronous_commit')"
        );
        assert_eq!(statement.parameters().len(), 5);
    }
}
