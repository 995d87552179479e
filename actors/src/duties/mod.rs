//! Duties: work that one engine at a time does. An engine that has its store to itself holds all of them.

pub(crate) mod held;
pub(crate) mod keeper;
