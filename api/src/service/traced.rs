//! The id of a request, from the call that brings it to the log lines of the tasks that work on it.

use std::task::{Context, Poll};

use http::HeaderMap;
use tonic::server::NamedService;
use tower::Service;
use tracing::{Instrument, Span, instrument::Instrumented};

/// Runs each call in a span with the request's id. Reads have no span: they change nothing that the log reports, and a
/// span costs as much as a read.
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

/// Returns the span of a call; none for a read.
pub(super) fn span_of(method: &str, headers: &HeaderMap) -> Span {
    let name = headers.get(proto::caller::REQUEST_ID).and_then(|name| name.to_str().ok());
    // A caller over the network may send anything.
    let name = name.filter(|name| name.len() <= 64 && name.bytes().all(|b| b.is_ascii_graphic()));
    match name {
        Some(name) if !READS.iter().any(|read| method.starts_with(read)) => {
            tracing::info_span!("call", request.id = name)
        }
        _ => Span::none(),
    }
}
