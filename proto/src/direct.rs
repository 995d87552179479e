//! The calls that are made most, without their messages being written down where caller and engine share a process.

use std::{future::Future, pin::Pin};

use tonic::{Request, Response, Status};

use crate::{Engine, v1};

/// What the engine answers.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<Response<T>, Status>> + Send + 'a>>;

/// The engine as a value of this process: the same methods as its generated servers have, called by function.
pub trait Direct: Send + Sync {
    /// Opens a payment.
    fn create_payment(&self, request: Request<v1::CreatePaymentRequest>) -> Answer<'_, v1::Payment>;
    /// Reads a payment.
    fn get_payment(&self, request: Request<v1::GetPaymentRequest>) -> Answer<'_, v1::Payment>;
    /// Reads a payment's state alone.
    fn get_payment_status(&self, request: Request<v1::GetPaymentRequest>) -> Answer<'_, v1::PaymentStatusResponse>;
    /// Judges a signed payment.
    fn verify(&self, request: Request<v1::X402Request>) -> Answer<'_, v1::X402VerifyResponse>;
    /// Hands a signed payment in.
    fn settle(&self, request: Request<v1::X402Request>) -> Answer<'_, v1::X402SettleResponse>;
}

/// Calls by function where that is possible, and by message elsewhere.
macro_rules! calls {
    ($($method:ident($client:ident, $Request:ident) -> $Response:ident;)+) => {
        impl Engine {
            $(
                #[doc = concat!("Makes the call [`Direct::", stringify!($method), "`], wherever the engine is.")]
                ///
                /// # Errors
                /// The engine's own, and that of the way there.
                pub async fn $method(&self, request: Request<v1::$Request>) -> Result<Response<v1::$Response>, Status> {
                    match self.direct() {
                        Some(engine) => engine.$method(request).await,
                        None => self.$client().$method(request).await,
                    }
                }
            )+
        }
    };
}

calls! {
    create_payment(payments, CreatePaymentRequest) -> Payment;
    get_payment(payments, GetPaymentRequest) -> Payment;
    get_payment_status(payments, GetPaymentRequest) -> PaymentStatusResponse;
    verify(x402, X402Request) -> X402VerifyResponse;
    settle(x402, X402Request) -> X402SettleResponse;
}
