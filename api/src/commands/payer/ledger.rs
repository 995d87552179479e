//! Ledger access for payers: nodes, the head block, the payer's account, the status of a transaction.

use std::time::Duration;

use actors::{
    Presence,
    environment::{Account, Node as _, NodeError},
    hive_rpc::HiveRpc,
};
use engine::{account::AccountName, hive::ChainId, ledger::TxId, time::Timestamp};
use reqwest::Url;

use super::{account::AccountError, failure::Failure};
use crate::{
    commands::signing::Anchor,
    config::{Config, Layers, environment_variables},
};

/// Timeout of one call to a ledger node.
const NODE_TIMEOUT: Duration = Duration::from_secs(10);
/// The ledger node of `hivetill dev`.
const DEV_NODE: &str = "http://127.0.0.1:8091";

/// The nodes to query, and the chain that they must serve.
#[derive(Debug, Clone)]
pub(in crate::commands) struct Ledger {
    nodes: Vec<String>,
    pub(in crate::commands) chain: ChainId,
}

/// A responding node, the head block, and the payer's account.
pub(in crate::commands) struct Reached {
    pub(in crate::commands) node: HiveRpc,
    pub(in crate::commands) anchor: Anchor,
    pub(in crate::commands) account: Account,
}

impl Ledger {
    /// Returns the given nodes; without any those of the setting `ledger.nodes`, and for a URL on this host the ledger
    /// of `hivetill dev`.
    pub(in crate::commands) fn new(named: &[String], url: Option<&Url>) -> Result<Self, Failure> {
        let is_dev = url.is_some_and(is_here);
        let own = if is_dev { vec![("ledger.nodes", DEV_NODE.to_owned())] } else { Vec::new() };
        let environment = environment_variables();
        let config = Config::load(Layers { command: own, command_name: "pay", environment, ..Layers::default() })?;
        let nodes = if named.is_empty() { config.list("ledger.nodes") } else { named.to_vec() };
        Ok(Self { nodes, chain: config.engine().chain_id })
    }

    /// Returns the first node that responds, its head, and the payer's account.
    pub(in crate::commands) async fn reach(&self, payer: AccountName) -> Result<Reached, Failure> {
        let mut last = NodeError::Unreachable("no node is set".to_owned());
        for url in &self.nodes {
            let node = HiveRpc::new(url, NODE_TIMEOUT)?;
            let found = async { Ok((Anchor::of(&node).await?, node.accounts(vec![payer]).await?)) };
            let (anchor, accounts) = match found.await {
                Ok(found) => found,
                Err(error) => {
                    last = error;
                    continue;
                }
            };
            if anchor.chain != self.chain {
                return Err(AccountError::Chain { found: anchor.chain, wanted: self.chain }.into());
            }
            let account = accounts.into_iter().find(|account| account.name == payer);
            return Ok(Reached { account: account.ok_or(AccountError::NoAccount(payer))?, node, anchor });
        }
        Err(last.into())
    }

    /// Queries every node for a transaction. One node that has it in a block is sufficient; its absence requires a
    /// majority.
    pub(in crate::commands) async fn presence(&self, tx_id: TxId, expiration: Timestamp) -> Result<Presence, Failure> {
        let mut reports = Vec::new();
        for url in &self.nodes {
            reports.extend(HiveRpc::new(url, NODE_TIMEOUT)?.find_transaction(tx_id, expiration).await);
        }
        Ok(Presence::of(reports, self.nodes.len()))
    }
}

/// Returns whether a URL is on this host.
pub(in crate::commands) fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_is_distinguished_from_others() {
        for url in ["http://localhost:1/", "http://127.0.0.1/", "http://[::1]:8080/", "http://shop.localhost/"] {
            assert!(is_here(&Url::parse(url).unwrap()), "{url}");
        }
        for url in ["http://localhost.example/", "http://10.0.0.1/", "http://[::2]/"] {
            assert!(!is_here(&Url::parse(url).unwrap()), "{url}");
        }
    }
}
