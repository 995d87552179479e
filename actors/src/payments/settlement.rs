//! Broadcasts a claimed transaction and follows it, outside of its session's mailbox.
//!
//! Equal bytes have an equal id, so that submitting them twice cannot pay twice. An unknown outcome must never be
//! treated as a failure: only the refusal of a majority while no node has it, or an irreversible block after the
//! expiration, ends a claim.

use std::{sync::Arc, time::Duration};

use engine::{
    ids::PaymentId,
    mutant,
    payment::{Claim, ClaimFinality, Command},
    time::Timestamp,
    x402::Refused,
};
use ractor::ActorRef;

use crate::{
    chain::{
        ledger::Ledger,
        submission::{MAX_WAIT_FOR_OUTCOME, SubmitOutcome, shared, submit},
    },
    context::Context,
    payments::messages::{Order, RegistryMsg, SessionError},
};

/// Interval of submitting again a transaction that no node accepted, and one that a node accepted.
const RETRY: Duration = Duration::from_millis(500);
const REPEAT: Duration = Duration::from_secs(15);
/// Interval of reading the ledger's time once the transaction has expired.
const STEP: Duration = Duration::from_secs(1);
/// Overdue settlements yield to others.
const LEAST_STEP: Duration = Duration::from_millis(50);

/// Follows a session's claim until the session releases it; the session stops this task when the claim is decided.
pub(crate) async fn settle(
    context: Arc<Context>,
    ledger: Arc<Ledger>,
    registry: ActorRef<RegistryMsg>,
    id: PaymentId,
    claim: Arc<Claim>,
    is_adopted: bool,
) {
    let tx_id = claim.tx_id;
    let mut possibly_sent = is_adopted;
    if is_adopted && !shared(&context, tx_id).await {
        // Decided elsewhere: the session reads it.
        let _ = registry.cast(RegistryMsg::Refresh(id));
        return;
    }
    // The result arrives as a change of the session, which may stop this task.
    let order = |command| {
        let _ = registry.cast(RegistryMsg::Order(id, Order::new(command)));
    };
    let (mut is_out, mut is_lost) = (false, false);
    let mut next_mark = claim.claimed_at + MAX_WAIT_FOR_OUTCOME;
    let mut refusal = None;
    let mut next_try = context.now();
    loop {
        let irreversible_time =
            if mutant!("claim-expires-by-wall-clock") { context.now() } else { ledger.view.irreversible_time() };
        if irreversible_time > claim.expiration {
            order(Command::MarkExpired { tx_id, irreversible_time });
        } else if refusal.is_none() && context.now() >= next_try && context.now() < claim.expiration {
            match submit(&context, &ledger, tx_id, &claim.signed_json, claim.expiration, &mut possibly_sent).await {
                SubmitOutcome::Accepted => {
                    // The session stops this task after the settlement: until then the commit has not succeeded.
                    if claim.finality == ClaimFinality::Accepted {
                        order(Command::Settle { tx_id, evidence: ClaimFinality::Accepted, block: None });
                    }
                    is_out = true;
                    possibly_sent = true;
                }
                // Once the outcome is unknown, only an irreversible block decides.
                SubmitOutcome::Refused(refused) => refusal = Some(refused).filter(|_| !is_lost),
                SubmitOutcome::Unknown => {}
            }
            next_try = context.now() + if is_out { REPEAT } else { RETRY };
            if mutant!("nodes-are-flooded") {
                next_try = context.now();
            } else if mutant!("claims-sent-once") {
                next_try = claim.expiration;
            }
        }
        if let Some(Refused { reason, message, .. }) = refusal.clone() {
            // The commit may take a while, and a node that refused may accept it meanwhile: it is not submitted again.
            if refuse(&registry, id, Command::Refuse { tx_id, reason, message }).await {
                (refusal, possibly_sent) = (None, true);
            }
            next_try = context.now() + RETRY;
            if mutant!("refused-transaction-is-broadcast-again") {
                refusal = None;
            }
        }
        if context.now() >= next_mark {
            is_lost = true;
            next_mark = context.now() + REPEAT;
            order(Command::MarkUnknown { tx_id });
        }
        let now = context.now();
        let next = next_due(now, claim.expiration, next_try).min(next_mark);
        tokio::time::sleep(next.since(now).max(LEAST_STEP)).await;
    }
}

/// Returns when a claim is due next. Only an expired transaction can be marked expired: until then the ledger's time is
/// irrelevant.
fn next_due(now: Timestamp, expiration: Timestamp, next_try: Timestamp) -> Timestamp {
    if now < expiration { next_try.min(expiration) } else { now + STEP }
}

/// Makes the session refuse the claim, which stops this task. Returns whether another engine may have broadcast the
/// transaction, so that the refusal is not final.
async fn refuse(registry: &ActorRef<RegistryMsg>, id: PaymentId, command: Command) -> bool {
    let (order, response) = Order::awaited(command);
    let _ = registry.cast(RegistryMsg::Order(id, order));
    matches!(response.await, Ok(Err(SessionError::Contended)))
}
