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
    access::Access,
    chain::ledger::Ledger,
    error::EngineError,
    payments::handle::Payments,
    x402::{claims::FacilitatorMsg, receipts::SignerCache},
};

/// A submitted payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct X402Request {
    /// Its target.
    pub target: Target,
    /// The payment.
    pub payload: PaymentPayload,
}

/// The target of a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A session of this gateway.
    Session(PaymentId),
    /// Requirements of another server, for which the gateway only verifies and broadcasts.
    Requirements(Requirements),
}

/// A payment that was settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The transaction.
    pub tx_id: TxId,
    /// The payer.
    pub payer: AccountName,
    /// The number of its block, if known.
    pub block_num: Option<u32>,
    /// The amount that the payee received.
    pub amount: Money,
    /// Whether an earlier request settled this payment.
    pub is_replay: bool,
}

/// Why a payment was not verified or settled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum X402Error {
    /// A verdict about the payment.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// No verdict: the engine or the ledger is unavailable.
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

/// The caller of a settlement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// The merchant of the request's API key: the seller.
    pub seller: Option<MerchantId>,
    /// The seller's idempotency key, one for each of its inbound requests.
    pub key: Option<IdempotencyKey>,
}

/// Payments by HTTP 402: for sessions, and for the requirements of other servers. Cheap to clone.
#[derive(Clone)]
pub struct X402 {
    pub(crate) access: Access,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) payments: Payments,
    pub(crate) signers: Arc<SignerCache>,
    facilitator: ActorRef<FacilitatorMsg>,
}

impl X402 {
    pub(crate) fn new(
        access: Access,
        ledger: Arc<Ledger>,
        payments: Payments,
        facilitator: ActorRef<FacilitatorMsg>,
    ) -> Self {
        Self { access, ledger, payments, signers: Arc::default(), facilitator }
    }

    /// Returns the same handle for another actor of the audit log.
    pub(crate) fn by(&self, actor: Arc<Actor>) -> Self {
        Self { access: self.access.by(Arc::clone(&actor)), payments: self.payments.by(actor), ..self.clone() }
    }

    pub(crate) fn send(&self, message: FacilitatorMsg) -> Result<(), EngineError> {
        self.facilitator.cast(message).map_err(|_| EngineError::StoreFailed)
    }
}
