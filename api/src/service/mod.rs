//! The engine's gRPC service: who asks, what the engine is asked, how it answers.
//!
//! The same servers stand behind the network port and behind the in-process transport.

use std::sync::Arc;

use actors::Engine;
use engine::{
    audit::Actor,
    ids::{KeyId, MerchantId},
    merchant::{ApiKey, Merchant, Scope, Scopes},
};
use proto::{
    ApiError, Local, Reason, Transport,
    v1::{
        account_proof_service_server::AccountProofServiceServer, api_key_service_server::ApiKeyServiceServer,
        audit_log_service_server::AuditLogServiceServer, billing_service_server::BillingServiceServer,
        checkout_service_server::CheckoutServiceServer, compliance_service_server::ComplianceServiceServer,
        event_service_server::EventServiceServer, export_service_server::ExportServiceServer,
        fee_service_server::FeeServiceServer, maintenance_service_server::MaintenanceServiceServer,
        merchant_service_server::MerchantServiceServer, payment_service_server::PaymentServiceServer,
        reconciliation_service_server::ReconciliationServiceServer, system_service_server::SystemServiceServer,
        unmatched_transfer_service_server::UnmatchedTransferServiceServer,
        webhook_service_server::WebhookServiceServer, x402_service_server::X402ServiceServer,
    },
};
use tokio::sync::watch;
use tonic::Request;

mod astray;
mod billing;
mod books;
mod compliance;
mod connection;
mod convert;
mod edge;
mod enums;
mod events;
mod in_process;
mod keys;
mod maintenance;
mod merchants;
mod metrics;
mod ownership;
mod payments;
mod permits;
pub mod server;
mod small;
mod tls;
mod tokens;
mod traced;
mod webhooks;
mod whole_list;
mod x402;

pub use maintenance::Maintenance;
pub use metrics::Metrics;
pub use tokens::Tokens;
use traced::Traced;

/// The engine behind the generated servers. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    engine: Engine,
    x402: Arc<permits::Permits>,
    /// Becomes true when this server stops: watches end at once.
    closing: watch::Sender<bool>,
}

impl Service {
    /// Serves what `gateway` can do.
    #[must_use]
    pub fn new(engine: Engine) -> Self {
        Self { engine, x402: Arc::default(), closing: watch::Sender::new(false) }
    }

    /// Ends all watches with `UNAVAILABLE`.
    fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Returns a future that is ready when the watches must end.
    fn closed(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut closing = self.closing.subscribe();
        async move {
            // The sender lives as long as the service; without it the process ends anyway.
            let _ = closing.wait_for(|closing| *closing).await;
        }
    }

    /// Returns a transport that calls this service in place.
    #[must_use]
    pub fn in_process(&self) -> Transport {
        Transport::local(self.local())
    }

    /// Returns the same with what only an operator may ask.
    #[must_use]
    pub fn in_process_for_operator(&self, maintenance: Maintenance) -> Transport {
        Transport::local(self.local().with(Traced(MaintenanceServiceServer::new(maintenance))))
    }

    fn local(&self) -> Local {
        Local::default()
            .in_process(self.clone())
            .with(Traced(PaymentServiceServer::new(self.clone())))
            .with(Traced(CheckoutServiceServer::new(self.clone())))
            .with(Traced(MerchantServiceServer::new(self.clone())))
            .with(Traced(AccountProofServiceServer::new(self.clone())))
            .with(Traced(ApiKeyServiceServer::new(self.clone())))
            .with(Traced(AuditLogServiceServer::new(self.clone())))
            .with(Traced(ExportServiceServer::new(self.clone())))
            .with(Traced(EventServiceServer::new(self.clone())))
            .with(Traced(UnmatchedTransferServiceServer::new(self.clone())))
            .with(Traced(ReconciliationServiceServer::new(self.clone())))
            .with(Traced(ComplianceServiceServer::new(self.clone())))
            .with(Traced(BillingServiceServer::new(self.clone())))
            .with(Traced(FeeServiceServer::new(self.clone())))
            .with(Traced(SystemServiceServer::new(self.clone())))
            .with(Traced(WebhookServiceServer::new(self.clone())))
            .with(Traced(X402ServiceServer::new(self.clone())))
    }

