//! Direct function calls for the frequent methods of a facade in the same process. Calls that write run in a span with the
//! request id.

use proto::{
    InProcessEngine,
    in_process::ResponseFuture,
    v1::{self, payment_service_server::PaymentService, x402_service_server::X402Service},
};
use tonic::Request;
use tracing::Instrument;

use super::{Service, traced::span_of};

impl InProcessEngine for Service {
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

    fn sign_offer(&self, request: Request<v1::SignOfferRequest>) -> ResponseFuture<'_, v1::SignOfferResponse> {
        X402Service::sign_offer(self, request)
    }
}
