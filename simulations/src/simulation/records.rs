//! The content of the store apart from payments, compared with the [model](crate::model): audit log, idempotency keys, events,
//! deliveries, claims, unmatched transfers, accounts, compliance, billing and sums.

mod deliveries;
mod retention;

use std::collections::BTreeSet;

use engine::{
    account::AccountName,
    audit::Entry,
    billing::{BillingTotals, Status},
    event_list::Epoch,
    idempotency::KEY_LIFETIME,
    ids::{EventId, MerchantId},
    ledger::{ChainPosition, MemoMatch, match_fee_memo, match_memo},
    money::Currency,
    webhook::{Attempt, Delivery, DeliveryState},
    x402::{ClaimRecord, Purpose},
};
use storage::{
    AuditQuery, DayVolume, DeliveryQuery, EventRecord, Handling, PeriodQuery, ReadError, Unmatched, UnmatchedReason,
    Vicinity, VolumeQuery, prelude::*,
};

use self::deliveries::delivery_difference;
use super::*;
use crate::model::StoreModel;

/// Rows of each kind that are compared at a start; at the end of a run all are.
const SAMPLE: usize = 12;
/// Days of which volumes are compared.
const DAYS: u64 = 45;
const DAY_MS: u64 = 86_400_000;
/// A position before every block, and one after.
const FIRST: ChainPosition = ChainPosition { block_num: 0, tx_in_block: 0, op_in_tx: 0 };
const LAST: ChainPosition = ChainPosition { block_num: u32::MAX, tx_in_block: u32::MAX, op_in_tx: u32::MAX };

/// A comparison that found a difference: what differs.
type Difference = Option<String>;

impl Simulation {
    /// Compares the records of the store with the model: all of them, or a sample.
    pub(super) async fn compare_records(&self, store: &EmbeddedStore, is_whole: bool) -> Result<(), ReadError> {
        if self.observe(|observer| observer.was_damaged || observer.has_several_engines) {
            return Ok(());
        }
        let sampled = |len: usize| {
            let first = if is_whole { 0 } else { lock(&self.streams).records.index(len.max(1)) };
            (first, if is_whole { usize::MAX } else { SAMPLE })
        };
        let model = self.observe(|observer| observer.model.clone());
        let verdicts = [
            ("audit-log-is-complete", self.audit_difference(store, &model, is_whole).await?),
            ("keys-are-kept-for-a-day", key_difference(store, &model, sampled(model.keys.len())).await?),
            ("events-are-kept", self.event_difference(store, &model, is_whole).await?),
            ("deliveries-are-as-attempted", delivery_difference(store, &model, sampled(model.deliveries.len())).await?),
            ("claims-are-kept", self.claim_difference(store, is_whole).await?),
            ("unmatched-are-as-handled", self.unmatched_difference(store, &model).await?),
            ("accounts-are-indexed", self.account_difference(store, &model).await?),
            ("volume-follows-from-payments", self.volume_difference(store, &model).await?),
            ("usage-counts-once", self.period_difference(store, &model).await?),
        ];
        self.observe(|observer| {
            for (name, difference) in verdicts {
                match difference {
                    Some(text) => observer.violate(name, text, None),
                    None => observer.passes(name),
                }
            }
        });
        Ok(())
    }

    fn merchant_ids(&self) -> Vec<MerchantId> {
        self.observe(|observer| observer.merchants.keys().copied().collect())
    }

    async fn audit_difference(
        &self,
        store: &EmbeddedStore,
        model: &StoreModel,
        is_whole: bool,
    ) -> Result<Difference, ReadError> {
        let limit = if is_whole { usize::MAX } else { SAMPLE };
        let newest = |of: Option<MerchantId>| {
            let is_its =
                move |entry: &&Entry| of.is_none_or(|of| entry.merchant == of || entry.actor.merchant == Some(of));
            model.audit.iter().rev().filter(is_its).take(limit).cloned().collect::<Vec<_>>()
        };
        let wanted = [None].into_iter().chain(self.merchant_ids().into_iter().map(Some));
        for merchant in wanted {
            let stored = store.audit(AuditQuery { before: None, limit, merchant }).await?;
            let expected = newest(merchant);
            if stored != expected {
                let at = stored.iter().zip(&expected).position(|(one, other)| one != other);
                let at = at.unwrap_or(stored.len().min(expected.len()));
                return Ok(Some(format!(
                    "the audit log of {merchant:?} has {} entries and should have {}; entry {at} is {:?}, not {:?}",
                    stored.len(),
                    expected.len(),
                    stored.get(at),
                    expected.get(at)
                )));
            }
        }
        Ok(None)
    }

