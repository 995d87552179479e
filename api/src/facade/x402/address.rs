//! Checkout URLs for programs: payment requirements, and settlement of the payment in the request.
//!
//! The order of checks, with or without a payment: 404; completed (the receipt for the same transaction, otherwise
//! 409); 410 cancelled, expired, failed; 403 inactive merchant; 403 x402 disabled; then 402 or settlement.

use engine::x402::{NETWORK, PaymentPayload, Reason};
use http::{Method, StatusCode};
use proto::{
    ApiError, IntoRecord,
    v1::{self, PaymentStatus, checkout_session::Session, x402_payment::Target},
};
use warp::reply::Response;

use crate::facade::{
    http::{call::Call, refusal::Refusal, response::to_json, state::Facade},
    record::{self, cancellation},
    x402::{
        header::{self, Shown},
        responses::{self, Closed},
        verdict::{Attempt, Denial, request_settlement},
    },
};

/// The state of a payment for a program.
enum Availability {
    Completed,
    Gone(Reason),
    /// A signed transaction or a full transfer in a block is pending; a second payment is refused.
    Busy,
    Inactive,
    Off,
    Open,
}

impl Availability {
    fn of(payment: &v1::Payment) -> Self {
        match PaymentStatus::try_from(payment.status) {
            Ok(PaymentStatus::Completed) => Self::Completed,
            Ok(PaymentStatus::SystemCancelled) => Self::Gone(Reason::SessionExpired),
            Ok(PaymentStatus::Pending | PaymentStatus::Processing) if payment.claim_tx_id.is_some() => Self::Busy,
            Ok(PaymentStatus::Pending) if payment.expired => Self::Gone(Reason::SessionExpired),
            Ok(PaymentStatus::Pending) if cancellation::undecided(payment).is_some() => {
                Self::Gone(Reason::SessionCancelling)
            }
            Ok(PaymentStatus::Pending) if !payment.merchant_active => Self::Inactive,
            Ok(PaymentStatus::Pending) if !payment.x402_enabled => Self::Off,
            Ok(PaymentStatus::Pending) if payment.detected => Self::Busy,
            Ok(PaymentStatus::Pending) => Self::Open,
            Ok(PaymentStatus::Processing) => Self::Busy,
            _ => Self::Gone(Reason::SessionNotPending),
        }
    }
}

/// A request of a program.
struct Visit<'a> {
    facade: &'a Facade,
    call: &'a Call,
    session: Option<v1::CheckoutSession>,
    request_id: &'a str,
}

/// Handles a program's request of a checkout URL.
pub(crate) async fn visit(
    facade: &Facade,
    call: &Call,
    session: Option<v1::CheckoutSession>,
) -> Result<Response, Refusal> {
    // Only a deliberate GET pays; any other request is handled as one without a payment.
    let pays = call.sent_method() == Method::GET && !header::is_prefetch(call.headers());
    let shown = if pays { Shown::of(call.headers()) } else { Shown::Nothing };
    let visit = Visit { facade, call, session, request_id: call.request_id() };
    if shown == Shown::TooLarge {
        let message = format!("the payment header has more than {} bytes", header::MAX_BYTES);
        let error = ApiError::with_message(proto::Reason::HeadersTooLarge, message);
        return Ok(visit.failed(&error, "Payment header too large"));
    }
    let payment = match visit.find().await {
        Ok(payment) => payment,
        Err(error) if error.http() >= 500 && shown != Shown::Nothing => return Ok(visit.unknown(&error)),
        Err(error) => return Err(error.into()),
    };
    match (Availability::of(&payment), shown) {
        (Availability::Open, Shown::Malformed(why)) => Ok(visit.malformed(why)),
        (Availability::Open, Shown::Refused(denial)) => visit.required(&payment, Some(&denial)).await,
        (Availability::Open | Availability::Busy | Availability::Completed, Shown::Payment(payload)) => {
            visit.pay(&payment, *payload).await
        }
        (Availability::Open, _) => visit.required(&payment, None).await,
        (availability, _) => Ok(visit.closed(&availability, &payment, None)),
    }
}

