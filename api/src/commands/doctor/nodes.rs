//! The ledger's nodes and the clock, as `doctor` sees them: chain, hard fork, lag, and whether they tell the same.

use std::{sync::Arc, time::Duration};

use actors::{
    environment::{Clock as _, Node},
    hive_rpc::{HiveRpc, http_date},
    system::SystemClock,
};
use engine::{hive::ChainId, ledger::Block, time::Timestamp};
use serde_json::{Value, json};

use super::{CLOCK_WARNS, Findings, host};
use crate::{commands::clock, config::Config};

/// How old a head may be before a node is behind, and before nobody should use it.
const LAG_WARNS: Duration = Duration::from_secs(30);
const LAG_FAILS: Duration = Duration::from_secs(300);
/// Blocks that are held against those of other nodes.
const COMPARED: u32 = 20;
/// The hard forks this program knows: the packing of signed transactions changed with the first.
const KNOWN_HARDFORKS: std::ops::RangeInclusive<u32> = 26..=28;

/// What a node that answers told.
struct Seen {
    name: String,
    node: Arc<HiveRpc>,
    irreversible: u32,
    head_time: Timestamp,
    blocks: Vec<Block>,
}

/// Asks every node of the settings, then holds them and the clock against each other.
pub(super) async fn look(config: &Config, findings: &mut Findings) {
    let timeout = config.millis("ledger.request_timeout_ms");
    let mut seen = Vec::new();
    let mut dates = Vec::new();
    for url in config.list("ledger.nodes") {
        let what = format!("node {}", host(&url));
        if let Some(node) = one(config, &what, &url, timeout, findings).await {
            seen.push(node);
        }
        dates.extend(date_of(&url, timeout).await);
    }
    if seen.is_empty() {
        let remedy = "check the network of this host, or configure other nodes in ledger.nodes";
        findings.fail("nodes", "no node is usable: payments are not detected", remedy);
    }
    compare(&mut seen, findings).await;
    if config.text("network") == "mainnet" {
        let needed = actors::nodes_needed(config.list("ledger.nodes").len(), config.count("ledger.min_agreeing_nodes"));
        the_chain(&seen, needed, &dates, findings);
    }
    the_clock(config, &seen, &mut dates, findings);
}

/// Says how many nodes must agree, and what that means with few of them.
pub(super) fn majority(config: &Config, findings: &mut Findings) {
    let what = "majority";
    let nodes = config.list("ledger.nodes").len();
    let needed = actors::nodes_needed(nodes, config.count("ledger.min_agreeing_nodes"));
    let remedy = "configure three nodes of different operators in ledger.nodes";
    let rule = format!("{needed} of {nodes} nodes must agree on every fact that decides about money");
    match nodes {
        _ if needed > nodes => {
            findings.fail(what, format!("{rule}: this is never possible"), "lower ledger.min_agreeing_nodes");
        }
        0 | 1 => findings.warn(what, format!("{rule}: its responses are not verified"), remedy),
        2 => findings.warn(what, format!("{rule}: no payment completes while one of them fails"), remedy),
        _ => findings.well(what, rule),
    }
}

