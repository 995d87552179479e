//! `hivetill wallet`: an agent's wallet with a policy and a durable ledger.
//!
//! The rules are `engine::wallet`. The wallet is a directory: `wallet.toml` (policy) and `wallet.redb` (ledger).

mod cli;
mod directory;
mod entry;
pub(super) mod error;
mod failpoint;
mod policy_file;
mod purchase;
mod store;

pub(super) use cli::{Args, describe, run};
pub(super) use directory::Wallet;
pub(super) use purchase::Purchase;
