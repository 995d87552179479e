//! The tools of a wallet: pay for URLs and for tools of other servers, receipts, status.

use std::{collections::BTreeMap, time::Duration};

use engine::money::Money;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::advice;
use crate::commands::{
    payer::{
        exchange::check_transport,
        failure::Failure,
        key::NoKey,
        request::{BadRequest, Request},
        target::Target,
        tool_call::ToolCall,
    },
    wallet::{self, Purchase, Wallet},
};

/// Lifetime of a signed payment.
const EXPIRES_IN: Duration = Duration::from_secs(60);

/// A wallet behind the tools. The key is read once: a file descriptor can be read only once.
#[derive(Debug)]
pub(super) struct WalletTools {
    pub(super) wallet: Wallet,
    nodes: Vec<String>,
    allow_http: bool,
}

/// Arguments of `pay_url`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PayUrl {
    url: String,
    #[serde(default)]
    confirm: bool,
    max_amount: Option<String>,
    method: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<String>,
    idempotency_key: Option<String>,
}

/// Arguments of `pay_tool`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PayTool {
    server: String,
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    #[serde(default)]
    confirm: bool,
    max_amount: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    idempotency_key: Option<String>,
}

/// A purchase that an agent asked for.
struct Order {
    target: Target,
    is_confirmed: bool,
    max_amount: Option<String>,
}

/// Arguments of `get_receipt`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GetReceipt {
    id: u64,
}

/// The content of a failed call.
pub(super) type Refused = Value;

impl WalletTools {
    /// Reads the key from a source that can be read only once.
    pub(super) fn new(mut wallet: Wallet, nodes: Vec<String>, allow_http: bool) -> Result<Self, NoKey> {
        wallet.keep_key()?;
        Ok(Self { wallet, nodes, allow_http })
    }

    /// Shows the price of a URL, or pays it.
    pub(super) async fn pay_url(&self, arguments: Value, progress: &(dyn Fn(&str) + Sync)) -> Result<Value, Refused> {
        let arguments: PayUrl = parse(arguments)?;
        let report = json!({ "url": arguments.url });
        self.order(arguments.order(), "pay_url", progress, report).await
    }

    /// Shows the price of a tool of another MCP server, or pays for a call of it.
    pub(super) async fn pay_tool(&self, arguments: Value, progress: &(dyn Fn(&str) + Sync)) -> Result<Value, Refused> {
        let arguments: PayTool = parse(arguments)?;
        let report = json!({ "server": arguments.server, "tool": arguments.tool });
        self.order(arguments.order(), "pay_tool", progress, report).await
    }

    async fn order(
        &self,
        order: Result<Order, Failure>,
        tool: &str,
        progress: &(dyn Fn(&str) + Sync),
        mut report: Value,
    ) -> Result<Value, Refused> {
        let paid = match order {
            Ok(order) => Box::pin(self.pay(&order, progress, &mut report)).await,
            Err(failure) => Err(failure),
        };
        if let Err(failure) = &paid {
            failure.describe(&mut report);
        }
        let (status, reason) =
            (report["status"].as_str().unwrap_or_default(), report["reason"].as_str().unwrap_or_default());
        report["nextStep"] = advice::after_payment(status, reason).replace("pay_url", tool).into();
        paid.map(|()| report.clone()).map_err(|_| report)
    }

    async fn pay(&self, order: &Order, progress: &(dyn Fn(&str) + Sync), report: &mut Value) -> Result<(), Failure> {
        check_transport(order.target.url(), self.allow_http)?;
        let max = order.max_amount.as_deref().map(Money::parse_ledger).transpose();
        let max = max.map_err(|error| BadRequest::Argument("maxAmount", error.to_string()))?;
        // The policy may have changed since the last call.
        let wallet = self.wallet.reopen()?;
        let purchase = Purchase {
            wallet: &wallet,
            target: &order.target,
            max,
            nodes: &self.nodes,
            key: None,
            expires_in: EXPIRES_IN,
            is_dry_run: !order.is_confirmed,
            progress,
        };
        purchase.run(report).await
    }

    /// Returns one payment with its receipt.
    pub(super) async fn get_receipt(&self, arguments: Value) -> Result<Value, Refused> {
        let GetReceipt { id } = parse(arguments)?;
        match self.wallet.store.entry(id).await {
            Ok(entry) => Ok(entry.receipt()),
            Err(error) => Err(refused(error.as_str(), &error.to_string(), "Call wallet_status to see the payments.")),
        }
    }

    /// Returns the limits and the open payments.
    pub(super) async fn wallet_status(&self) -> Result<Value, Refused> {
        let advice = "Show `message` to your user.";
        let wallet = self.wallet.reopen().map_err(|error| refused(error.as_str(), &error.to_string(), advice))?;
        wallet::describe(&wallet).await.map_err(|failure| refused("wallet_ledger_failed", &failure.to_string(), advice))
    }
}

impl PayUrl {
    fn order(self) -> Result<Order, Failure> {
        let mut request = Request::get(web_url("url", &self.url)?);
        if let Some(method) = &self.method {
            request = request.with_method(method)?;
        }
        let mut request = with_headers(request, &self.headers)?;
        if let Some(body) = self.body {
            request = request.with_body(body.into_bytes(), self.method.is_some());
        }
        if let Some(key) = &self.idempotency_key {
            request = request.with_idempotency_key(key)?;
        }
        Ok(Order { target: Target::Http(request), is_confirmed: self.confirm, max_amount: self.max_amount })
    }
}

impl PayTool {
    fn order(self) -> Result<Order, Failure> {
        let mut request = with_headers(Request::get(web_url("server", &self.server)?), &self.headers)?;
        if let Some(key) = &self.idempotency_key {
            request = request.with_idempotency_key(key)?;
        }
        let target = Target::Tool(ToolCall::new(request, self.tool, self.arguments));
        Ok(Order { target, is_confirmed: self.confirm, max_amount: self.max_amount })
    }
}

fn web_url(argument: &'static str, text: &str) -> Result<Url, BadRequest> {
    let url = Url::parse(text).map_err(|error| BadRequest::Argument(argument, error.to_string()))?;
    if matches!(url.scheme(), "http" | "https") && url.has_host() {
        return Ok(url);
    }
    Err(BadRequest::Argument(argument, "must begin with https:// or http://".to_owned()))
}

fn with_headers(mut request: Request, headers: &BTreeMap<String, String>) -> Result<Request, BadRequest> {
    for (name, value) in headers {
        request = request.with_header(&format!("{name}: {value}"))?;
    }
    Ok(request)
}

/// Reads the arguments of a tool.
pub(super) fn parse<T: for<'de> Deserialize<'de>>(arguments: Value) -> Result<T, Refused> {
    let parsed = serde_json::from_value(arguments);
    parsed.map_err(|error| {
        refused("bad_arguments", &error.to_string(), "Correct the arguments: the tool's schema lists them.")
    })
}

/// Returns the result of a failed call.
pub(super) fn refused(reason: &str, message: &str, next_step: &str) -> Refused {
    json!({ "status": "refused", "reason": reason, "message": message, "nextStep": next_step })
}
