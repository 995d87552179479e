//! The store behaves like its model: the same batches, right and wrong, have the same outcomes and the same answers.
//!
//! The model is the interface in a few maps. It applies a batch write by write to a copy of itself and keeps the copy
//! only if nothing refused, which is what "a refused batch leaves no trace" means.

use std::collections::{BTreeMap, BTreeSet};

use engine::{
    account::AccountName,
    idempotency::{Made, Remembered},
    ids::{DeliveryId, EventId, MerchantId, PaymentId},
    merchant::Merchant,
    money::HivePrice,
    payment::{Claim, ClaimFinality, Payment, Rate, State},
    time::Timestamp,
    webhook::{Attempt, Delivery, DeliveryState, Endpoint, Logged, Trigger},
    x402::Reason,
};
use proptest::prelude::*;
use storage::{
    Batch, Claimed, CommitError, Cursor, DeliveryQuery, EventRecord, Fate, Handling, MerchantQuery, PaymentQuery,
    Purpose, RedbStore, Store, Unmatched, Write,
};

use crate::{disk::Gate, samples::*};

#[derive(Debug, Clone, Default)]
struct Model {
    payments: BTreeMap<PaymentId, Payment>,
    merchants: BTreeMap<MerchantId, Merchant>,
    accounts: BTreeSet<AccountName>,
    events: BTreeMap<MerchantId, Vec<EventRecord>>,
    deliveries: BTreeMap<(MerchantId, DeliveryId), Logged>,
    endpoints: BTreeMap<MerchantId, Endpoint>,
    attempts: BTreeMap<EventId, Vec<Attempt>>,
    claims: Vec<Claimed>,
    remembered: Vec<Remembered>,
    cursor: Option<Cursor>,
    unmatched: Vec<Unmatched>,
    rate: Option<Rate>,
    notes: BTreeMap<&'static str, Vec<u8>>,
}

fn conflict() -> CommitError {
    CommitError::Conflict { what: String::new() }
}