impl Visit<'_> {
    async fn find(&self) -> Result<v1::Payment, ApiError> {
        let request = self.call.caller.request(v1::GetCheckoutRequest { session: self.session.clone() });
        Ok(self.facade.engine.checkout().get_checkout(request).await?.into_record()?)
    }

    async fn pay(&self, payment: &v1::Payment, payload: PaymentPayload) -> Result<Response, Refusal> {
        let shown = Attempt::new(Target::SessionId(payment.id.clone()), payload).for_receipt_of(self.resource());
        match request_settlement(self.facade, self.call, shown).await {
            Ok(Ok(settled)) => Ok(responses::paid(payment, &settled)),
            Ok(Err(denial)) if denial.reason == Reason::SettlementPending => {
                Ok(responses::pending(payment, &denial, self.request_id))
            }
            Ok(Err(denial)) if is_our_fault(&denial) => Ok(self.unknown(&proto::Reason::Internal.into())),
            Ok(Err(denial)) => self.denied(&denial).await,
            Err(error) if error.reason == proto::Reason::PaymentIdentifierReused => {
                let message = error.message.to_string();
                let denial = Denial { reason: Reason::DuplicateSettlement, message, payer: None, tx_id: None };
                let own = closed(payment, error.row().name, None);
                let mut response = responses::failure(&error, self.request_id, &own);
                responses::insert_denial(response.headers_mut(), &denial);
                Ok(response)
            }
            Err(error) if error.reason == proto::Reason::RateLimited => Err(error.into()),
            Err(error) => Ok(self.unknown(&error)),
        }
    }

    /// Returns the response to a refused payment in the current state: only an open one offers requirements.
    async fn denied(&self, denial: &Denial) -> Result<Response, Refusal> {
        let payment = match self.find().await {
            Ok(payment) => payment,
            Err(error) => return Ok(self.unknown(&error)),
        };
        match Availability::of(&payment) {
            // Already used or pending elsewhere: fresh requirements would make the client pay twice.
            Availability::Open | Availability::Busy if denial.reason == Reason::DuplicateSettlement => {
                Ok(self.conflict(&payment, denial))
            }
            Availability::Open => self.required(&payment, Some(denial)).await,
            Availability::Busy => Ok(self.conflict(&payment, denial)),
            availability => {
                let mut response = self.closed(&availability, &payment, denial.tx_id.as_deref());
                responses::insert_denial(response.headers_mut(), denial);
                Ok(response)
            }
        }
    }

    fn conflict(&self, payment: &v1::Payment, denial: &Denial) -> Response {
        let mut response = self.busy(payment, denial.reason.as_str(), &denial.message, denial.tx_id.as_deref());
        responses::insert_denial(response.headers_mut(), denial);
        response
    }

    async fn required(&self, payment: &v1::Payment, denied: Option<&Denial>) -> Result<Response, Refusal> {
        let path = match self.session.as_ref().and_then(|session| session.session.as_ref()) {
            Some(Session::Slug(_)) => format!("/for/{}", payment.slug),
            // A client that knows only the public id must not learn the secret slug.
            _ => format!("/checkout/{}", payment.id),
        };
        let signed = self.signed_offer().await;
        let offer = responses::offer(payment, &self.facade.base_url, path, signed)?;
        Ok(responses::required(&offer, payment.read_at, denied, self.request_id))
    }

    /// Returns the signed offer; `None` if offers are not signed, or it cannot be signed now: an offer is valid without a
    /// signature.
    async fn signed_offer(&self) -> Option<String> {
        let request = self.call.caller.request(v1::SignOfferRequest { resource: Some(self.resource()) });
        self.facade.engine.sign_offer(request).await.ok()?.into_inner().offer
    }

    fn resource(&self) -> v1::X402Resource {
        v1::X402Resource { session: self.session.clone(), base_url: self.facade.base_url.clone() }
    }

    /// Returns the response of a closed payment. Contains only the caller's own transaction id.
    fn closed(&self, availability: &Availability, payment: &v1::Payment, own_tx_id: Option<&str>) -> Response {
        let (status, word, message) = match availability {
            Availability::Completed => {
                let row = proto::status::row_of(proto::Reason::SessionCompleted);
                (StatusCode::CONFLICT, row.name, row.message)
            }
            Availability::Gone(Reason::SessionCancelling) => {
                (StatusCode::GONE, Reason::SessionCancelling.as_str(), "the session is being cancelled")
            }
            Availability::Gone(reason) => {
                (StatusCode::GONE, reason.as_str(), "the session accepts no payment any more")
            }
            Availability::Inactive => {
                (StatusCode::FORBIDDEN, Reason::MerchantInactive.as_str(), "the merchant account is inactive")
            }
            Availability::Off => {
                (StatusCode::FORBIDDEN, Reason::X402Disabled.as_str(), "the merchant does not accept x402")
            }
            Availability::Busy | Availability::Open => {
                let reason = match payment.claim_tx_id {
                    Some(_) => proto::Reason::PaymentInFlight,
                    None => proto::Reason::PaymentDetected,
                };
                let row = proto::status::row_of(reason);
                return self.busy(payment, row.name, row.message, own_tx_id);
            }
        };
        let own = closed(payment, word, own_tx_id);
        responses::refusal(status, word, message, self.request_id, to_json(&own))
    }

    /// Returns the response while another payment is pending: without requirements, so that no client pays twice.
    fn busy(&self, payment: &v1::Payment, word: &str, message: &str, own_tx_id: Option<&str>) -> Response {
        let own = closed(payment, word, own_tx_id);
        let mut response = responses::refusal(StatusCode::CONFLICT, word, message, self.request_id, to_json(&own));
        responses::retry_later(&mut response);
        response
    }

    fn malformed(&self, why: &str) -> Response {
        #[derive(serde::Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Malformed<'a> {
            error: &'a str,
            success: bool,
            transaction: &'a str,
            network: &'a str,
        }
        let own = Malformed { error: why, success: false, transaction: "", network: NETWORK };
        let message = "the payment header is not base64 of one JSON object";
        responses::refusal(
            StatusCode::BAD_REQUEST,
            Reason::InvalidPayload.as_str(),
            message,
            self.request_id,
            to_json(&own),
        )
    }

    /// Returns the response when the outcome is unknown because of the gateway or a node; the client may retry with
    /// the same payment.
    fn unknown(&self, error: &ApiError) -> Response {
        let reason = Reason::UnexpectedSettleError;
        let mut response = self.failed(error, reason.as_str());
        let message = "no verdict was reached; submit the same payment again".to_owned();
        responses::insert_denial(response.headers_mut(), &Denial { reason, message, payer: None, tx_id: None });
        if error.retry_after_seconds.is_none() {
            responses::retry_later(&mut response);
        }
        response
    }

    fn failed(&self, error: &ApiError, word: &str) -> Response {
        let own = Closed { success: false, error: word, session_id: None, status: None, tx_id: None };
        responses::failure(error, self.request_id, &own)
    }
}

fn closed<'a>(payment: &'a v1::Payment, word: &'a str, tx_id: Option<&'a str>) -> Closed<'a> {
    let status = Some(record::status_name(payment.status));
    Closed { success: false, error: word, session_id: Some(&payment.id), status, tx_id }
}

/// Whether a reason is a failure of the gateway, not of the payment.
const fn is_our_fault(denial: &Denial) -> bool {
    matches!(denial.reason, Reason::UnexpectedSettleError | Reason::UnexpectedVerifyError)
}
