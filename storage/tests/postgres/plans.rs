//! The plans of hot statements over many rows: none reads a whole large table, and none sorts one. The server logs the plan of each
//! statement that the store runs.

use std::{fmt::Write as _, path::Path, time::Duration};

use engine::{
    billing::Month,
    idempotency::{IdempotencyRecord, Resource},
    ids::{DeliveryId, EndpointId, PaymentId},
    ledger::ChainPosition,
    money::{Currency, Money},
    payment::State,
    time::Timestamp,
    webhook::DeliveryState,
};
use storage::{
    Address, AuditQuery, Batch, Connections, DeliveryQuery, Duty, EngineId, MerchantQuery, PageAt, Passed,
    PaymentQuery, PeriodQuery, PostgresStore, Vault, Vicinity, VolumeQuery, Write, prelude::*,
};

use crate::{cluster::Cluster, filled::fill, programs, runtime, samples::*};

crate::tests!(no_hot_statement_reads_or_sorts_a_whole_table);

/// Payments in the database unless `HIVETILL_PLAN_ROWS` is set.
const ROWS: u64 = 30_000;
/// Rows that one statement may sort, by the planner's estimate.
const MAX_SORTED: u64 = 25_000;

/// Tables that grow with the number of payments.
const LARGE: [&str; 16] = [
    "payments",
    "transfers",
    "payment_words",
    "payment_days",
    "payment_waits",
    "idempotency",
    "events",
    "deliveries",
    "attempts",
    "claims",
    "claim_names",
    "transaction_uses",
    "unmatched_transfers",
    "ledger_entries",
    "audit_log",
    "commits",
];

#[expect(clippy::disallowed_methods, reason = "the one setting of this test: its number of rows")]
fn no_hot_statement_reads_or_sorts_a_whole_table() {
    let rows = std::env::var("HIVETILL_PLAN_ROWS").map_or(ROWS, |rows| rows.parse().expect("a number"));
    let settings = [
        "session_preload_libraries=auto_explain",
        "auto_explain.log_min_duration=0",
        // As of a solid-state drive: the planner reads small tables as a whole otherwise.
        "random_page_cost=1.1",
        "max_wal_size=4GB",
        "autovacuum=off",
        "jit=off",
    ];
    let cluster = Cluster::start(&programs(), &settings);
    let name = cluster.create_database(None);
    let address: Address = cluster.url(&name).parse().expect("a URL");
    let folder = tempfile::tempdir().expect("a folder");
    runtime().block_on(copy_sample(folder.path(), &address));
    cluster.sql(&name, &FILL.replace("{rows}", &rows.to_string()));
    // Index-only scans need the visibility map that a running database keeps.
    cluster.sql(&name, "VACUUM ANALYZE");
    let mut problems = String::new();
    for mode in ["force_custom_plan", "force_generic_plan"] {
        cluster.sql("postgres", &format!("ALTER DATABASE {name} SET plan_cache_mode = {mode}"));
        drop(cluster.take_log());
        runtime().block_on(run_hot_statements(&address));
        // The log of a session is complete when the next one has been answered.
        cluster.sql(&name, "SELECT 'the end'");
        let log = cluster.take_log();
        let plans = plans_in(&log);
        assert!(plans.len() > 100, "{mode}: {} plans in {} lines", plans.len(), log.len());
        for plan in plans {
            for problem in problems_of(&plan, rows) {
                writeln!(problems, "{mode}: {problem}\n{}\n", plan.join("\n")).expect("a string takes everything");
            }
        }
        cluster.sql(&name, "UPDATE payments SET version = version; DELETE FROM engines");
    }
    assert!(problems.is_empty(), "{problems}");
}

async fn copy_sample(folder: &Path, address: &Address) {
    fill(folder).await;
    let idle = std::sync::Arc::new(storage::Idle::take_store(folder).expect("a store"));
    storage::copy_to_postgres(&idle, address, false, &mut |_| {}).await.expect("an empty database");
}

/// Returns the plans in a log, each as its lines.
fn plans_in(log: &[String]) -> Vec<Vec<String>> {
    let mut plans: Vec<Vec<String>> = Vec::new();
    let mut is_plan = false;
    for line in log {
        match line.strip_prefix('\t') {
            Some(rest) if is_plan => plans.last_mut().expect("a plan has begun").push(rest.to_owned()),
            Some(_) => {}
            None => {
                is_plan = line.contains("plan:");
                if is_plan {
                    plans.push(Vec::new());
                }
            }
        }
    }
    plans
}

