//! Calls that fail without an injected fault that explains it, and clients that do not wait for a response.

use super::*;
use crate::options::Fault;

/// Records that a call failed. Where a majority of nodes, the disk and the process work, only a refusal because of the request
/// itself is correct.
pub(super) fn call_failed(sim: &Simulation, call: &str, error: &EngineError, payment: Option<PaymentId>) {
    let is_failure = matches!(
        error,
        EngineError::LedgerUnavailable
            | EngineError::Overloaded
            | EngineError::Contended
            | EngineError::Damaged { .. }
            | EngineError::StoreFailed
    );
    if is_failure && sim.is_sound() {
        sim.refuse(format!("{call} fails: {error}"), payment);
    }
}

/// Records that a request of an agent or a seller failed.
pub(super) fn request_failed<T>(
    sim: &Simulation,
    call: &str,
    response: &Result<T, X402Error>,
    payment: Option<PaymentId>,
) {
    if let Err(X402Error::Unavailable(error)) = response {
        call_failed(sim, call, error, payment);
    }
}

/// Waits for a response, unless the client disconnects before.
pub(super) async fn unless_left<T>(sim: &Simulation, call: impl Future<Output = T>) -> Option<T> {
    let Some(after_ms) = sim.leaves_after_ms() else { return Some(call.await) };
    let response = tokio::time::timeout(Duration::from_millis(after_ms), call).await.ok();
    if response.is_none() {
        let word = Fault::ClientLeaves.as_str();
        sim.fault(Source::Payer, word, 0, || "a client disconnects while its request is pending".to_owned());
    }
    response
}
