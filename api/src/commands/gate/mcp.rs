//! The MCP endpoint of the gate: paid tools as in the tool-result binding of the x402 transport for MCP
//! (`specs/transports-v2/mcp.md`).

use std::{net::IpAddr, sync::Arc};

use engine::{
    hive::Pack,
    x402::{MAX_HEADER_BYTES, PaymentPayload, Reason},
};
use http::{Request, Response, request::Parts};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
        ListToolsResult, MetaObject, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool as ListedTool,
    },
    service::RequestContext,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    body::Body,
    claim::{Claim, Progress, Sale, Unsettled},
    delivery::{Delivery, Slot},
    offer::{self, Denial, Settled},
    proxy::Gate,
    routes::Price,
    state::Step,
    tools::Tool,
};
use crate::commands::payer::exchange;

/// The path of the endpoint.
pub(super) const PATH: &str = "/mcp";
/// The key of the payment in the `_meta` of a call.
const PAYMENT: &str = "x402/payment";
/// The key of the settlement response in the `_meta` of a result.
const SETTLEMENT: &str = "x402/payment-response";
/// Maximum number of bytes of a request.
const MAX_REQUEST_BYTES: usize = 1 << 20;
const INSTRUCTIONS: &str = "Tools with a price require an x402 payment on the Hive ledger: a call without a payment returns the \
     requirements, the payment belongs in _meta[\"x402/payment\"], the receipt is in _meta[\"x402/payment-response\"].";

/// The endpoint.
#[derive(Clone)]
pub(super) struct Endpoint(StreamableHttpService<Tools, LocalSessionManager>);

/// The origin of a call, and the place of the claim that the end of its response concludes.
#[derive(Clone)]
struct Origin {
    client_ip: IpAddr,
    slot: Slot,
}

impl Endpoint {
    /// Returns the endpoint of a gate with tools. It keeps no session: each request stands alone.
    pub(super) fn of(gate: &Arc<Gate>) -> Option<Self> {
        if gate.routes.tools.is_empty() {
            return None;
        }
        let listed = gate.routes.tools.iter().map(listed).collect();
        let tools = Tools { gate: Arc::clone(gate), listed };
        // Any host name and any origin: a caller has no rights besides its payment.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(MAX_REQUEST_BYTES);
        let sessions = Arc::new(LocalSessionManager::default());
        Some(Self(StreamableHttpService::new(move || Ok(tools.clone()), sessions, config)))
    }

    /// Serves one request.
    pub(super) async fn serve(&self, mut request: Request<Incoming>, client_ip: IpAddr) -> Response<Body> {
        let slot = Slot::default();
        request.extensions_mut().insert(Origin { client_ip, slot: slot.clone() });
        let response = self.0.handle(request).await;
        response.map(|body| Delivery::of_slot(body, slot).boxed())
    }
}

/// The server of one request.
#[derive(Clone)]
struct Tools {
    gate: Arc<Gate>,
    listed: Arc<[ListedTool]>,
}

fn listed(tool: &Tool) -> ListedTool {
    let price = tool.price.as_ref().map(|price| format!("Costs {} (x402).", price.amount));
    let texts = [Some(tool.description.clone()).filter(|text| !text.is_empty()), price];
    let description = texts.into_iter().flatten().collect::<Vec<_>>().join(" ");
    ListedTool::new(tool.name.clone(), description, tool.input_schema.clone())
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("hivetill-gate", crate::version::VERSION);
        info.instructions = Some(INSTRUCTIONS.to_owned());
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.listed.to_vec()))
    }

    fn get_tool(&self, name: &str) -> Option<ListedTool> {
        self.listed.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.gate.routes.tools.iter().find(|tool| tool.name == request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool {}", request.name), None));
        };
        let origin = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Origin>());
        let origin = origin.cloned().ok_or_else(|| ErrorData::internal_error("the request has no origin", None))?;
        let of_request = || request.meta.as_ref().and_then(|meta| meta.get(PAYMENT));
        let payment = context.meta.get(PAYMENT).or_else(of_request).cloned();
        let arguments = Value::Object(request.arguments.unwrap_or_default()).to_string();
        let call = Call { gate: &self.gate, tool, arguments, origin };
        Ok(Box::pin(call.run(payment)).await.into())
    }
}

