//! Payment by HTTP 402: the checkout addresses for programs, and the facilitator's own addresses.
//!
//! A payment header is money in the hand of who holds it: neither it nor a signed transaction is ever logged, and no
//! answer to one leads elsewhere (3xx).

mod address;
mod answer;
mod facilitator;
mod header;

use engine::{
    hive::Pack,
    x402::{Accepted, PaymentPayload, Reason, Refused},
};
use proto::{
    ApiError,
    v1::{self, settle_payment_response::Outcome, verify_payment_response::Verdict, x402_payment::Target},
};

pub(super) use address::visit;
pub(super) use answer::{cors, preflight};
pub(super) use facilitator::{health, is_judged, limited, settle, supported, supported_networks, verify};
pub(super) use header::is_shown;

use super::{Facade, call::Call};

/// Bytes of a refusal's sentence: it repeats what was sent, and travels in headers.
const MAX_MESSAGE_BYTES: usize = 200;

/// A verdict against a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Denial {
    reason: Reason,
    message: String,
    /// The payer, once its signatures are verified.
    payer: Option<String>,
    /// The caller's own transaction, where it is in flight or paid for the same thing before.
    tx_id: Option<String>,
}

impl Denial {
    /// Reads the engine's refusal; a word from the future is its `unknown`.
    fn of(refused: v1::X402Refusal, unknown: Reason) -> Self {
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
    let accepted = |accepted: Accepted| v1::X402Accepted {
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

/// Asks the engine for a verdict; returns who would pay.
async fn ask_verify(
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
async fn ask_settle(
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
