//! A check of the system clock against the head blocks of the ledger nodes.

use std::{sync::Arc, time::Duration};

use actors::environment::{Clock, Node};
use engine::time::Timestamp;
use futures_util::future::join_all;

use super::failure::Failure;

/// Maximum tolerated error of the system clock.
pub(super) const MAX_ERROR: Duration = Duration::from_secs(30);

/// Checks that the system clock is not behind the head blocks of all nodes: the engine would reject every head and detect
/// no payment. A clock that is ahead cannot be distinguished from a stalled chain and only logs a warning.
///
/// # Errors
/// [`Failure::Clock`].
pub(super) async fn check(clock: &dyn Clock, nodes: &[Arc<dyn Node>]) -> Result<(), Failure> {
    let heads = join_all(nodes.iter().map(|node| node.head())).await;
    let heads: Vec<Timestamp> = heads.into_iter().filter_map(|head| Some(head.ok()?.time)).collect();
    let now = clock.now();
    if let Some(behind) = behind(now, &heads) {
        return Err(Failure::Clock { behind });
    }
    if let Some(newest) = heads.iter().max().filter(|newest| now.since(**newest) > MAX_ERROR * 10) {
        let seconds = now.since(*newest).as_secs();
        tracing::warn!(seconds, "head block is {seconds} s old: the chain is stalled, or the system clock is ahead");
    }
    Ok(())
}

/// Returns the minimum delay of the clock behind the ledger, if it exceeds [`MAX_ERROR`]. A single head in the future is a
/// faulty node; if all heads are in the future, the clock is wrong.
pub(super) fn behind(now: Timestamp, heads: &[Timestamp]) -> Option<Duration> {
    let oldest = heads.iter().min()?;
    Some(oldest.since(now)).filter(|behind| *behind > MAX_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_behind_if_all_heads_are_in_its_future() {
        let at = |seconds: u64| Timestamp::from_millis(1_700_000_000_000 + seconds * 1_000);
        assert_eq!(behind(at(0), &[]), None);
        assert_eq!(behind(at(0), &[at(30)]), None);
        assert_eq!(behind(at(0), &[at(31)]), Some(Duration::from_secs(31)));
        assert_eq!(behind(at(0), &[at(3_600), at(0)]), None, "a single head is a faulty node");
        assert_eq!(behind(at(0), &[at(3_600), at(3_603)]), Some(Duration::from_secs(3_600)));
        assert_eq!(behind(at(7_200), &[at(3_600)]), None, "a clock that is ahead");
    }
}
