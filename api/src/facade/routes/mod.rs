//! The routes of the facade: the table, and how a path finds its row.

pub(crate) mod router;
pub(crate) mod table;
