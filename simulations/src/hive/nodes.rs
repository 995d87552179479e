//! The nodes of a simulation as the engine calls them: each has its own view of the chain and its own pending transactions.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use actors::environment::{Account, Identity, Node, NodeError, NodeResponse, TxStatus};
use engine::{
    account::AccountName,
    hive::{ChainId, Transaction},
    ledger::{Block, Head, Transfer, TxId, VirtualOperations},
    money::{Currency, HbdPrice, HivePrice, Money},
    time::Timestamp,
};

use super::{Hive, NodeState, health::Request};
use crate::{
    ledger::{BalanceKind, Refused, Status},
    script::Peer,
    simulation::Seam,
    trace::Source,
};

/// How much later another node receives a transaction, milliseconds; derived from its id.
const GOSSIP_MS: [u64; 4] = [0, 0, 500, 3_000];

/// How long requests may still be in flight after a node has begun to limit the rate, milliseconds.
const UNDER_WAY_MS: u64 = 15_000;
/// A kind of request: for the chain id, or for an API that some nodes lack.
const IDENTITY: &str = "get_version";
pub(crate) const HEAD: &str = "head";
const BLOCKS: &str = "get_block_range";
const HISTORY: &str = "get_account_history";
const TRANSACTION: &str = "find_transaction";

/// One node of the chain, as the engine calls it.
pub(crate) struct SimNode {
    pub(crate) seam: Seam,
    pub(crate) index: usize,
    pub(crate) name: String,
    /// The process's knowledge of it.
    pub(crate) known: Known,
}

/// What a process has learned from a node.
#[derive(Default)]
pub(crate) struct Known {
    /// Until when it has reported another chain, virtual milliseconds.
    foreign_until: AtomicU64,
    /// When it limited the rate, and until when.
    limited: Mutex<Option<(u64, u64)>>,
}

impl SimNode {
    /// Checks that a node gets no requests while it serves another chain or limits the rate.
    fn is_asked(&self, kind: &'static str) {
        let (sim, now_ms) = (&self.seam.sim, self.seam.sim.now_ms());
        if kind != IDENTITY && now_ms < self.known.foreign_until.load(Ordering::Relaxed) {
            let text = format!("node {} reported another chain and still gets a request for {kind}", self.index);
            sim.observe(|observer| observer.violate("other-chains-are-not-asked", text, None));
        }
        let limited = *self.known.limited.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((limited_ms, until_ms)) = limited else { return };
        if (limited_ms + UNDER_WAY_MS..until_ms).contains(&now_ms) {
            let left = until_ms - now_ms;
            let text = format!("node {} limits the rate for {left} ms more, and gets a request for {kind}", self.index);
            sim.observe(|observer| observer.violate("rate-limits-are-kept", text, None));
        } else {
            sim.observe(|observer| observer.passes("rate-limits-are-kept"));
        }
    }

    /// Returns what an unusual node returns instead of a normal response.
    fn refuses(&self, kind: &'static str) -> Option<NodeError> {
        let now_ms = self.seam.sim.now_ms();
        let (refused, foreign_until) = {
            let hive = self.seam.sim.hive();
            let node = &hive.nodes[self.index];
            (node.refuses(kind, now_ms), node.foreign_until)
        };
        if kind == IDENTITY && now_ms < foreign_until {
            self.known.foreign_until.store(foreign_until, Ordering::Relaxed);
        }
        if let Some(NodeError::RateLimited { retry_after: Some(rest) }) = &refused {
            let until_ms = now_ms + u64::try_from(rest.as_millis()).unwrap_or(u64::MAX);
            let mut limited = self.known.limited.lock().unwrap_or_else(PoisonError::into_inner);
            // Further requests get the same response.
            if limited.is_none_or(|(_, known_ms)| known_ms < until_ms) {
                *limited = Some((now_ms, until_ms));
            }
        }
        refused
    }

    async fn call<T>(
        &self,
        kind: &'static str,
        acts: bool,
        answer: impl FnOnce(&mut Hive) -> Result<T, NodeError> + Send,
    ) -> Result<T, NodeError> {
        let request = match kind {
            IDENTITY => Request::Identity,
            HEAD => Request::Head,
            _ => Request::Other,
        };
        self.begins(request);
        let response = self.respond(kind, acts, answer).await;
        self.ends(request, response.as_ref().err());
        response
    }

