//! Checks of the ledger nodes and the system clock: chain id, hard fork, lag, agreement of the nodes.

use std::{sync::Arc, time::Duration};

use actors::{
    environment::{Clock as _, Node},
    hive_rpc::{HiveRpc, http_date},
    system::SystemClock,
};
use engine::{hive::ChainId, ledger::Block, time::Timestamp};
use serde_json::{Value, json};

use super::{CLOCK_WARN, Findings, host};
use crate::{commands::clock, config::Config};

/// Age of a head block above which the check is a warning.
const LAG_WARN: Duration = Duration::from_secs(30);
/// Age of a head block above which the check fails.
const LAG_FAIL: Duration = Duration::from_secs(300);
/// Number of blocks that are compared between nodes.
const COMPARED_BLOCKS: u32 = 20;
/// Hard forks that this program supports: the serialization of signed transactions changed with the first.
const KNOWN_HARDFORKS: std::ops::RangeInclusive<u32> = 26..=28;

/// A node that responds, and its state.
struct NodeReport {
    name: String,
    node: Arc<HiveRpc>,
    irreversible: u32,
    head_time: Timestamp,
    blocks: Vec<Block>,
}

/// The time of a node's web server, and the time of the system clock when it was received.
struct ServerDate {
    server: Timestamp,
    local: Timestamp,
}

/// Checks every configured node, then compares the nodes with each other and with the system clock.
pub(super) async fn check(config: &Config, findings: &mut Findings) {
    let timeout = config.millis("ledger.request_timeout_ms");
    let mut reports = Vec::new();
    let mut dates = Vec::new();
    for url in config.list("ledger.nodes") {
        let what = format!("node {}", host(&url));
        if let Some(report) = check_node(config, &what, &url, timeout, findings).await {
            reports.push(report);
        }
        dates.extend(server_date(&url, timeout).await);
    }
    if reports.is_empty() {
        let remedy = "check the network of this host, or configure other nodes in ledger.nodes";
        findings.fail("nodes", "no node is usable: payments are not detected", remedy);
    }
    compare(&mut reports, findings).await;
    if config.text("network") == "mainnet" {
        let needed = actors::nodes_needed(config.list("ledger.nodes").len(), config.count("ledger.min_agreeing_nodes"));
        check_chain(&reports, needed, &dates, findings);
    }
    check_clock(config, &reports, &mut dates, findings);
}

/// Checks the number of nodes that must agree.
pub(super) fn majority(config: &Config, findings: &mut Findings) {
    let what = "majority";
    let nodes = config.list("ledger.nodes").len();
    let needed = actors::nodes_needed(nodes, config.count("ledger.min_agreeing_nodes"));
    let remedy = "configure three nodes of different operators in ledger.nodes";
    let rule = format!("{needed} of {nodes} nodes must agree on every fact that affects money");
    match nodes {
        _ if needed > nodes => {
            findings.fail(what, format!("{rule}, which is impossible"), "lower ledger.min_agreeing_nodes");
        }
        0 | 1 => findings.warn(what, format!("{rule}: responses are not verified"), remedy),
        2 => findings.warn(what, format!("{rule}: no payment completes while one node fails"), remedy),
        _ => findings.ok(what, rule),
    }
}

