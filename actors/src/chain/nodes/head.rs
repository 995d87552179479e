//! The head block that a majority of the nodes has reached, without waiting for slower nodes.

use std::sync::Arc;

use engine::{ledger::Head, mutant};

use super::{
    majority,
    pool::{Nodes, NodesError, STRAGGLER_TIMEOUT, Shared, catch_panic, drive},
    round::{Round, RoundStatus},
};
use crate::environment::{Node, NodeError};

/// Returns whether the heads of a round suffice: `needed` fresh ones, or those of any majority after the timeout.
pub(crate) fn is_enough(heads: &[u32], expected: Option<u32>, status: RoundStatus) -> bool {
    if heads.len() < status.needed {
        return false;
    }
    let fresh = expected.map_or(0, |expected| heads.iter().filter(|num| majority::is_fresh(**num, expected)).count());
    fresh >= status.needed || status.may_end()
}

impl Nodes {
    /// Returns the head block. Queries all nodes at once; the first majority of fresh heads decides.
    ///
    /// A head is a lower bound that never expires: the last head of a slow node counts until it reports a higher one.
    pub(crate) async fn head(&self) -> Result<Head, NodesError> {
        let nodes = self.shared.slots.len();
        let mut heads = self.heads.lock().await;
        // Responses to earlier rounds are already recorded, and must not count for this round.
        while heads.answers.try_recv().is_ok() {}
        let mut round = Round::new(nodes, nodes, self.shared.needed);
        let mut last = None;
        for (place, slot) in self.shared.slots.iter().enumerate() {
            if slot.is_backing_off() || (mutant!("head-from-quorum-only") && place >= self.shared.needed) {
                round.answered(place, None);
            } else if slot.begin_head_request() {
                let (shared, sender) = (Arc::clone(&self.shared), heads.sender.clone());
                tokio::spawn(async move {
                    let answer = catch_panic(shared.query_head(place)).await;
                    let _ = sender.send((place, answer));
                });
            }
        }
        let decide = |heads: &[(usize, Head)], status| {
            let nums: Vec<u32> = heads.iter().map(|(_, head)| head.block_id.number()).collect();
            is_enough(&nums, self.shared.expected.extrapolated(), status).then_some(())
        };
        let decided = drive(
            &mut round,
            &mut heads.answers,
            |_| STRAGGLER_TIMEOUT,
            |_| {},
            decide,
            |place, answer| answer.inspect_err(|error| last = Some(self.shared.describe(place, error))).ok(),
        );
        let decided = decided.await;
        self.shared.publish_condition();
        match decided.and_then(|()| self.shared.known_head()) {
            Some(head) => Ok(head),
            None => Err(NodesError::Unavailable(last.unwrap_or_else(|| "too few nodes respond".to_owned()))),
        }
    }
}

impl Shared {
    async fn query_head(&self, place: usize) -> Result<Head, NodeError> {
        let answer =
            self.query_node(place, "head", &|node: Arc<dyn Node>| Box::pin(async move { node.head().await })).await;
        self.slots[place].end_head_request(&answer);
        if let Some(head) = self.known_head() {
            self.expected.record_reached(head.block_id.number());
        }
        answer
    }

    /// Returns the head block of a majority of the last known heads.
    fn known_head(&self) -> Option<Head> {
        let heads: Vec<Head> = self.slots.iter().filter_map(|slot| slot.head()).collect();
        majority::head(&heads, self.needed)
    }
}
