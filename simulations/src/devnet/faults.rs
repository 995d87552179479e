//! The faults of the nodes of the ledger.

use std::time::Duration;

use engine::money::{Currency, Money};
use serde_json::{Value, json};

use super::params::millis;
use crate::ledger::{Lie, Node};

/// What is wrong with a node on the network, beside what it shows ([`Node`]).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Faults {
    pub(super) node: Node,
    pub(super) disconnected: bool,
    pub(super) drop_broadcast_replies: u32,
    pub(super) delay: Duration,
    pub(super) http_status: Option<u16>,
    pub(super) retry_after_seconds: Option<u64>,
    pub(super) garbage: bool,
    /// The APIs that it does not serve.
    pub(super) lacks_apis: Vec<String>,
}

/// Returns the faults of a node as control methods return them.
pub(super) fn faults_json(faults: &Faults) -> Value {
    let lie = faults.node.lie.as_ref().map(|lie| match lie {
        Lie::InventTransfer { block, from, to, money, memo } => json!({
            "kind": "inventTransfer", "block": block, "from": from.as_str(), "to": to.as_str(),
            "amount": money.to_string(), "memo": memo,
        }),
        Lie::OmitTransfers => json!({ "kind": "omitTransfers" }),
        Lie::InflateTransfers => json!({ "kind": "inflateTransfers" }),
        Lie::EverythingIsFinal => json!({ "kind": "everythingIsFinal" }),
        Lie::HeadAhead { blocks } => json!({ "kind": "headAhead", "blocks": blocks }),
        Lie::Keys { key } => json!({ "kind": "keys", "key": key.to_string() }),
        Lie::SwallowBroadcasts => json!({ "kind": "swallowBroadcasts" }),
        Lie::RefuseBroadcasts => json!({ "kind": "refuseBroadcasts" }),
        Lie::Balances { units } => json!({ "kind": "balances", "units": units }),
        Lie::SkipBlocks => json!({ "kind": "skipBlocks" }),
        Lie::UnlinkBlocks => json!({ "kind": "unlinkBlocks" }),
        Lie::Price { price } => json!({
            "kind": "price",
            "base": Money::new(price.base_hbd_units, Currency::Hbd).to_string(),
            "quote": Money::new(price.quote_hive_units, Currency::Hive).to_string(),
        }),
    });
    json!({
        "lagBlocks": faults.node.lag_blocks,
        "stalled": faults.node.stalled_at.is_some(),
        "disconnected": faults.disconnected,
        "dropBroadcastReplies": faults.drop_broadcast_replies,
        "delayMs": millis(faults.delay),
        "httpStatus": faults.http_status,
        "retryAfterSeconds": faults.retry_after_seconds,
        "garbage": faults.garbage,
        "lacksApis": faults.lacks_apis,
        "lie": lie,
    })
}
