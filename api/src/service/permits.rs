//! Concurrency limits for verifications and settlements of x402 payments.

use tokio::sync::Semaphore;

/// Permits for concurrent verifications and settlements. They are separate, so that settlements that wait for the ledger
/// do not block verifications.
pub(super) struct Permits {
    pub(super) verifying: Semaphore,
    pub(super) settling: Semaphore,
}

impl Default for Permits {
    fn default() -> Self {
        Self { verifying: Semaphore::new(1_024), settling: Semaphore::new(4_096) }
    }
}
