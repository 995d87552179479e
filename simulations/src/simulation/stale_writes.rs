//! Writes that are based on an older state of the store, or that reuse unique values: the store must refuse each as a whole.

use engine::{
    event_list::Epoch,
    idempotency::{IdempotencyRecord, Resource},
    ids::{DeliveryId, EndpointId, EventId, MerchantId, SlugToken},
    ledger::BlockId,
    merchant::Merchant,
    payment::{Credit, Payment},
    webhook::Delivery,
    x402::{ClaimOutcome, ClaimRecord},
};
use storage::{CommitError, Cursor, EventRecord, Handling, HoldReason, prelude::*};

use super::*;

/// Blocks between two stale writes.
const WRITTEN_EVERY: u64 = 4;
/// How long after its start a simulation has no expired records, milliseconds.
const REMEMBERED_MS: u64 = 20 * 3_600_000;
/// A value that each stale batch writes first: it must never be stored.
const MARKER: &str = "a stale write";

/// Why the store must refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Conflict,
    Claimed,
    Assigned,
    Remembered,
}

impl Wanted {
    fn is_met(self, error: &CommitError) -> bool {
        match self {
            Self::Conflict => matches!(error, CommitError::Conflict { .. }),
            Self::Claimed => matches!(error, CommitError::Claimed(_)),
            Self::Assigned => matches!(error, CommitError::Assigned(_)),
            Self::Remembered => matches!(error, CommitError::Remembered(_)),
        }
    }
}

/// The sources of stale writes: durable rows.
struct Rows<'a> {
    observer: &'a Observer,
    random: &'a mut Random,
}

/// A stale batch; none if there are no rows for one.
type Stale = fn(&mut Rows<'_>) -> Option<(Vec<Write>, Wanted)>;

impl Rows<'_> {
    fn bits(&mut self) -> u128 {
        u128::from(self.random.draw()) << 64 | u128::from(self.random.draw())
    }

    fn payment(&mut self) -> Option<Payment> {
        let at = self.random.index(self.observer.payments.len().max(1));
        self.observer.payments.get_index(at).map(|(_, known)| (*known.payment).clone())
    }

    /// Returns a payment's next version as its owner would write it.
    fn next_payment(&mut self) -> Option<(Payment, u64)> {
        let payment = self.payment()?;
        let expected = payment.version;
        Some((Payment { version: expected + 1, ..payment }, expected))
    }

    fn merchants(&mut self) -> Option<(Merchant, Option<Merchant>)> {
        let merchants: Vec<&Merchant> = self.observer.merchants.values().collect();
        let one = *merchants.get(self.random.index(merchants.len().max(1)))?;
        let other = merchants.iter().find(|other| other.id != one.id);
        Some((one.clone(), other.map(|other| (*other).clone())))
    }

    fn claim(&mut self) -> Option<ClaimRecord> {
        let at = self.random.index(self.observer.claims.len().max(1));
        self.observer.claims.get_index(at).map(|(_, claimed)| claimed.clone())
    }

    fn tx_id(&mut self) -> TxId {
        let mut bytes = [0; 20];
        self.random.fill(&mut bytes);
        TxId(bytes)
    }

    /// Returns a transfer that a payment has, with the payment.
    fn credit(&mut self) -> Option<(Payment, u64, Credit)> {
        let (payment, expected) = self.next_payment()?;
        let rows = self.observer.rows.get(&payment.id)?;
        let credit = rows.values().nth(self.random.index(rows.len().max(1)))?.clone();
        Some((payment, expected, credit))
    }

    fn event(&mut self) -> Option<EventRecord> {
        let at = self.random.index(self.observer.events.len().max(1));
        let event = self.observer.events.get_index(at).map(|(_, event)| event.clone());
        // An event that retention has deleted may be written again.
        event.filter(|event| event.at >= self.observer.model.events_from)
    }

    /// Returns a delivery as it waits in the outbox.
    fn waiting(&mut self) -> Option<Delivery> {
        let waiting = self.observer.deliveries.iter().filter(|(_, known)| known.due_at.is_some());
        let waiting: Vec<_> = waiting.collect();
        let (id, known) = *waiting.get(self.random.index(waiting.len().max(1)))?;
        self.delivery(*id, known.due_at?)
    }

    /// Returns a delivery that has left the outbox.
    fn over(&mut self) -> Option<Delivery> {
        let over = self.observer.deliveries.iter().filter(|(_, known)| known.due_at.is_none());
        let over: Vec<_> = over.collect();
        let (id, _) = *over.get(self.random.index(over.len().max(1)))?;
        self.delivery(*id, Timestamp::EPOCH)
    }

    fn delivery(&self, id: DeliveryId, due_at: Timestamp) -> Option<Delivery> {
        let known = self.observer.deliveries.get(&id)?;
        let event =
            self.observer.events.get(&known.event).filter(|event| event.at >= self.observer.model.events_from)?;
        Some(Delivery {
            id,
            event: known.event,
            event_seq: event.seq,
            merchant: event.merchant,
            endpoint: known.endpoint,
            payment: known.payment,
            trigger: engine::webhook::Trigger::Auto,
            attempts: known.attempts,
            schedule_from: known.schedule_from,
            due_at,
        })
    }
}

