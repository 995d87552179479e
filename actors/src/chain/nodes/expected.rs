//! The head block that a majority has reached, and its extrapolation to the present.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use engine::ledger::Head;
use tokio::{sync::mpsc, time::Instant};

use crate::environment::NodeError;

/// The time between two blocks of the chain.
const BLOCK_INTERVAL: Duration = Duration::from_secs(3);

/// The head block that a majority has reached, and its extrapolation by the monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct Expected(Mutex<Option<(u32, Instant)>>);

impl Expected {
    /// Records the head block that a majority has reached; lower numbers are ignored.
    pub(super) fn record_reached(&self, num: u32) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none_or(|(before, _)| num > before) {
            *known = Some((num, Instant::now()));
        }
    }

    /// Returns the head block that a majority has reached; 0 before the first.
    pub(crate) fn reached(&self) -> u32 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).map_or(0, |(num, _)| num)
    }

    /// Returns the time since the head block last advanced; `None` before the first.
    pub(crate) fn age(&self) -> Option<Duration> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).map(|(_, at)| at.elapsed())
    }

    /// Returns the expected head block, at one block per three seconds; `None` before the first.
    pub(super) fn extrapolated(&self) -> Option<u32> {
        let known = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.map(|(num, at)| {
            let blocks = at.elapsed().as_millis() / BLOCK_INTERVAL.as_millis();
            num.saturating_add(u32::try_from(blocks).unwrap_or(u32::MAX))
        })
    }
}

/// Channel for heads reported by nodes; responses that arrive after a round stay queued until the next.
pub(super) struct Heads {
    pub(super) sender: mpsc::UnboundedSender<(usize, Result<Head, NodeError>)>,
    pub(super) answers: mpsc::UnboundedReceiver<(usize, Result<Head, NodeError>)>,
}

impl Default for Heads {
    fn default() -> Self {
        let (sender, answers) = mpsc::unbounded_channel();
        Self { sender, answers }
    }
}
