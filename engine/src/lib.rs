//! Pure domain logic of Hivetill: the payment state machine, billing, webhooks, x402 and the Hive codec.
//!
//! This crate performs no I/O and reads no clock: the result of every function depends on its arguments alone. Time is
//! passed as [`time::Timestamp`], randomness as bytes.

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
pub mod wallet;
pub mod webhook;
pub mod x402;
