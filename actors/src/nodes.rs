//! The ledger's nodes together: who is asked first, who is left alone for a while, and when they must agree.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use engine::{
    account::AccountName,
    hive::ChainId,
    ledger::{Block, Head, Transfer, TxId},
    money::{Currency, HivePrice},
    mutant,
    time::Timestamp,
};
use futures_util::future::{BoxFuture, join_all};
use tokio::time::Instant;

use crate::{
    environment::{Account, Answer, Clock, Environment, Node, NodeError, TxStatus},
    metrics::{Metrics, NodeMetrics},
    settings::Settings,
};

/// How long a node that failed once, twice, … is asked last.
const COOLDOWNS: [Duration; 4] =
    [Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(30), Duration::from_secs(60)];
/// How far behind the clock a head may be before another node is asked too.
const STALE_AFTER: Duration = Duration::from_secs(30);

/// How far behind the head of its node an account's history may be.
const HISTORY_SETTLES: Duration = Duration::from_secs(120);

/// What entries of histories are told apart by: nodes count an operation's place in ways of their own.
fn told_apart(transfer: &Transfer) -> (TxId, u64, Currency, &str, &str) {
    let Transfer { tx_id, money, from, to, .. } = transfer;
    (*tx_id, money.units, money.currency, from.as_str(), to.as_str())
}

/// Why no node could answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NodesError {
    /// Every node failed; the last failure is told.
    #[error("no ledger node answers: {0}")]
    Unavailable(String),
    /// Too few nodes have a block that others had.
    #[error("too few nodes tell what happened by itself in block {0}")]
    Unknown(u32),
    /// Nodes answered and do not agree.
    #[error("{answered} nodes answered and no {needed} of them agree on block {block_num}")]
    Disagree {
        /// The block.
        block_num: u32,
        /// How many answered.
        answered: usize,
        /// How many must agree.
        needed: usize,
    },
    /// Nodes tell different histories of an account.
    #[error("{answered} nodes told an account's history and no {needed} of them agree")]
    HistoryDisagrees {
        /// How many answered.
        answered: usize,
        /// How many must agree.
        needed: usize,
    },
    /// The ledger refused by its own rules; no other node would do better.
    #[error(transparent)]
    Refused(NodeError),
}

/// The ledger's nodes.
pub(crate) struct Nodes {
    slots: Vec<Slot>,
    clock: Arc<dyn Clock>,
    chain_id: ChainId,
    development: bool,
    needed: usize,
    max_head_ahead: Option<Duration>,
}

struct Slot {
    node: Arc<dyn Node>,
    health: Mutex<Health>,
    metrics: NodeMetrics,
}

#[derive(Debug, Clone, Copy, Default)]
struct Health {
    failures: u32,
    asked_last_until: Timestamp,
    is_checked: bool,
    answered_at: Option<Timestamp>,
}

/// How a ledger node is, as far as it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState {
    /// Its address.
    pub name: String,
    /// Questions in a row it did not answer.
    pub failures: u32,
    /// When it last answered; none if it never did since this process began.
    pub answered_at: Option<Timestamp>,
    /// Until then the others are asked first.
    pub rests_until: Option<Timestamp>,
}

impl Nodes {
    pub(crate) fn new(env: &Environment, settings: &Settings, metrics: &Metrics) -> Self {
        let needed = match settings.min_agreeing_nodes {
            0 if env.nodes.len() > 2 => 2,
            0 => 1,
            asked => asked,
        };
        let needed = if mutant!("one-node-is-enough") { 1 } else { needed };
        Self {
            slots: env.nodes.iter().map(|node| Slot::new(Arc::clone(node), metrics)).collect(),
            clock: Arc::clone(&env.clock),
            chain_id: settings.chain_id,
            development: settings.development,
            needed,
            max_head_ahead: settings.max_head_ahead,
        }
    }

