//! The handle of x402, its requests and its outcomes.

use std::sync::Arc;

use engine::{
    account::AccountName,
    audit::Actor,
    idempotency::IdempotencyKey,
    ids::{MerchantId, PaymentId},
    ledger::TxId,
    money::Money,
    x402::{PaymentPayload, Refused, Requirements},
};
use ractor::ActorRef;

use crate::{
    access::Access, chain::ledger::Ledger, error::EngineError, payments::handle::Payments, x402::claims::FacilitatorMsg,
};

/// A payment that an agent submits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct X402Request {
    /// What it is for.
    pub target: Target,
    /// The payment.
    pub payload: PaymentPayload,
}

/// What an agent pays for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A session of ours.
    Session(PaymentId),
    /// Requirements of somebody else's server; we only verify and broadcast.
    Requirements(Requirements),
}

/// A payment that was settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The transaction.
    pub tx_id: TxId,
    /// Who paid.
    pub payer: AccountName,
    /// The block it is in, where that is known.
    pub block_num: Option<u32>,
    /// How much reached the one who was to be paid.
    pub amount: Money,
    /// Whether an earlier request showed this payment: this request did not make it.
    pub is_replay: bool,
}

/// Why a payment was not verified or settled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum X402Error {
    /// A verdict about the payment.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// No verdict: the engine or the ledger could not be asked.
    #[error(transparent)]
    Unavailable(#[from] EngineError),
}

impl X402Error {
    /// Adds the verified payer to a refusal.
    pub(crate) fn by(self, payer: &AccountName) -> Self {
        match self {
            Self::Refused(refused) => Self::Refused(refused.by(payer)),
            other => other,
        }
    }
}

/// Who asks for a settlement, as far as it says so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// The merchant whose API key the request carries: the seller.
    pub seller: Option<MerchantId>,
    /// The seller's idempotency key: one for each inbound request of its own.
    pub key: Option<IdempotencyKey>,
}

/// Payments by HTTP 402: for sessions, and for the requirements of other servers. Cheap to clone.
#[derive(Clone)]
pub struct X402 {
    pub(crate) access: Access,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) payments: Payments,
    facilitator: ActorRef<FacilitatorMsg>,
}

impl X402 {
    pub(crate) fn new(
        access: Access,
        ledger: Arc<Ledger>,
        payments: Payments,
        facilitator: ActorRef<FacilitatorMsg>,
    ) -> Self {
        Self { access, ledger, payments, facilitator }
    }

    /// Returns the same handle for another actor of the audit log.
    pub(crate) fn by(&self, actor: Arc<Actor>) -> Self {
        Self { access: self.access.by(Arc::clone(&actor)), payments: self.payments.by(actor), ..self.clone() }
    }

    pub(crate) fn send(&self, message: FacilitatorMsg) -> Result<(), EngineError> {
        self.facilitator.cast(message).map_err(|_| EngineError::StoreFailed)
    }
}
