//! The random writes of the model-based test, most of them valid.

use std::sync::Arc;

use engine::{
    billing::{Invoice, RawTier, Schedule, Tiers},
    idempotency::{IdempotencyRecord, Resource},
    ids::{DeliveryId, EndpointId},
    money::HivePrice,
    payment::{Claim, ClaimFinality, Credit, FeeMode, Finality, Rate, State},
    webhook::{Delivery, Trigger},
    x402::{ClaimOutcome, Reason, ReceiptKey, ReceiptKeys},
};
use proptest::prelude::*;
use storage::{Batch, Handling, HoldReason, Invoicing, Write};

use super::Model;
use crate::samples::*;

/// Returns the second endpoint of a merchant.
pub(super) fn second_endpoint(owner: u8) -> EndpointId {
    EndpointId::from_bits(900 + u128::from(owner))
}

/// A write to try. Its content depends on what is stored.
#[derive(Debug, Clone)]
pub(crate) enum Try {
    Payment { number: u64, state: usize, claim: bool, unusual: bool, month: u64, fee: u8, wrong: u8 },
    Merchant { number: u8, key: u8, moved: bool, wrong: u8 },
    Event { owner: u8, number: u64 },
    Attempt { which: usize, again_at: Option<u64>, wrong: u8 },
    Undeliverable { which: usize, wrong: u8 },
    Hold { which: usize, wrong: u8 },
    Redeliver { which: usize, number: u64 },
    Replay { which: usize, again_at: u64 },
    Enable { owner: u8, is_second: bool },
    Claim { number: u8, nonce: u8, facilitated: bool },
    ClaimOutcome { number: u8, from: usize, to: usize },
    Remember { key: u8, print: u8, day: u64 },
    Forget { day: u64 },
    Cursor { wrong: u8, to: u32 },
    Unmatched { to: bool, block: u32 },
    Handle { to: bool, block: u32, assigned: bool, minute: u64 },
    Rate { base: u64 },
    Transfer { seq: u64, tx: u8, finality: usize },
    Note { name: bool, value: u8 },
    Invoice { which: usize, session: u64, cents: u64, carried: i64, wrong: u8 },
    Tiers { wrong: u8 },
    ReceiptKeys { seed: u8, wrong: u8 },
}

/// Returns 0 in most cases; a tenth of the writes expect something stale.
fn wrong() -> impl Strategy<Value = u8> {
    prop_oneof![9 => Just(0u8), 1 => 1..4u8]
}

pub(crate) fn tries() -> impl Strategy<Value = Try> {
    let flag = || prop::bool::ANY;
    prop_oneof![
        6 => (1..8u64, 0..6usize, flag(), flag(), 0..3u64, 0..3u8, wrong())
            .prop_map(|(number, state, claim, unusual, month, fee, wrong)| {
                Try::Payment { number, state, claim, unusual, month, fee, wrong }
            }),
        2 => (1..4u8, prop_oneof![4 => Just(0u8), 1 => 1..4u8], flag(), wrong())
            .prop_map(|(number, key, moved, wrong)| Try::Merchant { number, key, moved, wrong }),
        3 => (1..3u8, 0..40u64).prop_map(|(owner, number)| Try::Event { owner, number }),
        3 => (0..5usize, prop::option::of(0..60u64), wrong())
            .prop_map(|(which, again_at, wrong)| Try::Attempt { which, again_at, wrong }),
        1 => (0..5usize, wrong()).prop_map(|(which, wrong)| Try::Undeliverable { which, wrong }),
        1 => (0..5usize, wrong()).prop_map(|(which, wrong)| Try::Hold { which, wrong }),
        1 => (0..5usize, 0..60u64).prop_map(|(which, number)| Try::Redeliver { which, number }),
        1 => (0..9usize, 0..60u64).prop_map(|(which, again_at)| Try::Replay { which, again_at }),
        1 => (1..3u8, any::<bool>()).prop_map(|(owner, is_second)| Try::Enable { owner, is_second }),
        1 => (1..9u8, 1..9u8, flag())
            .prop_map(|(number, nonce, facilitated)| Try::Claim { number, nonce, facilitated }),
        1 => (1..9u8, 0..2usize, 0..4usize).prop_map(|(number, from, to)| Try::ClaimOutcome { number, from, to }),
        1 => (1..4u8, 1..3u8, 0..4u64).prop_map(|(key, print, day)| Try::Remember { key, print, day }),
        1 => (0..4u64).prop_map(|day| Try::Forget { day }),
        1 => (wrong(), 1..9u32).prop_map(|(wrong, to)| Try::Cursor { wrong, to }),
        1 => (flag(), 1..4u32).prop_map(|(to, block)| Try::Unmatched { to, block }),
        1 => (flag(), 1..4u32, flag(), 0..3u64)
            .prop_map(|(to, block, assigned, minute)| Try::Handle { to, block, assigned, minute }),
        1 => (1..9u64).prop_map(|base| Try::Rate { base }),
        1 => (flag(), 0..9u8).prop_map(|(name, value)| Try::Note { name, value }),
        4 => (1..6u64, 1..6u8, 0..3usize).prop_map(|(seq, tx, finality)| Try::Transfer { seq, tx, finality }),
        3 => (0..9usize, 1..8u64, 0..3u64, prop_oneof![3 => Just(0i64), 1 => -9..0i64], wrong())
            .prop_map(|(which, session, cents, carried, wrong)| Try::Invoice { which, session, cents, carried, wrong }),
        1 => wrong().prop_map(|wrong| Try::Tiers { wrong }),
        1 => (0..9u8, wrong()).prop_map(|(seed, wrong)| Try::ReceiptKeys { seed, wrong }),
    ]
}