/// Returns what is wrong with a plan.
fn problems_of(plan: &[String], total: u64) -> Vec<String> {
    let mut problems = Vec::new();
    // The indentation of the limits above the current line.
    let mut limits: Vec<usize> = Vec::new();
    for line in plan {
        let Some((node, rest)) = line.split_once("  (cost=") else { continue };
        let indentation = node.len() - node.trim_start().len();
        limits.retain(|limit| *limit < indentation);
        let node = node.trim_start().trim_start_matches("->").trim_start();
        let rows: u64 = rest
            .split_once("rows=")
            .and_then(|(_, rows)| rows.split(' ').next()?.parse().ok())
            .unwrap_or_else(|| panic!("no estimate in {line}"));
        if node.starts_with("Limit") {
            limits.push(indentation);
        }
        let table = node.split_once(" on ").map(|(_, table)| table.split(' ').next().unwrap_or_default());
        let is_large = table.is_some_and(|table| LARGE.contains(&table));
        let is_scan = node.contains("Scan") && is_large;
        if node.starts_with("Seq Scan") && is_large {
            problems.push(format!("a sequential scan: {node}"));
        } else if is_scan && rows > total / 3 && limits.is_empty() {
            problems.push(format!("a scan of {rows} rows: {node}"));
        }
        if node.starts_with("Sort") && rows > MAX_SORTED {
            problems.push(format!("a sort of {rows} rows"));
        }
    }
    problems
}

async fn run_hot_statements(address: &Address) {
    let one = Connections { writers: 1, readers: 1 };
    let store = PostgresStore::open(address, one, Vault::default()).await.expect("a store");
    // Numbers that no other pass has.
    let base =
        u64::try_from(std::time::SystemTime::UNIX_EPOCH.elapsed().expect("after 1970").as_millis()).expect("a time");
    writes(&store, base).await;
    payment_reads(&store).await;
    list_reads(&store).await;
    webhook_reads(&store).await;
    other_reads(&store).await;
    store.index_search(at(1_000_000), 100).await.expect("it indexes");
    store.close().await;
}

async fn writes(store: &PostgresStore, base: u64) {
    let commit = async |batch: Batch| store.commit(batch).await.expect("a valid batch");
    let number = base % 1_000_000_000;
    let created = payment(1, number);
    let remembered = IdempotencyRecord {
        merchant: merchant_id(1),
        key: [u8::try_from(number % 251).expect("it is small"); 32],
        fingerprint: [0; 32],
        resource: Resource::Payment(created.id),
        at: at(1_000_000),
    };
    let _ = store.commit(create(&created).and(Write::Remember { remembered, most: u64::MAX })).await;
    let Ok(Some(stored)) = store.payment(created.id).await else { panic!("the payment is created") };
    let mut paid = stored.clone();
    (paid.version, paid.transfers) = (stored.version + 1, vec![fee_credit()]);
    commit(replace_with_rows(&paid, stored.version).and(Write::Event(event(1, number)))).await;
    for delivery in store.due_deliveries(Timestamp::MAX, 1).await.expect("a read") {
        let attempt = attempt(&delivery, Some(at(3_000_000)));
        commit(Batch::of(Write::Attempt { delivery, attempt })).await;
    }
    let (engine, duration) = (EngineId::from_bits(base), Duration::from_secs(30));
    commit(Batch::of(Write::Lease { engine, is_new: true, now: START, duration })).await;
    commit(Batch::of(Write::Lease { engine, is_new: false, now: START, duration })).await;
    commit(Batch::of(Write::Unmatched(unmatched(
        "shop.example",
        4_000_000_000,
        u32::try_from(base % 1_000_000).expect("small"),
    ))))
    .await;
    commit(Batch::of(Write::Prune { happened_before: START })).await;
    commit(Batch::of(Write::Forget { made_before: START })).await;
    let _ = store.commit(Batch::of(Write::Claim(claimed(200, &format!("n{base}"))))).await;
    let erased = engine::payment::Payment { version: paid.version + 1, metadata: Default::default(), ..paid.clone() };
    commit(replace(&erased, paid.version)).await;
}

async fn payment_reads(store: &PostgresStore) {
    let id = payment_id(1);
    store.payment(id).await.expect("a read");
    store.versions((0..50).map(payment_id).collect()).await.expect("a read");
    store.payment_by_slug(payment(1, 1).slug).await.expect("a read");
    store.payments_after(id, 100).await.expect("a read");
    store.due(at(30), None, 100).await.expect("a read");
    store.due(Timestamp::MAX, Some((at(30), id)), 100).await.expect("a read");
    store.in_flight().await.expect("a read");
    store.transfer(id, tx_id(1), 0).await.expect("a read");
    store.transfers(id, None, 100).await.expect("a read");
    let money = Money::new(10_500, Currency::Hbd);
    let near = Vicinity { merchant: merchant_id(1), money, from: START, to: at(3_600), limit: 10 };
    store.payments_near(near).await.expect("a read");
}

