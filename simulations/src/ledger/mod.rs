//! A Hive chain in memory: blocks, balances, authority, a mempool, forks and finality, all decided by the caller.
//!
//! [`Chain`] has no clock: [`Chain::produce`] gets the time. The same calls give the same chain, byte for byte.
//!
//! ```
//! use engine::{hive::Pack, time::Timestamp};
//! use simulations::ledger::{Chain, Genesis, Role};
//!
//! let genesis = Genesis::demo([7; 32], Timestamp::from_seconds(1_800_000_000));
//! let mut chain = Chain::new(&genesis);
//! let transfer = chain.transfer("alice", "shop.demo", "1.000 HBD", "pos-1", &genesis.key("alice", Role::Active));
//! let accepted = chain.broadcast(transfer.unwrap()).unwrap();
//! chain.produce(Timestamp::from_seconds(1_800_000_003));
//! assert_eq!(chain.head().number(), 1);
//! assert_eq!(chain.block(1).unwrap().transactions[0].id, accepted);
//! ```

mod account;
mod block;
mod chain;
mod evaluate;
mod fork;
mod genesis;
mod node;
mod record;
mod refused;

pub use account::{Account, BalanceKind};
pub use block::{Block, Included, VirtualOperation};
pub use chain::{Chain, Status};
pub use engine::hive::Role;
pub use fork::{Fork, ForkError, Orphans};
pub use genesis::{Genesis, GenesisAccount};
pub use node::{Lie, Node, View};
pub use record::{Record, ReplayError};
pub use refused::{Refused, Rendered};
