//! Blocks: queries as many nodes as must agree, and the others after a timeout, a failure or a disagreement.

use std::sync::Arc;

use engine::ledger::Block;

use super::{
    majority,
    pool::{Nodes, NodesError, Plan, STRAGGLER_TIMEOUT},
    round::RoundStatus,
};
use crate::environment::Node;

/// Whether blocks can still change. Nodes may legitimately differ about reversible blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// The blocks are final.
    Irreversible,
    /// A fork can replace the blocks.
    Reversible,
}

/// Decides on `count` blocks: the whole range as soon as enough nodes agree on it, or its agreed beginning once every
/// queried node has responded or the timeout has passed.
pub(super) fn decide(answers: &[(usize, Vec<Block>)], count: usize, status: RoundStatus) -> Option<Vec<Block>> {
    let given: Vec<&[Block]> = answers.iter().map(|(_, blocks)| blocks.as_slice()).collect();
    let agreed = majority::blocks(&given, count, status.needed);
    let is_all = agreed.len() == count;
    let is_some = !agreed.is_empty() && (status.is_complete || status.is_timed_out);
    (is_all || is_some).then_some(agreed)
}

impl Nodes {
    /// Returns at most `count` blocks starting at `from`, each confirmed by as many nodes as must agree.
    pub(crate) async fn blocks(&self, from: u32, count: u32, depth: Depth) -> Result<Vec<Block>, NodesError> {
        let needed = self.shared.needed;
        let plan = Plan { request: "blocks", first: needed, needed, timeout: STRAGGLER_TIMEOUT };
        let request_to = move |node: Arc<dyn Node>| -> futures_util::future::BoxFuture<'static, _> {
            Box::pin(async move { node.blocks(from, count).await })
        };
        let decide = |answers: &[_], status| decide(answers, count as usize, status);
        let result = self.shared.query(plan, request_to, Result::ok, decide).await;
        if depth == Depth::Irreversible
            && let Some(agreed) = &result.decision
        {
            for (place, blocks) in &result.answers {
                if let Some((block, _)) = agreed.iter().zip(blocks).find(|(ours, theirs)| ours != theirs) {
                    self.shared.record_contradiction([*place], &format!("block {}", block.number()));
                }
            }
        }
        result.decided(|| format!("block {from}"), needed)
    }
}
