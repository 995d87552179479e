//! What merchants ask about money that went astray: their unmatched transfers, decisions about payments, refunds.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use engine::{
    account::AccountName,
    ids::{MerchantId, PaymentId},
    ledger::{MemoMatch, Place, match_memo},
    merchant::Merchant,
    mutant,
    payment::{Attachment, Command, Payment, Rejection, Resolution, Route},
};
use storage::{Batch, Handling, ReadError, StrayKey, Unmatched, Vicinity, Write};

use crate::{
    Gateway, GatewayError,
    context::Context,
    payments::{
        payment::{Order, SessionError},
        registry,
        sales::{Incoming, Part},
    },
};

/// How long before a transfer its session may have been opened: as long as a session lives, and a day for the late.
const CANDIDATES_BEFORE: Duration = Duration::from_secs(2 * 86_400);
/// How long after a transfer: clocks of ledger and engine differ a little.
const CANDIDATES_AFTER: Duration = Duration::from_secs(60);
/// Candidates told at most.
const MAX_CANDIDATES: usize = 20;
/// Payments looked at for candidates.
const LOOKED_AT: usize = 200;
/// How old a session may be that a transfer still waits for.
const WAITS: Duration = Duration::from_secs(400 * 86_400);
/// Who puts a transfer to a session where its own memo says so.
pub(crate) const BY_MEMO: &str = "memo";

/// A session an unmatched transfer may have been meant for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The session.
    pub payment: Payment,
    /// Whether the same account has paid it already.
    pub is_same_payer: bool,
    /// Whether the transfer is just what it asks for, or just what is missing.
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
            // A block's time is whole seconds, a session's is not.
            is_on_time: payment.created_at <= transfer.block_time + Duration::from_secs(3)
                && transfer.block_time <= payment.deadline(),
            payment,
        }
    }

    fn score(&self) -> u8 {
        4 * u8::from(self.is_same_amount) + 2 * u8::from(self.is_on_time) + u8::from(self.is_same_payer)
    }
}

impl Gateway {
    /// Lists the transfers to a merchant's account that paid no session and were no sale, newest first, older than
    /// `before`.
    ///
    /// # Errors
    /// [`GatewayError::NotProven`]; store errors.
    pub async fn unmatched(
        &self,
        merchant: &Merchant,
        before: Option<Place>,
        limit: usize,
    ) -> Result<Part<Unmatched>, GatewayError> {
        self.unmatched_where(merchant, before, limit, |_| true).await
    }

    /// As [`Gateway::unmatched`], those of them that `is_wanted`.
    ///
    /// # Errors
    /// As [`Gateway::unmatched`].
    pub async fn unmatched_where(
        &self,
        merchant: &Merchant,
        before: Option<Place>,
        limit: usize,
        is_wanted: impl Fn(&Unmatched) -> bool + Send + Sync,
    ) -> Result<Part<Unmatched>, GatewayError> {
        self.may_read(merchant, &merchant.hive_account)?;
        let pick = |incoming: Incoming| {
            let is_sale = incoming.sale.is_some();
            (!is_sale && is_wanted(&incoming.unmatched)).then_some(incoming.unmatched)
        };
        self.list_incoming(merchant, before, limit, pick).await
    }

    /// Returns a transfer to a merchant's account that paid no session.
    ///
    /// # Errors
    /// [`GatewayError::NotProven`]; [`GatewayError::TransferNotFound`]; [`GatewayError::TransferSettled`] for a sale; store
    /// errors.
    pub async fn unmatched_at(&self, merchant: &Merchant, place: Place) -> Result<Unmatched, GatewayError> {
        self.may_read(merchant, &merchant.hive_account)?;
        self.stray(merchant.hive_account, place).await
    }

    async fn stray(&self, account: AccountName, place: Place) -> Result<Unmatched, GatewayError> {
        let found = self.context().env.store.unmatched_at(account, place).await.map_err(|e| self.read_failed(&e))?;
        let incoming = self.context().incoming(found.ok_or(GatewayError::TransferNotFound)?).await;
        let incoming = incoming.map_err(|error| self.read_failed(&error))?;
        match incoming.sale {
            Some((sale, _)) => Err(GatewayError::TransferSettled(sale.resource)),
            None => Ok(incoming.unmatched),
        }
    }

