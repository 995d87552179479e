//! Health checks, for people and load balancers.

use engine::time::Timestamp;
use http::StatusCode;
use proto::v1::{self, Health};
use serde::Serialize;
use warp::reply::Response;

use crate::facade::{
    http::{call::Call, refusal::Refusal, response, state::Facade},
    record::{self, Text},
};
use crate::version;

#[derive(Serialize)]
struct Status {
    status: &'static str,
}

/// Version of the program that responds: in a split deployment, of the facade.
#[derive(Serialize)]
struct Healthy {
    status: &'static str,
    version: &'static str,
    commit: &'static str,
    livemode: bool,
    network: &'static str,
}

/// Returns 200 while payments can be stored, otherwise 503.
pub(crate) async fn health(facade: &Facade, call: Call) -> Result<Response, Refusal> {
    let report = engine_health(facade, &call).await?;
    let (code, status) = match Health::try_from(report.health) {
        Ok(Health::Ok) => (StatusCode::OK, "ok"),
        Ok(Health::Unavailable) => return Err(proto::Reason::StoreUnavailable.into()),
        _ => (StatusCode::OK, "degraded"),
    };
    let body = Healthy {
        status,
        version: version::VERSION,
        commit: version::commit(),
        livemode: report.livemode,
        network: record::network_word(report.network()),
    };
    Ok(response::json(code, &body))
}

/// Liveness probe: returns 200.
pub(crate) async fn live() -> Result<Response, Refusal> {
    Ok(response::json(StatusCode::OK, &Status { status: "ok" }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ready<'a> {
    status: &'static str,
    ledger_reachable: bool,
    ledger_followed: bool,
    head_block: u32,
    irreversible_block: u32,
    scanned_block: u32,
    damaged_rows: u64,
    head_age_seconds: Option<u64>,
    nodes_needed: u32,
    nodes: Vec<NodeCondition<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeCondition<'a> {
    name: &'a str,
    condition: &'static str,
    head_block: Option<u32>,
}

/// Readiness probe: returns 200 when everything works, 503 when load balancers should stop routing.
pub(crate) async fn ready(facade: &Facade, call: Call) -> Result<Response, Refusal> {
    let report = engine_health(facade, &call).await?;
    let (code, status) = match Health::try_from(report.health) {
        Ok(Health::Ok) => (StatusCode::OK, "ok"),
        Ok(Health::Unavailable) => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "degraded"),
    };
    let body = Ready {
        status,
        ledger_reachable: report.ledger_reachable,
        ledger_followed: report.ledger_followed,
        head_block: report.head_block,
        irreversible_block: report.irreversible_block,
        scanned_block: report.scanned_block,
        damaged_rows: report.damaged_rows,
        head_age_seconds: report.head_age_seconds,
        nodes_needed: report.nodes_needed,
        nodes: report
            .nodes
            .iter()
            .map(|node| NodeCondition {
                name: &node.name,
                condition: node.condition().rest_name().unwrap_or_default(),
                head_block: node.head_block,
            })
            .collect(),
    };
    Ok(response::json(code, &body))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Nodes<'a> {
    data: Vec<Node<'a>>,
    needed: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Node<'a> {
    name: &'a str,
    condition: &'static str,
    head_block: Option<u32>,
    failures: u32,
    answered_at: Option<Text<Timestamp>>,
    rests_until: Option<Text<Timestamp>>,
}

impl<'a> Node<'a> {
    fn of(node: &'a v1::LedgerNode) -> Self {
        let at = |time: Option<proto::time::Timestamp>| time.map(|time| Text(record::instant(time)));
        Self {
            name: &node.name,
            condition: node.condition().rest_name().unwrap_or_default(),
            head_block: node.head_block,
            failures: node.failures,
            answered_at: at(node.last_response_at),
            rests_until: at(node.backoff_until),
        }
    }
}

/// Returns the Hive nodes with their health, for admins.
pub(crate) async fn nodes(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    let request = call.with_key()?.request(v1::ListNodesRequest {});
    call.no_parameters()?;
    let found = facade.engine.system().list_nodes(request).await?.into_inner();
    let body = Nodes { data: found.nodes.iter().map(Node::of).collect(), needed: found.needed };
    Ok(response::json(StatusCode::OK, &body))
}

async fn engine_health(facade: &Facade, call: &Call) -> Result<v1::GetHealthResponse, Refusal> {
    let request = call.caller.request(v1::GetHealthRequest {});
    let report = facade.engine.system().get_health(request).await?.into_inner();
    facade.network.set(report.network());
    Ok(report)
}
