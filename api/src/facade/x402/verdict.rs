//! Verification and settlement by the engine, and the count of attempts.

use engine::{
    hive::Pack,
    x402::{AcceptedRequirements, PaymentPayload, Reason, Refused},
};
use proto::{
    ApiError,
    v1::{
        self, checkout_session::Session, settle_payment_response::Outcome, verify_payment_response::Verdict,
        x402_payment::Target,
    },
};

use crate::facade::http::{call::Call, state::Facade};

/// Maximum bytes of a refusal's message, which may quote the request and is sent in headers.
const MAX_MESSAGE_BYTES: usize = 200;

/// The refusal of a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Denial {
    pub(crate) reason: Reason,
    pub(crate) message: String,
    /// The payer, if the signatures are valid.
    pub(crate) payer: Option<String>,
    /// The caller's own transaction, if it is pending or already paid for the same resource.
    pub(crate) tx_id: Option<String>,
}

impl Denial {
    /// Converts the engine's refusal; a reason that this version does not know becomes `unknown`.
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

/// Converts a payment for the engine.
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

/// A payment of a request, with what decides whether it counts as an attempt.
pub(crate) struct Attempt {
    payment: v1::X402Payment,
    is_signed: bool,
    /// The checkout page for which a receipt is signed.
    resource: Option<v1::X402Resource>,
}

impl Attempt {
    pub(crate) fn new(target: Target, payload: PaymentPayload) -> Self {
        let is_signed = !payload.transaction.signatures.is_empty();
        Self { payment: request(target, payload), is_signed, resource: None }
    }

    /// Requests a signed receipt for a checkout page.
    pub(crate) fn for_receipt_of(self, resource: v1::X402Resource) -> Self {
        Self { resource: Some(resource), ..self }
    }

    /// Requests a signed receipt for the checkout page with the payment's id. For requirements of another server, only that
    /// server can sign a receipt.
    pub(crate) fn for_receipt_by_id(self, base_url: &str) -> Self {
        match self.session() {
            Some(id) => {
                let session = Some(v1::CheckoutSession { session: Some(Session::PaymentId(id)) });
                self.for_receipt_of(v1::X402Resource { session, base_url: base_url.to_owned() })
            }
            None => self,
        }
    }

    /// Returns the payment id of this gateway that it is for.
    fn session(&self) -> Option<String> {
        match &self.payment.target {
            Some(Target::SessionId(id)) => Some(id.clone()),
            _ => None,
        }
    }
}

/// Runs a verification or settlement. Refuses if the IP address has no attempt left for the payment id. Counts an
/// attempt unless the payment was refused for a reason that any client could cause, so that clients that share an IP
/// address with a payer cannot use up its attempts.
async fn with_attempts<T>(
    facade: &Facade,
    call: &Call,
    shown: Attempt,
    run: impl AsyncFnOnce(Attempt) -> Result<Result<T, Denial>, ApiError>,
) -> Result<Result<T, Denial>, ApiError> {
    let Some(session) = shown.session() else { return run(shown).await };
    facade.edge.check_attempts(&session, call.client())?;
    let is_signed = shown.is_signed;
    let verdict = run(shown).await;
    let is_attempt = match &verdict {
        Ok(Err(denial)) => is_signed && is_about_signatures(denial.reason),
        Ok(Ok(_)) => true,
        // Without a verdict the client may retry with the same payment.
        Err(_) => false,
    };
    if is_attempt {
        facade.edge.count_attempt(&session, call.client());
    }
    verdict
}

/// Whether a payment was refused after its signatures were verified, or because it was used before.
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

/// Verifies a payment by the engine; returns the payer.
pub(crate) async fn request_verification(
    facade: &Facade,
    call: &Call,
    shown: Attempt,
) -> Result<Result<String, Denial>, ApiError> {
    with_attempts(facade, call, shown, async |shown| verify_payment(facade, call, shown.payment).await).await
}

async fn verify_payment(
    facade: &Facade,
    call: &Call,
    payment: v1::X402Payment,
) -> Result<Result<String, Denial>, ApiError> {
    let request = v1::VerifyPaymentRequest { payment: Some(payment) };
    let response = facade.engine.verify_payment(call.caller.request(request)).await?.into_inner();
    match response.verdict {
        Some(Verdict::Valid(valid)) => Ok(Ok(valid.payer)),
        Some(Verdict::Refused(refused)) => Ok(Err(Denial::of(refused, Reason::UnexpectedVerifyError))),
        None => Err(proto::Reason::Internal.into()),
    }
}

/// Settles a payment by the engine and waits for the outcome.
pub(crate) async fn request_settlement(
    facade: &Facade,
    call: &Call,
    shown: Attempt,
) -> Result<Result<v1::X402Settled, Denial>, ApiError> {
    with_attempts(facade, call, shown, async |shown| settle_payment(facade, call, shown).await).await
}

async fn settle_payment(
    facade: &Facade,
    call: &Call,
    shown: Attempt,
) -> Result<Result<v1::X402Settled, Denial>, ApiError> {
    let request = v1::SettlePaymentRequest { payment: Some(shown.payment), resource: shown.resource };
    let response = facade.engine.settle_payment(call.caller.request(request)).await?.into_inner();
    match response.outcome {
        Some(Outcome::Settled(settled)) => Ok(Ok(settled)),
        Some(Outcome::Refused(refused)) => Ok(Err(Denial::of(refused, Reason::UnexpectedSettleError))),
        None => Err(proto::Reason::Internal.into()),
    }
}
