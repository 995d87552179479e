//! The store as it is after its last commit, for everybody who asks before the next.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use redb::Database;

use crate::embedded::{fault::Fault, tables::Epoch};

/// The store as one commit left it. Later commits change nothing of it, as long as it is held.
#[derive(Clone)]
pub(crate) struct Snapshot {
    epoch: Arc<Epoch>,
    /// The number of the commit, shared by all who hold its snapshot.
    commit: Arc<u64>,
}

impl Snapshot {
    /// Begins with what a checkpoint left.
    pub(crate) fn of(epoch: Epoch) -> Self {
        Self { epoch: Arc::new(epoch), commit: Arc::new(0) }
    }

    /// Returns the one that the next commit leaves.
    pub(crate) fn next(&self) -> Self {
        Self { epoch: Arc::clone(&self.epoch), commit: Arc::new(*self.commit + 1) }
    }

    /// Returns the same commit in another form of its epoch.
    fn in_epoch(&self, epoch: Epoch) -> Self {
        Self { epoch: Arc::new(epoch), commit: Arc::clone(&self.commit) }
    }

    pub(crate) fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    /// Returns its epoch, to be held without the commit.
    pub(crate) fn share_epoch(&self) -> Arc<Epoch> {
        Arc::clone(&self.epoch)
    }

    pub(crate) fn commit(&self) -> u64 {
        *self.commit
    }
}

/// The snapshots that somebody may still read, and nobody else can begin to but the newest.
#[derive(Debug)]
pub(crate) struct Held {
    newest: Snapshot,
    /// The commits before, oldest first.
    before: VecDeque<Arc<u64>>,
}

impl Held {
    /// Begins with the first.
    pub(crate) const fn of(newest: Snapshot) -> Self {
        Self { newest, before: VecDeque::new() }
    }

    /// Returns the newest.
    pub(crate) const fn newest(&self) -> &Snapshot {
        &self.newest
    }

    /// Takes a newer one, which is published already.
    pub(crate) fn follow(&mut self, newest: Snapshot) {
        self.before.push_back(std::mem::replace(&mut self.newest, newest).commit);
        while self.before.pop_front_if(|commit| Arc::strong_count(commit) == 1).is_some() {}
    }

    /// Freezes the newest, to be published. Who reads an earlier commit reads nothing of what is written from now on.
    pub(crate) fn freeze(&mut self) -> &Snapshot {
        *self = Self::of(self.newest.in_epoch(self.newest.epoch.freeze()));
        &self.newest
    }

    /// Takes the newest over what a checkpoint has stored of it, to be published.
    pub(crate) fn thaw(&mut self, database: &Database) -> Result<&Snapshot, Fault> {
        self.newest = self.newest.in_epoch(self.newest.epoch.thaw(database)?);
        Ok(&self.newest)
    }

    /// Returns the oldest commit that somebody may read.
    pub(crate) fn horizon(&self) -> u64 {
        self.before.front().map_or_else(|| self.newest.commit(), |commit| **commit)
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("commit", &self.commit).finish_non_exhaustive()
    }
}

/// Where the newest snapshot is found; none once the store is closed.
#[derive(Debug)]
pub(crate) struct Newest(Mutex<Option<Snapshot>>);

impl Newest {
    /// Starts with what is stored.
    pub(crate) const fn of(snapshot: Snapshot) -> Self {
        Self(Mutex::new(Some(snapshot)))
    }

    /// Returns the snapshot of the last commit.
    pub(crate) fn get(&self) -> Result<Snapshot, Fault> {
        let newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        newest.clone().ok_or_else(|| Fault::Disk("it is closed".to_owned()))
    }

    /// Shows a commit that is durable. To be called before anybody is told so.
    pub(crate) fn publish(&self, snapshot: Snapshot) {
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if newest.is_some() {
            *newest = Some(snapshot);
        }
    }

