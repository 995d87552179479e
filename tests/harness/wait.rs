//! Waiting for a state, with an end; the one place of the tests that reads a clock or starts a thread.

use std::{thread::JoinHandle, time::Duration};

/// How long anything may take before its test fails. Far more than it takes, so that a busy machine fails nothing.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How often a state is looked at.
const GLANCE: Duration = Duration::from_millis(20);

/// Measures time from its making.
#[derive(Clone, Copy)]
pub(crate) struct Stopwatch(std::time::Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "the tests' deadlines are the machine's own time")]
    pub(crate) fn start() -> Self {
        Self(std::time::Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// Looks until there is something, and fails the test when its patience ends.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let watch = Stopwatch::start();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(watch.elapsed() < PATIENCE, "waited {PATIENCE:?} for {what}");
        pause(GLANCE);
    }
}

/// Lets the others work for a while. Only for looking again, and for proving that nothing happens.
#[expect(clippy::disallowed_methods, reason = "the tests' threads may block")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Does something beside the test.
#[expect(clippy::disallowed_methods, reason = "the tests' helpers listen beside them")]
pub(crate) fn background<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    std::thread::spawn(work)
}
