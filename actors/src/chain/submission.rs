//! Submits a signed transaction to the nodes and interprets their replies.

use std::time::Duration;

use engine::{
    ledger::TxId,
    mutant,
    time::Timestamp,
    x402::{Reason, Refused},
};

use crate::{
    chain::{ledger::Ledger, nodes::majority::BroadcastOutcome},
    context::Context,
    environment::{NodeError, TxStatus},
};

/// Maximum time a caller waits for the outcome; after that it receives `settlement_pending`.
pub(crate) const MAX_WAIT_FOR_OUTCOME: Duration = Duration::from_secs(20);

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

/// Submits a transaction to every node. `possibly_sent` says whether somebody may have it already; it becomes true when a
/// node takes it, or an answer is lost, without a majority that decides.
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
        BroadcastOutcome::Accepted => return SubmitOutcome::Accepted,
        BroadcastOutcome::Refused(error) => refused(&error, tx_id),
        BroadcastOutcome::PossiblySent => {
            *possibly_sent = true;
            return SubmitOutcome::Unknown;
        }
        BroadcastOutcome::NotSent => return SubmitOutcome::Unknown,
    };
    if mutant!("lost-answer-is-refusal") || mutant!("one-refusal-is-enough") {
        return SubmitOutcome::Refused(refusal);
    }
    if *possibly_sent {
        return SubmitOutcome::Unknown;
    }
    // The payer or another facilitator may have broadcast it.
    match ledger.nodes.find_transaction(tx_id, expiration).await {
        Ok(TxStatus::Unknown | TxStatus::ExpiredReversible | TxStatus::ExpiredIrreversible) => {
            SubmitOutcome::Refused(refusal)
        }
        Ok(_) => SubmitOutcome::Accepted,
        Err(_) => SubmitOutcome::Unknown,
    }
}

/// Maps a node's refusal to an x402 reason. The message contains nothing of the node's own error text.
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
