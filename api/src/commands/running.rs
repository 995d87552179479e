//! A running engine: its store, its actors and its ports, and the order of their start and shutdown.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use actors::{
    Environment, RegistrationMode, Tree,
    environment::{Clock as _, NoProbe, Node},
    hive_rpc::HiveRpc,
    http_webhooks::HttpWebhooks,
    system::{SystemClock, SystemEntropy},
};
use proto::{Engine, Transport};
use tokio::{
    net::{TcpListener, TcpSocket},
    task::JoinHandle,
};
use tracing::{info, warn};

use super::{
    clock, database,
    failure::Failure,
    files, open_files,
    shutdown::{self, Shutdown},
    tokens,
};
use crate::{
    config::Config,
    facade::{
        DashboardState, Facade,
        server::{self as http_server, Limits},
    },
    metrics::Metrics,
    service::{
        self, Maintenance, Service,
        server::{self as grpc_server, Access, Tls, TlsError},
    },
    store::OpenStore,
    version,
};

/// Timeout of a graceful shutdown, below the usual timeouts of service managers.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(24);

/// A running engine.
pub(super) struct RunningEngine {
    tree: Tree,
    pub(super) store: OpenStore,
    data: PathBuf,
    registration: RegistrationMode,
    /// The metrics of the gRPC ports.
    pub(super) grpc: service::Metrics,
}

impl RunningEngine {
    /// Opens the store and starts the actors; returns after recovery. Creates a missing embedded store if `may_create` is
    /// set.
    pub(super) async fn start(config: &Config, data: &Path, may_create: bool) -> Result<Self, Failure> {
        shutdown::ignore_hangup();
        check_majority(config)?;
        let store = database::open_store(config, data, may_create).await?;
        let mut nodes: Vec<Arc<dyn Node>> = Vec::new();
        for url in config.list("ledger.nodes") {
            let node = HiveRpc::new(&url, config.millis("ledger.request_timeout_ms"));
            nodes.push(Arc::new(node.map_err(|error| Failure::Other(format!("cannot set up TLS: {error}")))?));
        }
        let webhooks = HttpWebhooks::new(config.webhook_addresses())
            .map_err(|error| Failure::Other(format!("cannot set up TLS: {error}")))?;
        if config.text("network") == "mainnet" {
            clock::check(&SystemClock, &nodes).await?;
        }
        let environment = Environment {
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            store: store.actor_store(),
            nodes,
            webhooks: Arc::new(webhooks),
            probe: Arc::new(NoProbe),
        };
        let settings = config.engine();
        let registration = settings.registration;
        let tree = Tree::start(environment, settings).await?;
        info!(
            version = version::VERSION,
            commit = version::commit(),
            "hivetill {}: engine running; data directory {}",
            version::text(),
            data.display()
        );
        Ok(Self { tree, store, data: data.to_owned(), registration, grpc: service::Metrics::default() })
    }

    pub(super) fn engine(&self) -> actors::Engine {
        self.tree.engine()
    }

    pub(super) fn service(&self) -> Service {
        Service::new(self.engine())
    }

    /// Returns the maintenance service for operators.
    pub(super) fn maintenance(&self) -> Maintenance {
        Maintenance::new(self.store.clone(), self.engine(), self.registration)
    }

    /// Registers the metrics of the engine.
    pub(super) fn register_metrics(&self, metrics: &mut Metrics, data: &Path) {
        metrics.add_engine(&self.engine(), &self.store, data.to_owned());
        metrics.add_grpc(&self.grpc);
    }

    /// Waits for a termination signal or a failure of the engine.
    ///
    /// # Errors
    /// The failure of the engine.
    pub(super) async fn wait_for_shutdown(&self) -> Result<(), Failure> {
        tokio::select! {
            biased;
            reason = self.tree.failed() => Err(self.failure(reason)),
            () = shutdown::signal() => Ok(()),
        }
    }

