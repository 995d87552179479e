//! The rows of each table: what is written, what is read, and what guards a change.

pub(crate) mod business;
pub(crate) mod duties;
pub(crate) mod ledger;
pub(crate) mod merchants;
pub(crate) mod payments;
pub(crate) mod webhooks;
