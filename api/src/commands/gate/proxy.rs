//! One request at the gate: find its price, verify and settle its payment, forward it, and record what was served.
//!
//! A payment header is a bearer token: it is never logged and never forwarded.

use std::{
    collections::BTreeSet,
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use actors::{environment::Clock as _, system::SystemClock};
use engine::{
    hive::Pack,
    ledger::TxId,
    x402::{HeaderError, MAX_HEADER_BYTES, OfferTerms, PaymentPayload, Reason, ReceiptTerms, Signer, key_set},
};
use http::{HeaderMap, Method, Request, Response, StatusCode, header, request::Parts};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use reqwest::Url;

use super::{
    body::Body,
    claim::{Claim, Progress, Sale, Unsettled},
    delivery::Delivery,
    facilitator::Facilitator,
    ledger::Ledger,
    offer::{self, Denial, Settled},
    routes::{Matched, Price, Routes},
    state::Step,
    upstream::{Upstream, target},
};
use crate::commands::payer::exchange;

const DISCOVERY: &str = "/.well-known/x402";
const KEY_SET: &str = "/.well-known/jwks.json";
const HEALTH: &str = "/healthz";
/// The payment headers of both versions.
const PAYMENTS: [&str; 2] = ["payment-signature", "x-payment"];

/// The gate.
pub(super) struct Gate {
    pub(super) routes: Routes,
    pub(super) base: Url,
    pub(super) upstream: Upstream,
    pub(super) facilitator: Facilitator,
    pub(super) ledger: Ledger,
    /// `None` if offers and receipts are unsigned.
    signer: Option<Signer>,
    /// Payments whose requests are being served.
    pub(super) in_flight: Mutex<BTreeSet<TxId>>,
}

/// What a request shows of a payment.
enum Shown {
    Nothing,
    Payment(Box<PaymentPayload>),
    Refused(Box<Denial>),
    Response(Box<Response<Body>>),
}

impl Gate {
    pub(super) fn new(
        routes: Routes,
        base: Url,
        upstream: Upstream,
        facilitator: Facilitator,
        ledger: Ledger,
        signer: Option<Signer>,
    ) -> Self {
        Self { routes, base, upstream, facilitator, ledger, signer, in_flight: Mutex::default() }
    }

    /// Returns a 402 response with the requirements and their signed offer.
    fn payment_required(&self, price: &Price, url: &str, denial: Option<&Denial>) -> Response<Body> {
        offer::payment_required(price, url, denial, self.signed_offer(price, url).as_deref())
    }

    /// Signs the offer of a resource.
    pub(super) fn signed_offer(&self, price: &Price, url: &str) -> Option<String> {
        let valid_until = SystemClock.now() + Duration::from_secs(price.timeout_seconds);
        let terms = OfferTerms { url, amount: price.amount, pay_to: &price.pay_to, valid_until };
        self.signer.as_ref().map(|signer| signer.sign_offer(&terms))
    }

    /// Serves one request.
    pub(super) async fn serve(self: Arc<Self>, request: Request<Incoming>, client_ip: IpAddr) -> Response<Body> {
        let path = request.uri().path();
        if path == DISCOVERY && request.method() == Method::GET {
            return offer::json_response(StatusCode::OK, &offer::discovery(&self.routes, &self.base));
        }
        if let (KEY_SET, &Method::GET, Some(signer)) = (path, request.method(), &self.signer) {
            return offer::json_response(StatusCode::OK, &key_set([signer.public()]));
        }
        if path == HEALTH {
            return offer::json_response(StatusCode::OK, &serde_json::json!({ "status": "ok" }));
        }
        let method = request.method().clone();
        match self.routes.find(&method, path) {
            Matched::Nothing => {
                offer::refusal(StatusCode::NOT_FOUND, "not_found", "the gate has no route for this request")
            }
            Matched::Ambiguous => {
                let message = "the path has encoded letters, dot segments or other parts that servers read differently";
                offer::refusal(StatusCode::BAD_REQUEST, "ambiguous_path", message)
            }
            Matched::Free => self.forward_free(request, client_ip).await,
            Matched::Priced(_, price) => {
                let price = price.clone();
                let url = offer::resource(&self.base, path);
                self.clone().serve_priced(request, client_ip, &price, &url).await
            }
        }
    }

    async fn forward_free(&self, request: Request<Incoming>, client_ip: IpAddr) -> Response<Body> {
        let (head, body) = request.into_parts();
        match self.upstream.forward(&head, body, client_ip, None).await {
            Ok(response) => response.map(|body| body.map_err(Into::into).boxed()),
            Err(why) => unreachable_upstream(&why),
        }
    }

    async fn serve_priced(
        self: Arc<Self>,
        request: Request<Incoming>,
        client_ip: IpAddr,
        price: &Price,
        url: &str,
    ) -> Response<Body> {
        // Only a deliberate request pays.
        let is_meant = request.method() != Method::HEAD && request.method() != Method::OPTIONS;
        let payload = match if is_meant { shown(request.headers()) } else { Shown::Nothing } {
            Shown::Nothing => return self.payment_required(price, url, None),
            Shown::Refused(denial) => return self.payment_required(price, url, Some(&denial)),
            Shown::Response(response) => return *response,
            Shown::Payment(payload) => payload,
        };
        let tx_id = payload.transaction.id(Pack::Legacy);
        let wanted = format!("{} {}", request.method(), target(&request));
        let sale = Sale { price, url, payload: &payload };
        let claim = match Claim::take(&self, tx_id, wanted) {
            Ok(claim) => claim,
            Err(unsettled) => return refused(&self, &unsettled, &sale),
        };
        let (head, body) = request.into_parts();
        let visit = Visit { claim, sale, client_ip };
        match visit.run(&head, body).await {
            Ok(response) => response,
            Err(Early::Response(response)) => *response,
            Err(Early::Unsettled(unsettled)) => refused(&self, &unsettled, &sale),
        }
    }

    /// Signs the receipt of a served request. Only a served request has one, because it confirms the service as well as the
    /// payment.
    pub(super) fn receipt(&self, url: &str, settled: &Settled) -> Option<String> {
        let terms = ReceiptTerms { url, payer: &settled.payer, tx_id: &settled.tx_id, issued_at: SystemClock.now() };
        self.signer.as_ref().map(|signer| signer.sign_receipt(&terms))
    }
}

/// Reads the payment of a request.
fn shown(headers: &HeaderMap) -> Shown {
    let mut values = PAYMENTS.iter().flat_map(|name| headers.get_all(*name));
    let (value, more) = (values.next(), values.next());
    let malformed = |status, message: &str| {
        let mut response = offer::refusal(status, Reason::InvalidPayload.as_str(), message);
        let closed = http::HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, closed);
        Shown::Response(Box::new(response))
    };
    match (value, more) {
        (None, _) => Shown::Nothing,
        (Some(_), Some(_)) => malformed(StatusCode::BAD_REQUEST, "there is more than one payment header"),
        (Some(value), None) => match value.to_str().map(PaymentPayload::decode_header) {
            Ok(Ok(Ok(payload))) => Shown::Payment(Box::new(payload)),
            Ok(Ok(Err(refused))) => {
                let denial =
                    Denial { reason: refused.reason, message: refused.message.clone(), payer: None, tx_id: None };
                Shown::Refused(Box::new(denial))
            }
            Ok(Err(HeaderError::TooLong)) => {
                let message = format!("the payment header has more than {MAX_HEADER_BYTES} bytes");
                malformed(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, &message)
            }
            _ => malformed(StatusCode::BAD_REQUEST, "the payment header is not base64 of one JSON object"),
        },
    }
}

