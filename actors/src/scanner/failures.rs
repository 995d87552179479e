//! Why the scanner cannot go on, what is logged about it, and whether the nodes serve another chain than the one read so far.

use std::time::Duration;

use storage::{CommitError, ReadError};
use tokio::time::Instant;

use crate::{
    chain::{ledger_view::LedgerView, nodes::pool::NodesError},
    merchants::messages::MerchantError,
    payments::messages::SessionError,
};

/// Successive polls in which an irreversible block does not follow the newest one read, until the chain counts as another
/// one: a node behind a load balancer may contradict itself once.
const MAX_MISMATCHES: u32 = 3;
/// How often an obstacle that lasts is logged.
const OBSTACLE_LOG_INTERVAL: Duration = Duration::from_secs(300);

/// Why a poll ended early; the next one goes on from where the cursor stands.
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

/// What stops the scanner.
#[derive(Debug, Default)]
pub(super) struct Failures {
    /// The text of the obstacle, and when it was last logged.
    obstacle: Option<(String, Instant)>,
    /// Polls in which an irreversible block did not follow the newest one read, since one did.
    mismatches: u32,
}

impl Failures {
    /// Notes an obstacle that only time or a person removes.
    pub(super) fn stopped_by(&mut self, error: &PollError, view: &LedgerView, now: Instant) {
        if matches!(error, PollError::BrokenChain(_)) {
            self.mismatches = self.mismatches.saturating_add(1);
            if self.mismatches >= MAX_MISMATCHES {
                view.record_chain(false);
            }
        }
        // The same obstacle at every poll is one obstacle.
        let text = error.to_string();
        let is_logged = |(logged, at): &(String, Instant)| {
            *logged == text && now.saturating_duration_since(*at) < OBSTACLE_LOG_INTERVAL
        };
        if !self.obstacle.as_ref().is_some_and(is_logged) {
            tracing::error!(%error, "scanner stopped, retrying: {error}");
            self.obstacle = Some((text, now));
        }
    }

    /// Notes that a poll succeeded.
    pub(super) fn forget_obstacle(&mut self) {
        self.obstacle = None;
    }

    /// Notes that the nodes serve the chain that was read so far.
    pub(super) fn chain_matches(&mut self, view: &LedgerView) {
        self.mismatches = 0;
        view.record_chain(true);
    }
}
