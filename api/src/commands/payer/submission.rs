//! Submits one payment, the same bytes on each attempt, until its outcome is known.

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
    Client, Response,
    header::{HeaderMap, RETRY_AFTER},
};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{request::Request, tool_call::ToolCall};

/// Maximum bytes of a response that are read.
pub(super) const MAX_RESPONSE: usize = 1 << 20;
/// Default and maximum time until the next attempt.
pub(super) const RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(10);
/// How long the ledger is queried after the expiration: a block with the transaction may still become irreversible.
const AFTERMATH: Duration = Duration::from_secs(90);

/// A payment to submit.
pub(in crate::commands) struct Submission<'a> {
    pub(in crate::commands) client: &'a Client,
    pub(in crate::commands) carrier: Carrier<'a>,
    pub(in crate::commands) tx_id: TxId,
}

/// What carries the payment to the server.
pub(in crate::commands) enum Carrier<'a> {
    /// A request with the payment in a header.
    Header {
        /// The request.
        request: &'a Request,
        /// The name of the header.
        name: &'a str,
        /// Its value.
        value: String,
    },
    /// A tool call with the payment in its `_meta`.
    Meta {
        /// The call.
        call: &'a ToolCall,
        /// The payment.
        payment: &'a Value,
    },
}

/// The result of a submission.
#[derive(Debug)]
pub(in crate::commands) struct Submitted {
    pub(in crate::commands) outcome: Outcome,
    /// The last receipt of the server.
    pub(in crate::commands) receipt: Option<Value>,
    pub(in crate::commands) http_status: Option<u16>,
    /// The number of attempts.
    pub(in crate::commands) attempts: u32,
}

/// The outcome of a submission.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::commands) enum Outcome {
    /// The server confirmed the payment, with this response.
    Paid { response: Value },
    /// The server refused the payment, and it is not on the ledger.
    Unpaid { reason: String, message: Option<String> },
    /// The outcome is unknown.
    Unknown { reason: String },
    /// The transaction was settled before, and the server does not serve it again.
    Settled,
    /// The payment was never sent.
    NeverSent { why: String },
}

/// The meaning of one response.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Verdict {
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
    /// It names another transaction.
    Foreign,
    /// The payment is settled, and the purchase failed: the server owes it.
    Undelivered {
        reason: String,
    },
}

pub(super) struct Round {
    pub(super) verdict: Verdict,
    pub(super) receipt: Option<Value>,
    pub(super) http_status: Option<u16>,
}

/// An attempt without a response.
pub(super) struct NoResponse {
    pub(super) was_sent: bool,
    pub(super) why: String,
}

