//! Transport of calls: function calls within a process, a gRPC channel otherwise.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{HeaderValue, header::AUTHORIZATION};
use tonic::{Status, body::Body, server::NamedService, transport::Channel};
use tower::Service;

use crate::{
    InProcessEngine,
    cluster::{Cluster, EngineState},
    connection::ConnectionHealth,
    v1::{
        account_proof_service_client::AccountProofServiceClient, api_key_service_client::ApiKeyServiceClient,
        audit_log_service_client::AuditLogServiceClient, billing_service_client::BillingServiceClient,
        checkout_service_client::CheckoutServiceClient, compliance_service_client::ComplianceServiceClient,
        event_service_client::EventServiceClient, export_service_client::ExportServiceClient,
        facade_service_client::FacadeServiceClient, fee_service_client::FeeServiceClient,
        maintenance_service_client::MaintenanceServiceClient, merchant_service_client::MerchantServiceClient,
        payment_service_client::PaymentServiceClient, reconciliation_service_client::ReconciliationServiceClient,
        system_service_client::SystemServiceClient, unmatched_transfer_service_client::UnmatchedTransferServiceClient,
        webhook_service_client::WebhookServiceClient, x402_service_client::X402ServiceClient,
    },
};

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type ResponseFuture = Pin<Box<dyn Future<Output = Result<http::Response<Body>, BoxError>> + Send>>;

/// A client of the engine: one transport and a client for each service.
#[derive(Clone)]
pub struct Engine {
    transport: Transport,
}

impl Engine {
    /// Creates a client over `transport`.
    #[must_use]
    pub const fn new(transport: Transport) -> Self {
        Self { transport }
    }

    /// Returns the state of each engine, if there are several.
    #[must_use]
    pub fn states(&self) -> Vec<EngineState> {
        self.transport.engine_states()
    }

    /// Returns the in-process engine, if there is one.
    pub(crate) fn in_process(&self) -> Option<&dyn InProcessEngine> {
        match &self.transport.0 {
            Kind::Local(local) => local.in_process.as_deref(),
            Kind::Remote { .. } | Kind::Cluster { .. } => None,
        }
    }

    /// Returns the client of the merchant service.
    #[must_use]
    pub fn merchants(&self) -> MerchantServiceClient<Transport> {
        MerchantServiceClient::new(self.transport.clone())
    }

    /// Returns the client of the account proof service.
    #[must_use]
    pub fn account_proofs(&self) -> AccountProofServiceClient<Transport> {
        AccountProofServiceClient::new(self.transport.clone())
    }

    /// Returns the client of the API key service.
    #[must_use]
    pub fn api_keys(&self) -> ApiKeyServiceClient<Transport> {
        ApiKeyServiceClient::new(self.transport.clone())
    }

    /// Returns the client of the audit log service.
    #[must_use]
    pub fn audit_log(&self) -> AuditLogServiceClient<Transport> {
        AuditLogServiceClient::new(self.transport.clone())
    }

    /// Returns the client of the export service.
    #[must_use]
    pub fn exports(&self) -> ExportServiceClient<Transport> {
        ExportServiceClient::new(self.transport.clone())
    }

    /// Returns the client of the payment service.
    #[must_use]
    pub fn payments(&self) -> PaymentServiceClient<Transport> {
        PaymentServiceClient::new(self.transport.clone())
    }

    /// Returns the client of the unmatched transfer service.
    #[must_use]
    pub fn unmatched_transfers(&self) -> UnmatchedTransferServiceClient<Transport> {
        UnmatchedTransferServiceClient::new(self.transport.clone())
    }

    /// Returns the client of the reconciliation service.
    #[must_use]
    pub fn reconciliation(&self) -> ReconciliationServiceClient<Transport> {
        ReconciliationServiceClient::new(self.transport.clone())
    }

    /// Returns the client of the compliance service.
    #[must_use]
    pub fn compliance(&self) -> ComplianceServiceClient<Transport> {
        ComplianceServiceClient::new(self.transport.clone())
    }

    /// Returns the client of the billing service. Its overview contains every merchant in one message, which can exceed
    /// the default limit of 4 MB.
    #[must_use]
    pub fn billing(&self) -> BillingServiceClient<Transport> {
        BillingServiceClient::new(self.transport.clone()).max_decoding_message_size(64 * 1024 * 1024)
    }

