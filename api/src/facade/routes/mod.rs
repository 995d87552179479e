//! The routes of the facade: the table, and the router that finds a row of it.

pub(crate) mod router;
pub(crate) mod table;
