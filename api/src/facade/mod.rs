//! The REST facade and the checkout page: every address on one page.
//!
//! A handler is three steps: who asks, what they ask the engine, how we answer. The engine is known only through the
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

/// Picks the handler of a method, or answers OPTIONS and 405.
macro_rules! on {
    ($call:ident, $($method:ident => $handler:expr),+ $(,)?) => {{
        const ALLOW: &str = concat!($(stringify!($method), ", "),+, "OPTIONS");
        match $call.method {
            $(Method::$method => Box::pin($handler).await,)+
            Method::OPTIONS => Ok(answer::options(ALLOW)),
            _ => Err(Refusal::method(ALLOW)),
        }
    }};
}

impl Facade {
    /// Every address there is. Fixed words stand before `{id}`.
    async fn dispatch(&self, path: &str, call: Call) -> Result<Response, Refusal> {
        let mut segments = [""; 7];
        let Some(segments) = split(path, &mut segments) else { return Err(Reason::UnknownRoute.into()) };
        match *segments {
            // Payments, with the merchant's key.
            ["api", "public", "payments"] => {
                on!(call, GET => payments::list(self, call), POST => payments::create(self, call))
            }
            ["api", "public", "payments", "create"] => on!(call, POST => payments::create_short(self, call)),
            ["api", "public", "payments", "list"] => on!(call, GET => payments::list(self, call)),
            ["api", "public", "payments", "export"] => on!(call, GET => export::payments(self, call)),
            ["api", "public", "payments", "fee-rate"] => on!(call, GET => payments::fee_rate(self, call)),
            ["api", "public", "payments", "volume"] => on!(call, GET => payments::volume(self, call)),
            ["api", "public", "payments", id] => on!(call, GET => payments::get(self, call, id)),
            ["api", "public", "payments", id, "status"] => on!(call, GET => payments::status(self, call, id)),
            ["api", "public", "payments", id, "transfers"] => on!(call, GET => payments::transfers(self, call, id)),
            ["api", "public", "payments", id, "cancel"] => on!(call, POST => payments::cancel(self, call, id)),
            ["api", "public", "payments", id, "metadata"] => {
                on!(call, DELETE => payments::delete_metadata(self, call, id))
            }
            ["api", "public", "payments", id, "note"] => on!(call, DELETE => payments::delete_note(self, call, id)),
            ["api", "public", "payments", id, "resolve"] => on!(call, POST => astray::resolve(self, call, id)),
            ["api", "public", "payments", id, "refund"] => on!(call, GET => astray::refund(self, call, id)),

            // What happened, in order.
            ["api", "public", "events"] => on!(call, GET => events::list(self, call)),
            ["api", "public", "events", "stream"] => on!(call, GET => events::stream(self, call)),
            ["api", "public", "events", id] => on!(call, GET => events::get(self, call, id)),

            // What the merchant used and owes.
            ["api", "public", "billing", "me"] => on!(call, GET => billing::mine(self, call)),

            // Transfers that paid no session.
            ["api", "public", "unmatched"] => on!(call, GET => astray::list(self, call)),
            ["api", "public", "unmatched", id] => on!(call, GET => astray::get(self, call, id)),
            ["api", "public", "unmatched", id, "candidates"] => on!(call, GET => astray::candidates(self, call, id)),
            ["api", "public", "unmatched", id, "assign"] => on!(call, POST => astray::assign(self, call, id)),
            ["api", "public", "unmatched", id, "ignore"] => on!(call, POST => astray::ignore(self, call, id)),

            // Merchants: registration without a key, the rest with one's own.
            ["api", "public", "merchants", "register"] => on!(call, POST => merchants::register(self, call)),
            ["api", "public", "merchants", "me"] => on!(call, GET => merchants::me(self, call)),
            ["api", "public", "merchants", id] => on!(call,
                GET => merchants::get(self, call, id),
                POST => merchants::update(self, call, id),
                PUT => merchants::update(self, call, id)),
            ["api", "public", "merchants", id, "webhook-secret"] => {
                on!(call, POST => merchants::rotate_secret(self, call, id))
            }
            ["api", "public", "merchants", id, "account-proof"] => on!(call,
                POST => ownership::challenge(self, call, id),
                PUT => ownership::prove(self, call, id)),
            ["api", "public", "merchants", id, "pending-account"] => {
                on!(call, DELETE => ownership::cancel(self, call, id))
            }
            ["api", "public", "merchants", id, "webhook"] => on!(call, GET => webhooks::endpoint(self, call, id)),
            ["api", "public", "merchants", id, "webhook-enable"] => on!(call, POST => webhooks::enable(self, call, id)),
            ["api", "public", "merchants", id, "webhook-replay"] => on!(call, POST => webhooks::replay(self, call, id)),
            ["api", "public", "merchants", id, "webhook-test"] => on!(call, POST => webhooks::test(self, call, id)),
            ["api", "public", "merchants", id, "webhook-deliveries"] => {
                on!(call, GET => webhooks::deliveries(self, call, id))
            }
            ["api", "public", "merchants", id, "webhook-deliveries", "export"] => {
                on!(call, GET => export::deliveries(self, call, id))
            }
            ["api", "public", "merchants", id, "webhook-deliveries", delivery] => {
                on!(call, GET => webhooks::delivery(self, call, id, delivery))
            }
            ["api", "public", "merchants", id, "webhook-deliveries", delivery, "redeliver"] => {
                on!(call, POST => webhooks::redeliver(self, call, id, delivery))
            }

            ["api", "public", "merchants", id, "api-keys"] => {
                on!(call, GET => keys::list(self, call, id), POST => keys::create(self, call, id))
            }
            ["api", "public", "merchants", id, "api-keys", key] => {
                on!(call, DELETE => keys::revoke(self, call, id, key))
            }
            ["api", "public", "merchants", id, "api-keys", key, "roll"] => {
                on!(call, POST => keys::roll(self, call, id, key))
            }

            // Admins.
            ["api", "admin", "nodes"] => on!(call, GET => health::nodes(self, call)),
            ["api", "admin", "books"] => on!(call, GET => books::list(self, call)),
            ["api", "admin", "payments", id] => on!(call, GET => admin::payment(self, call, id)),
            ["api", "admin", "audit"] => on!(call, GET => keys::audit(self, call)),
            ["api", "admin", "merchants", "export"] => on!(call, GET => export::merchants(self, call)),
            ["api", "admin", "merchants"] | ["api", "admin", "merchants", "list"] => {
                on!(call, GET => admin::list(self, call))
            }
            ["api", "admin", "merchants", "change-status"] => on!(call, POST => admin::change_status(self, call)),
            ["api", "admin", "merchants", id, "active"] => on!(call, POST => admin::set_active(self, call, id)),
            ["api", "admin", "merchants", id, "api-key"] => on!(call, POST => admin::reissue_key(self, call, id)),
            ["api", "admin", "merchants", id, "compliance"] => on!(call, GET => compliance::get(self, call, id)),
            ["api", "admin", "merchants", id, "compliance", "clear"] => {
                on!(call, POST => compliance::clear(self, call, id))
            }
            ["api", "admin", "merchants", id, "compliance", "limits"] => {
                on!(call, PUT => compliance::set_limits(self, call, id))
            }

            ["api", "admin", "billing", "overview"] => on!(call, GET => billing::overview(self, call)),
            ["api", "admin", "billing", "merchant", id] => on!(call, GET => billing::of_merchant(self, call, id)),
            ["api", "admin", "billing", "periods"] => on!(call, GET => billing::periods(self, call)),
            ["api", "admin", "billing", "tiers"] => {
                on!(call, GET => billing::get_tiers(self, call), PUT => billing::set_tiers(self, call))
            }
            ["api", "admin", "billing", "generate-invoices"] => on!(call, POST => billing::generate(self, call)),

            // The customer's page. The slug is a secret, the id is public on the chain.
            ["for", slug] => on!(call, GET => checkout::by_slug(self, call, slug)),
            ["for", slug, "status"] => on!(call, GET => checkout::status_by_slug(self, call, slug)),
            ["for", slug, "events"] => on!(call, GET => checkout::events_by_slug(self, call, slug)),
            ["for", slug, "cancel"] => on!(call, POST => checkout::cancel_by_slug(self, call, slug)),
            ["for", slug, "wallet"] => on!(call, POST => checkout::report_by_slug(self, call, slug)),
            ["checkout", id] => on!(call, GET => checkout::by_id(self, call, id)),
            ["checkout", id, "status"] => on!(call, GET => checkout::status_by_id(self, call, id)),
            ["checkout", id, "events"] => on!(call, GET => checkout::events_by_id(self, call, id)),
            ["checkout", id, "cancel"] => on!(call, POST => checkout::cancel_by_id(self, call, id)),
            // The merchant's pages.
            ["dashboard"] => Box::pin(dashboard::serve(self, call, &[])).await,
            ["dashboard", ref path @ ..] => Box::pin(dashboard::serve(self, call, path)).await,
            ["assets", file] => on!(call, GET => pages::asset(file)),

            // What we can do.
            ["openapi.json"] => on!(call, GET => openapi::document(self, call)),
            ["docs"] => on!(call, GET => openapi::docs(self, call)),
            ["llms.txt"] => on!(call, GET => openapi::llms(self)),

            // How we are.
            ["api", "health"] => on!(call, GET => health::health(self, call)),
            ["livez"] => on!(call, GET => health::live()),
            ["readyz"] => on!(call, GET => health::ready(self, call)),

            // The facilitator, for anybody.
            ["api", "public", "x402", "health"] => on!(call, GET => x402::health(self, call)),
            ["api", "public", "x402", "supported-networks"] => on!(call, GET => x402::supported_networks()),
            ["api", "public", "x402", "supported"] => on!(call, GET => x402::supported()),
            ["api", "public", "x402", "sales"] => on!(call, GET => sales::list(self, call)),
            ["api", "public", "x402", "sales", "export"] => on!(call, GET => export::sales(self, call)),
            ["api", "public", "x402", "verify"] => on!(call, POST => x402::verify(self, call)),
            ["api", "public", "x402", "settle"] => on!(call, POST => x402::settle(self, call)),
            _ => Err(Reason::UnknownRoute.into()),
        }
    }

