//! Lookups of accounts, transactions, prices and account histories, each confirmed by a majority.

use std::{sync::Arc, time::Duration};

use engine::{
    account::AccountName,
    ledger::{Transfer, TxId, VirtualOperations},
    money::{Currency, HbdPrice, HivePrice},
    time::Timestamp,
};
use futures_util::future::BoxFuture;

use super::{
    health::{HISTORY_API, TRANSACTION_API},
    majority,
    pool::{Nodes, NodesError, Plan, STRAGGLER_TIMEOUT},
    round::RoundStatus,
};
use crate::environment::{Account, Node, NodeError, TxStatus};

/// How far behind the head of its node an account's history may be.
const HISTORY_SETTLES: Duration = Duration::from_secs(120);
/// Time before the remaining nodes are queried for a history. It is long because no caller waits for it.
const HISTORY_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the identity of a history entry. It excludes the operation index, which nodes count differently.
fn identity(transfer: &Transfer) -> (TxId, u64, Currency, &str, &str) {
    let Transfer { tx_id, money, from, to, .. } = transfer;
    (*tx_id, money.units, money.currency, from.as_str(), to.as_str())
}

/// Decides on accounts: as soon as a majority agrees on everything, or on the authorities alone after the timeout.
pub(super) fn decide_accounts(
    names: &[AccountName],
    answers: &[(usize, Vec<Account>)],
    status: RoundStatus,
) -> Option<Vec<Account>> {
    let given: Vec<&[Account]> = answers.iter().map(|(_, accounts)| accounts.as_slice()).collect();
    let accounts = majority::accounts(names, &given, status.needed)?;
    (accounts.is_settled || status.may_end()).then_some(accounts.found)
}

/// Decides on the status of a transaction: its inclusion, or that it can never be included, as soon as a majority
/// agrees; anything else once slower nodes are no longer awaited.
pub(super) fn decide_transaction(answers: &[(usize, TxStatus)], round_status: RoundStatus) -> Option<TxStatus> {
    let given: Vec<TxStatus> = answers.iter().map(|(_, status)| *status).collect();
    let status = majority::transaction(&given, round_status.needed)?;
    let is_definite = matches!(
        status,
        TxStatus::InIrreversibleBlock(_) | TxStatus::InReversibleBlock(_) | TxStatus::ExpiredIrreversible
    );
    (is_definite || round_status.may_end()).then_some(status)
}

impl Nodes {
    /// Returns an account, if it exists.
    pub(crate) async fn account(&self, name: &AccountName) -> Result<Option<Account>, NodesError> {
        Ok(self.accounts(vec![*name]).await?.pop())
    }