/// One call of a tool.
struct Call<'a> {
    gate: &'a Arc<Gate>,
    tool: &'a Tool,
    arguments: String,
    origin: Origin,
}

/// The result of the upstream.
enum Executed {
    Served(CallToolResult),
    Failed { why: String, result: CallToolResult },
}

impl Call<'_> {
    async fn run(&self, payment: Option<Value>) -> CallToolResult {
        let Some(price) = &self.tool.price else {
            let (Executed::Served(result) | Executed::Failed { result, .. }) = self.execute(None).await;
            return result;
        };
        let url = self.tool.url();
        let signed = self.gate.signed_offer(price, &url);
        let Some(payment) = payment else { return payment_required(price, &url, None, signed.as_deref()) };
        let payload = match read(&payment) {
            Ok(payload) => payload,
            Err(denial) => return payment_required(price, &url, Some(&denial), signed.as_deref()),
        };
        let sale = Sale { price, url: &url, payload: &payload };
        self.pay(&sale).await.unwrap_or_else(|unsettled| refused(&unsettled, price, &url, signed.as_deref()))
    }

    async fn pay(&self, sale: &Sale<'_>) -> Result<CallToolResult, Unsettled> {
        let tx_id = sale.payload.transaction.id(Pack::Legacy);
        // A credit is for the same tool with the same arguments.
        let request = format!("tools/call {} {}", self.tool.name, hex::encode(Sha256::digest(&self.arguments)));
        let claim = Claim::take(self.gate, tx_id, request)?;
        let settled = match claim.progress()? {
            Progress::Credit(settled) => settled,
            Progress::Settling(key) => claim.settle(sale, key).await?,
            Progress::New if sale.price.settles_first => claim.settle(sale, exchange::new_nonce()).await?,
            Progress::New => {
                claim.verify(sale).await?;
                let result = match self.execute(None).await {
                    Executed::Served(result) => result,
                    // Failures are not charged.
                    Executed::Failed { result, .. } => return Ok(result),
                };
                let settled = claim.settle(sale, exchange::new_nonce()).await?;
                return Ok(self.deliver(result, claim, sale, &settled));
            }
        };
        match self.execute(Some((sale.price, &settled))).await {
            Executed::Served(result) => Ok(self.deliver(result, claim, sale, &settled)),
            Executed::Failed { why, result } => {
                claim.step(Step::Fail, Some(&why));
                Ok(with_settlement(result, offer::settlement(&settled, None)))
            }
        }
    }

    /// Adds the receipt; the end of the response marks the payment as served.
    fn deliver(&self, result: CallToolResult, claim: Claim, sale: &Sale<'_>, settled: &Settled) -> CallToolResult {
        let receipt = offer::settlement(settled, self.gate.receipt(sale.url, settled).as_deref());
        self.origin.slot.put(claim);
        with_settlement(result, receipt)
    }

    async fn execute(&self, paid: Option<(&Price, &Settled)>) -> Executed {
        let Self { gate, tool, arguments, origin } = self;
        match gate.upstream.call(&tool.path, arguments.clone(), origin.client_ip, paid).await {
            Ok((status, text)) if status.is_success() => {
                let object = serde_json::from_str::<JsonObject>(&text).ok();
                let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
                result.structured_content = object.map(Value::Object);
                Executed::Served(result)
            }
            Ok((status, text)) => Executed::Failed {
                why: format!("the upstream responded with {status}"),
                result: CallToolResult::error(vec![ContentBlock::text(text)]),
            },
            Err(why) => {
                tracing::warn!("the upstream failed: {why}");
                let message = "the server behind the gate does not respond; repeat the call later";
                let result = json!({ "reason": "upstream_unreachable", "message": message });
                Executed::Failed { why, result: CallToolResult::structured_error(result) }
            }
        }
    }
}

/// Reads the payment of a call.
fn read(payment: &Value) -> Result<PaymentPayload, Denial> {
    let text = payment.to_string();
    let denial = |reason, message| Denial { reason, message, payer: None, tx_id: None };
    if text.len() > MAX_HEADER_BYTES {
        return Err(denial(Reason::InvalidPayload, format!("the payment has more than {MAX_HEADER_BYTES} bytes")));
    }
    PaymentPayload::parse(text.as_bytes()).map_err(|refused| denial(refused.reason, refused.message))
}

