//! The engine's gRPC services: authentication, conversion of requests and responses, calls of the engine.
//!
//! The gRPC port and the in-process transport use the same servers.

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
        facade_service_server::FacadeServiceServer, fee_service_server::FeeServiceServer,
        maintenance_service_server::MaintenanceServiceServer, merchant_service_server::MerchantServiceServer,
        payment_service_server::PaymentServiceServer, reconciliation_service_server::ReconciliationServiceServer,
        system_service_server::SystemServiceServer, unmatched_transfer_service_server::UnmatchedTransferServiceServer,
        webhook_service_server::WebhookServiceServer, x402_service_server::X402ServiceServer,
    },
};
use tokio::sync::watch;
use tonic::Request;

mod billing;
mod compliance;
mod connection;
mod convert;
mod enums;
mod events;
mod facades;
mod in_process;
mod keys;
mod maintenance;
mod merchants;
mod metrics;
mod middleware;
mod ownership;
mod page;
mod page_stream;
mod payments;
mod permits;
mod reconciliation;
pub mod server;
mod system;
mod tls;
mod tokens;
mod traced;
mod unmatched;
mod webhooks;
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
    /// True once the server shuts down: watches end at once.
    closing: watch::Sender<bool>,
}

impl Service {
    /// Creates the service of an engine.
    #[must_use]
    pub fn new(engine: Engine) -> Self {
        Self { engine, x402: Arc::default(), closing: watch::Sender::new(false) }
    }

    /// Returns whether the store is available and the ledger is followed, as `/readyz` does.
    async fn is_ready(&self) -> bool {
        self.engine
            .operations
            .health()
            .await
            .is_ok_and(|health| health.store_unavailable.is_none() && health.ledger.is_reachable && health.is_following)
    }

    /// Closes all watches with `UNAVAILABLE`.
    fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Returns a future that resolves when watches must close.
    fn closed(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut closing = self.closing.subscribe();
        async move {
            // Fails only if the service is dropped, at the exit of the process.
            let _ = closing.wait_for(|closing| *closing).await;
        }
    }

    /// Returns a transport that calls this service in process.
    #[must_use]
    pub fn in_process(&self) -> Transport {
        Transport::local(self.local())
    }

    /// Returns a transport that calls this service and the operator's maintenance service in process.
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
            .with(Traced(FacadeServiceServer::new(self.clone())))
            .with(Traced(UnmatchedTransferServiceServer::new(self.clone())))
            .with(Traced(ReconciliationServiceServer::new(self.clone())))
            .with(Traced(ComplianceServiceServer::new(self.clone())))
            .with(Traced(BillingServiceServer::new(self.clone())))
            .with(Traced(FeeServiceServer::new(self.clone())))
            .with(Traced(SystemServiceServer::new(self.clone())))
            .with(Traced(WebhookServiceServer::new(self.clone())))
            .with(Traced(X402ServiceServer::new(self.clone())))
    }

    /// Authenticates a request by its API key. Returns the merchant and the key.
    ///
    /// # Errors
    /// `INVALID_API_KEY`, or `INSUFFICIENT_SCOPE` if the key lacks the scope.
    async fn authenticate<T>(
        &self,
        request: &Request<T>,
        scope: Option<Scope>,
    ) -> Result<(Arc<Merchant>, ApiKey), ApiError> {
        let text = proto::caller::api_key(request).ok_or_else(convert::missing_api_key)?;
        let (merchant, key) = self.engine.merchants.authenticate_key(text).await.map_err(convert::error)?;
        match scope {
            Some(scope) if !key.scopes.contains(scope) => Err(missing_scope(scope)),
            _ => Ok((merchant, key)),
        }
    }

    /// Authenticates a request by its API key, which must have the scope.
    async fn principal<T>(&self, request: &Request<T>, scope: Option<Scope>) -> Result<Principal, ApiError> {
        let (merchant, key) = self.authenticate(request, scope).await?;
        let actor = Actor { merchant: Some(merchant.id), key: Some(key.id), ip: ip_of(request) };
        Ok(Principal { merchant, key: key.id, scopes: key.scopes, engine: self.engine.by(actor) })
    }

    /// Authenticates a request by its API key, which must have the scope. Returns the merchant.
    async fn caller<T>(&self, request: &Request<T>, scope: Scope) -> Result<Arc<Merchant>, ApiError> {
        Ok(self.authenticate(request, Some(scope)).await?.0)
    }

    /// Authenticates a request of an admin.
    ///
    /// # Errors
    /// `ADMIN_REQUIRED` if the merchant is not an admin or the key lacks the scope `admin`.
    async fn admin<T>(&self, request: &Request<T>) -> Result<Principal, ApiError> {
        let principal = self.principal(request, None).await?;
        if principal.is_admin() { Ok(principal) } else { Err(Reason::AdminRequired.into()) }
    }

    /// Returns the merchant with an id, and the caller: its own merchant, or any for an admin.
    ///
    /// # Errors
    /// `FORBIDDEN_MERCHANT` for the id of another merchant, whether or not it exists.
    async fn target_merchant<T>(
        &self,
        request: &Request<T>,
        id: &str,
        scope: Scope,
    ) -> Result<(Arc<Merchant>, Principal), ApiError> {
        let (merchant, principal) = self.target_merchant_any_scope(request, id).await?;
        principal.require_scope_for(merchant.id, scope)?;
        Ok((merchant, principal))
    }

    /// As [`Self::target_merchant`], with any scopes.
    async fn target_merchant_any_scope<T>(
        &self,
        request: &Request<T>,
        id: &str,
    ) -> Result<(Arc<Merchant>, Principal), ApiError> {
        let principal = self.principal(request, None).await?;
        match id.parse::<MerchantId>() {
            Ok(id) if id == principal.merchant.id => Ok((principal.merchant.clone(), principal)),
            _ if !principal.is_admin() => Err(Reason::ForbiddenMerchant.into()),
            Ok(id) => Ok((self.engine.merchants.get(id).await.map_err(convert::error)?, principal)),
            Err(_) => Err(Reason::NotFound.into()),
        }
    }
}

/// The authenticated caller of a request: a merchant, by one of its API keys.
struct Principal {
    merchant: Arc<Merchant>,
    key: KeyId,
    scopes: Scopes,
    /// The engine; the audit log records calls through it with this caller as the actor.
    engine: Engine,
}

fn missing_scope(scope: Scope) -> ApiError {
    ApiError::with_message(Reason::InsufficientScope, format!("this API key lacks the scope {}", scope.as_str()))
}

impl Principal {
    fn is_admin(&self) -> bool {
        self.merchant.is_admin && self.scopes.contains(Scope::Admin)
    }

    /// Checks that the key has a scope for calls about its own merchant. Calls of an admin about another merchant need only
    /// the scope `admin`.
    ///
    /// # Errors
    /// `INSUFFICIENT_SCOPE`.
    fn require_scope_for(&self, merchant: MerchantId, scope: Scope) -> Result<(), ApiError> {
        if merchant != self.merchant.id || self.scopes.contains(scope) { Ok(()) } else { Err(missing_scope(scope)) }
    }
}

/// Returns the client's IP address, as reported by the facade.
fn ip_of<T>(request: &Request<T>) -> Option<String> {
    let ip = request.metadata().get(proto::caller::CLIENT_IP)?.to_str().ok()?;
    ip.parse::<std::net::IpAddr>().ok().map(|ip| ip.to_string())
}
