//! A running engine: its store, its actors, the ports in front of it, and the order in which they start and end.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use actors::{
    Environment, Gateway, Tree,
    environment::{Clock as _, NoProbe, Node},
    hive_rpc::HiveRpc,
    http_webhooks::HttpWebhooks,
    system::{SystemClock, SystemEntropy},
};
use proto::{Engine, Transport};
use storage::RedbStore;
use tokio::{net::TcpListener, task::JoinHandle};
use tracing::{info, warn};

use super::{
    Failure, clock, files, local, master_key, open_files,
    stop::{self, Stop},
};
use crate::{
    config::Config,
    facade::{
        Desk, Facade,
        server::{self as http_server, Limits},
    },
    metrics::Metrics,
    service::{
        Maintenance, Service,
        server::{self as grpc_server, Access},
    },
    version,
};

/// How long an orderly end may take: a little less than a service manager waits.
const STOP_TIMEOUT: Duration = Duration::from_secs(24);

/// An engine at work.
pub(super) struct Running {
    tree: Tree,
    pub(super) store: Arc<RedbStore>,
    data: PathBuf,
}

impl Running {
    /// Opens the store and starts the actors; returns when recovery is done.
    pub(super) async fn start(config: &Config, data: &Path) -> Result<Self, Failure> {
        stop::survive_hangup();
        let store = Arc::new(master_key::open_store(config, data)?);
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
            store: store.clone(),
            nodes,
            webhooks: Arc::new(webhooks),
            probe: Arc::new(NoProbe),
        };
        let tree = Tree::start(environment, config.engine()).await?;
        info!(
            version = version::VERSION,
            commit = version::commit(),
            "hivetill {}: the engine runs; its data are in {}",
            version::text(),
            data.display()
        );
        Ok(Self { tree, store, data: data.to_owned() })
    }

    pub(super) fn gateway(&self) -> Gateway {
        self.tree.gateway()
    }

    pub(super) fn service(&self) -> Service {
        Service::new(self.gateway())
    }

    /// Returns what an operator may ask of it.
    pub(super) fn maintenance(&self) -> Maintenance {
        Maintenance::new(Arc::clone(&self.store))
    }

    /// Adds what the engine counts to the metrics.
    pub(super) fn show(&self, metrics: &mut Metrics, data: &Path) {
        metrics.add_engine(&self.gateway(), &self.store, data.to_owned());
    }

    /// Waits until the process is asked to end, or the engine must not go on.
    pub(super) async fn until_end(&self) -> Result<(), Failure> {
        tokio::select! {
            biased;
            why = self.tree.failed() => Err(self.failure(why)),
            () = stop::asked() => Ok(()),
        }
    }

    fn failure(&self, why: String) -> Failure {
        if self.store.is_full() { Failure::Full(self.data.clone()) } else { Failure::Engine(why) }
    }

    /// Lets the ports end what they are doing, stops the actors, then closes the store. What takes too long is left
    /// behind: what was acknowledged is on disk already.
    pub(super) async fn end(self, ports: Vec<JoinHandle<()>>) {
        let begun = tokio::time::Instant::now();
        let in_order = async {
            ended(ports).await;
            self.tree.stop().await;
            self.store.close().await;
        };
        if tokio::time::timeout(STOP_TIMEOUT, in_order).await.is_err() {
            tracing::warn!("not everything ended within {STOP_TIMEOUT:?}; the rest is left as it is");
        } else {
            info!("stopped after {:.1?}", begun.elapsed());
        }
    }
}

/// Takes an address.
pub(super) async fn listen(address: SocketAddr, flag: &'static str) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|source| Failure::Listen { address, flag, source })
}

/// Takes the address of the metrics, where one is set.
pub(super) async fn listen_for_metrics(config: &Config) -> Result<Option<TcpListener>, Failure> {
    match config.address("metrics.listen") {
        Some(address) => Ok(Some(listen(address, "the setting metrics.listen").await?)),
        None => Ok(None),
    }
}

/// Serves metrics where somebody may read them, until `stop`.
pub(super) fn serve_metrics(
    listener: Option<TcpListener>,
    metrics: Metrics,
    stop: &Stop,
) -> Result<Option<JoinHandle<()>>, Failure> {
    let Some(listener) = listener else { return Ok(None) };
    info!("metrics are at http://{}/metrics", address_of(&listener)?);
    Ok(Some(metrics.serve(listener, stop.heard())))
}

/// Returns the address that was taken.
pub(super) fn address_of(listener: &TcpListener) -> Result<SocketAddr, Failure> {
    listener.local_addr().map_err(|error| Failure::Other(format!("a listener has no address: {error}")))
}

/// Serves REST and the checkout page over an engine, until `stop`.
pub(super) fn serve_rest(
    config: &Config,
    listener: TcpListener,
    transport: Transport,
    test_ledger: Option<String>,
    stop: &Stop,
    metrics: &mut Metrics,
) -> Result<JoinHandle<()>, Failure> {
    let address = address_of(&listener)?;
    let base_url = config.optional("base_url").map_or_else(|| format!("http://{address}"), str::to_owned);
    let edge = config.edge(Arc::new(|| SystemClock.now()));
    let desk = Some(Desk::new(files::random(), test_ledger));
    let facade = Facade::behind(edge, desk, Engine::new(transport), &base_url, u64::from_be_bytes(files::random()));
    metrics.add_facade(&facade);
    open_files::provide(config.count("limits.connections"));
    let limits = Limits {
        connections: config.count("limits.connections"),
        head_timeout: config.millis("limits.head_timeout_ms"),
        drain_timeout: config.millis("limits.drain_timeout_ms"),
    };
    info!(
        version = version::VERSION,
        commit = version::commit(),
        "REST and the checkout page are at {base_url} (listening on {address})"
    );
    Ok(tokio::spawn(http_server::serve(listener, facade, limits, stop.heard())))
}

/// Serves the engine over gRPC, until `stop`.
pub(super) fn serve_grpc(
    config: &Config,
    data: &Path,
    listener: TcpListener,
    running: &Running,
    stop: &Stop,
) -> Result<JoinHandle<()>, Failure> {
    let address = address_of(&listener)?;
    let token = local::token(config, data)?;
    let tls = match (config.optional("grpc.tls_cert"), config.optional("grpc.tls_key")) {
        (Some(certificate), Some(key)) => Some((pem(certificate)?, pem(key)?)),
        _ => None,
    };
    if tls.is_none() && !address.ip().is_loopback() {
        warn!(
            "the engine's gRPC port {address} is open to the network without TLS: its token and every payment can be \
             read on the way; set grpc.tls_cert and grpc.tls_key, or listen on 127.0.0.1"
        );
    }
    info!("the engine's gRPC port is {address}");
    let served =
        grpc_server::serve(listener, running.service(), running.maintenance(), Access { token, tls }, stop.heard());
    Ok(tokio::spawn(async move {
        if let Err(error) = served.await {
            tracing::error!("the gRPC port failed: {error}");
        }
    }))
}

/// Reads a PEM file.
pub(super) fn pem(path: &str) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::File { path: path.into(), why: error.to_string() })
}

/// Waits for the ends of all ports.
pub(super) async fn ended(ports: Vec<JoinHandle<()>>) {
    for port in ports {
        // A port that panicked has said so in the log.
        let _ = port.await;
    }
}
