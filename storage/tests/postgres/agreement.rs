//! The PostgreSQL store and the embedded store give the same outcomes and the same results of every read, also for writes that the
//! model does not know.

use std::time::Duration;

use engine::{
    audit::{Actor, Entry, FieldChange},
    billing::Month,
    compliance::{ComplianceChange, LimitBreach, Limits, PaymentCheck, Thresholds, Window},
    idempotency::{IdempotencyRecord, Resource},
    ids::PaymentId,
    ledger::ChainPosition,
    money::{Currency, Money},
    payment::{Payment, State},
    quota::Quota,
    reconciliation::Day,
    time::Timestamp,
};
use proptest::{prelude::*, test_runner::TestRunner};
use storage::{
    AuditQuery, Batch, EmbeddedStore, PageAt, PaymentQuery, PeriodQuery, PostgresStore, Vicinity, VolumeQuery, Write,
    prelude::*,
};

use crate::{
    behaviour::runner,
    model::{Model, Try, batch_of, outcome, tries},
    runtime,
    samples::*,
    store,
};

crate::tests!(both_stores_agree, searches_agree_before_and_after_indexing, a_page_of_each_list_continues);

/// A batch that is not part of the model.
#[derive(Debug, Clone)]
pub(crate) enum Extra {
    Remember { owner: u8, key: u8, minute: u64 },
    Forget { minute: u64 },
    Audit { owner: u8, actor: u8 },
    Comply { owner: u8, number: u64, cents: u64 },
    Admit { owner: u8, number: u64 },
    Hold { owner: u8 },
    Prune { second: u64 },
    Unwatch { number: u8 },
    Books { day: u64, at: u64, expected: Option<u64> },
    ForgetClaims { number: u8 },
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Tries(Vec<Try>),
    Extra(Extra),
}

fn extras() -> impl Strategy<Value = Extra> {
    prop_oneof![
        (1..3u8, 0..6u8, 0..5u64).prop_map(|(owner, key, minute)| Extra::Remember { owner, key, minute }),
        (0..5u64).prop_map(|minute| Extra::Forget { minute }),
        (1..3u8, 1..4u8).prop_map(|(owner, actor)| Extra::Audit { owner, actor }),
        (1..3u8, 10..20u64, 0..1_200u64).prop_map(|(owner, number, cents)| Extra::Comply { owner, number, cents }),
        (1..3u8, 20..30u64).prop_map(|(owner, number)| Extra::Admit { owner, number }),
        (1..3u8).prop_map(|owner| Extra::Hold { owner }),
        (0..40u64).prop_map(|second| Extra::Prune { second }),
        (1..4u8).prop_map(|number| Extra::Unwatch { number }),
        (0..2u64, 1..4u64, prop::option::of(1..4u64)).prop_map(|(day, at, expected)| Extra::Books {
            day,
            at,
            expected
        }),
        (1..9u8).prop_map(|number| Extra::ForgetClaims { number }),
    ]
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => prop::collection::vec(tries(), 1..5).prop_map(Step::Tries),
        2 => extras().prop_map(Step::Extra),
    ];
    prop::collection::vec(step, 1..50)
}

fn limits() -> Limits {
    let hard = Thresholds { single_cents: 1_000, daily_cents: 2_000, monthly_cents: 0 };
    Limits { hard, soft: Thresholds { single_cents: 900, ..Thresholds::default() } }
}