async fn list_reads(store: &PostgresStore) {
    let all = PaymentQuery::all(merchant_id(1), 50);
    let text = |text: &str| PaymentQuery { query: Some(text.to_owned()), ..all.clone() };
    let queries = [
        all.clone(),
        PaymentQuery { at: PageAt::Number(5_000), ..all.clone() },
        PaymentQuery { at: PageAt::After(payment_id(900_000).bits()), ..all.clone() },
        PaymentQuery { states: vec![State::Pending], ..all.clone() },
        PaymentQuery { states: vec![State::Completed], currency: Some(Currency::Hbd), ..all.clone() },
        PaymentQuery { from: Some(at(100)), to: Some(at(5_000)), ..all.clone() },
        PaymentQuery { min_units: Some(10_700), max_units: Some(10_701), ..all.clone() },
        PaymentQuery { ids: vec![payment_id(1), payment_id(2)], ..all.clone() },
        text("word77"),
        text("word77 common"),
        text(&payment_id(2).to_string()),
    ];
    for query in queries {
        store.payments(query).await.expect("a read");
    }
    let last_day = at(86_400).millis() / 86_400_000;
    store.volume(VolumeQuery { merchant: merchant_id(1), last_day, days: 30 }).await.expect("a read");
}

async fn webhook_reads(store: &PostgresStore) {
    let (merchant, first) = (merchant_id(1), event(1, 1));
    store.due_deliveries(at(1_000_000), 100).await.expect("a read");
    store.due_work(at(1_000_000), 50, 20, Passed::default()).await.expect("a read");
    store.next_delivery_after(at(100)).await.expect("a read");
    store.endpoint(EndpointId::default_of(merchant)).await.expect("a read");
    store.webhook_content(merchant, 1).await.expect("a read");
    store.delivery(merchant, DeliveryId::new(at(1), [2; 10])).await.expect("a read");
    let all = DeliveryQuery {
        merchant,
        before: None,
        limit: 50,
        states: Vec::new(),
        event: None,
        payment: None,
        endpoint: None,
    };
    let queries = [
        all.clone(),
        DeliveryQuery { states: vec![DeliveryState::Failed], ..all.clone() },
        DeliveryQuery { event: Some(first.id), ..all.clone() },
        DeliveryQuery { payment: Some(first.payment), ..all.clone() },
    ];
    for query in queries {
        store.deliveries(query).await.expect("a read");
    }
    store.replayable(merchant, DeliveryId::from_bits(0), 50).await.expect("a read");
    store.attempts(first.id).await.expect("a read");
    store.event(merchant, 1).await.expect("a read");
    store.event_place(first.id).await.expect("a read");
    store.events(merchant, 1_000, 100).await.expect("a read");
    store.event_list(merchant).await.expect("a read");
    store.oldest_event().await.expect("a read");
}

async fn other_reads(store: &PostgresStore) {
    let (merchant, shop) = (merchant_id(1), account("shop.example"));
    store.merchant(merchant).await.expect("a read");
    store.merchant_by_key(crate::samples::merchant(1).keys[0].digest).await.expect("a read");
    store.merchants(MerchantQuery::all(50)).await.expect("a read");
    store.watched_accounts(None, 100).await.expect("a read");
    store.accounts_added(10, 100).await.expect("a read");
    store.proven_merchants(shop, 10).await.expect("a read");
    store.open_facilitations().await.expect("a read");
    store.forgettable_claims(START, None, 100).await.expect("a read");
    store.claim(tx_id(4)).await.expect("a read");
    store.claims((0..50).map(tx_id).collect()).await.expect("a read");
    store.overlapping_claim(shop, vec![tx_id(4)], None, "n4".to_owned()).await.expect("a read");
    store.remembered(merchant, [1; 32]).await.expect("a read");
    store.oldest_key().await.expect("a read");
    store.cursor().await.expect("a read");
    store.rate().await.expect("a read");
    store.note("a").await.expect("a read");
    store.unmatched(shop, 50).await.expect("a read");
    let place = ChainPosition { block_num: 9, tx_in_block: 2, op_in_tx: 0 };
    store.unmatched_at(shop, place).await.expect("a read");
    store.waiting_for_sessions(None, 100).await.expect("a read");
    store.ledger_entries(shop, (START, at(86_400)), None, 100).await.expect("a read");
    store.reconciled_days(None, 10).await.expect("a read");
    store.compliance_status(merchant).await.expect("a read");
    store.period(merchant, Month::of(START)).await.expect("a read");
    store.periods_of(merchant).await.expect("a read");
    store.unsettled_periods(Month::of(Timestamp::MAX), None, 100).await.expect("a read");
    let periods = PeriodQuery { page: 1, limit: 20, merchant: Some(merchant), status: None, now: at(100) };
    store.periods(periods).await.expect("a read");
    for merchant in [None, Some(merchant)] {
        store.audit(AuditQuery { before: None, limit: 50, merchant }).await.expect("a read");
    }
    store.leases().await.expect("a read");
    store.membership().await.expect("a read");
    assert!(Duty::all().count() > 200 && PaymentId::from_bits(0).bits() == 0);
}

/// Multiplies the rows of the sample. Half of them belong to its first merchant.
const FILL: &str = include_str!("fill.sql");
