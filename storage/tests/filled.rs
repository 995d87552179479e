//! A store with rows in every table.

use std::{path::Path, time::Duration};

use engine::{
    audit::{Actor, Entry},
    billing::{Invoice, Month, Schedule, Tiers},
    compliance::{ComplianceChange, LimitBreach, Window},
    idempotency::{IdempotencyRecord, Resource},
    money::{FeePercent, HivePrice},
    ownership::{Proof, VerificationMethod},
    payment::{Payment, Rate, State},
    reconciliation::Day,
    x402::{ReceiptKey, ReceiptKeys},
};
use storage::{Batch, Duty, EngineId, Handling, Invoicing, UnmatchedReason, Write, prelude::*};

use crate::samples::*;

pub(crate) fn completed(payment: &Payment) -> Payment {
    let mut next = payment.clone();
    next.version += 1;
    (next.state, next.completed_at, next.updated_at) = (State::Completed, Some(at(30)), at(30));
    next.paid_by = Some(tx_id(30));
    next.quote.usd_cents = 700;
    next
}

pub(crate) fn key(number: u8) -> Write {
    Write::Remember {
        remembered: IdempotencyRecord {
            merchant: merchant_id(1),
            key: [number; 32],
            fingerprint: [0; 32],
            resource: Resource::Payment(payment_id(1)),
            at: START,
        },
        most: 1_000,
    }
}

pub(crate) fn entry() -> Write {
    Write::Audit(Box::new(Entry {
        seq: 0,
        at: START,
        actor: Actor::default(),
        action: "merchant_updated".to_owned(),
        merchant: merchant_id(1),
        subject: None,
        changes: Vec::new(),
    }))
}

/// Creates a store with rows in every table.
pub(crate) async fn fill(data: &Path) {
    let store = open(data);
    let commit = async |batch: Batch| store.commit(batch).await.unwrap();
    for number in [1, 2] {
        commit(register(&merchant(number))).await;
    }
    // The merchant leaves an account, proves the next one, and has a pending change to a third.
    let settled = merchant(4);
    commit(register(&settled)).await;
    let moved = settled.with_account(account("shop.n4yy"), Duration::ZERO, at(5)).unwrap();
    let given = Proof::new(VerificationMethod::Operator, None, at(6));
    let proven = moved.verified_by_operator(moved.hive_account, given, at(6)).unwrap();
    let moving = proven.with_account(account("shop.n4zz"), Duration::ZERO, at(7)).unwrap();
    commit(Batch::of(Write::Merchant { merchant: Box::new(moving), expected: Some(1) })).await;
    for number in 1..=6 {
        commit(create(&payment(1, number))).await;
    }
    for number in [1, 2] {
        let batch = replace(&completed(&payment(1, number)), 1).and(Write::Event(event(1, number)));
        commit(batch.and(Write::Event(event(2, number + 10)))).await;
    }
    let paid = Payment { version: 2, is_reversed: true, transfers: vec![fee_credit()], ..payment(1, 3) };
    commit(replace_with_rows(&paid, 1)).await;
    let in_flight = engine::payment::Claim {
        tx_id: tx_id(4),
        nonce: "n4".to_owned(),
        identifier: None,
        proof: proof(1),
        payer: account("alice"),
        transfers: Vec::new(),
        signed_json: "{}".to_owned(),
        expiration: at(60),
        claimed_at: at(1),
        finality: engine::payment::ClaimFinality::InBlock,
    };
    let claiming = Payment { claim: Some(in_flight.into()), version: 2, ..payment(1, 4) };
    commit(replace(&claiming, 1).and(Write::Claim(claimed(4, "n4")))).await;
    commit(Batch::of(Write::Claim(facilitated(9, "n9")))).await;
    for delivery in store.due_deliveries(at(1_000), 1).await.unwrap() {
        let attempt = attempt(&delivery, Some(at(2_000)));
        commit(Batch::of(Write::Attempt { delivery, attempt })).await;
    }
    let mut record = unmatched("shop.example", 9, 0);
    record.transfer.memo = engine::ledger::memo_of(payment_id(77));
    record.reason = UnmatchedReason::UnknownSession;
    commit(Batch::of(Write::Unmatched(record)).and(Write::Unmatched(unmatched("shop.example", 10, 0)))).await;
    let handling = Handling::Assigned { payment: payment_id(1), by: "key".to_owned(), at: START };
    let place = unmatched("shop.example", 10, 0).transfer.position;
    commit(Batch::of(Write::Handle { account: account("shop.example"), place, handling })).await;
    commit(Batch::of(Write::Cursor { cursor: cursor(5), expected: None }).and(entry()).and(entry())).await;
    let rate = Rate { price: HivePrice::new(258, 1_000).unwrap(), hbd: None, at: at(1) };
    let day = Day { from: START, to: at(86_400), checked_at: at(90_000), ..Day::default() };
    let note = Write::Note { name: "a", value: vec![1, 2], expected: None };
    let reconciliation = Write::Reconciliation { day: Box::new(day), expected: None };
    commit(Batch::of(Write::Rate { rate, expected: None }).and(reconciliation).and(note)).await;
    let (engine, now) = (EngineId::from_bits(7), at(90_000));
    let lease = Write::Lease { engine, is_new: true, now, duration: Duration::from_secs(30) };
    commit(Batch::of(lease).and(Write::Duty { duty: Duty::Rates, engine, is_taken: true, expected: 0 })).await;
    commit(Batch::of(key(1)).and(key(2))).await;
    let crossing = LimitBreach { window: Window::Single, usd_cents: 2, limit_cents: 1, at: at(60) };
    commit(Batch::of(Write::Compliance { merchant: merchant_id(1), change: ComplianceChange::Hold(crossing) })).await;
    let period = store.period(merchant_id(1), Month::of(START)).await.unwrap().unwrap();
    let at = at(40 * 86_400);
    let invoice = Invoice {
        cents: 15,
        session: Some((payment_id(6), "fees".to_owned())),
        created_at: at,
        due_at: at + Duration::from_secs(86_400),
        paid_at: None,
        tiers_version: 0,
    };
    commit(Batch::of(Write::Invoice(Box::new(Invoicing { period, invoice, carried_millicents: 0, at })))).await;
    let tiers = Tiers::flat(FeePercent::ZERO);
    let schedule = Schedule { version: 1, tiers, updated_at: at };
    let keys = ReceiptKeys::create(ReceiptKey::new([1; 32]), START).rotate(ReceiptKey::new([2; 32]), at);
    let keys = Write::ReceiptKeys { keys: Box::new(keys), expected: 0 };
    commit(Batch::of(Write::FeeTiers { schedule, expected: 0 }).and(keys)).await;
    store.index_search(at, 100).await.unwrap();
    store.close().await;
}
