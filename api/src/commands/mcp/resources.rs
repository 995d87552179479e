//! Resources: receipts of the wallet, and the pages of the reference.

use engine::wallet::State;
use rmcp::{
    ErrorData,
    model::{Resource, ResourceContents, ResourceTemplate},
};

use crate::commands::wallet::Wallet;

/// The pages of the reference: name, title, text.
const PAGES: [(&str, &str, &str); 4] = [
    ("api", "REST API of the gateway", include_str!("../../../../docs/reference/api.md")),
    ("x402", "x402: statuses, headers, reasons", include_str!("../../../../docs/reference/x402.md")),
    ("wallet", "Agent wallet: policy, states, refusals", include_str!("../../../../docs/reference/wallet.md")),
    ("mcp", "MCP server: tools and resources", include_str!("../../../../docs/reference/mcp.md")),
];
const PAGE: &str = "hivetill://reference/";
const RECEIPT: &str = "hivetill://receipts/";
/// The number of listed receipts.
const LISTED: usize = 50;

/// Lists the pages and the newest receipts.
pub(super) async fn list(wallet: Option<&Wallet>) -> Result<Vec<Resource>, ErrorData> {
    let page = |(name, title, _): &(&str, &str, &str)| {
        Resource::new(format!("{PAGE}{name}"), *name).with_title(*title).with_mime_type("text/markdown")
    };
    let mut resources: Vec<Resource> = PAGES.iter().map(page).collect();
    if let Some(wallet) = wallet {
        let entries = wallet.store.newest(LISTED).await.map_err(|error| internal(&error))?;
        let paid = entries.iter().filter(|entry| matches!(entry.state, State::Paid | State::Spent));
        resources.extend(paid.map(|entry| {
            let entry = entry.describe();
            let title = format!("{} to {}", text(&entry["amount"]), text(&entry["payTo"]));
            let (uri, name) = (format!("{RECEIPT}{}", entry["id"]), format!("receipt-{}", entry["id"]));
            Resource::new(uri, name).with_title(title).with_mime_type("application/json")
        }));
    }
    Ok(resources)
}

/// Lists the templates of resources.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let receipt = ResourceTemplate::new(format!("{RECEIPT}{{id}}"), "receipt");
    vec![receipt.with_title("Receipt of a payment").with_mime_type("application/json")]
}

/// Reads a resource.
pub(super) async fn read(wallet: Option<&Wallet>, uri: &str) -> Result<ResourceContents, ErrorData> {
    if let Some(name) = uri.strip_prefix(PAGE)
        && let Some((_, _, page)) = PAGES.iter().find(|(known, ..)| *known == name)
    {
        return Ok(ResourceContents::text(*page, uri).with_mime_type("text/markdown"));
    }
    if let (Some(id), Some(wallet)) = (uri.strip_prefix(RECEIPT).and_then(|id| id.parse().ok()), wallet)
        && let Ok(entry) = wallet.store.entry(id).await
    {
        return Ok(ResourceContents::text(entry.receipt().to_string(), uri).with_mime_type("application/json"));
    }
    Err(ErrorData::resource_not_found(format!("there is no resource {uri}: list the resources"), None))
}

fn text(value: &serde_json::Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn internal(error: &dyn std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