    async fn event_difference(
        &self,
        store: &EmbeddedStore,
        model: &StoreModel,
        is_whole: bool,
    ) -> Result<Difference, ReadError> {
        let epoch = store.epoch().await?;
        for merchant in self.merchant_ids() {
            let known = self.observe(|observer| observer.event_seqs.get(&merchant).copied().unwrap_or(0));
            let after = if is_whole { 0 } else { known.saturating_sub(SAMPLE as u64) };
            let expected: Vec<EventRecord> = self.observe(|observer| {
                let own = observer.events.values().filter(|event| event.merchant == merchant && event.seq > after);
                own.cloned().collect()
            });
            let stored = store.events(merchant, after, usize::MAX).await?;
            if let Some(text) = list_difference(&stored, expected, model.events_from) {
                return Ok(Some(format!("the events of {merchant}: {text}")));
            }
            let tail = store.event_list(merchant).await?.tail;
            let before_epoch = model.before_epoch.get(&merchant).copied().unwrap_or(0);
            let is_current = known > before_epoch && epoch != Epoch::FIRST;
            if tail.last != known || (is_current && tail.last_before_epoch != before_epoch) {
                return Ok(Some(format!("the list of {merchant} ends with {tail:?}, and has {known} events")));
            }
            for event in stored.iter().rev().take(SAMPLE) {
                let place = store.event_place(event.id).await?;
                let found = store.event(merchant, event.seq).await?;
                if place != Some((merchant, event.seq)) || found.as_ref() != Some(event) {
                    return Ok(Some(format!("event {} is found at {place:?}, not at {}", event.id, event.seq)));
                }
            }
        }
        let oldest = store.oldest_event().await?;
        let kept = self.observe(|observer| {
            observer.events.values().map(|event| event.at).filter(|at| *at >= model.events_from).min()
        });
        let is_right = match (oldest, kept) {
            (Some(oldest), Some(kept)) => oldest <= kept,
            (None, Some(_)) => false,
            (_, None) => true,
        };
        Ok((!is_right).then(|| format!("the oldest event is of {oldest:?}, and one of {kept:?} is kept")))
    }

    async fn claim_difference(&self, store: &EmbeddedStore, is_whole: bool) -> Result<Difference, ReadError> {
        let (claims, deleted) = self.observe(|observer| {
            let claims: Vec<_> = observer.claims.values().cloned().collect();
            (claims, observer.model.deleted_claims.clone())
        });
        let skip = if is_whole { 0 } else { claims.len().saturating_sub(SAMPLE) };
        for claimed in claims.iter().skip(skip) {
            let expected = (!deleted.contains(&claimed.tx_id)).then_some(claimed);
            if store.claim(claimed.tx_id).await?.as_ref() != expected {
                return Ok(Some(format!("the claim of {} is not as it was durable", claimed.tx_id)));
            }
            let by_nonce = store.overlapping_claim(claimed.pay_to, Vec::new(), None, claimed.nonce.clone()).await?;
            if expected.is_some() && by_nonce.as_ref() != expected {
                return Ok(Some(format!("the nonce of {} finds another claim, or none", claimed.tx_id)));
            }
            if let Some(identifier) = claimed.identifier.clone().filter(|_| expected.is_some())
                && by_identifier(store, claimed, identifier).await?.as_ref() != expected
            {
                return Ok(Some(format!("the identifier of {} finds another claim, or none", claimed.tx_id)));
            }
        }
        let open: BTreeSet<_> = store.open_facilitations().await?.iter().map(|claimed| claimed.tx_id).collect();
        let is_open = |claimed: &&ClaimRecord| {
            matches!(claimed.purpose, Purpose::Facilitated(_))
                && claimed.outcome.is_open()
                && !deleted.contains(&claimed.tx_id)
        };
        let expected: BTreeSet<_> = claims.iter().filter(is_open).map(|claimed| claimed.tx_id).collect();
        Ok((open != expected)
            .then(|| format!("{} payments for other servers are open, not {}", open.len(), expected.len())))
    }

