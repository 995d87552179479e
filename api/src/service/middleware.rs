//! Middleware of the gRPC port: authentication, standard status codes, limits of watches, metrics, request ids.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Request, Response};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use proto::{
    ApiError, Reason, Repetition, access,
    caller::{API_KEY, IDEMPOTENCY_KEY, REQUEST_ID},
};
use tokio::sync::OwnedSemaphorePermit;
use tonic::{Code, Status, body::Body};
use tower::Service;
use tracing::{debug, warn};

use super::{
    Tokens,
    connection::{Info, MAX_WATCHES},
    metrics::{Call, Metrics},
};

const STATUS: &str = "grpc-status";
/// The health service needs no token: load balancers and orchestrators call it without one.
const PUBLIC: &str = "/grpc.health.v1.Health/";

/// The message of a call without a valid token.
const ACCESS_DENIED: &str =
    "`authorization` must be `Bearer <token of the gRPC port>`; the API key belongs in `x-api-key`";

/// The middleware, wrapped around a service.
#[derive(Clone)]
pub(super) struct Middleware<S> {
    inner: S,
    shared: Arc<Shared>,
}

/// State that the calls of a port share.
pub(super) struct Shared {
    /// The valid tokens; every call needs one.
    pub(super) tokens: Tokens,
    /// The metrics of calls.
    pub(super) metrics: Metrics,
}

impl Shared {
    /// Returns the layer that wraps a service in this middleware.
    pub(super) fn layer<S: Clone>(self: &Arc<Self>) -> impl tower::Layer<S, Service = Middleware<S>> + Clone + use<S> {
        let shared = Arc::clone(self);
        tower::layer::layer_fn(move |inner| Middleware { inner, shared: Arc::clone(&shared) })
    }

    /// Returns the reason why the token of a call does not permit it; `None` if it does.
    fn refusal(&self, path: &str, headers: &HeaderMap) -> Option<Reason> {
        match self.tokens.scope_of(headers) {
            None => Some(Reason::EngineAccessDenied),
            Some(scope) if access::permits(scope, path, headers.contains_key(API_KEY)) => None,
            Some(_) => Some(Reason::OperatorTokenRequired),
        }
    }
}

impl<S, B> Service<Request<B>> for Middleware<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let path = request.uri().path();
        let call = self.shared.metrics.begin(path);
        let is_public = path.starts_with(PUBLIC);
        let request_id = request.headers().get(REQUEST_ID).filter(|id| is_request_id(id)).cloned();
        if !is_public && let Some(reason) = self.shared.refusal(path, request.headers()) {
            let refused = match reason {
                Reason::EngineAccessDenied => ApiError::with_message(reason, ACCESS_DENIED),
                other => ApiError::new(other),
            };
            return refuse(refused.into(), call, request_id);
        }
        let refused = if is_public { None } else { conflicting_keys(request.headers()) };
        if let Some(status) = refused.or_else(|| unsupported_idempotency_key(path, request.headers())) {
            return refuse(status, call, request_id);
        }
        let is_watch = path.rsplit('/').next().is_some_and(|method| method.starts_with("Watch")) && !is_public;
        let watches = request.extensions().get::<Info>().filter(|_| is_watch).map(|info| Arc::clone(&info.watches));
        let permit = match watches.map(|watches| watches.try_acquire_owned()) {
            Some(Err(_)) => {
                let text = format!("this connection has the maximum of {MAX_WATCHES} watches; open another connection");
                let refused =
                    ApiError { retry_after_seconds: None, ..ApiError::with_message(Reason::RateLimited, text) };
                return refuse(refused.into(), call, request_id);
            }
            Some(Ok(permit)) => Some(permit),
            None => None,
        };
        let response = self.inner.call(request);
        Box::pin(async move { Ok(observed(with_standard_code(response.await?), call, permit, request_id)) })
    }
}

/// Returns the response of a refused call.
fn refuse<E: Send + 'static>(
    status: Status,
    call: Call,
    request_id: Option<HeaderValue>,
) -> BoxFuture<'static, Result<Response<Body>, E>> {
    Box::pin(async move { Ok(observed(status.into_http(), call, None, request_id)) })
}

