//! Ids of commits, and the pauses between attempts.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::{postgres::values::Id, store::error::OpenError};

/// Makes ids that no other process makes: 64 random bits of this process, and a number that grows, so that they are next to one
/// another in the index.
#[derive(Debug)]
pub(crate) struct Ids {
    process: u64,
    next: AtomicU64,
}

impl Ids {
    /// Draws the bits of this process.
    ///
    /// # Errors
    /// [`OpenError::Failed`] if the operating system has no randomness.
    pub(crate) fn draw() -> Result<Self, OpenError> {
        let mut bits = [0; 8];
        getrandom::fill(&mut bits).map_err(|error| OpenError::Failed(error.to_string()))?;
        Ok(Self { process: u64::from_be_bytes(bits), next: AtomicU64::new(1) })
    }

    /// Returns the next id.
    pub(crate) fn next(&self) -> Id {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        Id(u128::from(self.process) << 64 | u128::from(number))
    }

    /// Returns the slot of sums that this process adds to. Processes with the same slot contend for its rows.
    pub(crate) const fn slot(&self) -> i16 {
        (self.process % SLOTS) as i16
    }
}

/// Rows of sums of one merchant at most.
const SLOTS: u64 = 16;
/// The longest pause.
const LONGEST: Duration = Duration::from_millis(200);

/// Returns the pause before an attempt, from 1: it doubles from 1 ms on, and half of it is random.
pub(crate) fn pause(attempt: u32) -> Duration {
    let most = Duration::from_millis(1 << attempt.min(8)).min(LONGEST);
    let mut bits = [0; 4];
    // Without randomness there is no jitter, which only costs time.
    let _ = getrandom::fill(&mut bits);
    let half = most / 2;
    let nanos = u64::try_from(half.as_nanos()).unwrap_or(0);
    half + Duration::from_nanos((nanos * u64::from(u32::from_be_bytes(bits))) >> 32)
}
