//! Unmatched transfers that name a session which does not exist yet: they wait for it.

use std::{collections::BTreeSet, time::Duration};

use engine::{
    account::AccountName,
    ids::PaymentId,
    ledger::{ChainPosition, MemoMatch, match_memo},
    mutant,
    payment::{Assignment, Command, Rejection, Route},
};
use ractor::ActorRef;
use storage::{Batch, Handling, ReadError, Unmatched, WaitingTransferKey, Write};

use crate::{
    context::Context,
    payments::messages::{Order, RegistryMsg, SessionError},
};

/// Maximum age of a session for which a transfer still waits.
const WAITS: Duration = Duration::from_secs(400 * 86_400);
/// The actor of an assignment by the transfer's own memo.
const BY_MEMO: &str = "memo";

/// Returns the sessions for which a transfer waits: it preceded them, and is credited before they expire.
pub(crate) async fn awaited(
    context: &Context,
    sessions: impl Iterator<Item = PaymentId>,
) -> Result<BTreeSet<PaymentId>, ReadError> {
    let store = &context.env.store;
    let mut awaited = BTreeSet::new();
    // Transfers rarely wait.
    if mutant!("expiry-before-credits") || store.waiting_for_sessions(None, 1).await?.is_empty() {
        return Ok(awaited);
    }
    let not_before = context.now().minus(WAITS);
    let last_account = AccountName::parse("zzzzzzzzzzzzzzzz").expect("a name of sixteen letters");
    let last_place = ChainPosition { block_num: u32::MAX, tx_in_block: u32::MAX, op_in_tx: u32::MAX };
    for id in sessions.filter(|id| id.created_at() >= not_before) {
        let just_before = (PaymentId::from_bits(id.bits().wrapping_sub(1)), last_account, last_place);
        let first = store.waiting_for_sessions(Some(just_before), 1).await?.pop();
        if first.is_some_and(|(waits_for, ..)| waits_for == id) {
            awaited.insert(id);
        }
    }
    Ok(awaited)
}

/// Assigns transfers to the sessions they name that have appeared since: restored, or opened by another engine.
/// Processes a few at a time, after `after`; returns the next position.
pub(crate) async fn attach_waiting(
    context: &Context,
    registry: &ActorRef<RegistryMsg>,
    after: Option<WaitingTransferKey>,
) -> Option<WaitingTransferKey> {
    const AT_ONCE: usize = 100;
    let not_before = context.now().minus(WAITS);
    let waiting = match context.env.store.waiting_for_sessions(after, AT_ONCE).await {
        Ok(waiting) => waiting,
        Err(error) => {
            context.read_failed(&error);
            return None;
        }
    };
    let next = if waiting.len() < AT_ONCE { None } else { waiting.last().cloned() };
    for (id, account, place) in waiting {
        // Transfers for sessions that never existed do not wait for ever.
        if id.created_at() < not_before {
            continue;
        }
        let known = context.env.store.payment(id).await.inspect_err(|error| context.read_failed(error));
        let Ok(Some(_)) = known else { continue };
        let kept = context.env.store.unmatched_at(account, place).await.inspect_err(|error| context.read_failed(error));
        let Ok(Some(Unmatched { transfer, handling: Handling::Open, .. })) = kept else {
            continue;
        };
        let memo_normalized = !matches!(match_memo(&transfer.memo), MemoMatch::Exact(_));
        let by = BY_MEMO.to_owned();
        let attachment = Assignment { transfer, route: Route::Wallet, memo_normalized, by };
        let (order, answer) = Order::awaited(Command::Assign(attachment));
        if registry.cast(RegistryMsg::Order(id, order)).is_err() {
            return None;
        }
        match answer.await {
            Ok(Ok(_)) => tracing::info!(payment.id = %id, "payment {id} now exists: transfer credited"),
            Ok(Err(SessionError::Rejected { rejection, .. })) => {
                let handling = match rejection {
                    // The chain was read again meanwhile, and the session has it.
                    Rejection::Unchanged { .. } => {
                        Handling::Assigned { payment: id, by: BY_MEMO.to_owned(), at: context.now() }
                    }
                    // It can never be credited to the session. It stays unmatched and no longer waits.
                    _ => Handling::Open,
                };
                let write = Write::Handle { account, place, handling };
                if let Err(error) = context.env.store.commit(Batch::of(write)).await {
                    context.commit_failed(&error);
                }
            }
            // It was settled for another purpose and no longer waits.
            Ok(Err(SessionError::Claimed(_))) => {
                let write = Write::Handle { account, place, handling: Handling::Open };
                if let Err(error) = context.env.store.commit(Batch::of(write)).await {
                    context.commit_failed(&error);
                }
            }
            Ok(Err(error)) => {
                tracing::debug!(payment.id = %id, %error, "transfer not credited to payment {id}: {error}");
            }
            // The actor crashed; the next run retries.
            Err(_) => {}
        }
    }
    next
}
