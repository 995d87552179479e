//! Tests of compliance statuses: which payments count, which are rejected, and how a status changes.

use std::sync::Arc;

use engine::{
    compliance::{
        Clearance, ComplianceChange, ComplianceStatus, LimitBreach, Limits, PaymentCheck, Refusal, Thresholds, Window,
    },
    payment::{Payment, State},
};
use storage::{AuditQuery, Batch, CommitError, EmbeddedStore, MerchantQuery, Options, Write, prelude::*};
use tokio::task::JoinSet;

use crate::samples::*;

fn completed(payment: &Payment, cents: u64) -> Payment {
    let mut next = payment.clone();
    next.version += 1;
    (next.state, next.completed_at) = (State::Completed, Some(at(30)));
    next.quote.usd_cents = cents;
    next
}

fn check(usd_cents: u64) -> Write {
    let hard = Thresholds { single_cents: 1_000, daily_cents: 2_000, monthly_cents: 0 };
    let soft = Thresholds { single_cents: 900, ..Thresholds::default() };
    let limits = Limits { hard, soft };
    Write::Comply(PaymentCheck {
        payment: payment_id(7),
        merchant: merchant_id(1),
        account: account("shop.example"),
        usd_cents,
        at: at(60),
        limits,
    })
}

#[tokio::test]
async fn a_completed_payment_counts_once_and_a_creation_above_the_limit_is_rejected() {
    let store = in_memory();
    for number in [1, 2, 3] {
        store.commit(create(&payment(1, number))).await.unwrap();
    }
    let paid = completed(&payment(1, 1), 900);
    store.commit(replace(&paid, 1)).await.unwrap();
    let noted = Payment { version: 3, is_reversed: true, ..paid };
    store.commit(replace(&noted, 2)).await.unwrap();
    let invoice = Payment { is_invoice: true, ..completed(&payment(1, 2), 900) };
    store.commit(replace(&invoice, 1)).await.unwrap();
    assert_eq!(store.compliance_status(merchant_id(1)).await.unwrap().completed_cents(at(60), 24), 900);
    let refusal = async |cents, number| {
        let batch = create(&payment(1, number)).and(check(cents));
        match store.commit(batch).await {
            Err(CommitError::OnHold(refusal)) => Some(refusal),
            other => other.map(|()| None).unwrap(),
        }
    };
    assert_eq!(refusal(800, 10).await, None);
    let over = |window, usd_cents, limit_cents| LimitBreach { window, usd_cents, limit_cents, at: at(60) };
    assert_eq!(refusal(1_001, 11).await, Some(Refusal::LimitExceeded(over(Window::Single, 1_001, 1_000))));
    store.commit(replace(&completed(&payment(1, 3), 300), 1)).await.unwrap();
    let daily = over(Window::Daily, 2_001, 2_000);
    assert_eq!(refusal(801, 11).await, Some(Refusal::LimitExceeded(daily)));
    assert_eq!(store.payment(payment_id(11)).await.unwrap(), None, "the rejected batch writes nothing");
    let change = |change| Batch::of(Write::Standing { merchant: merchant_id(1), change });
    store.commit(change(ComplianceChange::Hold(daily))).await.unwrap();
    let again = store.commit(change(ComplianceChange::Hold(daily))).await;
    assert!(matches!(again, Err(CommitError::Conflict { .. })), "{again:?}");
    assert_eq!(refusal(1, 11).await, Some(Refusal::OnHold));
    store.commit(Batch::of(Write::Merchant { merchant: Box::new(merchant(1)), expected: None })).await.unwrap();
    store.commit(Batch::of(Write::Merchant { merchant: Box::new(merchant(2)), expected: None })).await.unwrap();
    let listed = async |on_hold| {
        let page = store.merchants(MerchantQuery { on_hold, ..MerchantQuery::all(10) }).await.unwrap();
        assert_eq!(page.items.len() as u64, page.total);
        page.items.into_iter().map(|listed| (listed.merchant.id, listed.is_on_hold)).collect::<Vec<_>>()
    };
    let (held, other) = ((merchant_id(1), true), (merchant_id(2), false));
    assert_eq!(listed(None).await, [other, held]);
    assert_eq!((listed(Some(true)).await, listed(Some(false)).await), (vec![held], vec![other]));
    let clearance = Clearance { by: "key_1".to_owned(), reason: "verified".to_owned(), at: at(90) };
    store.commit(change(ComplianceChange::Clear(clearance))).await.unwrap();
    assert_eq!((listed(Some(true)).await, listed(Some(false)).await.len()), (vec![], 2));
    assert_eq!(refusal(900, 11).await, None);
    let entries = store.audit(AuditQuery { merchant: None, before: None, limit: 10 }).await.unwrap();
    assert_eq!((entries.len(), &*entries[0].action, &*entries[0].changes[0].field), (1, "compliance_noted", "single"));
    let standing = store.compliance_status(merchant_id(1)).await.unwrap();
    assert_eq!((standing.hold, standing.notices.len(), standing.clearances.len()), (None, 1, 1));
    let own = Some(Thresholds { single_cents: 5, ..Thresholds::default() });
    store.commit(change(ComplianceChange::Limit { from: None, to: own })).await.unwrap();
    assert_eq!(refusal(6, 12).await, Some(Refusal::LimitExceeded(over(Window::Single, 6, 5))));
    assert_eq!(store.compliance_status(merchant_id(2)).await.unwrap(), ComplianceStatus::default());
}

#[tokio::test]
async fn a_hundred_concurrent_completions_all_count_and_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(folder.path(), Options::default()).unwrap());
    let all = 1..=100;
    for number in all.clone() {
        store.commit(create(&payment(1, number))).await.unwrap();
    }
    let mut completions = JoinSet::new();
    for number in all {
        let store = Arc::clone(&store);
        completions.spawn(async move { store.commit(replace(&completed(&payment(1, number), 7), 1)).await });
    }
    while let Some(done) = completions.join_next().await {
        done.unwrap().unwrap();
    }
    assert_eq!(store.compliance_status(merchant_id(1)).await.unwrap().completed_cents(at(60), 24), 700);
    drop(store);
    let store = EmbeddedStore::open(folder.path(), Options::default()).unwrap();
    assert_eq!(store.compliance_status(merchant_id(1)).await.unwrap().completed_cents(at(60), 24), 700);
}
