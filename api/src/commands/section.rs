//! A strict reader of TOML tables: an unknown key is an error with a suggestion.

use engine::money::Money;
use toml::{Table, Value};

use crate::facade::nearest;

/// A value, or the error with its location.
pub(super) type Reading<T> = Result<T, String>;

/// One table of the file, with the keys that were read.
pub(super) struct Section<'a> {
    /// The name with a trailing dot, or nothing for the whole file.
    name: String,
    pub(super) table: &'a Table,
    known: Vec<&'static str>,
}

impl<'a> Section<'a> {
    /// Starts reading a table.
    pub(super) fn new(name: &str, table: &'a Table) -> Self {
        Self { name: name.to_owned(), table, known: Vec::new() }
    }

    /// Returns the name of a key with those of its tables.
    pub(super) fn path(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    /// Returns a value.
    pub(super) fn get(&mut self, key: &'static str) -> Option<&'a Value> {
        self.known.push(key);
        self.table.get(key)
    }

    /// Returns the error of a key with a wrong value.
    pub(super) fn must(&self, key: &str, what: &str) -> String {
        format!("`{}` must be {what}", self.path(key))
    }

    /// Returns a table.
    pub(super) fn section(&mut self, key: &'static str) -> Reading<Option<Section<'a>>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let table = value.as_table().ok_or_else(|| self.must(key, "a table"))?;
        Ok(Some(Section::new(&self.path(key), table)))
    }

    /// Returns a string.
    pub(super) fn text(&mut self, key: &'static str) -> Reading<Option<&'a str>> {
        let value = self.get(key);
        value.map(|value| value.as_str().ok_or_else(|| self.must(key, "a string"))).transpose()
    }

    /// Returns a whole number.
    pub(super) fn integer(&mut self, key: &'static str) -> Reading<Option<i64>> {
        let value = self.get(key);
        value.map(|value| value.as_integer().ok_or_else(|| self.must(key, "a whole number"))).transpose()
    }

    /// Reads a list of strings; one string is a list of one.
    pub(super) fn list(&mut self, key: &'static str) -> Reading<Option<Vec<&'a str>>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let list = match value {
            Value::String(text) => Some(vec![text.as_str()]),
            Value::Array(values) => values.iter().map(Value::as_str).collect(),
            _ => None,
        };
        list.map(Some).ok_or_else(|| self.must(key, "a list of strings"))
    }

    /// Reads amounts, at most one of each currency.
    pub(super) fn amounts(&mut self, key: &'static str) -> Reading<Vec<Money>> {
        let mut amounts: Vec<Money> = Vec::new();
        for text in self.list(key)?.unwrap_or_default() {
            let money = Money::parse_ledger(text);
            let money = money.map_err(|error| format!("`{}`: `{text}` {error}", self.path(key)))?;
            if amounts.iter().any(|other| other.currency == money.currency) {
                return Err(format!("`{}` names {} twice", self.path(key), money.currency));
            }
            amounts.push(money);
        }
        Ok(amounts)
    }

    /// Rejects unread keys.
    pub(super) fn end(self) -> Reading<()> {
        let Some(unknown) = self.table.keys().find(|key| !self.known.contains(&key.as_str())) else { return Ok(()) };
        let path = self.path(unknown);
        // `daily` is far from `day` by edit distance; its beginning shows what is meant.
        let begins_alike = |known: &&str| unknown.len() > 1 && known.get(..2) == unknown.get(..2);
        let near = nearest(unknown, self.known.iter().copied());
        match near.or_else(|| self.known.iter().copied().find(begins_alike)) {
            Some(known) => Err(format!("there is no key `{path}`: did you mean `{}`?", self.path(known))),
            None => Err(format!("there is no key `{path}`; known here: {}", self.known.join(", "))),
        }
    }
}
