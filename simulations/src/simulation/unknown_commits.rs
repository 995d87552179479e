//! Commits whose outcome the engine does not know: whether the store has them.

use engine::{audit::Entry, ledger::Transfer, payment::Credit};
use storage::{AuditQuery, ReadError, prelude::*};

use super::*;

/// Entries of the audit log among which that of an unknown commit is.
const NEWEST_ENTRIES: usize = 100;

/// Returns whether a batch whose outcome is unknown is in the store after all.
///
/// # Errors
/// The store's.
pub(super) async fn is_applied(store: &EmbeddedStore, batch: &Batch) -> Result<bool, ReadError> {
    for write in &batch.writes {
        let applied = match write {
            Write::Payment { payment, .. } => {
                store.payment(payment.id).await?.is_some_and(|stored| stored == **payment)
            }
            Write::Transfer { payment, credit, .. } => {
                let stored = store.transfer(*payment, credit.tx_id, credit.op_in_tx).await?;
                stored.is_some_and(|stored| Credit { memo: credit.memo.clone(), ..stored } == **credit)
            }
            Write::Merchant { merchant, .. } => {
                store.merchant(merchant.id).await?.is_some_and(|stored| *stored == **merchant)
            }
            Write::Claim(claimed) => store.claim(claimed.tx_id).await?.is_some(),
            Write::ClaimOutcome { tx_id, outcome, .. } => {
                store.claim(*tx_id).await?.is_some_and(|stored| stored.outcome == *outcome)
            }
            Write::Attempt { attempt, .. } => store.attempts(attempt.event).await?.contains(attempt),
            Write::Cursor { cursor, .. } => store.cursor().await? == Some(*cursor),
            Write::BeginEpoch(epoch) => store.epoch().await? == *epoch,
            Write::Rate { rate, .. } => store.rate().await? == Some(*rate),
            Write::Undeliverable(delivery) | Write::Hold { delivery, .. } => {
                let waiting = store.due_deliveries(Timestamp::MAX, usize::MAX).await?;
                !waiting.iter().any(|waiting| waiting.id == delivery.id)
            }
            Write::Handle { account, place, handling, .. } => {
                store.unmatched_at(*account, *place).await?.is_some_and(|stored| stored.handling == *handling)
            }
            Write::Invoice(invoicing) => {
                let (merchant, month) = (invoicing.period.merchant, invoicing.period.month);
                let stored = store.period(merchant, month).await?;
                stored.is_some_and(|stored| stored.invoice.as_ref() == Some(&invoicing.invoice))
            }
            Write::FeeTiers { schedule, .. } => store.fee_schedule().await?.as_ref() == Some(schedule),
            Write::ReceiptKeys { keys, .. } => store.receipt_keys().await?.as_ref() == Some(&**keys),
            Write::Redeliver(delivery) => store.delivery(delivery.merchant, delivery.id).await?.is_some(),
            Write::Replay { delivery, .. } => {
                let logged = store.delivery(delivery.merchant, delivery.id).await?;
                logged.is_some_and(|logged| !logged.is_replayable())
            }
            Write::EnableEndpoint { .. }
            | Write::Unwatch(_)
            | Write::ForgetClaims(_)
            | Write::CheckCompliance(_)
            | Write::Admit { .. }
            | Write::Compliance { .. } => continue,
            // A read position, in one batch with what was found there.
            Write::Note { name, value, .. } => store.note(name).await?.as_ref() == Some(value),
            Write::Reconciliation { day, .. } => store.reconciled_days(None, usize::MAX).await?.contains(day),
            Write::Audit(entry) => {
                let newest = store.audit(AuditQuery { before: None, limit: NEWEST_ENTRIES, merchant: None }).await?;
                newest.iter().any(|stored| Entry { seq: entry.seq, ..stored.clone() } == **entry)
            }
            Write::Unmatched(unmatched) => {
                let Transfer { to, position, .. } = &unmatched.transfer;
                store.unmatched_at(*to, *position).await?.is_some()
            }
            Write::Remember { remembered, .. } => {
                store.remembered(remembered.merchant, remembered.key).await?.as_ref() == Some(remembered)
            }
            Write::Event(event) => store.event_place(event.id).await?.is_some(),
            Write::Prune { happened_before } => {
                store.oldest_event().await?.is_none_or(|oldest| oldest >= *happened_before)
            }
            Write::Forget { made_before } => store.oldest_key().await?.is_none_or(|oldest| oldest >= *made_before),
            Write::Lease { .. } | Write::EndLease { .. } | Write::Duty { .. } | Write::OnDuty { .. } => continue,
        };
        return Ok(applied);
    }
    Ok(false)
}
