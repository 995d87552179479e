//! The transfers of payments beyond those that a snapshot lists, read row by row.

use std::sync::Arc;

use engine::{
    mutant,
    payment::{Command, Credit, Payment},
};

use crate::{
    context::Context,
    payments::messages::{SessionError, read_failed},
};

/// Transfers read at once.
const PAGE: usize = 500;

/// Returns a session with the transfers that a command concerns: those that its snapshot does not list are read from
/// the store by key, however many there are. `None` if another engine has changed the session since its snapshot.
///
/// # Errors
/// [`SessionError::Unknown`] if the store cannot be read.
pub(crate) async fn with_rows(
    context: &Context,
    payment: &Arc<Payment>,
    command: &Command,
) -> Result<Option<Arc<Payment>>, SessionError> {
    let wanted = payment.required_rows(command);
    let mut rows = Vec::new();
    for (tx_id, op_in_tx) in wanted.into_iter().filter(|_| !mutant!("unlisted-not-loaded")) {
        let row = context.env.store.transfer(payment.id, tx_id, op_in_tx).await;
        rows.extend(row.map_err(|error| read_failed(context, &error))?);
    }
    loaded(context, payment, rows).await
}

/// Returns a session with every transfer that decides its cancellation, listed or not. `None` as [`with_rows`].
///
/// # Errors
/// As [`with_rows`].
pub(crate) async fn with_late_rows(
    context: &Context,
    payment: &Arc<Payment>,
) -> Result<Option<Arc<Payment>>, SessionError> {
    let (mut late, mut before) = (Vec::new(), None);
    loop {
        let rows = context.env.store.transfers(payment.id, before, PAGE).await;
        let rows = rows.map_err(|error| read_failed(context, &error))?;
        let Some(oldest) = rows.last() else { break };
        before = Some(oldest.seq);
        let is_wanted = |row: &Credit| row.awaits_cancellation() && payment.listed(row.tx_id, row.op_in_tx).is_none();
        late.extend(rows.into_iter().filter(is_wanted));
    }
    loaded(context, payment, late).await
}

/// Loads rows into a session. Each change of a row changes its session's version, too: rows that were read before the
/// version belong to the snapshot, if the version is unchanged.
async fn loaded(
    context: &Context,
    payment: &Arc<Payment>,
    rows: Vec<Credit>,
) -> Result<Option<Arc<Payment>>, SessionError> {
    let mut known = Arc::clone(payment);
    if rows.is_empty() {
        return Ok(Some(known));
    }
    let stored = context.env.store.versions(vec![payment.id]).await;
    let stored = stored.map_err(|error| read_failed(context, &error))?;
    if stored.first().is_none_or(|(_, version)| *version != payment.version) {
        return Ok(None);
    }
    rows.into_iter().for_each(|row| Arc::make_mut(&mut known).load(row));
    Ok(Some(known))
}
