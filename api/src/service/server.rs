//! The gRPC port: the engine's services, health and reflection, with bearer tokens and TLS.

use std::{convert::Infallible, future::Future, io, sync::Arc, time::Duration};

use futures_util::{StreamExt, TryStreamExt};
use proto::{
    DESCRIPTOR,
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
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
};
use tokio_stream::Stream;
use tonic::{body::Body, codec::CompressionEncoding, service::Routes, transport::Server};
use tonic_health::ServingStatus;
use tracing::debug;

pub use super::tls::{Tls, TlsError, check_validity};
use super::{
    Maintenance, Metrics, Service, Tokens,
    connection::{self, Connection, MAX_STREAMS},
    middleware::Shared,
    traced::Traced,
};

/// Maximum size of the headers of a request, uncompressed, in bytes.
const MAX_HEADER_BYTES: u32 = 16 * 1_024;
const GZIP: CompressionEncoding = CompressionEncoding::Gzip;
/// Interval of HTTP/2 keepalive pings.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// Interval at which the health of the empty name is updated.
const READINESS_INTERVAL: Duration = Duration::from_secs(1);
/// Time within which the engine must know whether it is ready: a store may be slow to fail.
const READINESS_TIMEOUT: Duration = Duration::from_secs(2);
/// Grace period for running calls at shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Access control, TLS and limits of the port.
#[derive(Clone)]
pub struct Access {
    /// The valid tokens; every call needs one.
    pub tokens: Tokens,
    /// TLS; `None` for plaintext.
    pub tls: Option<Tls>,
    /// Maximum number of concurrent connections; one IP address may have half of them.
    pub connections: usize,
    /// The metrics of calls.
    pub metrics: Metrics,
}

/// Serves the engine on `listener` until `stop` resolves and running calls have completed or timed out.
///
/// # Errors
/// If the port fails.
pub async fn serve(
    listener: TcpListener,
    service: Service,
    maintenance: Maintenance,
    access: Access,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), tonic::transport::Error> {
    let accepted = connection::accept(listener, access.connections);
    let Some(tls) = access.tls.clone() else {
        let incoming = accepted.map(|(stream, permit)| Ok(Connection::new(stream, Some(permit))));
        return serve_connections(incoming, service, maintenance, access, stop).await;
    };
    let handshakes = accepted.map(move |(stream, permit)| {
        let tls = tls.clone();
        tokio::spawn(async move { tls.accept(stream).await.map(|stream| Connection::new(stream, Some(permit))) })
    });
    // As many concurrent handshakes as connections: a slow handshake does not block others.
    let incoming = handshakes.buffer_unordered(access.connections).filter_map(|done| async {
        match done {
            Ok(Ok(connection)) => Some(Ok(connection)),
            Ok(Err(error)) => {
                debug!("TLS handshake on the gRPC port failed: {error}");
                None
            }
            Err(_) => None,
        }
    });
    serve_connections(incoming.boxed(), service, maintenance, access, stop).await
}

/// Serves the engine in plaintext on a stream of connections, without a limit of their number.
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
    C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let incoming = incoming.map_ok(|stream| Connection::new(stream, None));
    serve_connections(incoming, service, maintenance, access, stop).await
}

async fn serve_connections<C>(
    incoming: impl Stream<Item = io::Result<Connection<C>>> + Send + 'static,
    service: Service,
    maintenance: Maintenance,
    access: Access,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), tonic::transport::Error>
