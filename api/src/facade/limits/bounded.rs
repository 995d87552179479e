//! What a limiter remembers of each caller, in memory that is bounded whoever calls.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use governor::{nanos::Nanos, state::StateStore};

/// Callers a limiter remembers at once; about 100 bytes each.
const MAX_CALLERS: usize = 100_000;

/// Remembers callers by the time at which their quota is whole again. When there are too many, it forgets the one who
/// is whole first: of all, this one is limited least.
#[derive(Debug)]
pub(crate) struct Bounded {
    inner: Mutex<Inner>,
    max: usize,
}

#[derive(Debug, Default)]
struct Inner {
    whole_at: BTreeMap<u128, u64>,
    order: BTreeSet<(u64, u128)>,
}

impl Bounded {
    pub(crate) const fn new() -> Self {
        Self::of(MAX_CALLERS)
    }

    const fn of(max: usize) -> Self {
        Self { inner: Mutex::new(Inner { whole_at: BTreeMap::new(), order: BTreeSet::new() }), max }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Two maps that were left apart by a panic forget a caller at worst.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        let inner = self.lock();
        assert_eq!(inner.whole_at.len(), inner.order.len());
        inner.order.len()
    }
}

impl Inner {
    fn set(&mut self, key: u128, whole_at: u64, max: usize) {
        if let Some(before) = self.whole_at.insert(key, whole_at) {
            self.order.remove(&(before, key));
        }
        self.order.insert((whole_at, key));
        while self.order.len() > max {
            let Some((_, first)) = self.order.pop_first() else { return };
            self.whole_at.remove(&first);
        }
    }
}

impl StateStore for Bounded {
    type Key = u128;

    fn measure_and_replace<T, F, E>(&self, key: &u128, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let mut inner = self.lock();
        let before = inner.whole_at.get(key).map(|at| Nanos::new(*at));
        let (answer, whole_at) = decide(before)?;
        inner.set(*key, whole_at.as_u64(), self.max);
        Ok(answer)
    }
}

/// Callers who are locked out, each until a time of its own; as many as [`Bounded`] remembers.
#[derive(Debug, Default)]
pub(crate) struct LockedOut {
    inner: Mutex<Inner>,
}

impl LockedOut {
    /// Locks a caller out until a time, in nanoseconds of the limiter's clock.
    pub(crate) fn insert(&self, key: u128, until: u64) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).set(key, until, MAX_CALLERS);
    }

    /// Returns until when a caller is locked out.
    pub(crate) fn until(&self, key: u128, now: u64) -> Option<u64> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((until, first)) = inner.order.first().copied().filter(|(until, _)| *until <= now) {
            inner.order.remove(&(until, first));
            inner.whole_at.remove(&first);
        }
        inner.whole_at.get(&key).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_callers_takes_no_more_memory_and_frees_none_who_is_limited_most() {
        let store = Bounded::of(100);
        let set = |key: u128, at: u64| store.measure_and_replace::<(), _, ()>(&key, |_| Ok(((), Nanos::new(at))));
        set(1, 1_000_000).expect("set");
        for key in 2..10_000 {
            set(key, 500 + u64::try_from(key % 7).expect("small")).expect("set");
        }
        assert_eq!(store.len(), 100);
        let seen = store.measure_and_replace::<_, _, ()>(&1, |before| Ok((before, Nanos::new(1))));
        assert_eq!(seen, Ok(Some(Nanos::new(1_000_000))));
    }

    #[test]
    fn a_refusal_changes_nothing() {
        let store = Bounded::of(10);
        store.measure_and_replace::<(), _, ()>(&1, |_| Ok(((), Nanos::new(7)))).expect("set");
        assert_eq!(store.measure_and_replace::<(), _, _>(&1, |_| Err(())), Err(()));
        assert_eq!(store.measure_and_replace::<_, _, ()>(&1, |b| Ok((b, Nanos::new(8)))), Ok(Some(Nanos::new(7))));
    }

    #[test]
    fn who_is_locked_out_comes_in_again_when_the_time_is_over() {
        let locked = LockedOut::default();
        locked.insert(1, 100);
        locked.insert(2, 200);
        assert_eq!((locked.until(1, 99), locked.until(1, 100), locked.until(2, 100)), (Some(100), None, Some(200)));
    }
}
