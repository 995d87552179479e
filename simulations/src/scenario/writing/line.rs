//! One step as a line of a scenario file.

use std::fmt::{Debug, Display, Write as _};

use engine::money::{Currency, Money};

use super::{super::values::show, SessionNames};

/// The fields of a step, without its time: `who = "disk", does = "fill up", for = "1m"`.
pub(super) struct Line<'a> {
    text: String,
    names: &'a SessionNames,
}

impl<'a> Line<'a> {
    /// Begins a line.
    pub(super) fn new(names: &'a SessionNames, who: impl Display, does: &str) -> Self {
        Self { text: format!("who = {:?}, does = {does:?}", who.to_string()), names }
    }

    /// Adds a number or `true` or `false`.
    pub(super) fn value(mut self, key: &str, value: impl Display) -> Self {
        let _ = write!(self.text, ", {key} = {value}");
        self
    }

    /// Adds a number, if there is one.
    pub(super) fn optional(self, key: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.value(key, value),
            None => self,
        }
    }

    /// Adds a text in quotes.
    pub(super) fn quoted(mut self, key: &str, text: impl Debug) -> Self {
        let _ = write!(self.text, ", {key} = {text:?}");
        self
    }

    /// Adds a duration.
    pub(super) fn duration(self, key: &str, ms: u64) -> Self {
        self.quoted(key, show(ms))
    }

    /// Adds how long a fault lasts.
    pub(super) fn lasting(self, for_ms: u64) -> Self {
        self.duration("for", for_ms)
    }

    /// Adds an amount, in 1/1000.
    pub(super) fn amount(self, units: u64, currency: Currency) -> Self {
        self.quoted("amount", Money::new(units, currency).to_string())
    }

    /// Adds a session under `key`; none for a session that no step before creates.
    pub(super) fn session_as(self, key: &str, session: u32) -> Option<Self> {
        let name = self.names.get(&session)?;
        Some(self.quoted(key, name))
    }

    /// Adds the session that the step concerns; none for a session that no step before creates.
    pub(super) fn session(self, session: u32) -> Option<Self> {
        self.session_as("session", session)
    }

    /// Returns the line.
    pub(super) fn finish(self) -> String {
        self.text
    }
}
