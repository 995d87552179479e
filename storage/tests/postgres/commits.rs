//! Commits of several engines on one database, lost connections, and unknown outcomes.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use storage::{
    Address, Batch, CommitError, CommitId, Connections, PostgresStore, Resolution, Vault, Write, prelude::*,
};

use crate::{cluster::Cluster, programs, runtime, samples::*, shared, store};

crate::tests!(
    an_outcome_is_resolved_once_and_for_all,
    a_group_knows_the_commits_before_each_of_its_batches,
    one_of_two_engines_wins_each_payment,
    events_of_several_engines_have_no_gap,
    a_terminated_connection_loses_and_repeats_nothing,
    a_restarted_database_keeps_every_acknowledged_commit,
    a_canceled_wait_for_a_standby_acknowledges_nothing,
    a_batch_without_writes_is_committed,
    batches_that_wait_together_are_one_statement,
);

fn created(number: u64, id: u128) -> Batch {
    Batch { id: Some(CommitId::from_bits(id)), ..create(&payment(1, number)) }
}

async fn resolved(store: &PostgresStore, id: u128) -> Resolution {
    store.resolve(CommitId::from_bits(id)).await.unwrap()
}

fn is_conflict(outcome: &Result<(), CommitError>) -> bool {
    matches!(outcome, Err(CommitError::Conflict { .. }))
}

/// Opens two stores of one new database.
async fn two_stores() -> [Arc<PostgresStore>; 2] {
    let database = crate::database();
    let open = async || {
        let connections = Connections { writers: 2, readers: 1 };
        Arc::new(PostgresStore::open(&database, connections, Vault::default()).await.unwrap())
    };
    [open().await, open().await]
}

fn an_outcome_is_resolved_once_and_for_all() {
    runtime().block_on(async {
        let store = store().await;
        store.commit(created(1, 7)).await.unwrap();
        for _ in 0..2 {
            assert_eq!(resolved(&store, 7).await, Resolution::Applied);
        }
        assert!(is_conflict(&store.commit(created(2, 7)).await), "repeated");
        assert_eq!(resolved(&store, 8).await, Resolution::Forbidden);
        assert!(is_conflict(&store.commit(created(2, 8)).await), "forbidden");
        assert!(store.payment(payment_id(2)).await.unwrap().is_none());
        assert!(is_conflict(&store.commit(created(1, 9)).await), "the payment exists");
        assert_eq!(resolved(&store, 9).await, Resolution::Forbidden);
        store.close().await;
    });
}

fn a_group_knows_the_commits_before_each_of_its_batches() {
    runtime().block_on(async {
        let store = store().await;
        let batches = [created(1, 7), created(2, 7), created(3, 9)];
        let outcomes = futures_util::future::join_all(batches.map(|batch| store.commit(batch))).await;
        assert!(outcomes[0].is_ok() && is_conflict(&outcomes[1]) && outcomes[2].is_ok(), "{outcomes:?}");
        assert_eq!((resolved(&store, 7).await, resolved(&store, 9).await), (Resolution::Applied, Resolution::Applied));
        store.close().await;
    });
}

fn one_of_two_engines_wins_each_payment() {
    runtime().block_on(async {
        let stores = two_stores().await;
        let payments: Vec<_> = (1..=40).map(|number| payment(1, number)).collect();
        for payment in &payments {
            stores[0].commit(create(payment)).await.unwrap();
        }
        let of_one = |store: Arc<PostgresStore>| {
            let batches: Vec<_> =
                payments.iter().map(|payment| replace(&cancelled(payment), payment.version)).collect();
            tokio::spawn(async move {
                futures_util::future::join_all(batches.into_iter().map(|batch| store.commit(batch))).await
            })
        };
        let [first, second] = stores.clone().map(of_one);
        let (first, second) = (first.await.unwrap(), second.await.unwrap());
        for (one, two) in first.iter().zip(&second) {
            assert!(one.is_ok() != two.is_ok() && (is_conflict(one) || is_conflict(two)), "{one:?} {two:?}");
        }
        futures_util::future::join_all(stores.iter().map(|store| store.close())).await;
    });
}

