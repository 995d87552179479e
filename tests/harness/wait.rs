//! Waiting for a state with a timeout: the only place in the tests that reads a clock or starts a thread.

use std::{thread::JoinHandle, time::Duration};

/// A test fails after waiting this long. Far more than anything takes, so that a busy machine fails no test.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// How often a state is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Measures elapsed time from its creation.
#[derive(Clone, Copy)]
pub(crate) struct Stopwatch(std::time::Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "deadlines of tests are real time")]
    pub(crate) fn start() -> Self {
        Self(std::time::Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// Polls until there is a result, and fails the test after [`TIMEOUT`].
#[track_caller]
pub(crate) fn until<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let watch = Stopwatch::start();
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(watch.elapsed() < TIMEOUT, "waited {TIMEOUT:?} for {what}");
        pause(POLL_INTERVAL);
    }
}

/// Sleeps. Only for polling, and for showing that nothing happens.
#[expect(clippy::disallowed_methods, reason = "the tests' threads may block")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Runs a function in a thread beside the test.
#[expect(clippy::disallowed_methods, reason = "the tests' helpers listen beside them")]
pub(crate) fn background<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    std::thread::spawn(work)
}