    /// Records that the engine sends a request.
    fn begins(&self, request: Request) {
        self.seam.process.node_healths().begins(self.index, request, self.seam.sim.now_ms());
    }

    /// Records that the engine receives a response.
    fn ends(&self, request: Request, failure: Option<&NodeError>) {
        let now_ms = self.seam.sim.now_ms();
        self.seam.process.node_healths().ends(self.index, request, failure, now_ms);
    }

    /// Records whether the node responds with other data than a healthy one.
    fn notes_deviation(&self) {
        let now_ms = self.seam.sim.now_ms();
        let (deviates, is_priceless) = {
            let hive = self.seam.sim.hive();
            let node = &hive.nodes[self.index];
            (node.deviates(now_ms), now_ms < node.priceless_until)
        };
        if is_priceless {
            // With another one it is a majority that contradicts the nodes that know a price.
            self.seam.process.node_healths().all_deviate(now_ms);
        } else if deviates {
            self.seam.process.node_healths().deviates(self.index, now_ms);
        }
    }

    /// Records the response to a request that takes no time.
    fn respond_with<T>(&self, request: Request, response: Result<T, NodeError>) -> NodeResponse<'_, T>
    where
        T: Send + 'static,
    {
        self.begins(request);
        self.notes_deviation();
        self.ends(request, response.as_ref().err());
        Box::pin(std::future::ready(response))
    }

    async fn respond<T>(
        &self,
        kind: &'static str,
        acts: bool,
        answer: impl FnOnce(&mut Hive) -> Result<T, NodeError> + Send,
    ) -> Result<T, NodeError> {
        let sim = &self.seam.sim;
        self.seam.alive().await;
        self.is_asked(kind);
        if sim.has_shared_store() && [HEAD, BLOCKS].contains(&kind) {
            sim.observe(|observer| observer.requests(kind, self.index));
        }
        if sim.is_cut_off(&self.seam.process, Peer::Node(self.index)) {
            sim.sleep(super::RPC_TIMEOUT_MS).await;
            self.seam.alive().await;
            sim.mark("one of several engines cannot reach a node");
            return Err(NodeError::Timeout);
        }
        let call_outcome = {
            let now_ms = sim.now_ms();
            let rate = |fault| sim.rate(fault);
            let rpc_ms = sim.calmed(sim.script.setup.rpc_ms);
            sim.hive().call_outcome(self.index, now_ms, acts, rpc_ms, rate)
        };
        sim.sleep(call_outcome.before_ms).await;
        if let Some(error) = call_outcome.error {
            sim.count_node_fault("node.call_fails", self.index, || {
                format!("node {} fails {kind}: {error}", self.index)
            });
            return Err(error);
        }
        if let Some(error) = self.refuses(kind) {
            return Err(error);
        }
        let answer = answer(&mut sim.hive());
        self.notes_deviation();
        sim.sleep(call_outcome.after_ms).await;
        if call_outcome.loses_reply {
            sim.count_node_fault("node.reply_lost", self.index, || {
                format!("node {} executes {kind} and its response is lost", self.index)
            });
            if answer.is_ok() {
                sim.mark("a broadcast is accepted and its response lost");
            }
            return Err(NodeError::Timeout);
        }
        answer
    }
}

impl Node for SimNode {
    fn name(&self) -> &str {
        &self.name
    }