impl Extra {
    fn batch(&self) -> Batch {
        match *self {
            Self::Remember { owner, key, minute } => {
                let (merchant, resource) = (merchant_id(owner), Resource::Payment(payment_id(minute)));
                let (key, at) = ([key; 32], at(minute * 60));
                let remembered = IdempotencyRecord { merchant, key, fingerprint: [0; 32], resource, at };
                Batch::of(Write::Remember { remembered, most: 4 })
            }
            Self::Forget { minute } => Batch::of(Write::Forget { made_before: at(minute * 60) }),
            Self::Audit { owner, actor } => Batch::of(Write::Audit(Box::new(Entry {
                seq: 0,
                at: at(owner.into()),
                actor: Actor { merchant: Some(merchant_id(actor)), key: None, ip: Some("::1".to_owned()) },
                action: "merchant_updated".to_owned(),
                merchant: merchant_id(owner),
                subject: None,
                changes: vec![FieldChange { field: "name".to_owned(), before: Some("a".to_owned()), after: None }],
            }))),
            Self::Comply { owner, number, cents } => {
                create(&payment(owner, number)).and(Write::CheckCompliance(PaymentCheck {
                    payment: payment_id(number),
                    merchant: merchant_id(owner),
                    account: account("shop.example"),
                    usd_cents: cents,
                    at: at(60),
                    limits: limits(),
                }))
            }
            Self::Admit { owner, number } => {
                let quota = Quota { open_payments: 3, stored_bytes: 2_000 };
                let (payment, merchant) = (payment_id(number), merchant_id(owner));
                create(&crate::samples::payment(owner, number)).and(Write::Admit { payment, merchant, quota })
            }
            Self::Hold { owner } => {
                let breach = LimitBreach { window: Window::Single, usd_cents: 2, limit_cents: 1, at: at(60) };
                Batch::of(Write::Compliance { merchant: merchant_id(owner), change: ComplianceChange::Hold(breach) })
            }
            Self::Prune { second } => Batch::of(Write::Prune { happened_before: at(second) }),
            Self::Unwatch { number } => Batch::of(Write::Unwatch(merchant(number).hive_account)),
            Self::Books { day, at: checked, expected } => {
                let from = at(day * 86_400);
                let (to, checked_at) = (from + Duration::from_secs(86_400), at(checked));
                let day = Box::new(Day { from, to, checked_at, ..Day::default() });
                Batch::of(Write::Reconciliation { day, expected: expected.map(at) })
            }
            Self::ForgetClaims { number } => Batch::of(Write::ForgetClaims(vec![tx_id(number)])),
        }
    }
}

/// Compares the result of a read of both stores.
macro_rules! same {
    ($embedded:ident, $postgres:ident: $($read:ident($($argument:expr),* $(,)?);)+) => {
        $(assert_eq!(
            $postgres.$read($($argument),*).await.unwrap(),
            $embedded.$read($($argument),*).await.unwrap(),
            "{}", stringify!($read($($argument),*)),
        );)+
    };
}

pub(crate) async fn agree(embedded: &EmbeddedStore, postgres: &PostgresStore) {
    let everything = (Timestamp::EPOCH, Timestamp::MAX);
    same! { embedded, postgres:
        open_facilitations();
        oldest_key();
        oldest_event();
        epoch();
        cursor();
        rate();
        fee_schedule();
        in_flight();
        billing_accounts(at(100));
        reconciled_days(None, 100);
        waiting_for_sessions(None, 100);
        forgettable_claims(Timestamp::MAX, None, 100);
        watched_accounts(None, 100);
        accounts_since(None, 100);
        pending_accounts(Timestamp::MAX, 100);
        retired_accounts(Timestamp::MAX, 100);
        payments_after(PaymentId::from_bits(0), 1_000);
        unsettled_periods(Month::of(Timestamp::MAX), None, 100);
        periods(PeriodQuery { page: 1, limit: 3, merchant: None, status: None, now: at(100) });
        merchants(storage::MerchantQuery { query: Some("shop".to_owned()), ..storage::MerchantQuery::all(2) });
    }
    for name in ["shop", "shop.two", "shop.example", "fee.taker"].map(account) {
        same! { embedded, postgres:
            proven_merchants(name, 10);
            ledger_entries(name, everything, None, 3);
            unmatched(name, 2);
        }
    }
    for owner in 1..4 {
        let merchant = merchant_id(owner);
        let today = START.millis() / 86_400_000;
        let money = Money::new(10_500, Currency::Hbd);
        let (from, to) = (Timestamp::EPOCH, Timestamp::MAX);
        same! { embedded, postgres:
            compliance_status(merchant);
            volume(VolumeQuery { merchant, last_day: today + 40, days: 100 });
            payments_near(Vicinity { merchant, money, from, to, limit: 3 });
            period(merchant, Month::of(START));
        }
        for key in 0..6 {
            same! { embedded, postgres: remembered(merchant, [key; 32]); }
        }
        let query = AuditQuery { before: None, limit: 100, merchant: Some(merchant) };
        assert_eq!(audit(postgres, query).await, audit(embedded, query).await);
        compare_lists(embedded, postgres, merchant).await;
    }
    for number in 0..40 {
        same! { embedded, postgres: event_place(event(1, number).id); attempts(event(1, number).id); }
    }
    let query = AuditQuery { before: None, limit: 100, merchant: None };
    assert_eq!(audit(postgres, query).await, audit(embedded, query).await);
    let position = ChainPosition { block_num: 5, tx_in_block: 0, op_in_tx: 0 };
    same! { embedded, postgres: unmatched_before(account("shop"), position, 10); unmatched_at(account("shop"), position); }
}

