//! Model-based test: random batches, valid and invalid, have the same outcomes and reads in the store and in a model.
//!
//! The model is the interface over a few maps. It applies a batch write by write to a copy of itself, and keeps the
//! copy only if no write was rejected: a rejected batch has no effect.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use engine::{
    account::AccountName,
    billing::{Month, Period, Sale, Schedule},
    idempotency::IdempotencyRecord,
    ids::{DeliveryId, EndpointId, EventId, MerchantId, PaymentId},
    merchant::Merchant,
    payment::{Credit, Payment, Rate, State},
    time::Timestamp,
    webhook::{Attempt, Delivery, DeliveryRecord, DeliveryState, EndpointHealth, Trigger},
    x402::{ClaimOutcome, ClaimRecord, Purpose, ReceiptKeys},
};
use proptest::prelude::*;
use storage::{
    Batch, CommitError, Cursor, DeliveryQuery, EventRecord, Handling, HoldReason, Invoicing, MerchantQuery,
    PaymentQuery, Store, Unmatched, Write,
};

use crate::samples::*;

mod tries;

use tries::second_endpoint;
pub(crate) use tries::{Try, batch_of, tries};

#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    payments: BTreeMap<PaymentId, Payment>,
    transfers: BTreeMap<PaymentId, Vec<Credit>>,
    merchants: BTreeMap<MerchantId, Merchant>,
    accounts: BTreeSet<AccountName>,
    events: BTreeMap<MerchantId, Vec<EventRecord>>,
    deliveries: BTreeMap<(MerchantId, DeliveryId), DeliveryRecord>,
    endpoints: BTreeMap<EndpointId, EndpointHealth>,
    attempts: BTreeMap<EventId, Vec<Attempt>>,
    claims: Vec<ClaimRecord>,
    remembered: Vec<IdempotencyRecord>,
    cursor: Option<Cursor>,
    unmatched: Vec<Unmatched>,
    rate: Option<Rate>,
    notes: BTreeMap<&'static str, Vec<u8>>,
    periods: BTreeMap<(Month, MerchantId), Period>,
    invoice_sessions: BTreeMap<PaymentId, (Month, MerchantId)>,
    tiers: Option<Schedule>,
    receipt_keys: Option<ReceiptKeys>,
    /// Merchants whose periods the batch changes, so that it cannot invoice them.
    sold: BTreeSet<MerchantId>,
    /// Transfers that the batch writes, and their sequence numbers. Each can be written once.
    attached: BTreeSet<(PaymentId, Vec<u8>)>,
    placed: BTreeSet<(PaymentId, u64)>,
}

fn conflict() -> CommitError {
    CommitError::Conflict { what: String::new() }
}

impl Model {
    pub(crate) fn commit(&mut self, batch: &Batch) -> Result<(), CommitError> {
        let mut next = self.clone();
        next.sold.clear();
        next.attached.clear();
        next.placed.clear();
        for write in &batch.writes {
            next.apply(write)?;
        }
        *self = next;
        Ok(())
    }

