//! The engine's network port: the services, health and reflection, behind one bearer token.

use std::{future::Future, io, time::Duration};

use proto::{
    ApiError, DESCRIPTOR, Reason,
    v1::{
        account_proofs_server::AccountProofsServer, api_keys_server::ApiKeysServer, audit_log_server::AuditLogServer,
        billing_server::BillingServer, books_server::BooksServer, checkout_server::CheckoutServer,
        compliance_server::ComplianceServer, events_server::EventsServer, exports_server::ExportsServer,
        fees_server::FeesServer, maintenance_server::MaintenanceServer, merchants_server::MerchantsServer,
        payments_server::PaymentsServer, reconciliation_server::ReconciliationServer, system_server::SystemServer,
        webhook_endpoints_server::WebhookEndpointsServer, x402_server::X402Server,
    },
};
use subtle::ConstantTimeEq;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
};
use tokio_stream::{Stream, wrappers::TcpListenerStream};
use tonic::{
    Request, Status,
    service::{InterceptorLayer, Routes},
    transport::{Identity, Server, ServerTlsConfig, server::Connected},
};

use super::{Maintenance, Service, traced::Traced};

/// Streams one connection may hold at once.
const MAX_STREAMS: u32 = 1_024;
/// An idle connection is asked for a sign of life this often.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// How long running calls may take to end when the server stops; a watch has no end of its own.
const DRAIN: Duration = Duration::from_secs(5);

/// Who may call, and how the wire is protected.
#[derive(Clone)]
pub struct Access {
    /// The token every call must bring.
    pub token: String,
    /// Certificate and key in PEM; without them the wire is plain.
    pub tls: Option<(Vec<u8>, Vec<u8>)>,
}

/// Serves the engine on `listener` until `stop` is done.
///
/// # Errors
/// When the certificate is unfit or the port fails.
pub async fn serve(
    listener: TcpListener,
    service: Service,
    maintenance: Maintenance,
    access: Access,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), tonic::transport::Error> {
    serve_on(TcpListenerStream::new(listener), service, maintenance, access, stop).await
}

/// The same for connections from anywhere.
///
/// # Errors
/// As [`serve`].
pub async fn serve_on<C>(
    incoming: impl Stream<Item = io::Result<C>> + Send + 'static,
    service: Service,
    maintenance: Maintenance,
    access: Access,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), tonic::transport::Error>
where
    C: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
{
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_serving::<PaymentsServer<Service>>().await;
    health.set_serving::<MerchantsServer<Service>>().await;
    health.set_serving::<CheckoutServer<Service>>().await;
    let descriptions = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTOR)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let routes = Routes::new(health_service)
        .add_service(descriptions().build_v1().expect("our own description is well formed"))
        .add_service(descriptions().build_v1alpha().expect("our own description is well formed"))
        .add_service(PaymentsServer::new(service.clone()))
        .add_service(CheckoutServer::new(service.clone()))
        .add_service(MerchantsServer::new(service.clone()))
        .add_service(AccountProofsServer::new(service.clone()))
        .add_service(ApiKeysServer::new(service.clone()))
        .add_service(AuditLogServer::new(service.clone()))
        .add_service(ExportsServer::new(service.clone()))
        .add_service(EventsServer::new(service.clone()))
        .add_service(ReconciliationServer::new(service.clone()))
        .add_service(BooksServer::new(service.clone()))
        .add_service(ComplianceServer::new(service.clone()))
        .add_service(BillingServer::new(service.clone()))
        .add_service(FeesServer::new(service.clone()))
        .add_service(SystemServer::new(service.clone()))
        .add_service(WebhookEndpointsServer::new(service.clone()))
        .add_service(MaintenanceServer::new(maintenance))
        .add_service(X402Server::new(service));
    let mut server = Server::builder()
        .max_concurrent_streams(MAX_STREAMS)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .layer(tower::layer::layer_fn(Traced))
        .layer(InterceptorLayer::new(Guard { token: access.token }));
    if let Some((certificate, key)) = access.tls {
        server = server.tls_config(ServerTlsConfig::new().identity(Identity::from_pem(certificate, key)))?;
    }
    let (stopping, mut stopped) = tokio::sync::watch::channel(());
    let mut last = stopped.clone();
    let signal = async move {
        stop.await;
        drop(stopping);
    };
    let served = server.add_routes(routes).serve_with_incoming_shutdown(incoming, async move {
        // The sender is dropped when it is time.
        while stopped.changed().await.is_ok() {}
    });
    let cut_off = async move {
        while last.changed().await.is_ok() {}
        tokio::time::sleep(DRAIN).await;
    };
    tokio::spawn(signal);
    tokio::select! {
        served = served => served,
        () = cut_off => Ok(()),
    }
}

/// Lets a call in that brings the token.
#[derive(Clone)]
struct Guard {
    token: String,
}

impl tonic::service::Interceptor for Guard {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let shown = request.metadata().get("authorization").and_then(|value| value.to_str().ok());
        let shown = shown.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        if shown.as_bytes().ct_eq(self.token.as_bytes()).into() {
            Ok(request)
        } else {
            Err(ApiError::new(Reason::EngineAccessDenied).into())
        }
    }
}
