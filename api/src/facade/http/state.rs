//! The state that all handlers share: the engine's client, the limits, the dashboard's sessions, caches and metrics.

use std::sync::Arc;

use proto::Engine;

use super::{
    call::RequestIds,
    file::CachedDocuments,
    metrics::{EnginesCollector, Metrics},
    network::KnownNetwork,
    sessions::DashboardState,
};
use crate::facade::limits::{AcceptedKeys, Edge};

/// The state that all handlers share.
pub struct Facade {
    pub(crate) engine: Engine,
    pub(crate) edge: Edge,
    pub(crate) dashboard: Option<DashboardState>,
    pub(crate) base_url: String,
    pub(crate) ids: RequestIds,
    pub(crate) accepted_keys: AcceptedKeys,
    pub(crate) documents: CachedDocuments,
    pub(crate) network: KnownNetwork,
    pub(crate) metrics: Metrics,
    pub(crate) closing: tokio::sync::watch::Sender<bool>,
}

impl Facade {
    /// Creates a facade of `engine` that clients reach at `base_url`; request ids are derived from `seed`.
    #[must_use]
    pub fn new(engine: Engine, base_url: &str, seed: u64) -> Arc<Self> {
        Self::with_edge(Edge::default(), None, engine, base_url, seed)
    }

    /// Creates a facade with limits, trusted proxies and a dashboard.
    #[must_use]
    pub fn with_edge(
        edge: Edge,
        dashboard: Option<DashboardState>,
        engine: Engine,
        base_url: &str,
        seed: u64,
    ) -> Arc<Self> {
        let base_url = base_url.trim_end_matches('/').to_owned();
        Arc::new(Self {
            engine,
            edge,
            dashboard,
            base_url,
            ids: RequestIds::new(seed),
            accepted_keys: AcceptedKeys::default(),
            documents: CachedDocuments::default(),
            network: KnownNetwork::default(),
            metrics: Metrics::default(),
            closing: Default::default(),
        })
    }

    /// Registers the metrics of the facade.
    pub fn register_metrics(&self, registry: &mut prometheus_client::registry::Registry) {
        self.metrics.register(registry);
        if !self.engine.states().is_empty() {
            registry.register_collector(Box::new(EnginesCollector(self.engine.clone())));
        }
    }

    /// Ends open streams.
    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Completes when the facade closes.
    pub(crate) fn closed(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut closing = self.closing.subscribe();
        async move {
            // An error means that the facade was dropped, which also closes it.
            let _ = closing.wait_for(|closing| *closing).await;
        }
    }

    /// Returns the public URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base_url)
    }
}
