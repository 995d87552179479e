//! `hivetill mcp`: a Model Context Protocol server with which an agent pays from a wallet and a merchant accepts
//! payments.

mod advice;
mod http;
mod merchant;
mod resources;
mod server;
mod tools;
mod wallet_tools;

use std::{net::SocketAddr, path::PathBuf};

use reqwest::Url;
use rmcp::{serve_server, transport::stdio};
use serde_json::json;

use super::{
    failure::Failure,
    files, output,
    running::{address_of, listen},
    shutdown::{self, Shutdown},
    wallet::Wallet,
};
use crate::config::{Kind, environment_variables};
use merchant::Merchant;
use server::Server;
use wallet_tools::WalletTools;

/// The environment variable with the bearer token of the HTTP transport.
const TOKEN: &str = "HIVETILL_MCP_TOKEN";
/// The file in the wallet's directory with the token if the variable is not set.
const TOKEN_FILE: &str = "mcp-token";

/// Arguments of `hivetill mcp`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Pay from this wallet: tools pay_url, pay_tool, get_receipt and wallet_status
    #[arg(long, value_name = "DIR", env = "HIVETILL_WALLET")]
    wallet: Option<PathBuf>,
    /// URL of a gateway: with the merchant's API key in HIVETILL_API_KEY, tools create_payment, get_payment,
    /// list_payments and refund_plan
    #[arg(long, value_name = "URL", env = "HIVETILL_API")]
    api: Option<Url>,
    /// Ledger node; by default those of the wallet's policy
    #[arg(long = "node", value_name = "URL")]
    nodes: Vec<String>,
    /// Serve streamable HTTP at this IP address and port instead of standard input and output. Clients need the bearer
    /// token in HIVETILL_MCP_TOKEN or in the file mcp-token of the wallet's directory, which is created if it does not
    /// exist
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Host names that clients use for the HTTP transport, besides this host; required to listen on other addresses
    #[arg(long = "allowed-host", value_name = "NAME", requires = "listen")]
    allowed_hosts: Vec<String>,
    /// Allow payments over plain http to another host
    #[arg(long)]
    allow_http: bool,
}

/// Serves until the client disconnects, or until the process receives a termination signal.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let wallet =
        args.wallet.as_deref().map(Wallet::open).transpose().map_err(|error| Failure::Policy(error.to_string()))?;
    let key = variable("HIVETILL_API_KEY");
    let merchant = match (&args.api, key) {
        (Some(api), Some(key)) => Some(Merchant::new(api, &key)?),
        (Some(_), None) => {
            return Err(Failure::Other("--api needs the merchant's API key in HIVETILL_API_KEY".to_owned()));
        }
        (None, _) => None,
    };
    if wallet.is_none() && merchant.is_none() {
        return Err(Failure::Other("nothing to serve: set --wallet, --api, or both".to_owned()));
    }
    let token = args.listen.map(|_| token(args.wallet.as_deref())).transpose()?;
    let wallet = match wallet {
        Some(wallet) => {
            Some(WalletTools::new(wallet, args.nodes, args.allow_http).map_err(|e| Failure::Other(e.to_string()))?)
        }
        None => None,
    };
    let server = Server::new(wallet, merchant);
    let (Some(address), Some(token)) = (args.listen, token) else {
        let failed = |error: &dyn std::fmt::Display| Failure::Other(format!("the session failed: {error}"));
        let session = serve_server(server, stdio()).await.map_err(|error| failed(&error))?;
        session.waiting().await.map_err(|error| failed(&error))?;
        return Ok(());
    };
    if !address.ip().is_loopback() && args.allowed_hosts.is_empty() {
        let why =
            "--listen on a public address requires --allowed-host with each host name that clients use".to_owned();
        return Err(Failure::Other(why));
    }
    let listener = listen(address, "--listen").await?;
    let url = format!("http://{}{}", address_of(&listener)?, http::PATH);
    let stop = Shutdown::new();
    let served = tokio::spawn(http::serve(listener, server, token, args.allowed_hosts, stop.requested()));
    output::print(&format!("{}\n", json!({ "mcp": url })))?;
    shutdown::signal().await;
    stop.request();
    // The panic of a task has been logged.
    let _ = served.await;
    Ok(())
}

fn variable(name: &str) -> Option<String> {
    environment_variables()
        .into_iter()
        .find(|(known, _)| known == name)
        .map(|(_, value)| value)
        .filter(|value| !value.is_empty())
}

/// Returns the bearer token: from the variable, or from the file, which is created if it does not exist.
fn token(wallet: Option<&std::path::Path>) -> Result<String, Failure> {
    let token = match (variable(TOKEN), wallet) {
        (Some(token), _) => token,
        (None, Some(directory)) => files::secret(&directory.join(TOKEN_FILE))?,
        (None, None) => return Err(Failure::Other(format!("--listen requires a bearer token in {TOKEN}"))),
    };
    Kind::Token.check(&token).map_err(|why| Failure::Other(format!("{TOKEN} {why}")))?;
    Ok(token)
}
