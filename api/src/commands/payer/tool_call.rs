//! A call of a paid tool of an MCP server, as in the tool-result binding of the x402 transport for MCP
//! (`specs/transports-v2/mcp.md`): the payment travels in `_meta`, and the receipt comes back there.

use std::time::Duration;

use engine::{ledger::TxId, money::Currency, wallet::RequestKey, x402::Reason};
use reqwest::{Client, Url, header};
use rmcp::{
    model::{
        CallToolRequestParams, CallToolResponse, ClientConfig, ErrorCode, ErrorData, Implementation, JsonObject,
        RequestMetaObject,
    },
    serve_client,
    service::ServiceError,
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    exchange::{Response, choose},
    failure::Failure,
    quote::Quote,
    request::Request,
    submission::{MAX_RESPONSE, NoResponse, RETRY, Round, Verdict},
};

/// The method of a tool call.
pub(super) const METHOD: &str = "tools/call";
/// The key of the payment in the `_meta` of a call.
pub(in crate::commands) const PAYMENT: &str = "x402/payment";
/// The key of the settlement response in the `_meta` of a result.
const SETTLEMENT: &str = "x402/payment-response";
/// The wrapper of requirements that earlier versions of the transport used.
const WRAPPER: &str = "x402/error";
/// The code of a JSON-RPC error with requirements, which version 1 of the transport used.
const PAYMENT_REQUIRED: i32 = 402;
/// The reason of a tool's failure that names none.
const TOOL_FAILED: &str = "tool_failed";
/// Timeouts of opening a session, of the call, and of closing the session.
const OPEN_TIMEOUT: Duration = Duration::from_secs(20);
const CALL_TIMEOUT: Duration = Duration::from_secs(60);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of characters of a message of the tool.
const MAX_MESSAGE: usize = 500;

/// A call of a tool.
#[derive(Debug, Clone)]
pub(in crate::commands) struct ToolCall {
    /// The server's URL, with headers and the idempotency key.
    pub(super) request: Request,
    tool: String,
    arguments: JsonObject,
}

/// The reply of the server.
enum Reply {
    /// The result, as JSON.
    Result(Value),
    /// A protocol error.
    Error(ErrorData),
}

impl ToolCall {
    /// Creates a call of a tool of the server at the request's URL.
    pub(in crate::commands) const fn new(request: Request, tool: String, arguments: JsonObject) -> Self {
        Self { request, tool, arguments }
    }

    /// Returns the server's URL with the tool as the fragment.
    pub(super) fn url(&self) -> Url {
        let mut url = self.request.url.clone();
        url.set_fragment(Some(&self.tool));
        url
    }

    /// Returns the identity of the call: server, tool, arguments and idempotency key.
    pub(super) fn key(&self) -> RequestKey {
        let arguments = Value::Object(self.arguments.clone()).to_string();
        RequestKey::of(METHOD, self.url().as_str(), arguments.as_bytes(), self.request.idempotency_key())
    }

    /// Calls the tool without a payment. Of several offers returns the first in one of `currencies`, in their order.
    pub(super) async fn quote(&self, client: &Client, currencies: &[Currency]) -> Result<Response, Failure> {
        let lost = |lost: NoResponse| Failure::Server { url: self.request.url.clone(), why: lost.why };
        let reply = self.send(client, None).await.map_err(lost)?;
        if let Some(required) = required_of(&reply) {
            return choose(currencies, |currency| Quote::read_required(&required, currency));
        }
        match reply {
            Reply::Result(result) if result["isError"] != true => Ok(Response::Free(shown(&result))),
            Reply::Result(result) => {
                let message = message_of(&result).unwrap_or_default();
                Err(Failure::Tool { reason: TOOL_FAILED.to_owned(), message })
            }
            Reply::Error(error) => {
                Err(Failure::Tool { reason: reason_of_error(&error), message: shortened(&error.message) })
            }
        }
    }

    /// Calls the tool with a payment.
    pub(super) async fn attempt(&self, client: &Client, payment: &Value, tx_id: TxId) -> Result<Round, NoResponse> {
        let (verdict, receipt) = judge(&self.send(client, Some(payment)).await?, tx_id);
        Ok(Round { verdict, receipt, http_status: None })
    }

    /// Opens a session, calls the tool once, and closes the session.
    async fn send(&self, client: &Client, payment: Option<&Value>) -> Result<Reply, NoResponse> {
        let unsent = |why: String| NoResponse { was_sent: false, why };
        let is_forwarded = |name: &header::HeaderName| name != header::ACCEPT && *name != "idempotency-key";
        let headers = self.request.headers().iter().filter(|(name, _)| is_forwarded(name));
        let config = StreamableHttpClientTransportConfig::with_uri(self.request.url.as_str())
            .custom_headers(headers.map(|(name, value)| (name.clone(), value.clone())).collect())
            .max_json_response_size(MAX_RESPONSE)
            .max_sse_event_size(MAX_RESPONSE)
            // A repeated call is an attempt of its own.
            .reinit_on_expired_session(false);
        let transport = StreamableHttpClientTransport::with_client(client.clone(), config);
        let mut info = ClientConfig::default();
        info.client_info = Implementation::new("hivetill", crate::version::VERSION);
        let mut session = match timeout(OPEN_TIMEOUT, Box::pin(serve_client(info, transport))).await {
            Ok(Ok(session)) => session,
            Ok(Err(error)) => return Err(unsent(shortened(&error.to_string()))),
            Err(_) => return Err(unsent(format!("no session after {} s", OPEN_TIMEOUT.as_secs()))),
        };
        let called = timeout(CALL_TIMEOUT, Box::pin(session.call_tool_once(self.params(payment)))).await;
        // The reply is complete; a session that stays open ends at the server.
        let _ = session.close_with_timeout(CLOSE_TIMEOUT).await;
        let lost = |why: String| NoResponse { was_sent: true, why };
        match called {
            Ok(Ok(CallToolResponse::Complete(result))) => {
                serde_json::to_value(result).map(Reply::Result).map_err(|error| lost(error.to_string()))
            }
            Ok(Ok(_)) => {
                let message = "the tool requires input or a task, which payments do not support";
                Ok(Reply::Error(ErrorData::invalid_request(message, None)))
            }
            Ok(Err(ServiceError::McpError(error))) => Ok(Reply::Error(error)),
            Ok(Err(error)) => Err(lost(shortened(&error.to_string()))),
            Err(_) => Err(lost(format!("no result after {} s", CALL_TIMEOUT.as_secs()))),
        }
    }

