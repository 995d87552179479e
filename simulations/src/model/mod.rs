//! A model of the store in memory: its expected content, derived from the durable batches. It repeats the rules of the store
//! and of the engine in the plainest form, so that a defect in either of them shows as a difference.

mod billing;
mod compliance;
mod deliveries;
mod refusals;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use engine::{
    account::AccountName,
    audit::Entry,
    billing::{Month, Period, Schedule},
    compliance::ComplianceStatus,
    idempotency::IdempotencyRecord,
    ids::{DeliveryId, EventId, MerchantId},
    ledger::{ChainPosition, TxId},
    merchant::Merchant,
    payment::Rate,
    time::Timestamp,
    webhook::{Attempt, DeliveryRecord},
    x402::{Purpose, ReceiptKeys},
};
use storage::{EventRecord, Unmatched, Write};

pub(crate) use self::compliance::completed_cents;
use crate::observer::Observer;

/// How long an idempotency key is kept.
const KEY_LIFETIME: Duration = Duration::from_secs(86_400);
/// How long claims for other servers are kept after their transactions expired.
const CLAIM_RETENTION: Duration = Duration::from_secs(7 * 86_400);
/// How far the engine's clock may be ahead: after a step, and after a jump.
const CLOCK_STEPPED: Duration = Duration::from_secs(120);
const CLOCK_JUMPED: Duration = Duration::from_secs(7 * 3_600);
/// How long a former account of a merchant is watched.
const WATCHED_AFTER_LEAVING: Duration = Duration::from_secs(31 * 86_400 + 3_600);

/// The expected content of the store, apart from payments, merchants, events and claims, which the observer keeps.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoreModel {
    /// The audit log; the entry at index 0 has number 1.
    pub(crate) audit: Vec<Entry>,
    /// Idempotency keys, including those that may be deleted.
    pub(crate) keys: BTreeMap<(MerchantId, [u8; 32]), IdempotencyRecord>,
    /// Keys made earlier may be deleted.
    pub(crate) keys_from: Timestamp,
    /// Events that happened earlier may be deleted.
    pub(crate) events_from: Timestamp,
    /// The events that may be deleted, and since how many attempts.
    pub(crate) prunable: BTreeMap<EventId, u64>,
    /// Deliveries.
    pub(crate) deliveries: BTreeMap<DeliveryId, DeliveryRecord>,
    /// Attempts, each with its number among all.
    pub(crate) attempts: BTreeMap<(EventId, DeliveryId, u32), (Attempt, u64)>,
    /// Claims that are deleted.
    pub(crate) deleted_claims: BTreeSet<TxId>,
    /// Transfers that match no payment.
    pub(crate) unmatched: BTreeMap<(AccountName, ChainPosition), Unmatched>,
    /// The compliance status of merchants.
    pub(crate) compliance: BTreeMap<MerchantId, ComplianceStatus>,
    /// Billing periods.
    pub(crate) periods: BTreeMap<(Month, MerchantId), Period>,
    /// The fee tiers; none before an administrator sets some.
    pub(crate) tiers: Option<Schedule>,
    /// The keys that sign offers and receipts; none before their first use.
    pub(crate) receipt_keys: Option<ReceiptKeys>,
    /// Named single values.
    pub(crate) notes: BTreeMap<&'static str, Vec<u8>>,
    /// The newest prices.
    pub(crate) rate: Option<Rate>,
    /// Former accounts of merchants, and until when they are watched.
    pub(crate) retired: BTreeMap<AccountName, Timestamp>,
    /// The newest event of each merchant before the current epoch began.
    pub(crate) before_epoch: BTreeMap<MerchantId, u64>,
}

