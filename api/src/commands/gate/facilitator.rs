//! Verification and settlement by the engine, in this process or elsewhere.

use engine::{
    hive::Pack,
    x402::{AcceptedRequirements, PaymentPayload, Reason},
};
use http::HeaderValue;
use proto::{
    ApiError, Caller, Engine,
    v1::{self, settle_payment_response::Outcome, verify_payment_response::Verdict, x402_payment::Target},
};

use super::{
    offer::{Denial, Settled},
    routes::Price,
};

/// The engine as a facilitator, called with a merchant's key.
#[derive(Clone)]
pub(super) struct Facilitator {
    engine: Engine,
    caller: Caller,
}

/// The verdict of the engine on a payment; `Err` if there is none.
pub(super) type Judged<T> = Result<Result<T, Denial>, ApiError>;

impl Facilitator {
    pub(super) fn new(engine: Engine, api_key: &str) -> Self {
        Self { engine, caller: Caller::with_key(api_key) }
    }

    /// Checks a payment and moves nothing; returns the payer.
    pub(super) async fn verify(&self, price: &Price, resource: &str, payload: &PaymentPayload) -> Judged<String> {
        let request = v1::VerifyPaymentRequest { payment: Some(payment(price, resource, payload)) };
        let response = self.engine.verify_payment(self.caller.request(request)).await?.into_inner();
        match response.verdict {
            Some(Verdict::Valid(valid)) => Ok(Ok(valid.payer)),
            Some(Verdict::Refused(refused)) => Ok(Err(denial(refused, Reason::UnexpectedVerifyError))),
            None => Err(proto::Reason::Internal.into()),
        }
    }

    /// Settles a payment; a repeat under the same key gets the same result.
    pub(super) async fn settle(
        &self,
        price: &Price,
        resource: &str,
        payload: &PaymentPayload,
        idempotency_key: &str,
    ) -> Judged<Settled> {
        let request = v1::SettlePaymentRequest { payment: Some(payment(price, resource, payload)), resource: None };
        let key = HeaderValue::from_str(idempotency_key).ok();
        let caller = Caller { idempotency_key: key, ..self.caller.clone() };
        let response = self.engine.settle_payment(caller.request(request)).await?.into_inner();
        match response.outcome {
            Some(Outcome::Settled(settled)) => Ok(Ok(Settled { tx_id: settled.tx_id, payer: settled.payer })),
            Some(Outcome::Refused(refused)) => Ok(Err(denial(refused, Reason::UnexpectedSettleError))),
            None => Err(proto::Reason::Internal.into()),
        }
    }
}

fn payment(price: &Price, resource: &str, payload: &PaymentPayload) -> v1::X402Payment {
    let accepted = |accepted: &AcceptedRequirements| v1::X402Accepted {
        amount: accepted.amount.clone(),
        asset: accepted.asset.clone(),
        pay_to: accepted.pay_to.clone(),
    };
    let requirements = v1::X402Requirements {
        amount: Some(v1::Money {
            units: price.amount.units,
            currency: crate::facade::currency_to_wire(price.amount.currency).into(),
        }),
        pay_to: price.pay_to.to_string(),
        resource: resource.to_owned(),
        valid_before: None,
    };
    v1::X402Payment {
        target: Some(Target::Requirements(requirements)),
        x402_version: payload.version.number().into(),
        signed_transaction: payload.transaction.signed_bytes(Pack::Legacy).into(),
        nonce: payload.nonce.clone(),
        payment_identifier: payload.identifier.clone(),
        accepted: payload.accepted.as_ref().map(accepted),
    }
}

fn denial(refused: v1::X402Refusal, unknown: Reason) -> Denial {
    let name = v1::X402Reason::try_from(refused.reason).unwrap_or_default().as_str_name();
    let word = name.strip_prefix("X402_REASON_").unwrap_or(name).to_lowercase();
    let reason = Reason::parse(&word).unwrap_or(unknown);
    Denial { reason, message: refused.message, payer: refused.payer, tx_id: refused.tx_id }
}
