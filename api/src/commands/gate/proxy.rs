//! One request at the gate: find its price, verify and settle its payment, forward it, and record what was served.
//!
//! A payment header is a bearer token: it is never logged and never forwarded.

use std::{
    collections::BTreeSet,
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use actors::{environment::Clock as _, system::SystemClock};
use bytes::Bytes;
use engine::{
    hive::Pack,
    ledger::TxId,
    x402::{HeaderError, MAX_HEADER_BYTES, PaymentPayload, Reason},
};
use http::{HeaderMap, Method, Request, Response, StatusCode, header, request::Parts};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use reqwest::Url;

use super::{
    body::Body,
    facilitator::Facilitator,
    ledger::{Failed, Ledger, Payment},
    offer::{self, Denial, Settled},
    receipt::Signer,
    routes::{Matched, Price, Routes},
    state::{State, Step},
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
    /// `None` if receipts are unsigned.
    signer: Option<Signer>,
    /// Payments whose requests are being served.
    in_flight: Mutex<BTreeSet<TxId>>,
}

/// The claim of one request on its payment, released when it is dropped.
struct Claim {
    gate: Arc<Gate>,
    tx_id: TxId,
    request: String,
}

/// What a request shows of a payment.
enum Shown {
    Nothing,
    Payment(Box<PaymentPayload>),
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

    /// Serves one request.
    pub(super) async fn serve(self: Arc<Self>, request: Request<Incoming>, client_ip: IpAddr) -> Response<Body> {
        let path = request.uri().path();
        if path == DISCOVERY && request.method() == Method::GET {
            return offer::json_response(StatusCode::OK, &offer::discovery(&self.routes, &self.base));
        }
        if let (KEY_SET, &Method::GET, Some(signer)) = (path, request.method(), &self.signer) {
            return offer::json_response(StatusCode::OK, &signer.key_set());
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
        let payload = match if is_meant { shown(request.headers(), price, url) } else { Shown::Nothing } {
            Shown::Nothing => return offer::payment_required(price, url, None),
            Shown::Response(response) => return *response,
            Shown::Payment(payload) => payload,
        };
        let tx_id = payload.transaction.id(Pack::Legacy);
        let wanted = format!("{} {}", request.method(), target(&request));
        let Some(claim) = Claim::take(&self, tx_id, wanted) else {
            let message = "a request with this payment is being served; repeat it in a moment".to_owned();
            let denial = Denial { reason: Reason::DuplicateSettlement, message, payer: None, tx_id: None };
            return offer::payment_refused(StatusCode::CONFLICT, &denial);
        };
        let (head, body) = request.into_parts();
        let visit = Visit { claim, price, url, payload: &payload, client_ip };
        visit.run(&head, body).await.unwrap_or_else(|response| *response)
    }
}

/// Reads the payment of a request.
fn shown(headers: &HeaderMap, price: &Price, url: &str) -> Shown {
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
                Shown::Response(Box::new(offer::payment_required(price, url, Some(&denial))))
            }
            Ok(Err(HeaderError::TooLong)) => {
                let message = format!("the payment header has more than {MAX_HEADER_BYTES} bytes");
                malformed(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, &message)
            }
            _ => malformed(StatusCode::BAD_REQUEST, "the payment header is not base64 of one JSON object"),
        },
    }
}

impl Claim {
    fn take(gate: &Arc<Gate>, tx_id: TxId, request: String) -> Option<Self> {
        let is_first = gate.in_flight.lock().unwrap_or_else(PoisonError::into_inner).insert(tx_id);
        is_first.then(|| Self { gate: Arc::clone(gate), tx_id, request })
    }

    /// Records a step; a failed write is logged and does not undo the payment.
    fn step(&self, step: Step, failure: Option<&str>) {
        if let Err(error) = self.gate.ledger.step(self.tx_id, step, failure, SystemClock.now()) {
            tracing::error!("cannot record a payment: {error}");
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.gate.in_flight.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.tx_id);
    }
}

