//! The engine's time, from which sessions are created and webhooks are signed, and jumps of the wall clock.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use engine::time::Timestamp;
use tokio::time::Instant;

use crate::environment::Clock;

/// Maximum drift between the clocks from one comparison to the next. Time servers slew by less.
const ALLOWANCE: Duration = Duration::from_secs(2);

/// The engine's time: the later of the wall clock and the newest head block.
pub(crate) struct EngineClock {
    wall: Arc<dyn Clock>,
    head_time_ms: AtomicU64,
    watch: ClockWatch,
}

impl EngineClock {
    pub(crate) fn new(wall: Arc<dyn Clock>) -> Self {
        Self { wall, head_time_ms: AtomicU64::new(0), watch: ClockWatch::default() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.wall.now().max(Timestamp::from_millis(self.head_time_ms.load(Ordering::Relaxed)))
    }

    /// Records the time of a head block. The engine's time never falls behind it.
    pub(crate) fn record_head(&self, time: Timestamp) {
        self.head_time_ms.fetch_max(time.millis(), Ordering::Relaxed);
    }

    /// Returns the jump of the wall clock since the last call, if there is one.
    pub(crate) fn jump(&self) -> Option<Jump> {
        self.watch.look(self.wall.now())
    }
}

/// Compares the wall clock with the monotonic clock.
#[derive(Debug, Default)]
struct ClockWatch(Mutex<Option<(Timestamp, Instant)>>);

/// A jump of the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Jump {
    /// The size of the jump.
    pub(crate) by: Duration,
    /// Whether the clock was set back.
    pub(crate) is_back: bool,
}

impl ClockWatch {
    /// Compares both clocks; returns the jump of the wall clock since the last comparison, if there is one.
    fn look(&self, wall: Timestamp) -> Option<Jump> {
        let now = Instant::now();
        let before = self.0.lock().unwrap_or_else(PoisonError::into_inner).replace((wall, now));
        let (wall_before, before) = before?;
        let expected = wall_before + now.duration_since(before);
        let (ahead, behind) = (wall.since(expected), expected.since(wall));
        (ahead.max(behind) > ALLOWANCE).then(|| Jump { by: ahead.max(behind), is_back: behind > ahead })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_jump_either_way_is_noticed_once_and_a_drift_is_not() {
        let watch = ClockWatch::default();
        let at = Timestamp::from_seconds;
        assert_eq!(watch.look(at(1_000_000)), None, "nothing to compare with");
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(watch.look(at(1_000_061)), None, "a second in a minute is drift");
        let hour = Duration::from_secs(3_600);
        assert_eq!(watch.look(at(1_003_661)), Some(Jump { by: hour, is_back: false }));
        assert_eq!(watch.look(at(1_003_661)), None);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(watch.look(at(1_000_071)), Some(Jump { by: hour, is_back: true }));
    }
}