    /// Answers one request, whatever it is.
    async fn answer(self: Arc<Self>, head: Arc<Head>, body: Incoming) -> Response {
        let begun = tokio::time::Instant::now();
        let path = head.uri.path();
        let mut call = Call::new(Arc::clone(&head), body);
        let id = self.ids.of(&head.headers);
        call.caller.request_id = Some(id.clone());
        let is_api = path.starts_with("/api/");
        let is_checkout = path.starts_with("/for/") || path.starts_with("/checkout/");
        let wants_page = is_checkout && !checkout::is_program(&call);
        let lang = if wants_page { pages::language(&call) } else { pages::Lang::English };
        let is_address = is_checkout && path.matches('/').count() == 2;
        let client = self.edge.client(head.client, &head.headers);
        call.set_client(client);
        let pays = is_address && x402::is_shown(&head.headers);
        let (admitted, standings) = match head.is_health && !limits::HEALTH.contains(&path) {
            true => (Err(Reason::UnknownRoute.into()), Vec::new()),
            false => self.admit(&call, path, pays).await,
        };
        let checked = admitted.and_then(|()| call.check_head()).and_then(|()| refuse_ignored_key(&head));
        let result = match checked {
            Ok(()) => self.dispatch(path, call).await,
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
            Err(refusal) if path.starts_with("/dashboard") => {
                dashboard::refusal(&refusal.error, health::is_test_for(&self, &refusal.error).await, name)
            }
            Err(refusal) if wants_page => {
                let is_test = health::is_test_for(&self, &refusal.error).await;
                pages::refusal(&refusal.error, lang, is_test, name)
            }
            Err(refusal) if x402::is_judged(path) && refusal.allow.is_none() => {
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
        if is_address && head.method == Method::OPTIONS {
            x402::preflight(response.headers_mut());
        } else if is_address && !wants_page {
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
fn refuse_ignored_key(head: &Head) -> Result<(), ApiError> {
    if !head.headers.contains_key(proto::caller::IDEMPOTENCY_KEY) {
        return Ok(());
    }
    match openapi::ignores_keys(&head.method, head.uri.path()) {
        true => Err(ApiError::field("Idempotency-Key", "is not honoured here: leave it out")),
        false => Ok(()),
    }
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

/// Splits a path at its slashes; `None` when it has more parts than any address of ours, or an empty one: no address
/// ends with a slash, and an id has at least one character.
fn split<'p, 's>(path: &'p str, into: &'s mut [&'p str; 7]) -> Option<&'s [&'p str]> {
    let mut count = 0;
    for part in path.strip_prefix('/').unwrap_or(path).split('/') {
        if part.is_empty() {
            return None;
        }
        *into.get_mut(count)? = part;
        count += 1;
    }
    Some(&into[..count])
}

/// Returns the facade as a warp filter over what [`server`] prepares: each request's head is among its extensions.
fn routes(
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