    async fn unmatched_difference(&self, store: &EmbeddedStore, model: &StoreModel) -> Result<Difference, ReadError> {
        let accounts: BTreeSet<AccountName> = model.unmatched.keys().map(|(account, _)| *account).collect();
        for account in accounts {
            let own = model.unmatched.range((account, FIRST)..=(account, LAST)).rev();
            let expected: Vec<_> = own.map(|(_, unmatched)| unmatched.clone()).collect();
            let stored = store.unmatched(account, usize::MAX).await?;
            if stored != expected {
                let first = expected.iter().find(|one| !stored.contains(one));
                return Ok(Some(format!(
                    "@{account} has {} unmatched transfers and should have {}; {first:?} is missing",
                    stored.len(),
                    expected.len()
                )));
            }
            let Some(middle) = expected.get(expected.len() / 2) else { continue };
            let place = middle.transfer.position;
            let older = store.unmatched_before(account, place, SAMPLE).await?;
            let expected_older: Vec<_> = expected[expected.len() / 2 + 1..].iter().take(SAMPLE).cloned().collect();
            if store.unmatched_at(account, place).await?.as_ref() != Some(middle) || older != expected_older {
                return Ok(Some(format!("the unmatched transfers of @{account} from {place:?} on are not listed")));
            }
        }
        let waiting: BTreeSet<_> = store.waiting_for_sessions(None, usize::MAX).await?.into_iter().collect();
        let named = model.unmatched.iter().filter(|(_, unmatched)| unmatched.handling == Handling::Open);
        let expected: BTreeSet<_> =
            named.filter_map(|((account, place), unmatched)| Some((waits_for(unmatched)?, *account, *place))).collect();
        Ok((waiting != expected)
            .then(|| format!("{} transfers wait for their payments, and {} should", waiting.len(), expected.len())))
    }

    async fn account_difference(&self, store: &EmbeddedStore, model: &StoreModel) -> Result<Difference, ReadError> {
        let (merchants, watched) = self.observe(|observer| {
            let watched: BTreeSet<_> = observer.accounts.now().map(|(account, _)| *account).collect();
            (observer.merchants.values().cloned().collect::<Vec<_>>(), watched)
        });
        let stored: BTreeSet<_> = store.watched_accounts(None, usize::MAX).await?.into_iter().collect();
        if stored != watched {
            return Ok(Some(format!("{stored:?} are watched, and {watched:?} should be")));
        }
        let since: BTreeMap<_, _> = store.accounts_since(None, usize::MAX).await?.into_iter().collect();
        let expected: BTreeMap<_, _> =
            self.observe(|observer| observer.accounts.now().map(|(account, since)| (*account, since)).collect());
        if since != expected {
            return Ok(Some(format!("accounts are watched since {since:?}, and should be since {expected:?}")));
        }
        for account in watched {
            let proven: BTreeSet<_> = store.proven_merchants(account, usize::MAX).await?.into_iter().collect();
            let expected: BTreeSet<_> = self.observe(|observer| observer.provers(&account).collect());
            if proven != expected {
                return Ok(Some(format!("@{account} is proven by {proven:?}, and should be by {expected:?}")));
            }
        }
        let expected: BTreeSet<_> = model.retired.keys().copied().collect();
        let retired: BTreeSet<_> = store.retired_accounts(Timestamp::MAX, usize::MAX).await?.into_iter().collect();
        if retired != expected {
            return Ok(Some(format!("{retired:?} were left by their merchants, and {expected:?} should be")));
        }
        if let Some((_, unwatch_at)) = model.retired.iter().next() {
            let before = Timestamp::from_millis(unwatch_at.millis() - 1);
            let retired: BTreeSet<_> = store.retired_accounts(before, usize::MAX).await?.into_iter().collect();
            let is_over = |(_, at): &(&AccountName, &Timestamp)| **at <= before;
            let expected: BTreeSet<_> = model.retired.iter().filter(is_over).map(|(account, _)| *account).collect();
            if retired != expected {
                return Ok(Some(format!("{retired:?} need not be watched, and {expected:?} should not")));
            }
        }
        let pending: BTreeSet<_> = store.pending_accounts(Timestamp::MAX, usize::MAX).await?.into_iter().collect();
        let expected: BTreeSet<_> =
            merchants.iter().filter(|one| one.ownership.pending.is_some()).map(|one| one.id).collect();
        if pending != expected {
            return Ok(Some(format!("{pending:?} have a pending account, and {expected:?} should")));
        }
        for merchant in &merchants {
            for key in &merchant.keys {
                if store.merchant_by_key(key.digest).await?.as_deref() != Some(merchant) {
                    return Ok(Some(format!("an API key of {} finds another merchant, or none", merchant.id)));
                }
            }
        }
        Ok(None)
    }