    fn failure(&self, reason: String) -> Failure {
        if self.store.is_full() { Failure::Full(self.data.clone()) } else { Failure::Engine(reason) }
    }

    /// Shuts down gracefully: waits for the ports, stops the actors, then closes the store. After [`SHUTDOWN_TIMEOUT`] open
    /// requests are abandoned; acknowledged writes are durable.
    pub(super) async fn shutdown(self, ports: Vec<JoinHandle<()>>) {
        let started = tokio::time::Instant::now();
        let graceful = async {
            join_ports(ports).await;
            self.tree.stop().await;
            self.store.close().await;
        };
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, graceful).await.is_err() {
            tracing::warn!("shutdown exceeded {SHUTDOWN_TIMEOUT:?}: exiting with open requests");
        } else {
            info!("stopped after {:.1?}", started.elapsed());
        }
    }
}

/// Checks that the required number of agreeing nodes does not exceed the number of configured nodes.
fn check_majority(config: &Config) -> Result<(), Failure> {
    let nodes = config.list("ledger.nodes").len();
    let needed = actors::nodes_needed(nodes, config.count("ledger.min_agreeing_nodes"));
    if needed <= nodes {
        return Ok(());
    }
    let reason = format!("{needed} nodes must agree, but ledger.nodes has {nodes}: no payment would ever complete");
    Err(Failure::Setting { setting: "ledger.min_agreeing_nodes", reason })
}

/// Size of the send buffer of a socket, which limits the memory of a client that does not read. Accepted sockets inherit
/// it.
const SEND_BUFFER_BYTES: u32 = 64 * 1024;
/// Maximum number of connections that wait in the kernel to be accepted.
const BACKLOG: u32 = 1_024;

/// Binds a listener to an address; `flag` names the flag or setting in the error.
pub(super) async fn listen(address: SocketAddr, flag: &'static str) -> Result<TcpListener, Failure> {
    let bind = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    bind().map_err(|source| Failure::Listen { address, flag, source })
}

/// Binds the listener of health checks; `None` if `health.listen` is not set.
pub(super) async fn listen_for_health(config: &Config) -> Result<Option<TcpListener>, Failure> {
    match config.address("health.listen") {
        Some(address) => Ok(Some(listen(address, "the setting health.listen").await?)),
        None => Ok(None),
    }
}

/// Binds the listener of the metrics; `None` if `metrics.listen` is not set.
pub(super) async fn listen_for_metrics(config: &Config) -> Result<Option<TcpListener>, Failure> {
    match config.address("metrics.listen") {
        Some(address) => Ok(Some(listen(address, "the setting metrics.listen").await?)),
        None => Ok(None),
    }
}

/// Serves metrics until shutdown, if there is a listener for them.
pub(super) fn serve_metrics(
    listener: Option<TcpListener>,
    metrics: Metrics,
    shutdown: &Shutdown,
) -> Result<Option<JoinHandle<()>>, Failure> {
    let Some(listener) = listener else { return Ok(None) };
    info!("metrics are at http://{}/metrics", address_of(&listener)?);
    Ok(Some(metrics.serve(listener, shutdown.requested())))
}

/// Returns the IP address and port of a listener.
pub(super) fn address_of(listener: &TcpListener) -> Result<SocketAddr, Failure> {
    listener.local_addr().map_err(|error| Failure::Other(format!("a listener has no address: {error}")))
}

