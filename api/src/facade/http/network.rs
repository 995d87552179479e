//! The Hive network that the engine follows, for the pages that warn of test networks.

use std::sync::atomic::{AtomicI32, Ordering};

use proto::{ApiError, Caller, Engine, v1};

/// The network that the engine reported last, cached for pages that make no other call.
#[derive(Debug, Default)]
pub(crate) struct KnownNetwork(AtomicI32);

impl KnownNetwork {
    /// Stores the network that the engine reported.
    pub(crate) fn set(&self, network: v1::LedgerNetwork) {
        self.0.store(network.into(), Ordering::Relaxed);
    }

    fn get(&self) -> v1::LedgerNetwork {
        v1::LedgerNetwork::try_from(self.0.load(Ordering::Relaxed)).unwrap_or_default()
    }

    fn is_known_test(&self) -> bool {
        matches!(self.get(), v1::LedgerNetwork::Testnet | v1::LedgerNetwork::Development)
    }

    /// Returns whether pages must warn that transfers move no real money. Calls the engine until the network is known; false
    /// while the engine is unreachable.
    pub(crate) async fn is_test(&self, engine: &Engine, caller: &Caller) -> bool {
        if self.get() == v1::LedgerNetwork::Unspecified
            && let Ok(report) = engine.system().get_health(caller.request(v1::GetHealthRequest {})).await
        {
            self.set(report.get_ref().network());
        }
        self.is_known_test()
    }

    /// Returns the same for an error page, without a call after an error 503.
    pub(crate) async fn is_test_for(&self, engine: &Engine, refused: &ApiError) -> bool {
        if refused.http() == 503 { self.is_known_test() } else { self.is_test(engine, &Caller::default()).await }
    }
}
