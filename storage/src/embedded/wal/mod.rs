//! The write-ahead log, the memtables, and the checkpoints that move their rows into the database.

pub(crate) mod checkpoint;
pub(crate) mod entry;
pub(crate) mod log;
pub(crate) mod memtable;
pub(crate) mod replay;
mod segment;
pub(crate) mod single;
pub(crate) mod snapshot;
pub(crate) mod view;
