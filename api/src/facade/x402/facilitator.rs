//! The facilitator endpoints: verify and settle, for the gateway's payments and for other servers.
//!
//! A verdict has status 200. A 400 means that the request is invalid, a 5xx that no verdict is available.

use engine::x402::{BodyError, FacilitatorRequest, NETWORK, NETWORK_CAIP2, PaymentTarget, Reason, SCHEME};
use http::{HeaderValue, StatusCode, header::AUTHORIZATION};
use proto::{
    ApiError,
    caller::{API_KEY, IDEMPOTENT_REPLAYED},
    v1::{self, Health, x402_payment::Target},
};
use serde::Serialize;
use serde_json::{Value, json};
use warp::reply::Response;

use crate::facade::{
    http::{call::Call, refusal::Refusal, response, state::Facade},
    record,
    x402::{
        responses as x402_responses,
        verdict::{Attempt, Denial, request_settlement, request_verification},
    },
};

/// The verdict on a payment that was not broadcast.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Verified<'a> {
    is_valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    payer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    invalid_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    invalid_message: Option<&'a str>,
    /// The transaction, if it already paid for the same resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    transaction: Option<&'a str>,
}

impl<'a> Verified<'a> {
    fn denied(denial: &'a Denial) -> Self {
        Self {
            is_valid: false,
            payer: denial.payer.as_deref(),
            invalid_reason: Some(denial.reason.as_str()),
            invalid_message: Some(&denial.message),
            transaction: denial.tx_id.as_deref(),
        }
    }
}

/// The outcome of a settlement. `transaction` and `network` are always strings, because clients rely on it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome<'a> {
    success: bool,
    tx_id: &'a str,
    transaction: &'a str,
    network: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    payer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_num: Option<u32>,
    /// Smallest units that the recipient received.
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<record::Text<u64>>,
    /// Whether an earlier request contained this payment.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
    /// The signed receipt of a payment of this gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    extensions: Option<Value>,
}

impl<'a> Outcome<'a> {
    fn denied(denial: &'a Denial) -> Self {
        let tx_id = denial.tx_id.as_deref().unwrap_or_default();
        Self {
            success: false,
            tx_id,
            transaction: tx_id,
            network: NETWORK,
            payer: denial.payer.as_deref(),
            error_reason: Some(denial.reason.as_str()),
            error_message: Some(&denial.message),
            block_num: None,
            amount: None,
            replayed: false,
            extensions: None,
        }
    }

    fn settled(settled: &'a v1::X402Settled) -> Self {
        Self {
            success: true,
            tx_id: &settled.tx_id,
            transaction: &settled.tx_id,
            network: NETWORK,
            payer: Some(&settled.payer),
            error_reason: None,
            error_message: None,
            block_num: settled.block_num,
            amount: settled.amount.as_ref().map(|amount| record::Text(amount.units)),
            replayed: settled.is_replay,
            extensions: x402_responses::receipt_extensions(settled),
        }
    }
}

/// Verifies a payment without broadcasting it.
pub(crate) async fn verify(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    let verdict = match read(&mut call).await {
        Ok(Ok(shown)) => match identify(&mut call) {
            Ok(()) => request_verification(facade, &call, shown).await,
            Err(error) => Err(error),
        },
        Ok(Err(denial)) => Ok(Err(denial)),
        Err(refused) => {
            return Ok(refused_body(&call, &refused, |denial| response::to_json(&Verified::denied(denial))));
        }
    };
    match verdict {
        Ok(Ok(payer)) => {
            let verified = Verified {
                is_valid: true,
                payer: Some(&payer),
                invalid_reason: None,
                invalid_message: None,
                transaction: None,
            };
            Ok(response::json(StatusCode::OK, &verified))
        }
        Ok(Err(denial)) => Ok(response::json(StatusCode::OK, &Verified::denied(&denial))),
        Err(error) => Ok(refused(VERIFY, &error, call.request_id())),
    }
}

/// Verifies a payment, broadcasts it, and waits for the outcome.
pub(crate) async fn settle(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    let outcome = match read(&mut call).await {
        Ok(Ok(shown)) => match identify(&mut call).and_then(|()| call.idempotency_key()) {
            Ok(key) => {
                call.caller.idempotency_key = key;
                request_settlement(facade, &call, shown.for_receipt_by_id(&facade.base_url)).await
            }
            Err(error) => Err(error),
        },
        Ok(Err(denial)) => Ok(Err(denial)),
        Err(refused) => return Ok(refused_body(&call, &refused, |denial| response::to_json(&Outcome::denied(denial)))),
    };
    match outcome {
        Err(error) if is_reused(error.reason) => Ok(reused(&call, &error)),
        Ok(Ok(settled)) => {
            let mut response = response::json(StatusCode::OK, &Outcome::settled(&settled));
            if settled.is_replay {
                response.headers_mut().insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
            }
            Ok(response)
        }
        Ok(Err(denial)) => {
            let mut response = response::json(StatusCode::OK, &Outcome::denied(&denial));
            if denial.reason == Reason::SettlementPending {
                x402_responses::retry_later(&mut response);
            }
            Ok(response)
        }
        Err(error) => Ok(refused(SETTLE, &error, call.request_id())),
    }
}

/// Why a request gets no verdict.
enum Unjudged {
    /// The body could not be read.
    Transport(ApiError),
    /// The body is not a valid request.
    Body(BodyError),
}

