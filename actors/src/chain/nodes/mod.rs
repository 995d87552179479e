//! The pool of ledger nodes: a majority of the configured nodes decides all facts that affect money.

pub(crate) mod blocks;
mod broadcast;
mod expected;
mod head;
pub(crate) mod health;
mod lookups;
pub(crate) mod majority;
#[cfg(test)]
mod model_tests;
pub(crate) mod pool;
pub(crate) mod presence;
mod round;