    fn apply(&mut self, write: &Write) -> Result<(), CommitError> {
        match write {
            Write::Payment { payment, expected } => {
                let stored = self.payments.get(&payment.id);
                let keeps_identity = stored.is_none_or(|p| p.slug == payment.slug && p.merchant == payment.merchant);
                let slug_is_free = self.payments.values().all(|p| p.slug != payment.slug || p.id == payment.id);
                if stored.map(|p| p.version) != *expected || !keeps_identity || !slug_is_free {
                    return Err(conflict());
                }
                let before = self.payments.insert(payment.id, (**payment).clone());
                self.count(before.as_ref(), payment);
            }
            Write::Transfer { payment, credit, .. } => {
                if !self.attached.insert((*payment, credit.tx_id.0.to_vec()))
                    || !self.placed.insert((*payment, credit.seq))
                {
                    return Err(conflict());
                }
                let rows = self.transfers.entry(*payment).or_default();
                let at = rows.iter().position(|row| (row.tx_id, row.op_in_tx) == (credit.tx_id, credit.op_in_tx));
                match at {
                    Some(at) if rows[at].seq == credit.seq => {
                        rows[at] = Credit { memo: rows[at].memo.clone(), ..(**credit).clone() };
                    }
                    None if rows.iter().all(|row| row.seq != credit.seq) => rows.push((**credit).clone()),
                    _ => return Err(conflict()),
                }
            }
            Write::Merchant { merchant, expected } => {
                let stored = self.merchants.get(&merchant.id);
                let key_is_free =
                    self.merchants.values().all(|m| m.keys[0].digest != merchant.keys[0].digest || m.id == merchant.id);
                if stored.map(|m| m.version) != *expected || !key_is_free {
                    return Err(conflict());
                }
                self.accounts.insert(merchant.hive_account);
                self.merchants.insert(merchant.id, (**merchant).clone());
            }
            Write::Event(event) => {
                let is_known = self.events.values().flatten().any(|known| known.id == event.id);
                let is_used = |(_, id): &(EndpointId, DeliveryId)| self.deliveries.contains_key(&(event.merchant, *id));
                if is_known || event.deliveries.iter().any(is_used) {
                    return Err(conflict());
                }
                let list = self.events.entry(event.merchant).or_default();
                let seq = list.len() as u64 + 1;
                list.push(EventRecord { seq, ..event.clone() });
                for (endpoint, id) in &event.deliveries {
                    let delivery = Delivery {
                        id: *id,
                        event: event.id,
                        event_seq: seq,
                        merchant: event.merchant,
                        endpoint: *endpoint,
                        payment: event.payment,
                        trigger: Trigger::Auto,
                        attempts: 0,
                        schedule_from: 0,
                        due_at: event.at,
                    };
                    self.deliveries.insert((event.merchant, *id), DeliveryRecord::new(delivery));
                }
            }
            Write::Attempt { delivery, attempt } => {
                let taken = self.waiting(delivery)?;
                *taken = taken.after(attempt);
                self.attempts.entry(attempt.event).or_default().push(attempt.clone());
                let endpoint = self.endpoints.entry(delivery.endpoint).or_default();
                *endpoint = endpoint.after(delivery, attempt);
            }
            Write::Undeliverable(delivery) => self.waiting(delivery)?.state = DeliveryState::Failed,
            Write::Hold { delivery, reason } => {
                let applies = match reason {
                    HoldReason::Disabled => {
                        let endpoint = self.endpoints.get(&delivery.endpoint);
                        endpoint.is_some_and(|endpoint| !endpoint.is_enabled())
                    }
                    HoldReason::NoEndpoint { merchant_version } => {
                        let stored = self.merchants.get(&delivery.merchant).map(|merchant| merchant.version);
                        stored == *merchant_version
                    }
                };
                let waiting = self.waiting(delivery)?;
                if !applies {
                    return Err(conflict());
                }
                waiting.state = DeliveryState::Held;
            }
            Write::Redeliver(delivery) => {
                let place = (delivery.merchant, delivery.id);
                if self.deliveries.contains_key(&place) {
                    return Err(conflict());
                }
                self.deliveries.insert(place, DeliveryRecord::new(delivery.clone()));
            }
            Write::Replay { delivery, at } => {
                let logged = self.deliveries.get_mut(&(delivery.merchant, delivery.id)).ok_or_else(conflict)?;
                if !logged.is_replayable() || logged.delivery.attempts != delivery.attempts {
                    return Err(conflict());
                }
                *logged = logged.replayed(*at);
            }
            Write::Unwatch(account) => {
                if self.merchants.values().all(|merchant| merchant.hive_account != *account) {
                    self.accounts.remove(account);
                }
            }
            Write::EnableEndpoint { endpoint, .. } => drop(self.endpoints.remove(endpoint)),
            Write::Prune { .. } | Write::ForgetClaims(_) => unreachable!("pruning has tests of its own"),
            Write::Claim(claimed) => {
                let by_tx = self.claims.iter().find(|c| c.tx_id == claimed.tx_id);
                let by_nonce = self.claims.iter().find(|c| c.nonce == claimed.nonce);
                if let Some(earlier) = by_tx.or(by_nonce) {
                    return Err(CommitError::Claimed(Box::new(earlier.clone())));
                }
                // Every unmatched transfer here belongs to the first transaction.
                let is_assigned = |u: &&Unmatched| matches!(u.handling, Handling::Assigned { .. });
                if claimed.tx_id == tx_id(1) && self.unmatched.iter().any(|u| is_assigned(&u)) {
                    return Err(CommitError::Assigned(payment_id(1)));
                }
                self.claims.push(claimed.clone());
            }
            Write::ClaimOutcome { tx_id, expected, outcome } => {
                let claimed = self.claims.iter_mut().find(|c| c.tx_id == *tx_id && c.outcome == *expected);
                let Some(claimed) = claimed else { return Err(conflict()) };
                claimed.outcome = outcome.clone();
            }
            Write::Remember { remembered: new, .. } => {
                let stored = self.remembered.iter_mut().find(|r| (r.merchant, r.key) == (new.merchant, new.key));
                match stored {
                    Some(stored) if stored.is_valid(new.at) => {
                        return Err(CommitError::Remembered(Box::new(*stored)));
                    }
                    Some(stored) => *stored = *new,
                    None => self.remembered.push(*new),
                }
            }
            Write::Forget { made_before } => self.remembered.retain(|r| r.at >= *made_before),
            Write::Cursor { cursor, expected } => {
                if self.cursor != *expected {
                    return Err(conflict());
                }
                self.cursor = Some(*cursor);
            }
            Write::Unmatched(unmatched) => {
                let place = |u: &Unmatched| (*u.account(), u.transfer.position);
                if self.unmatched.iter().all(|other| place(other) != place(unmatched)) {
                    self.unmatched.push(unmatched.clone());
                }
            }
            Write::Handle { account, place, handling } => {
                let stored = self
                    .unmatched
                    .iter_mut()
                    .find(|u| (u.account(), u.transfer.position) == (account, *place))
                    .filter(|u| !matches!(u.handling, Handling::Assigned { .. }));
                let stored = stored.ok_or_else(conflict)?;
                let sale = self.claims.iter().find(|c| c.tx_id == stored.transfer.tx_id && c.sale().is_some());
                if let (Handling::Assigned { .. }, Some(claimed)) = (handling, sale) {
                    return Err(CommitError::Claimed(Box::new(claimed.clone())));
                }
                stored.handling = handling.clone();
            }
            Write::Audit(_) => {}
            Write::Reconciliation { .. }
            | Write::Lease { .. }
            | Write::EndLease { .. }
            | Write::Duty { .. }
            | Write::OnDuty { .. }
            | Write::CheckCompliance(_)
            | Write::Compliance { .. }
            | Write::BeginEpoch(_)
            | Write::Admit { .. } => {
                unreachable!("not tried here; see `commits`")
            }
            Write::Invoice(invoicing) => {
                let Invoicing { period, invoice, carried_millicents, at } = &**invoicing;
                let key = (period.month, period.merchant);
                let is_unsettled = period.invoice.as_ref().is_none_or(|invoice| invoice.paid_at.is_none());
                let is_free = self.sold.insert(key.1);
                if self.periods.get(&key) != Some(period) || !is_unsettled || !is_free {
                    return Err(conflict());
                }
                if let Some((session, _)) = &invoice.session {
                    self.invoice_sessions.insert(*session, key);
                }
                let stored = self.periods.get_mut(&key).unwrap();
                stored.updated_at = stored.updated_at.max(*at);
                stored.invoice = Some(invoice.clone());
                if *carried_millicents != 0 {
                    self.open_period(key.1, key.0.next(), *at).usage.carry(*carried_millicents);
                }
            }
            Write::FeeTiers { schedule, expected } => {
                if self.tiers.as_ref().map_or(0, |tiers| tiers.version) != *expected {
                    return Err(conflict());
                }
                self.tiers = Some(schedule.clone());
            }
            Write::ReceiptKeys { keys, expected } => {
                if self.receipt_keys.as_ref().map_or(0, |keys| keys.version) != *expected {
                    return Err(conflict());
                }
                self.receipt_keys = Some((**keys).clone());
            }
            Write::Rate { rate, expected } => {
                if self.rate.map(|rate| rate.at) != *expected {
                    return Err(conflict());
                }
                self.rate = Some(*rate);
            }
            Write::Note { name, value, expected } => {
                if self.notes.get(name) != expected.as_ref() {
                    return Err(conflict());
                }
                self.notes.insert(name, value.clone());
            }
        }
        Ok(())
    }