/// A request with a payment.
struct Visit<'a> {
    claim: Claim,
    sale: Sale<'a>,
    client_ip: IpAddr,
}

/// The early end of a visit.
enum Early {
    /// A response without a settlement.
    Response(Box<Response<Body>>),
    /// The payment is not settled.
    Unsettled(Unsettled),
}

impl From<Unsettled> for Early {
    fn from(unsettled: Unsettled) -> Self {
        Self::Unsettled(unsettled)
    }
}

impl Visit<'_> {
    async fn run(self, head: &Parts, body: Incoming) -> Result<Response<Body>, Early> {
        let settled = match self.claim.progress()? {
            Progress::Credit(settled) => settled,
            Progress::Settling(key) => self.claim.settle(&self.sale, key).await?,
            Progress::New if self.sale.price.settles_first => {
                self.claim.settle(&self.sale, exchange::new_nonce()).await?
            }
            Progress::New => return self.serve_then_settle(head, body).await,
        };
        Ok(self.serve_settled(head, body, settled).await)
    }

    /// Verifies, forwards, and settles when the upstream succeeded.
    async fn serve_then_settle(self, head: &Parts, body: Incoming) -> Result<Response<Body>, Early> {
        self.claim.verify(&self.sale).await?;
        let forwarded = self.claim.gate.upstream.forward(head, body, self.client_ip, None).await;
        let response = forwarded.map_err(|why| Early::Response(Box::new(unreachable_upstream(&why))))?;
        if !is_success(response.status()) {
            // Failures are not charged.
            return Ok(response.map(|body| body.map_err(Into::into).boxed()));
        }
        let settled = self.claim.settle(&self.sale, exchange::new_nonce()).await?;
        Ok(self.deliver(response, &settled))
    }

    /// Forwards a request whose payment is settled.
    async fn serve_settled(self, head: &Parts, body: Incoming, settled: Settled) -> Response<Body> {
        let paid = Some((self.sale.price, &settled));
        let (mut response, why) = match self.claim.gate.upstream.forward(head, body, self.client_ip, paid).await {
            Ok(response) if is_success(response.status()) => return self.deliver(response, &settled),
            Ok(response) => {
                let why = format!("the upstream responded with {}", response.status());
                (response.map(|body| body.map_err(Into::into).boxed()), why)
            }
            Err(why) => (unreachable_upstream(&why), why),
        };
        self.claim.step(Step::Fail, Some(&why));
        offer::insert_settled(response.headers_mut(), &settled, None);
        response
    }

    /// Streams the upstream's response with the receipt; a complete response marks the payment as served, a failure as
    /// owed.
    fn deliver(self, response: Response<reqwest::Body>, settled: &Settled) -> Response<Body> {
        let (mut head, inner) = response.into_parts();
        let receipt = self.claim.gate.receipt(self.sale.url, settled);
        offer::insert_settled(&mut head.headers, settled, receipt.as_deref());
        Response::from_parts(head, Delivery::new(inner, self.claim).boxed())
    }
}

/// Returns whether a status of the upstream is charged.
pub(super) fn is_success(status: StatusCode) -> bool {
    status.is_success() || status.is_redirection()
}

fn unreachable_upstream(why: &str) -> Response<Body> {
    tracing::warn!("the upstream failed: {why}");
    offer::refusal(
        StatusCode::BAD_GATEWAY,
        "upstream_unreachable",
        "the server behind the gate does not respond; repeat the request later",
    )
}

/// Returns the response to a payment that is not settled. A used or pending one gets no new price, so that no client pays
/// twice.
fn refused(gate: &Gate, unsettled: &Unsettled, sale: &Sale<'_>) -> Response<Body> {
    match unsettled {
        Unsettled::Denied(denial) => gate.payment_required(sale.price, sale.url, Some(denial)),
        Unsettled::Used(denial) | Unsettled::Busy(denial) => offer::payment_refused(StatusCode::CONFLICT, denial),
        Unsettled::Pending(denial) => offer::payment_refused(StatusCode::PAYMENT_REQUIRED, denial),
        Unsettled::Unjudged(denial) => offer::payment_refused(StatusCode::SERVICE_UNAVAILABLE, denial),
    }
}
