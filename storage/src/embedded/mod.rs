//! The embedded store: one redb file with a write-ahead log in front of it.

pub(crate) mod commit;
pub(crate) mod damage;
pub(crate) mod fault;
pub(crate) mod health;
pub(crate) mod maintenance;
pub(crate) mod metrics;
pub(crate) mod options;
pub(crate) mod read;
pub(crate) mod store;
pub(crate) mod tables;
pub(crate) mod topics;
pub(crate) mod wal;
