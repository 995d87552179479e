//! The nodes of a world as the engine calls them: each has the chain as it sees it, and what waits as far as it has heard of it.

use std::sync::Arc;

use actors::environment::{Account, Answer, Identity, Node, NodeError, TxStatus};
use engine::{
    account::AccountName,
    hive::{ChainId, Transaction},
    ledger::{Block, Head, Transfer, TxId, VirtualOperations},
    money::{Currency, HbdPrice, HivePrice, Money},
    time::Timestamp,
};

use super::{Hive, NodeState};
use crate::{
    ledger::{Pot, Refused, Status},
    trace::Lane,
    world::World,
};

/// How much later another node hears of a transaction, milliseconds; its id says which.
const GOSSIP_MS: [u64; 4] = [0, 0, 500, 3_000];

/// One node of the chain, as the engine calls it.
pub(crate) struct SimNode {
    pub(crate) world: Arc<World>,
    pub(crate) index: usize,
    pub(crate) name: String,
}

impl SimNode {
    async fn call<T>(
        &self,
        kind: &'static str,
        acts: bool,
        answer: impl FnOnce(&mut Hive) -> Result<T, NodeError> + Send,
    ) -> Result<T, NodeError> {
        let world = &self.world;
        world.alive().await;
        let fate = {
            let now_ms = world.now_ms();
            let rate = |fault| world.rate(fault);
            let rpc_ms = world.calmed(world.script.setup.rpc_ms);
            world.hive().fate(self.index, now_ms, acts, rpc_ms, rate)
        };
        world.sleep(fate.before_ms).await;
        if let Some(error) = fate.error {
            world.strike("node.call_fails", self.index, || format!("node {} fails {kind}: {error}", self.index));
            return Err(error);
        }
        let answer = answer(&mut world.hive());
        world.sleep(fate.after_ms).await;
        if fate.loses_reply {
            world.strike("node.reply_lost", self.index, || {
                format!("node {} does {kind} and its answer is lost", self.index)
            });
            if answer.is_ok() {
                world.mark("a broadcast is taken and its answer lost");
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

    fn identity(&self) -> Answer<'_, Identity> {
        Box::pin(self.call("get_version", false, |_| {
            Ok(Identity { chain_id: ChainId::MAINNET, version: "1.28.6".to_owned(), is_development: false })
        }))
    }

    fn head(&self) -> Answer<'_, Head> {
        let index = self.index;
        Box::pin(self.call("head", false, move |hive| {
            let view = hive.nodes[index].view.view(&hive.chain);
            let (block_id, time) = view.head();
            Ok(Head { block_id, time, irreversible_num: view.irreversible_num() })
        }))
    }

    fn blocks(&self, from: u32, count: u32) -> Answer<'_, Vec<Block>> {
        let index = self.index;
        Box::pin(self.call("get_block_range", false, move |hive| {
            let view = hive.nodes[index].view.view(&hive.chain);
            let blocks = (from..from.saturating_add(count)).map_while(|number| view.block(number));
            Ok(blocks.map(|block| block.neutral()).collect())
        }))
    }

