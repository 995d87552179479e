//! Blocks: as many nodes as must agree are asked at once, the others after a while, on failure or disagreement.

use std::sync::Arc;

use engine::ledger::Block;

use super::{
    majority,
    pool::{Nodes, NodesError, Plan, STRAGGLER_TIMEOUT},
    round::RoundStatus,
};
use crate::environment::Node;

/// Whether blocks can still change. Nodes that differ about those that can do not lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// They cannot.
    Irreversible,
    /// They can.
    Reversible,
}

/// Judges the answers about `count` blocks: the whole range as soon as enough agree on it, a part of it once those that
/// were asked have nothing more to say.
pub(super) fn decide(answers: &[(usize, Vec<Block>)], count: usize, status: RoundStatus) -> Option<Vec<Block>> {
    let given: Vec<&[Block]> = answers.iter().map(|(_, blocks)| blocks.as_slice()).collect();
    let agreed = majority::blocks(&given, count, status.needed);
    let is_all = agreed.len() == count;
    let is_some = !agreed.is_empty() && (status.is_complete || status.is_timed_out);
    (is_all || is_some).then_some(agreed)
}

impl Nodes {
    /// Returns blocks from `from` on, at most `count`, each given alike by as many nodes as must agree.
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