/// Reads the body. An invalid payment in it is a verdict, not an error.
async fn read(call: &mut Call) -> Result<Result<Attempt, Denial>, Unjudged> {
    let body = call.json_bytes().await.map_err(Unjudged::Transport)?;
    let request = FacilitatorRequest::parse(&body).map_err(Unjudged::Body)?;
    Ok(request.map(wire).map_err(Denial::from))
}

/// Reads the API key, if the request has one.
fn identify(call: &mut Call) -> Result<(), ApiError> {
    if call.headers().contains_key(API_KEY) || call.headers().contains_key(AUTHORIZATION) {
        call.with_key()?;
    }
    Ok(())
}

/// Whether an idempotency key was used before: the seller's key, or the payer's payment identifier.
const fn is_reused(reason: proto::Reason) -> bool {
    matches!(reason, proto::Reason::IdempotencyKeyReused | proto::Reason::PaymentIdentifierReused)
}

/// Returns the response to an idempotency key that was used for another payment or other requirements.
fn reused(call: &Call, error: &ApiError) -> Response {
    let message = error.message.to_string();
    let denial = Denial { reason: Reason::DuplicateSettlement, message, payer: None, tx_id: None };
    x402_responses::failure(error, call.request_id(), &Outcome::denied(&denial))
}

fn wire(request: FacilitatorRequest) -> Attempt {
    let target = match request.target {
        PaymentTarget::Session(id) => Target::SessionId(id.to_string()),
        PaymentTarget::Requirements(requirements) => Target::Requirements(v1::X402Requirements {
            amount: Some(v1::Money {
                units: requirements.amount.units,
                currency: record::currency_to_wire(requirements.amount.currency).into(),
            }),
            pay_to: requirements.pay_to.to_string(),
            resource: requirements.resource,
            valid_before: requirements.valid_before.map(record::instant_to_wire),
        }),
    };
    Attempt::new(target, request.payload)
}

fn refused_body(call: &Call, unjudged: &Unjudged, own: impl FnOnce(&Denial) -> Vec<u8>) -> Response {
    let (error, message) = match unjudged {
        Unjudged::Transport(error) => (error.clone(), error.message.to_string()),
        Unjudged::Body(body) => {
            let message = body.to_string();
            let reason = match body {
                BodyError::NotJson(_) => proto::Reason::MalformedJson,
                _ => proto::Reason::ValidationFailed,
            };
            (ApiError::new(reason).and_field(body.field(), message.clone()), message)
        }
    };
    let denial = Denial { reason: Reason::InvalidPayload, message, payer: None, tx_id: None };
    x402_responses::failure_with(&error, call.request_id(), own(&denial))
}

const VERIFY: &str = "/api/public/x402/verify";
const SETTLE: &str = "/api/public/x402/settle";

/// Returns the response to a request without a verdict, with the fields its client expects.
pub(crate) fn refused(path: &str, error: &ApiError, request_id: &str) -> Response {
    match path {
        VERIFY => {
            let denial = unavailable(Reason::UnexpectedVerifyError, error);
            x402_responses::failure(error, request_id, &Verified::denied(&denial))
        }
        _ => {
            let denial = unavailable(Reason::UnexpectedSettleError, error);
            x402_responses::failure(error, request_id, &Outcome::denied(&denial))
        }
    }
}

fn unavailable(reason: Reason, error: &ApiError) -> Denial {
    if error.http() < 500 {
        // An error of the request, such as an invalid API key.
        let reason = match error.reason {
            proto::Reason::RateLimited => Reason::RateLimited,
            _ => Reason::InvalidPayload,
        };
        let message = error.message.to_string();
        return Denial { reason, message, payer: None, tx_id: None };
    }
    let message = format!("no verdict was reached: {}; submit the same payment again", error.message);
    Denial { reason, message, payer: None, tx_id: None }
}

/// Returns 200 while payments can be verified and settled.
pub(crate) async fn health(facade: &Facade, call: Call) -> Result<Response, Refusal> {
    let request = call.caller.request(v1::GetHealthRequest {});
    let report = facade.engine.system().get_health(request).await?.into_inner();
    if Health::try_from(report.health) == Ok(Health::Unavailable) {
        return Err(proto::Reason::StoreUnavailable.into());
    }
    if !report.ledger_reachable {
        return Err(proto::Reason::NodeUnavailable.into());
    }
    let body = json!({ "status": "ok", "network": NETWORK, "headBlock": report.head_block });
    Ok(response::json(StatusCode::OK, &body))
}

/// Returns the supported networks.
pub(crate) async fn supported_networks() -> Result<Response, Refusal> {
    Ok(response::json(StatusCode::OK, &[NETWORK]))
}

/// Returns the supported kinds of payment, in both versions and with both names of the network.
pub(crate) async fn supported() -> Result<Response, Refusal> {
    let kind = |version: u8, network: &str| json!({ "x402Version": version, "scheme": SCHEME, "network": network, "extra": {} });
    let kinds = [kind(2, NETWORK), kind(1, NETWORK), kind(2, NETWORK_CAIP2)];
    let body = json!({ "kinds": kinds, "extensions": ["payment-identifier"], "signers": {} });
    Ok(response::json(StatusCode::OK, &body))
}
