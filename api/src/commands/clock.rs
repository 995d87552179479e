//! Whether this machine's clock can be right, by what the ledger's nodes say.

use std::{sync::Arc, time::Duration};

use actors::environment::{Clock, Node};
use engine::time::Timestamp;
use futures_util::future::join_all;

use super::failure::Failure;

/// How far a clock may be off before everything that goes by it goes wrong.
pub(super) const ALLOWANCE: Duration = Duration::from_secs(30);

/// Refuses to start with a clock that every node's newest block proves to be behind: no head would be believed and no
/// payment seen. A clock that is ahead looks like a chain that stands still, and is only told of.
pub(super) async fn check(clock: &dyn Clock, nodes: &[Arc<dyn Node>]) -> Result<(), Failure> {
    let asked = join_all(nodes.iter().map(|node| node.head())).await;
    let heads: Vec<Timestamp> = asked.into_iter().filter_map(|head| Some(head.ok()?.time)).collect();
    let now = clock.now();
    if let Some(behind) = behind(now, &heads) {
        return Err(Failure::Clock { behind });
    }
    if let Some(newest) = heads.iter().max().filter(|newest| now.since(**newest) > ALLOWANCE * 10) {
        let seconds = now.since(*newest).as_secs();
        tracing::warn!(seconds, "head block is {seconds} s old: the chain is stalled, or the system clock is ahead");
    }
    Ok(())
}

/// Returns how far the clock is behind at least, if more than is allowed. One node with a head of the future lies; all
/// of them do not.
pub(super) fn behind(now: Timestamp, heads: &[Timestamp]) -> Option<Duration> {
    let oldest = heads.iter().min()?;
    Some(oldest.since(now)).filter(|behind| *behind > ALLOWANCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_behind_when_every_head_is_of_its_future() {
        let at = |seconds: u64| Timestamp::from_millis(1_700_000_000_000 + seconds * 1_000);
        assert_eq!(behind(at(0), &[]), None);
        assert_eq!(behind(at(0), &[at(30)]), None);
        assert_eq!(behind(at(0), &[at(31)]), Some(Duration::from_secs(31)));
        assert_eq!(behind(at(0), &[at(3_600), at(0)]), None, "one of them lies");
        assert_eq!(behind(at(0), &[at(3_600), at(3_603)]), Some(Duration::from_secs(3_600)));
        assert_eq!(behind(at(7_200), &[at(3_600)]), None, "ahead is another matter");
    }
}
