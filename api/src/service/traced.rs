//! The name of a request, from the call that brings it to the log lines of whoever works on it.

use std::task::{Context, Poll};

use http::HeaderMap;
use proto::{
    InProcessEngine,
    in_process::ResponseFuture,
    v1::{self, payment_service_server::PaymentService, x402_service_server::X402Service},
};

use tonic::{Request, server::NamedService};
use tower::Service;
use tracing::{Instrument, Span, instrument::Instrumented};

use super::Service as Engine;

/// Works on each call within a span that bears the request's name. Reads are left alone: they change nothing that a log
/// would tell of, and a span costs as much as a read.
#[derive(Debug, Clone)]
pub(super) struct Traced<S>(pub(super) S);

/// What the methods that only read begin with.
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

/// The same for calls that come by function.
impl InProcessEngine for Engine {
    fn create_payment(
        &self,
        request: Request<v1::CreatePaymentRequest>,
    ) -> ResponseFuture<'_, v1::CreatePaymentResponse> {
        let span = span_of("CreatePayment", request.metadata().as_ref());
        Box::pin(PaymentService::create_payment(self, request).instrument(span))
    }

    fn get_payment(&self, request: Request<v1::GetPaymentRequest>) -> ResponseFuture<'_, v1::GetPaymentResponse> {
        PaymentService::get_payment(self, request)
    }

    fn get_payment_status(
        &self,
        request: Request<v1::GetPaymentStatusRequest>,
    ) -> ResponseFuture<'_, v1::GetPaymentStatusResponse> {
        PaymentService::get_payment_status(self, request)
    }

    fn verify_payment(
        &self,
        request: Request<v1::VerifyPaymentRequest>,
    ) -> ResponseFuture<'_, v1::VerifyPaymentResponse> {
        let span = span_of("VerifyPayment", request.metadata().as_ref());
        Box::pin(X402Service::verify_payment(self, request).instrument(span))
    }

    fn settle_payment(
        &self,
        request: Request<v1::SettlePaymentRequest>,
    ) -> ResponseFuture<'_, v1::SettlePaymentResponse> {
        let span = span_of("SettlePayment", request.metadata().as_ref());
        Box::pin(X402Service::settle_payment(self, request).instrument(span))
    }
}

fn span_of(method: &str, headers: &HeaderMap) -> Span {
    let name = headers.get(proto::caller::REQUEST_ID).and_then(|name| name.to_str().ok());
    // Whoever calls over the network may send anything.
    let name = name.filter(|name| name.len() <= 64 && name.bytes().all(|b| b.is_ascii_graphic()));
    match name {
        Some(name) if !READS.iter().any(|read| method.starts_with(read)) => {
            tracing::info_span!("call", request.id = name)
        }
        _ => Span::none(),
    }
}
