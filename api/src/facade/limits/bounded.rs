//! The state of a rate limiter in bounded memory, whatever the number of callers.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use governor::{nanos::Nanos, state::StateStore};

/// Maximum number of callers of a limiter, about 100 bytes each.
const MAX_CALLERS: usize = 100_000;

/// Stores for each caller the time at which its quota is fully replenished. At the maximum it evicts the caller with the
/// earliest time, whose quota is used least.
#[derive(Debug)]
pub(crate) struct Bounded {
    inner: Mutex<Inner>,
    max: usize,
}

#[derive(Debug, Default)]
struct Inner {
    replenished_at: BTreeMap<u128, u64>,
    order: BTreeSet<(u64, u128)>,
}

impl Bounded {
    pub(crate) const fn new() -> Self {
        Self::of(MAX_CALLERS)
    }

    const fn of(max: usize) -> Self {
        Self { inner: Mutex::new(Inner { replenished_at: BTreeMap::new(), order: BTreeSet::new() }), max }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // If a panic left the two maps different, a caller is evicted early at worst.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        let inner = self.lock();
        assert_eq!(inner.replenished_at.len(), inner.order.len());
        inner.order.len()
    }
}

impl Inner {
    fn set(&mut self, key: u128, replenished_at: u64, max: usize) {
        if let Some(before) = self.replenished_at.insert(key, replenished_at) {
            self.order.remove(&(before, key));
        }
        self.order.insert((replenished_at, key));
        while self.order.len() > max {
            let Some((_, first)) = self.order.pop_first() else { return };
            self.replenished_at.remove(&first);
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
        let before = inner.replenished_at.get(key).map(|at| Nanos::new(*at));
        let (outcome, replenished_at) = decide(before)?;
        inner.set(*key, replenished_at.as_u64(), self.max);
        Ok(outcome)
    }
}

/// Callers that are locked out, each until its own time; at most as many as [`Bounded`] stores.
#[derive(Debug, Default)]
pub(crate) struct Lockouts {
    inner: Mutex<Inner>,
}

impl Lockouts {
    /// Locks a caller out until `until`, in nanoseconds of the limiter's clock.
    pub(crate) fn insert(&self, key: u128, until: u64) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).set(key, until, MAX_CALLERS);
    }

    /// Returns the time until which a caller is locked out.
    pub(crate) fn until(&self, key: u128, now: u64) -> Option<u64> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((until, first)) = inner.order.first().copied().filter(|(until, _)| *until <= now) {
            inner.order.remove(&(until, first));
            inner.replenished_at.remove(&first);
        }
        inner.replenished_at.get(&key).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_is_bounded_and_the_most_limited_caller_is_kept() {
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
    fn a_refused_call_changes_no_state() {
        let store = Bounded::of(10);
        store.measure_and_replace::<(), _, ()>(&1, |_| Ok(((), Nanos::new(7)))).expect("set");
        assert_eq!(store.measure_and_replace::<(), _, _>(&1, |_| Err(())), Err(()));
        assert_eq!(store.measure_and_replace::<_, _, ()>(&1, |b| Ok((b, Nanos::new(8)))), Ok(Some(Nanos::new(7))));
    }

    #[test]
    fn a_lockout_ends_at_its_time() {
        let locked = Lockouts::default();
        locked.insert(1, 100);
        locked.insert(2, 200);
        assert_eq!((locked.until(1, 99), locked.until(1, 100), locked.until(2, 100)), (Some(100), None, Some(200)));
    }
}
