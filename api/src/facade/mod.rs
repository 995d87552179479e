//! The REST facade and the checkout page. The routes are rows of `routes/table.rs`.
//!
//! A handler has three steps: who calls, what the engine is asked, what the response is. The engine is known only through the
//! client of `proto`; whether it stands in this process is not known here at all.

use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use http::{HeaderValue, Method, StatusCode};
use proto::{ApiError, Engine, Reason};
use warp::{
    Buf, Filter,
    reply::{Reply, Response},
};

mod admin;
mod admission;
mod answer;
mod astray;
mod auth;
mod billing;
mod books;
mod call;
mod cancellation;
mod checkout;
mod compliance;
mod dashboard;
mod deadlines;
mod error;
mod events;
mod export;
mod health;
mod keys;
pub mod limits;
mod merchants;
mod metrics;
mod nearest;
mod openapi;
mod ownership;
mod pages;
mod payments;
mod query;
mod reader;
mod record;
mod routes;
mod sales;
pub mod server;
pub(crate) mod timeline;
mod unique;
mod wallets;
mod webhooks;
mod wire;
mod x402;

#[cfg(test)]
pub(crate) use x402::request as x402_request;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

use call::{Call, Head, Incoming, RequestIds};
pub use dashboard::Desk;
use limits::Edge;
pub(crate) use record::status_word;
use routes::{Found, Surface};

/// What every handler holds.
pub struct Facade {
    engine: Engine,
    edge: Edge,
    desk: Option<Desk>,
    base_url: String,
    ids: RequestIds,
    accepted_keys: limits::AcceptedKeys,
    described: openapi::Described,
    network: health::KnownNetwork,
    metrics: metrics::Metrics,
    closing: tokio::sync::watch::Sender<bool>,
}

impl Facade {
    /// Makes a facade of `engine`, reached by the world at `base_url`; `seed` makes the names of its requests.
    #[must_use]
    pub fn new(engine: Engine, base_url: &str, seed: u64) -> Arc<Self> {
        Self::behind(Edge::default(), None, engine, base_url, seed)
    }

    /// The same with limits and proxies before it, and a dashboard.
    #[must_use]
    pub fn behind(edge: Edge, desk: Option<Desk>, engine: Engine, base_url: &str, seed: u64) -> Arc<Self> {
        let base_url = base_url.trim_end_matches('/').to_owned();
        Arc::new(Self {
            engine,
            edge,
            desk,
            base_url,
            ids: RequestIds::new(seed),
            accepted_keys: limits::AcceptedKeys::default(),
            described: openapi::Described::default(),
            network: health::KnownNetwork::default(),
            metrics: metrics::Metrics::default(),
            closing: Default::default(),
        })
    }

    /// Shows what the facade counts under the registry's prefix.
    pub fn register_metrics(&self, registry: &mut prometheus_client::registry::Registry) {
        self.metrics.register(registry);
    }

    /// Ends the answers that have no end of their own.
    fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Is done when the facade closes.
    fn closed(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut closing = self.closing.subscribe();
        async move {
            // A facade that is gone is closed.
            let _ = closing.wait_for(|closing| *closing).await;
        }
    }

    /// Returns the address of a path of ours as the world sees it.
    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base_url)
    }
}

