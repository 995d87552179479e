//! The data directory, and operations on whole stores: verification, backup, export, migration.

pub(crate) mod backup;
pub(crate) mod directory;
pub(crate) mod export;
pub(crate) mod migration;
pub(crate) mod repair;
pub(crate) mod sealing;
pub(crate) mod verify;
