//! The calls that are made most, without their messages being written down where caller and engine share a process.

use std::{future::Future, pin::Pin};

use tonic::{Request, Response, Status};

use crate::{Engine, v1};

/// What the engine answers.
pub type ResponseFuture<'a, T> = Pin<Box<dyn Future<Output = Result<Response<T>, Status>> + Send + 'a>>;

/// The engine as a value of this process: the same methods as its generated servers have, called by function.
pub trait InProcessEngine: Send + Sync {
    /// Opens a payment.
    fn create_payment(
        &self,
        request: Request<v1::CreatePaymentRequest>,
    ) -> ResponseFuture<'_, v1::CreatePaymentResponse>;
    /// Reads a payment.
    fn get_payment(&self, request: Request<v1::GetPaymentRequest>) -> ResponseFuture<'_, v1::GetPaymentResponse>;
    /// Reads a payment's state alone.
    fn get_payment_status(
        &self,
        request: Request<v1::GetPaymentStatusRequest>,
    ) -> ResponseFuture<'_, v1::GetPaymentStatusResponse>;
    /// Judges a signed payment.
    fn verify_payment(
        &self,
        request: Request<v1::VerifyPaymentRequest>,
    ) -> ResponseFuture<'_, v1::VerifyPaymentResponse>;
    /// Hands a signed payment in.
    fn settle_payment(
        &self,
        request: Request<v1::SettlePaymentRequest>,
    ) -> ResponseFuture<'_, v1::SettlePaymentResponse>;
}

/// Calls by function where that is possible, and by message elsewhere.
macro_rules! calls {
    ($($method:ident($client:ident, $Request:ident) -> $Response:ident;)+) => {
        impl Engine {
            $(
                #[doc = concat!("Makes the call [`InProcessEngine::", stringify!($method), "`], wherever the engine is.")]
                ///
                /// # Errors
                /// The engine's own, and that of the way there.
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
}