fn events_of_several_engines_have_no_gap() {
    runtime().block_on(async {
        let stores = two_stores().await;
        let of_one = |(place, store): (u64, Arc<PostgresStore>)| {
            let events = (0..60).map(move |number| Batch::of(Write::Event(event(1, place + 2 * number))));
            tokio::spawn(async move { futures_util::future::join_all(events.map(|batch| store.commit(batch))).await })
        };
        for running in (0..).zip(stores.clone()).map(of_one).collect::<Vec<_>>() {
            assert!(running.await.unwrap().iter().all(Result::is_ok));
        }
        let events = stores[0].events(merchant_id(1), 0, 1_000).await.unwrap();
        assert!(events.iter().map(|event| event.seq).eq(1..=120));
        assert_eq!(events.iter().map(|event| event.id).collect::<BTreeSet<_>>().len(), 120);
        assert_eq!(stores[1].due_deliveries(at(1_000), 1_000).await.unwrap().len(), 120);
        futures_util::future::join_all(stores.iter().map(|store| store.close())).await;
    });
}

/// Commits `count` payments, 8 at a time, and resolves unknown outcomes. Returns for each payment whether it is durable.
async fn create_many(store: &PostgresStore, count: u64) -> Vec<(u64, bool)> {
    let mut outcomes = Vec::new();
    for first in (1..=count).step_by(8) {
        let one = async |number: u64| {
            let id = u128::from(number) << 64;
            let is_applied = match store.commit(created(number, id)).await {
                Ok(()) => true,
                Err(CommitError::Unknown(_)) => loop {
                    match store.resolve(CommitId::from_bits(id)).await {
                        Ok(resolution) => break resolution == Resolution::Applied,
                        Err(CommitError::Unavailable(_)) => {}
                        Err(other) => panic!("{other}"),
                    }
                },
                Err(CommitError::Unavailable(_)) => false,
                Err(other) => panic!("payment {number}: {other}"),
            };
            (number, is_applied)
        };
        outcomes.extend(futures_util::future::join_all((first..first + 8).map(one)).await);
    }
    outcomes
}

async fn check(store: &PostgresStore, outcomes: Vec<(u64, bool)>) {
    for (number, is_applied) in outcomes {
        let stored = store.payment(payment_id(number)).await.unwrap();
        assert_eq!(stored, is_applied.then(|| payment(1, number)), "payment {number}");
    }
}

fn a_terminated_connection_loses_and_repeats_nothing() {
    let (cluster, _) = shared();
    let name = cluster.create_database(Some(&shared().1));
    let address: Address = cluster.url(&name).parse().unwrap();
    let is_done = Arc::new(AtomicBool::new(false));
    let terminator = std::thread::Builder::new().spawn({
        let is_done = Arc::clone(&is_done);
        let sql = format!("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{name}'");
        move || {
            let mut terminated = 0;
            while !is_done.load(Ordering::Relaxed) {
                terminated += shared().0.sql("postgres", &sql).parse::<u64>().unwrap_or(0);
            }
            terminated
        }
    });
    let terminator = terminator.unwrap();
    let runtime = runtime();
    let (store, outcomes) = runtime.block_on(async {
        let connections = Connections { writers: 2, readers: 2 };
        let store = loop {
            // A connection may be terminated while it is checked.
            if let Ok(store) = PostgresStore::open(&address, connections, Vault::default()).await {
                break store;
            }
        };
        let outcomes = create_many(&store, 400).await;
        assert!(outcomes.iter().any(|(_, is_applied)| *is_applied));
        (store, outcomes)
    });
    is_done.store(true, Ordering::Relaxed);
    assert!(terminator.join().unwrap() > 0);
    runtime.block_on(async {
        check(&store, outcomes).await;
        store.close().await;
    });
}

