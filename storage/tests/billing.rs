//! Tests of billing periods: counted when a payment completes, invoiced once, paid when the invoice's session
//! completes.

use std::time::Duration;

use engine::{
    billing::{BillingTotals, INVOICE_LIFETIME, Invoice, Month, Period, RawTier, Schedule, Status, Tiers, Usage},
    ids::PaymentId,
    payment::{FeeMode, Payment, State},
    time::Timestamp,
};
use storage::{Batch, CommitError, EmbeddedStore, Invoicing, PeriodQuery, Write, prelude::*};

use crate::samples::*;

const DAY: u64 = 86_400;

fn november() -> Month {
    Month::of(START)
}

fn completed(payment: &Payment, cents: u64, when: Timestamp) -> Payment {
    let mut next = payment.clone();
    next.version += 1;
    (next.state, next.completed_at, next.updated_at) = (State::Completed, Some(when), when);
    next.quote.usd_cents = cents;
    next
}

async fn sell(store: &EmbeddedStore, number: u64, cents: u64, when: Timestamp) {
    store.commit(create(&payment(1, number))).await.unwrap();
    store.commit(replace(&completed(&payment(1, number), cents, when), 1)).await.unwrap();
}

fn bill(period: &Period, session: Option<u64>) -> Write {
    let now = at(40 * DAY);
    let invoice = Invoice {
        cents: 15,
        session: session.map(|number| (payment_id(number), "fees".to_owned())),
        created_at: now,
        due_at: now + Duration::from_secs(14 * DAY),
        paid_at: session.is_none().then_some(now),
        tiers_version: 0,
    };
    Write::Invoice(Box::new(Invoicing { period: period.clone(), invoice, carried_millicents: 0, at: now }))
}

fn is_conflict(result: &Result<(), CommitError>) -> bool {
    matches!(result, Err(CommitError::Conflict { .. }))
}

