//! The engine's gRPC service: who asks, what the engine is asked, how it answers.
//!
//! The same servers stand behind the network port and behind the in-process transport.

use std::sync::Arc;

use actors::Gateway;
use engine::{ids::MerchantId, merchant::Merchant};
use proto::{
    ApiError, Local, Reason, Transport,
    v1::{
        checkout_server::CheckoutServer, events_server::EventsServer, fees_server::FeesServer,
        merchants_server::MerchantsServer, payments_server::PaymentsServer,
        reconciliation_server::ReconciliationServer, system_server::SystemServer,
        webhook_endpoints_server::WebhookEndpointsServer, x402_server::X402Server,
    },
};
use tonic::Request;

mod astray;
mod convert;
mod events;
mod merchants;
mod payments;
pub mod server;
mod small;
mod webhooks;
mod x402;

/// The engine behind the generated servers. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    gateway: Gateway,
    x402: Arc<x402::Places>,
}

impl Service {
    /// Serves what `gateway` can do.
    #[must_use]
    pub fn new(gateway: Gateway) -> Self {
        Self { gateway, x402: Arc::default() }
    }

    /// Returns a transport that calls this service in place.
    #[must_use]
    pub fn in_process(&self) -> Transport {
        Transport::local(
            Local::default()
                .with(PaymentsServer::new(self.clone()))
                .with(CheckoutServer::new(self.clone()))
                .with(MerchantsServer::new(self.clone()))
                .with(EventsServer::new(self.clone()))
                .with(ReconciliationServer::new(self.clone()))
                .with(FeesServer::new(self.clone()))
                .with(SystemServer::new(self.clone()))
                .with(WebhookEndpointsServer::new(self.clone()))
                .with(X402Server::new(self.clone())),
        )
    }

    /// Returns the merchant whose key came with a request.
    async fn caller<T>(&self, request: &Request<T>) -> Result<Merchant, ApiError> {
        let key = proto::caller::api_key(request).ok_or(Reason::InvalidApiKey)?;
        self.gateway.authenticate(key).await.map_err(convert::error)
    }

    /// Returns the caller, who must be an admin.
    async fn admin<T>(&self, request: &Request<T>) -> Result<Merchant, ApiError> {
        let caller = self.caller(request).await?;
        if caller.is_admin { Ok(caller) } else { Err(Reason::AdminRequired.into()) }
    }

    /// Returns the merchant a caller names: itself, or any for an admin. A foreign id is refused whether or not it
    /// exists.
    async fn named<T>(&self, request: &Request<T>, id: &str) -> Result<Merchant, ApiError> {
        let caller = self.caller(request).await?;
        match id.parse::<MerchantId>() {
            Ok(id) if id == caller.id => Ok(caller),
            _ if !caller.is_admin => Err(Reason::ForbiddenMerchant.into()),
            Ok(id) => self.gateway.merchant(id).await.map_err(convert::error),
            Err(_) => Err(Reason::NotFound.into()),
        }
    }
}
