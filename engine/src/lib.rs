//! The pure heart of Hivetill: what a payment is, what moves it, and the Hive codec.
//!
//! Nothing here knows of a clock, a socket, a disk or a runtime: every function of this crate is decided by its
//! arguments. Time arrives as [`time::Timestamp`], randomness as bytes.

pub mod account;
pub mod api_key;
pub mod audit;
pub mod billing;
pub mod compliance;
pub mod event_list;
pub mod fields;
pub mod hive;
pub mod idempotency;
pub mod ids;
pub mod ledger;
pub mod merchant;
pub mod money;
pub mod mutants;
pub mod ownership;
pub mod payment;
pub mod quota;
pub mod reconciliation;
pub mod text;
pub mod time;
pub mod webhook;
pub mod x402;
