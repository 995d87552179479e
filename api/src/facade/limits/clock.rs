//! A monotonic clock for the limiter, so that a wall clock that is set back locks nobody out.

use std::sync::{Arc, Mutex, PoisonError};

use engine::time::Timestamp;
use governor::{clock, nanos::Nanos};

/// Returns the current time.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Counts the time that passes on a wall clock; setting it back counts as no time.
#[derive(Clone)]
pub(crate) struct MonotonicClock {
    now: Now,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    wall_ms: u64,
    elapsed_ms: u64,
}

impl MonotonicClock {
    pub(crate) fn of(now: Now) -> Self {
        let wall_ms = now().millis();
        Self { now, seen: Arc::new(Mutex::new(Seen { wall_ms, elapsed_ms: 0 })) }
    }

    /// Returns the nanoseconds since the clock was created.
    pub(crate) fn nanos(&self) -> u64 {
        let wall_ms = (self.now)().millis();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.elapsed_ms += wall_ms.saturating_sub(seen.wall_ms);
        seen.wall_ms = wall_ms;
        seen.elapsed_ms.saturating_mul(1_000_000)
    }
}

impl clock::Clock for MonotonicClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::new(self.nanos())
    }
}

impl std::fmt::Debug for MonotonicClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MonotonicClock").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn a_wall_clock_that_is_set_back_does_not_set_the_clock_back() {
        let wall = Arc::new(AtomicU64::new(10_000));
        let read = Arc::clone(&wall);
        let clock = MonotonicClock::of(Arc::new(move || Timestamp::from_millis(read.load(Ordering::Relaxed))));
        for (at, elapsed_ms) in [(10_000, 0), (10_005, 5), (2_000, 5), (2_001, 6), (20_000, 18_005)] {
            wall.store(at, Ordering::Relaxed);
            assert_eq!(clock.nanos(), elapsed_ms * 1_000_000, "{at}");
        }
    }
}
