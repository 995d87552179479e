//! The transfers of payments in pages, and the refundable amounts.

use std::sync::Arc;

use engine::{
    ids::{MerchantId, PaymentId},
    mutant,
    payment::{Credit, Payment, RefundCalculator, RefundDue, shown_memo},
};

use storage::Batch;

use crate::{error::EngineError, payments::handle::Payments};

/// Transfers read at once to sum them.
const PAGE: usize = 500;

impl Payments {
    /// Lists the transfers of a merchant's payment, newest first, before the position `before` in the order of
    /// detection. Memos are truncated.
    ///
    /// # Errors
    /// [`EngineError::PaymentNotFound`]; store errors.
    pub async fn transfers(
        &self,
        merchant: MerchantId,
        id: PaymentId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Credit>, EngineError> {
        self.get(merchant, id).await?;
        let mut rows = self
            .access
            .context
            .env
            .store
            .transfers(id, before.map(|seq| seq + u64::from(mutant!("transfer-pages-overlap"))), limit)
            .await
            .map_err(|e| self.access.read_failed(&e))?;
        rows.iter_mut().for_each(|row| row.memo = shown_memo(std::mem::take(&mut row.memo)));
        Ok(rows)
    }

    /// Returns any merchant's payment with its newest transfers, oldest first, for support. The read is audited before
    /// it is returned.
    ///
    /// # Errors
    /// [`EngineError::PaymentNotFound`]; store errors.
    pub async fn inspect(&self, id: PaymentId) -> Result<(Arc<Payment>, Vec<Credit>), EngineError> {
        let payment = self.any(id).await?;
        let mut rows = self.transfers(payment.merchant, id, None, PAGE).await?;
        rows.reverse();
        let read = self.access.audit_event("payment_read", payment.merchant, Some(id.to_string()), Vec::new());
        self.access.commit(Batch::of(read)).await?;
        Ok((payment, rows))
    }

    /// Returns the refundable amounts of a payment, by payer and currency, from all of its transfers.
    ///
    /// # Errors
    /// Store errors.
    pub async fn owed(&self, payment: &Payment) -> Result<Vec<RefundDue>, EngineError> {
        if payment.unlisted.is_none() {
            return Ok(payment.refunds_due());
        }
        let (mut owing, mut before) = (RefundCalculator::of(payment), None);
        loop {
            let rows = self.access.context.env.store.transfers(payment.id, before, PAGE).await;
            let rows = rows.map_err(|e| self.access.read_failed(&e))?;
            let Some(oldest) = rows.last() else { return Ok(owing.finish(payment)) };
            before = Some(oldest.seq);
            rows.iter().for_each(|row| owing.add(row));
        }
    }
}