    fn identity(&self) -> NodeResponse<'_, Identity> {
        let now_ms = self.seam.sim.now_ms();
        Box::pin(async move {
            let called = self.call(IDENTITY, false, move |hive| {
                let is_foreign = now_ms < hive.nodes[self.index].foreign_until;
                let chain_id = if is_foreign { ChainId([7; 32]) } else { ChainId::MAINNET };
                Ok(Identity { chain_id, version: "1.28.6".to_owned(), is_development: false })
            });
            let identity = called.await;
            if identity.as_ref().is_ok_and(|identity| identity.chain_id != ChainId::MAINNET) {
                self.ends(Request::Identity, Some(&NodeError::WrongChain(String::new())));
            }
            identity
        })
    }

    fn head(&self) -> NodeResponse<'_, Head> {
        let index = self.index;
        Box::pin(async move {
            let called = self.call(HEAD, false, move |hive| {
                let view = hive.nodes[index].view.view(&hive.chain);
                let (block_id, time) = view.head();
                Ok(Head { block_id, time, irreversible_num: view.irreversible_num() })
            });
            let head = called.await;
            let head_num = head.as_ref().ok().map(|head| head.block_id.number());
            self.seam.process.node_healths().head_ends(index, head_num, self.seam.sim.now_ms());
            head
        })
    }

    fn blocks(&self, from: u32, count: u32) -> NodeResponse<'_, Vec<Block>> {
        let index = self.index;
        Box::pin(self.call(BLOCKS, false, move |hive| {
            let view = hive.nodes[index].view.view(&hive.chain);
            let from = view.first_of_range(from);
            let blocks = (from..from.saturating_add(count)).map_while(|number| view.block(number));
            Ok(blocks.map(|block| block.neutral()).collect())
        }))
    }

    fn virtual_operations(&self, block_num: u32) -> NodeResponse<'_, Option<VirtualOperations>> {
        let now_ms = self.seam.sim.now_ms();
        self.is_asked(HISTORY);
        if let Some(error) = self.refuses(HISTORY) {
            return self.respond_with(Request::Other, Err(error));
        }
        let reported = |hive: &Hive| {
            let node = &hive.nodes[self.index];
            if now_ms < node.down_until {
                return Err(NodeError::Unreachable("connection refused".to_owned()));
            }
            let view = node.view.view(&hive.chain);
            let block = (block_num <= view.irreversible_num()).then(|| view.block(block_num)).flatten();
            Ok(block.map(|block| VirtualOperations { transfers: block.virtual_transfers(), ..Default::default() }))
        };
        // These have no latency: each block is requested once, and they are rare.
        let response = reported(&self.seam.sim.hive());
        self.respond_with(Request::Other, response)
    }

    fn history(&self, account: AccountName, (from, to): (Timestamp, Timestamp)) -> NodeResponse<'_, Vec<Transfer>> {
        let now_ms = self.seam.sim.now_ms();
        self.is_asked(HISTORY);
        if let Some(error) = self.refuses(HISTORY) {
            return self.respond_with(Request::Other, Err(error));
        }
        let reported = |hive: &Hive| {
            let node = &hive.nodes[self.index];
            if now_ms < node.down_until {
                return Err(NodeError::Unreachable("connection refused".to_owned()));
            }
            let view = node.view.view(&hive.chain);
            let blocks = (1..=view.irreversible_num()).filter_map(|number| view.block(number));
            let within = blocks.filter(|block| from <= block.time() && block.time() < to);
            let all = within.filter(|block| !block.transactions.is_empty()).map(|block| block.neutral());
            let all = all.flat_map(|block| block.transfers.into_iter().chain(block.escrow_releases));
            Ok(all.filter(|transfer| transfer.to == account || transfer.from == account).collect())
        };
        // No latency either.
        let response = reported(&self.seam.sim.hive());
        self.respond_with(Request::Other, response)
    }

    fn accounts(&self, names: Vec<AccountName>) -> NodeResponse<'_, Vec<Account>> {
        let index = self.index;
        Box::pin(self.call("get_accounts", false, move |hive| {
            let view = hive.nodes[index].view.view(&hive.chain);
            let found = names.into_iter().filter_map(|name| view.account(name.as_str()).map(|account| (name, account)));
            let units = |units: i64| u64::try_from(units).unwrap_or(0);
            Ok(found
                .map(|(name, account)| Account {
                    name,
                    active: account.authorities.active.clone(),
                    balances: [
                        Money::new(units(account.balance(BalanceKind::Hive).units), Currency::Hive),
                        Money::new(units(account.balance(BalanceKind::Hbd).units), Currency::Hbd),
                    ],
                })
                .collect())
        }))
    }

    fn find_transaction(&self, tx_id: TxId, expiration: Timestamp) -> NodeResponse<'_, TxStatus> {
        let (index, now_ms) = (self.index, self.seam.sim.now_ms());
        Box::pin(self.call(TRANSACTION, false, move |hive| Ok(hive.report_of(index, tx_id, expiration, now_ms))))
    }

    fn broadcast(&self, signed_json: String) -> NodeResponse<'_, ()> {
        Box::pin(async move {
            let transaction = Transaction::parse(signed_json.as_bytes());
            let transaction = transaction.map_err(|error| NodeError::Unreadable(error.to_string()))?;
            let tx_id = self.seam.sim.hive().id_of(&transaction);
            self.seam.alive().await;
            let index = self.index;
            self.seam.sim.observe(|observer| observer.transaction_sent(tx_id, index));
            self.seam.sim.event(
                Source::Ledger,
                "broadcast",
                self.seam.sim.session_of_tx(tx_id),
                self.index as u64,
                || format!("the engine broadcasts {tx_id} to node {}", self.index),
            );
            let sim = Arc::clone(&self.seam.sim);
            let is_taken = Arc::new(AtomicBool::new(false));
            let takes = Arc::clone(&is_taken);
            let called = self.call("broadcast_transaction", true, move |hive| {
                // A payment that needs only the response of one node may get it from a lying node.
                let view = hive.nodes[index].view.view(&hive.chain);
                let (swallows, refuses) = (view.swallows_broadcasts(), view.refuses_broadcasts());
                // Others have the block that it refers to: this node is behind, or lies.
                if refuses || !view.has_referred(&transaction) {
                    sim.observe(|observer| observer.refused_wrongly(tx_id, index));
                }
                let taken = match (refuses, swallows) {
                    (true, _) => Err(Refused::Expired),
                    (false, true) => Ok(()),
                    (false, false) => hive.take(index, transaction, tx_id, sim.now_ms()),
                };
                let has_it = matches!(taken, Ok(()) | Err(Refused::Duplicate));
                takes.store(has_it, Ordering::Relaxed);
                sim.observe(|observer| observer.node_responded(tx_id, index, has_it));
                taken.map_err(|refused| refusal(&refused))
            });
            let response = called.await;
            if is_taken.load(Ordering::Relaxed) {
                let is_lost = response == Err(NodeError::Timeout);
                self.seam.sim.observe(|observer| observer.acceptance_received(tx_id, index, is_lost));
            }
            response
        })
    }

    fn price(&self) -> NodeResponse<'_, Option<HivePrice>> {
        let (index, now_ms) = (self.index, self.seam.sim.now_ms());
        Box::pin(self.call("get_feed_history", false, move |hive| {
            let node = &hive.nodes[index];
            Ok((now_ms >= node.priceless_until).then(|| node.view.view(&hive.chain).price()))
        }))
    }

    fn hbd_price(&self) -> NodeResponse<'_, Option<HbdPrice>> {
        let now_ms = self.seam.sim.now_ms();
        self.is_asked("get_market_history");
        if let Some(error) = self.refuses("get_market_history") {
            return self.respond_with(Request::Other, Err(error));
        }
        let response = self.market_price(now_ms);
        self.respond_with(Request::Other, response)
    }
}

