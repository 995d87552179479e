//! The network that the engine follows, for the pages that warn of test networks.

use std::sync::atomic::{AtomicI32, Ordering};

use proto::{ApiError, Caller, Engine, v1};

/// The network that the engine follows, as it last said; pages show it also where nothing else is asked.
#[derive(Debug, Default)]
pub(crate) struct KnownNetwork(AtomicI32);

impl KnownNetwork {
    /// Notes what the engine said.
    pub(crate) fn learn(&self, network: v1::LedgerNetwork) {
        self.0.store(network.into(), Ordering::Relaxed);
    }

    fn get(&self) -> v1::LedgerNetwork {
        v1::LedgerNetwork::try_from(self.0.load(Ordering::Relaxed)).unwrap_or_default()
    }

    fn is_known_test(&self) -> bool {
        matches!(self.get(), v1::LedgerNetwork::Testnet | v1::LedgerNetwork::Development)
    }

    /// Returns whether the pages must warn that no real money moves. The engine is asked once; while it does not answer,
    /// nothing is known.
    pub(crate) async fn is_test(&self, engine: &Engine, caller: &Caller) -> bool {
        if self.get() == v1::LedgerNetwork::Unspecified
            && let Ok(report) = engine.system().get_health(caller.request(v1::GetHealthRequest {})).await
        {
            self.learn(report.get_ref().network());
        }
        self.is_known_test()
    }

    /// The same for the page of a refusal: an engine that could not be reached is not asked once more.
    pub(crate) async fn is_test_for(&self, engine: &Engine, refused: &ApiError) -> bool {
        if refused.http() == 503 { self.is_known_test() } else { self.is_test(engine, &Caller::default()).await }
    }
}