    /// Returns the merchant whose key came with a request, and the key, if it has the scope.
    async fn key_of<T>(
        &self,
        request: &Request<T>,
        needed: Option<Scope>,
    ) -> Result<(Arc<Merchant>, ApiKey), ApiError> {
        let text = proto::caller::api_key(request).ok_or_else(convert::no_key)?;
        let (merchant, key) = self.engine.merchants.authenticate_key(text).await.map_err(convert::error)?;
        if let Some(needed) = needed.filter(|needed| !key.scopes.contains(*needed)) {
            let message = format!("this API key lacks the scope {}", needed.as_str());
            return Err(ApiError::with_message(Reason::InsufficientScope, message));
        }
        Ok((merchant, key))
    }

    /// Returns who asks, by the key that came with a request, if that key has the scope.
    async fn asking<T>(&self, request: &Request<T>, needed: Option<Scope>) -> Result<Asking, ApiError> {
        let (merchant, key) = self.key_of(request, needed).await?;
        let actor = Actor { merchant: Some(merchant.id), key: Some(key.id), ip: ip_of(request) };
        Ok(Asking { merchant, key: key.id, scopes: key.scopes, engine: self.engine.by(actor) })
    }

    /// Returns the merchant whose key came with a request, if that key has the scope.
    async fn caller<T>(&self, request: &Request<T>, needed: Scope) -> Result<Arc<Merchant>, ApiError> {
        Ok(self.key_of(request, Some(needed)).await?.0)
    }

    /// Returns who asks, who must be an admin with an admin's key.
    async fn admin<T>(&self, request: &Request<T>) -> Result<Asking, ApiError> {
        let asking = self.asking(request, None).await?;
        if asking.is_admin() { Ok(asking) } else { Err(Reason::AdminRequired.into()) }
    }

    /// Returns the merchant a caller names, itself or any for an admin, and who asks. A foreign id is refused whether or
    /// not it exists.
    async fn named<T>(
        &self,
        request: &Request<T>,
        id: &str,
        needed: Scope,
    ) -> Result<(Arc<Merchant>, Asking), ApiError> {
        let (merchant, asking) = self.named_any(request, id).await?;
        asking.needs_for(merchant.id, needed)?;
        Ok((merchant, asking))
    }

    /// The same with whatever scopes the key has.
    async fn named_any<T>(&self, request: &Request<T>, id: &str) -> Result<(Arc<Merchant>, Asking), ApiError> {
        let asking = self.asking(request, None).await?;
        match id.parse::<MerchantId>() {
            Ok(id) if id == asking.merchant.id => Ok((asking.merchant.clone(), asking)),
            _ if !asking.is_admin() => Err(Reason::ForbiddenMerchant.into()),
            Ok(id) => Ok((self.engine.merchants.get(id).await.map_err(convert::error)?, asking)),
            Err(_) => Err(Reason::NotFound.into()),
        }
    }
}

/// Who asks: a merchant, by one of its keys.
struct Asking {
    merchant: Arc<Merchant>,
    key: KeyId,
    scopes: Scopes,
    /// The handle through which the audit log learns who acts.
    engine: Engine,
}

impl Asking {
    fn is_admin(&self) -> bool {
        self.merchant.is_admin && self.scopes.contains(Scope::Admin)
    }

    /// Refuses a key that lacks a scope which its own merchant needs; an admin's key may do it for another.
    fn needs_for(&self, merchant: MerchantId, needed: Scope) -> Result<(), ApiError> {
        if merchant != self.merchant.id || self.scopes.contains(needed) {
            return Ok(());
        }
        let message = format!("this API key lacks the scope {}", needed.as_str());
        Err(ApiError::with_message(Reason::InsufficientScope, message))
    }
}

/// Returns the address behind a request, as the facade tells it.
fn ip_of<T>(request: &Request<T>) -> Option<String> {
    let ip = request.metadata().get(proto::caller::CLIENT_IP)?.to_str().ok()?;
    ip.parse::<std::net::IpAddr>().ok().map(|ip| ip.to_string())
}
