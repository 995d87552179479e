//! The control methods that change the faults of nodes.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::{
    failure::Failure,
    faults::{Faults, faults_json},
    host::Host,
    params::{money, name, price, public, read, wrong},
    status::status,
};
use crate::ledger::Lie;

/// Distinguishes a member that is null from one that is missing.
fn given<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(deserializer).map(Some)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct NodeFaults {
    #[serde(default)]
    node: usize,
    lag_blocks: Option<u32>,
    stalled: Option<bool>,
    disconnected: Option<bool>,
    drop_broadcast_replies: Option<u32>,
    delay_ms: Option<u64>,
    #[serde(default, deserialize_with = "given")]
    http_status: Option<Option<u16>>,
    #[serde(default, deserialize_with = "given")]
    retry_after_seconds: Option<Option<u64>>,
    garbage: Option<bool>,
    lacks_apis: Option<Vec<String>>,
    #[serde(default, deserialize_with = "given")]
    lie: Option<Option<LieParams>>,
}

#[derive(Deserialize)]
#[serde(tag = "kind", deny_unknown_fields, rename_all = "camelCase")]
enum LieParams {
    InventTransfer { block: u32, from: String, to: String, amount: String, memo: String },
    OmitTransfers,
    InflateTransfers,
    EverythingIsFinal,
    HeadAhead { blocks: u32 },
    Keys { key: String },
    SwallowBroadcasts,
    RefuseBroadcasts,
    Price { base: String, quote: String },
    Balances { units: i64 },
    SkipBlocks,
    UnlinkBlocks,
}

/// Changes the faults of a node.
pub(super) fn node(host: &mut Host, params: &Value) -> Result<Value, Failure> {
    let params: NodeFaults = read(params)?;
    let lie = params.lie.map(|lie| lie.map(read_lie).transpose()).transpose()?;
    if let Some(Some(status)) = params.http_status
        && !(200..600).contains(&status)
    {
        return Err(wrong("httpStatus must be a status of HTTP"));
    }
    let head = host.chain.head().number();
    let faults = host.nodes.get_mut(params.node).ok_or_else(|| wrong("there is no such node"))?;
    faults.node.lag_blocks = params.lag_blocks.unwrap_or(faults.node.lag_blocks);
    faults.node.stalled_at = match params.stalled {
        Some(true) => faults.node.stalled_at.or(Some(head)),
        Some(false) => None,
        None => faults.node.stalled_at,
    };
    faults.node.lie = lie.unwrap_or_else(|| faults.node.lie.take());
    faults.disconnected = params.disconnected.unwrap_or(faults.disconnected);
    faults.drop_broadcast_replies = params.drop_broadcast_replies.unwrap_or(faults.drop_broadcast_replies);
    faults.delay = params.delay_ms.map_or(faults.delay, Duration::from_millis);
    faults.http_status = params.http_status.unwrap_or(faults.http_status);
    faults.retry_after_seconds = params.retry_after_seconds.unwrap_or(faults.retry_after_seconds);
    faults.lacks_apis = params.lacks_apis.unwrap_or_else(|| std::mem::take(&mut faults.lacks_apis));
    faults.garbage = params.garbage.unwrap_or(faults.garbage);
    Ok(faults_json(faults))
}

fn read_lie(params: LieParams) -> Result<Lie, Failure> {
    Ok(match params {
        LieParams::InventTransfer { block, from, to, amount, memo } => {
            Lie::InventTransfer { block, from: name(&from)?, to: name(&to)?, money: money(&amount)?, memo }
        }
        LieParams::OmitTransfers => Lie::OmitTransfers,
        LieParams::InflateTransfers => Lie::InflateTransfers,
        LieParams::EverythingIsFinal => Lie::EverythingIsFinal,
        LieParams::HeadAhead { blocks } => Lie::HeadAhead { blocks },
        LieParams::Keys { key } => Lie::Keys { key: public(&key)? },
        LieParams::SwallowBroadcasts => Lie::SwallowBroadcasts,
        LieParams::RefuseBroadcasts => Lie::RefuseBroadcasts,
        LieParams::Balances { units } => Lie::Balances { units },
        LieParams::SkipBlocks => Lie::SkipBlocks,
        LieParams::UnlinkBlocks => Lie::UnlinkBlocks,
        LieParams::Price { base, quote } => Lie::Price { price: price(&base, &quote)? },
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Heal {
    node: Option<usize>,
}

/// Removes the faults of a node, or of all.
pub(super) fn heal(host: &mut Host, params: &Value) -> Result<Value, Failure> {
    let params: Heal = read(params)?;
    match params.node {
        None => host.nodes.fill(Faults::default()),
        Some(node) => *host.nodes.get_mut(node).ok_or_else(|| wrong("there is no such node"))? = Faults::default(),
    }
    Ok(status(host))
}
