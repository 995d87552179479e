//! The schema and its migrations: numbered SQL files, each applied once, by `hivetill migrate`.
//!
//! A migration is expanding where programs of older levels can go on using the database beside it: new tables, new columns
//! with defaults, new indexes. It is contracting where they cannot. Each migration names the oldest level of a program that
//! may use the database afterwards, and a program refuses a database that names a newer one than its own.

use tokio_postgres::error::SqlState;

use crate::{
    postgres::{
        connection::Connection,
        fault::Fault,
        table::TABLE_NAMES,
        values::{column, signed, unsigned},
    },
    store::error::OpenError,
};

/// A step of the schema.
struct Migration {
    level: u32,
    name: &'static str,
    /// The oldest level of a program that can use the database after it.
    oldest_program: u32,
    sql: &'static str,
}

/// All migrations, in order.
const MIGRATIONS: [Migration; 1] =
    [Migration { level: 1, name: "initial", oldest_program: 1, sql: include_str!("migrations/0001_initial.sql") }];

/// The level that this program needs.
pub(crate) const LEVEL: u32 = MIGRATIONS[MIGRATIONS.len() - 1].level;

const CREATE_MIGRATIONS: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
    level integer PRIMARY KEY,
    name text NOT NULL,
    -- The oldest level of a program that can use the database.
    oldest_program integer NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)";

/// The schema level of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Level {
    /// The newest migration; 0 for a database without tables.
    level: u32,
    /// The oldest level of a program that can use it.
    oldest_program: u32,
}

/// Returns the level of a database.
///
/// # Errors
/// See [`OpenError`].
pub(crate) async fn level(connection: &Connection) -> Result<Level, OpenError> {
    // A statement on a missing table cannot be prepared, so its existence is checked first.
    let exists = connection.one("SELECT to_regclass('schema_migrations') IS NOT NULL", &[]).await?;
    if !column::<bool>(&exists, 0)? {
        return Ok(Level { level: 0, oldest_program: 0 });
    }
    let sql = "SELECT coalesce(max(level), 0)::bigint, coalesce(max(oldest_program), 0)::bigint FROM schema_migrations";
    let row = connection.one(sql, &[]).await.map_err(privilege)?;
    let number = |place| Ok::<_, Fault>(u32::try_from(unsigned(column(&row, place)?)).unwrap_or(u32::MAX));
    Ok(Level { level: number(0)?, oldest_program: number(1)? })
}

/// Checks that this program can use a database as it is, and has every privilege that it needs.
///
/// # Errors
/// [`OpenError::SchemaOlder`], [`OpenError::SchemaNewer`], [`OpenError::NotDurable`], [`OpenError::Privilege`].
pub(crate) async fn check(connection: &Connection) -> Result<(), OpenError> {
    let found = level(connection).await?;
    refuse_newer(found)?;
    if found.level < LEVEL {
        return Err(OpenError::SchemaOlder { found: found.level, known: LEVEL });
    }
    check_durability(connection).await?;
    let sql = "SELECT name || ': ' || privilege FROM unnest($1::text[]) AS name, \
               unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS privilege \
               WHERE NOT has_table_privilege(current_user, name, privilege)";
    let lacking = connection.query(sql, &[&TABLE_NAMES.as_slice()]).await?;
    match lacking.first() {
        Some(row) => Err(OpenError::Privilege(format!("{} (and {} more)", column::<&str>(row, 0)?, lacking.len() - 1))),
        None => Ok(()),
    }
}

/// Checks that an acknowledged commit is on disk.
async fn check_durability(connection: &Connection) -> Result<(), OpenError> {
    let sql = "SELECT current_setting('synchronous_commit'), current_setting('fsync')";
    let row = connection.one(sql, &[]).await?;
    let setting = column::<&str>(&row, 0)?;
    if is_lax(setting) {
        return Err(OpenError::NotDurable(format!("synchronous_commit is {setting}")));
    }
    if column::<&str>(&row, 1)? == "off" {
        tracing::warn!("fsync is off: the database may be corrupt after a crash of its host");
    }
    Ok(())
}

/// Returns whether a value of `synchronous_commit` acknowledges commits that a crash or a failover can lose: `off` before they are on
/// the disk, `local` before they are on the synchronous standby.
pub(crate) fn is_lax(setting: &str) -> bool {
    matches!(setting, "off" | "local")
}

fn refuse_newer(found: Level) -> Result<(), OpenError> {
    if found.oldest_program > LEVEL {
        return Err(OpenError::SchemaNewer { found: found.level, known: LEVEL });
    }
    Ok(())
}

/// Returns the id of the database, which is drawn when its schema is created.
pub(crate) async fn installation(connection: &Connection) -> Result<Vec<u8>, OpenError> {
    let row = connection.one("SELECT value FROM single_values WHERE name = 'installation'", &[]).await?;
    Ok(column(&row, 0)?)
}

