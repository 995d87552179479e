//! Hands in one payment, the same bytes each time, until it is known what became of it.

use std::{error::Error as _, time::Duration};

use actors::{
    environment::{Node, TxStatus},
    hive_rpc::HiveRpc,
};
use engine::{
    ledger::TxId,
    time::Timestamp,
    x402::{Reason, decode_header},
};
use reqwest::{
    Client, Response, Url,
    header::{ACCEPT, HeaderMap, RETRY_AFTER},
};
use serde_json::Value;
use tokio::time::{Instant, sleep};

/// The most of an answer that is read.
const MAX_ANSWER: usize = 1 << 20;
/// The wait before asking again, where the server names none, and the longest it may name.
const RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(10);
/// How long the ledger is asked after the transaction has expired: a block that holds it may still become final.
const AFTERMATH: Duration = Duration::from_secs(90);

/// A payment to hand in.
pub(super) struct Hands<'a> {
    pub(super) client: &'a Client,
    pub(super) url: &'a Url,
    /// Name and value of the header that is the payment.
    pub(super) header: &'static str,
    pub(super) value: String,
    pub(super) tx_id: TxId,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Handed {
    pub(super) outcome: Outcome,
    /// The server's own receipt, the last it gave.
    pub(super) receipt: Option<Value>,
    pub(super) http_status: Option<u16>,
    /// How often the bytes were sent.
    pub(super) attempts: u32,
}

/// Whether money moved.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outcome {
    /// The server confirmed it; its response.
    Paid { response: Value },
    /// The server refused it, and it is not on the ledger.
    Unpaid { reason: String, message: Option<String> },
    /// The outcome is unknown.
    Unknown { reason: String },
    /// This transaction was settled before, and the server serves nothing for it any more.
    Settled,
    /// The payment was never sent.
    NeverSent { why: String },
}

/// What one answer means.
#[derive(Debug, Clone, PartialEq)]
enum Heard {
    Paid {
        response: Value,
    },
    Refused {
        reason: String,
        message: Option<String>,
        /// Whether the refusal names this transaction.
        is_ours: bool,
    },
    NotYet {
        reason: String,
        wait: Duration,
    },
    /// It speaks of another transaction.
    Foreign,
}

struct Round {
    heard: Heard,
    receipt: Option<Value>,
    http_status: u16,
}

/// A try that got no answer.
struct Lost {
    was_sent: bool,
    why: String,
}

impl Hands<'_> {
    /// Submits it until it is decided, or until the transaction has expired; then the ledger decides.
    /// Calls `tell` with the reason of each retry.
    pub(super) async fn hand_in(
        &self,
        node: &HiveRpc,
        expiration: Timestamp,
        patience: Duration,
        tell: impl Fn(&str),
    ) -> Handed {
        let deadline = Instant::now() + patience;
        let mut handed = Handed {
            outcome: Outcome::NeverSent { why: String::new() },
            receipt: None,
            http_status: None,
            attempts: 0,
        };
        let mut was_sent = false;
        loop {
            handed.attempts += 1;
            let (reason, wait) = match self.once().await {
                Ok(round) => {
                    was_sent = true;
                    handed.http_status = Some(round.http_status);
                    handed.receipt = round.receipt.or(handed.receipt);
                    match round.heard {
                        Heard::Paid { response } => {
                            handed.outcome = Outcome::Paid { response };
                            return handed;
                        }
                        Heard::Refused { reason, message, is_ours } => {
                            let was_settled = is_ours && reason == Reason::DuplicateSettlement.as_str();
                            handed.outcome = match node.find_transaction(self.tx_id, expiration).await {
                                Ok(status) => after_refusal(status, was_settled, reason, message),
                                Err(_) => Outcome::Unknown { reason },
                            };
                            return handed;
                        }
                        Heard::Foreign => {
                            handed.outcome = Outcome::Unknown { reason: "foreign_receipt".to_owned() };
                            return handed;
                        }
                        Heard::NotYet { reason, wait } => (reason, wait),
                    }
                }
                Err(lost) => {
                    was_sent |= lost.was_sent;
                    (lost.why, RETRY)
                }
            };
            if Instant::now() + wait >= deadline {
                handed.outcome = if was_sent {
                    self.aftermath(node, expiration, reason).await
                } else {
                    Outcome::NeverSent { why: reason }
                };
                return handed;
            }
            tell(&format!("not yet: {reason}; submitting the same payment again"));
            sleep(wait).await;
        }
    }

    async fn once(&self) -> Result<Round, Lost> {
        let lost = |error: reqwest::Error| {
            let was_sent = !error.is_connect();
            Lost { was_sent, why: causes(&error.without_url()) }
        };
        let request = self.client.get(self.url.clone()).header(ACCEPT, "application/json");
        let answer = request.header(self.header, &self.value).send().await.map_err(lost)?;
        let (http_status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let body = read(answer).await.map_err(lost)?;
        let receipt = receipt_of(&headers);
        let heard = judge(http_status, &headers, receipt.as_ref(), &body, self.tx_id);
        Ok(Round { heard, receipt, http_status })
    }

    /// The transaction has expired: it is in a block, or will never be.
    async fn aftermath(&self, node: &HiveRpc, expiration: Timestamp, reason: String) -> Outcome {
        let end = Instant::now() + AFTERMATH;
        while Instant::now() < end {
            match node.find_transaction(self.tx_id, expiration).await {
                Ok(TxStatus::InReversibleBlock(_) | TxStatus::InIrreversibleBlock(_)) => {
                    // Paid, says the ledger; the server's word is what counts here.
                    if let Ok(Round { heard: Heard::Paid { response }, .. }) = self.once().await {
                        return Outcome::Paid { response };
                    }
                }
                Ok(TxStatus::ExpiredIrreversible) => {
                    let message = Some(format!("it expired and is in no block; the last reason was {reason}"));
                    return Outcome::Unpaid { reason: "transaction_expired".to_owned(), message };
                }
                Ok(TxStatus::TooOld) => break,
                _ => {}
            }
            sleep(RETRY).await;
        }
        Outcome::Unknown { reason }
    }
}

