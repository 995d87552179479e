//! The edge of the gRPC port: authentication, standard status codes, limits for watches, metrics, request ids.

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
    ApiError, Reason, access,
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
/// Load balancers and orchestrators ask for health without a token.
const OPEN: &str = "/grpc.health.v1.Health/";

/// What a caller without a valid token reads.
const ACCESS_DENIED: &str =
    "`authorization` must be `Bearer <token of the gRPC port>`; the API key goes into `x-api-key`";

/// What every call passes.
#[derive(Clone)]
pub(super) struct Edge<S> {
    inner: S,
    shared: Arc<Shared>,
}

/// What the calls of one port share.
pub(super) struct Shared {
    /// The tokens of which each call must bring one.
    pub(super) tokens: Tokens,
    /// What is counted.
    pub(super) metrics: Metrics,
}

impl Shared {
    /// Puts the edge before a service.
    pub(super) fn layer<S: Clone>(self: &Arc<Self>) -> impl tower::Layer<S, Service = Edge<S>> + Clone + use<S> {
        let shared = Arc::clone(self);
        tower::layer::layer_fn(move |inner| Edge { inner, shared: Arc::clone(&shared) })
    }

    /// Returns why a call is refused before it reaches its service, if it is.
    fn refusal(&self, path: &str, headers: &HeaderMap) -> Option<Reason> {
        match self.tokens.scope_of(headers) {
            None => Some(Reason::EngineAccessDenied),
            Some(scope) if access::permits(scope, path, headers.contains_key(API_KEY)) => None,
            Some(_) => Some(Reason::OperatorTokenRequired),
        }
    }
}

impl<S, B> Service<Request<B>> for Edge<S>
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
        let is_open = path.starts_with(OPEN);
        let request_id = request.headers().get(REQUEST_ID).filter(|id| is_request_id(id)).cloned();
        if !is_open && let Some(reason) = self.shared.refusal(path, request.headers()) {
            let refused = match reason {
                Reason::EngineAccessDenied => ApiError::with_message(reason, ACCESS_DENIED),
                other => ApiError::new(other),
            };
            return finished(refused.into(), call, request_id);
        }
        let refused = if is_open { None } else { ambiguous(request.headers()) };
        if let Some(status) = refused.or_else(|| refused_key(path, request.headers())) {
            return finished(status, call, request_id);
        }
        let is_watch = path.rsplit('/').next().is_some_and(|method| method.starts_with("Watch")) && !is_open;
        let watches = request.extensions().get::<Info>().filter(|_| is_watch).map(|info| Arc::clone(&info.watches));
        let permit = match watches.map(|watches| watches.try_acquire_owned()) {
            Some(Err(_)) => {
                let text = format!("this connection holds {MAX_WATCHES} watches; open another connection");
                let refused =
                    ApiError { retry_after_seconds: None, ..ApiError::with_message(Reason::RateLimited, text) };
                return finished(refused.into(), call, request_id);
            }
            Some(Ok(permit)) => Some(permit),
            None => None,
        };
        let response = self.inner.call(request);
        Box::pin(async move { Ok(counted(standard(response.await?), call, permit, request_id)) })
    }
}

fn finished<E: Send + 'static>(
    status: Status,
    call: Call,
    request_id: Option<HeaderValue>,
) -> BoxFuture<'static, Result<Response<Body>, E>> {
    Box::pin(async move { Ok(counted(status.into_http(), call, None, request_id)) })
}

/// Calls that are done once under an idempotency key.
const HONOUR_KEYS: [&str; 4] = ["CreatePayment", "SendTestWebhook", "RedeliverWebhook", "SettlePayment"];
/// How the names of calls begin that change nothing: there a key means nothing.
const READS: [&str; 6] = ["Describe", "Get", "List", "Watch", "Export", "Prepare"];
/// Calls that change nothing, of other names.
const OTHER_READS: [&str; 3] = ["VerifyPayment", "VerifyStore", "CopyStore"];