impl Submission<'_> {
    /// Submits the payment until its outcome is known, or until the transaction has expired; then the ledger decides.
    /// Calls `on_retry` with the reason of each retry.
    pub(in crate::commands) async fn run(
        &self,
        node: &HiveRpc,
        expiration: Timestamp,
        timeout: Duration,
        on_retry: &(dyn Fn(&str) + Sync),
    ) -> Submitted {
        let deadline = Instant::now() + timeout;
        let mut submitted = Submitted {
            outcome: Outcome::NeverSent { why: String::new() },
            receipt: None,
            http_status: None,
            attempts: 0,
        };
        let mut was_sent = false;
        loop {
            submitted.attempts += 1;
            let (reason, wait) = match self.attempt().await {
                Ok(round) => {
                    was_sent = true;
                    submitted.http_status = round.http_status;
                    submitted.receipt = round.receipt.or(submitted.receipt);
                    match round.verdict {
                        Verdict::Paid { response } => {
                            submitted.outcome = Outcome::Paid { response };
                            return submitted;
                        }
                        Verdict::Refused { reason, message, is_ours } => {
                            let was_settled = is_ours && reason == Reason::DuplicateSettlement.as_str();
                            submitted.outcome = match node.find_transaction(self.tx_id, expiration).await {
                                Ok(status) => after_refusal(status, was_settled, reason, message),
                                Err(_) => Outcome::Unknown { reason },
                            };
                            return submitted;
                        }
                        Verdict::Foreign => {
                            submitted.outcome = Outcome::Unknown { reason: "foreign_receipt".to_owned() };
                            return submitted;
                        }
                        Verdict::Undelivered { reason } => {
                            submitted.outcome = Outcome::Unknown { reason };
                            return submitted;
                        }
                        Verdict::NotYet { reason, wait } => (reason, wait),
                    }
                }
                Err(lost) => {
                    was_sent |= lost.was_sent;
                    (lost.why, RETRY)
                }
            };
            if Instant::now() + wait >= deadline {
                submitted.outcome = if was_sent {
                    self.aftermath(node, expiration, reason).await
                } else {
                    Outcome::NeverSent { why: reason }
                };
                return submitted;
            }
            on_retry(&format!("not yet: {reason}; submitting the same payment again"));
            sleep(wait).await;
        }
    }

    async fn attempt(&self) -> Result<Round, NoResponse> {
        let lost = |error: reqwest::Error| {
            let was_sent = !error.is_connect();
            NoResponse { was_sent, why: causes(&error.without_url()) }
        };
        let (request, name, value) = match &self.carrier {
            Carrier::Header { request, name, value } => (request, *name, value),
            Carrier::Meta { call, payment } => return call.attempt(self.client, payment, self.tx_id).await,
        };
        let response = request.begin(self.client).header(name, value).send().await.map_err(lost)?;
        let (http_status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = read(response).await.map_err(lost)?;
        let receipt = receipt_of(&headers);
        let verdict = judge(http_status, &headers, receipt.as_ref(), &body, self.tx_id);
        Ok(Round { verdict, receipt, http_status: Some(http_status) })
    }

    /// The transaction has expired: it is in a block, or will never be.
    async fn aftermath(&self, node: &HiveRpc, expiration: Timestamp, reason: String) -> Outcome {
        let end = Instant::now() + AFTERMATH;
        while Instant::now() < end {
            match node.find_transaction(self.tx_id, expiration).await {
                Ok(TxStatus::InReversibleBlock(_) | TxStatus::InIrreversibleBlock(_)) => {
                    // The ledger has it; the confirmation of the server decides.
                    if let Ok(Round { verdict: Verdict::Paid { response }, .. }) = self.attempt().await {
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

/// Accepts a refusal only if the ledger confirms that it does not have the transaction.
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

fn judge(status: u16, headers: &HeaderMap, receipt: Option<&Value>, body: &[u8], tx_id: TxId) -> Verdict {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let text_of = |json: &Value, key: &str| json[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let in_receipt = |key: &str| receipt.and_then(|receipt| text_of(receipt, key));
    let reason = in_receipt("errorReason").or_else(|| word_of(body)).unwrap_or_else(|| format!("http_{status}"));
    let message = in_receipt("errorMessage").or_else(|| text_of(&json, "statusMessage"));
    let names = [in_receipt("transaction"), in_receipt("txId"), text_of(&json, "txId")];
    let names: Vec<_> = names.into_iter().flatten().map(|named| TxId::parse(&named)).collect();
    let is_foreign = names.iter().any(|named| *named != Some(tx_id));
    let refused = |reason, message| Verdict::Refused { reason, message, is_ours: !names.is_empty() && !is_foreign };
    let wait = wait_of(headers);
    match status {
        200..=299 if receipt.is_some_and(|receipt| receipt["success"] == false) => refused(reason, message),
        200..=299 if is_foreign => Verdict::Foreign,
        200..=299 => Verdict::Paid { response: shown(body) },
        402 if reason == Reason::SettlementPending.as_str() => Verdict::NotYet { reason, wait },
        // A payment of this session is in flight, possibly this one.
        409 if is_under_way(body) => Verdict::NotYet { reason, wait },
        408 | 425 | 429 | 500..=599 => Verdict::NotYet { reason, wait },
        _ => refused(reason, message),
    }
}

/// Returns whether a 409 means that the session is being paid at this moment.
pub(in crate::commands) fn is_under_way(body: &[u8]) -> bool {
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

/// Returns the reason that a response names.
pub(in crate::commands) fn word_of(body: &[u8]) -> Option<String> {
    let json: Value = serde_json::from_slice(body).ok()?;
    let word = |key: &str| json[key].as_str().filter(|text| !text.is_empty());
    word("reason").or_else(|| word("error")).or_else(|| word("status")).map(str::to_owned)
}

/// Parses a response as JSON, otherwise returns it as text.
pub(in crate::commands) fn shown(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_else(|_| String::from_utf8_lossy(body).into())
}

/// Reads a body, up to a limit.
pub(in crate::commands) async fn read(mut response: Response) -> Result<Vec<u8>, reqwest::Error> {
    let mut body = Vec::new();
    while body.len() < MAX_RESPONSE
        && let Some(chunk) = response.chunk().await?
    {
        body.extend_from_slice(&chunk);
    }
    body.truncate(MAX_RESPONSE);
    Ok(body)
}

/// Returns an error with its causes.
pub(in crate::commands) fn causes(error: &reqwest::Error) -> String {
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

    fn verdict_of(status: u16, receipt: &Value, body: &Value) -> Verdict {
        let headers = headers(receipt);
        judge(status, &headers, receipt_of(&headers).as_ref(), body.to_string().as_bytes(), OURS)
    }

    #[test]
    fn only_the_response_to_our_own_transaction_is_a_receipt() {
        let (ours, other) = (OURS.to_string(), TxId([2; 20]).to_string());
        let paid = |receipt: Value, body: Value| matches!(verdict_of(200, &receipt, &body), Verdict::Paid { .. });
        assert!(paid(json!({"success": true, "transaction": ours}), json!({"txId": ours})));
        assert!(paid(Value::Null, json!({"data": "what was paid for"})));
        assert_eq!(verdict_of(200, &json!({"success": true, "transaction": other}), &json!({})), Verdict::Foreign);
        assert_eq!(verdict_of(200, &Value::Null, &json!({"txId": other})), Verdict::Foreign);
        assert_eq!(verdict_of(200, &Value::Null, &json!({"txId": "nonsense"})), Verdict::Foreign);
    }

    #[test]
    fn an_undecided_payment_is_submitted_again_and_a_refused_one_is_not() {
        let failed = |reason: &str| json!({"success": false, "errorReason": reason, "transaction": ""});
        let is_not_yet = |verdict: Verdict| matches!(verdict, Verdict::NotYet { .. });
        assert!(is_not_yet(verdict_of(402, &failed("settlement_pending"), &json!({}))));
        assert!(is_not_yet(verdict_of(402, &Value::Null, &json!({"error": "settlement_pending"}))));
        assert!(is_not_yet(verdict_of(409, &Value::Null, &json!({"status": "processing"}))));
        assert!(
            is_not_yet(verdict_of(409, &failed("duplicate_settlement"), &json!({"status": "pending"}))),
            "another's"
        );
        for status in [408, 425, 429, 500, 502, 503, 504] {
            assert!(is_not_yet(verdict_of(status, &Value::Null, &json!({"reason": "x"}))), "{status}");
        }
        for (status, reason) in [(402, "insufficient_funds"), (409, "session_completed"), (410, "gone"), (302, "moved")]
        {
            let body = json!({"reason": reason, "status": "completed", "statusMessage": "why"});
            let verdict = verdict_of(status, &Value::Null, &body);
            let refused = Verdict::Refused { reason: reason.into(), message: Some("why".into()), is_ours: false };
            assert_eq!(verdict, refused, "{status}");
        }
        let verdict = verdict_of(402, &failed("insufficient_funds"), &json!({"error": "other"}));
        assert_eq!(verdict, Verdict::Refused { reason: "insufficient_funds".into(), message: None, is_ours: false });
    }

    #[test]
    fn a_refusal_shows_whether_it_is_about_our_transaction() {
        let duplicate = |tx: &str| {
            verdict_of(
                402,
                &json!({"success": false, "errorReason": "duplicate_settlement", "transaction": tx}),
                &json!({}),
            )
        };
        let is_ours = |verdict: Verdict| matches!(verdict, Verdict::Refused { is_ours: true, .. });
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