impl Model {
    fn commit(&mut self, batch: &Batch) -> Result<(), CommitError> {
        let mut next = self.clone();
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
                self.payments.insert(payment.id, (**payment).clone());
            }
            Write::Merchant { merchant, expected } => {
                let stored = self.merchants.get(&merchant.id);
                let key_is_free =
                    self.merchants.values().all(|m| m.keys[0].digest != merchant.keys[0].digest || m.id == merchant.id);
                if stored.map(|m| m.version) != *expected || !key_is_free {
                    return Err(conflict());
                }
                self.accounts.insert(merchant.hive_account.clone());
                self.merchants.insert(merchant.id, (**merchant).clone());
            }
            Write::Event(event) => {
                let is_known = self.events.values().flatten().any(|known| known.id == event.id);
                if is_known || self.deliveries.contains_key(&(event.merchant, event.delivery)) {
                    return Err(conflict());
                }
                let list = self.events.entry(event.merchant).or_default();
                let seq = list.len() as u64 + 1;
                list.push(EventRecord { seq, ..event.clone() });
                let delivery = Delivery {
                    id: event.delivery,
                    event: event.id,
                    event_seq: seq,
                    merchant: event.merchant,
                    payment: event.payment,
                    trigger: Trigger::Auto,
                    attempts: 0,
                    schedule_from: 0,
                    due_at: event.at,
                };
                self.deliveries.insert((event.merchant, event.delivery), Logged::new(delivery));
            }
            Write::Attempt { delivery, attempt } => {
                let taken = self.waiting(delivery)?;
                *taken = taken.after(attempt);
                self.attempts.entry(attempt.event).or_default().push(attempt.clone());
                let endpoint = self.endpoints.entry(delivery.merchant).or_default();
                *endpoint = endpoint.after(delivery, attempt);
            }
            Write::Undeliverable(delivery) => self.waiting(delivery)?.state = DeliveryState::Failed,
            Write::Hold(delivery) => self.waiting(delivery)?.state = DeliveryState::Held,
            Write::Redeliver(delivery) => {
                let place = (delivery.merchant, delivery.id);
                if self.deliveries.contains_key(&place) {
                    return Err(conflict());
                }
                self.deliveries.insert(place, Logged::new(delivery.clone()));
            }
            Write::Replay { delivery, at } => {
                let logged = self.deliveries.get_mut(&(delivery.merchant, delivery.id)).ok_or_else(conflict)?;
                if !logged.is_replayable() || logged.delivery.attempts != delivery.attempts {
                    return Err(conflict());
                }
                *logged = logged.replayed(*at);
            }
            Write::EnableEndpoint { merchant } => drop(self.endpoints.remove(merchant)),
            Write::Prune { .. } => unreachable!("pruning has tests of its own"),
            Write::Claim(claimed) => {
                let by_tx = self.claims.iter().find(|c| c.tx_id == claimed.tx_id);
                let by_nonce = self.claims.iter().find(|c| c.nonce == claimed.nonce);
                if let Some(earlier) = by_tx.or(by_nonce) {
                    return Err(CommitError::Claimed(Box::new(earlier.clone())));
                }
                self.claims.push(claimed.clone());
            }
            Write::Fate { tx_id, expected, fate } => {
                let claimed = self.claims.iter_mut().find(|c| c.tx_id == *tx_id && c.fate == *expected);
                let Some(claimed) = claimed else { return Err(conflict()) };
                claimed.fate = fate.clone();
            }
            Write::Remember(new) => {
                let stored = self.remembered.iter_mut().find(|r| (r.merchant, r.key) == (new.merchant, new.key));
                match stored {
                    Some(stored) if stored.is_alive(new.at) => {
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
                let place = |u: &Unmatched| (u.account().clone(), u.transfer.place);
                if self.unmatched.iter().all(|other| place(other) != place(unmatched)) {
                    self.unmatched.push(unmatched.clone());
                }
            }
            Write::Handle { account, place, handling } => {
                let stored = self
                    .unmatched
                    .iter_mut()
                    .find(|u| (u.account(), u.transfer.place) == (account, *place))
                    .filter(|u| !matches!(u.handling, Handling::Assigned { .. }));
                stored.ok_or_else(conflict)?.handling = handling.clone();
            }
            Write::Audit(_) => {}
            Write::Comply(_) | Write::Standing { .. } => unreachable!("not tried here; see `commits`"),
            Write::Rate(rate) => self.rate = Some(*rate),
            Write::Note { name, value } => drop(self.notes.insert(name, value.clone())),
        }
        Ok(())
    }

    fn waiting(&mut self, delivery: &Delivery) -> Result<&mut Logged, CommitError> {
        let logged = self.deliveries.get_mut(&(delivery.merchant, delivery.id)).ok_or_else(conflict)?;
        let seen = |d: &Delivery| (d.event, d.due_at, d.attempts);
        let is_as_seen = logged.state == DeliveryState::Pending && seen(&logged.delivery) == seen(delivery);
        if is_as_seen { Ok(logged) } else { Err(conflict()) }
    }

    /// The outbox in the order of its store.
    fn due(&self) -> Vec<Delivery> {
        let waiting = self.deliveries.values().filter(|logged| logged.state == DeliveryState::Pending);
        let mut due: Vec<Delivery> = waiting.map(|logged| logged.delivery.clone()).collect();
        due.sort_by_key(|d| (d.due_at, d.event, d.id));
        due
    }
}