async fn only(store: &EmbeddedStore, month: Month) -> Period {
    store.period(merchant_id(1), month).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_payment_counts_once_in_the_month_it_completed_in() {
    let store = in_memory();
    sell(&store, 1, 700, at(10)).await;
    sell(&store, 2, 300, november().end().minus(Duration::from_millis(1))).await;
    sell(&store, 3, 50, november().end()).await;
    let noted = Payment { version: 3, is_reversed: true, ..completed(&payment(1, 1), 700, at(10)) };
    store.commit(replace(&noted, 2)).await.unwrap();
    let (november, december) = (only(&store, november()).await, only(&store, november().next()).await);
    assert_eq!((november.usage.volume_cents, november.usage.payments), (1_000, 2));
    assert_eq!((december.usage.volume_cents, december.usage.payments), (50, 1));
    assert_eq!(store.periods_of(merchant_id(1)).await.unwrap(), [december, november]);
    assert_eq!(store.periods_of(merchant_id(2)).await.unwrap(), []);
    // A stale writer counts nothing.
    store.commit(create(&payment(1, 4))).await.unwrap();
    let paid = completed(&payment(1, 4), 9, at(10));
    store.commit(replace(&paid, 1)).await.unwrap();
    assert!(is_conflict(&store.commit(replace(&paid, 1)).await));
    assert_eq!(only(&store, self::november()).await.usage.payments, 3);
}

#[tokio::test]
async fn an_invoice_closes_its_month_and_there_is_only_one() {
    let store = in_memory();
    sell(&store, 1, 1_000, at(10)).await;
    let read = only(&store, november()).await;
    sell(&store, 2, 1, at(11)).await;
    assert!(is_conflict(&store.commit(Batch::of(bill(&read, Some(9)))).await), "usage changed since the read");
    let read = only(&store, november()).await;
    let session = Payment { is_invoice: true, ..payment(2, 9) };
    store.commit(create(&session).and(bill(&read, Some(9)))).await.unwrap();
    assert!(is_conflict(&store.commit(Batch::of(bill(&read, Some(8)))).await), "it is invoiced already");
    // A late completion counts in the first open month.
    sell(&store, 3, 30, at(12)).await;
    let (billed, next) = (only(&store, november()).await, only(&store, november().next()).await);
    assert_eq!((billed.usage, next.usage.volume_cents), (read.usage, 30));
    assert_eq!(billed.status(at(54 * DAY)), Status::Invoiced);
    assert_eq!(billed.status(at(54 * DAY + 1)), Status::Overdue);
    let unsettled = async |limit| store.unsettled_periods(november().next().next(), None, limit).await.unwrap();
    assert_eq!(unsettled(9).await, [billed.clone(), next.clone()]);
    assert_eq!(unsettled(1).await, std::slice::from_ref(&billed));
    let after = Some((billed.month, billed.merchant));
    let rest = store.unsettled_periods(november().next().next(), after, 9).await.unwrap();
    assert_eq!(rest, std::slice::from_ref(&next));
    assert_eq!(store.unsettled_periods(november().next(), None, 9).await.unwrap(), [billed]);
    // The invoice's session completes: the same commit marks the invoice paid, and the session counts as no sale.
    store.commit(replace(&Payment { is_invoice: true, ..completed(&session, 15, at(41 * DAY)) }, 1)).await.unwrap();
    let paid = only(&store, november()).await;
    assert_eq!(paid.status(at(99 * DAY)), Status::Paid);
    assert_eq!(paid.invoice.unwrap().paid_at, Some(at(41 * DAY)));
    assert_eq!(unsettled(9).await, [next]);
    assert_eq!(store.periods_of(merchant_id(2)).await.unwrap(), []);
}

#[tokio::test]
async fn one_batch_invoices_a_merchant_once() {
    let store = in_memory();
    sell(&store, 1, 1_000, at(10)).await;
    sell(&store, 2, 500, november().end()).await;
    let (first, second) = (only(&store, november()).await, only(&store, november().next()).await);
    let both = Batch::of(bill(&first, Some(8))).and(bill(&second, Some(9)));
    assert!(is_conflict(&store.commit(both).await));
    assert_eq!(only(&store, november()).await, first, "the rejected batch writes nothing");
    store.commit(Batch::of(bill(&first, Some(8)))).await.unwrap();
    store.commit(Batch::of(bill(&second, Some(9)))).await.unwrap();
}

#[tokio::test]
async fn a_late_fee_is_subtracted_in_an_open_month() {
    let store = in_memory();
    let split = |number| {
        let payment = payment(1, number);
        let fee_mode = FeeMode::Split { account: account("fee.taker") };
        Payment { quote: engine::payment::Quote { fee_mode, ..payment.quote.clone() }, ..payment }
    };
    for number in [1, 2] {
        store.commit(create(&split(number))).await.unwrap();
        store.commit(replace(&completed(&split(number), 1_050, at(10)), 1)).await.unwrap();
    }
    // 0.157 HBD of 10.500 HBD, at 1050 cents.
    let missing = async |month| only(&store, month).await.usage.missing_fee_millicents;
    assert_eq!(missing(november()).await, 31_400);
    let with_fee =
        |number| Payment { transfers: vec![fee_credit()], version: 3, ..completed(&split(number), 1_050, at(10)) };
    store.commit(replace(&with_fee(1), 2)).await.unwrap();
    assert_eq!(missing(november()).await, 15_700);
    store.commit(Batch::of(bill(&only(&store, november()).await, None))).await.unwrap();
    store.commit(replace(&with_fee(2), 2)).await.unwrap();
    assert_eq!((missing(november()).await, missing(november().next()).await), (15_700, -15_700));
    let usage = only(&store, november().next()).await.usage;
    assert_eq!(usage, Usage { missing_fee_millicents: -15_700, ..Usage::default() });
}

#[tokio::test]
async fn periods_are_listed_by_merchant_and_status_with_totals() {
    let store = in_memory();
    sell(&store, 1, 1_000, at(10)).await;
    sell(&store, 2, 500, november().end()).await;
    store.commit(create(&payment(2, 3))).await.unwrap();
    store.commit(replace(&completed(&payment(2, 3), 70, at(10)), 1)).await.unwrap();
    store.commit(Batch::of(bill(&only(&store, november()).await, Some(9)))).await.unwrap();
    let query = PeriodQuery { page: 1, limit: 2, merchant: None, status: None, now: at(60 * DAY) };
    let list = async |query| {
        let page = store.periods(query).await.unwrap();
        let shown = page.items.iter().map(|period| (period.month == november(), period.merchant == merchant_id(1)));
        (shown.collect::<Vec<_>>(), page.total)
    };
    assert_eq!(list(query).await, (vec![(false, true), (true, false)], 3), "the newest month first");
    assert_eq!(list(PeriodQuery { page: 2, ..query }).await, (vec![(true, true)], 3));
    assert_eq!(list(PeriodQuery { merchant: Some(merchant_id(2)), ..query }).await, (vec![(true, false)], 1));
    assert_eq!(list(PeriodQuery { status: Some(Status::Overdue), ..query }).await, (vec![(true, true)], 1));
    assert_eq!(list(PeriodQuery { status: Some(Status::Paid), ..query }).await, (vec![], 0));
    let accounts = store.billing_accounts(november().end()).await.unwrap();
    assert_eq!(accounts.len(), 2);
    let first = BillingTotals {
        current: only(&store, november().next()).await.usage,
        outstanding: 1,
        outstanding_cents: 15,
        oldest_unpaid: Some(november()),
        ..BillingTotals::of(merchant_id(1))
    };
    assert_eq!(accounts[0], first);
}

#[tokio::test]
async fn fee_tiers_are_replaced_only_with_the_version_that_was_read() {
    let store = in_memory();
    let tiers = Tiers::check(&[RawTier { min_cents: 0, max_cents: None, percent_ten_thousandths: 5_000 }]).unwrap();
    let write = |version| {
        let schedule = Schedule { version, tiers: tiers.clone(), updated_at: at(version) };
        Batch::of(Write::FeeTiers { schedule, expected: version - 1 })
    };
    assert_eq!(store.fee_schedule().await.unwrap(), None);
    store.commit(write(1)).await.unwrap();
    assert!(is_conflict(&store.commit(write(1)).await));
    store.commit(write(2)).await.unwrap();
    assert_eq!(store.fee_schedule().await.unwrap().map(|schedule| schedule.version), Some(2));
}

#[tokio::test]
async fn usage_and_payment_survive_a_power_loss_together_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    sell(&store, 1, 1_000, at(10)).await;
    store.close().await;
    drop(store);
    // The samples have no merchants; everything that is counted must be consistent.
    let report = storage::verify_file(&directory.path().join(storage::FILE_NAME)).unwrap();
    let wrong = |finding: &&String| finding.starts_with("billing") || finding.starts_with("unsettled");
    assert_eq!(report.findings.iter().filter(wrong).collect::<Vec<_>>(), Vec::<&String>::new());
    let store = open(directory.path());
    assert_eq!(only(&store, november()).await.usage.volume_cents, 1_000);
    assert_eq!(
        store.payment(PaymentId::from_bits(payment_id(1).bits())).await.unwrap().unwrap().state,
        State::Completed
    );
    assert!(INVOICE_LIFETIME > Duration::from_secs(365 * DAY));
}
