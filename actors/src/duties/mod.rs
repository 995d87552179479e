//! Duties: work that one engine does at a time. An exclusive engine holds all of them.

pub(crate) mod held;
pub(crate) mod keeper;