/// Trusts a refusal only if the ledger says that it does not have the transaction.
fn after_refusal(status: TxStatus, was_settled: bool, reason: String, message: Option<String>) -> Outcome {
    match status {
        TxStatus::InReversibleBlock(_) | TxStatus::InIrreversibleBlock(_) | TxStatus::TooOld if was_settled => {
            Outcome::Settled
        }
        TxStatus::InMempool | TxStatus::InReversibleBlock(_) | TxStatus::InIrreversibleBlock(_) | TxStatus::TooOld => {
            Outcome::Unknown { reason }
        }
        TxStatus::Unknown | TxStatus::ExpiredReversible | TxStatus::ExpiredIrreversible => {
            Outcome::Unpaid { reason, message }
        }
    }
}

fn judge(status: u16, headers: &HeaderMap, receipt: Option<&Value>, body: &[u8], tx_id: TxId) -> Heard {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let said = |json: &Value, key: &str| json[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let in_receipt = |key: &str| receipt.and_then(|receipt| said(receipt, key));
    let reason = in_receipt("errorReason").or_else(|| word_of(body)).unwrap_or_else(|| format!("http_{status}"));
    let message = in_receipt("errorMessage").or_else(|| said(&json, "statusMessage"));
    let names = [in_receipt("transaction"), in_receipt("txId"), said(&json, "txId")];
    let names: Vec<_> = names.into_iter().flatten().map(|named| TxId::parse(&named)).collect();
    let is_foreign = names.iter().any(|named| *named != Some(tx_id));
    let refused = |reason, message| Heard::Refused { reason, message, is_ours: !names.is_empty() && !is_foreign };
    let wait = wait_of(headers);
    match status {
        200..=299 if receipt.is_some_and(|receipt| receipt["success"] == false) => refused(reason, message),
        200..=299 if is_foreign => Heard::Foreign,
        200..=299 => Heard::Paid { response: shown(body) },
        402 if reason == Reason::SettlementPending.as_str() => Heard::NotYet { reason, wait },
        // Somebody pays this session at this moment; only the end tells whether it was us.
        409 if is_under_way(body) => Heard::NotYet { reason, wait },
        408 | 425 | 429 | 500..=599 => Heard::NotYet { reason, wait },
        _ => refused(reason, message),
    }
}

/// Says whether a 409 means that the session is being paid at this moment.
pub(super) fn is_under_way(body: &[u8]) -> bool {
    let json = shown(body);
    matches!(json["status"].as_str(), Some("pending" | "processing"))
}

fn receipt_of(headers: &HeaderMap) -> Option<Value> {
    let value = headers.get("payment-response").or_else(|| headers.get("x-payment-response"))?;
    serde_json::from_slice(&decode_header(value.to_str().ok()?)?).ok()
}

fn wait_of(headers: &HeaderMap) -> Duration {
    let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    seconds.map_or(RETRY, Duration::from_secs).clamp(RETRY, LONGEST_RETRY)
}

/// Returns the word an answer says, where it says one.
pub(super) fn word_of(body: &[u8]) -> Option<String> {
    let json: Value = serde_json::from_slice(body).ok()?;
    let word = |key: &str| json[key].as_str().filter(|text| !text.is_empty());
    word("reason").or_else(|| word("error")).or_else(|| word("status")).map(str::to_owned)
}

/// Returns an answer as JSON, or as text where it is none.
pub(super) fn shown(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_else(|_| String::from_utf8_lossy(body).into())
}

/// Reads a body, up to a limit.
pub(super) async fn read(mut answer: Response) -> Result<Vec<u8>, reqwest::Error> {
    let mut body = Vec::new();
    while body.len() < MAX_ANSWER
        && let Some(chunk) = answer.chunk().await?
    {
        body.extend_from_slice(&chunk);
    }
    body.truncate(MAX_ANSWER);
    Ok(body)
}

/// Returns an error with what caused it.
pub(super) fn causes(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use engine::x402::encode_header;
    use serde_json::json;

    use super::*;

    const OURS: TxId = TxId([1; 20]);

    fn headers(receipt: &Value) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if !receipt.is_null() {
            headers.insert("payment-response", encode_header(&receipt.to_string()).parse().unwrap());
        }
        headers
    }

    fn hear(status: u16, receipt: &Value, body: &Value) -> Heard {
        let headers = headers(receipt);
        judge(status, &headers, receipt_of(&headers).as_ref(), body.to_string().as_bytes(), OURS)
    }

    #[test]
    fn only_the_answer_to_our_own_transaction_is_a_receipt() {
        let (ours, other) = (OURS.to_string(), TxId([2; 20]).to_string());
        let paid = |receipt: Value, body: Value| matches!(hear(200, &receipt, &body), Heard::Paid { .. });
        assert!(paid(json!({"success": true, "transaction": ours}), json!({"txId": ours})));
        assert!(paid(Value::Null, json!({"data": "what was paid for"})));
        assert_eq!(hear(200, &json!({"success": true, "transaction": other}), &json!({})), Heard::Foreign);
        assert_eq!(hear(200, &Value::Null, &json!({"txId": other})), Heard::Foreign);
        assert_eq!(hear(200, &Value::Null, &json!({"txId": "nonsense"})), Heard::Foreign);
    }

    #[test]
    fn what_is_not_decided_is_handed_in_again_and_what_is_refused_is_not() {
        let failed = |reason: &str| json!({"success": false, "errorReason": reason, "transaction": ""});
        let is_not_yet = |heard: Heard| matches!(heard, Heard::NotYet { .. });
        assert!(is_not_yet(hear(402, &failed("settlement_pending"), &json!({}))));
        assert!(is_not_yet(hear(402, &Value::Null, &json!({"error": "settlement_pending"}))));
        assert!(is_not_yet(hear(409, &Value::Null, &json!({"status": "processing"}))));
        assert!(is_not_yet(hear(409, &failed("duplicate_settlement"), &json!({"status": "pending"}))), "another's");
        for status in [408, 425, 429, 500, 502, 503, 504] {
            assert!(is_not_yet(hear(status, &Value::Null, &json!({"reason": "x"}))), "{status}");
        }
        for (status, reason) in [(402, "insufficient_funds"), (409, "session_completed"), (410, "gone"), (302, "moved")]
        {
            let body = json!({"reason": reason, "status": "completed", "statusMessage": "why"});
            let heard = hear(status, &Value::Null, &body);
            let refused = Heard::Refused { reason: reason.into(), message: Some("why".into()), is_ours: false };
            assert_eq!(heard, refused, "{status}");
        }
        let heard = hear(402, &failed("insufficient_funds"), &json!({"error": "other"}));
        assert_eq!(heard, Heard::Refused { reason: "insufficient_funds".into(), message: None, is_ours: false });
    }

    #[test]
    fn a_refusal_says_whether_it_is_about_our_transaction() {
        let duplicate = |tx: &str| {
            hear(402, &json!({"success": false, "errorReason": "duplicate_settlement", "transaction": tx}), &json!({}))
        };
        let is_ours = |heard: Heard| matches!(heard, Heard::Refused { is_ours: true, .. });
        assert!(is_ours(duplicate(&OURS.to_string())));
        assert!(!is_ours(duplicate(&TxId([2; 20]).to_string())));
        assert!(!is_ours(duplicate("")));
    }

    #[test]
    fn a_refusal_is_believed_only_where_the_ledger_has_no_such_transaction() {
        let outcome = |status, was_settled| after_refusal(status, was_settled, "why".to_owned(), None);
        let (unknown, unpaid) =
            (Outcome::Unknown { reason: "why".into() }, Outcome::Unpaid { reason: "why".into(), message: None });
        for status in [TxStatus::Unknown, TxStatus::ExpiredReversible, TxStatus::ExpiredIrreversible] {
            assert_eq!([outcome(status, false), outcome(status, true)], [unpaid.clone(), unpaid.clone()], "{status:?}");
        }
        for status in [TxStatus::InReversibleBlock(1), TxStatus::InIrreversibleBlock(1), TxStatus::TooOld] {
            assert_eq!(
                [outcome(status, false), outcome(status, true)],
                [unknown.clone(), Outcome::Settled],
                "{status:?}"
            );
        }
        assert_eq!(outcome(TxStatus::InMempool, true), unknown, "no block has it yet");
    }

    #[test]
    fn the_server_may_name_a_wait_but_not_a_long_one() {
        let wait = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            wait_of(&headers).as_secs()
        };
        assert_eq!([wait("3"), wait("0"), wait("99999"), wait("soon")], [3, 1, 10, 1]);
    }
}
