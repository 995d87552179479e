//! One request from its head to its response: its route, its limits, its handler, and the form of its errors.

use std::{sync::Arc, time::Duration};

use futures_util::{Stream, StreamExt};
use http::{HeaderValue, Method, StatusCode};
use proto::{ApiError, Reason};
use warp::{
    Buf, Filter,
    reply::{Reply, Response},
};

use crate::facade::{
    http::{
        answer,
        call::{Call, Head, Incoming},
        route::Route,
        state::Facade,
    },
    limits,
    pages::{checkout::handlers::is_program, dashboard, html, words::Lang},
    routes::router::{self, Found, Surface},
    x402,
};

impl Facade {
    /// Answers one request, whatever it is.
    pub(crate) async fn answer(self: Arc<Self>, head: Arc<Head>, body: Incoming) -> Response {
        let begun = tokio::time::Instant::now();
        let path = head.uri.path();
        let found = router::find(&head.method, path);
        let mut call = Call::new(Arc::clone(&head), body, found.route.map(Route::input).unwrap_or_default());
        let id = self.ids.of(&head.headers);
        call.caller.request_id = Some(id.clone());
        let is_api = found.surface() == Surface::Api;
        let is_checkout = found.surface() == Surface::Checkout;
        let wants_page = is_checkout && !is_program(&call);
        let lang = if wants_page { html::language(&call) } else { Lang::English };
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
                dashboard::refusal(&refusal.error, self.network.is_test_for(&self.engine, &refusal.error).await, name)
            }
            Err(refusal) if wants_page => {
                let is_test = self.network.is_test_for(&self.engine, &refusal.error).await;
                html::refusal(&refusal.error, lang, is_test, name)
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
        self.record(&head, request_id, response.status(), begun.elapsed());
        response
    }

    /// Counts a response, and logs it.
    fn record(&self, head: &Head, request_id: &str, status: StatusCode, took: Duration) {
        let path = head.uri.path();
        // A 503 of /readyz reports a state: no request failed.
        let counted = if path == "/readyz" { StatusCode::OK } else { status };
        self.metrics.answered(counted, took);
        // The URL of a checkout page by its slug is a secret of the customer.
        let shown = if path.starts_with("/for/") { "/for/…" } else { path };
        let status = status.as_u16();
        tracing::debug!(request.id = %request_id, method = %head.method, path = shown, status, ?took, "{status} {shown}");
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

/// Returns the facade as a warp filter over what the listener prepares: each request's head is among its extensions.
pub(crate) fn filter(
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