/// Serves the REST API and the pages until shutdown.
pub(super) fn serve_rest(
    config: &Config,
    (listener, health): (TcpListener, Option<TcpListener>),
    transport: Transport,
    test_ledger: Option<String>,
    shutdown: &Shutdown,
    metrics: &mut Metrics,
) -> Result<JoinHandle<()>, Failure> {
    let address = address_of(&listener)?;
    let base_url = config.optional("base_url").map_or_else(|| format!("http://{address}"), str::to_owned);
    let edge = config.edge(Arc::new(|| SystemClock.now()));
    let dashboard = Some(DashboardState::new(files::random(), test_ledger));
    let facade =
        Facade::with_edge(edge, dashboard, Engine::new(transport), &base_url, u64::from_be_bytes(files::random()));
    metrics.add_facade(&facade);
    open_files::raise_limit(config.count("limits.connections"));
    let limits = limits(config);
    if let Some(health) = health {
        info!("health checks are at http://{}/readyz", address_of(&health)?);
        tokio::spawn(http_server::serve_health(health, Arc::clone(&facade), limits.for_health(), shutdown.requested()));
    }
    info!(
        version = version::VERSION,
        commit = version::commit(),
        "REST and the checkout page are at {base_url} (listening on {address})"
    );
    Ok(tokio::spawn(http_server::serve(listener, facade, limits, shutdown.requested())))
}

/// Returns the limits of the REST port.
fn limits(config: &Config) -> Limits {
    let is_limited = config.text("limits.profile") == "production";
    Limits {
        connections: config.count("limits.connections"),
        connections_per_ip: is_limited.then(|| config.count("limits.connections_per_ip")),
        head_timeout: config.millis("limits.head_timeout_ms"),
        body_timeout: config.millis("limits.body_timeout_ms"),
        write_timeout: config.millis("limits.write_timeout_ms"),
        idle_timeout: config.millis("limits.idle_timeout_ms"),
        drain_timeout: config.millis("limits.drain_timeout_ms"),
    }
}

/// Serves the gRPC port until shutdown.
pub(super) fn serve_grpc(
    config: &Config,
    data: &Path,
    listener: TcpListener,
    running: &RunningEngine,
    shutdown: &Shutdown,
) -> Result<JoinHandle<()>, Failure> {
    let address = address_of(&listener)?;
    let tokens = tokens::tokens(config, data)?;
    let tls = tls(config)?;
    if tls.is_none() && !address.ip().is_loopback() {
        warn!(
            "the engine's gRPC port {address} is open to the network without TLS: others on the network can \
             read its token and every payment; set grpc.tls_cert and grpc.tls_key, or listen on 127.0.0.1"
        );
    }
    let connections = config.count("grpc.connections");
    let access = Access { tokens, tls, connections, metrics: running.grpc.clone() };
    info!("the engine's gRPC port is {address}");
    let served = grpc_server::serve(listener, running.service(), running.maintenance(), access, shutdown.requested());
    Ok(tokio::spawn(async move {
        if let Err(error) = served.await {
            tracing::error!("the gRPC port failed: {error}");
        }
    }))
}

/// Returns the TLS configuration of the gRPC port; `None` if `grpc.tls_cert` is not set.
fn tls(config: &Config) -> Result<Option<Tls>, Failure> {
    let (Some(certificate), Some(key)) = (config.optional("grpc.tls_cert"), config.optional("grpc.tls_key")) else {
        return Ok(None);
    };
    let (certificate, key) = (pem(certificate)?, pem(key)?);
    let client_ca = config.optional("grpc.tls_client_ca").map(pem).transpose()?;
    let invalid = |setting, error: &TlsError| Failure::Setting { setting, reason: causes(error) };
    // Checked without the client authority first, so that the error names the right setting.
    Tls::new(&certificate, &key, None).map_err(|error| invalid("grpc.tls_cert", &error))?;
    let tls = Tls::new(&certificate, &key, client_ca.as_deref());
    Ok(Some(tls.map_err(|error| invalid("grpc.tls_client_ca", &error))?))
}

/// Formats an error with its causes.
fn causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Reads a PEM file.
pub(super) fn pem(path: &str) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::of_file(path.as_ref(), &error))
}

/// Waits until all ports have stopped.
pub(super) async fn join_ports(ports: Vec<JoinHandle<()>>) {
    for port in ports {
        // A panic is already logged.
        let _ = port.await;
    }
}