    fn open_period(&mut self, merchant: MerchantId, mut month: Month, now: Timestamp) -> &mut Period {
        while self.periods.get(&(month, merchant)).is_some_and(|period| period.invoice.is_some()) {
            month = month.next();
        }
        let period = self.periods.entry((month, merchant)).or_insert_with(|| Period::begin(merchant, month, now));
        period.updated_at = period.updated_at.max(now);
        period
    }

    /// A payment counts when it completes. Later only its fee can change.
    fn count(&mut self, before: Option<&Payment>, after: &Payment) {
        let known = before.filter(|payment| payment.state == State::Completed);
        let now = after.updated_at;
        if after.state != State::Completed {
            return;
        }
        match (Sale::of(after), known) {
            (Some(sale), None) => {
                self.sold.insert(after.merchant);
                self.open_period(after.merchant, Month::of(sale.at), now).usage.add(&sale);
            }
            (Some(sale), Some(known)) => {
                let missed = Sale::of(known).map_or(0, |sale| sale.missing_fee_millicents);
                if missed != sale.missing_fee_millicents {
                    self.sold.insert(after.merchant);
                    let period = self.open_period(after.merchant, Month::of(sale.at), now);
                    period.usage.adjust_missing_fee(missed, sale.missing_fee_millicents);
                }
            }
            (None, None) => {
                let Some(key) = self.invoice_sessions.get(&after.id) else { return };
                self.sold.insert(key.1);
                let period = self.periods.get_mut(key).unwrap();
                period.updated_at = period.updated_at.max(now);
                period.invoice.as_mut().unwrap().paid_at.get_or_insert(now);
            }
            (None, Some(_)) => {}
        }
    }