/// Applies the migrations that a database lacks, each in a transaction of its own, and returns their names. Several programs
/// may try at once: one migrates, the others wait for it.
///
/// # Errors
/// [`OpenError::SchemaNewer`] where the database was migrated beyond what this program can use; [`OpenError::Privilege`];
/// [`OpenError::Foreign`] where tables of the same names belong to something else.
pub(crate) async fn migrate(connection: &Connection) -> Result<Vec<&'static str>, OpenError> {
    match connection.run(CREATE_MIGRATIONS).await {
        // Another program has created it at the same moment: the table, its type or its row in the catalog exists.
        Ok(()) | Err(Fault::Outdated(_)) => {}
        Err(Fault::Failed(why)) if why.contains("(42710)") || why.contains("(42P07)") => {}
        Err(fault) => return Err(privilege(fault)),
    }
    refuse_newer(level(connection).await?)?;
    let mut applied = Vec::new();
    for migration in &MIGRATIONS {
        if apply(connection, migration).await? {
            applied.push(migration.name);
        }
    }
    Ok(applied)
}

/// Applies the migrations that a database lacks in the open transaction.
///
/// # Errors
/// As [`migrate`].
pub(crate) async fn migrate_inside(connection: &Connection) -> Result<(), OpenError> {
    connection.run(CREATE_MIGRATIONS).await.map_err(privilege)?;
    refuse_newer(level(connection).await?)?;
    for migration in &MIGRATIONS {
        apply_inside(connection, migration).await?;
    }
    Ok(())
}

/// Returns the tables that have rows, apart from those that a new database has.
///
/// # Errors
/// [`OpenError::SchemaNewer`]; those of the connection.
pub(crate) async fn filled_tables(connection: &Connection) -> Result<Vec<String>, OpenError> {
    let found = level(connection).await?;
    refuse_newer(found)?;
    if found.level == 0 {
        return Ok(Vec::new());
    }
    let tables = TABLE_NAMES.into_iter().filter(|table| *table != "schema_migrations");
    let exists = tables.map(|table| {
        let others = if table == "single_values" { " WHERE name <> 'installation'" } else { "" };
        format!("SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {table}{others})")
    });
    let rows = connection.query(&exists.collect::<Vec<_>>().join(" UNION ALL "), &[]).await?;
    Ok(rows.iter().map(|row| column(row, 0)).collect::<Result<_, Fault>>()?)
}

/// Applies a migration unless it was applied; returns whether it was.
async fn apply(connection: &Connection, migration: &Migration) -> Result<bool, OpenError> {
    connection.run("BEGIN").await?;
    let outcome = apply_inside(connection, migration).await;
    if matches!(outcome, Ok(true)) {
        connection.run("COMMIT").await?;
    } else if let Err(fault) = connection.run("ROLLBACK").await {
        // The cause is the outcome; a lost connection rolls back, too.
        tracing::debug!(%fault, "cannot roll a migration back: {fault}");
    }
    outcome
}

async fn apply_inside(connection: &Connection, migration: &Migration) -> Result<bool, OpenError> {
    // The row is inserted first: a concurrent migration waits for it.
    let sql = "INSERT INTO schema_migrations (level, name, oldest_program) VALUES ($1::bigint, $2, $3::bigint) \
               ON CONFLICT (level) DO NOTHING RETURNING level";
    let (level, oldest) = (signed(migration.level.into()), signed(migration.oldest_program.into()));
    let inserted = connection.query(sql, &[&level, &migration.name, &oldest]).await.map_err(privilege)?;
    if inserted.is_empty() {
        return Ok(false);
    }
    if migration.oldest_program == migration.level && migration.level > 1 {
        // Each commit reads this table: running programs of older levels finish theirs, and commit no more.
        connection.run("LOCK TABLE schema_migrations IN ACCESS EXCLUSIVE MODE").await?;
    }
    connection.client().batch_execute(migration.sql).await.map_err(|error| match error.code() {
        Some(&SqlState::DUPLICATE_TABLE) => OpenError::Foreign,
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => OpenError::Privilege(super::fault::text(&error)),
        _ => Fault::from(error).into(),
    })?;
    Ok(true)
}

fn privilege(fault: Fault) -> OpenError {
    match fault {
        Fault::Failed(why) if why.contains("(42501)") => OpenError::Privilege(why),
        fault => fault.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrations_are_numbered_without_gaps_and_create_every_table() {
        for (place, migration) in (1..).zip(&MIGRATIONS) {
            assert_eq!(migration.level, place, "{}", migration.name);
            assert!(migration.oldest_program <= migration.level);
        }
        // Migrating creates the table of migrations itself.
        for table in TABLE_NAMES.into_iter().filter(|table| *table != "schema_migrations") {
            let create = format!("CREATE TABLE {table} (");
            assert!(MIGRATIONS.iter().any(|migration| migration.sql.contains(&create)), "{table}");
        }
        let created: usize = MIGRATIONS.iter().map(|migration| migration.sql.matches("CREATE TABLE ").count()).sum();
        assert_eq!(created, TABLE_NAMES.len() - 1);
    }
}
