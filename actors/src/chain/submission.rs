//! Submits a signed transaction to the nodes and interprets their replies.

use std::time::Duration;

use engine::{
    ledger::TxId,
    mutant,
    time::Timestamp,
    x402::{ClaimOutcome, Reason, Refused},
};
use storage::{Batch, CommitError, Write};

use crate::{
    chain::{ledger::Ledger, nodes::majority::BroadcastOutcome},
    context::Context,
    environment::{NodeError, TxStatus},
};

/// Interval between attempts to share a claim while the store cannot be written.
const SHARE_RETRY: Duration = Duration::from_secs(1);
/// Maximum time a caller waits for the outcome; after that it receives `settlement_pending`.
pub(crate) const MAX_WAIT_FOR_OUTCOME: Duration = Duration::from_secs(20);

/// Marks a claim as shared, so that another engine may broadcast its transaction; afterwards no engine treats a refusal
/// as final. Returns whether the claim is still open.
pub(crate) async fn shared(context: &Context, tx_id: TxId) -> bool {
    // An exclusive engine knows its own broadcasts.
    if !context.env.store.is_shared() || mutant!("unshared-refusal") {
        return true;
    }
    loop {
        let share = Write::ClaimOutcome { tx_id, expected: ClaimOutcome::Open, outcome: ClaimOutcome::Shared };
        match context.env.store.commit(Batch::of(share)).await {
            Ok(()) => {
                context.env.probe.reach("settlement: claim shared, not broadcast");
                return true;
            }
            Err(CommitError::Conflict { .. }) => {
                // The claim of a damaged record may be shared: its transaction is followed.
                match context.sound(context.env.store.claim(tx_id).await) {
                    Ok(claimed) => return claimed.is_none_or(|claimed| claimed.is_some_and(|it| it.outcome.is_open())),
                    Err(error) => context.read_failed(&error),
                }
            }
            Err(error) => context.commit_failed(&error),
        }
        tokio::time::sleep(SHARE_RETRY).await;
    }
}

/// The outcome of submitting a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SubmitOutcome {
    /// A majority of the nodes accepted it or already had it.
    Accepted,
    /// A majority of the nodes refused it, and none has it.
    Refused(Refused),
    /// At least one node may have it.
    Unknown,
}

/// Submits a transaction to every node. `possibly_sent` is whether a node may have it already; it becomes true when a
/// node accepts it, or a response is lost.
pub(crate) async fn submit(
    context: &Context,
    ledger: &Ledger,
    tx_id: TxId,
    signed_json: &str,
    expiration: Timestamp,
    possibly_sent: &mut bool,
) -> SubmitOutcome {
    context.env.probe.reach("settlement: claimed, not broadcast");
    let outcome = ledger.nodes.broadcast(signed_json).await;
    context.env.probe.reach("settlement: broadcast, not recorded");
    let refusal = match outcome {
        BroadcastOutcome::Accepted => {
            *possibly_sent = true;
            return SubmitOutcome::Accepted;
        }
        BroadcastOutcome::Refused(error) => refused(&error, tx_id),
        BroadcastOutcome::PossiblySent => {
            *possibly_sent = true;
            return SubmitOutcome::Unknown;
        }
        BroadcastOutcome::NotSent => return SubmitOutcome::Unknown,
    };
    if mutant!("lost-response-is-refusal") || mutant!("one-refusal-is-enough") {
        return SubmitOutcome::Refused(refusal);
    }
    if *possibly_sent && !mutant!("refused-though-taken") {
        return SubmitOutcome::Unknown;
    }
    // The payer or another facilitator may have broadcast it.
    match ledger.nodes.find_transaction(tx_id, expiration).await {
        Ok(TxStatus::Unknown | TxStatus::ExpiredReversible | TxStatus::ExpiredIrreversible) => {
            SubmitOutcome::Refused(refusal)
        }
        Ok(_) => {
            *possibly_sent = true;
            SubmitOutcome::Accepted
        }
        Err(_) => SubmitOutcome::Unknown,
    }
}

/// Maps a node's refusal to an x402 reason. The message does not contain the node's own error text.
fn refused(error: &NodeError, tx_id: TxId) -> Refused {
    let NodeError::Rpc { data_code, message, .. } = error else {
        return Refused::new(Reason::UnexpectedSettleError, "no ledger node responds");
    };
    let (reason, sentence) = match data_code {
        Some(4_100_100) => (Reason::InvalidTransactionState, "the payer has not enough resource credits"),
        Some(4_030_100) => (Reason::PaymentExpired, "the transaction has expired"),
        Some(4_030_200) => {
            (Reason::InvalidTransactionState, "the transaction refers to a block the chain does not know")
        }
        Some(3_010_000) => (Reason::Authority, "the signatures do not have the payer's active authority"),
        Some(3_060_000) => (Reason::Signature, "one key has signed twice"),
        _ if message.contains("does not have sufficient funds") => {
            (Reason::InsufficientFunds, "the payer has not enough funds")
        }
        _ => (Reason::InvalidTransactionState, "the chain refuses the transaction"),
    };
    tracing::info!(%tx_id, %error, "ledger refused {tx_id}: {error}");
    Refused::new(reason, sentence)
}
