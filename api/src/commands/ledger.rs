//! `hivetill ledger`: the development ledger alone, a Hive node on this host without real money.

use std::{io::Write, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use actors::{
    environment::{Clock, Entropy},
    system::{SystemClock, SystemEntropy},
};
use engine::hive::Role;
use serde_json::json;
use simulations::{
    devnet::{Devnet, Options, StartError},
    ledger::Genesis,
};
use tokio::signal::unix::{SignalKind, signal};

/// Arguments of `hivetill ledger`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// IP address and port of the node; port 0 takes a free port. Repeat it for several nodes of the same chain, whose
    /// faults can be injected separately
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8091")]
    pub listen: Vec<SocketAddr>,
    /// IP address and port of the control methods: blocks on demand, forks, lag, wrong responses
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8092")]
    pub control_listen: SocketAddr,
    /// File for the chain and its keys, readable only by its owner
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Time between two blocks, such as `3s` or `200ms`
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = block_interval)]
    pub block_interval: Duration,
    /// Number of blocks between the head and the last irreversible block
    #[arg(long, value_name = "BLOCKS", default_value_t = 2)]
    pub irreversibility_lag: u32,
    /// Produce blocks only through the control methods
    #[arg(long)]
    pub no_auto_produce: bool,
    /// Print one line of JSON instead of the screen
    #[arg(long)]
    pub json: bool,
}

/// The failure of the development ledger.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It cannot start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Its state file cannot be written.
    #[error("the state file cannot be written; see the log")]
    State,
    /// The terminal is closed, or signal handlers cannot be installed.
    #[error("cannot use the terminal: {0}")]
    Terminal(#[from] std::io::Error),
}

/// Runs the development ledger until it is interrupted.
///
/// # Errors
/// [`Failure`].
pub async fn run(args: Args) -> Result<(), Failure> {
    let entropy: &dyn Entropy = &SystemEntropy;
    let genesis = Genesis::demo(entropy.bytes(), SystemClock.now());
    let options = Options {
        nodes: args.listen,
        control: Some(args.control_listen),
        block_interval: args.block_interval,
        irreversibility_lag: args.irreversibility_lag,
        auto_produce: !args.no_auto_produce,
        state: args.state,
        ..Options::new(genesis, Arc::new(|| SystemClock.now()))
    };
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut devnet = Devnet::start(options).await?;
    let text = if args.json { one_line(&devnet) } else { screen(&devnet) };
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()?;
    drop(out);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        () = devnet.ended() => return Err(Failure::State),
    }
    devnet.shutdown().await;
    Ok(())
}

fn one_line(devnet: &Devnet) -> String {
    let nodes: Vec<String> = (0..devnet.rpc_addrs.len()).map(|node| devnet.rpc_url(node)).collect();
    let accounts: Vec<_> = accounts(devnet).map(|(name, key)| json!({ "name": name, "activeKey": key })).collect();
    json!({
        "ledger": nodes.first(),
        "nodes": nodes,
        "control": devnet.control_addr.map(|address| format!("http://{address}")),
        "chainId": devnet.genesis().chain_id.to_string(),
        "accounts": accounts,
    })
    .to_string()
}

fn screen(devnet: &Devnet) -> String {
    let mut text = String::from("Hive development ledger, no real money\n\n");
    for node in 0..devnet.rpc_addrs.len() {
        text += &format!("  node     {}\n", devnet.rpc_url(node));
    }
    if let Some(control) = devnet.control_addr {
        text += &format!("  control  http://{control}\n");
    }
    text += &format!("  chain    {}\n\n  accounts and their active keys\n", devnet.genesis().chain_id);
    for (name, key) in accounts(devnet) {
        text += &format!("  {name:<14} {key}\n");
    }
    text
}

/// Returns the genesis accounts and their active keys; `control.accounts` lists all accounts.
fn accounts(devnet: &Devnet) -> impl Iterator<Item = (&str, String)> {
    let genesis = devnet.genesis();
    genesis.accounts.iter().map(|account| {
        let name = account.name.as_str();
        (name, genesis.key(name, Role::Active).to_wif().to_string())
    })
}

/// Parses a block interval such as `3s` or `200ms`.
fn block_interval(text: &str) -> Result<Duration, String> {
    let (number, unit): (&str, fn(u64) -> Duration) = match text.strip_suffix("ms") {
        Some(number) => (number, Duration::from_millis),
        None => (text.strip_suffix('s').unwrap_or(text), Duration::from_secs),
    };
    let time = number.parse().map(unit).map_err(|_| "must be a time such as `3s` or `200ms`".to_owned())?;
    if time.is_zero() || time > Duration::from_secs(3_600) {
        return Err("must be between 1ms and 3600s".to_owned());
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_intervals_are_seconds_or_milliseconds() {
        assert_eq!(block_interval("3s"), Ok(Duration::from_secs(3)));
        assert_eq!(block_interval("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(block_interval("1"), Ok(Duration::from_secs(1)));
        for text in ["", "0s", "ms", "-1s", "1.5s", "3m", "3601s"] {
            assert!(block_interval(text).is_err(), "{text:?}");
        }
    }
}
