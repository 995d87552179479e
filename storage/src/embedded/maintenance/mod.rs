//! The data directory, and what works on whole stores: verification, backup, export, migration.

pub(crate) mod backup;
pub(crate) mod directory;
pub(crate) mod export;
pub(crate) mod migration;
pub(crate) mod repair;
pub(crate) mod sealing;
pub(crate) mod verify;
