//! Tests of snapshots: each reader sees exactly one commit.

use std::{collections::BTreeMap, ops::Bound};

use proptest::prelude::*;
use redb::backends::InMemoryBackend;

use super::*;
use crate::embedded::{commit::transaction::Transaction, maintenance::directory, wal::entry::Changes};

/// Number of keys: small, so that operations collide.
const KEYS: u128 = 12;

#[derive(Debug, Clone)]
enum Step {
    /// A commit that sets or removes rows.
    Commit(Vec<(u128, Option<u8>)>),
    /// A reader pins the current snapshot.
    Hold,
    /// The oldest reader ends.
    Release,
    /// A checkpoint begins: the memtables are sealed.
    Seal,
    /// The checkpoint is written and installed.
    Install,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let rows = prop::collection::vec((0..KEYS, prop::option::of(0..4_u8)), 1..6);
    let step = prop_oneof![
        6 => rows.prop_map(Step::Commit),
        2 => Just(Step::Hold),
        1 => Just(Step::Release),
        1 => Just(Step::Seal),
        1 => Just(Step::Install),
    ];
    prop::collection::vec(step, 1..60)
}

type Model = BTreeMap<u128, Vec<u8>>;

fn empty() -> (Database, PinnedSnapshots) {
    let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
    directory::create_schema(&database).unwrap();
    let snapshots = PinnedSnapshots::of(Snapshot::of(Epoch::begin(&database, &DamagedRows::default()).unwrap()));
    (database, snapshots)
}

fn write(snapshots: &mut PinnedSnapshots, model: &mut Model, rows: &[(u128, Option<u8>)]) {
    let (next, changes) = (snapshots.newest().next(), Changes::default());
    let payments = Transaction::of(&next, &changes, snapshots.horizon()).payments();
    for (key, value) in rows {
        // Index tables have empty values.
        match value.map(|value| vec![value; usize::from(value)]) {
            Some(value) => {
                payments.insert(key, value.as_slice());
                model.insert(*key, value);
            }
            None => {
                payments.remove(key).unwrap();
                model.remove(key);
            }
        }
    }
    snapshots.advance(next);
}

fn install_checkpoint(snapshots: &mut PinnedSnapshots, database: &Database) {
    let transaction = database.begin_write().unwrap();
    snapshots.newest().epoch().write_immutable(&transaction).unwrap();
    transaction.commit().unwrap();
    snapshots.install_checkpoint(database).unwrap();
}

/// Reads all rows in every way, and a range alternately from both ends.
fn check(snapshot: &Snapshot, model: &Model, bounds: (Bound<u128>, Bound<u128>), turns: u32) {
    let payments = snapshot.payments();
    for key in 0..KEYS {
        let value = payments.get(key).unwrap().map(|found| found.value().to_vec());
        assert_eq!(value.as_ref(), model.get(&key), "{key}");
    }
    let owned = |row: crate::embedded::wal::view::Row<u128, &'static [u8]>| (row.0.value(), row.1.value().to_vec());
    let expected: Vec<_> = model.iter().map(|(key, value)| (*key, value.clone())).collect();
    let all = payments.iter().unwrap().map(|row| owned(row.unwrap()));
    assert_eq!(all.collect::<Vec<_>>(), expected);
    assert_eq!(payments.first().unwrap().map(owned), expected.first().cloned());
    assert_eq!(payments.last().unwrap().map(owned), expected.last().cloned());
    assert_eq!(payments.len().unwrap(), expected.len() as u64);
    let in_bounds = |key: &u128| std::ops::RangeBounds::contains(&bounds, key);
    let mut wanted: VecDeque<_> = expected.into_iter().filter(|(key, _)| in_bounds(key)).collect();
    let mut range = payments.range::<u128>(bounds).unwrap();
    for turn in 0..=KEYS {
        let (found, expected) = if turns >> turn & 1 == 0 {
            (range.next(), wanted.pop_front())
        } else {
            (range.next_back(), wanted.pop_back())
        };
        assert_eq!(found.map(|row| owned(row.unwrap())), expected, "{bounds:?}, {turns:b}");
    }
}

fn bound() -> impl Strategy<Value = Bound<u128>> {
    prop_oneof![(0..KEYS).prop_map(Bound::Included), (0..KEYS).prop_map(Bound::Excluded), Just(Bound::Unbounded),]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Rows are inserted, changed, removed and inserted again while readers read: each reader sees its own commit.
    #[test]
    fn a_snapshot_does_not_change_with_later_commits(
        steps in steps(), bounds in (bound(), bound()), turns: u32,
    ) {
        let (database, mut snapshots) = empty();
        let (mut model, mut readers, mut is_sealed) = (Model::new(), VecDeque::new(), false);
        for step in steps {
            match step {
                Step::Commit(rows) => write(&mut snapshots, &mut model, &rows),
                Step::Hold => readers.push_back((snapshots.newest().clone(), model.clone())),
                Step::Release => drop(readers.pop_front()),
                Step::Seal if is_sealed => {}
                Step::Seal => {
                    snapshots.seal_memtable();
                    is_sealed = true;
                }
                Step::Install if !is_sealed => {}
                Step::Install => {
                    install_checkpoint(&mut snapshots, &database);
                    is_sealed = false;
                }
            }
            for (snapshot, then) in &readers {
                check(snapshot, then, bounds, turns);
            }
            check(snapshots.newest(), &model, bounds, turns);
        }
    }
}

#[test]
fn removed_rows_of_a_queue_are_dropped() {
    let (_database, mut snapshots) = empty();
    let mut model = Model::new();
    for key in 0..1_000 {
        write(&mut snapshots, &mut model, &[(key, Some(1))]);
        write(&mut snapshots, &mut model, &[(key, None)]);
    }
    assert!(snapshots.newest().epoch().changed_rows() <= 2, "{}", snapshots.newest().epoch().changed_rows());
    // A reader keeps the rows that it sees, and no others.
    write(&mut snapshots, &mut model, &[(1, Some(1)), (2, Some(1))]);
    let reader = snapshots.newest().clone();
    for _ in 0..1_000 {
        write(&mut snapshots, &mut model, &[(1, None), (2, Some(2)), (3, Some(3))]);
    }
    assert_eq!(reader.payments().get(1).unwrap().unwrap().value(), [1]);
    drop(reader);
    write(&mut snapshots, &mut model, &[(3, None)]);
    write(&mut snapshots, &mut model, &[(2, Some(3))]);
    write(&mut snapshots, &mut model, &[(2, Some(3))]);
    assert_eq!(snapshots.newest().epoch().changed_rows(), 1);
}

#[test]
fn a_reader_before_a_checkpoint_adds_no_cost_to_later_commits() {
    let (database, mut snapshots) = empty();
    let mut model = Model::new();
    let reader = snapshots.newest().clone();
    write(&mut snapshots, &mut model, &[(1, Some(1))]);
    snapshots.seal_memtable();
    install_checkpoint(&mut snapshots, &database);
    for key in 2..1_000 {
        write(&mut snapshots, &mut model, &[(key, Some(1))]);
        write(&mut snapshots, &mut model, &[(key, None)]);
    }
    assert!(snapshots.newest().epoch().changed_rows() <= 2, "{}", snapshots.newest().epoch().changed_rows());
    assert!(reader.payments().first().unwrap().is_none());
}
