//! What every handler holds: the engine's client, the limits, and what the facade has learned.

use std::sync::Arc;

use proto::Engine;

use super::{call::RequestIds, file::Described, metrics::Metrics, network::KnownNetwork, sessions::Desk};
use crate::facade::limits::{AcceptedKeys, Edge};

/// What every handler holds.
pub struct Facade {
    pub(crate) engine: Engine,
    pub(crate) edge: Edge,
    pub(crate) desk: Option<Desk>,
    pub(crate) base_url: String,
    pub(crate) ids: RequestIds,
    pub(crate) accepted_keys: AcceptedKeys,
    pub(crate) described: Described,
    pub(crate) network: KnownNetwork,
    pub(crate) metrics: Metrics,
    pub(crate) closing: tokio::sync::watch::Sender<bool>,
}

impl Facade {
    /// Makes a facade of `engine`, reached by the world at `base_url`; `seed` makes the names of its requests.
    #[must_use]
    pub fn new(engine: Engine, base_url: &str, seed: u64) -> Arc<Self> {
        Self::behind(Edge::default(), None, engine, base_url, seed)
    }

    /// The same with limits and proxies before it, and a dashboard.
    #[must_use]
    pub fn behind(edge: Edge, desk: Option<Desk>, engine: Engine, base_url: &str, seed: u64) -> Arc<Self> {
        let base_url = base_url.trim_end_matches('/').to_owned();
        Arc::new(Self {
            engine,
            edge,
            desk,
            base_url,
            ids: RequestIds::new(seed),
            accepted_keys: AcceptedKeys::default(),
            described: Described::default(),
            network: KnownNetwork::default(),
            metrics: Metrics::default(),
            closing: Default::default(),
        })
    }

    /// Shows what the facade counts under the registry's prefix.
    pub fn register_metrics(&self, registry: &mut prometheus_client::registry::Registry) {
        self.metrics.register(registry);
    }

    /// Ends the answers that have no end of their own.
    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Is done when the facade closes.
    pub(crate) fn closed(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut closing = self.closing.subscribe();
        async move {
            // A facade that is gone is closed.
            let _ = closing.wait_for(|closing| *closing).await;
        }
    }

    /// Returns the address of a path of ours as the world sees it.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base_url)
    }
}