    /// Returns the client of the checkout service.
    #[must_use]
    pub fn checkout(&self) -> CheckoutServiceClient<Transport> {
        CheckoutServiceClient::new(self.transport.clone())
    }

    /// Returns the client of the event service.
    #[must_use]
    pub fn events(&self) -> EventServiceClient<Transport> {
        EventServiceClient::new(self.transport.clone())
    }

    /// Returns the client of the service for state that facades share.
    #[must_use]
    pub fn facades(&self) -> FacadeServiceClient<Transport> {
        FacadeServiceClient::new(self.transport.clone())
    }

    /// Returns the client of the fee service.
    #[must_use]
    pub fn fees(&self) -> FeeServiceClient<Transport> {
        FeeServiceClient::new(self.transport.clone())
    }

    /// Returns the client of the maintenance service. It is available on the engine's port and, in process, to operator
    /// commands.
    #[must_use]
    pub fn maintenance(&self) -> MaintenanceServiceClient<Transport> {
        MaintenanceServiceClient::new(self.transport.clone())
    }

    /// Returns the client of the webhook service.
    #[must_use]
    pub fn webhook_endpoints(&self) -> WebhookServiceClient<Transport> {
        WebhookServiceClient::new(self.transport.clone())
    }

    /// Returns the client of the x402 service.
    #[must_use]
    pub fn x402(&self) -> X402ServiceClient<Transport> {
        X402ServiceClient::new(self.transport.clone())
    }

    /// Returns the client of the system service.
    #[must_use]
    pub fn system(&self) -> SystemServiceClient<Transport> {
        SystemServiceClient::new(self.transport.clone())
    }
}

/// The transport of calls to the engine. Cheap to clone.
#[derive(Clone)]
pub struct Transport(Kind);

#[derive(Clone)]
enum Kind {
    Local(Arc<Local>),
    Remote { channel: Channel, authorization: Option<HeaderValue>, health: Arc<ConnectionHealth> },
    Cluster { cluster: Arc<Cluster>, authorization: Option<HeaderValue> },
}

impl Transport {
    /// Calls services of this process without sockets and tasks; messages are encoded and decoded in place.
    #[must_use]
    pub fn local(services: Local) -> Self {
        Self(Kind::Local(Arc::new(services)))
    }

    /// Calls a remote engine over a channel, with its access token.
    ///
    /// # Errors
    /// If the token is not a valid header value.
    pub fn remote(channel: Channel, token: Option<&str>) -> Result<Self, http::header::InvalidHeaderValue> {
        Ok(Self(Kind::Remote { channel, authorization: bearer(token)?, health: Arc::default() }))
    }

    /// Calls one of several engines over a shared store, each with its URL and its channel; all accept the same token. Their
    /// health is checked, and a failed call is repeated at another engine where that is safe. Must be called within a Tokio
    /// runtime.
    ///
    /// # Errors
    /// If the token is not a valid header value.
    pub fn cluster(
        engines: impl IntoIterator<Item = (String, Channel)>,
        token: Option<&str>,
    ) -> Result<Self, http::header::InvalidHeaderValue> {
        let authorization = bearer(token)?;
        Ok(Self(Kind::Cluster { cluster: Cluster::start(engines), authorization }))
    }

    /// Returns the state of each engine of a cluster; empty if this is none.
    #[must_use]
    pub fn engine_states(&self) -> Vec<EngineState> {
        match &self.0 {
            Kind::Cluster { cluster, .. } => cluster.states(),
            Kind::Local(_) | Kind::Remote { .. } => Vec::new(),
        }
    }
}