fn payment(payment: Payment, expected: Option<u64>) -> Write {
    Write::Payment { payment: Arc::new(payment), expected }
}

fn transfer(payment: &Payment, credit: Credit) -> Write {
    Write::Transfer { payment: payment.id, merchant: payment.merchant, credit: Box::new(credit) }
}

fn merchant(merchant: Merchant, expected: Option<u64>) -> Write {
    Write::Merchant { merchant: Box::new(merchant), expected }
}

/// Returns writes that conflict with durable rows.
fn conflict(writes: impl IntoIterator<Item = Write>) -> Option<(Vec<Write>, Wanted)> {
    Some((writes.into_iter().collect(), Wanted::Conflict))
}

const STALE: [Stale; 38] = [
    // A payment.
    |rows| {
        let (next, expected) = rows.next_payment()?;
        conflict([payment(next, Some(expected.checked_sub(1)?))])
    },
    |rows| {
        let (next, expected) = rows.next_payment()?;
        conflict([payment(Payment { version: expected + 2, ..next }, Some(expected + 1))])
    },
    |rows| conflict([payment(rows.payment()?, None)]),
    |rows| {
        let (next, expected) = rows.next_payment()?;
        let again = next.clone();
        conflict([payment(next, Some(expected)), payment(again, Some(expected))])
    },
    |rows| {
        let (next, expected) = rows.next_payment()?;
        let (merchant, other) = rows.merchants()?;
        let other = [Some(merchant.id), other.map(|other| other.id)].into_iter().flatten();
        let merchant = other.into_iter().find(|id| *id != next.merchant)?;
        conflict([payment(Payment { merchant, ..next }, Some(expected))])
    },
    |rows| {
        let (next, expected) = rows.next_payment()?;
        let slug = SlugToken::from_bits(rows.bits());
        conflict([payment(Payment { slug, ..next }, Some(expected))])
    },
    |rows| {
        let (taken, id) = (rows.payment()?, PaymentId::from_bits(rows.bits()));
        conflict([payment(Payment { id, version: 1, ..taken }, None)])
    },
    |rows| {
        let (one, slug) = (rows.payment()?, SlugToken::from_bits(rows.bits()));
        let one = Payment { slug, version: 1, id: PaymentId::from_bits(rows.bits()), ..one };
        let other = Payment { id: PaymentId::from_bits(rows.bits()), ..one.clone() };
        conflict([payment(one, None), payment(other, None)])
    },
    // A merchant.
    |rows| {
        let (one, _) = rows.merchants()?;
        let expected = one.version.checked_sub(1)?;
        conflict([merchant(Merchant { version: one.version + 1, ..one }, Some(expected))])
    },
    |rows| conflict([merchant(rows.merchants()?.0, None)]),
    |rows| {
        let (one, _) = rows.merchants()?;
        let next = Merchant { version: one.version + 1, ..one.clone() };
        conflict([merchant(next.clone(), Some(one.version)), merchant(next, Some(one.version))])
    },
    |rows| {
        let (one, other) = rows.merchants()?;
        let (expected, other) = (one.version, other?);
        conflict([merchant(Merchant { id: one.id, version: expected + 1, ..other }, Some(expected))])
    },
    |rows| {
        let (one, _) = rows.merchants()?;
        let id = MerchantId::from_bits(rows.bits());
        conflict([merchant(Merchant { id, version: 1, ..one }, None)])
    },
    // A claim.
    |rows| Some((vec![Write::Claim(rows.claim()?)], Wanted::Claimed)),
    |rows| {
        let claimed = ClaimRecord { tx_id: rows.tx_id(), identifier: None, ..rows.claim()? };
        Some((vec![Write::Claim(claimed)], Wanted::Claimed))
    },
    |rows| {
        let claimed = rows.claim().filter(|claimed| claimed.identifier.is_some())?;
        let claimed = ClaimRecord { tx_id: rows.tx_id(), nonce: format!("stale-{}", rows.bits()), ..claimed };
        Some((vec![Write::Claim(claimed)], Wanted::Claimed))
    },
    |rows| {
        let nonce = format!("stale-{}", rows.bits());
        let one = ClaimRecord { tx_id: rows.tx_id(), nonce, identifier: None, ..rows.claim()? };
        let other = ClaimRecord { tx_id: rows.tx_id(), ..one.clone() };
        Some((vec![Write::Claim(one), Write::Claim(other)], Wanted::Claimed))
    },
    |rows| {
        let nonce = format!("stale-{}", rows.bits());
        let one = ClaimRecord { tx_id: rows.tx_id(), nonce: nonce.clone(), identifier: None, ..rows.claim()? };
        let other = ClaimRecord { nonce: format!("{nonce}-"), ..one.clone() };
        Some((vec![Write::Claim(one), Write::Claim(other)], Wanted::Claimed))
    },
    |rows| {
        let assigned: Vec<TxId> = rows.observer.assignments.keys().map(|(tx_id, _)| *tx_id).collect();
        let tx_id = *assigned.get(rows.random.index(assigned.len().max(1)))?;
        let nonce = format!("stale-{}", rows.bits());
        let claimed = ClaimRecord { tx_id, nonce, identifier: None, ..rows.claim()? };
        let is_claimed = rows.observer.claims.contains_key(&tx_id);
        Some((vec![Write::Claim(claimed)], if is_claimed { Wanted::Claimed } else { Wanted::Assigned }))
    },
    |rows| {
        let ClaimRecord { tx_id, outcome, .. } = rows.claim()?;
        let other = ClaimOutcome::Settled { is_reported: false, block_num: Some(7) };
        let expected = if outcome == ClaimOutcome::Expired { other } else { ClaimOutcome::Expired };
        conflict([Write::ClaimOutcome { tx_id, expected, outcome: ClaimOutcome::Open }])
    },
    |rows| {
        let tx_id = rows.tx_id();
        let (expected, outcome) = (ClaimOutcome::Open, ClaimOutcome::Expired);
        conflict([Write::ClaimOutcome { tx_id, expected, outcome }])
    },
    |rows| conflict([Write::ForgetClaims(vec![rows.tx_id()])]),
    // The cursor.
    |rows| {
        let cursor = rows.observer.cursor?;
        conflict([Write::Cursor { cursor, expected: None }])
    },
    |rows| {
        let cursor = rows.observer.cursor?;
        let expected = Cursor { block_id: BlockId::default(), ..cursor };
        conflict([Write::Cursor { cursor, expected: Some(expected) }])
    },
    |rows| {
        let cursor = rows.observer.cursor?;
        let other = Cursor { time: cursor.time + Duration::from_secs(3), ..cursor };
        let moves = |cursor, expected| Write::Cursor { cursor, expected: Some(expected) };
        conflict([moves(other, cursor), moves(other, cursor)])
    },
    // A transfer.
    |rows| {
        let (payment, _, credit) = rows.credit()?;
        conflict([transfer(&payment, credit)])
    },
    |rows| {
        let (one, expected, credit) = rows.credit()?;
        let moved = transfer(&one, Credit { seq: credit.seq + 1, ..credit });
        conflict([payment(one, Some(expected)), moved])
    },
    |rows| {
        let (one, expected, credit) = rows.credit()?;
        let other = transfer(&one, Credit { tx_id: rows.tx_id(), ..credit });
        conflict([payment(one, Some(expected)), other])
    },
    |rows| {
        let (one, expected, credit) = rows.credit()?;
        let new = Credit { tx_id: rows.tx_id(), seq: one.transfer_count() + 1, ..credit };
        let twice = [new.clone(), Credit { seq: new.seq + 1, ..new }].map(|credit| transfer(&one, credit));
        conflict([payment(one, Some(expected))].into_iter().chain(twice))
    },
    |rows| {
        let (one, expected, credit) = rows.credit()?;
        let new = Credit { tx_id: rows.tx_id(), seq: one.transfer_count() + 1, ..credit };
        let twice = [new.clone(), Credit { tx_id: rows.tx_id(), ..new }].map(|credit| transfer(&one, credit));
        conflict([payment(one, Some(expected))].into_iter().chain(twice))
    },
    // An event and its deliveries.
    |rows| {
        let event = rows.event()?;
        let deliveries = vec![(EndpointId::default_of(event.merchant), DeliveryId::from_bits(rows.bits()))];
        conflict([Write::Event(EventRecord { deliveries, ..event })])
    },
    |rows| {
        let event = rows.event().filter(|event| !event.deliveries.is_empty())?;
        conflict([Write::Event(EventRecord { id: EventId::from_bits(rows.bits()), ..event })])
    },
    |rows| {
        let waiting = rows.waiting()?;
        let seen = Delivery { attempts: waiting.attempts + 1, ..waiting.clone() };
        conflict([match rows.random.below(4) {
            0 => Write::Hold { delivery: seen, reason: HoldReason::Disabled },
            1 => Write::Undeliverable(seen),
            2 => Write::Redeliver(waiting),
            _ => Write::Replay { at: waiting.due_at, delivery: waiting },
        }])
    },
    |rows| {
        let over = rows.over()?;
        conflict([match rows.random.below(3) {
            0 => Write::Hold { delivery: over, reason: HoldReason::Disabled },
            1 => Write::Undeliverable(over),
            _ => Write::Redeliver(over),
        }])
    },
    |rows| {
        let waiting = rows.waiting()?;
        let hold = |delivery| Write::Hold { delivery, reason: HoldReason::Disabled };
        conflict([hold(waiting.clone()), hold(waiting)])
    },
    |rows| {
        let waiting = rows.waiting()?;
        let seen = rows.observer.endpoints.get(&waiting.endpoint);
        // It was enabled meanwhile, or never disabled.
        let is_enabled = seen.is_none_or(|seen| seen.known.is_enabled());
        is_enabled.then(|| conflict([Write::Hold { delivery: waiting, reason: HoldReason::Disabled }]))?
    },
    // The prices.
    |rows| {
        let stored = rows.observer.rate?;
        let expected = Some(stored.at.minus(Duration::from_secs(1)));
        conflict([Write::Rate { rate: stored, expected }])
    },
    // Other unique rows.
    |rows| {
        if let Some(kept) = rows.observer.unmatched.values().find(|kept| {
            let key = (kept.transfer.tx_id, kept.transfer.position.op_in_tx);
            rows.observer.assignments.contains_key(&key)
        }) {
            let (account, place) = (*kept.account(), kept.transfer.position);
            return conflict([Write::Handle { account, place, handling: Handling::Open }]);
        }
        if let Some(((merchant, key), made)) = rows.observer.remembered.iter().next_back() {
            let (merchant, key, resource, at) = (*merchant, *key, Resource::Payment(*made), made.created_at());
            let remembered = IdempotencyRecord { merchant, key, fingerprint: [7; 32], resource, at };
            return Some((vec![Write::Remember { remembered, most: 1_000_000 }], Wanted::Remembered));
        }
        conflict([Write::BeginEpoch(Epoch::PENDING)])
    },
];