    /// Returns the sessions of a merchant that an unmatched transfer may have been meant for, the likeliest first.
    ///
    /// # Errors
    /// As [`Gateway::unmatched_at`].
    pub async fn candidates(&self, merchant: &Merchant, place: Place) -> Result<Vec<Candidate>, GatewayError> {
        let unmatched = self.unmatched_at(merchant, place).await?;
        let time = unmatched.transfer.block_time;
        let vicinity = Vicinity {
            merchant: merchant.id,
            money: unmatched.transfer.money,
            from: time.minus(CANDIDATES_BEFORE),
            to: time + CANDIDATES_AFTER,
            limit: LOOKED_AT,
        };
        let near = self.context().env.store.payments_near(vicinity).await.map_err(|e| self.read_failed(&e))?;
        let mut candidates: Vec<_> = near
            .into_iter()
            .filter(|payment| payment.pay_to == unmatched.transfer.to)
            .map(|payment| Candidate::of(payment, &unmatched))
            .filter(|candidate| candidate.is_same_amount || candidate.is_same_payer)
            .collect();
        // Stable: among equals the newest stays first.
        candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.score()));
        candidates.truncate(MAX_CANDIDATES);
        Ok(candidates)
    }

    /// Puts an unmatched transfer to a merchant's session: it counts if the session waits and its block was on time,
    /// and is late otherwise. The first assignment wins; the same again is answered as it was.
    ///
    /// # Errors
    /// [`GatewayError::NotProven`], [`GatewayError::TransferNotFound`], [`GatewayError::PaymentNotFound`],
    /// [`GatewayError::TransferAssigned`],
    /// [`GatewayError::Rejected`] where the session is paid to another account; store errors.
    pub async fn assign(
        &self,
        merchant: &Merchant,
        place: Place,
        payment: PaymentId,
        by: String,
    ) -> Result<Arc<Payment>, GatewayError> {
        let payment = self.payment(merchant.id, payment).await?;
        // A session opened before the merchant's account changed is paid to the old one, which was proven, too.
        let unmatched = match self.unmatched_at(merchant, place).await {
            Err(GatewayError::TransferNotFound | GatewayError::NotProven { .. })
                if payment.pay_to != merchant.hive_account =>
            {
                self.may_read(merchant, &payment.pay_to)?;
                self.stray(payment.pay_to, place).await?
            }
            found => found?,
        };
        self.may_decide(merchant, &unmatched.transfer.to).await?;
        match &unmatched.handling {
            Handling::Assigned { payment: earlier, .. } if *earlier == payment.id => return Ok(payment),
            Handling::Assigned { payment, .. } => return Err(GatewayError::TransferAssigned(*payment)),
            Handling::Open | Handling::Ignored { .. } => {}
        }
        let transfer = unmatched.transfer;
        let account = transfer.to;
        let route = if mutant!("assigned-is-a-wallets") { Route::Wallet } else { Route::Manual };
        let attachment = Attachment { transfer, route, memo_normalized: false, by };
        let told = self.entry("transfer_assigned", merchant.id, Some(name_of(place)), Vec::new());
        match self.order(payment.id, Command::Attach(attachment), Some(told)).await.map_err(GatewayError::from) {
            Ok(payment) => {
                tracing::info!(payment.id = %payment.id, %account, "transfer assigned to payment {}", payment.id);
                Ok(payment)
            }
            // Somebody else was faster, perhaps with this very transfer, or settled it meanwhile.
            Err(GatewayError::Contended | GatewayError::Rejected(Rejection::Unchanged { .. })) => {
                match self.stray(account, place).await?.handling {
                    Handling::Assigned { payment: earlier, .. } if earlier == payment.id => {
                        self.payment(merchant.id, payment.id).await
                    }
                    Handling::Assigned { payment, .. } => Err(GatewayError::TransferAssigned(payment)),
                    Handling::Open | Handling::Ignored { .. } => Err(GatewayError::Contended),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Notes that nothing is to be done about an unmatched transfer.
    ///
    /// # Errors
    /// As [`Gateway::assign`].
    pub async fn ignore(
        &self,
        merchant: &Merchant,
        place: Place,
        by: String,
        note: String,
    ) -> Result<Unmatched, GatewayError> {
        self.may_decide(merchant, &merchant.hive_account).await?;
        let unmatched = self.unmatched_at(merchant, place).await?;
        if let Handling::Assigned { payment, .. } = unmatched.handling {
            return Err(GatewayError::TransferAssigned(payment));
        }
        let handling = Handling::Ignored { by, at: self.now(), note };
        let write = Write::Handle { account: merchant.hive_account, place, handling: handling.clone() };
        let told = self.deed("transfer_ignored", merchant.id, Some(name_of(place)), Vec::new());
        let batch = Batch::of(write).and(told);
        self.context().env.store.commit(batch).await.map_err(|error| self.commit_failed(error))?;
        Ok(Unmatched { handling, ..unmatched })
    }

    /// Notes what a merchant decided about a payment's exceptions. No state changes; a later decision replaces it.
    ///
    /// # Errors
    /// [`GatewayError::PaymentNotFound`]; [`GatewayError::Rejected`] where there is nothing to decide; store errors.
    pub async fn resolve(
        &self,
        merchant: &Merchant,
        id: PaymentId,
        resolution: Resolution,
    ) -> Result<Arc<Payment>, GatewayError> {
        self.payment(merchant.id, id).await?;
        let told = self.entry("payment_resolved", merchant.id, Some(id.to_string()), Vec::new());
        let payment = self.order(id, Command::Resolve(resolution), Some(told)).await?;
        tracing::info!(payment.id = %id, "payment {id} resolved");
        Ok(payment)
    }

    /// Deletes the metadata of a payment that has ended. Repeating it returns the payment as it is.
    ///
    /// # Errors
    /// [`GatewayError::PaymentNotFound`]; [`GatewayError::Rejected`] while the payment can still change; store errors.
    pub async fn delete_metadata(&self, merchant: MerchantId, id: PaymentId) -> Result<Arc<Payment>, GatewayError> {
        self.delete(merchant, id, Command::DeleteMetadata, "payment_metadata_deleted").await
    }

    /// Deletes the note of the decision about a payment. Repeating it returns the payment as it is.
    ///
    /// # Errors
    /// [`GatewayError::PaymentNotFound`]; store errors.
    pub async fn delete_note(&self, merchant: MerchantId, id: PaymentId) -> Result<Arc<Payment>, GatewayError> {
        self.delete(merchant, id, Command::DeleteNote, "payment_note_deleted").await
    }

    async fn delete(
        &self,
        merchant: MerchantId,
        id: PaymentId,
        command: Command,
        action: &str,
    ) -> Result<Arc<Payment>, GatewayError> {
        self.payment(merchant, id).await?;
        let told = self.entry(action, merchant, Some(id.to_string()), Vec::new());
        match self.order(id, command, Some(told)).await {
            Err(SessionError::Rejected { rejection: Rejection::Unchanged { .. }, payment }) => Ok(payment),
            answer => answer.map_err(Into::into),
        }
    }
}

/// Names a transfer by its place on the chain.
fn name_of(Place { block_num, tx_in_block, op_in_tx }: Place) -> String {
    format!("{block_num}-{tx_in_block}-{op_in_tx}")
}

/// Returns those of some sessions that a transfer waits for: it came before them, and is theirs before they expire.
pub(crate) async fn awaited(
    context: &Context,
    sessions: impl Iterator<Item = PaymentId>,
) -> Result<BTreeSet<PaymentId>, ReadError> {
    let store = &context.env.store;
    let mut awaited = BTreeSet::new();
    // Hardly ever does anything wait for anybody.
    if mutant!("expiry-before-its-money") || store.waiting_for_sessions(None, 1).await?.is_empty() {
        return Ok(awaited);
    }
    let not_before = context.now().minus(WAITS);
    let last_account = AccountName::parse("zzzzzzzzzzzzzzzz").expect("a name of sixteen letters");
    let last_place = Place { block_num: u32::MAX, tx_in_block: u32::MAX, op_in_tx: u32::MAX };
    for id in sessions.filter(|id| id.made_at() >= not_before) {
        let just_before = (PaymentId::from_bits(id.bits().wrapping_sub(1)), last_account, last_place);
        let first = store.waiting_for_sessions(Some(just_before), 1).await?.pop();
        if first.is_some_and(|(waits_for, ..)| waits_for == id) {
            awaited.insert(id);
        }
    }
    Ok(awaited)
}

/// Puts transfers to the sessions they name that have appeared since: restored, or opened by another engine. Looks at
/// a few at a time, from `after` on; returns where the next look begins.
pub(crate) async fn attach_waiting(
    context: &Context,
    sessions: &ractor::ActorRef<registry::Msg>,
    after: Option<StrayKey>,
) -> Option<StrayKey> {
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
        // What nobody ever opened is not looked for for ever.
        if id.made_at() < not_before {
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
        let attachment = Attachment { transfer, route: Route::Wallet, memo_normalized, by };
        let (order, answer) = Order::awaited(Command::Attach(attachment));
        if sessions.cast(registry::Msg::Order(id, order)).is_err() {
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
                    // It never will be the session's. The merchant still has it; the session waits for it no more.
                    _ => Handling::Open,
                };
                let write = Write::Handle { account, place, handling };
                if let Err(error) = context.env.store.commit(Batch::of(write)).await {
                    context.give_up_on(&error);
                }
            }
            // It was settled for something else: the session waits for it no more.
            Ok(Err(SessionError::Claimed(_))) => {
                let write = Write::Handle { account, place, handling: Handling::Open };
                if let Err(error) = context.env.store.commit(Batch::of(write)).await {
                    context.give_up_on(&error);
                }
            }
            Ok(Err(error)) => {
                tracing::debug!(payment.id = %id, %error, "transfer not credited to payment {id}: {error}");
            }
            // It died with the order; the next look tries again.
            Err(_) => {}
        }
    }
    next
}
