//! The one call with a delayed response: a broadcast that waits for its block.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep},
};

use super::{
    host::{Answer, Request},
    rpc,
};

/// Poll interval and time limit, which is longer than the lifetime of a client's transaction.
const POLL: Duration = Duration::from_millis(25);
const TIMEOUT: Duration = Duration::from_secs(120);
/// The name of the call, in both APIs that had it.
const METHOD: &str = "broadcast_transaction_synchronous";

/// Returns whether a body is one request whose response waits until its transaction is in a block.
pub(super) fn is_synchronous(body: &[u8]) -> bool {
    let Ok(request) = serde_json::from_slice::<Value>(body) else { return false };
    let method = request["method"].as_str().unwrap_or_default();
    match method {
        "call" => request["params"][1] == METHOD,
        method => method.split_once('.').is_some_and(|(_, name)| name == METHOD),
    }
}

/// Waits until an accepted transaction is in a block, or expired, and completes the response; that of a refused one
/// is returned as it is. None when the ledger stops or the wait is too long.
pub(super) async fn included(answer: Vec<u8>, node: usize, requests: &mpsc::Sender<Request>) -> Option<Vec<u8>> {
    let Ok(mut reply) = serde_json::from_slice::<Value>(&answer) else { return Some(answer) };
    let Some(id) = reply["result"]["id"].as_str().map(str::to_owned) else { return Some(answer) };
    let asked = json!({ "transaction_id": id, "expiration": reply["result"]["expiration"] });
    let begun = Instant::now();
    while begun.elapsed() < TIMEOUT {
        let found = ask(node, requests, "transaction_status_api.find_transaction", &asked).await?;
        let status = found["status"].as_str().unwrap_or_default();
        let block_num = found["block_num"].as_u64();
        if block_num.is_some() || status.starts_with("expired") {
            let place = ask(node, requests, "account_history_api.get_transaction", &json!({ "id": id })).await?;
            reply["result"] = json!({
                "id": id,
                "block_num": block_num.unwrap_or(0),
                "trx_num": place["transaction_num"].as_u64().unwrap_or(0),
                "expired": block_num.is_none(),
            });
            return Some(reply.to_string().into_bytes());
        }
        sleep(POLL).await;
    }
    None
}

/// Queries the node that accepted the transaction; an error is an empty response. None when the ledger stops or the node is unreachable.
async fn ask(node: usize, requests: &mpsc::Sender<Request>, method: &str, params: &Value) -> Option<Value> {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let (reply, answer) = oneshot::channel();
    requests.send(Request::Rpc { node, body: Bytes::from(body), reply }).await.ok()?;
    match answer.await.ok()? {
        Answer::Reply { body, .. } => Some(rpc::result(&body).unwrap_or_default()),
        Answer::HangUp => None,
    }
}
