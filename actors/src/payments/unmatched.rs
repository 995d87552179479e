//! Unmatched transfers of merchants, decisions about payments, and refunds.

use std::{sync::Arc, time::Duration};

use engine::{
    account::AccountName,
    ids::{MerchantId, PaymentId},
    ledger::ChainPosition,
    merchant::Merchant,
    mutant,
    payment::{Assignment, Command, Payment, Rejection, Resolution, Route},
};
use storage::{Batch, Handling, Unmatched, Vicinity, Write};

use crate::{
    error::EngineError,
    payments::{
        handle::Payments,
        messages::SessionError,
        sales::{Incoming, Part, incoming},
    },
};

/// Maximum age of a candidate session at the time of the transfer: the lifetime of a session, and a day for late
/// transfers.
const CANDIDATES_BEFORE: Duration = Duration::from_secs(2 * 86_400);
/// Maximum time by which a candidate session is younger: the clocks of ledger and engine differ a little.
const CANDIDATES_AFTER: Duration = Duration::from_secs(60);
/// Maximum number of candidates.
const MAX_CANDIDATES: usize = 20;
/// Maximum number of payments that are compared.
const LOOKED_AT: usize = 200;

/// A candidate session of an unmatched transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The session.
    pub payment: Payment,
    /// Whether the same account has already paid it.
    pub is_same_payer: bool,
    /// Whether the amount of the transfer equals the requested or the remaining amount.
    pub is_same_amount: bool,
    /// Whether the transfer's block is between its opening and its deadline.
    pub is_on_time: bool,
}

impl Candidate {
    fn of(payment: Payment, unmatched: &Unmatched) -> Self {
        let transfer = &unmatched.transfer;
        let is_currency = payment.amount.currency == transfer.money.currency;
        let units = transfer.money.units;
        Self {
            is_same_payer: payment.transfers.iter().any(|credit| credit.from == transfer.from),
            is_same_amount: is_currency && (payment.amount.units == units || payment.remaining_units() == units),
            // Block times are whole seconds; those of sessions are not.
            is_on_time: payment.created_at <= transfer.block_time + Duration::from_secs(3)
                && transfer.block_time <= payment.deadline(),
            payment,
        }
    }

    fn score(&self) -> u8 {
        4 * u8::from(self.is_same_amount) + 2 * u8::from(self.is_on_time) + u8::from(self.is_same_payer)
    }
}

impl Payments {
    /// Lists the transfers to a merchant's account that paid no session and are no sale, newest first, older than
    /// `before`.
    ///
    /// # Errors
    /// [`EngineError::NotProven`]; store errors.
    pub async fn unmatched(
        &self,
        merchant: &Merchant,
        before: Option<ChainPosition>,
        limit: usize,
    ) -> Result<Part<Unmatched>, EngineError> {
        self.unmatched_where(merchant, before, limit, |_| true).await
    }

    /// As [`Payments::unmatched`], limited to those that `is_wanted` selects.
    ///
    /// # Errors
    /// As [`Payments::unmatched`].
    pub async fn unmatched_where(
        &self,
        merchant: &Merchant,
        before: Option<ChainPosition>,
        limit: usize,
        is_wanted: impl Fn(&Unmatched) -> bool + Send + Sync,
    ) -> Result<Part<Unmatched>, EngineError> {
        self.merchants.may_read(merchant, &merchant.hive_account)?;
        let pick = |incoming: Incoming| {
            let is_sale = incoming.sale.is_some();
            (!is_sale && is_wanted(&incoming.unmatched)).then_some(incoming.unmatched)
        };
        self.list_incoming(merchant, before, limit, pick).await
    }

    /// Returns a transfer to a merchant's account that paid no session.
    ///
    /// # Errors
    /// [`EngineError::NotProven`]; [`EngineError::TransferNotFound`]; [`EngineError::TransferSettled`] for a sale; store
    /// errors.
    pub async fn unmatched_at(&self, merchant: &Merchant, place: ChainPosition) -> Result<Unmatched, EngineError> {
        self.merchants.may_read(merchant, &merchant.hive_account)?;
        self.unmatched_to(merchant.hive_account, place).await
    }