impl SimNode {
    fn market_price(&self, now_ms: u64) -> Result<Option<HbdPrice>, NodeError> {
        let hive = self.seam.sim.hive();
        let (node, market) = (&hive.nodes[self.index], hive.chain.market());
        if now_ms < node.down_until {
            Err(NodeError::Unreachable("connection refused".to_owned()))
        } else if now_ms < node.priceless_until {
            Ok(None)
        } else {
            Ok(HbdPrice::of_market(node.view.view(&hive.chain).price(), market, market))
        }
    }
}

impl NodeState {
    /// Returns its response to a request that it does not serve.
    fn refuses(&self, kind: &'static str, now_ms: u64) -> Option<NodeError> {
        if now_ms < self.limits_until {
            // A little longer than the limit: a client that returns exactly in time is served.
            let retry_after = Some(Duration::from_millis(self.limits_until - now_ms));
            return Some(NodeError::RateLimited { retry_after });
        }
        if now_ms < self.foreign_until && kind != IDENTITY {
            // Existing connections to the other chain's node are closed.
            return Some(NodeError::Unreachable("connection refused".to_owned()));
        }
        (now_ms < self.lacks_until && [HISTORY, TRANSACTION].contains(&kind)).then(|| NodeError::Rpc {
            code: -32_601,
            data_code: None,
            name: String::new(),
            message: format!("Could not find API of {kind}"),
        })
    }

