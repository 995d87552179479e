//! The transfers of payments beyond those that a snapshot lists: read row by row, and listed page by page.

use std::sync::Arc;

use engine::{
    ids::{MerchantId, PaymentId},
    mutant,
    payment::{Command, Credit, Owed, Owing, Payment, shown_memo},
};

use storage::Batch;

use crate::{
    Gateway, GatewayError,
    context::Context,
    payments::payment::{SessionError, read_failed},
};

/// Transfers read at once to add them up.
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
    let wanted = payment.rows_wanted(command);
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

impl Gateway {
    /// Lists the transfers of a merchant's payment, newest first, before the place `before` in the order they became
    /// known. Memos are cut to what is shown.
    ///
    /// # Errors
    /// [`GatewayError::PaymentNotFound`]; store errors.
    pub async fn transfers(
        &self,
        merchant: MerchantId,
        id: PaymentId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Credit>, GatewayError> {
        self.payment(merchant, id).await?;
        let mut rows = self.context().env.store.transfers(id, before, limit).await.map_err(|e| self.read_failed(&e))?;
        rows.iter_mut().for_each(|row| row.memo = shown_memo(std::mem::take(&mut row.memo)));
        Ok(rows)
    }

    /// Returns any merchant's payment with its newest transfers, oldest first, for support. The audit log records who read
    /// it before it is returned.
    ///
    /// # Errors
    /// [`GatewayError::PaymentNotFound`]; store errors.
    pub async fn inspect(&self, id: PaymentId) -> Result<(Arc<Payment>, Vec<Credit>), GatewayError> {
        let payment = self.any_payment(id).await?;
        let mut rows = self.transfers(payment.merchant, id, None, PAGE).await?;
        rows.reverse();
        let deed = self.deed("payment_read", payment.merchant, Some(id.to_string()), Vec::new());
        self.context().env.store.commit(Batch::of(deed)).await.map_err(|e| self.commit_failed(e))?;
        Ok((payment, rows))
    }

    /// Returns what is owed back for a payment, by payer and currency, from all of its transfers.
    ///
    /// # Errors
    /// Store errors.
    pub async fn owed(&self, payment: &Payment) -> Result<Vec<Owed>, GatewayError> {
        if payment.unlisted.is_none() {
            return Ok(payment.owed());
        }
        let (mut owing, mut before) = (Owing::of(payment), None);
        loop {
            let rows = self.context().env.store.transfers(payment.id, before, PAGE).await;
            let rows = rows.map_err(|e| self.read_failed(&e))?;
            let Some(oldest) = rows.last() else { return Ok(owing.finish(payment)) };
            before = Some(oldest.seq);
            rows.iter().for_each(|row| owing.add(row));
        }
    }
}