impl Try {
    fn write(&self, model: &Model) -> Option<Write> {
        Some(match *self {
            Self::Payment { number, state, claim, unusual, month, fee, wrong } => {
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
                next.is_invoice = model.invoice_sessions.contains_key(&next.id);
                next.updated_at = at(month * 31 * 86_400);
                if fee > 0 {
                    next.quote.fee_mode = FeeMode::Split { account: account("fee.taker") };
                }
                if fee > 1 {
                    next.transfers = vec![fee_credit()];
                }
                next.claim = claim.then(|| {
                    Arc::new(Claim {
                        tx_id: tx_id(1),
                        nonce: String::new(),
                        identifier: None,
                        proof: proof(1),
                        payer: account("alice"),
                        transfers: Vec::new(),
                        signed_json: String::new(),
                        expiration: START,
                        claimed_at: START,
                        finality: ClaimFinality::InBlock,
                    })
                });
                if wrong == 3 {
                    // The slug of another payment.
                    next.slug = payment(1, number % 3 + 1).slug;
                }
                Write::Payment { payment: Arc::new(next), expected }
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
                // A repeated event is rejected. Some are sent to a second endpoint, too.
                let mut event = event(owner, number);
                if number % 3 == 0 {
                    event.deliveries.push((second_endpoint(owner), DeliveryId::new(at(number), [3; 10])));
                }
                Write::Event(event)
            }
            Self::Attempt { which, again_at, wrong } => {
                let delivery = delivery(model, which, wrong)?;
                let attempt = attempt(&delivery, again_at.map(at));
                Write::Attempt { delivery, attempt }
            }
            Self::Undeliverable { which, wrong } => Write::Undeliverable(delivery(model, which, wrong)?),
            Self::Hold { which, wrong } => {
                let delivery = delivery(model, which, wrong)?;
                let merchant_version = model.merchants.get(&delivery.merchant).map(|merchant| merchant.version);
                let reason = match which % 3 {
                    0 => HoldReason::Disabled,
                    1 => HoldReason::NoEndpoint { merchant_version },
                    _ => HoldReason::NoEndpoint { merchant_version: merchant_version.map(|version| version + 1) },
                };
                Write::Hold { delivery, reason }
            }
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
            Self::Enable { owner, is_second } => {
                let endpoint = if is_second { second_endpoint(owner) } else { endpoint_id(owner) };
                Write::EnableEndpoint { merchant: merchant_id(owner), endpoint }
            }
            Self::Claim { number, nonce, facilitated: for_others } => {
                let nonce = format!("nonce {nonce}");
                Write::Claim(if for_others { facilitated(number, &nonce) } else { claimed(number, &nonce) })
            }
            Self::ClaimOutcome { number, from, to } => {
                let [expected, outcome] = [from, to].map(|at| outcomes()[at].clone());
                Write::ClaimOutcome { tx_id: tx_id(number), expected, outcome }
            }
            Self::Remember { key, print, day } => Write::Remember {
                remembered: IdempotencyRecord {
                    merchant: merchant_id(1),
                    key: [key; 32],
                    fingerprint: [print; 32],
                    resource: Resource::Payment(payment_id(1)),
                    at: at(day * 86_400),
                },
                most: 1_000,
            },
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
                Write::Handle { account: *kept.account(), place: kept.transfer.position, handling }
            }
            Self::Rate { base } => {
                let price = HivePrice { base_hbd_units: base, quote_hive_units: 9 };
                let stored = model.rate.map(|rate| rate.at);
                let expected = if base < 7 { stored } else { Some(at(base)) };
                Write::Rate { rate: Rate { price, hbd: None, at: at(base) }, expected }
            }
            Self::Invoice { which, session, cents, carried, wrong } => {
                let mut period = model.periods.values().nth(which % model.periods.len().max(1))?.clone();
                let now = at(100 * 86_400);
                let session = (cents > 0).then(|| (payment_id(session), "fees".to_owned()));
                let paid_at = session.is_none().then_some(now);
                let (created_at, due_at) = (now, now);
                let invoice = Invoice { cents, session, created_at, due_at, paid_at, tiers_version: 0 };
                if wrong > 0 {
                    period.usage.payments += 1;
                }
                Write::Invoice(Box::new(Invoicing { period, invoice, carried_millicents: carried, at: now }))
            }
            Self::Tiers { wrong } => {
                let expected = model.tiers.as_ref().map_or(0, |tiers| tiers.version) + u64::from(wrong);
                let tiers = [RawTier { min_cents: 0, max_cents: None, percent_ten_thousandths: 15_000 }];
                let tiers = Tiers::check(&tiers).unwrap();
                Write::FeeTiers { schedule: Schedule { version: expected + 1, tiers, updated_at: START }, expected }
            }
            Self::ReceiptKeys { seed, wrong } => {
                let key = ReceiptKey::new([seed; 32]);
                let first = || ReceiptKeys::create(key.clone(), START);
                let mut keys = model.receipt_keys.as_ref().map_or_else(first, |keys| keys.rotate(key.clone(), START));
                keys.version += u64::from(wrong);
                let expected = keys.version - 1;
                Write::ReceiptKeys { keys: Box::new(keys), expected }
            }
            Self::Transfer { .. } => return None,
            Self::Note { name, value } => {
                let name = if name { "a" } else { "b" };
                let expected = if value < 7 { model.notes.get(name).cloned() } else { Some(vec![value]) };
                Write::Note { name, value: vec![value], expected }
            }
        })
    }
}