where
    C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (health, health_service) = tonic_health::server::health_reporter();
    for name in proto::SERVICES {
        health.set_service_status(*name, ServingStatus::Serving).await;
    }
    let closing = service.clone();
    let descriptions = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTOR)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let routes = Routes::new(health_service)
        .add_service(descriptions().build_v1().expect("the generated descriptor is valid"))
        .add_service(descriptions().build_v1alpha().expect("the generated descriptor is valid"))
        .add_service(MaintenanceServiceServer::new(maintenance).accept_compressed(GZIP).send_compressed(GZIP));
    let routes = with_engine(routes, service);
    let shared = Arc::new(Shared { tokens: access.tokens, metrics: access.metrics });
    let mut server = Server::builder()
        .max_concurrent_streams(MAX_STREAMS)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_max_header_list_size(MAX_HEADER_BYTES)
        .layer(shared.layer())
        .layer(tower::layer::layer_fn(Traced));
    let (stopping, mut stopped) = tokio::sync::watch::channel(());
    let mut draining = stopped.clone();
    let signal = async move {
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                status = readiness(&closing) => health.set_service_status("", status).await,
            }
            tokio::select! {
                biased;
                () = &mut stop => break,
                () = tokio::time::sleep(READINESS_INTERVAL) => {}
            }
        }
        // Load balancers and watching clients switch to another engine while running calls complete.
        for name in proto::SERVICES.iter().chain(&[""]) {
            health.set_service_status(*name, ServingStatus::NotServing).await;
        }
        closing.close();
        drop(stopping);
    };
    let served = server.add_routes(routes).serve_with_incoming_shutdown(incoming, async move {
        // Fails once the sender is dropped, which starts the shutdown.
        while stopped.changed().await.is_ok() {}
    });
    let drain_timeout = async move {
        while draining.changed().await.is_ok() {}
        tokio::time::sleep(DRAIN_TIMEOUT).await;
    };
    tokio::spawn(signal);
    tokio::select! {
        served = served => served,
        () = drain_timeout => Ok(()),
    }
}

/// Returns the health of the empty name: whether the engine can handle every call.
async fn readiness(service: &Service) -> ServingStatus {
    match tokio::time::timeout(READINESS_TIMEOUT, service.is_ready()).await {
        Ok(true) => ServingStatus::Serving,
        Ok(false) | Err(_) => ServingStatus::NotServing,
    }
}

/// Adds the engine's services, without maintenance.
fn with_engine(routes: Routes, service: Service) -> Routes {
    routes
        .add_service(PaymentServiceServer::new(service.clone()).accept_compressed(GZIP).send_compressed(GZIP))
        .add_service(CheckoutServiceServer::new(service.clone()).accept_compressed(GZIP).send_compressed(GZIP))
        .add_service(MerchantServiceServer::new(service.clone()).accept_compressed(GZIP).send_compressed(GZIP))
        .add_service(AccountProofServiceServer::new(service.clone()).accept_compressed(GZIP).send_compressed(GZIP))
        .add_service(ApiKeyServiceServer::new(service.clone()).accept_compressed(GZIP).send_compressed(GZIP))
        .add_service(AuditLogServiceServer::new(service.clone()).accept_compressed(GZIP).send_compressed(GZIP))
        .add_service(ExportServiceServer::new(service.clone()).accept_compressed(GZIP).send_compressed(GZIP))
        .add_service(EventServiceServer::new(service.clone()).accept_compressed(GZIP).send_compressed(GZIP))
        .add_service(FacadeServiceServer::new(service.clone()).accept_compressed(GZIP).send_compressed(GZIP))
        .add_service(UnmatchedTransferServiceServer::new(service.clone()).accept_compressed(GZIP).send_compressed(GZIP))
        .add_service(ReconciliationServiceServer::new(service.clone()).accept_compressed(GZIP).send_compressed(GZIP))
        .add_service(ComplianceServiceServer::new(service.clone()).accept_compressed(GZIP).send_compressed(GZIP))
        .add_service(BillingServiceServer::new(service.clone()).accept_compressed(GZIP).send_compressed(GZIP))
        .add_service(FeeServiceServer::new(service.clone()).accept_compressed(GZIP).send_compressed(GZIP))
        .add_service(SystemServiceServer::new(service.clone()).accept_compressed(GZIP).send_compressed(GZIP))
        .add_service(WebhookServiceServer::new(service.clone()).accept_compressed(GZIP).send_compressed(GZIP))
        .add_service(X402ServiceServer::new(service).accept_compressed(GZIP).send_compressed(GZIP))
}

/// Returns a tower service of the engine's gRPC services without a connection; calls need a token.
pub(crate) fn in_process(
    service: Service,
    access: Access,
) -> impl tower::Service<
    http::Request<Body>,
    Response = http::Response<Body>,
    Error = Infallible,
    Future = impl Future<Output = Result<http::Response<Body>, Infallible>> + Send,
> + Clone
+ Send {
    use tower::Layer as _;

    let shared = Arc::new(Shared { tokens: access.tokens, metrics: access.metrics });
    shared.layer().layer(Traced(with_engine(Routes::default(), service)))
}
