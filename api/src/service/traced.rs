//! Middleware that adds the request id of a call to the log lines of the tasks that process it.

use std::task::{Context, Poll};

use http::HeaderMap;
use tonic::server::NamedService;
use tower::Service;
use tracing::{Instrument, Span, instrument::Instrumented};

/// Runs each call in a span with its request id. Read methods have no span: they log nothing on success, and a span costs as
/// much as a read.
#[derive(Debug, Clone)]
pub(super) struct Traced<S>(pub(super) S);

/// The prefixes of the methods that only read.
const READS: [&str; 5] = ["Get", "List", "Watch", "Find", "Export"];

impl<S: NamedService> NamedService for Traced<S> {
    const NAME: &'static str = S::NAME;
}

impl<S, B> Service<http::Request<B>> for Traced<S>
where
    S: Service<http::Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Instrumented<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let method = request.uri().path().rsplit('/').next().unwrap_or_default();
        let span = span_of(method, request.headers());
        let _entered = span.enter();
        self.0.call(request).instrument(span.clone())
    }
}

/// Returns the span of a call; a disabled span for read methods and for calls without a valid request id.
pub(super) fn span_of(method: &str, headers: &HeaderMap) -> Span {
    let id = headers.get(proto::caller::REQUEST_ID).and_then(|id| id.to_str().ok());
    // Callers over the network are not trusted to send a valid id.
    let id = id.filter(|id| id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_graphic()));
    match id {
        Some(id) if !READS.iter().any(|read| method.starts_with(read)) => {
            tracing::info_span!("call", request.id = id)
        }
        _ => Span::none(),
    }
}