    fn params(&self, payment: Option<&Value>) -> CallToolRequestParams {
        let mut params = CallToolRequestParams::new(self.tool.clone()).with_arguments(self.arguments.clone());
        params.meta = payment.map(|payment| {
            let mut meta = RequestMetaObject::default();
            meta.insert(PAYMENT.to_owned(), payment.clone());
            meta
        });
        params
    }
}

/// Returns the requirements of a reply: from the structured content, else from the text; direct, or in the wrapper of earlier
/// versions of the transport.
fn required_of(reply: &Reply) -> Option<Value> {
    let is_required = |json: &&Value| json["x402Version"].is_u64() && json["accepts"].is_array();
    let unwrapped = |json: &Value| [json, &json[WRAPPER]["data"]].into_iter().find(is_required).cloned();
    match reply {
        Reply::Result(result) if result["isError"] == true => {
            unwrapped(&result["structuredContent"]).or_else(|| unwrapped(&text_of(result)))
        }
        Reply::Error(ErrorData { code: ErrorCode(PAYMENT_REQUIRED), data: Some(data), .. }) => unwrapped(data),
        _ => None,
    }
}

/// Returns the first text of a result, parsed as JSON.
fn text_of(result: &Value) -> Value {
    let text = result["content"][0]["text"].as_str();
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Returns the meaning of a reply to a call with a payment, and its receipt.
fn judge(reply: &Reply, tx_id: TxId) -> (Verdict, Option<Value>) {
    let (required, wait) = (required_of(reply), RETRY);
    let of_required = |key: &str| required.as_ref().and_then(|required| word(required, key));
    let result = match reply {
        Reply::Result(result) => result,
        Reply::Error(error) if error.code == ErrorCode::INTERNAL_ERROR => {
            return (Verdict::NotYet { reason: reason_of_error(error), wait }, None);
        }
        Reply::Error(error) => {
            let reason = of_required("error").unwrap_or_else(|| reason_of_error(error));
            let message = Some(shortened(&error.message));
            return (Verdict::Refused { reason, message, is_ours: false }, None);
        }
    };
    let content = &result["structuredContent"];
    let receipt = [&result["_meta"][SETTLEMENT], &content[SETTLEMENT]].into_iter().find(|json| json.is_object());
    let in_receipt = |key: &str| receipt.and_then(|receipt| word(receipt, key));
    let names: Vec<_> = ["transaction", "txId"].into_iter().filter_map(in_receipt).collect();
    let is_foreign = names.iter().any(|name| TxId::parse(name) != Some(tx_id));
    let reason = in_receipt("errorReason").or_else(|| of_required("error")).or_else(|| word(content, "reason"));
    let reason = reason.unwrap_or_else(|| TOOL_FAILED.to_owned());
    let is_settled = receipt.is_some_and(|receipt| receipt["success"] == true);
    let verdict = if is_settled && is_foreign {
        Verdict::Foreign
    } else if result["isError"] == true && is_settled {
        Verdict::Undelivered { reason }
    } else if result["isError"] != true && (is_settled || receipt.is_none()) {
        Verdict::Paid { response: shown(result) }
    } else if is_undecided(&reason) {
        Verdict::NotYet { reason, wait }
    } else {
        let message = in_receipt("errorMessage").or_else(|| message_of(result));
        Verdict::Refused { reason, message, is_ours: !names.is_empty() && !is_foreign }
    };
    (verdict, receipt.cloned())
}

/// Returns whether the same payment may be submitted again.
fn is_undecided(reason: &str) -> bool {
    let undecided = [Reason::SettlementPending, Reason::UnexpectedSettleError, Reason::UnexpectedVerifyError];
    undecided.iter().any(|undecided| undecided.as_str() == reason) || reason == "upstream_unreachable"
}

/// Returns what the tool returned.
fn shown(result: &Value) -> Value {
    let mut shown = json!({ "content": result["content"] });
    if !result["structuredContent"].is_null() {
        shown["structuredContent"] = result["structuredContent"].clone();
    }
    shown
}

fn word(json: &Value, key: &str) -> Option<String> {
    json[key].as_str().filter(|text| !text.is_empty()).map(shortened)
}

/// Returns the message of a failed result: a member of its structured content, otherwise its text.
fn message_of(result: &Value) -> Option<String> {
    word(&result["structuredContent"], "message").or_else(|| word(&result["content"][0], "text"))
}

fn reason_of_error(error: &ErrorData) -> String {
    format!("mcp_error_{}", error.code.0)
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_MESSAGE).collect()
}

#[cfg(test)]
mod tests;
