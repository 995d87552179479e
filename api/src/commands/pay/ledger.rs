//! Ledger access for payers: nodes, the head block, the payer's account, the status of a transaction.

use std::time::Duration;

use actors::{
    environment::{Account, Node as _, NodeError, TxStatus},
    hive_rpc::HiveRpc,
    nodes_needed,
};
use engine::{
    account::AccountName,
    hive::{Authority, ChainId, PrivateKey, PublicKey, Role, check},
    ledger::TxId,
    money::Money,
    time::Timestamp,
};
use reqwest::Url;

use super::Failure;
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

/// The status of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Presence {
    /// A node has it in a block.
    InBlock,
    /// A majority of the nodes reports that it expired in an irreversible block without being included.
    Absent,
    /// Neither.
    Unknown,
}

/// Why an account and a key cannot pay.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotOurs {
    /// The node serves another chain than that of the offer.
    #[error("the node serves the chain {found}, not {wanted}")]
    Chain {
        /// The chain of the node.
        found: ChainId,
        /// The chain of the offer.
        wanted: ChainId,
    },
    /// The account does not exist.
    #[error("the ledger has no account {0}")]
    NoAccount(AccountName),
    /// The key is not sufficient.
    #[error("{key} alone does not satisfy the active authority of {account}")]
    NotItsKey {
        /// The public key.
        key: PublicKey,
        /// The payer.
        account: AccountName,
    },
    /// The balance is too low.
    #[error("{account} has {has}")]
    Funds {
        /// The payer.
        account: AccountName,
        /// The balance.
        has: Money,
    },
}

impl NotOurs {
    /// Returns the reason for scripts.
    pub(in crate::commands) const fn as_str(&self) -> &'static str {
        match self {
            Self::Chain { .. } => "other_chain",
            Self::NoAccount(_) => "no_account",
            Self::NotItsKey { .. } => "not_its_key",
            Self::Funds { .. } => "insufficient_funds",
        }
    }
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
                return Err(NotOurs::Chain { found: anchor.chain, wanted: self.chain }.into());
            }
            let account = accounts.into_iter().find(|account| account.name == payer);
            return Ok(Reached { account: account.ok_or(NotOurs::NoAccount(payer))?, node, anchor });
        }
        Err(last.into())
    }

    /// Queries every node for a transaction. One node that has it in a block is sufficient; its absence requires a
    /// majority.
    pub(in crate::commands) async fn presence(&self, tx_id: TxId, expiration: Timestamp) -> Result<Presence, Failure> {
        let mut absent = 0;
        for url in &self.nodes {
            match HiveRpc::new(url, NODE_TIMEOUT)?.find_transaction(tx_id, expiration).await {
                Ok(TxStatus::InReversibleBlock(_) | TxStatus::InIrreversibleBlock(_)) => return Ok(Presence::InBlock),
                Ok(TxStatus::ExpiredIrreversible) => absent += 1,
                _ => {}
            }
        }
        let is_absent = absent >= nodes_needed(self.nodes.len(), 0);
        Ok(if is_absent { Presence::Absent } else { Presence::Unknown })
    }
}

/// Checks that the balance is sufficient and that the key alone satisfies the account's active authority.
pub(in crate::commands) fn check_account(account: &Account, key: &PrivateKey, total: Money) -> Result<(), NotOurs> {
    let name = account.name;
    let has = account.balances.into_iter().find(|balance| balance.currency == total.currency);
    let has = has.unwrap_or(Money::new(0, total.currency));
    let required = [(Role::Active, name)].into();
    let known: std::collections::BTreeMap<AccountName, Authority> = [(name, account.active.clone())].into();
    let public = key.public();
    // If other accounts must sign, too, the ledger decides; only one key is known here.
    if let Err(denied) = check(&required, &known, &[public].into())
        && denied.unknown.is_empty()
    {
        return Err(NotOurs::NotItsKey { key: public, account: name });
    }
    if has.units < total.units { Err(NotOurs::Funds { account: name, has }) } else { Ok(()) }
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

    #[test]
    fn a_key_of_another_account_is_refused_before_it_signs() {
        let key = |name: &str| PrivateKey::from_login(name, "active", "test").unwrap();
        let name = AccountName::parse("alice").unwrap();
        let parse = |text: &str| Money::parse_ledger(text).unwrap();
        let balances = [parse("0.000 HIVE"), parse("5.000 HBD")];
        let account = Account { name, active: Authority::of_key(key("alice").public()), balances };
        assert_eq!(check_account(&account, &key("alice"), parse("5.000 HBD")), Ok(()));
        let short = NotOurs::Funds { account: name, has: parse("5.000 HBD") };
        assert_eq!(check_account(&account, &key("alice"), parse("5.001 HBD")), Err(short));
        let wrong = check_account(&account, &key("bob"), parse("5.000 HBD"));
        assert_eq!(wrong, Err(NotOurs::NotItsKey { key: key("bob").public(), account: name }));
    }
}
