//! Fast path for frequent calls: direct function calls without serialization if the engine runs in the same process.

use std::{future::Future, pin::Pin};

use tonic::{Request, Response, Status};

use crate::{Engine, v1};

/// The future of a response.
pub type ResponseFuture<'a, T> = Pin<Box<dyn Future<Output = Result<Response<T>, Status>> + Send + 'a>>;

/// An engine in the same process, with the methods of its generated servers.
pub trait InProcessEngine: Send + Sync {
    /// Creates a payment.
    fn create_payment(
        &self,
        request: Request<v1::CreatePaymentRequest>,
    ) -> ResponseFuture<'_, v1::CreatePaymentResponse>;
    /// Returns a payment.
    fn get_payment(&self, request: Request<v1::GetPaymentRequest>) -> ResponseFuture<'_, v1::GetPaymentResponse>;
    /// Returns the status of a payment.
    fn get_payment_status(
        &self,
        request: Request<v1::GetPaymentStatusRequest>,
    ) -> ResponseFuture<'_, v1::GetPaymentStatusResponse>;
    /// Verifies an x402 payment.
    fn verify_payment(
        &self,
        request: Request<v1::VerifyPaymentRequest>,
    ) -> ResponseFuture<'_, v1::VerifyPaymentResponse>;
    /// Settles an x402 payment.
    fn settle_payment(
        &self,
        request: Request<v1::SettlePaymentRequest>,
    ) -> ResponseFuture<'_, v1::SettlePaymentResponse>;
    /// Signs the offer of an open payment.
    fn sign_offer(&self, request: Request<v1::SignOfferRequest>) -> ResponseFuture<'_, v1::SignOfferResponse>;
}

/// Calls the in-process engine if there is one, otherwise the gRPC client.
macro_rules! calls {
    ($($method:ident($client:ident, $Request:ident) -> $Response:ident;)+) => {
        impl Engine {
            $(
                #[doc = concat!("Calls [`InProcessEngine::", stringify!($method), "`], in process or over gRPC.")]
                ///
                /// # Errors
                /// The status returned by the engine or by the transport.
                pub async fn $method(&self, request: Request<v1::$Request>) -> Result<Response<v1::$Response>, Status> {
                    match self.in_process() {
                        Some(engine) => engine.$method(request).await,
                        None => self.$client().$method(request).await,
                    }
                }
            )+
        }
    };
}

calls! {
    create_payment(payments, CreatePaymentRequest) -> CreatePaymentResponse;
    get_payment(payments, GetPaymentRequest) -> GetPaymentResponse;
    get_payment_status(payments, GetPaymentStatusRequest) -> GetPaymentStatusResponse;
    verify_payment(x402, VerifyPaymentRequest) -> VerifyPaymentResponse;
    settle_payment(x402, SettlePaymentRequest) -> SettlePaymentResponse;
    sign_offer(x402, SignOfferRequest) -> SignOfferResponse;
}