/// What to try next; made into a write when it is known what is stored.
#[derive(Debug, Clone)]
enum Try {
    Payment { number: u64, state: usize, claim: bool, unusual: bool, wrong: u8 },
    Merchant { number: u8, key: u8, moved: bool, wrong: u8 },
    Event { owner: u8, number: u64 },
    Attempt { which: usize, again_at: Option<u64>, wrong: u8 },
    Undeliverable { which: usize, wrong: u8 },
    Hold { which: usize, wrong: u8 },
    Redeliver { which: usize, number: u64 },
    Replay { which: usize, again_at: u64 },
    Enable { owner: u8 },
    Claim { number: u8, nonce: u8, facilitated: bool },
    Fate { number: u8, from: usize, to: usize },
    Remember { key: u8, print: u8, day: u64 },
    Forget { day: u64 },
    Cursor { wrong: u8, to: u32 },
    Unmatched { to: bool, block: u32 },
    Handle { to: bool, block: u32, assigned: bool, minute: u64 },
    Rate { base: u64 },
    Note { name: bool, value: u8 },
}

/// Mostly right: a tenth of the writes expect something stale.
fn wrong() -> impl Strategy<Value = u8> {
    prop_oneof![9 => Just(0u8), 1 => 1..4u8]
}

fn tries() -> impl Strategy<Value = Try> {
    let flag = || prop::bool::ANY;
    prop_oneof![
        6 => (1..8u64, 0..6usize, flag(), flag(), wrong())
            .prop_map(|(number, state, claim, unusual, wrong)| Try::Payment { number, state, claim, unusual, wrong }),
        2 => (1..4u8, prop_oneof![4 => Just(0u8), 1 => 1..4u8], flag(), wrong())
            .prop_map(|(number, key, moved, wrong)| Try::Merchant { number, key, moved, wrong }),
        3 => (1..3u8, 0..40u64).prop_map(|(owner, number)| Try::Event { owner, number }),
        3 => (0..5usize, prop::option::of(0..60u64), wrong())
            .prop_map(|(which, again_at, wrong)| Try::Attempt { which, again_at, wrong }),
        1 => (0..5usize, wrong()).prop_map(|(which, wrong)| Try::Undeliverable { which, wrong }),
        1 => (0..5usize, wrong()).prop_map(|(which, wrong)| Try::Hold { which, wrong }),
        1 => (0..5usize, 0..60u64).prop_map(|(which, number)| Try::Redeliver { which, number }),
        1 => (0..9usize, 0..60u64).prop_map(|(which, again_at)| Try::Replay { which, again_at }),
        1 => (1..3u8).prop_map(|owner| Try::Enable { owner }),
        1 => (1..9u8, 1..9u8, flag())
            .prop_map(|(number, nonce, facilitated)| Try::Claim { number, nonce, facilitated }),
        1 => (1..9u8, 0..2usize, 0..4usize).prop_map(|(number, from, to)| Try::Fate { number, from, to }),
        1 => (1..4u8, 1..3u8, 0..4u64).prop_map(|(key, print, day)| Try::Remember { key, print, day }),
        1 => (0..4u64).prop_map(|day| Try::Forget { day }),
        1 => (wrong(), 1..9u32).prop_map(|(wrong, to)| Try::Cursor { wrong, to }),
        1 => (flag(), 1..4u32).prop_map(|(to, block)| Try::Unmatched { to, block }),
        1 => (flag(), 1..4u32, flag(), 0..3u64)
            .prop_map(|(to, block, assigned, minute)| Try::Handle { to, block, assigned, minute }),
        1 => (1..9u64).prop_map(|base| Try::Rate { base }),
        1 => (flag(), 0..9u8).prop_map(|(name, value)| Try::Note { name, value }),
    ]
}