impl Facade {
    /// Answers one request, whatever it is.
    async fn answer(self: Arc<Self>, head: Arc<Head>, body: Incoming) -> Response {
        let begun = tokio::time::Instant::now();
        let path = head.uri.path();
        let found = routes::find(&head.method, path);
        let mut call = Call::new(Arc::clone(&head), body, found.route);
        let id = self.ids.of(&head.headers);
        call.caller.request_id = Some(id.clone());
        let is_api = found.surface() == Surface::Api;
        let is_checkout = found.surface() == Surface::Checkout;
        let wants_page = is_checkout && !checkout::is_program(&call);
        let lang = if wants_page { pages::language(&call) } else { pages::Lang::English };
        let client = self.edge.client(head.client, &head.headers);
        call.set_client(client);
        let pays = found.is_payable() && x402::is_shown(&head.headers);
        let (admitted, standings) = match head.is_health && !found.is_health() {
            true => (Err(Reason::UnknownRoute.into()), Vec::new()),
            false => self.admit(&call, &found, pays).await,
        };
        let checked = admitted.and_then(|()| call.check_head()).and_then(|()| refuse_ignored_key(&head, &found));
        let result = match checked {
            Ok(()) => found.respond(&self, call).await,
            Err(error) => Err(error.into()),
        };
        if let Err(refusal) = &result {
            self.note_refused_key(&head.headers, client, refusal.error.reason);
        }
        let request_id = id.clone();
        let request_id = request_id.to_str().unwrap_or_default();
        let name = request_id;
        let mut response = match result {
            Ok(response) => response,
            Err(refusal) if found.surface() == Surface::Dashboard => {
                dashboard::refusal(&refusal.error, health::is_test_for(&self, &refusal.error).await, name)
            }
            Err(refusal) if wants_page => {
                let is_test = health::is_test_for(&self, &refusal.error).await;
                pages::refusal(&refusal.error, lang, is_test, name)
            }
            Err(refusal) if found.judges_payments() && refusal.allow.is_none() => {
                x402::refused(path, &refusal.error, name)
            }
            Err(refusal) => refusal.into_response(name),
        };
        if is_checkout {
            let vary = match wants_page {
                true => "Accept, X-Payment, Payment-Signature, Accept-Language",
                false => "Accept, X-Payment, Payment-Signature",
            };
            response.headers_mut().insert(http::header::VARY, HeaderValue::from_static(vary));
        }
        if found.is_payable() && head.method == Method::OPTIONS {
            x402::preflight(response.headers_mut());
        } else if found.is_payable() && !wants_page {
            x402::cors(response.headers_mut());
        }
        limits::write_headers(&standings, response.headers_mut());
        answer::finish(&mut response, id, is_api);
        if let Some(origin) = head.headers.get(http::header::ORIGIN).filter(|_| is_api)
            && self.edge.trusts_with_keys(origin)
        {
            answer::allow_keys(&mut response, origin.clone());
        }
        let took = begun.elapsed();
        // A gateway that is not ready says so on purpose: nothing failed.
        let counted = if path == "/readyz" { StatusCode::OK } else { response.status() };
        self.metrics.answered(counted, took);
        // A checkout address is a secret of its customer's.
        let shown = if path.starts_with("/for/") { "/for/…" } else { path };
        let status = response.status().as_u16();
        tracing::debug!(request.id = %request_id, method = %head.method, path = shown, status, ?took, "{status} {shown}");
        response
    }
}

/// Refuses an idempotency key where it would be ignored: its caller would repeat the request and believe that it was
/// done once.
fn refuse_ignored_key(head: &Head, found: &Found<'_>) -> Result<(), ApiError> {
    if head.headers.contains_key(proto::caller::IDEMPOTENCY_KEY) && found.ignores_idempotency_key() {
        return Err(ApiError::field("Idempotency-Key", "is not honoured here: leave it out"));
    }
    Ok(())
}

/// Why a request is refused, and what its answer's headers must say beside the error.
struct Refusal {
    error: ApiError,
    allow: Option<&'static str>,
}

impl Refusal {
    fn method(allow: &'static str) -> Self {
        Self { error: ApiError::new(Reason::MethodNotAllowed), allow: Some(allow) }
    }

    fn into_response(self, request_id: &str) -> Response {
        let mut response = error::response(&self.error, request_id);
        if let Some(allow) = self.allow {
            response.headers_mut().insert(http::header::ALLOW, HeaderValue::from_static(allow));
        }
        response
    }
}

impl<E: Into<ApiError>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self { error: error.into(), allow: None }
    }
}

/// Returns the facade as a warp filter over what [`server`] prepares: each request's head is among its extensions.
fn filter(
    facade: &Arc<Facade>,
) -> impl Filter<Extract = (impl Reply,), Error = warp::Rejection> + Clone + Send + Sync + 'static {
    let facade = Arc::clone(facade);
    warp::ext::get::<Arc<Head>>().and(warp::body::stream()).then(move |head: Arc<Head>, body| {
        let body = Incoming::new(into_bytes(body), head.body_timeout);
        Arc::clone(&facade).answer(head, body)
    })
}

fn into_bytes(
    body: impl Stream<Item = Result<impl Buf, warp::Error>> + Send + Sync + 'static,
) -> impl Stream<Item = Result<bytes::Bytes, warp::Error>> + Send + Sync + 'static {
    body.map(|chunk| chunk.map(|mut chunk| chunk.copy_to_bytes(chunk.remaining())))
}