fn outcomes() -> [ClaimOutcome; 4] {
    let refused = ClaimOutcome::Refused { reason: Reason::InsufficientFunds, message: "too little".to_owned() };
    let settled = |is_reported| ClaimOutcome::Settled { is_reported, block_num: None };
    [ClaimOutcome::Open, settled(false), settled(true), refused]
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

pub(crate) fn batch_of(tries: &[Try], model: &Model) -> Batch {
    let mut batch = Batch::default();
    // Later writes of a batch see the effects of the earlier ones.
    let mut expected = model.clone();
    for attempt in tries {
        let Some(write) = attempt.write(&expected) else { continue };
        // After a rejection the rest of the batch has no effect, but must not panic.
        let _ = expected.apply(&write);
        let payment = match &write {
            Write::Payment { payment, .. } => Some((payment.id, payment.merchant)),
            _ => None,
        };
        batch.writes.push(write);
        // A transfer is written with its payment.
        let Some((payment, merchant)) = payment else { continue };
        for attempt in tries {
            let Try::Transfer { seq, tx, finality } = *attempt else { continue };
            let finality = [Finality::Orphaned, Finality::Reversible, Finality::Irreversible][finality];
            let memo = format!("{seq} {finality:?}");
            let credit = Box::new(Credit { seq, tx_id: tx_id(tx), finality, memo, ..fee_credit() });
            let write = Write::Transfer { payment, merchant, credit };
            let _ = expected.apply(&write);
            batch.writes.push(write);
        }
    }
    batch
}
