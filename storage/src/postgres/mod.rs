//! The store in a PostgreSQL database, which any number of engines share.
//!
//! Versions and unique keys decide between writers; nothing depends on who writes. The common subset of SQL is used: no advisory
//! locks, no notifications, no stored procedures.

pub(crate) mod address;
pub(crate) mod commit;
pub(crate) mod connection;
pub(crate) mod fault;
pub(crate) mod ids;
pub(crate) mod inspection;
pub(crate) mod read;
pub(crate) mod readers;
pub(crate) mod resolve;
pub(crate) mod schema;
pub(crate) mod secrets;
pub(crate) mod statement;
pub(crate) mod store;
pub(crate) mod table;
pub(crate) mod tables;
pub(crate) mod tls;
pub(crate) mod topics;
pub(crate) mod values;
pub(crate) mod verify;
pub(crate) mod whole;