/// Returns entries of the audit log without their sequence numbers, which may have gaps.
async fn audit(store: &impl storage::AuditLog, query: AuditQuery) -> Vec<Entry> {
    let entries = store.audit(query).await.unwrap();
    entries.into_iter().map(|entry| Entry { seq: 0, ..entry }).collect()
}

async fn compare_lists(embedded: &EmbeddedStore, postgres: &PostgresStore, merchant: engine::ids::MerchantId) {
    let all = PaymentQuery::all(merchant, 2);
    let queries = [
        PaymentQuery { at: PageAt::Number(2), ..all.clone() },
        PaymentQuery { unusual: Some(false), states: vec![State::Pending, State::Completed], ..all.clone() },
        PaymentQuery { currency: Some(Currency::Hive), ..all.clone() },
        PaymentQuery { ids: vec![payment_id(1), payment_id(3), payment_id(99)], ..all.clone() },
        PaymentQuery { from: Some(START + Duration::from_millis(2)), to: Some(at(40)), ..all.clone() },
        PaymentQuery { min_units: Some(10_000), max_units: Some(11_000), ..all.clone() },
        PaymentQuery { query: Some("a-17".to_owned()), ..all.clone() },
        PaymentQuery { query: Some("blue mug".to_owned()), ..all.clone() },
        PaymentQuery { query: Some("alice nothing".to_owned()), ..all.clone() },
        PaymentQuery { query: Some(payment_id(2).to_string()), ..all.clone() },
    ];
    for query in queries {
        let (found, expected) =
            (postgres.payments(query.clone()).await.unwrap(), embedded.payments(query.clone()).await.unwrap());
        assert_eq!((&found.items, found.total), (&expected.items, expected.total), "{query:?}");
        assert_eq!(
            (found.total_is_lower_bound, found.next.is_some()),
            (expected.total_is_lower_bound, expected.next.is_some()),
            "{query:?}"
        );
    }
}

/// Commits random steps to an embedded store, and to a database if there is one, which has the same outcomes.
pub(crate) async fn commit(
    steps: &[Step],
    embedded: &EmbeddedStore,
    postgres: Option<&PostgresStore>,
    model: &mut Model,
) {
    for (place, step) in steps.iter().enumerate() {
        let batch = match step {
            Step::Tries(tries) => batch_of(tries, model),
            Step::Extra(extra) => extra.batch(),
        };
        let expected = embedded.commit(batch.clone()).await;
        if let Some(postgres) = postgres {
            assert_eq!(outcome(&postgres.commit(batch.clone()).await), outcome(&expected), "step {place}");
        }
        if expected.is_ok() {
            let known = match step {
                Step::Tries(_) => batch,
                Step::Extra(Extra::Comply { owner, number, .. } | Extra::Admit { owner, number }) => {
                    create(&payment(*owner, *number))
                }
                Step::Extra(_) => continue,
            };
            let _ = model.commit(&known);
        }
        if place % 16 == 8 {
            while embedded.index_search(at(1_000_000), 100).await.unwrap() > 0 {}
            if let Some(postgres) = postgres {
                index(embedded, postgres).await;
            }
        }
    }
}