impl Try {
    fn write(&self, model: &Model) -> Option<Write> {
        Some(match *self {
            Self::Payment { number, state, claim, unusual, wrong } => {
                let stored = model.payments.get(&payment_id(number)).map(|p| p.version);
                let expected = match wrong {
                    0 => stored,
                    1 => None,
                    _ => Some(stored.unwrap_or(0) + 5),
                };
                let mut next = payment(u8::try_from(number % 2).unwrap() + 1, number);
                next.version = expected.unwrap_or(0) + 1;
                next.state = State::ALL[state];
                next.is_reversed = unusual;
                next.claim = claim.then(|| Claim {
                    tx_id: tx_id(1),
                    nonce: String::new(),
                    payer: account("alice"),
                    transfers: Vec::new(),
                    signed_json: String::new(),
                    expiration: START,
                    claimed_at: START,
                    finality: ClaimFinality::InBlock,
                });
                if wrong == 3 {
                    // Somebody else's checkout address.
                    next.slug = payment(1, number % 3 + 1).slug;
                }
                Write::Payment { payment: Box::new(next), expected }
            }
            Self::Merchant { number, key, moved, wrong } => {
                let stored = model.merchants.get(&merchant_id(number)).map(|m| m.version);
                let expected = if wrong == 0 { stored } else { Some(stored.unwrap_or(0) + 5) };
                let mut next = merchant(number);
                next.version = expected.unwrap_or(0) + 1;
                if key > 0 {
                    next.keys = merchant(key).keys;
                }
                if moved {
                    next.hive_account = account("moved.shop");
                }
                Write::Merchant { merchant: Box::new(next), expected }
            }
            Self::Event { owner, number } => {
                // Announced again it is refused.
                Write::Event(event(owner, number))
            }
            Self::Attempt { which, again_at, wrong } => {
                let delivery = delivery(model, which, wrong)?;
                let attempt = attempt(&delivery, again_at.map(at));
                Write::Attempt { delivery, attempt }
            }
            Self::Undeliverable { which, wrong } => Write::Undeliverable(delivery(model, which, wrong)?),
            Self::Hold { which, wrong } => Write::Hold(delivery(model, which, wrong)?),
            Self::Redeliver { which, number } => {
                let (id, due_at) = (DeliveryId::new(at(number), [7; 10]), at(number));
                let known = model.deliveries.values().nth(which)?.delivery.clone();
                Write::Redeliver(Delivery {
                    id,
                    trigger: Trigger::Manual,
                    attempts: 0,
                    schedule_from: 0,
                    due_at,
                    ..known
                })
            }
            Self::Replay { which, again_at } => {
                let delivery = model.deliveries.values().nth(which)?.delivery.clone();
                Write::Replay { delivery, at: at(again_at) }
            }
            Self::Enable { owner } => Write::EnableEndpoint { merchant: merchant_id(owner) },
            Self::Claim { number, nonce, facilitated: for_others } => {
                let nonce = format!("nonce {nonce}");
                Write::Claim(if for_others { facilitated(number, &nonce) } else { claimed(number, &nonce) })
            }
            Self::Fate { number, from, to } => {
                let [expected, fate] = [from, to].map(|at| fates()[at].clone());
                Write::Fate { tx_id: tx_id(number), expected, fate }
            }
            Self::Remember { key, print, day } => Write::Remember(Remembered {
                merchant: merchant_id(1),
                key: [key; 32],
                fingerprint: [print; 32],
                made: Made::Payment(payment_id(1)),
                at: at(day * 86_400),
            }),
            Self::Forget { day } => Write::Forget { made_before: at(day * 86_400) },
            Self::Cursor { wrong, to } => {
                let expected = if wrong == 0 { model.cursor } else { Some(cursor(u32::from(wrong))) };
                Write::Cursor { cursor: cursor(to), expected }
            }
            Self::Unmatched { to, block } => {
                Write::Unmatched(unmatched(if to { "shop" } else { "shop.two" }, block, 0))
            }
            Self::Handle { to, block, assigned, minute } => {
                let kept = unmatched(if to { "shop" } else { "shop.two" }, block, 0);
                let (by, at) = ("key".to_owned(), at(minute * 60));
                let handling = if assigned {
                    Handling::Assigned { payment: payment_id(1), by, at }
                } else {
                    Handling::Ignored { by, at, note: String::new() }
                };
                Write::Handle { account: kept.account().clone(), place: kept.transfer.place, handling }
            }
            Self::Rate { base } => {
                Write::Rate(Rate { price: HivePrice { base_hbd_units: base, quote_hive_units: 9 }, at: START })
            }
            Self::Note { name, value } => Write::Note { name: if name { "a" } else { "b" }, value: vec![value] },
        })
    }
}

