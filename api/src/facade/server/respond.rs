//! Processes a request up to its response: routing, limits, handler, and the format of errors.

use std::{sync::Arc, time::Duration};

use futures_util::{Stream, StreamExt};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use proto::{ApiError, Reason};
use warp::{
    Buf, Filter,
    reply::{Reply, Response},
};

use crate::facade::{
    http::{
        call::{Call, Head, Incoming},
        compression, response,
        route::Route,
        state::Facade,
    },
    limits,
    pages::{checkout::handlers::is_program, dashboard, html, words::Lang},
    routes::router::{self, RouteMatch, Surface},
    x402,
};

impl Facade {
    /// Processes a request and returns its response.
    pub(crate) async fn handle(self: Arc<Self>, head: Arc<Head>, body: Incoming) -> Response {
        let begun = tokio::time::Instant::now();
        let path = head.uri.path();
        let route_match = router::find(&head.method, path);
        let mut call = Call::new(Arc::clone(&head), body, route_match.route.map(Route::input).unwrap_or_default());
        let id = self.ids.of(&head.headers);
        call.caller.request_id = Some(id.clone());
        let is_api = route_match.surface() == Surface::Api;
        let is_checkout = route_match.surface() == Surface::Checkout;
        let wants_page = is_checkout && !is_program(&call);
        let lang = if wants_page { html::language(&call) } else { Lang::English };
        let client = self.edge.client(head.client, &head.headers);
        call.set_client(client);
        let pays = route_match.is_payable() && x402::is_shown(&head.headers);
        let (admitted, quotas) = match head.is_health && !route_match.is_health() {
            true => (Err(Reason::UnknownRoute.into()), Vec::new()),
            false => self.admit(&call, &route_match, pays).await,
        };
        let checked = admitted.and_then(|()| call.check_head()).and_then(|()| refuse_ignored_key(&head, &route_match));
        let result = match checked {
            Ok(()) => route_match.respond(&self, call).await,
            Err(error) => Err(error.into()),
        };
        if let Err(refusal) = &result {
            self.record_refused_key(&head.headers, client, refusal.error.reason).await;
        }
        let id_text = id.clone();
        let request_id = id_text.to_str().unwrap_or_default();
        let mut response = match result {
            Ok(response) => response,
            Err(refusal) if route_match.surface() == Surface::Dashboard => dashboard::refusal(
                &refusal.error,
                self.network.is_test_for(&self.engine, &refusal.error).await,
                request_id,
            ),
            Err(refusal) if wants_page => {
                let is_test = self.network.is_test_for(&self.engine, &refusal.error).await;
                html::refusal(&refusal.error, lang, is_test, request_id)
            }
            Err(refusal) if route_match.is_x402_endpoint() && refusal.allow.is_none() => {
                x402::refused(path, &refusal.error, request_id)
            }
            Err(refusal) => refusal.into_response(request_id),
        };
        if is_checkout {
            let vary = match wants_page {
                true => "Accept, X-Payment, Payment-Signature, Accept-Language",
                false => "Accept, X-Payment, Payment-Signature",
            };
            response.headers_mut().insert(http::header::VARY, HeaderValue::from_static(vary));
        }
        if route_match.is_payable() && head.method == Method::OPTIONS {
            x402::preflight(response.headers_mut());
        } else if route_match.is_payable() && !wants_page {
            x402::cors(response.headers_mut());
        }
        limits::write_headers(&quotas, response.headers_mut());
        response::finish(&mut response, id, is_api);
        if let Some(origin) = head.headers.get(http::header::ORIGIN).filter(|_| is_api)
            && self.edge.allows_keys_from(origin)
        {
            response::allow_keys(&mut response, origin.clone());
        }
        self.record(&head, request_id, response.status(), begun.elapsed());
        compressed(response, route_match.surface(), &head.headers).await
    }

    /// Records a response in metrics and log.
    fn record(&self, head: &Head, request_id: &str, status: StatusCode, took: Duration) {
        let path = head.uri.path();
        // A 503 of /readyz reports a state, not a failed request.
        let counted = if path == "/readyz" { StatusCode::OK } else { status };
        self.metrics.record_response(counted, took);
        // The slug is a secret of the customer.
        let logged_path = if path.starts_with("/for/") { "/for/…" } else { path };
        let status = status.as_u16();
        tracing::debug!(
            request.id = %request_id, method = %head.method, path = logged_path, status, ?took, "{status} {logged_path}"
        );
    }
}

/// Compresses a response, except pages of the dashboard: a browser requests them with its own credentials, and they
/// contain form tokens.
async fn compressed(response: Response, surface: Surface, request: &HeaderMap) -> Response {
    match surface {
        Surface::Dashboard => response,
        _ => compression::compress(response, request).await,
    }
}

/// Refuses an idempotency key that would be ignored, because the client would rely on it when it repeats the request.
fn refuse_ignored_key(head: &Head, route_match: &RouteMatch<'_>) -> Result<(), ApiError> {
    if head.headers.contains_key(proto::caller::IDEMPOTENCY_KEY) && route_match.ignores_idempotency_key() {
        return Err(ApiError::field("Idempotency-Key", "is not supported here; omit it"));
    }
    Ok(())
}

/// Returns the facade as a warp filter. The listener passes the head of each request as an extension.
pub(crate) fn filter(
    facade: &Arc<Facade>,
) -> impl Filter<Extract = (impl Reply,), Error = warp::Rejection> + Clone + Send + Sync + 'static {
    let facade = Arc::clone(facade);
    warp::ext::get::<Arc<Head>>().and(warp::body::stream()).then(move |head: Arc<Head>, body| {
        let body = Incoming::new(into_bytes(body), head.body_timeout);
        Arc::clone(&facade).handle(head, body)
    })
}

fn into_bytes(
    body: impl Stream<Item = Result<impl Buf, warp::Error>> + Send + Sync + 'static,
) -> impl Stream<Item = Result<bytes::Bytes, warp::Error>> + Send + Sync + 'static {
    body.map(|chunk| chunk.map(|mut chunk| chunk.copy_to_bytes(chunk.remaining())))
}