/// Returns the header with a token.
fn bearer(token: Option<&str>) -> Result<Option<HeaderValue>, http::header::InvalidHeaderValue> {
    let Some(token) = token else { return Ok(None) };
    let mut value = HeaderValue::from_str(&format!("Bearer {token}"))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

impl Service<http::Request<Body>> for Transport {
    type Response = http::Response<Body>;
    type Error = BoxError;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match &mut self.0 {
            Kind::Local(_) | Kind::Cluster { .. } => Poll::Ready(Ok(())),
            Kind::Remote { channel, .. } => channel.poll_ready(cx).map_err(Into::into),
        }
    }

    fn call(&mut self, mut request: http::Request<Body>) -> ResponseFuture {
        match &mut self.0 {
            Kind::Local(services) => services.call(request),
            Kind::Remote { channel, authorization, health } => {
                if let Some(value) = authorization {
                    request.headers_mut().insert(AUTHORIZATION, value.clone());
                }
                let (response, health) = (channel.call(request), Arc::clone(health));
                Box::pin(async move { health.record(response.await) })
            }
            Kind::Cluster { cluster, authorization } => {
                if let Some(value) = authorization {
                    request.headers_mut().insert(AUTHORIZATION, value.clone());
                }
                let cluster = Arc::clone(cluster);
                Box::pin(async move { cluster.call(request).await })
            }
        }
    }
}

type Call = Box<dyn Fn(http::Request<Body>) -> ResponseFuture + Send + Sync>;

/// The services of this process, by name.
#[derive(Default)]
pub struct Local {
    services: Vec<(&'static str, Call)>,
    in_process: Option<Box<dyn InProcessEngine>>,
}

impl Local {
    /// Adds a generated server.
    #[must_use]
    pub fn with<S>(mut self, service: S) -> Self
    where
        S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>
            + NamedService
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        let call = move |request| {
            let response = service.clone().call(request);
            Box::pin(async move { response.await.map_err(|never: Infallible| -> BoxError { match never {} }) })
                as ResponseFuture
        };
        self.services.push((S::NAME, Box::new(call)));
        self
    }

    /// Sets the engine for calls without serialization.
    #[must_use]
    pub fn in_process(mut self, engine: impl InProcessEngine + 'static) -> Self {
        self.in_process = Some(Box::new(engine));
        self
    }

    // With a few services a linear search is faster than hashing.
    fn call(&self, request: http::Request<Body>) -> ResponseFuture {
        let wanted = request.uri().path().strip_prefix('/').and_then(|path| path.split_once('/'));
        let found = wanted.and_then(|(name, _)| self.services.iter().find(|(service, _)| *service == name));
        match found {
            Some((_, call)) => call(request),
            None => Box::pin(async { Ok(Status::unimplemented("no such service").into_http()) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio_stream::wrappers::TcpListenerStream;
    use tonic::{Request, Response};

    use super::*;
    use crate::v1::{
        GetFeeRateRequest, GetFeeRateResponse, GetHealthRequest,
        fee_service_server::{FeeService, FeeServiceServer},
    };

    /// Responds with the length of the bearer token.
    struct Probe;

    #[tonic::async_trait]
    impl FeeService for Probe {
        async fn get_fee_rate(
            &self,
            request: Request<GetFeeRateRequest>,
        ) -> Result<Response<GetFeeRateResponse>, Status> {
            let length = request.metadata().get("authorization").map_or(0, |token| token.as_encoded_bytes().len());
            let fee_percent_ten_thousandths = u32::try_from(length).expect("short");
            Ok(Response::new(GetFeeRateResponse { fee_percent_ten_thousandths }))
        }
    }

    #[tokio::test]
    async fn local_and_remote_transports_return_the_same_responses() {
        let local = Engine::new(Transport::local(Local::default().with(FeeServiceServer::new(Probe))));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let server = tonic::transport::Server::builder()
            .add_service(FeeServiceServer::new(Probe))
            .serve_with_incoming(TcpListenerStream::new(listener));
        let server = tokio::spawn(server);
        let channel = Channel::from_shared(format!("http://{address}")).expect("an address").connect_lazy();
        let remote = Engine::new(Transport::remote(channel, Some("abc")).expect("a token"));

        let fee_rate =
            async |engine: &Engine| engine.fees().get_fee_rate(GetFeeRateRequest {}).await.map(Response::into_inner);
        assert_eq!(fee_rate(&local).await.expect("local").fee_percent_ten_thousandths, 0);
        assert_eq!(fee_rate(&remote).await.expect("remote").fee_percent_ten_thousandths, 10);
        for engine in [&local, &remote] {
            let refused = engine.system().get_health(GetHealthRequest {}).await.expect_err("not served");
            assert_eq!(refused.code(), tonic::Code::Unimplemented);
        }
        server.abort();
    }
}
