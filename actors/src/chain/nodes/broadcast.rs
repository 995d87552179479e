//! Broadcasts: every node gets the transaction at once, because one of them may accept it and throw it away.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{
    majority::{self, Broadcast, Reply},
    pool::Nodes,
    round::Progress,
};
use crate::environment::Node;

/// Judges the replies: an acceptance by a majority at once; anything else once slower nodes are no longer waited for.
pub(super) fn judge(replies: &[(usize, Reply)], progress: Progress) -> Option<Broadcast> {
    let replies: Vec<Reply> = replies.iter().map(|(_, reply)| reply.clone()).collect();
    match majority::broadcast(&replies, progress.needed) {
        Broadcast::Accepted => Some(Broadcast::Accepted),
        // A node that is still waited for may have it.
        Broadcast::NotSent if !progress.is_over => None,
        outcome => progress.may_end().then_some(outcome),
    }
}

impl Nodes {
    /// Hands a signed transaction to every node. The same bytes at several nodes are one transaction.
    pub(crate) async fn broadcast(&self, signed_json: &str) -> Broadcast {
        let signed: Arc<str> = Arc::from(signed_json);
        let question = move |node: Arc<dyn Node>| -> BoxFuture<'static, _> {
            let signed = signed.to_string();
            Box::pin(async move { node.broadcast(signed).await })
        };
        let read = |answer| Some(Reply::of(answer)).filter(|reply| *reply != Reply::NotSent);
        let asked = self.shared.ask(self.to_all("broadcast"), question, read, judge).await;
        asked.decision.unwrap_or(Broadcast::NotSent)
    }
}