    async fn volume_difference(&self, store: &EmbeddedStore, model: &StoreModel) -> Result<Difference, ReadError> {
        let today = self.wall_of(&self.processes[0]).millis() / DAY_MS;
        for merchant in self.merchant_ids() {
            let stored = store.compliance_status(merchant).await?;
            let expected = model.compliance.get(&merchant).cloned().unwrap_or_default();
            if !StoreModel::is_expected_status(&expected, &stored) {
                return Ok(Some(format!("{merchant} has the status {stored:?} and should have {expected:?}")));
            }
            let query = VolumeQuery { merchant, last_day: today + 1, days: DAYS };
            let stored = store.volume(query).await?.days;
            let first = today + 2 - DAYS;
            let expected: Vec<DayVolume> = self.observe(|observer| {
                let mut days: Vec<_> =
                    (0..DAYS).map(|day| DayVolume { day: first + day, ..DayVolume::default() }).collect();
                for payment in observer.payments.values().map(|known| &known.payment) {
                    let day = (payment.id.created_at().millis() / DAY_MS).checked_sub(first);
                    let day = day.and_then(|day| days.get_mut(usize::try_from(day).ok()?));
                    let Some(day) = day.filter(|_| payment.merchant == merchant && !payment.is_invoice) else {
                        continue;
                    };
                    day.opened += 1;
                    day.ended += u64::from(payment.state.is_terminal());
                    if payment.state == State::Completed {
                        day.completed += 1;
                        day.usd_cents += payment.quote.usd_cents;
                        match payment.amount.currency {
                            Currency::Hive => day.hive_units += payment.amount.units,
                            Currency::Hbd => day.hbd_units += payment.amount.units,
                        }
                    }
                }
                days
            });
            if let Some((one, other)) = stored.iter().zip(&expected).find(|(one, other)| one != other) {
                return Ok(Some(format!("{merchant} took {one:?} and should have taken {other:?}")));
            }
        }
        self.vicinity_difference(store).await
    }

    /// Compares the candidate payments of unmatched transfers.
    async fn vicinity_difference(&self, store: &EmbeddedStore) -> Result<Difference, ReadError> {
        let drawn = {
            let observer = lock(&self.observer);
            let random = &mut lock(&self.streams).records;
            let at = random.index(observer.payments.len().max(1));
            observer.payments.get_index(at).map(|(_, known)| Arc::clone(&known.payment))
        };
        let Some(drawn) = drawn else { return Ok(None) };
        let (from, to) = (drawn.created_at.minus(Duration::from_secs(1_800)), drawn.created_at);
        let near = Vicinity { merchant: drawn.merchant, money: drawn.amount, from, to, limit: SAMPLE };
        let stored = store.payments_near(near).await?;
        let expected: Vec<_> = self.observe(|observer| {
            let is_near = |payment: &&Arc<engine::payment::Payment>| {
                payment.merchant == near.merchant
                    && (payment.amount == near.money || payment.needs_attention())
                    && (from..=to).contains(&payment.id.created_at())
            };
            let mut found: Vec<_> =
                observer.payments.values().map(|known| &known.payment).filter(is_near).map(|one| one.id).collect();
            found.sort_unstable_by_key(|id| core::cmp::Reverse(id.bits()));
            found.truncate(SAMPLE);
            found
        });
        let stored: Vec<_> = stored.iter().map(|payment| payment.id).collect();
        Ok((stored != expected).then(|| format!("{stored:?} are near {near:?}, and {expected:?} should be")))
    }