fn both_stores_agree() {
    let runtime = runtime();
    let mut runner: TestRunner = runner();
    let tried = runner.run(&steps(), |steps| {
        runtime.block_on(async {
            let (embedded, postgres) = (in_memory(), store().await);
            let mut model = Model::default();
            commit(&steps, &embedded, Some(&postgres), &mut model).await;
            agree(&embedded, &postgres).await;
            postgres.close().await;
        });
        Ok(())
    });
    tried.unwrap_or_else(|error| panic!("{error}"));
}

/// Adds every payment to the search index of both stores.
async fn index(embedded: &EmbeddedStore, postgres: &PostgresStore) {
    while embedded.index_search(at(1_000_000), 100).await.unwrap() > 0 {}
    while postgres.index_search(at(1_000_000), 100).await.unwrap() > 0 {}
}

fn described(number: u64) -> Payment {
    let mut next = payment(1, number);
    next.description = format!("Mug number{number} {}", if number.is_multiple_of(3) { "red" } else { "green" });
    next
}

fn searches_agree_before_and_after_indexing() {
    runtime().block_on(async {
        let (embedded, postgres) = (in_memory(), store().await);
        for number in 1..=60 {
            let batch = create(&described(number));
            embedded.commit(batch.clone()).await.unwrap();
            postgres.commit(batch).await.unwrap();
        }
        for _ in 0..2 {
            for text in ["mug", "red", "number1", "red number1", "nothing", "a-17 green", "MUG Red", "10.500"] {
                for at in [PageAt::Number(1), PageAt::Number(2)] {
                    let query =
                        PaymentQuery { at, query: Some(text.to_owned()), ..PaymentQuery::all(merchant_id(1), 7) };
                    let found = postgres.payments(query.clone()).await.unwrap();
                    let expected = embedded.payments(query).await.unwrap();
                    assert_eq!((found.items, found.total), (expected.items, expected.total), "{text} {at:?}");
                }
            }
            index(&embedded, &postgres).await;
        }
        // Deleted metadata is no longer found; the description is.
        let erased = Payment { version: 2, metadata: Default::default(), ..described(3) };
        let batch = replace(&erased, 1);
        embedded.commit(batch.clone()).await.unwrap();
        postgres.commit(batch).await.unwrap();
        for text in ["a-17", "number3"] {
            let query = PaymentQuery { query: Some(text.to_owned()), ..PaymentQuery::all(merchant_id(1), 100) };
            let found = postgres.payments(query.clone()).await.unwrap();
            assert_eq!(found.items, embedded.payments(query).await.unwrap().items, "{text}");
        }
        agree(&embedded, &postgres).await;
        postgres.close().await;
    });
}

fn a_page_of_each_list_continues() {
    runtime().block_on(async {
        let postgres = store().await;
        for number in 1..=25 {
            postgres.commit(create(&payment(1, number))).await.unwrap();
        }
        let mut query = PaymentQuery::all(merchant_id(1), 4);
        let mut found = Vec::new();
        loop {
            let page = postgres.payments(query.clone()).await.unwrap();
            found.extend(page.items.iter().map(|payment| payment.id));
            let Some(next) = page.next else { break };
            query.at = PageAt::After(next);
        }
        assert_eq!(found, (1..=25).rev().map(payment_id).collect::<Vec<_>>());
        let (mut after, mut oldest_first) = (PaymentId::from_bits(0), Vec::new());
        loop {
            let page = postgres.payments_after(after, 10).await.unwrap();
            oldest_first.extend(page.items.iter().map(|payment| payment.id));
            let Some(next) = page.next else { break };
            after = PaymentId::from_bits(next);
        }
        assert_eq!(oldest_first, (1..=25).map(payment_id).collect::<Vec<_>>());
        postgres.close().await;
    });
}
