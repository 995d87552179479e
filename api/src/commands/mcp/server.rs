//! The server of one session: dispatches tools and resources, and sends progress while a payment confirms.

use std::sync::Arc;

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    merchant::Merchant,
    resources, tools,
    wallet_tools::{Refused, WalletTools, refused},
};

const INSTRUCTIONS: &str = "Pay URLs that respond with HTTP 402 and paid tools of other MCP servers from a wallet with a budget, and take payments as a merchant, on the Hive \
     ledger. Every failed call has `reason`, `message` and `nextStep`: follow `nextStep`. Amounts look like \"1.500 HBD\". Call \
     pay_url or pay_tool without confirm first: it shows the price and moves no money.";

/// The server. Clones share wallet and merchant.
#[derive(Clone)]
pub(super) struct Server(Arc<Shared>);

struct Shared {
    wallet: Option<WalletTools>,
    merchant: Option<Merchant>,
    tools: Vec<Tool>,
}

impl Server {
    pub(super) fn new(wallet: Option<WalletTools>, merchant: Option<Merchant>) -> Self {
        let of_wallet = wallet.as_ref().map(|_| tools::of_wallet()).unwrap_or_default();
        let of_merchant = merchant.as_ref().map(|_| tools::of_merchant()).unwrap_or_default();
        Self(Arc::new(Shared { wallet, merchant, tools: [of_wallet, of_merchant].concat() }))
    }

    async fn call(&self, name: &str, arguments: Value, progress: &(dyn Fn(&str) + Sync)) -> Result<Value, Refused> {
        match (name, &self.0.wallet, &self.0.merchant) {
            ("pay_url", Some(wallet), _) => wallet.pay_url(arguments, progress).await,
            ("pay_tool", Some(wallet), _) => wallet.pay_tool(arguments, progress).await,
            ("get_receipt", Some(wallet), _) => wallet.get_receipt(arguments).await,
            ("wallet_status", Some(wallet), _) => wallet.wallet_status().await,
            ("create_payment", _, Some(merchant)) => merchant.create_payment(arguments).await,
            ("get_payment", _, Some(merchant)) => merchant.get_payment(arguments).await,
            ("list_payments", _, Some(merchant)) => merchant.list_payments(arguments).await,
            ("refund_plan", _, Some(merchant)) => merchant.refund_plan(arguments).await,
            _ => Err(refused("no_such_tool", &format!("there is no tool {name}"), "List the tools.")),
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("hivetill", crate::version::VERSION);
        info.instructions = Some(INSTRUCTIONS.to_owned());
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.0.tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.0.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if self.get_tool(&request.name).is_none() {
            return Err(ErrorData::invalid_params(format!("there is no tool {}", request.name), None));
        }
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let (sender, progress) = mpsc::unbounded_channel::<String>();
        let notify = notify_progress(&context, progress);
        let report = move |text: &str| {
            // Without a progress token nothing receives it.
            let _ = sender.send(text.to_owned());
        };
        let call = async {
            let result = Box::pin(self.call(&request.name, arguments, &report)).await;
            drop(report);
            result
        };
        let (result, ()) = tokio::join!(call, notify);
        let result = match result {
            Ok(value) => CallToolResult::structured(value),
            Err(value) => CallToolResult::structured_error(value),
        };
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let wallet = self.0.wallet.as_ref().map(|tools| &tools.wallet);
        Ok(ListResourcesResult::with_all_items(resources::list(wallet).await?))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let wallet = self.0.wallet.as_ref().map(|tools| &tools.wallet);
        let contents = resources::read(wallet, &request.uri).await?;
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}

/// Sends progress messages if the client requested them, until the sender is dropped.
async fn notify_progress(context: &RequestContext<RoleServer>, mut progress: mpsc::UnboundedReceiver<String>) {
    let token = context.meta.get_progress_token();
    let mut steps = 0_u32;
    while let Some(text) = progress.recv().await {
        steps += 1;
        if let Some(token) = &token {
            let step = ProgressNotificationParam::new(token.clone(), f64::from(steps)).with_message(text);
            // A disconnected client does not receive the result either.
            let _ = context.peer.notify_progress(step).await;
        }
    }
}