    async fn period_difference(&self, store: &EmbeddedStore, model: &StoreModel) -> Result<Difference, ReadError> {
        if store.fee_schedule().await? != model.tiers {
            return Ok(Some(format!("the fee tiers should be {:?}", model.tiers)));
        }
        if store.receipt_keys().await? != model.receipt_keys {
            return Ok(Some(format!("the receipt keys should be {:?}", model.receipt_keys)));
        }
        let now = self.wall_of(&self.processes[0]);
        let mut totals: BTreeMap<MerchantId, BillingTotals> = BTreeMap::new();
        for merchant in self.merchant_ids() {
            let stored = store.periods_of(merchant).await?;
            let own = model.periods.values().filter(|period| period.merchant == merchant);
            let mut expected: Vec<_> = own.collect();
            expected.sort_unstable_by_key(|period| core::cmp::Reverse(period.month));
            let is_same = |(one, other): (&engine::billing::Period, &&engine::billing::Period)| {
                (one.month, one.usage, &one.invoice) == (other.month, other.usage, &other.invoice)
            };
            if stored.len() != expected.len() || !stored.iter().zip(&expected).all(is_same) {
                return Ok(Some(format!("{merchant} is billed for {stored:?} and sold {expected:?}")));
            }
            for period in &stored {
                totals.entry(merchant).or_insert_with(|| BillingTotals::of(merchant)).add(period, now);
            }
        }
        let unsettled = model
            .periods
            .values()
            .filter(|period| period.invoice.as_ref().is_none_or(|invoice| invoice.paid_at.is_none()));
        let expected: Vec<_> = unsettled.map(|period| (period.month, period.merchant)).collect();
        let last = engine::billing::Month::of(Timestamp::from_millis(now.millis() + 400 * DAY_MS));
        let stored = store.unsettled_periods(last, None, usize::MAX).await?;
        let stored: Vec<_> = stored.iter().map(|period| (period.month, period.merchant)).collect();
        if stored != expected {
            return Ok(Some(format!("{stored:?} are not settled, and {expected:?} should be listed")));
        }
        let accounts: BTreeMap<_, _> =
            store.billing_accounts(now).await?.into_iter().map(|account| (account.merchant, account)).collect();
        if accounts != totals {
            return Ok(Some(format!("the totals of merchants are {accounts:?} and should be {totals:?}")));
        }
        for status in Status::ALL {
            let query = PeriodQuery { page: 1, limit: 100, merchant: None, status: Some(status), now };
            let found = store.periods(query).await?;
            let expected = model.periods.values().filter(|period| status_of(period, now) == status).count() as u64;
            if found.total != expected {
                return Ok(Some(format!("{} periods are {status:?}, and {expected} should be", found.total)));
            }
        }
        Ok(None)
    }
}

fn status_of(period: &engine::billing::Period, now: Timestamp) -> Status {
    match &period.invoice {
        None => Status::Open,
        Some(invoice) if invoice.paid_at.is_some() => Status::Paid,
        Some(invoice) if invoice.due_at < now => Status::Overdue,
        Some(_) => Status::Invoiced,
    }
}

/// Returns the payment that a transfer names and that does not exist yet.
fn waits_for(unmatched: &Unmatched) -> Option<PaymentId> {
    if unmatched.reason != UnmatchedReason::UnknownSession {
        return None;
    }
    let memo = &unmatched.transfer.memo;
    [match_memo(memo), match_fee_memo(memo)].into_iter().find_map(|found| match found {
        MemoMatch::Exact(id) | MemoMatch::Normalized(id) => Some(id),
        _ => None,
    })
}

/// Compares stored rows with the expected ones, of which those that happened before a time may be deleted.
fn list_difference(stored: &[EventRecord], expected: Vec<EventRecord>, kept_from: Timestamp) -> Difference {
    let mut left = stored.iter();
    let mut next = left.next();
    for event in expected {
        if next == Some(&event) {
            next = left.next();
        } else if event.at >= kept_from {
            return Some(format!("event {} of {} is not kept as it was announced: {next:?}", event.seq, event.at));
        }
    }
    next.map(|event| format!("event {} was never announced", event.id))
}

/// Returns the claim that the store finds by a payment identifier of a claim's payee.
async fn by_identifier(
    store: &EmbeddedStore,
    claimed: &ClaimRecord,
    identifier: String,
) -> Result<Option<ClaimRecord>, ReadError> {
    store.overlapping_claim(claimed.pay_to, Vec::new(), Some(identifier), claimed.nonce.clone()).await
}

async fn key_difference(
    store: &EmbeddedStore,
    model: &StoreModel,
    (first, count): (usize, usize),
) -> Result<Difference, ReadError> {
    for ((merchant, key), expected) in model.keys.iter().skip(first).take(count) {
        let stored = store.remembered(*merchant, *key).await?;
        let is_right = match stored {
            Some(stored) => stored == *expected,
            None => expected.at < model.keys_from,
        };
        if !is_right {
            return Ok(Some(format!("a key of {merchant} is kept as {stored:?} and was {expected:?}")));
        }
    }
    let oldest = store.oldest_key().await?;
    let kept = model.keys.values().map(|key| key.at).filter(|at| *at >= model.keys_from).min();
    let is_right = match (oldest, kept) {
        (Some(oldest), Some(kept)) => oldest <= kept,
        (None, Some(_)) => false,
        (_, None) => true,
    };
    Ok((!is_right).then(|| format!("the oldest key is of {oldest:?}, and one of {kept:?} is kept")))
}