fn fates() -> [Fate; 4] {
    let refused = Fate::Refused { reason: Reason::InsufficientFunds, message: "too little".to_owned() };
    [Fate::Open, Fate::Settled { told: false }, Fate::Settled { told: true }, refused]
}

fn delivery(model: &Model, which: usize, wrong: u8) -> Option<Delivery> {
    let due = model.due();
    let mut delivery = due.get(which % due.len().max(1))?.clone();
    match wrong {
        0 => {}
        1 => delivery.attempts += 1,
        2 => delivery.due_at = delivery.due_at + std::time::Duration::from_secs(1_000),
        _ => delivery.event = event(1, 99).id,
    }
    Some(delivery)
}

fn batch_of(tries: &[Try], model: &Model) -> Batch {
    let mut batch = Batch::default();
    // Later writes of a batch see what the earlier ones will have done.
    let mut ahead = model.clone();
    for attempt in tries {
        let Some(write) = attempt.write(&ahead) else { continue };
        // Once something is refused, so is the batch; what follows does not matter, but must do no harm either.
        let _ = ahead.apply(&write);
        batch.writes.push(write);
    }
    batch
}

fn outcome(result: &Result<(), CommitError>) -> String {
    match result {
        Err(CommitError::Conflict { .. }) => "conflict".to_owned(),
        other => format!("{other:?}"),
    }
}