/// Checks a node. Returns its state if it is usable.
async fn check_node(
    config: &Config,
    what: &str,
    url: &str,
    timeout: Duration,
    findings: &mut Findings,
) -> Option<NodeReport> {
    let node = match HiveRpc::new(url, timeout) {
        Ok(node) => Arc::new(node),
        Err(error) => {
            findings.fail(what, error.without_url().to_string(), "check the TLS installation of this host");
            return None;
        }
    };
    let identity = match node.identity().await {
        Ok(identity) => identity,
        Err(error) => {
            findings.fail(what, error.to_string(), "if this persists, configure another node in ledger.nodes");
            return None;
        }
    };
    let chain_id = ChainId::parse(config.text("chain_id"));
    if chain_id != Some(identity.chain_id) || identity.is_development != (config.text("network") == "dev") {
        let message = format!("serves another chain: {} ({})", identity.chain_id, identity.version);
        findings.fail(what, message, "remove it from ledger.nodes; the engine refuses to start with it (exit code 6)");
        return None;
    }
    let head = match node.head().await {
        Ok(head) => head,
        Err(error) => {
            findings.fail(what, error.to_string(), "if this persists, configure another node in ledger.nodes");
            return None;
        }
    };
    let lag = SystemClock.now().since(head.time);
    let state = format!("block {}, {} s old, {}", head.block_id.number(), lag.as_secs(), identity.version);
    match lag {
        lag if lag > LAG_FAIL => {
            findings.fail(what, state, "the node has stopped, or the clock of this host is ahead");
        }
        lag if lag > LAG_WARN => {
            findings.warn(what, state, "the node is behind; if this persists, configure another node");
        }
        _ => findings.ok(what, state),
    }
    check_hard_fork(what, url, timeout, findings).await;
    let name = what.to_owned();
    Some(NodeReport { name, node, irreversible: head.irreversible_num, head_time: head.time, blocks: Vec::new() })
}

/// Checks that this program supports the hard fork of a node.
async fn check_hard_fork(what: &str, url: &str, timeout: Duration, findings: &mut Findings) {
    let version = call(url, timeout, "database_api.get_hardfork_properties").await;
    let version = version.as_ref().and_then(|result| result["current_hardfork_version"].as_str());
    let number = version.and_then(|version| version.split('.').nth(1)?.parse::<u32>().ok());
    match number {
        None => {
            findings.warn(
                what,
                "the node does not report its hard fork",
                "compare the hard fork of the chain with docs/how-to/operate.md",
            );
        }
        Some(number) if number > *KNOWN_HARDFORKS.end() => findings.warn(
            what,
            format!("the chain is at hard fork {number}, which this version does not support"),
            "check for a newer version of Hivetill, and what the hard fork changes",
        ),
        Some(number) if number < *KNOWN_HARDFORKS.start() => {
            findings.fail(what, format!("outdated: hard fork {number}"), "configure another node");
        }
        Some(number) => findings.ok(what, format!("hard fork {number}")),
    }
}

/// Compares the latest blocks that are irreversible on all nodes. If two nodes differ, a third is needed to determine which
/// one is wrong.
async fn compare(reports: &mut [NodeReport], findings: &mut Findings) {
    let Some(last) = reports.iter().map(|report| report.irreversible).min().filter(|last| *last > 0) else { return };
    if reports.len() < 2 {
        return;
    }
    let first = last.saturating_sub(COMPARED_BLOCKS - 1).max(1);
    for report in reports.iter_mut() {
        match report.node.blocks(first, last - first + 1).await {
            Ok(blocks) => report.blocks = blocks,
            Err(error) => findings.fail(&report.name, format!("returns no blocks: {error}"), "configure another node"),
        }
    }
    let reports: Vec<&NodeReport> = reports.iter().filter(|report| !report.blocks.is_empty()).collect();
    let agreeing = |report: &NodeReport| reports.iter().filter(|other| other.blocks == report.blocks).count();
    let largest = reports.iter().map(|report| agreeing(report)).max().unwrap_or(0);
    for report in &reports {
        let count = agreeing(report);
        if count == reports.len() {
            continue;
        }
        let others = reports.iter().filter(|other| other.blocks != report.blocks);
        let mut pairs = others.flat_map(|other| other.blocks.iter().zip(&report.blocks));
        let number = pairs.find(|(other, own)| other != own).map_or(last, |(_, own)| own.number());
        if count < largest {
            let message = format!("its block {number} differs from that of {largest} of {} nodes", reports.len());
            findings.fail(&report.name, message, "remove it from ledger.nodes");
        } else if largest * 2 <= reports.len() {
            let message = format!("it and another node differ in block {number}; with two nodes there is no majority");
            findings.fail(&report.name, message, "configure a third node in ledger.nodes");
        }
    }
    if largest == reports.len() && reports.len() > 1 {
        findings.ok("nodes", format!("{} nodes agree on blocks {first} to {last}", reports.len()));
    }
}