/// Returns the requirements with their signed offer (JWS), if there is one; with a denial, also why the submitted payment was refused.
fn payment_required(price: &Price, url: &str, denial: Option<&Denial>, signed: Option<&str>) -> CallToolResult {
    let reason = denial.map_or("payment_required", |denial| denial.reason.as_str());
    let result = CallToolResult::structured_error(offer::required_v2(price, url, reason, signed));
    match denial {
        Some(denial) => with_settlement(result, offer::denied(denial)),
        None => result,
    }
}

/// Returns the result for a payment that is not settled. A payment whose outcome is open gets no new price, so that no client
/// pays twice.
fn refused(unsettled: &Unsettled, price: &Price, url: &str, signed: Option<&str>) -> CallToolResult {
    let denial = match unsettled {
        Unsettled::Denied(denial) | Unsettled::Used(denial) => {
            return payment_required(price, url, Some(denial), signed);
        }
        Unsettled::Busy(denial) | Unsettled::Pending(denial) | Unsettled::Unjudged(denial) => denial,
    };
    let result = json!({ "reason": denial.reason.as_str(), "message": denial.message, "txId": denial.tx_id });
    with_settlement(CallToolResult::structured_error(result), offer::denied(denial))
}

fn with_settlement(result: CallToolResult, settlement: Value) -> CallToolResult {
    let mut meta = MetaObject::new();
    meta.insert(SETTLEMENT.to_owned(), settlement);
    result.with_meta(Some(meta))
}

#[cfg(test)]
mod tests {
    use engine::{account::AccountName, money::Money};

    use super::*;

    fn price() -> Price {
        Price {
            amount: Money::parse_ledger("0.050 HBD").unwrap(),
            pay_to: AccountName::parse("shop.demo").unwrap(),
            description: "A report".to_owned(),
            mime_type: "application/json".to_owned(),
            settles_first: false,
            timeout_seconds: 60,
        }
    }

    fn denial(reason: Reason) -> Denial {
        Denial { reason, message: "why".to_owned(), payer: Some("alice".to_owned()), tx_id: Some("00ff".to_owned()) }
    }

    /// The errors of `specs/transports-v2/mcp.md`, and the outcomes that it does not know: those get no new price.
    #[test]
    fn a_payment_that_is_not_settled_returns_only_the_error() {
        let cases = [
            (Unsettled::Denied(denial(Reason::InsufficientFunds)), true),
            (Unsettled::Used(denial(Reason::DuplicateSettlement)), true),
            (Unsettled::Busy(denial(Reason::DuplicateSettlement)), false),
            (Unsettled::Pending(denial(Reason::SettlementPending)), false),
            (Unsettled::Unjudged(denial(Reason::UnexpectedSettleError)), false),
        ];
        for (unsettled, has_price) in cases {
            let result = serde_json::to_value(refused(&unsettled, &price(), "mcp://tool/report", None)).unwrap();
            let (content, meta) = (&result["structuredContent"], &result["_meta"][SETTLEMENT]);
            assert_eq!((&result["isError"], content["accepts"].is_array()), (&json!(true), has_price), "{result}");
            let texts = result["content"].as_array().unwrap();
            let text: Value = serde_json::from_str(texts[0]["text"].as_str().unwrap()).unwrap();
            assert_eq!((texts.len(), &text), (1, content), "both formats contain the same");
            assert_eq!((&meta["success"], &meta["transaction"]), (&json!(false), &json!("00ff")), "{result}");
            let reason = if has_price { &content["error"] } else { &content["reason"] };
            assert_eq!((reason, content["x402Version"] == 2), (&meta["errorReason"], has_price), "{result}");
        }
    }

    #[test]
    fn a_payment_that_is_too_large_is_refused_before_it_is_parsed() {
        let refused = read(&json!({ "x402Version": 2, "padding": "x".repeat(MAX_HEADER_BYTES) })).unwrap_err();
        assert!(refused.reason == Reason::InvalidPayload && refused.message.contains("bytes"), "{}", refused.message);
        assert_eq!(read(&json!("text")).unwrap_err().reason, Reason::InvalidPayload);
    }
}