    /// Returns whether it has other data than a healthy node.
    const fn deviates(&self, now_ms: u64) -> bool {
        self.view.lie.is_some() || self.view.branch_from.is_some() || now_ms < self.priceless_until
    }

    fn keeps(&self, tx_id: TxId, hive: &Hive) -> bool {
        self.kept.iter().any(|transaction| hive.id_of(transaction) == tx_id)
    }
}

impl Hive {
    /// Returns the status of a transaction on a node.
    fn report_of(&self, index: usize, tx_id: TxId, expiration: Timestamp, now_ms: u64) -> TxStatus {
        let state = &self.nodes[index];
        let view = state.view.view(&self.chain);
        let has_heard = self.has_heard(index, tx_id, now_ms);
        match self.chain.status(tx_id, Some(expiration)) {
            Status::Unknown | Status::WithinMempool if state.keeps(tx_id, self) => TxStatus::InMempool,
            Status::WithinMempool if !has_heard => TxStatus::Unknown,
            Status::Unknown => TxStatus::Unknown,
            Status::WithinMempool => TxStatus::InMempool,
            Status::WithinReversibleBlock(number) | Status::WithinIrreversibleBlock(number)
                if !view.shows_as_it_is(number) =>
            {
                TxStatus::InMempool
            }
            Status::WithinReversibleBlock(number) => TxStatus::InReversibleBlock(number),
            Status::WithinIrreversibleBlock(number) => TxStatus::InIrreversibleBlock(number),
            Status::ExpiredReversible => TxStatus::ExpiredReversible,
            Status::ExpiredIrreversible => TxStatus::ExpiredIrreversible,
            Status::TooOld => TxStatus::TooOld,
        }
    }

    /// Returns the status of a transaction on each node that can be reached.
    pub(crate) fn reports_of(&self, tx_id: TxId, expiration: Timestamp, now_ms: u64) -> Vec<TxStatus> {
        let reached = (0..self.nodes.len()).filter(|index| now_ms >= self.nodes[*index].down_until);
        reached.map(|index| self.report_of(index, tx_id, expiration, now_ms)).collect()
    }

    /// Returns the time of the head of the first node that can be reached.
    pub(crate) fn reported_head_time(&self, now_ms: u64) -> Timestamp {
        let reached = self.nodes.iter().find(|node| now_ms >= node.down_until);
        reached.map_or_else(|| self.chain.head_time(), |node| node.view.view(&self.chain).head().1)
    }

    /// Returns whether a node has received a pending transaction.
    fn has_heard(&self, node: usize, tx_id: TxId, now_ms: u64) -> bool {
        self.accepted_by.get(&tx_id).is_none_or(|(taken_by, at_ms)| {
            let later = GOSSIP_MS[usize::from(tx_id.0[node % tx_id.0.len()]) % GOSSIP_MS.len()];
            *taken_by == node || now_ms >= at_ms + later
        })
    }

    /// Broadcasts a transaction to one node. A node that is behind judges it by the blocks that it has: it takes what is in
    /// a later block, and refuses what refers to one.
    fn take(&mut self, node: usize, transaction: Transaction, tx_id: TxId, now_ms: u64) -> Result<(), Refused> {
        let view = self.nodes[node].view.view(&self.chain);
        if !view.has_referred(&transaction) {
            return Err(Refused::Tapos { given: transaction.ref_block_prefix, expected: 0 });
        }
        if self.chain.find(tx_id).is_some_and(|(number, _)| !view.shows_as_it_is(number)) {
            return Ok(());
        }
        if now_ms < self.nodes[node].keeps_until {
            if self.nodes[node].keeps(tx_id, self) {
                return Err(Refused::Duplicate);
            }
            self.chain.would_take(&transaction)?;
            self.nodes[node].kept.push(transaction);
            return Ok(());
        }
        self.chain.broadcast(transaction)?;
        self.accepted_by.entry(tx_id).or_insert((node, now_ms));
        Ok(())
    }
}

/// Converts a refusal to hived's error.
fn refusal(refused: &Refused) -> NodeError {
    let rendered = refused.render();
    NodeError::Rpc {
        code: i64::from(rendered.rpc_code),
        data_code: Some(i64::from(rendered.code)),
        name: rendered.name.to_owned(),
        message: rendered.message(),
    }
}