/// A request with a payment.
struct Visit<'a> {
    claim: Claim,
    price: &'a Price,
    url: &'a str,
    payload: &'a PaymentPayload,
    client_ip: IpAddr,
}

/// A response that ends a visit early.
type Early = Box<Response<Body>>;

impl Visit<'_> {
    async fn run(self, head: &Parts, body: Incoming) -> Result<Response<Body>, Early> {
        let record = self.gate().ledger.find(self.claim.tx_id).map_err(|error| failed(&error))?;
        match record {
            Some(record) if record.request != self.claim.request || record.state() == Some(State::Served) => {
                Err(self.refuse(Reason::DuplicateSettlement, "this payment was used for a request"))
            }
            // A credit: the payment is settled, and its request was not served.
            Some(record) if record.state().is_some_and(State::is_credit) => {
                let settled = Settled { tx_id: record.tx_id, payer: record.payer };
                self.serve_settled(head, body, settled).await
            }
            Some(record) => {
                let settled = self.settle(record.idempotency_key).await?;
                self.serve_settled(head, body, settled).await
            }
            None if self.price.settles_first => {
                let settled = self.settle(exchange::new_nonce()).await?;
                self.serve_settled(head, body, settled).await
            }
            None => self.serve_then_settle(head, body).await,
        }
    }

    fn gate(&self) -> &Arc<Gate> {
        &self.claim.gate
    }

    /// Verifies, forwards, and settles when the upstream succeeded.
    async fn serve_then_settle(self, head: &Parts, body: Incoming) -> Result<Response<Body>, Early> {
        match self.gate().facilitator.verify(self.price, self.url, self.payload).await {
            Ok(Ok(_)) => {}
            Ok(Err(denial)) => return Err(self.denied(&denial)),
            Err(error) => return Err(unjudged(&error.message)),
        }
        let forwarded = self.gate().upstream.forward(head, body, self.client_ip, None).await;
        let response = forwarded.map_err(|why| Box::new(unreachable_upstream(&why)))?;
        if !is_success(response.status()) {
            // Failures are not charged.
            return Ok(response.map(|body| body.map_err(Into::into).boxed()));
        }
        let settled = self.settle(exchange::new_nonce()).await?;
        Ok(self.deliver(response, &settled))
    }

    /// Forwards a request whose payment is settled.
    async fn serve_settled(self, head: &Parts, body: Incoming, settled: Settled) -> Result<Response<Body>, Early> {
        let forwarded = self.gate().upstream.forward(head, body, self.client_ip, Some((self.price, &settled))).await;
        match forwarded {
            Ok(response) if is_success(response.status()) => Ok(self.deliver(response, &settled)),
            Ok(response) => {
                self.claim.step(Step::Fail, Some(&format!("the upstream responded with {}", response.status())));
                let mut response = response.map(|body| body.map_err(Into::into).boxed());
                offer::insert_settled(response.headers_mut(), &settled, None);
                Ok(response)
            }
            Err(why) => {
                self.claim.step(Step::Fail, Some(&why));
                let mut response = unreachable_upstream(&why);
                offer::insert_settled(response.headers_mut(), &settled, None);
                Ok(response)
            }
        }
    }

    /// Records the start of a settlement, settles, and records the result.
    async fn settle(&self, idempotency_key: String) -> Result<Settled, Early> {
        let (tx_id, now) = (self.claim.tx_id, SystemClock.now());
        let mut payment = Payment::new(tx_id, self.claim.request.clone(), idempotency_key, now);
        payment.amount = self.price.amount.to_string();
        payment.pay_to = self.price.pay_to.to_string();
        self.gate().ledger.put(tx_id, &payment).map_err(|error| failed(&error))?;
        let key = payment.idempotency_key.clone();
        match self.gate().facilitator.settle(self.price, self.url, self.payload, &key).await {
            Ok(Ok(settled)) => {
                payment.payer.clone_from(&settled.payer);
                self.gate().ledger.put(tx_id, &payment).map_err(|error| failed(&error))?;
                self.claim.step(Step::Settle, None);
                Ok(settled)
            }
            Ok(Err(denial)) if denial.reason == Reason::SettlementPending => {
                Err(Box::new(offer::payment_refused(StatusCode::PAYMENT_REQUIRED, &denial)))
            }
            Ok(Err(denial)) if denial.reason == Reason::UnexpectedSettleError => Err(unjudged(&denial.message)),
            Ok(Err(denial)) => {
                self.gate().ledger.remove(tx_id).map_err(|error| failed(&error))?;
                Err(self.denied(&denial))
            }
            Err(error) => Err(unjudged(&error.message)),
        }
    }

    /// Refuses a payment; a used one gets no new price, so that no client pays twice.
    fn denied(&self, denial: &Denial) -> Early {
        match denial.reason {
            Reason::DuplicateSettlement => Box::new(offer::payment_refused(StatusCode::CONFLICT, denial)),
            Reason::UnexpectedVerifyError | Reason::UnexpectedSettleError => unjudged(&denial.message),
            _ => Box::new(offer::payment_required(self.price, self.url, Some(denial))),
        }
    }

    fn refuse(&self, reason: Reason, message: &str) -> Early {
        let tx_id = Some(self.claim.tx_id.to_string());
        let denial = Denial { reason, message: message.to_owned(), payer: None, tx_id };
        Box::new(offer::payment_refused(StatusCode::CONFLICT, &denial))
    }

    /// Streams the upstream's response with the receipt; a complete response marks the payment as served, a failure as
    /// owed.
    fn deliver(self, response: Response<reqwest::Body>, settled: &Settled) -> Response<Body> {
        let (mut head, inner) = response.into_parts();
        // Only a served request has a signed receipt, because it confirms the service as well as the payment.
        let sign = |signer: &Signer| signer.receipt(self.url, &settled.payer, &settled.tx_id, SystemClock.now());
        let extensions = self.gate().signer.as_ref().map(sign);
        offer::insert_settled(&mut head.headers, settled, extensions);
        let body = Delivery { inner, claim: Some(self.claim) };
        Response::from_parts(head, body.boxed())
    }
}

