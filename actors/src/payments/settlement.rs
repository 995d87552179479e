//! Brings a claimed transaction onto the chain, beside the mailbox of its session.
//!
//! The same bytes have the same id, so handing them in twice cannot pay twice. What matters is never to call an
//! unknown outcome a failure: only the refusal of a majority while no node has it, or an irreversible block past the
//! expiration, end a claim.

use std::{sync::Arc, time::Duration};

use engine::{
    ids::PaymentId,
    ledger::TxId,
    mutant,
    payment::{Claim, ClaimFinality, Command},
    time::Timestamp,
    x402::{Reason, Refused},
};
use ractor::ActorRef;

use crate::{
    chain::nodes::Broadcast,
    context::Context,
    environment::{NodeError, TxStatus},
    payments::{payment::Order, registry},
};

/// How long a payer waits for an outcome; longer is `settlement_pending`.
pub(crate) const HOLD: Duration = Duration::from_secs(20);
/// How often a transaction that nobody has taken is handed in again, and one that somebody has.
const RETRY: Duration = Duration::from_millis(500);
const REPEAT: Duration = Duration::from_secs(15);
/// How often the ledger's time is looked at once the transaction has expired.
const STEP: Duration = Duration::from_secs(1);
/// However late it is, others come first.
const LEAST_STEP: Duration = Duration::from_millis(50);

/// What came of handing in a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HandedIn {
    /// A majority of the nodes took it, or has had it for some time.
    Accepted,
    /// A majority of the nodes refuses it, and none has it.
    Refused(Refused),
    /// Somebody may have it.
    Unknown,
}

/// Hands a transaction to every node. `may_be_out` says whether somebody may have it already; it becomes true when a
/// node takes it, or an answer is lost, without a majority that decides.
pub(crate) async fn hand_in(
    context: &Context,
    tx_id: TxId,
    signed_json: &str,
    expiration: Timestamp,
    may_be_out: &mut bool,
) -> HandedIn {
    context.env.probe.reach("settlement: claimed, not broadcast");
    let outcome = context.nodes.broadcast(signed_json).await;
    context.env.probe.reach("settlement: broadcast, not recorded");
    let refusal = match outcome {
        Broadcast::Accepted => return HandedIn::Accepted,
        Broadcast::Refused(error) => refused(&error, tx_id),
        Broadcast::MayBeOut => {
            *may_be_out = true;
            return HandedIn::Unknown;
        }
        Broadcast::NotSent => return HandedIn::Unknown,
    };
    if mutant!("lost-answer-is-refusal") || mutant!("one-refusal-is-enough") {
        return HandedIn::Refused(refusal);
    }
    if *may_be_out {
        return HandedIn::Unknown;
    }
    // Somebody else may have broadcast it: the payer, or another facilitator.
    match context.nodes.find_transaction(tx_id, expiration).await {
        Ok(TxStatus::Unknown | TxStatus::ExpiredReversible | TxStatus::ExpiredIrreversible) => {
            HandedIn::Refused(refusal)
        }
        Ok(_) => HandedIn::Accepted,
        Err(_) => HandedIn::Unknown,
    }
}

/// Follows a session's claim until the session lets go of it; the session ends this when the claim is decided.
pub(crate) async fn settle(
    context: Arc<Context>,
    sessions: ActorRef<registry::Msg>,
    id: PaymentId,
    claim: Arc<Claim>,
    mut may_be_out: bool,
) {
    let tx_id = claim.tx_id;
    // The answer comes back as a change of the session, which may end this task.
    let order = |command| {
        let _ = sessions.cast(registry::Msg::Order(id, Order::new(command)));
    };
    let mut is_out = false;
    let mut is_lost = false;
    let mut refusal = None;
    let mut next_try = context.now();
    loop {
        let irreversible_time =
            if mutant!("buried-by-our-clock") { context.now() } else { context.ledger.irreversible_time() };
        if irreversible_time > claim.expiration {
            order(Command::Bury { tx_id, irreversible_time });
        } else if let Some(Refused { reason, message, .. }) = refusal.clone() {
            // Its commit may take a while, and a node that has refused may take it meanwhile: nobody gets it again.
            order(Command::Refuse { tx_id, reason, message });
            next_try = context.now() + RETRY;
        } else if context.now() >= next_try && context.now() < claim.expiration {
            match hand_in(&context, tx_id, &claim.signed_json, claim.expiration, &mut may_be_out).await {
                HandedIn::Accepted => {
                    if !is_out && claim.finality == ClaimFinality::Accepted {
                        order(Command::Settle { tx_id, evidence: ClaimFinality::Accepted, block: None });
                    }
                    is_out = true;
                    may_be_out = true;
                }
                HandedIn::Refused(refused) => {
                    let Refused { reason, message, .. } = refused.clone();
                    order(Command::Refuse { tx_id, reason, message });
                    refusal = Some(refused).filter(|_| !is_lost && !mutant!("hands-in-what-is-refused"));
                }
                HandedIn::Unknown => {}
            }
            next_try = context.now() + if is_out { REPEAT } else { RETRY };
        }
        if !is_lost && context.now() >= claim.claimed_at + HOLD {
            is_lost = true;
            order(Command::Lose { tx_id });
        }
        // Only what has expired can be buried: until then the ledger's time says nothing.
        let now = context.now();
        let next = if now < claim.expiration { next_try.min(claim.expiration) } else { now + STEP };
        let next = if is_lost { next } else { next.min(claim.claimed_at + HOLD) };
        tokio::time::sleep(next.since(now).max(LEAST_STEP)).await;
    }
}

/// Puts a node's refusal into the interface's words. Nothing of the node itself is told.
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
