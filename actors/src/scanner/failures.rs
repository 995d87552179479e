//! Why the scanner cannot continue, how it is logged, and whether the nodes serve another chain than the one scanned so
//! far.

use std::time::Duration;

use storage::{CommitError, ReadError};
use tokio::time::Instant;

use crate::{
    chain::{ledger_view::LedgerView, nodes::pool::NodesError},
    merchants::messages::MerchantError,
    payments::messages::SessionError,
};

/// Consecutive polls with an irreversible block that does not follow the last scanned one, after which the nodes count
/// as serving another chain: a node behind a load balancer may contradict itself once.
const MAX_MISMATCHES: u32 = 3;
/// Interval of logging a persistent obstacle.
const OBSTACLE_LOG_INTERVAL: Duration = Duration::from_secs(300);

/// Why a poll ended early; the next one continues from the cursor.
#[derive(Debug, thiserror::Error)]
pub(super) enum PollError {
    #[error(transparent)]
    Nodes(#[from] NodesError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Commit(#[from] CommitError),
    #[error("a session refused a credit: {0}")]
    Session(#[from] SessionError),
    #[error("cannot store the proof of an account: {0}")]
    Proof(#[from] MerchantError),
    #[error(
        "block {0} does not follow the block read before it: the nodes serve another chain than the one this store has read"
    )]
    BrokenChain(u32),
    #[error("the node returned block {given} instead of {wanted}")]
    WrongBlock { wanted: u32, given: u32 },
}

/// The obstacle of the scanner.
#[derive(Debug, Default)]
pub(super) struct Failures {
    /// The text of the obstacle, and when it was last logged.
    obstacle: Option<(String, Instant)>,
    /// Consecutive polls with an irreversible block that did not follow the last scanned one.
    mismatches: u32,
}

impl Failures {
    /// Records an obstacle.
    pub(super) fn stopped_by(&mut self, error: &PollError, view: &LedgerView, now: Instant) {
        if matches!(error, PollError::BrokenChain(_)) {
            self.mismatches = self.mismatches.saturating_add(1);
            if self.mismatches >= MAX_MISMATCHES {
                view.record_chain(false);
            }
        }
        // The same obstacle at every poll counts once.
        let text = error.to_string();
        let is_logged = |(logged, at): &(String, Instant)| {
            *logged == text && now.saturating_duration_since(*at) < OBSTACLE_LOG_INTERVAL
        };
        if !self.obstacle.as_ref().is_some_and(is_logged) {
            tracing::error!(%error, "scanner stopped, retrying: {error}");
            self.obstacle = Some((text, now));
        }
    }

    /// Records that a poll succeeded.
    pub(super) fn forget_obstacle(&mut self) {
        self.obstacle = None;
    }

    /// Records that the nodes serve the chain that was scanned so far.
    pub(super) fn chain_matches(&mut self, view: &LedgerView) {
        self.mismatches = 0;
        view.record_chain(true);
    }
}