fn is_success(status: StatusCode) -> bool {
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

/// The outcome is unknown: the same payment may be submitted again.
fn unjudged(why: &str) -> Early {
    tracing::warn!("no verdict on a payment: {why}");
    let message = "no verdict was reached; repeat the request with the same payment".to_owned();
    let denial = Denial { reason: Reason::UnexpectedSettleError, message, payer: None, tx_id: None };
    Box::new(offer::payment_refused(StatusCode::SERVICE_UNAVAILABLE, &denial))
}

fn failed(error: &Failed) -> Early {
    unjudged(&error.to_string())
}

/// The body of a paid response: records when it reached its end, or that it did not.
struct Delivery {
    inner: reqwest::Body,
    claim: Option<Claim>,
}

impl Delivery {
    fn end(&mut self, step: Step, failure: Option<&str>) {
        if let Some(claim) = self.claim.take() {
            claim.step(step, failure);
        }
    }
}

impl hyper::body::Body for Delivery {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        match &polled {
            Poll::Ready(None) => self.end(Step::Serve, None),
            Poll::Ready(Some(Ok(_))) if self.inner.is_end_stream() => self.end(Step::Serve, None),
            Poll::Ready(Some(Err(error))) => {
                let why = format!("the upstream's response was cut off: {error}");
                self.end(Step::Fail, Some(&why));
            }
            Poll::Ready(Some(Ok(_))) | Poll::Pending => {}
        }
        polled.map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        // An empty body is never polled.
        let step = if self.inner.is_end_stream() { Step::Serve } else { Step::Fail };
        self.end(step, Some("the client disconnected").filter(|_| step == Step::Fail));
    }
}
