//! A Hive chain in memory ([`ledger`]), and the same chain behind Hive's JSON-RPC ([`devnet`]).
//!
//! There is one copy of the chain: `hivetill dev`, the tests and the simulator all use it. [`ledger`] is pure, without
//! clock or sockets, so that a simulation replays; [`devnet`] puts it on the network, with wall time passed in.

pub mod devnet;
pub mod ledger;