fn a_canceled_wait_for_a_standby_acknowledges_nothing() {
    let cluster = Cluster::start(&programs(), &[]);
    let name = cluster.create_database(None);
    let address: Address = cluster.url(&name).parse().unwrap();
    let runtime = runtime();
    runtime.block_on(PostgresStore::migrate(&address)).unwrap();
    let connections = Connections { writers: 1, readers: 1 };
    let store = runtime.block_on(PostgresStore::open(&address, connections, Vault::default())).unwrap();
    runtime.block_on(store.commit(register(&merchant(1)))).unwrap();
    // No standby is there: commits wait for one.
    cluster.wait_for_standby();
    let waiting = || {
        let sql = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        cluster.sql("postgres", sql).parse::<u32>().ok()
    };
    let until =
        |is: &dyn Fn(u32) -> bool| (0..1_000).find_map(|_| waiting().filter(|pid| is(*pid))).expect("a backend waits");
    let store = Arc::new(store);
    let commit = runtime.spawn({
        let store = Arc::clone(&store);
        async move { store.commit(create(&payment(1, 1))).await }
    });
    let committer = until(&|_| true);
    cluster.sql("postgres", &format!("SELECT pg_cancel_backend({committer})"));
    // The outcome is resolved by a write on another connection, which waits, too.
    until(&|pid| pid != committer);
    assert!(!commit.is_finished(), "it is acknowledged, and no standby has it");
    cluster.sql("postgres", "ALTER SYSTEM RESET synchronous_standby_names");
    cluster.sql("postgres", "SELECT pg_reload_conf()");
    assert_eq!(runtime.block_on(commit).unwrap(), Ok(()));
    runtime.block_on(async {
        assert!(store.payment(payment(1, 1).id).await.unwrap().is_some());
        store.close().await;
    });
}

fn a_restarted_database_keeps_every_acknowledged_commit() {
    let mut cluster = Cluster::start(&programs(), &[]);
    let name = cluster.create_database(None);
    let address: Address = cluster.url(&name).parse().unwrap();
    let runtime = runtime();
    runtime.block_on(PostgresStore::migrate(&address)).unwrap();
    let connections = Connections { writers: 2, readers: 2 };
    let store = runtime.block_on(PostgresStore::open(&address, connections, Vault::default())).unwrap();
    let store = Arc::new(store);
    let writing = runtime.spawn({
        let store = Arc::clone(&store);
        async move { create_many(&store, 1_600).await }
    });
    runtime.block_on(async { tokio::time::sleep(Duration::from_millis(300)).await });
    cluster.stop();
    let is_up = runtime.block_on(async { store.note("a").await.is_ok() });
    assert!(!is_up, "the database is stopped");
    cluster.run(&[]);
    let outcomes = runtime.block_on(writing).unwrap();
    runtime.block_on(async {
        while store.note("a").await.is_err() {}
        check(&store, outcomes).await;
        store.close().await;
    });
}

fn a_batch_without_writes_is_committed() {
    runtime().block_on(async {
        let store = store().await;
        assert_eq!(store.commit(Batch::default()).await, Ok(()));
        let named = Batch { id: Some(CommitId::from_bits(5)), ..Batch::default() };
        assert_eq!(store.commit(named).await, Ok(()));
        assert_eq!(resolved(&store, 5).await, Resolution::Applied);
        store.commit(create(&payment(1, 1))).await.unwrap();
        store.close().await;
        assert_eq!(store.commit(create(&payment(1, 2))).await, Err(CommitError::Overloaded));
    });
}

fn batches_that_wait_together_are_one_statement() {
    let (cluster, template) = shared();
    let name = cluster.create_database(Some(template));
    let address: Address = cluster.url(&name).parse().unwrap();
    runtime().block_on(async {
        let connections = Connections { writers: 1, readers: 1 };
        let store = PostgresStore::open(&address, connections, Vault::default()).await.unwrap();
        let batches = (1..=500).map(|number| store.commit(create(&payment(1, number))));
        assert!(futures_util::future::join_all(batches).await.iter().all(Result::is_ok));
        store.close().await;
    });
    // Each statement adds one row here, because no batch has an id.
    let statements: u64 = cluster.sql(&name, "SELECT count(*) FROM commits").parse().unwrap();
    assert!((1..=8).contains(&statements), "{statements} statements for 500 batches");
    let projected =
        "SELECT count(*) FROM payments WHERE state = 'pending' AND amount_units = 10500 AND deadline IS NOT NULL";
    assert_eq!(cluster.sql(&name, projected), "500");
    assert_eq!(cluster.sql(&name, "SELECT sum(open_payments), count(*) FROM merchant_usage"), "500|1");
    assert_eq!(cluster.sql(&name, "SELECT sum(payments), sum(amount_units) FROM payment_days"), "500|5250000");
}