/// Checks that the chain produces blocks. The head block of a majority is compared with the time of the nodes' web servers,
/// so that a wrong system clock is not reported as a stalled chain.
fn check_chain(reports: &[NodeReport], needed: usize, dates: &[ServerDate], findings: &mut Findings) {
    let what = "chain";
    let mut times: Vec<Timestamp> = reports.iter().map(|report| report.head_time).collect();
    times.sort_unstable_by(|a, b| b.cmp(a));
    let Some(head) = needed.checked_sub(1).and_then(|at| times.get(at)) else {
        let message = format!("{} nodes are usable, but {needed} must agree", reports.len());
        return findings.fail(what, message, "no payment completes until enough nodes respond");
    };
    let mut server_times: Vec<Timestamp> = dates.iter().map(|date| date.server).collect();
    server_times.sort_unstable();
    let now = server_times.get(server_times.len() / 2).copied().unwrap_or_else(|| SystemClock.now());
    let age = now.since(*head);
    let seconds = age.as_secs();
    match age {
        age if age > LAG_FAIL => findings.fail(
            what,
            format!("stalled: the head block of a majority is {seconds} s old"),
            "no payment completes until it continues; check a block explorer, and other nodes",
        ),
        age if age > LAG_WARN => findings.warn(
            what,
            format!("the head block of a majority is {seconds} s old"),
            "if this persists, check a block explorer, and other nodes",
        ),
        _ => findings.ok(what, "producing blocks"),
    }
}

/// Compares the system clock with the head blocks and with the time of the nodes' web servers.
fn check_clock(config: &Config, reports: &[NodeReport], dates: &mut [ServerDate], findings: &mut Findings) {
    let what = "clock";
    let remedy =
        "synchronize it by NTP (chrony, systemd-timesyncd): session expiry and webhook signatures depend on it";
    let now = SystemClock.now();
    let heads: Vec<Timestamp> = reports.iter().map(|report| report.head_time).collect();
    if config.text("network") == "mainnet"
        && let Some(behind) = clock::behind(now, &heads)
    {
        return findings.fail(what, format!("at least {} s behind the ledger", behind.as_secs()), remedy);
    }
    // The median, because a single server may have a wrong clock.
    dates.sort_by_key(|date| date.server.since(date.local).as_millis().cmp(&date.local.since(date.server).as_millis()));
    let Some(ServerDate { server, local }) = dates.get(dates.len() / 2) else {
        return findings.warn(what, "no node reported a time to compare with", "check timedatectl");
    };
    // The date of a header is truncated to the second.
    let error = server.since(*local).max(local.since(*server));
    if error > clock::MAX_ERROR {
        findings.fail(what, format!("wrong by {} s", error.as_secs()), remedy);
    } else if error > CLOCK_WARN {
        findings.warn(what, format!("wrong by {} s", error.as_secs()), remedy);
    } else {
        findings.ok(what, "correct");
    }
}

/// Calls a JSON-RPC method without parameters; `None` on any error.
async fn call(url: &str, timeout: Duration, method: &str) -> Option<Value> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}});
    let response = client(timeout)?.post(url).json(&body).send().await.ok()?;
    let mut response: Value = response.json().await.ok()?;
    Some(response["result"].take())
}

/// Returns the time of a node's web server, from the header `Date`.
async fn server_date(url: &str, timeout: Duration) -> Option<ServerDate> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "database_api.get_version", "params": {}});
    let response = client(timeout)?.post(url).json(&body).send().await.ok()?;
    let date = response.headers().get(http::header::DATE)?.to_str().ok()?;
    Some(ServerDate { server: http_date(date)?, local: SystemClock.now() })
}

fn client(timeout: Duration) -> Option<reqwest::Client> {
    reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(timeout).build().ok()
}
