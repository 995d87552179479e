//! The ledger nodes and the progress of the scanner, for admins.

use askama::Template;
use http::StatusCode;
use proto::v1;
use warp::reply::Response;

use crate::facade::{
    http::refusal::Refusal,
    pages::{
        dashboard::{
            overview,
            visit::{Frame, Visit, minute},
        },
        html,
    },
};

#[derive(Template)]
#[template(path = "dashboard/nodes.html")]
struct NodesPage<'v> {
    frame: Frame<'v>,
    word: &'static str,
    is_well: bool,
    facts: Vec<(&'static str, String)>,
    needed: u32,
    rows: Vec<Row>,
}

struct Row {
    name: String,
    word: String,
    shade: &'static str,
    head: String,
    failures: u32,
    last_response: String,
    backoff: String,
}

impl Row {
    fn of(node: &v1::LedgerNode) -> Self {
        let shade = match node.condition().rest_name().unwrap_or_default() {
            "ok" => "completed",
            "unknown" => "",
            _ => "bad",
        };
        Self {
            name: node.name.clone(),
            word: node.condition().rest_name().unwrap_or_default().replace('_', " "),
            shade,
            head: node.head_block.map(|num| num.to_string()).unwrap_or_default(),
            failures: node.failures,
            last_response: node.last_response_at.map(minute).unwrap_or_default(),
            backoff: node.backoff_until.map(minute).unwrap_or_default(),
        }
    }
}

/// Returns the page of the nodes and the scanner, for admins.
pub(super) async fn page(visit: &Visit<'_>) -> Result<Response, Refusal> {
    let system = visit.facade.engine.system();
    let health = system.clone().get_health(visit.request(v1::GetHealthRequest {})).await?.into_inner();
    let nodes = system.clone().list_nodes(visit.request(v1::ListNodesRequest {})).await?.into_inner();
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let behind = health.irreversible_block.saturating_sub(health.scanned_block);
    let ledger = overview::ledger(&health);
    let page = NodesPage {
        frame: visit.frame("nodes", Vec::new()),
        word: ledger.word,
        is_well: ledger.is_well,
        facts: vec![
            ("Node reachable", yes(health.ledger_reachable)),
            ("Payments can be created", yes(health.ledger_followed)),
            ("Head block", health.head_block.to_string()),
            ("Irreversible block", health.irreversible_block.to_string()),
            ("Scanned block", health.scanned_block.to_string()),
            ("Irreversible blocks to scan", behind.to_string()),
            ("Sessions in memory", health.active_sessions.to_string()),
        ],
        needed: nodes.needed,
        rows: nodes.nodes.iter().map(Row::of).collect(),
    };
    Ok(html::page(StatusCode::OK, page.render(), None))
}
