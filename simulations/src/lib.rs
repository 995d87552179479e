//! A Hive chain in memory ([`ledger`]), the same chain behind Hive's JSON-RPC ([`devnet`]), and whole payment lifecycles
//! simulated from a seed ([`simulation`]).
//!
//! There is one copy of the chain: `hivetill dev`, the tests and the simulator all use it. [`ledger`] is pure, without
//! clock or sockets, so that a simulation replays; [`devnet`] puts it on the network, with wall time passed in.

pub mod devnet;
pub mod ledger;

pub mod campaign;
pub mod coverage;
pub mod disk;
pub mod front;
pub mod index;
pub mod invariants;
pub mod mutants;
pub mod observer;
pub mod options;
pub mod plan;
pub mod random;
pub mod report;
pub mod scenario;
pub mod script;
pub mod shrink;
pub mod simulation;
pub mod trace;

mod agent_wallet;
mod client_state;
mod clients;
mod hive;
mod model;
mod panics;
mod receivers;
mod shared_store;
mod store;
mod sync;

pub use simulation::runner;