    fn virtual_operations(&self, block_num: u32) -> Answer<'_, Option<VirtualOperations>> {
        let now_ms = self.world.now_ms();
        let told = |hive: &Hive| {
            let node = &hive.nodes[self.index];
            if now_ms < node.down_until {
                return Err(NodeError::Unreachable("connection refused".to_owned()));
            }
            let view = node.view.view(&hive.chain);
            let block = (block_num <= view.irreversible_num()).then(|| view.block(block_num)).flatten();
            Ok(block.map(|block| VirtualOperations { transfers: block.virtual_transfers(), ..Default::default() }))
        };
        // Nothing waits for these: each block is asked for once, and they are rare.
        Box::pin(std::future::ready(told(&self.world.hive())))
    }

    fn history(&self, account: AccountName, (from, to): (Timestamp, Timestamp)) -> Answer<'_, Vec<Transfer>> {
        let now_ms = self.world.now_ms();
        let told = |hive: &Hive| {
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
        // Nothing waits for it either.
        Box::pin(std::future::ready(told(&self.world.hive())))
    }

    fn accounts(&self, names: Vec<AccountName>) -> Answer<'_, Vec<Account>> {
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
                        Money::new(units(account.balance(Pot::Hive).units), Currency::Hive),
                        Money::new(units(account.balance(Pot::Hbd).units), Currency::Hbd),
                    ],
                })
                .collect())
        }))
    }

    fn find_transaction(&self, tx_id: TxId, expiration: Timestamp) -> Answer<'_, TxStatus> {
        let (index, now_ms) = (self.index, self.world.now_ms());
        Box::pin(self.call("find_transaction", false, move |hive| {
            let state = &hive.nodes[index];
            let view = state.view.view(&hive.chain);
            let has_heard = hive.has_heard(index, tx_id, now_ms);
            Ok(match hive.chain.status(tx_id, Some(expiration)) {
                Status::Unknown | Status::WithinMempool if state.keeps(tx_id, hive) => TxStatus::InMempool,
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
            })
        }))
    }

    fn broadcast(&self, signed_json: String) -> Answer<'_, ()> {
        Box::pin(async move {
            let transaction = Transaction::parse(signed_json.as_bytes());
            let transaction = transaction.map_err(|error| NodeError::Unreadable(error.to_string()))?;
            let tx_id = self.world.hive().id_of(&transaction);
            self.world.alive().await;
            self.world.observe(|observer| observer.broadcasts(tx_id));
            self.world.event(Lane::Ledger, "broadcast", self.world.session_of_tx(tx_id), self.index as u64, || {
                format!("the engine hands {tx_id} to node {}", self.index)
            });
            let index = self.index;
            let world = Arc::clone(&self.world);
            self.call("broadcast_transaction", true, move |hive| {
                // Whoever asks for no more than a node's word gets a liar's, too.
                let view = hive.nodes[index].view.view(&hive.chain);
                let (swallows, refuses) = (view.swallows_broadcasts(), view.refuses_broadcasts());
                // Others have the block that it refers to: this node is behind, or lies.
                if refuses || !view.has_referred(&transaction) {
                    world.observe(|observer| observer.refused_wrongly(tx_id, index));
                }
                let taken = match (refuses, swallows) {
                    (true, _) => Err(Refused::Expired),
                    (false, true) => Ok(()),
                    (false, false) => hive.take(index, transaction, tx_id, world.now_ms()),
                };
                let has_it = matches!(taken, Ok(()) | Err(Refused::Duplicate));
                world.observe(|observer| observer.handed_to(tx_id, index, has_it));
                taken.map_err(|refused| refusal(&refused))
            })
            .await
        })
    }

    fn price(&self) -> Answer<'_, Option<HivePrice>> {
        let index = self.index;
        Box::pin(
            self.call("get_feed_history", false, move |hive| {
                Ok(Some(hive.nodes[index].view.view(&hive.chain).price()))
            }),
        )
    }

    fn hbd_price(&self) -> Answer<'_, Option<HbdPrice>> {
        let now_ms = self.world.now_ms();
        let hive = self.world.hive();
        let (node, market) = (&hive.nodes[self.index], hive.chain.market());
        let told = if now_ms < node.down_until {
            Err(NodeError::Unreachable("connection refused".to_owned()))
        } else {
            Ok(HbdPrice::of_market(node.view.view(&hive.chain).price(), market, market))
        };
        // Nothing waits for it.
        Box::pin(std::future::ready(told))
    }
}

impl NodeState {
    fn keeps(&self, tx_id: TxId, hive: &Hive) -> bool {
        self.kept.iter().any(|transaction| hive.id_of(transaction) == tx_id)
    }
}

impl Hive {
    /// Says whether a node has heard of what waits for a block.
    fn has_heard(&self, node: usize, tx_id: TxId, now_ms: u64) -> bool {
        self.heard.get(&tx_id).is_none_or(|(taken_by, at_ms)| {
            let later = GOSSIP_MS[usize::from(tx_id.0[node % tx_id.0.len()]) % GOSSIP_MS.len()];
            *taken_by == node || now_ms >= at_ms + later
        })
    }

    /// Hands a transaction to one node. A node that is behind judges it by the blocks that it has: it takes what is in
    /// a later block, and refuses what refers to one.
    fn take(&mut self, node: usize, transaction: Transaction, tx_id: TxId, now_ms: u64) -> Result<(), Refused> {
        let view = self.nodes[node].view.view(&self.chain);
        if !view.has_referred(&transaction) {
            return Err(Refused::Tapos { said: transaction.ref_block_prefix, expected: 0 });
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
        self.heard.entry(tx_id).or_insert((node, now_ms));
        Ok(())
    }
}

/// Puts a refusal into hived's words.
fn refusal(refused: &Refused) -> NodeError {
    let rendered = refused.render();
    NodeError::Rpc {
        code: i64::from(rendered.rpc_code),
        data_code: Some(i64::from(rendered.code)),
        name: rendered.name.to_owned(),
        message: rendered.message(),
    }
}
