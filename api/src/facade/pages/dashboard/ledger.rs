//! Test payments with play money on the development ledger.

use proto::{ApiError, Reason};
use serde_json::{Value, json};

/// The payer: an account of the development ledger with a large balance.
const PAYER: &str = "alice";

/// Sends play money; the ledger signs for its own demo accounts.
pub(super) async fn transfer(control: &str, to: &str, amount: &str, memo: &str) -> Result<(), ApiError> {
    let params = json!({ "from": PAYER, "to": to, "amount": amount, "memo": memo });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "control.transfer", "params": params });
    let refused = |why: String| ApiError::with_message(Reason::NodeUnavailable, why);
    let client = reqwest::Client::builder().no_proxy().build();
    let client = client.map_err(|_| refused("cannot create a client for the development ledger".to_owned()))?;
    let sent = client.post(control).json(&body).send().await;
    let response = sent.map_err(|_| refused("the development ledger does not respond".to_owned()))?;
    let response: Value =
        response.json().await.map_err(|_| refused("the development ledger returned an invalid response".to_owned()))?;
    match response["error"]["message"].as_str() {
        None => Ok(()),
        Some(why) => Err(refused(format!("the development ledger rejected the transfer: {why}"))),
    }
}