    /// Returns the accounts that exist. A majority agrees on each authority; balances are approximate.
    pub(crate) async fn accounts(&self, names: Vec<AccountName>) -> Result<Vec<Account>, NodesError> {
        let wanted = names.clone();
        let request_to = move |node: Arc<dyn Node>| -> BoxFuture<'static, _> {
            let wanted = wanted.clone();
            Box::pin(async move { node.accounts(wanted).await })
        };
        let plan = self.to_all("accounts");
        let decide = |answers: &[_], status| decide_accounts(&names, answers, status);
        let result = self.shared.query(plan, request_to, Result::ok, decide).await;
        if let Some(decided) = &result.decision {
            let active = |accounts: &[Account], name: &AccountName| {
                accounts.iter().find(|account| account.name == *name).map(|account| account.active.clone())
            };
            for (place, given) in &result.answers {
                if let Some(name) = names.iter().find(|name| active(given, name) != active(decided, name)) {
                    self.shared.record_contradiction([*place], &format!("the keys of {name}"));
                }
            }
        }
        result.decided(|| "an account's authority".to_owned(), plan.needed)
    }

    /// Returns the status of a transaction as a majority reports it; one node suffices for "in the mempool".
    pub(crate) async fn find_transaction(&self, tx_id: TxId, expiration: Timestamp) -> Result<TxStatus, NodesError> {
        let request_to = move |node: Arc<dyn Node>| -> BoxFuture<'static, _> {
            Box::pin(async move { node.find_transaction(tx_id, expiration).await })
        };
        let plan = self.to_all(TRANSACTION_API);
        let result = self.shared.query(plan, request_to, Result::ok, decide_transaction).await;
        result.decided(|| format!("transaction {tx_id}"), plan.needed)
    }

    /// Returns the witnesses' price of HIVE, confirmed by a majority within two percent; `None` on a chain without feeds.
    pub(crate) async fn price(&self) -> Result<Option<HivePrice>, NodesError> {
        let request_to = |node: Arc<dyn Node>| -> BoxFuture<'static, _> { Box::pin(async move { node.price().await }) };
        let plan = self.to_all("price");
        let decide = |answers: &[(usize, Option<HivePrice>)], status: RoundStatus| {
            let given: Vec<_> = answers.iter().map(|(_, price)| *price).collect();
            majority::price(&given, status.needed)
        };
        let result = self.shared.query(plan, request_to, Result::ok, decide).await;
        if let Some(decided) = result.decision {
            let differs = |price: &Option<HivePrice>| majority::price(&[*price, decided], 2).is_none();
            let places = result.answers.iter().filter(|(_, price)| differs(price)).map(|(place, _)| *place);
            self.shared.record_contradiction(places, "the price of HIVE");
        }
        result.decided(|| "the price of HIVE".to_owned(), plan.needed)
    }

    /// Returns the price of HBD on the internal market, confirmed by a majority within two percent; `None` if there is
    /// none.
    pub(crate) async fn hbd_price(&self) -> Result<Option<HbdPrice>, NodesError> {
        let request_to =
            |node: Arc<dyn Node>| -> BoxFuture<'static, _> { Box::pin(async move { node.hbd_price().await }) };
        let plan = self.to_all("hbd_price");
        let decide = |answers: &[(usize, Option<HbdPrice>)], status: RoundStatus| {
            let given: Vec<_> = answers.iter().map(|(_, price)| *price).collect();
            majority::hbd_price(&given, status.needed)
        };
        let result = self.shared.query(plan, request_to, Result::ok, decide).await;
        result.decided(|| "the price of HBD".to_owned(), plan.needed)
    }

    /// Returns the plan of a history query: nodes without account history do not count.
    fn of_history(&self, timeout: Duration) -> Plan {
        let configured = self.shared.slots.len();
        let lacking = self.shared.slots.iter().filter(|slot| slot.lacks(HISTORY_API)).count();
        let needed = majority::needed_of_history(configured, lacking, self.shared.at_least);
        Plan { request: HISTORY_API, first: needed, needed, timeout }
    }

    /// Returns the transfers of the virtual operations of an irreversible block, confirmed by enough nodes; `None`
    /// while too few have the block. Nodes of different releases may have different unknown operations: those of one
    /// are returned.
    pub(crate) async fn virtual_operations(&self, block_num: u32) -> Result<Option<VirtualOperations>, NodesError> {
        let request_to = move |node: Arc<dyn Node>| -> BoxFuture<'static, _> {
            Box::pin(async move { node.virtual_operations(block_num).await })
        };
        let plan = self.of_history(STRAGGLER_TIMEOUT);
        let decide = |answers: &[(usize, Option<VirtualOperations>)], status: RoundStatus| {
            let given: Vec<&VirtualOperations> = answers.iter().filter_map(|(_, told)| told.as_ref()).collect();
            let paid: Vec<&[Transfer]> = given.iter().map(|told| told.transfers.as_slice()).collect();
            let agreed = majority::agreed(&paid, status.needed)?;
            given.iter().find(|told| told.transfers == *agreed).map(|told| (*told).clone())
        };
        let read = |answer: Result<Option<VirtualOperations>, NodeError>| match answer {
            Ok(None) if engine::mutant!("unknown-block-is-empty") => Some(Some(VirtualOperations::default())),
            Err(error) if error.lacks_api() && engine::mutant!("missing-history-is-empty") => {
                Some(Some(VirtualOperations::default()))
            }
            answer => answer.ok(),
        };
        let result = self.shared.query(plan, request_to, read, decide).await;
        if let Some(decided) = &result.decision {
            let differs = |given: &Option<VirtualOperations>| {
                given.as_ref().is_some_and(|given| given.transfers != decided.transfers)
            };
            let places = result.answers.iter().filter(|(_, given)| differs(given)).map(|(place, _)| *place);
            self.shared.record_contradiction(places, &format!("the virtual operations of block {block_num}"));
        }
        let is_behind = result.answers.iter().any(|(_, given)| given.is_none());
        let have_it = result.answers.iter().filter(|(_, given)| given.is_some()).count();
        if result.decision.is_none() && is_behind && have_it < plan.needed {
            return Ok(None);
        }
        result.decided(|| format!("the virtual operations of block {block_num}"), plan.needed).map(Some)
    }

    /// Returns an account's history, confirmed by enough nodes that are past the end of the span.
    pub(crate) async fn history(
        &self,
        account: &AccountName,
        span: (Timestamp, Timestamp),
    ) -> Result<Vec<Transfer>, NodesError> {
        let account = *account;
        let request_to = move |node: Arc<dyn Node>| -> BoxFuture<'static, _> {
            Box::pin(async move {
                let head = node.head().await?;
                // Older entries have been irreversible for long.
                if head.time < span.1 + HISTORY_SETTLES {
                    return Ok(None);
                }
                let mut transfers = node.history(account, span).await?;
                transfers.sort_by(|a, b| identity(a).cmp(&identity(b)));
                Ok(Some(transfers))
            })
        };
        let plan = self.of_history(HISTORY_TIMEOUT);
        let decide = |answers: &[(usize, Vec<Transfer>)], status: RoundStatus| {
            let same = |a: &[Transfer], b: &[Transfer]| a.iter().map(identity).eq(b.iter().map(identity));
            let like = |given: &[Transfer]| answers.iter().filter(|(_, other)| same(other, given)).count();
            let agreed = answers.iter().find(|(_, given)| like(given) >= status.needed);
            agreed.map(|(_, given)| given.clone())
        };
        let read = |answer: Result<Option<Vec<Transfer>>, NodeError>| match answer {
            Err(error) if error.lacks_api() && engine::mutant!("missing-history-is-empty") => Some(Vec::new()),
            answer => answer.ok().flatten(),
        };
        let result = self.shared.query(plan, request_to, read, decide).await;
        result.decided(|| format!("the history of {account}"), plan.needed)
    }
}