async fn one(config: &Config, what: &str, url: &str, timeout: Duration, findings: &mut Findings) -> Option<Seen> {
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
    let wanted = ChainId::parse(config.text("chain_id"));
    if wanted != Some(identity.chain_id) || identity.is_development != (config.text("network") == "dev") {
        let seen = format!("it serves another chain: {} ({})", identity.chain_id, identity.version);
        findings.fail(what, seen, "remove it from ledger.nodes; the engine refuses to start with it (exit code 6)");
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
    let told = format!("block {}, {} s old, {}", head.block_id.number(), lag.as_secs(), identity.version);
    match lag {
        lag if lag > LAG_FAILS => findings.fail(what, told, "it has stopped, or the clock of this host is ahead"),
        lag if lag > LAG_WARNS => findings.warn(what, told, "it is behind; if this persists, configure another node"),
        _ => findings.well(what, told),
    }
    hard_fork(what, url, timeout, findings).await;
    let name = what.to_owned();
    Some(Seen { name, node, irreversible: head.irreversible_num, head_time: head.time, blocks: Vec::new() })
}

async fn hard_fork(what: &str, url: &str, timeout: Duration, findings: &mut Findings) {
    let version = call(url, timeout, "database_api.get_hardfork_properties").await;
    let version = version.as_ref().and_then(|result| result["current_hardfork_version"].as_str());
    let number = version.and_then(|version| version.split('.').nth(1)?.parse::<u32>().ok());
    match number {
        None => {
            findings.warn(
                what,
                "it does not report its hard fork",
                "compare the hard fork of the chain with docs/how-to/operate.md",
            );
        }
        Some(number) if number > *KNOWN_HARDFORKS.end() => findings.warn(
            what,
            format!("the chain is at hard fork {number}, which this version does not know"),
            "check for a newer version of Hivetill, and what the hard fork changes",
        ),
        Some(number) if number < *KNOWN_HARDFORKS.start() => {
            findings.fail(what, format!("it is at hard fork {number}"), "it is outdated: configure another node");
        }
        Some(number) => findings.well(what, format!("hard fork {number}")),
    }
}

/// Holds the newest blocks that every node calls irreversible against each other. With two that differ nobody can say
/// which of them lies.
async fn compare(seen: &mut [Seen], findings: &mut Findings) {
    let Some(last) = seen.iter().map(|node| node.irreversible).min().filter(|last| *last > 0) else { return };
    if seen.len() < 2 {
        return;
    }
    let first = last.saturating_sub(COMPARED - 1).max(1);
    for node in seen.iter_mut() {
        match node.node.blocks(first, last - first + 1).await {
            Ok(blocks) => node.blocks = blocks,
            Err(error) => findings.fail(&node.name, format!("it returns no blocks: {error}"), "configure another node"),
        }
    }
    let told: Vec<&Seen> = seen.iter().filter(|node| !node.blocks.is_empty()).collect();
    let like = |node: &Seen| told.iter().filter(|other| other.blocks == node.blocks).count();
    let most = told.iter().map(|node| like(node)).max().unwrap_or(0);
    for node in &told {
        let agree = like(node);
        if agree == told.len() {
            continue;
        }
        let others = told.iter().filter(|other| other.blocks != node.blocks);
        let first = others.flat_map(|other| other.blocks.iter().zip(&node.blocks)).find(|(theirs, its)| theirs != its);
        let number = first.map_or(last, |(_, its)| its.number());
        if agree < most {
            let seen = format!("its block {number} differs from that of {} of {} nodes", most, told.len());
            findings.fail(&node.name, seen, "remove it from ledger.nodes");
        } else if most * 2 <= told.len() {
            let seen = format!("it and another node differ in block {number}; with two nodes there is no majority");
            findings.fail(&node.name, seen, "configure a third node in ledger.nodes: two of three decide");
        }
    }
    if most == told.len() && told.len() > 1 {
        findings.well("nodes", format!("{} nodes agree on blocks {first} to {last}", told.len()));
    }
}

/// Says whether the chain goes on: by the heads of a majority against each other and against the time of the nodes' own
/// web servers, so that a wrong clock of ours is not taken for a chain that stands still.
fn the_chain(seen: &[Seen], needed: usize, dates: &[(Timestamp, Timestamp)], findings: &mut Findings) {
    let what = "chain";
    let mut times: Vec<Timestamp> = seen.iter().map(|node| node.head_time).collect();
    times.sort_unstable_by(|a, b| b.cmp(a));
    let Some(head) = needed.checked_sub(1).and_then(|at| times.get(at)) else {
        let told = format!("{} nodes are usable and {needed} must agree", seen.len());
        return findings.fail(what, told, "no payment completes until enough nodes respond");
    };
    let mut theirs: Vec<Timestamp> = dates.iter().map(|(theirs, _)| *theirs).collect();
    theirs.sort_unstable();
    let now = theirs.get(theirs.len() / 2).copied().unwrap_or_else(|| SystemClock.now());
    let age = now.since(*head);
    let seconds = age.as_secs();
    match age {
        age if age > LAG_FAILS => findings.fail(
            what,
            format!("it is stalled: the head block of a majority is {seconds} s old"),
            "no payment completes until it continues; check a block explorer, and other nodes",
        ),
        age if age > LAG_WARNS => findings.warn(
            what,
            format!("the head block of a majority is {seconds} s old"),
            "if this persists, check a block explorer, and other nodes",
        ),
        _ => findings.well(what, "it produces blocks"),
    }
}

/// Holds our clock against the nodes' heads, and against what their web servers say.
fn the_clock(config: &Config, seen: &[Seen], dates: &mut [(Timestamp, Timestamp)], findings: &mut Findings) {
    let what = "clock";
    let remedy = "set it by NTP (chrony, systemd-timesyncd): sessions expire and webhooks are signed by it";
    let now = SystemClock.now();
    let heads: Vec<Timestamp> = seen.iter().map(|node| node.head_time).collect();
    if config.text("network") == "mainnet"
        && let Some(behind) = clock::behind(now, &heads)
    {
        return findings.fail(what, format!("it is at least {} s behind the ledger", behind.as_secs()), remedy);
    }
    // The middle one: a single server with a wrong clock decides nothing.
    dates.sort_by_key(|(theirs, ours)| theirs.since(*ours).as_millis().cmp(&ours.since(*theirs).as_millis()));
    let Some((theirs, ours)) = dates.get(dates.len() / 2).copied() else {
        return findings.warn(what, "no node reported a time to compare with", "check timedatectl");
    };
    let off = theirs.since(ours).max(ours.since(theirs));
    // A date in a header is cut to the second.
    if off > clock::ALLOWANCE {
        findings.fail(what, format!("it is off by {} s", off.as_secs()), remedy);
    } else if off > CLOCK_WARNS {
        findings.warn(what, format!("it is off by {} s", off.as_secs()), remedy);
    } else {
        findings.well(what, "it is correct");
    }
}

async fn call(url: &str, timeout: Duration, method: &str) -> Option<Value> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}});
    let answer = client(timeout)?.post(url).json(&body).send().await.ok()?;
    let mut answer: Value = answer.json().await.ok()?;
    Some(answer["result"].take())
}

/// Returns the time a node's web server tells, and ours.
async fn date_of(url: &str, timeout: Duration) -> Option<(Timestamp, Timestamp)> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "database_api.get_version", "params": {}});
    let answer = client(timeout)?.post(url).json(&body).send().await.ok()?;
    let date = answer.headers().get(http::header::DATE)?.to_str().ok()?;
    Some((http_date(date)?, SystemClock.now()))
}

fn client(timeout: Duration) -> Option<reqwest::Client> {
    reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(timeout).build().ok()
}