    async fn unmatched_to(&self, account: AccountName, place: ChainPosition) -> Result<Unmatched, EngineError> {
        let found = self
            .access
            .context
            .env
            .store
            .unmatched_at(account, place)
            .await
            .map_err(|e| self.access.read_failed(&e))?;
        let incoming = incoming(&self.access.context, found.ok_or(EngineError::TransferNotFound)?).await;
        let incoming = incoming.map_err(|error| self.access.read_failed(&error))?;
        match incoming.sale {
            Some((sale, _)) => Err(EngineError::TransferSettled(sale.resource)),
            None => Ok(incoming.unmatched),
        }
    }

    /// Returns the candidate sessions of an unmatched transfer, best match first.
    ///
    /// # Errors
    /// As [`Payments::unmatched_at`].
    pub async fn candidates(&self, merchant: &Merchant, place: ChainPosition) -> Result<Vec<Candidate>, EngineError> {
        let unmatched = self.unmatched_at(merchant, place).await?;
        let time = unmatched.transfer.block_time;
        let vicinity = Vicinity {
            merchant: merchant.id,
            money: unmatched.transfer.money,
            from: time.minus(CANDIDATES_BEFORE),
            to: time + CANDIDATES_AFTER,
            limit: LOOKED_AT,
        };
        let near =
            self.access.context.env.store.payments_near(vicinity).await.map_err(|e| self.access.read_failed(&e))?;
        let mut candidates: Vec<_> = near
            .into_iter()
            .filter(|payment| payment.pay_to == unmatched.transfer.to || mutant!("candidates-of-other-accounts"))
            .map(|payment| Candidate::of(payment, &unmatched))
            .filter(|candidate| candidate.is_same_amount || candidate.is_same_payer)
            .collect();
        // The sort is stable: of equal candidates the newest is first.
        candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.score()));
        candidates.truncate(MAX_CANDIDATES);
        Ok(candidates)
    }

    /// Assigns an unmatched transfer to a merchant's session: it counts if the session is pending and its block was in
    /// time, and is late otherwise. The first assignment wins; repeating it returns the same result.
    ///
    /// # Errors
    /// [`EngineError::NotProven`], [`EngineError::TransferNotFound`], [`EngineError::PaymentNotFound`],
    /// [`EngineError::TransferAssigned`],
    /// [`EngineError::Rejected`] if the session is paid to another account; store errors.
    pub async fn assign(
        &self,
        merchant: &Merchant,
        place: ChainPosition,
        payment: PaymentId,
        by: String,
    ) -> Result<Arc<Payment>, EngineError> {
        let payment = self.get(merchant.id, payment).await?;
        // A session opened before the merchant's account changed is paid to the old one, which was proven, too.
        let unmatched = match self.unmatched_at(merchant, place).await {
            Err(EngineError::TransferNotFound | EngineError::NotProven { .. })
                if payment.pay_to != merchant.hive_account =>
            {
                self.merchants.may_read(merchant, &payment.pay_to)?;
                self.unmatched_to(payment.pay_to, place).await?
            }
            found => found?,
        };
        self.merchants.may_decide(merchant, &unmatched.transfer.to).await?;
        match &unmatched.handling {
            Handling::Assigned { payment: earlier, .. } if *earlier == payment.id => return Ok(payment),
            Handling::Assigned { payment, .. } => return Err(EngineError::TransferAssigned(*payment)),
            Handling::Open | Handling::Ignored { .. } => {}
        }
        let transfer = unmatched.transfer;
        let account = transfer.to;
        let route = if mutant!("assigned-has-wallet-route") { Route::Wallet } else { Route::Manual };
        let attachment = Assignment { transfer, route, memo_normalized: false, by };
        let audit_entry = self.access.entry("transfer_assigned", merchant.id, Some(place.to_string()), Vec::new());
        match self.order(payment.id, Command::Assign(attachment), Some(audit_entry)).await.map_err(EngineError::from) {
            Ok(payment) => {
                tracing::info!(payment.id = %payment.id, %account, "transfer assigned to payment {}", payment.id);
                Ok(payment)
            }
            // Another caller was first, perhaps with this transfer, or it was settled meanwhile.
            Err(EngineError::Contended | EngineError::Rejected(Rejection::Unchanged { .. })) => {
                match self.unmatched_to(account, place).await?.handling {
                    Handling::Assigned { payment: earlier, .. } if earlier == payment.id => {
                        self.get(merchant.id, payment.id).await
                    }
                    Handling::Assigned { payment, .. } => Err(EngineError::TransferAssigned(payment)),
                    Handling::Open | Handling::Ignored { .. } => Err(EngineError::Contended),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Marks an unmatched transfer as ignored.
    ///
    /// # Errors
    /// As [`Payments::assign`].
    pub async fn ignore(
        &self,
        merchant: &Merchant,
        place: ChainPosition,
        by: String,
        note: String,
    ) -> Result<Unmatched, EngineError> {
        self.merchants.may_decide(merchant, &merchant.hive_account).await?;
        let unmatched = self.unmatched_at(merchant, place).await?;
        if let Handling::Assigned { payment, .. } = unmatched.handling {
            return Err(EngineError::TransferAssigned(payment));
        }
        let handling = Handling::Ignored { by, at: self.access.now(), note };
        let write = Write::Handle { account: merchant.hive_account, place, handling: handling.clone() };
        let audit_entry = self.access.audit_event("transfer_ignored", merchant.id, Some(place.to_string()), Vec::new());
        let batch = Batch::of(write).and(audit_entry);
        self.access.commit(batch).await?;
        Ok(Unmatched { handling, ..unmatched })
    }

    /// Records a merchant's decision about a payment's exceptions. The state does not change; a later decision replaces
    /// it.
    ///
    /// # Errors
    /// [`EngineError::PaymentNotFound`]; [`EngineError::Rejected`] if there is nothing to decide; store errors.
    pub async fn resolve(
        &self,
        merchant: &Merchant,
        id: PaymentId,
        resolution: Resolution,
    ) -> Result<Arc<Payment>, EngineError> {
        self.get(merchant.id, id).await?;
        let audit_entry = self.access.entry("payment_resolved", merchant.id, Some(id.to_string()), Vec::new());
        let audit_entry = Some(audit_entry).filter(|_| !mutant!("decisions-not-audited"));
        let payment = self.order(id, Command::Resolve(resolution), audit_entry).await?;
        tracing::info!(payment.id = %id, "payment {id} resolved");
        Ok(payment)
    }

    /// Deletes the metadata of a final payment. Repeating it returns the payment unchanged.
    ///
    /// # Errors
    /// [`EngineError::PaymentNotFound`]; [`EngineError::Rejected`] while the payment can still change; store errors.
    pub async fn delete_metadata(&self, merchant: MerchantId, id: PaymentId) -> Result<Arc<Payment>, EngineError> {
        self.delete(merchant, id, Command::DeleteMetadata, "payment_metadata_deleted").await
    }

    /// Deletes the note of the decision about a payment. Repeating it returns the payment unchanged.
    ///
    /// # Errors
    /// [`EngineError::PaymentNotFound`]; store errors.
    pub async fn delete_note(&self, merchant: MerchantId, id: PaymentId) -> Result<Arc<Payment>, EngineError> {
        self.delete(merchant, id, Command::DeleteNote, "payment_note_deleted").await
    }

    async fn delete(
        &self,
        merchant: MerchantId,
        id: PaymentId,
        command: Command,
        action: &str,
    ) -> Result<Arc<Payment>, EngineError> {
        self.get(merchant, id).await?;
        let audit_entry = self.access.entry(action, merchant, Some(id.to_string()), Vec::new());
        match self.order(id, command, Some(audit_entry)).await {
            Err(SessionError::Rejected { rejection: Rejection::Unchanged { .. }, payment }) => Ok(payment),
            response => response.map_err(Into::into),
        }
    }
}
