//! Permits for payments by x402 that are verified or settled at the same time.

use tokio::sync::Semaphore;

/// Permits for verifications and settlements. Each has its own, so that settlements that wait for the ledger do not keep
/// verifications from running.
pub(super) struct Permits {
    pub(super) verifying: Semaphore,
    pub(super) settling: Semaphore,
}

impl Default for Permits {
    fn default() -> Self {
        Self { verifying: Semaphore::new(1_024), settling: Semaphore::new(4_096) }
    }
}
