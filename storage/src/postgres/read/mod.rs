//! Reads of every topic: one round trip each, from the primary; a list that is searched takes a few.

pub(crate) mod accounts;
pub(crate) mod business;
pub(crate) mod duties;
pub(crate) mod ledger;
pub(crate) mod lists;
pub(crate) mod outbox;
pub(crate) mod payments;
pub(crate) mod search;
