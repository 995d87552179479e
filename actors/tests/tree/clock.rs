//! Time and randomness under control of a test.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

use actors::environment::{Clock, Entropy};
use engine::time::Timestamp;

use super::environment::BEGIN;

/// The paused clock of the test's runtime, as wall time.
pub(crate) struct PausedClock(pub(crate) tokio::time::Instant, pub(crate) Arc<AtomicU64>);

impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_seconds(BEGIN + self.1.load(Ordering::SeqCst)) + self.0.elapsed()
    }
}

/// A fixed stream of numbers.
pub(crate) struct Seeded(pub(crate) Mutex<u64>);

impl Entropy for Seeded {
    fn fill(&self, out: &mut [u8]) {
        let mut state = self.0.lock().unwrap();
        for byte in out {
            *state ^= *state << 13;
            *state ^= *state >> 7;
            *state ^= *state << 17;
            *byte = state.to_le_bytes()[3];
        }
    }
}