/// Refuses keys that are given twice and differ: a proxy and we might each take another.
fn ambiguous(headers: &HeaderMap) -> Option<Status> {
    let differ = |name| {
        let mut values = headers.get_all(name).iter();
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    if differ(API_KEY) {
        return Some(ApiError::new(Reason::ConflictingCredentials).into());
    }
    differ(IDEMPOTENCY_KEY).then(|| ApiError::field(IDEMPOTENCY_KEY, "is given more than once").into())
}

/// Refuses an idempotency key where it would be ignored: its caller would repeat the call and believe that it was done
/// once.
fn refused_key(path: &str, headers: &HeaderMap) -> Option<Status> {
    let (service, method) = path.trim_start_matches('/').split_once('/')?;
    let is_ours = service.starts_with("hivetill.") && headers.contains_key(IDEMPOTENCY_KEY);
    let is_read = READS.iter().any(|read| method.starts_with(read)) || OTHER_READS.contains(&method);
    if !is_ours || is_read || HONOUR_KEYS.contains(&method) {
        return None;
    }
    let message = format!("is not honoured by {method}: leave it out");
    Some(ApiError::field(IDEMPOTENCY_KEY, message).into())
}

fn is_request_id(id: &HeaderValue) -> bool {
    id.len() <= 64 && id.as_bytes().iter().all(u8::is_ascii_graphic)
}

/// Replaces the codes that the transport chooses for a malformed or oversized message by those that gRPC's
/// documentation names for the caller's mistakes.
fn standard(response: Response<Body>) -> Response<Body> {
    let Some(status) = Status::from_header_map(response.headers()) else { return response };
    let text = status.message();
    match status.code() {
        Code::Internal if text.starts_with("failed to decode Protobuf message") => {
            Status::from(ApiError::with_message(Reason::ValidationFailed, text.to_owned())).into_http()
        }
        Code::OutOfRange if text.starts_with("Error, decoded message length too large") => {
            Status::from(ApiError::with_message(Reason::BodyTooLarge, text.to_owned())).into_http()
        }
        // The connection broke before the request was there: the caller has gone, and no call of ours has failed.
        Code::Unknown if text.starts_with("h2 protocol error") => Status::cancelled("the connection broke").into_http(),
        // A call that its caller cancels this early looks like one without a message.
        Code::Internal if text.starts_with("Missing request message") => {
            Status::cancelled("the call ended before its message came").into_http()
        }
        _ => response,
    }
}

/// Echoes the request id and counts the call once its status is known: in the headers of a refusal, else in the
/// trailers of its body.
fn counted(
    mut response: Response<Body>,
    call: Call,
    permit: Option<OwnedSemaphorePermit>,
    request_id: Option<HeaderValue>,
) -> Response<Body> {
    let mut open = Open { call: Some(call), request_id: request_id.clone() };
    if let Some(id) = request_id {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    open.look(response.headers());
    response.map(|body| Body::new(Watched { body, open, _permit: permit }))
}

/// A call whose status is not known yet.
struct Open {
    call: Option<Call>,
    request_id: Option<HeaderValue>,
}

impl Open {
    fn look(&mut self, headers: &HeaderMap) {
        let Some(status) = headers.get(STATUS) else { return };
        self.end(Code::from_bytes(status.as_bytes()));
    }

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

/// A client that goes away cancels its call.
impl Drop for Open {
    fn drop(&mut self) {
        self.end(Code::Cancelled);
    }
}

/// The body of a response, watched for its trailers.
struct Watched {
    body: Body,
    open: Open,
    _permit: Option<OwnedSemaphorePermit>,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && let Some(trailers) = frame.trailers_ref()
        {
            self.open.look(trailers);
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
    fn a_caller_that_goes_away_has_cancelled_its_call_and_other_failures_stay() {
        let code = |status: Status| {
            let status = Status::from_header_map(standard(status.into_http()).headers());
            status.map(|status| status.code())
        };
        let broken = "h2 protocol error: error reading a body from connection";
        assert_eq!(code(Status::unknown(broken)), Some(Code::Cancelled));
        assert_eq!(code(Status::internal("Missing request message.")), Some(Code::Cancelled));
        assert_eq!(code(Status::unknown("something else")), Some(Code::Unknown));
        assert_eq!(code(Status::internal(broken)), Some(Code::Internal));
    }
}