    /// Shows nothing any more.
    pub(crate) fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, ops::Bound};

    use proptest::prelude::*;
    use redb::backends::InMemoryBackend;

    use super::*;
    use crate::embedded::{commit::transaction::Draft, maintenance::directory, wal::log::Changes};

    /// The keys that are written: few, so that they meet.
    const KEYS: u128 = 12;

    #[derive(Debug, Clone)]
    enum Step {
        /// A commit: rows that are set to a value or removed.
        Commit(Vec<(u128, Option<u8>)>),
        /// Somebody begins to read, and reads on.
        Hold,
        /// The reader who has read longest ends.
        Release,
        /// A checkpoint begins: what was committed is frozen.
        Freeze,
        /// It is made.
        Thaw,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let rows = prop::collection::vec((0..KEYS, prop::option::of(0..4_u8)), 1..6);
        let step = prop_oneof![
            6 => rows.prop_map(Step::Commit),
            2 => Just(Step::Hold),
            1 => Just(Step::Release),
            1 => Just(Step::Freeze),
            1 => Just(Step::Thaw),
        ];
        prop::collection::vec(step, 1..60)
    }

    type Model = BTreeMap<u128, Vec<u8>>;

    fn empty() -> (Database, Held) {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        directory::create_schema(&database).unwrap();
        let held =
            Held::of(Snapshot::of(Epoch::begin(&database, &crate::embedded::damage::Damages::default()).unwrap()));
        (database, held)
    }

    fn write(held: &mut Held, model: &mut Model, rows: &[(u128, Option<u8>)]) {
        let (next, changes) = (held.newest().next(), Changes::default());
        let payments = Draft::of(&next, &changes, held.horizon()).payments();
        for (key, value) in rows {
            // No value is what an index has.
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
        held.follow(next);
    }

    fn thaw(held: &mut Held, database: &Database) {
        let transaction = database.begin_write().unwrap();
        held.newest().epoch().write_frozen(&transaction).unwrap();
        transaction.commit().unwrap();
        held.thaw(database).unwrap();
    }

    /// Reads everything there is to read in every way there is, and in a range from both ends by turns.
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

        /// Rows come, change, go and come back while others read: each reader sees the commit it began with.
        #[test]
        fn a_snapshot_stays_as_it_was_whatever_is_committed_after(
            steps in steps(), bounds in (bound(), bound()), turns: u32,
        ) {
            let (database, mut held) = empty();
            let (mut model, mut readers, mut is_frozen) = (Model::new(), VecDeque::new(), false);
            for step in steps {
                match step {
                    Step::Commit(rows) => write(&mut held, &mut model, &rows),
                    Step::Hold => readers.push_back((held.newest().clone(), model.clone())),
                    Step::Release => drop(readers.pop_front()),
                    Step::Freeze if is_frozen => {}
                    Step::Freeze => {
                        held.freeze();
                        is_frozen = true;
                    }
                    Step::Thaw if !is_frozen => {}
                    Step::Thaw => {
                        thaw(&mut held, &database);
                        is_frozen = false;
                    }
                }
                for (snapshot, then) in &readers {
                    check(snapshot, then, bounds, turns);
                }
                check(held.newest(), &model, bounds, turns);
            }
        }
    }

    #[test]
    fn a_queue_whose_entries_come_and_go_keeps_none_of_them() {
        let (_database, mut held) = empty();
        let mut model = Model::new();
        for key in 0..1_000 {
            write(&mut held, &mut model, &[(key, Some(1))]);
            write(&mut held, &mut model, &[(key, None)]);
        }
        assert!(held.newest().epoch().changed_rows() <= 2, "{}", held.newest().epoch().changed_rows());
        // Somebody who reads keeps what it sees, and only that.
        write(&mut held, &mut model, &[(1, Some(1)), (2, Some(1))]);
        let reader = held.newest().clone();
        for _ in 0..1_000 {
            write(&mut held, &mut model, &[(1, None), (2, Some(2)), (3, Some(3))]);
        }
        assert_eq!(reader.payments().get(1).unwrap().unwrap().value(), [1]);
        drop(reader);
        write(&mut held, &mut model, &[(3, None)]);
        write(&mut held, &mut model, &[(2, Some(3))]);
        write(&mut held, &mut model, &[(2, Some(3))]);
        assert_eq!(held.newest().epoch().changed_rows(), 1);
    }

    #[test]
    fn who_reads_what_was_before_a_checkpoint_costs_the_commits_after_it_nothing() {
        let (database, mut held) = empty();
        let mut model = Model::new();
        let reader = held.newest().clone();
        write(&mut held, &mut model, &[(1, Some(1))]);
        held.freeze();
        thaw(&mut held, &database);
        for key in 2..1_000 {
            write(&mut held, &mut model, &[(key, Some(1))]);
            write(&mut held, &mut model, &[(key, None)]);
        }
        assert!(held.newest().epoch().changed_rows() <= 2, "{}", held.newest().epoch().changed_rows());
        assert!(reader.payments().first().unwrap().is_none());
    }
}
