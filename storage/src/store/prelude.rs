//! The traits of all topics, for callers that hold a store of a concrete type.

pub use crate::store::{
    Store as _, accounts::Accounts as _, audit::AuditLog as _, billing::Billing as _, chain::Chain as _,
    claims::Claims as _, compliance::Compliance as _, duties::Duties as _, events::Events as _,
    idempotency::IdempotencyKeys as _, ledger_entries::LedgerEntries as _, merchants::Merchants as _,
    notes::Notes as _, outbox::Outbox as _, payments::Payments as _, unmatched::UnmatchedTransfers as _,
};
