//! The development ledger's play money: what a test payment is paid with.

use proto::{ApiError, Reason};
use serde_json::{Value, json};

/// Who pays: an account of the demo ledger that has plenty.
const PAYER: &str = "alice";

/// Sends play money; the ledger signs for its own demo accounts.
pub(super) async fn transfer(control: &str, to: &str, amount: &str, memo: &str) -> Result<(), ApiError> {
    let params = json!({ "from": PAYER, "to": to, "amount": amount, "memo": memo });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "control.transfer", "params": params });
    let refused = |why: String| ApiError::with_message(Reason::NodeUnavailable, why);
    let client = reqwest::Client::builder().no_proxy().build();
    let client = client.map_err(|_| refused("no client for the development ledger".to_owned()))?;
    let sent = client.post(control).json(&body).send().await;
    let answer = sent.map_err(|_| refused("the development ledger does not answer".to_owned()))?;
    let answer: Value =
        answer.json().await.map_err(|_| refused("the development ledger answers nonsense".to_owned()))?;
    match answer["error"]["message"].as_str() {
        None => Ok(()),
        Some(why) => Err(refused(format!("the development ledger refuses: {why}"))),
    }
}
