//! The batches of one group commit: their changes so far, and what is accumulated in memory until the group ends.

use std::collections::{BTreeMap, BTreeSet};

use engine::{
    billing::Period,
    compliance::ComplianceStatus,
    event_list::{Epoch, Tail},
    idempotency::IdempotencyRecord,
    ids::PaymentId,
    time::Timestamp,
    webhook::DeliveryRecord,
    x402::ClaimRecord,
};

use crate::{
    batch::{CommitError, Cursor, Unmatched},
    duty::Duty,
    embedded::{
        commit::{
            commit_ids::CommitIds,
            transaction::{Transaction, write_single},
        },
        fault::Fault,
        read::{deliveries, unmatched::UnmatchedPlace},
        tables::{DayKey, DeliveryKey, PeriodKey},
    },
    record::{indexed::PaymentFacts, merchant::MerchantFacts, sums::DaySums},
};

/// The batches of one group commit.
pub(crate) struct Group<'t> {
    pub(crate) tables: Transaction<'t>,
    pub(crate) commits: &'t mut CommitIds,
    /// Changes of the counts, written once at the end.
    pub(crate) counts: BTreeMap<(u128, u32), i64>,
    /// Changes of the daily sums, written once at the end.
    pub(crate) days: BTreeMap<DayKey, DaySums>,
    /// The ends of merchants' event lists, written once at the end.
    pub(crate) event_tails: BTreeMap<u128, Tail>,
    /// Endpoints whose outbox queues changed. The heads of their queues are written once at the end.
    pub(crate) queues: Queues,
    /// Compliance statuses, written once at the end.
    pub(crate) compliance: BTreeMap<u128, CachedCompliance>,
    /// Billing periods, written once at the end.
    pub(crate) periods: BTreeMap<PeriodKey, CachedPeriod>,
    pub(crate) search_cursor: u128,
    pub(crate) applied: usize,
}

/// The result of a group commit.
pub(crate) struct Finished {
    /// Number of applied batches.
    pub(crate) applied: usize,
    /// The last payment in the search index.
    pub(crate) search_cursor: u128,
}

/// The pending changes of a batch: what its earlier steps will have written when a later step is checked.
#[derive(Default)]
pub(crate) struct Overlay {
    pub(crate) payments: BTreeMap<u128, PaymentFacts>,
    pub(crate) transfers: TransferKeys,
    pub(crate) slugs: BTreeMap<u128, u128>,
    pub(crate) merchants: BTreeMap<u128, MerchantFacts>,
    pub(crate) keys: BTreeMap<[u8; 32], Option<u128>>,
    pub(crate) remembered: BTreeMap<(u128, [u8; 32]), IdempotencyRecord>,
    /// An earlier step deletes older keys.
    pub(crate) keys_deleted_before: Timestamp,
    /// Keys of earlier steps that a later step deleted.
    pub(crate) deleted_keys: BTreeSet<(u128, [u8; 32])>,
    pub(crate) claims: BTreeMap<[u8; 20], ClaimRecord>,
    /// Claims that an earlier step deletes.
    pub(crate) deleted_claims: BTreeSet<[u8; 20]>,
    pub(crate) nonces: BTreeMap<[u8; 32], [u8; 20]>,
    pub(crate) assigned: BTreeMap<[u8; 20], PaymentId>,
    pub(crate) cursor: Option<Cursor>,
    pub(crate) handled: BTreeMap<UnmatchedPlace, Unmatched>,
    pub(crate) deliveries: BTreeMap<DeliveryKey, DeliveryRecord>,
    pub(crate) events: BTreeSet<u128>,
    /// Merchants with a billing period that an earlier step changes.
    pub(crate) changed_periods: BTreeSet<u128>,
    pub(crate) tiers_version: Option<u64>,
    pub(crate) receipt_keys_version: Option<u64>,
    pub(crate) duties: DutyOverlay,
    /// Values of notes.
    pub(crate) notes: BTreeMap<&'static str, Vec<u8>>,
    /// When the price of HIVE was read.
    pub(crate) rate_at: Option<Timestamp>,
    /// When days were reconciled, by the start of the day.
    pub(crate) days_checked: BTreeMap<u64, Timestamp>,
    /// Endpoints that an earlier step enables.
    pub(crate) enabled: BTreeSet<u128>,
}

/// The result of a check: a value, a rejection, or a failed read.
pub(crate) type Checked<T = ()> = Result<Result<T, CommitError>, Fault>;

pub(crate) fn conflict<T>(what: impl ToString) -> Checked<T> {
    Ok(Err(CommitError::Conflict { what: what.to_string() }))
}

impl Overlay {
    /// Deletes the idempotency keys that were made before a time.
    pub(crate) fn delete_keys(&mut self, made_before: Timestamp) {
        self.keys_deleted_before = self.keys_deleted_before.max(made_before);
        let old = self.remembered.iter().filter(|(_, remembered)| remembered.at < made_before);
        self.deleted_keys.extend(old.map(|(key, _)| *key));
    }
}

impl<'t> Group<'t> {
    /// Creates a group without changes.
    pub(crate) fn of(tables: Transaction<'t>, commits: &'t mut CommitIds, search_cursor: u128) -> Self {
        Self {
            tables,
            commits,
            counts: BTreeMap::new(),
            days: BTreeMap::new(),
            event_tails: BTreeMap::new(),
            queues: Queues::new(),
            compliance: BTreeMap::new(),
            periods: BTreeMap::new(),
            search_cursor,
            applied: 0,
        }
    }
}

impl Group<'_> {
    /// Returns the current epoch of the store.
    pub(crate) fn epoch(&self) -> Result<Epoch, Fault> {
        deliveries::epoch(&self.tables.meta())
    }

    pub(crate) fn set(&mut self, name: &str, value: &[u8]) -> Result<(), Fault> {
        write_single(&self.tables.meta(), name, value);
        Ok(())
    }
}

/// A billing period, including the changes of the group.
pub(crate) struct CachedPeriod {
    pub(crate) period: Option<Period>,
    pub(crate) was_unsettled: bool,
    pub(crate) is_changed: bool,
    /// Whether it is damaged. It is not overwritten, and sales count in a later month.
    pub(crate) is_damaged: bool,
}

/// A compliance status, including the changes of the group.
pub(crate) struct CachedCompliance {
    pub(crate) status: ComplianceStatus,
    pub(crate) is_changed: bool,
    /// Whether the stored status is on hold.
    pub(crate) was_on_hold: bool,
    /// Whether it is damaged: the volume of the merchant is unknown. New payments are rejected until an admin sets the
    /// status; existing payments can still complete.
    pub(crate) is_damaged: bool,
}

/// A change of the leases and duties, as earlier steps of a batch leave them.
#[derive(Default)]
pub(crate) struct DutyOverlay {
    /// Until when leases last; none where one was ended.
    pub(crate) leases: BTreeMap<u64, Option<u64>>,
    /// Terms and holders.
    pub(crate) duties: BTreeMap<Duty, (u64, u64)>,
}

/// The transfers that earlier steps of a batch write. Each can be written once.
#[derive(Default)]
pub(crate) struct TransferKeys {
    pub(crate) keys: BTreeSet<(u128, [u8; 20], u32)>,
    pub(crate) places: BTreeSet<(u128, u64)>,
}

/// The endpoints whose outbox queues a group changed.
pub(crate) type Queues = BTreeSet<u128>;
