//! The status of the ledger, as control methods return it.

use serde_json::{Value, json};

use super::{faults::faults_json, host::Host, params::millis};

/// Returns the status of the ledger.
pub(super) fn status(host: &Host) -> Value {
    let chain = &host.chain;
    json!({
        "head": {
            "number": chain.head().number(),
            "id": chain.head().to_string(),
            "time": chain.head_time().to_ledger(),
        },
        "irreversible": chain.irreversible_num(),
        "mempool": chain.mempool().map(|included| included.id.to_string()).collect::<Vec<_>>(),
        "autoProduce": host.auto_produce,
        "blockIntervalMs": millis(host.block_interval),
        "aheadSeconds": host.ahead.as_secs(),
        "irreversibilityHeld": chain.is_irreversibility_held(),
        "transactionsHeld": chain.are_transactions_held(),
        "nodes": host.nodes.iter().map(faults_json).collect::<Vec<_>>(),
    })
}
