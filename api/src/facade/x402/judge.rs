//! Payments that are judged by the engine, and what counts as an attempt.

use engine::{
    hive::Pack,
    x402::{AcceptedRequirements, PaymentPayload, Reason, Refused},
};
use proto::{
    ApiError,
    v1::{self, settle_payment_response::Outcome, verify_payment_response::Verdict, x402_payment::Target},
};

use crate::facade::http::{call::Call, state::Facade};

/// Bytes of a refusal's sentence: it repeats what was sent, and travels in headers.
const MAX_MESSAGE_BYTES: usize = 200;

/// A verdict against a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Denial {
    pub(crate) reason: Reason,
    pub(crate) message: String,
    /// The payer, once its signatures are verified.
    pub(crate) payer: Option<String>,
    /// The caller's own transaction, where it is in flight or paid for the same thing before.
    pub(crate) tx_id: Option<String>,
}

impl Denial {
    /// Reads the engine's refusal; a word from the future is its `unknown`.
    pub(crate) fn of(refused: v1::X402Refusal, unknown: Reason) -> Self {
        let name = v1::X402Reason::try_from(refused.reason).unwrap_or_default().as_str_name();
        let word = name.strip_prefix("X402_REASON_").unwrap_or(name).to_lowercase();
        let reason = Reason::parse(&word).unwrap_or(unknown);
        Self { reason, message: shorten(refused.message), payer: refused.payer, tx_id: refused.tx_id }
    }
}

impl From<Refused> for Denial {
    fn from(refused: Refused) -> Self {
        let payer = refused.payer.map(|payer| payer.to_string());
        let tx_id = refused.tx_id.map(|id| id.to_string());
        Self { reason: refused.reason, message: shorten(refused.message), payer, tx_id }
    }
}

fn shorten(mut message: String) -> String {
    if message.len() > MAX_MESSAGE_BYTES {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES - '…'.len_utf8()));
        message.push('…');
    }
    message
}

/// Writes a payment as the engine reads it.
pub(crate) fn request(target: Target, payload: PaymentPayload) -> v1::X402Payment {
    let accepted = |accepted: AcceptedRequirements| v1::X402Accepted {
        amount: accepted.amount,
        asset: accepted.asset,
        pay_to: accepted.pay_to,
    };
    v1::X402Payment {
        target: Some(target),
        x402_version: payload.version.number().into(),
        signed_transaction: payload.transaction.signed_bytes(Pack::Legacy).into(),
        nonce: payload.nonce,
        payment_identifier: payload.identifier,
        accepted: payload.accepted.map(accepted),
    }
}

/// A payment, and what decides whether it is an attempt.
pub(crate) struct Attempt {
    payment: v1::X402Payment,
    is_signed: bool,
}

impl Attempt {
    pub(crate) fn new(target: Target, payload: PaymentPayload) -> Self {
        let is_signed = !payload.transaction.signatures.is_empty();
        Self { payment: request(target, payload), is_signed }
    }

    /// Returns the session of ours that it is for.
    fn session(&self) -> Option<String> {
        match &self.payment.target {
            Some(Target::SessionId(id)) => Some(id.clone()),
            _ => None,
        }
    }
}

/// Judges a payment. Refuses where the address has no attempt left for its session, and counts an attempt unless the
/// payment was refused for what everybody can see of it: those who share an address with a payer do not use up its
/// attempts by nonsense.
async fn judge<T>(
    facade: &Facade,
    call: &Call,
    shown: Attempt,
    ask: impl AsyncFnOnce(v1::X402Payment) -> Result<Result<T, Denial>, ApiError>,
) -> Result<Result<T, Denial>, ApiError> {
    let Some(session) = shown.session() else { return ask(shown.payment).await };
    facade.edge.check_attempts(&session, call.client())?;
    let verdict = ask(shown.payment).await;
    let is_attempt = match &verdict {
        Ok(Err(denial)) => shown.is_signed && is_about_signatures(denial.reason),
        Ok(Ok(_)) => true,
        // Without a verdict the same payment may be shown again.
        Err(_) => false,
    };
    if is_attempt {
        facade.edge.count_attempt(&session, call.client());
    }
    verdict
}

/// Says whether a payment was refused after its signatures were looked at, or for what was claimed before.
const fn is_about_signatures(reason: Reason) -> bool {
    match reason {
        Reason::InvalidNetwork
        | Reason::InvalidPayload
        | Reason::InvalidPaymentRequirements
        | Reason::InvalidScheme
        | Reason::UnsupportedScheme
        | Reason::InvalidX402Version
        | Reason::PaymentExpired
        | Reason::AcceptedRequirementsMismatch
        | Reason::SessionNotFound
        | Reason::SessionNotPending
        | Reason::SessionExpired
        | Reason::SessionCancelling
        | Reason::X402Disabled
        | Reason::MerchantInactive
        | Reason::RateLimited
        | Reason::Operations
        | Reason::RecipientMismatch
        | Reason::SenderMismatch
        | Reason::SelfPayment
        | Reason::AssetMismatch
        | Reason::AmountMismatch
        | Reason::Amount
        | Reason::MemoMismatch
        | Reason::ExpirationTooFar => false,
        Reason::InsufficientFunds
        | Reason::InvalidTransactionState
        | Reason::UnexpectedVerifyError
        | Reason::UnexpectedSettleError
        | Reason::DuplicateSettlement
        | Reason::SettlementPending
        | Reason::Signature
        | Reason::Authority
        | Reason::AccountNotFound => true,
    }
}

/// Asks the engine for a verdict; returns who would pay.
pub(crate) async fn ask_verify(
    facade: &Facade,
    call: &Call,
    shown: Attempt,
) -> Result<Result<String, Denial>, ApiError> {
    judge(facade, call, shown, async |payment| verify_payment(facade, call, payment).await).await
}

async fn verify_payment(
    facade: &Facade,
    call: &Call,
    payment: v1::X402Payment,
) -> Result<Result<String, Denial>, ApiError> {
    let request = v1::VerifyPaymentRequest { payment: Some(payment) };
    let answer = facade.engine.verify_payment(call.caller.request(request)).await?.into_inner();
    match answer.verdict {
        Some(Verdict::Valid(valid)) => Ok(Ok(valid.payer)),
        Some(Verdict::Refused(refused)) => Ok(Err(Denial::of(refused, Reason::UnexpectedVerifyError))),
        None => Err(proto::Reason::Internal.into()),
    }
}

/// Asks the engine to settle, and waits as long as it does.
pub(crate) async fn ask_settle(
    facade: &Facade,
    call: &Call,
    shown: Attempt,
) -> Result<Result<v1::X402Settled, Denial>, ApiError> {
    judge(facade, call, shown, async |payment| settle_payment(facade, call, payment).await).await
}

async fn settle_payment(
    facade: &Facade,
    call: &Call,
    payment: v1::X402Payment,
) -> Result<Result<v1::X402Settled, Denial>, ApiError> {
    let request = v1::SettlePaymentRequest { payment: Some(payment) };
    let answer = facade.engine.settle_payment(call.caller.request(request)).await?.into_inner();
    match answer.outcome {
        Some(Outcome::Settled(settled)) => Ok(Ok(settled)),
        Some(Outcome::Refused(refused)) => Ok(Err(Denial::of(refused, Reason::UnexpectedSettleError))),
        None => Err(proto::Reason::Internal.into()),
    }
}
