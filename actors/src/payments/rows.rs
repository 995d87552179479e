//! The transfers of payments beyond those that a snapshot lists, read row by row.

use std::sync::Arc;

use engine::{
    mutant,
    payment::{Command, Payment},
};

use crate::{
    context::Context,
    payments::messages::{SessionError, read_failed},
};

/// Transfers read at once.
const PAGE: usize = 500;

/// Returns a session with the transfers that a command concerns: those that its snapshot does not list are read from the
/// store, each by its key, however many there are.
///
/// # Errors
/// [`SessionError::Unknown`] where the store cannot be read.
pub(crate) async fn with_rows(
    context: &Context,
    payment: &Arc<Payment>,
    command: &Command,
) -> Result<Arc<Payment>, SessionError> {
    let wanted = payment.required_rows(command);
    let mut known = Arc::clone(payment);
    for (tx_id, op_in_tx) in wanted.into_iter().filter(|_| !mutant!("unlisted-not-loaded")) {
        match context.env.store.transfer(payment.id, tx_id, op_in_tx).await {
            Ok(Some(row)) => Arc::make_mut(&mut known).load(row),
            Ok(None) => {}
            Err(error) => return Err(read_failed(context, &error)),
        }
    }
    Ok(known)
}

/// Returns a session with every transfer that a decision about its request to cancel is about, listed or not.
///
/// # Errors
/// As [`with_rows`].
pub(crate) async fn with_late_rows(context: &Context, payment: &Arc<Payment>) -> Result<Arc<Payment>, SessionError> {
    let (mut known, mut before) = (Arc::clone(payment), None);
    loop {
        let rows = context.env.store.transfers(payment.id, before, PAGE).await;
        let rows = rows.map_err(|error| read_failed(context, &error))?;
        let Some(oldest) = rows.last() else { return Ok(known) };
        before = Some(oldest.seq);
        for row in rows {
            if row.awaits_cancellation() && known.listed(row.tx_id, row.op_in_tx).is_none() {
                Arc::make_mut(&mut known).load(row);
            }
        }
    }
}