/// Returns the error of a repeated key header with different values: a proxy might use a different one than the engine.
fn conflicting_keys(headers: &HeaderMap) -> Option<Status> {
    let differ = |name| {
        let mut values = headers.get_all(name).iter();
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    if differ(API_KEY) {
        return Some(ApiError::new(Reason::ConflictingCredentials).into());
    }
    differ(IDEMPOTENCY_KEY).then(|| ApiError::field(IDEMPOTENCY_KEY, "is set more than once").into())
}

/// Returns the error of an idempotency key for a method that would ignore it: a client that repeats the call would wrongly
/// assume that it runs once.
fn unsupported_idempotency_key(path: &str, headers: &HeaderMap) -> Option<Status> {
    let (service, method) = path.trim_start_matches('/').split_once('/')?;
    let has_key = service.starts_with("hivetill.") && headers.contains_key(IDEMPOTENCY_KEY);
    if !has_key || matches!(Repetition::of(path), Repetition::Read | Repetition::Keyed) {
        return None;
    }
    let message = format!("is not supported by {method}: omit it");
    Some(ApiError::field(IDEMPOTENCY_KEY, message).into())
}

fn is_request_id(id: &HeaderValue) -> bool {
    id.len() <= 64 && id.as_bytes().iter().all(u8::is_ascii_graphic)
}

/// Replaces the status codes of tonic for malformed and oversized messages with the codes that the gRPC documentation
/// defines for client errors.
fn with_standard_code(response: Response<Body>) -> Response<Body> {
    let Some(status) = Status::from_header_map(response.headers()) else { return response };
    let text = status.message();
    match status.code() {
        Code::Internal if text.starts_with("failed to decode Protobuf message") => {
            Status::from(ApiError::with_message(Reason::ValidationFailed, text.to_owned())).into_http()
        }
        Code::OutOfRange if text.starts_with("Error, decoded message length too large") => {
            Status::from(ApiError::with_message(Reason::BodyTooLarge, text.to_owned())).into_http()
        }
        // The connection closed before the request was complete: not a failure of the engine.
        Code::Unknown if text.starts_with("h2 protocol error") => {
            Status::cancelled("the connection was closed").into_http()
        }
        // tonic reports a call that is cancelled before its message arrived as a missing message.
        Code::Internal if text.starts_with("Missing request message") => {
            Status::cancelled("the call was cancelled before its message arrived").into_http()
        }
        _ => response,
    }
}

/// Adds the request id to a response, and records the call once its status is known: from the headers of a refused call,
/// else from the trailers of the body.
fn observed(
    mut response: Response<Body>,
    call: Call,
    permit: Option<OwnedSemaphorePermit>,
    request_id: Option<HeaderValue>,
) -> Response<Body> {
    let mut open = OpenCall { call: Some(call), request_id: request_id.clone() };
    if let Some(id) = request_id {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    open.read_status(response.headers());
    response.map(|body| Body::new(ObservedBody { body, open, _permit: permit }))
}

/// A call whose status is not known yet.
struct OpenCall {
    call: Option<Call>,
    request_id: Option<HeaderValue>,
}

impl OpenCall {
    /// Records the call if headers or trailers contain its status.
    fn read_status(&mut self, headers: &HeaderMap) {
        let Some(status) = headers.get(STATUS) else { return };
        self.end(Code::from_bytes(status.as_bytes()));
    }

    /// Records and logs the end of the call, once.
    fn end(&mut self, code: Code) {
        let Some(call) = self.call.take() else { return };
        let id = self.request_id.as_ref().and_then(|id| id.to_str().ok()).unwrap_or_default();
        let method = call.method();
        let elapsed = call.end(code);
        match code {
            Code::Internal | Code::Unknown | Code::DataLoss => {
                warn!(rpc.method = method, rpc.code = ?code, request.id = id, "call failed");
            }
            _ => debug!(rpc.method = method, rpc.code = ?code, request.id = id, ?elapsed, "call handled"),
        }
    }
}

/// A call that is dropped without a status was cancelled by its client.
impl Drop for OpenCall {
    fn drop(&mut self) {
        self.end(Code::Cancelled);
    }
}

/// The body of a response whose trailers contain the status of the call.
struct ObservedBody {
    body: Body,
    open: OpenCall,
    _permit: Option<OwnedSemaphorePermit>,
}

impl HttpBody for ObservedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && let Some(trailers) = frame.trailers_ref()
        {
            self.open.read_status(trailers);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_connections_and_missing_messages_are_cancelled_calls() {
        let code = |status: Status| {
            let status = Status::from_header_map(with_standard_code(status.into_http()).headers());
            status.map(|status| status.code())
        };
        let broken = "h2 protocol error: error reading a body from connection";
        assert_eq!(code(Status::unknown(broken)), Some(Code::Cancelled));
        assert_eq!(code(Status::internal("Missing request message.")), Some(Code::Cancelled));
        assert_eq!(code(Status::unknown("something else")), Some(Code::Unknown));
        assert_eq!(code(Status::internal(broken)), Some(Code::Internal));
    }
}
