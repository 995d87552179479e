//! Claims of transactions for other servers: stored before the broadcast, decided once, and reported once.

use engine::{
    idempotency::IdempotencyRecord,
    ledger::TxId,
    mutant,
    x402::{ClaimOutcome, ClaimRecord},
};
use storage::{Batch, CommitError, Write};
use tokio::sync::oneshot;

use crate::{
    context::Context,
    payments::messages::{SessionError, read_failed},
    webhooks::{announcements::sale_events, notifier::Notifier},
};

/// Messages to the facilitator.
pub(crate) enum FacilitatorMsg {
    /// Submit a claimed transaction, and notify the sender when its outcome is stored.
    Follow {
        /// The claim.
        claimed: Box<ClaimRecord>,
        /// Whether this engine has just made the claim, so that no other engine has broadcast the transaction.
        is_new: bool,
        /// Closed when the outcome is stored.
        decided: oneshot::Sender<()>,
    },
    /// Submit a claimed transaction that no engine follows.
    Adopt(Box<ClaimRecord>),
    /// The outcome of a transaction is stored.
    Decided(TxId),
}

/// Stores a claim before the broadcast, together with the idempotency key of the request.
pub(crate) async fn claim(
    context: &Context,
    claimed: &ClaimRecord,
    remembered: Option<IdempotencyRecord>,
) -> Result<(), ClaimError> {
    let batch = Batch::of(Write::Claim(claimed.clone()));
    let batch = match remembered {
        Some(remembered) => batch.and(Write::Remember { remembered, most: context.settings.idempotency_keys }),
        None => batch,
    };
    context.env.store.commit(batch).await.map_err(|error| match error {
        CommitError::Remembered(earlier) => ClaimError::Remembered(earlier),
        error => ClaimError::Failed(failed(error)),
    })
}

/// Why a claim was not stored.
pub(crate) enum ClaimError {
    /// The key belongs to an earlier request.
    Remembered(Box<IdempotencyRecord>),
    /// Anything else.
    Failed(SessionError),
}

/// Marks a settled payment as reported, so that only one caller receives the success; `remembered` is the idempotency
/// key with which that caller may repeat its request.
pub(crate) async fn mark_reported(
    context: &Context,
    tx_id: TxId,
    block_num: Option<u32>,
    remembered: Option<IdempotencyRecord>,
) -> Result<(), SessionError> {
    let settled = |is_reported| ClaimOutcome::Settled { is_reported, block_num };
    let outcome = Batch::of(Write::ClaimOutcome { tx_id, expected: settled(false), outcome: settled(true) });
    let commit = |batch| context.env.store.commit(batch);
    let Some(remembered) = remembered else { return commit(outcome).await.map_err(failed) };
    let most = context.settings.idempotency_keys;
    match commit(outcome.clone().and(Write::Remember { remembered, most })).await {
        // The success has priority over its repetition.
        Err(CommitError::KeysFull) => commit(outcome).await.map_err(failed),
        committed => committed.map_err(failed),
    }
}

/// Records the outcome of an open claim, with the event of a settlement. A refusal of a claim that several engines may
/// have broadcast is not recorded.
///
/// # Errors
/// [`SessionError::Contended`] if it is decided already, or if it is shared and the outcome is a refusal.
pub(crate) async fn decide(
    context: &Context,
    notifier: &Notifier,
    tx_id: TxId,
    outcome: ClaimOutcome,
) -> Result<(), SessionError> {
    let failed_read = |error: storage::ReadError| read_failed(context, &error);
    let claimed = context.sound(context.env.store.claim(tx_id).await).map_err(failed_read)?.flatten();
    let expected = claimed.as_ref().map_or(ClaimOutcome::Open, |claimed| claimed.outcome.clone());
    let is_refusal = matches!(outcome, ClaimOutcome::Refused { .. });
    if !expected.is_open() || is_refusal && expected == ClaimOutcome::Shared && !mutant!("unshared-refusal") {
        return Err(SessionError::Contended);
    }
    let mut announcements = Vec::new();
    // A settlement and its event are stored in one commit.
    if let (ClaimOutcome::Settled { block_num, .. }, Some(claimed)) = (&outcome, &claimed) {
        announcements = sale_events(context, claimed, *block_num, context.now()).await.map_err(failed_read)?;
    }
    let mut batch = Batch::of(Write::ClaimOutcome { tx_id, expected, outcome });
    let (merchants, events): (Vec<_>, Vec<_>) = announcements.into_iter().unzip();
    batch.writes.extend(events);
    context.env.store.commit(batch).await.map_err(failed)?;
    merchants.into_iter().for_each(|merchant| notifier.announced(merchant));
    Ok(())
}

fn failed(error: CommitError) -> SessionError {
    match error {
        CommitError::Claimed(by) => SessionError::Claimed(by),
        CommitError::Assigned(to) => SessionError::Assigned(to),
        CommitError::Overloaded => SessionError::Overloaded,
        CommitError::Unavailable(_) => SessionError::Unavailable,
        CommitError::Conflict { .. }
        | CommitError::Remembered(_)
        | CommitError::Deposed(_)
        | CommitError::OnHold(_)
        | CommitError::QuotaReached(_) => SessionError::Contended,
        CommitError::KeysFull => SessionError::KeysFull,
        CommitError::Unknown(_) => SessionError::Unknown,
    }
}