async fn compare(store: &RedbStore, model: &Model) {
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
        let events = model.events.get(&owner).cloned().unwrap_or_default();
        assert_eq!(store.events(owner, 0, 1_000).await.unwrap(), events);
        assert_eq!(store.event(owner, 1).await.unwrap().as_ref(), events.first());
    }
    let mut due: Vec<_> =
        model.payments.values().filter(|p| p.state == State::Pending).map(|p| (p.deadline(), p.id)).collect();
    due.sort_unstable();
    assert_eq!(store.due(Timestamp::MAX, None, 100).await.unwrap(), due);
    let in_flight: Vec<_> = model.payments.values().filter(|p| p.is_undecided()).map(|p| p.id).collect();
    assert_eq!(store.in_flight().await.unwrap(), in_flight);
    let is_open = |c: &&Claimed| matches!(c.purpose, Purpose::Facilitated(_)) && c.fate == Fate::Open;
    let mut facilitations: Vec<_> = model.claims.iter().filter(is_open).cloned().collect();
    facilitations.sort_by_key(|c| c.tx_id);
    assert_eq!(store.open_facilitations().await.unwrap(), facilitations);

    let mut merchants: Vec<_> = model.merchants.values().cloned().collect();
    merchants.reverse();
    let listed = store.merchants(MerchantQuery::all(100)).await.unwrap().items;
    assert_eq!(listed.into_iter().map(|listed| listed.merchant).collect::<Vec<_>>(), merchants);
    for number in 1..4 {
        let digest = merchant(number).keys[0].digest;
        let by_key = model.merchants.values().find(|m| m.keys[0].digest == digest);
        assert_eq!(store.merchant_by_key(digest).await.unwrap().as_ref(), by_key);
        assert_eq!(
            store.merchant(merchant_id(number)).await.unwrap().as_ref(),
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
        let mut newest_first: Vec<Logged> = logged.cloned().collect();
        newest_first.reverse();
        let query =
            DeliveryQuery { merchant, before: None, limit: 1_000, states: Vec::new(), event: None, payment: None };
        assert_eq!(store.deliveries(query.clone()).await.unwrap(), newest_first);
        for payment in newest_first.iter().map(|logged| logged.delivery.payment).collect::<BTreeSet<_>>() {
            let of_payment = |logged: &&Logged| logged.delivery.payment == payment;
            let wanted: Vec<Logged> = newest_first.iter().filter(of_payment).cloned().collect();
            let query = DeliveryQuery { payment: Some(payment), ..query.clone() };
            assert_eq!(store.deliveries(query).await.unwrap(), wanted);
        }
        let replayable = newest_first.iter().rev().filter(|logged| logged.is_replayable());
        let replayable: Vec<Delivery> = replayable.map(|logged| logged.delivery.clone()).collect();
        assert_eq!(store.replayable(merchant, DeliveryId::from_bits(0), 1_000).await.unwrap(), replayable);
        let endpoint = model.endpoints.get(&merchant).cloned().unwrap_or_default();
        assert_eq!(store.endpoint(merchant).await.unwrap(), endpoint);
        let last = model.events.get(&merchant).map_or(0, |list| list.len() as u64);
        assert_eq!(store.last_event(merchant).await.unwrap(), last);
    }
    for now in [at(20), Timestamp::MAX] {
        let mut found = Vec::new();
        for work in store.due_work(now, 1_000, 1_000, BTreeSet::new()).await.unwrap() {
            assert_eq!(Some(&work.endpoint), model.endpoints.get(&work.merchant).or(Some(&Endpoint::default())));
            for due in work.deliveries {
                let earlier = |other: &&Delivery| {
                    (other.payment, other.trigger) == (due.delivery.payment, Trigger::Auto)
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
        let nonce = format!("nonce {number}");
        let by_nonce = model.claims.iter().find(|c| c.nonce == nonce);
        assert_eq!(store.claim_by_nonce(nonce).await.unwrap().as_ref(), by_nonce);
    }
    for name in ["shop", "shop.two"] {
        let mut expected: Vec<_> = model.unmatched.iter().filter(|u| u.account().as_str() == name).cloned().collect();
        expected.sort_by_key(|u| std::cmp::Reverse(u.transfer.place));
        assert_eq!(store.unmatched(account(name), 100).await.unwrap(), expected);
    }
    assert_eq!(store.cursor().await.unwrap(), model.cursor);
    assert_eq!(store.rate().await.unwrap(), model.rate);
    for name in ["a", "b"] {
        assert_eq!(store.note(name).await.unwrap().as_ref(), model.notes.get(name));
    }
}

fn batches() -> impl Strategy<Value = Vec<Vec<Try>>> {
    prop::collection::vec(prop::collection::vec(tries(), 1..6), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn the_store_behaves_like_its_model(batches in batches()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = in_memory();
            let mut model = Model::default();
            for tries in batches {
                let batch = batch_of(&tries, &model);
                let expected = model.commit(&batch);
                let got = store.commit(batch).await;
                assert_eq!(outcome(&got), outcome(&expected));
                compare(&store, &model).await;
            }
        });
    }
    #[test]
    fn a_group_ends_as_its_batches_would_one_by_one(batches in batches()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let gate = Gate::default();
            let store = gate.open(100);
            let mut model = Model::default();
            let (mut written, mut expected) = (Vec::new(), Vec::new());
            for tries in &batches {
                let batch = batch_of(tries, &model);
                expected.push(outcome(&model.commit(&batch)));
                written.push(batch);
            }
            gate.shut();
            let mut first = store.commit(Batch::of(Write::Note { name: "first", value: Vec::new() }));
            assert!(futures_util::poll!(&mut first).is_pending());
            gate.somebody_waits().await;
            let before = gate.syncs();
            let mut group = Box::pin(futures_util::future::join_all(written.into_iter().map(|batch| store.commit(batch))));
            let _ = futures_util::poll!(&mut group);
            gate.let_through();
            first.await.unwrap();
            let outcomes: Vec<String> = group.await.iter().map(outcome).collect();
            assert_eq!(outcomes, expected);
            assert!(gate.syncs() <= before + 2, "all of them are one group");
            compare(&store, &model).await;
        });
    }
}