    /// Asks every node which chain it serves. Unreachable ones are asked again before they are first used.
    ///
    /// # Errors
    /// [`NodeError::WrongChain`] names the first node that serves another chain.
    pub(crate) async fn check_chain(&self) -> Result<(), NodeError> {
        for slot in &self.slots {
            match self.check(slot).await {
                Err(wrong @ NodeError::WrongChain(_)) => return Err(wrong),
                Err(error) => tracing::warn!(node = slot.node.name(), %error, "a ledger node does not answer"),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    async fn check(&self, slot: &Slot) -> Result<(), NodeError> {
        if slot.health().is_checked {
            return Ok(());
        }
        let identity = slot.node.identity().await?;
        let name = slot.node.name();
        if identity.chain_id != self.chain_id {
            return Err(NodeError::WrongChain(format!("{name} has chain id {}", identity.chain_id)));
        }
        if identity.is_development != self.development {
            let what = if identity.is_development { "a development ledger" } else { "no development ledger" };
            return Err(NodeError::WrongChain(format!("{name} is {what} ({})", identity.version)));
        }
        slot.with_health(|health| health.is_checked = true);
        Ok(())
    }

    /// Asks nodes in order of health until one answers or the ledger itself refuses.
    pub(crate) async fn ask<T>(&self, question: impl Fn(&dyn Node) -> Answer<'_, T>) -> Result<T, NodesError> {
        let mut last = "no node is configured".to_owned();
        for slot in self.in_order() {
            match self.ask_one(slot, &question).await {
                Ok(answer) => return Ok(answer),
                Err(error) if error.is_the_nodes_fault() => last = format!("{}: {error}", slot.node.name()),
                Err(error) => return Err(NodesError::Refused(error)),
            }
        }
        Err(NodesError::Unavailable(last))
    }

    async fn ask_one<T>(&self, slot: &Slot, question: impl Fn(&dyn Node) -> Answer<'_, T>) -> Result<T, NodeError> {
        self.check(slot).await.inspect_err(|error| self.note_failure(slot, error))?;
        let begun = Instant::now();
        match question(&*slot.node).await {
            Ok(answer) => {
                slot.metrics.answered(begun.elapsed());
                let now = self.clock.now();
                slot.with_health(|health| (health.failures, health.answered_at) = (0, Some(now)));
                Ok(answer)
            }
            Err(error) => {
                if error.is_the_nodes_fault() {
                    self.note_failure(slot, &error);
                }
                Err(error)
            }
        }
    }

    fn note_failure(&self, slot: &Slot, error: &NodeError) {
        slot.metrics.failed();
        let now = self.clock.now();
        let failures = slot.with_health(|health| {
            let step = (health.failures as usize).min(COOLDOWNS.len() - 1);
            health.failures = health.failures.saturating_add(1);
            health.asked_last_until = now + COOLDOWNS[step];
            health.failures
        });
        // Once when it starts and then rarely: a dead node must not fill the log.
        if failures == 1 || failures.is_multiple_of(100) {
            tracing::warn!(node = slot.node.name(), failures, %error, "ledger node failed: {error}");
        }
    }

    /// Returns how every node is, in the order of the configuration.
    pub(crate) fn states(&self) -> Vec<NodeState> {
        let now = self.clock.now();
        let state = |slot: &Slot| {
            let health = slot.health();
            let rests = health.failures > 0 && now < health.asked_last_until;
            NodeState {
                name: slot.node.name().to_owned(),
                failures: health.failures,
                answered_at: health.answered_at,
                rests_until: rests.then_some(health.asked_last_until),
            }
        };
        self.slots.iter().map(state).collect()
    }

    /// Returns how many nodes must agree on a block.
    pub(crate) const fn needed(&self) -> usize {
        self.needed
    }

    fn in_order(&self) -> Vec<&Slot> {
        let now = self.clock.now();
        let mut slots: Vec<_> = self.slots.iter().collect();
        slots.sort_by_key(|slot| {
            let health = slot.health();
            health.failures > 0 && now < health.asked_last_until
        });
        slots
    }

    /// Returns where the chain stands. Irreversible is only what as many nodes as must agree say.
    pub(crate) async fn head(&self) -> Result<Head, NodesError> {
        let now = self.clock.now();
        let mut heads: Vec<Head> = Vec::new();
        let mut last = "no node is configured".to_owned();
        for slot in self.in_order() {
            let is_future = |head: &Head| self.max_head_ahead.is_some_and(|ahead| head.time > now + ahead);
            match self.ask_one(slot, |node| node.head()).await {
                Ok(head) if is_future(&head) => {
                    let error = NodeError::FutureHead(head.time);
                    self.note_failure(slot, &error);
                    last = format!("{}: {error}", slot.node.name());
                }
                Ok(head) => {
                    slot.metrics.told_head(head.block_id.number());
                    heads.push(head);
                }
                Err(error) => last = format!("{}: {error}", slot.node.name()),
            }
            let fresh = heads.iter().any(|head| now.since(head.time) <= STALE_AFTER);
            if heads.len() >= self.needed && fresh {
                break;
            }
        }
        if heads.len() < self.needed {
            return Err(NodesError::Unavailable(last));
        }
        let newest = *heads.iter().max_by_key(|head| head.block_id.number()).expect("at least one head");
        let mut irreversible: Vec<_> = heads.iter().map(|head| head.irreversible_num).collect();
        irreversible.sort_unstable_by(|a, b| b.cmp(a));
        Ok(Head {
            irreversible_num: irreversible[if mutant!("loudest-finality") { 0 } else { self.needed - 1 }],
            ..newest
        })
    }

    /// Returns blocks from `from` on, at most `count`, each given alike by as many nodes as must agree.
    pub(crate) async fn agreed_blocks(&self, from: u32, count: u32) -> Result<Vec<Block>, NodesError> {
        if self.needed == 1 {
            return self.blocks(from, count).await;
        }
        let slots = self.in_order();
        let mut answers: Vec<Vec<Block>> = Vec::new();
        let mut last = String::new();
        // As many at once as must agree; the others only if those do not.
        for group in slots.chunks(self.needed) {
            let asked = join_all(group.iter().map(|slot| self.ask_one(slot, |node| node.blocks(from, count)))).await;
            for (slot, answer) in group.iter().zip(asked) {
                match answer {
                    Ok(blocks) => answers.push(blocks),
                    Err(error) => last = format!("{}: {error}", slot.node.name()),
                }
            }
            let agreed = self.agreed(&answers, count);
            if !agreed.is_empty() {
                return Ok(agreed);
            }
        }
        if answers.len() < self.needed {
            return Err(NodesError::Unavailable(last));
        }
        Err(NodesError::Disagree { block_num: from, answered: answers.len(), needed: self.needed })
    }

    /// Returns the longest start of the range on which enough answers are equal, block by block.
    fn agreed(&self, answers: &[Vec<Block>], count: u32) -> Vec<Block> {
        let mut agreed = Vec::new();
        for at in 0..count as usize {
            let given: Vec<_> = answers.iter().filter_map(|blocks| blocks.get(at)).collect();
            let equal = given.iter().find(|block| given.iter().filter(|other| other == block).count() >= self.needed);
            match equal {
                Some(block) => agreed.push((**block).clone()),
                None => break,
            }
        }
        agreed
    }

    async fn blocks(&self, from: u32, count: u32) -> Result<Vec<Block>, NodesError> {
        self.ask(|node| node.blocks(from, count)).await
    }

    /// Returns what was paid by itself in an irreversible block, as enough nodes tell it alike; none while too few have
    /// the block. Many nodes keep no account history; that is no fault of theirs, and leaves their place in the order
    /// alone.
    pub(crate) async fn virtual_transfers(&self, block_num: u32) -> Result<Option<Vec<Transfer>>, NodesError> {
        let mut last = "no node is configured".to_owned();
        let mut answers: Vec<Vec<Transfer>> = Vec::new();
        let mut is_behind = false;
        for slot in self.in_order() {
            let asked = async {
                self.check(slot).await?;
                slot.node.virtual_transfers(block_num).await
            };
            let told = match asked.await {
                Ok(None) if mutant!("unknown-block-is-empty") => Some(Vec::new()),
                Ok(told) => told,
                Err(error) => {
                    last = format!("{}: {error}", slot.node.name());
                    continue;
                }
            };
            let Some(transfers) = told else {
                is_behind = true;
                continue;
            };
            if answers.iter().filter(|other| **other == transfers).count() + 1 >= self.needed {
                return Ok(Some(transfers));
            }
            answers.push(transfers);
        }
        if answers.len() >= self.needed {
            return Err(NodesError::Disagree { block_num, answered: answers.len(), needed: self.needed });
        }
        if is_behind { Ok(None) } else { Err(NodesError::Unavailable(last)) }
    }

    /// Returns an account's history as enough nodes tell it alike that are past the span's end. Many nodes keep none; that
    /// is no fault of theirs, and leaves their place in the order alone.
    pub(crate) async fn history(
        &self,
        account: &AccountName,
        span: (Timestamp, Timestamp),
    ) -> Result<Vec<Transfer>, NodesError> {
        let mut last = "no node is configured".to_owned();
        let mut answers: Vec<Vec<Transfer>> = Vec::new();
        for slot in self.in_order() {
            let asked = async {
                self.check(slot).await?;
                let head = slot.node.head().await?;
                // What is older than this is irreversible long since.
                if head.time < span.1 + HISTORY_SETTLES {
                    return Err(NodeError::Unreadable("it is behind".to_owned()));
                }
                slot.node.history(*account, span).await
            };
            match asked.await {
                Ok(mut transfers) => {
                    transfers.sort_by(|a, b| told_apart(a).cmp(&told_apart(b)));
                    let is_same =
                        |other: &&Vec<Transfer>| other.iter().map(told_apart).eq(transfers.iter().map(told_apart));
                    if answers.iter().filter(is_same).count() + 1 >= self.needed {
                        return Ok(transfers);
                    }
                    answers.push(transfers);
                }
                Err(error) => last = format!("{}: {error}", slot.node.name()),
            }
        }
        if answers.len() >= self.needed {
            return Err(NodesError::HistoryDisagrees { answered: answers.len(), needed: self.needed });
        }
        Err(NodesError::Unavailable(last))
    }

    /// Returns an account, if it exists.
    pub(crate) async fn account(&self, name: &AccountName) -> Result<Option<Account>, NodesError> {
        let mut found = self.ask(|node| -> BoxFuture<'_, _> { node.accounts(vec![*name]) }).await?;
        Ok(found.pop().filter(|account| account.name == *name))
    }

    /// Returns those of the accounts that exist.
    pub(crate) async fn accounts(&self, names: Vec<AccountName>) -> Result<Vec<Account>, NodesError> {
        self.ask(|node| node.accounts(names.clone())).await
    }

    /// Hands a signed transaction to one node after the other until one takes it; returns what each said. The same
    /// bytes at several nodes are one transaction.
    pub(crate) async fn broadcast(&self, signed_json: &str) -> Vec<Result<(), NodeError>> {
        let mut answers = Vec::new();
        for slot in self.in_order() {
            let answer = self.ask_one(slot, |node| node.broadcast(signed_json.to_owned())).await;
            let taken = answer.is_ok();
            answers.push(answer);
            if taken {
                break;
            }
        }
        answers
    }

    /// Returns the most that any node knows of a transaction; what is in a block only if enough nodes have it there.
    pub(crate) async fn find_transaction(&self, tx_id: TxId, expiration: Timestamp) -> Result<TxStatus, NodesError> {
        let slots = self.in_order();
        let mut found = Vec::new();
        let mut last = "no node is configured".to_owned();
        let asked =
            join_all(slots.iter().map(|slot| self.ask_one(slot, |node| node.find_transaction(tx_id, expiration))));
        for (slot, answer) in slots.iter().zip(asked.await) {
            match answer {
                Ok(status) => found.push(status),
                Err(error) => last = format!("{}: {error}", slot.node.name()),
            }
        }
        if found.is_empty() {
            return Err(NodesError::Unavailable(last));
        }
        let count = |wanted: fn(&TxStatus) -> bool| found.iter().filter(|status| wanted(status)).count();
        let irreversible = |status: &TxStatus| matches!(status, TxStatus::InIrreversibleBlock(_));
        let in_block =
            |status: &TxStatus| matches!(status, TxStatus::InIrreversibleBlock(_) | TxStatus::InReversibleBlock(_));
        let dead = |status: &TxStatus| matches!(status, TxStatus::ExpiredIrreversible);
        let pick = |wanted: fn(&TxStatus) -> bool| found.iter().find(|status| wanted(status)).copied();
        let alive = |status: &TxStatus| {
            matches!(status, TxStatus::InIrreversibleBlock(_) | TxStatus::InReversibleBlock(_) | TxStatus::InMempool)
        };
        Ok(if count(irreversible) >= self.needed {
            pick(irreversible).unwrap_or(TxStatus::Unknown)
        } else if count(in_block) >= self.needed {
            match pick(in_block) {
                Some(TxStatus::InIrreversibleBlock(num) | TxStatus::InReversibleBlock(num)) => {
                    TxStatus::InReversibleBlock(num)
                }
                _ => TxStatus::Unknown,
            }
        } else if pick(alive).is_some() {
            TxStatus::InMempool
        } else if count(dead) >= self.needed {
            TxStatus::ExpiredIrreversible
        } else {
            found.into_iter().find(|status| *status != TxStatus::ExpiredIrreversible).unwrap_or(TxStatus::Unknown)
        })
    }

    /// Returns the witnesses' price of HIVE.
    pub(crate) async fn price(&self) -> Result<Option<HivePrice>, NodesError> {
        self.ask(|node| node.price()).await
    }
}

impl Slot {
    fn new(node: Arc<dyn Node>, metrics: &Metrics) -> Self {
        let metrics = metrics.node(node.name());
        Self { node, health: Mutex::default(), metrics }
    }

    fn health(&self) -> Health {
        *self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_health<T>(&self, change: impl FnOnce(&mut Health) -> T) -> T {
        change(&mut self.health.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
