//! Broadcasts: every node gets the transaction at once, because a single node may accept and then drop it.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{
    majority::{self, BroadcastOutcome, Reply},
    pool::Nodes,
    round::RoundStatus,
};
use crate::environment::Node;

/// Decides on the replies: acceptance by a majority at once, any other outcome after the timeout.
pub(super) fn decide(replies: &[(usize, Reply)], status: RoundStatus) -> Option<BroadcastOutcome> {
    let replies: Vec<Reply> = replies.iter().map(|(_, reply)| reply.clone()).collect();
    match majority::broadcast(&replies, status.needed) {
        BroadcastOutcome::Accepted => Some(BroadcastOutcome::Accepted),
        // A node that has not replied yet may still accept it.
        BroadcastOutcome::NotSent if !status.is_over => None,
        outcome => status.may_end().then_some(outcome),
    }
}

impl Nodes {
    /// Broadcasts a signed transaction to every node. Nodes deduplicate it by its transaction id.
    pub(crate) async fn broadcast(&self, signed_json: &str) -> BroadcastOutcome {
        let signed: Arc<str> = Arc::from(signed_json);
        let request_to = move |node: Arc<dyn Node>| -> BoxFuture<'static, _> {
            let signed = signed.to_string();
            Box::pin(async move { node.broadcast(signed).await })
        };
        let read = |response| Some(Reply::of(response)).filter(|reply| *reply != Reply::NotSent);
        let result = self.shared.query(self.to_all("broadcast"), request_to, read, decide).await;
        result.decision.unwrap_or(BroadcastOutcome::NotSent)
    }
}