impl Observer {
    /// Adds a durable write to the model. Payments and merchants are still as they were before the write.
    pub(crate) fn model_write(&mut self, write: &Write) {
        match write {
            Write::Payment { payment, .. } => {
                self.model_volume(payment);
                self.model_sale(payment);
            }
            Write::Merchant { merchant, .. } => self.model_merchant(merchant),
            Write::Event(record) => self.model_event(record),
            Write::Attempt { delivery, attempt } => self.model.attempted(delivery, attempt),
            Write::Redeliver(delivery) => {
                self.model.deliveries.insert(delivery.id, DeliveryRecord::new(delivery.clone()));
            }
            Write::Replay { delivery, at } => self.model.replayed(delivery.id, *at),
            Write::Hold { delivery, .. } => self.model.held(delivery.id),
            Write::Undeliverable(delivery) => self.model.given_up(delivery.id),
            Write::Audit(entry) => self.model.append(entry),
            Write::Remember { remembered, .. } => {
                self.model.keys.insert((remembered.merchant, remembered.key), *remembered);
            }
            Write::Forget { made_before } => {
                self.deletes("idempotency keys", *made_before, KEY_LIFETIME);
                self.model.keys_from = self.model.keys_from.max(*made_before);
            }
            Write::Prune { happened_before } => {
                self.deletes("events", *happened_before, self.event_retention);
                self.model.events_from = self.model.events_from.max(*happened_before);
                let is_old = |event: &&EventRecord| event.at < *happened_before;
                let attempts = self.model.attempts.len() as u64;
                for event in self.events.values().filter(is_old) {
                    self.model.prunable.entry(event.id).or_insert(attempts);
                }
            }
            Write::ForgetClaims(tx_ids) => {
                self.deletes_claims(tx_ids);
                self.model.deleted_claims.extend(tx_ids);
            }
            Write::Claim(claimed) => {
                self.model.deleted_claims.remove(&claimed.tx_id);
            }
            Write::Unmatched(unmatched) => {
                let place = (unmatched.transfer.to, unmatched.transfer.position);
                self.model.unmatched.entry(place).or_insert_with(|| unmatched.clone());
            }
            Write::Handle { account, place, handling } => {
                if let Some(unmatched) = self.model.unmatched.get_mut(&(*account, *place)) {
                    unmatched.handling = handling.clone();
                }
            }
            Write::Unwatch(account) => drop(self.model.retired.remove(account)),
            Write::CheckCompliance(check) => self.model_compliance_check(check),
            Write::Compliance { merchant, change } => self.model.stands(*merchant, change),
            Write::Invoice(invoicing) => self.model_invoice(invoicing),
            Write::FeeTiers { schedule, .. } => self.model.tiers = Some(schedule.clone()),
            Write::ReceiptKeys { keys, .. } => self.model.receipt_keys = Some((**keys).clone()),
            Write::Note { name, value, .. } => drop(self.model.notes.insert(name, value.clone())),
            Write::Rate { rate, .. } => self.model.rate = Some(*rate),
            Write::BeginEpoch(_) => self.model.before_epoch.clone_from(&self.event_seqs),
            Write::ClaimOutcome { .. }
            | Write::Transfer { .. }
            | Write::Cursor { .. }
            | Write::Admit { .. }
            | Write::EnableEndpoint { .. }
            | Write::Reconciliation { .. }
            | Write::Lease { .. }
            | Write::EndLease { .. }
            | Write::Duty { .. }
            | Write::OnDuty { .. } => {}
        }
    }

    /// Checks that what is deleted before a time was kept for long enough.
    fn deletes(&mut self, what: &str, older_than: Timestamp, kept: Duration) {
        // The engine's time follows a wall clock that may be ahead.
        let ahead = if self.has_jumped() { CLOCK_JUMPED } else { CLOCK_STEPPED };
        let limit = (self.true_time() + ahead).minus(kept);
        if older_than <= limit {
            self.passes("retention-is-kept");
        } else {
            let text = format!("{what} of before {older_than} are deleted, and {kept:?} are to be kept: {limit}");
            self.violate("retention-is-kept", text, None);
        }
    }

    /// Checks that the transactions of deleted claims have expired a week ago.
    fn deletes_claims(&mut self, tx_ids: &[TxId]) {
        let newest = tx_ids.iter().filter_map(|tx_id| match &self.claims.get(tx_id)?.purpose {
            Purpose::Facilitated(sale) => Some(sale.expiration),
            Purpose::Session(_) => None,
        });
        let newest = newest.max();
        let limit = self.final_time.minus(CLAIM_RETENTION);
        match newest.filter(|newest| *newest >= limit) {
            Some(newest) => {
                let text = format!("a claim is deleted whose transaction expired at {newest}, after {limit}");
                self.violate("retention-is-kept", text, None);
            }
            None => self.passes("retention-is-kept"),
        }
    }

    fn model_merchant(&mut self, merchant: &Merchant) {
        let before = self.merchants.get(&merchant.id);
        if let Some(before) = before.filter(|before| before.hive_account != merchant.hive_account) {
            let unwatch_at = merchant.updated_at + WATCHED_AFTER_LEAVING;
            self.model.retired.insert(before.hive_account, unwatch_at);
        }
    }

    fn model_event(&mut self, record: &EventRecord) {
        let seq = self.event_seqs.get(&record.merchant).copied().unwrap_or(0) + 1;
        self.model.announced(record, seq);
    }

    /// Returns the merchants that have proven an account.
    pub(crate) fn provers(&self, account: &AccountName) -> impl Iterator<Item = MerchantId> {
        let has_it = |merchant: &&Merchant| merchant.hive_account == *account && merchant.ownership.proof.is_some();
        self.merchants.values().filter(has_it).map(|merchant| merchant.id)
    }
}

impl StoreModel {
    fn append(&mut self, entry: &Entry) {
        let seq = self.audit.len() as u64 + 1;
        self.audit.push(Entry { seq, ..entry.clone() });
    }
}