    fn waiting(&mut self, delivery: &Delivery) -> Result<&mut DeliveryRecord, CommitError> {
        let logged = self.deliveries.get_mut(&(delivery.merchant, delivery.id)).ok_or_else(conflict)?;
        let seen = |d: &Delivery| (d.event, d.due_at, d.attempts);
        let is_as_seen = logged.state == DeliveryState::Pending && seen(&logged.delivery) == seen(delivery);
        if is_as_seen { Ok(logged) } else { Err(conflict()) }
    }

    /// Returns the outbox in the order of the store.
    fn due(&self) -> Vec<Delivery> {
        let waiting = self.deliveries.values().filter(|logged| logged.state == DeliveryState::Pending);
        let mut due: Vec<Delivery> = waiting.map(|logged| logged.delivery.clone()).collect();
        due.sort_by_key(|d| (d.due_at, d.event, d.id));
        due
    }
}

pub(crate) fn outcome(result: &Result<(), CommitError>) -> String {
    match result {
        Err(CommitError::Conflict { .. }) => "conflict".to_owned(),
        other => format!("{other:?}"),
    }
}

pub(crate) async fn compare(store: &impl Store, model: &Model) {
    for number in 1..8 {
        let expected = model.payments.get(&payment_id(number));
        assert_eq!(store.payment(payment_id(number)).await.unwrap().as_ref(), expected);
        let by_slug = store.payment_by_slug(payment(1, number).slug).await.unwrap();
        assert_eq!(by_slug.as_ref(), model.payments.values().find(|p| p.slug == payment(1, number).slug));
    }
    for owner in 1..3 {
        let owner = merchant_id(owner);
        for states in State::ALL.iter().map(|state| vec![*state]).chain([Vec::new()]) {
            let mut expected: Vec<_> = model.payments.values().filter(|p| p.merchant == owner).cloned().collect();
            expected.retain(|p| states.is_empty() || states.contains(&p.state));
            expected.reverse();
            let query = PaymentQuery { states, ..PaymentQuery::all(owner, 100) };
            let page = store.payments(query.clone()).await.unwrap();
            assert_eq!((page.total, page.items), (expected.len() as u64, expected.clone()));
            let unusual = store.payments(PaymentQuery { unusual: Some(true), ..query }).await.unwrap();
            assert_eq!(unusual.total, expected.iter().filter(|p| p.needs_attention()).count() as u64);
        }
        let mut periods: Vec<_> = model.periods.values().filter(|p| p.merchant == owner).cloned().collect();
        periods.reverse();
        assert_eq!(store.periods_of(owner).await.unwrap(), periods);
        let events = model.events.get(&owner).cloned().unwrap_or_default();
        assert_eq!(store.events(owner, 0, 1_000).await.unwrap(), events);
        assert_eq!(store.event(owner, 1).await.unwrap().as_ref(), events.first());
    }
    let mut due: Vec<_> =
        model.payments.values().filter(|p| p.state == State::Pending).map(|p| (p.due_at(), p.id)).collect();
    due.sort_unstable();
    assert_eq!(store.due(Timestamp::MAX, None, 100).await.unwrap(), due);
    let in_flight: Vec<_> = model.payments.values().filter(|p| p.awaits_finality()).map(|p| p.id).collect();
    assert_eq!(store.in_flight().await.unwrap(), in_flight);
    let is_open = |c: &&ClaimRecord| matches!(c.purpose, Purpose::Facilitated(_)) && c.outcome == ClaimOutcome::Open;
    let mut facilitations: Vec<_> = model.claims.iter().filter(is_open).cloned().collect();
    facilitations.sort_by_key(|c| c.tx_id);
    assert_eq!(store.open_facilitations().await.unwrap(), facilitations);

    let mut merchants: Vec<_> = model.merchants.values().cloned().collect();
    merchants.reverse();
    let listed = store.merchants(MerchantQuery::all(100)).await.unwrap().items;
    assert_eq!(listed.into_iter().map(|listed| Arc::unwrap_or_clone(listed.merchant)).collect::<Vec<_>>(), merchants);
    for number in 1..4 {
        let digest = merchant(number).keys[0].digest;
        let by_key = model.merchants.values().find(|m| m.keys[0].digest == digest);
        assert_eq!(store.merchant_by_key(digest).await.unwrap().as_deref(), by_key);
        assert_eq!(
            store.merchant(merchant_id(number)).await.unwrap().as_deref(),
            model.merchants.get(&merchant_id(number))
        );
    }
    let accounts: Vec<_> = model.accounts.iter().cloned().collect();
    assert_eq!(store.watched_accounts(None, 100).await.unwrap(), accounts);

    let deliveries = model.due();
    assert_eq!(store.due_deliveries(Timestamp::MAX, 1_000).await.unwrap(), deliveries);
    for now in [Timestamp::EPOCH, at(20), Timestamp::MAX] {
        let next = deliveries.iter().map(|d| d.due_at).find(|due_at| *due_at > now);
        assert_eq!(store.next_delivery_after(now).await.unwrap(), next);
    }
    for owner in 1..3 {
        let merchant = merchant_id(owner);
        let logged = model.deliveries.values().filter(|logged| logged.delivery.merchant == merchant);
        let mut newest_first: Vec<DeliveryRecord> = logged.cloned().collect();
        newest_first.reverse();
        let query = DeliveryQuery {
            merchant,
            before: None,
            limit: 1_000,
            states: Vec::new(),
            event: None,
            payment: None,
            endpoint: None,
        };
        let list = async |query| store.deliveries(query).await.unwrap().items;
        assert_eq!(list(query.clone()).await, newest_first);
        for payment in newest_first.iter().map(|logged| logged.delivery.payment).collect::<BTreeSet<_>>() {
            let of_payment = |logged: &&DeliveryRecord| logged.delivery.payment == payment;
            let wanted: Vec<DeliveryRecord> = newest_first.iter().filter(of_payment).cloned().collect();
            let query = DeliveryQuery { payment: Some(payment), ..query.clone() };
            assert_eq!(list(query).await, wanted);
        }
        for event in newest_first.iter().map(|logged| logged.delivery.event).collect::<BTreeSet<_>>() {
            let wanted = newest_first.iter().filter(|logged| logged.delivery.event == event).cloned();
            let query = DeliveryQuery { event: Some(event), ..query.clone() };
            assert_eq!(list(query).await, wanted.collect::<Vec<_>>());
        }
        for states in 1..16_u8 {
            let is_wanted = |(at, _): &(usize, DeliveryState)| states >> at & 1 == 1;
            let states: Vec<_> = DeliveryState::ALL.into_iter().enumerate().filter(is_wanted).map(|(_, s)| s).collect();
            let wanted =
                newest_first.iter().filter(|logged| states.contains(&logged.state)).cloned().collect::<Vec<_>>();
            let mut query = DeliveryQuery { states, limit: 2, ..query.clone() };
            let mut found = Vec::new();
            loop {
                let page = store.deliveries(query.clone()).await.unwrap();
                found.extend(page.items);
                let Some(next) = page.next else { break };
                query.before = Some(DeliveryId::from_bits(next));
            }
            assert_eq!(found, wanted, "page by page");
        }
        let replayable = newest_first.iter().rev().filter(|logged| logged.is_replayable());
        let replayable: Vec<Delivery> = replayable.map(|logged| logged.delivery.clone()).collect();
        assert_eq!(store.replayable(merchant, DeliveryId::from_bits(0), 1_000).await.unwrap(), replayable);
        for endpoint in [endpoint_id(owner), second_endpoint(owner)] {
            let health = model.endpoints.get(&endpoint).cloned().unwrap_or_default();
            assert_eq!(store.endpoint(endpoint).await.unwrap(), health);
            let wanted = newest_first.iter().filter(|logged| logged.delivery.endpoint == endpoint).cloned();
            let query = DeliveryQuery { endpoint: Some(endpoint), ..query.clone() };
            assert_eq!(list(query).await, wanted.collect::<Vec<_>>());
        }
        let last = model.events.get(&merchant).map_or(0, |list| list.len() as u64);
        assert_eq!(store.event_list(merchant).await.unwrap().tail.last, last);
    }
    for now in [at(20), Timestamp::MAX] {
        let mut found = Vec::new();
        for work in store.due_work(now, 1_000, 1_000, storage::Passed::default()).await.unwrap() {
            assert_eq!(Some(&work.health), model.endpoints.get(&work.endpoint).or(Some(&EndpointHealth::default())));
            for due in work.deliveries {
                let earlier = |other: &&Delivery| {
                    (other.payment, other.endpoint) == (due.delivery.payment, work.endpoint)
                        && other.trigger == Trigger::Auto
                        && other.event_seq < due.delivery.event_seq
                };
                let follows = due.delivery.trigger == Trigger::Auto && deliveries.iter().any(|other| earlier(&other));
                assert_eq!(due.follows, follows);
                found.push(due.delivery);
            }
        }
        found.sort_by_key(|d| (d.due_at, d.event, d.id));
        let expected: Vec<Delivery> = deliveries.iter().filter(|d| d.due_at <= now).cloned().collect();
        assert_eq!(found, expected);
    }
    for number in 0..40 {
        let mut attempts = model.attempts.get(&event(1, number).id).cloned().unwrap_or_default();
        attempts.sort_by_key(|attempt| (attempt.delivery, attempt.number));
        assert_eq!(store.attempts(event(1, number).id).await.unwrap(), attempts);
    }
    for number in 1..9 {
        let by_tx = model.claims.iter().find(|c| c.tx_id == tx_id(number));
        assert_eq!(store.claim(tx_id(number)).await.unwrap().as_ref(), by_tx);
        assert_eq!(store.claims(vec![tx_id(number)]).await.unwrap(), Vec::from_iter(by_tx.cloned()));
        let nonce = format!("nonce {number}");
        let by_nonce = model.claims.iter().find(|c| c.nonce == nonce);
        assert_eq!(store.overlapping_claim(account("shop"), Vec::new(), None, nonce).await.unwrap().as_ref(), by_nonce);
    }
    let ids = (0..10).map(payment_id);
    let versions: Vec<_> = ids.clone().filter_map(|id| Some((id, model.payments.get(&id)?.version))).collect();
    assert_eq!(store.versions(ids.collect()).await.unwrap(), versions);
    for number in 1..8 {
        let id = payment_id(number);
        let mut rows = model.transfers.get(&id).cloned().unwrap_or_default();
        rows.sort_by_key(|row| std::cmp::Reverse(row.seq));
        assert_eq!(store.transfers(id, None, 100).await.unwrap(), rows);
        for row in &rows {
            assert_eq!(store.transfer(id, row.tx_id, row.op_in_tx).await.unwrap().as_ref(), Some(row));
            let older: Vec<_> = rows.iter().filter(|other| other.seq < row.seq).take(1).cloned().collect();
            assert_eq!(store.transfers(id, Some(row.seq), 1).await.unwrap(), older);
        }
    }
    for name in ["shop", "shop.two"] {
        let mut expected: Vec<_> = model.unmatched.iter().filter(|u| u.account().as_str() == name).cloned().collect();
        expected.sort_by_key(|u| std::cmp::Reverse(u.transfer.position));
        assert_eq!(store.unmatched(account(name), 100).await.unwrap(), expected);
    }
    assert_eq!(store.cursor().await.unwrap(), model.cursor);
    assert_eq!(store.rate().await.unwrap(), model.rate);
    assert_eq!(store.receipt_keys().await.unwrap(), model.receipt_keys);
    for name in ["a", "b"] {
        assert_eq!(store.note(name).await.unwrap().as_ref(), model.notes.get(name));
    }
}

pub(crate) fn batches() -> impl Strategy<Value = Vec<Vec<Try>>> {
    prop::collection::vec(prop::collection::vec(tries(), 1..6), 1..40)
}