impl Simulation {
    /// Has a stale batch refused, at some blocks.
    pub(super) async fn try_stale_write(&self, store: &EmbeddedStore) {
        if self.now_ms() > REMEMBERED_MS {
            return;
        }
        let drawn = {
            let observer = lock(&self.observer);
            let mut streams = lock(&self.streams);
            let random = &mut streams.stale;
            // It is not known for certain what is durable.
            if random.below(WRITTEN_EVERY) != 0 || !observer.unknown_commits.is_empty() || observer.was_damaged {
                return;
            }
            let at = random.index(STALE.len());
            STALE[at](&mut Rows { observer: &observer, random }).map(|(writes, wanted)| (at, writes, wanted))
        };
        let Some((at, writes, wanted)) = drawn else { return };
        let marker = Write::Note { name: MARKER, value: vec![1], expected: None };
        self.disk.set_quiet(true);
        let outcome = store.commit([marker].into_iter().chain(writes).collect()).await;
        let is_marked = matches!(store.note(MARKER).await, Ok(Some(_)));
        self.disk.set_quiet(false);
        let is_right = match &outcome {
            Ok(()) => false,
            // The store has failed before.
            Err(CommitError::Unknown(_) | CommitError::Overloaded | CommitError::Unavailable(_)) => return,
            Err(error) => wanted.is_met(error) && !is_marked,
        };
        self.observe(|observer| {
            if is_right {
                observer.passes("stale-writes-are-refused");
            } else {
                let text = format!("stale write {at} is to be refused as {wanted:?}: {outcome:?}, marked {is_marked}");
                observer.violate("stale-writes-are-refused", text, None);
            }
        });
    }
}
