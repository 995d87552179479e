//! Nodes that lie, disagree, or are not there.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use actors::{
    EngineError, Tree,
    environment::{Account, Answer, Identity, Node, NodeError, TxStatus},
};
use engine::{
    account::AccountName,
    ledger::{Block, Head, Transfer, TxId, VirtualOperations},
    merchant::Registration,
    money::{HbdPrice, HivePrice},
    payment::State,
    time::Timestamp,
};

use crate::{
    store,
    world::{Ledger, ScriptedNode, World, draft, name, transfer},
};

impl World {
    /// Gives the engine these nodes instead of one: each with its name, and whether it hides transfers.
    pub(crate) fn has_nodes<const N: usize>(&mut self, nodes: [(&'static str, bool); N]) {
        let node = |(name, omits_transfers)| -> Arc<dyn Node> {
            Arc::new(ScriptedNode { name, ledger: Arc::clone(&self.ledger), omits_transfers })
        };
        self.env.nodes = nodes.map(node).to_vec();
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_hides_a_transfer_is_outvoted() {
    let mut world = World::prepared(store());
    world.has_nodes([("liar", true), ("two", false), ("three", false)]);
    world.start().await;
    let merchant = world.merchant().await;
    let payment = world.open(&merchant).await;
    world.pay(payment.id);
    world.until_state(payment.id, State::Completed).await;
}

/// A node whose answers take a while, which counts how often it is asked for blocks.
struct Delayed {
    node: ScriptedNode,
    delay: Duration,
    asked_for_blocks: AtomicUsize,
}

impl Delayed {
    fn later<'a, T: Send + 'a>(&self, answer: Answer<'a, T>) -> Answer<'a, T> {
        let delay = self.delay;
        Box::pin(async move {
            tokio::time::sleep(delay).await;
            answer.await
        })
    }
}

impl Node for Delayed {
    fn name(&self) -> &str {
        self.node.name
    }

    fn identity(&self) -> Answer<'_, Identity> {
        self.node.identity()
    }

    fn head(&self) -> Answer<'_, Head> {
        self.later(self.node.head())
    }

    fn blocks(&self, from: u32, count: u32) -> Answer<'_, Vec<Block>> {
        self.asked_for_blocks.fetch_add(1, Ordering::Relaxed);
        self.later(self.node.blocks(from, count))
    }

    fn virtual_operations(&self, block_num: u32) -> Answer<'_, Option<VirtualOperations>> {
        self.later(self.node.virtual_operations(block_num))
    }

    fn history(&self, account: AccountName, span: (Timestamp, Timestamp)) -> Answer<'_, Vec<Transfer>> {
        self.later(self.node.history(account, span))
    }

    fn accounts(&self, names: Vec<AccountName>) -> Answer<'_, Vec<Account>> {
        self.later(self.node.accounts(names))
    }

    fn find_transaction(&self, tx_id: TxId, expiration: Timestamp) -> Answer<'_, TxStatus> {
        self.later(self.node.find_transaction(tx_id, expiration))
    }

    fn broadcast(&self, signed_json: String) -> Answer<'_, ()> {
        self.later(self.node.broadcast(signed_json))
    }

    fn price(&self) -> Answer<'_, Option<HivePrice>> {
        self.later(self.node.price())
    }

    fn hbd_price(&self) -> Answer<'_, Option<HbdPrice>> {
        self.later(self.node.hbd_price())
    }
}

#[tokio::test(start_paused = true)]
async fn blocks_are_read_from_the_fastest_nodes_wherever_the_slow_one_stands() {
    for slow in 0..3 {
        let mut world = World::prepared(store());
        let delayed = |place: usize| {
            let node = ScriptedNode { name: "one", ledger: Arc::clone(&world.ledger), omits_transfers: false };
            let delay = Duration::from_millis(if place == slow { 400 } else { 20 });
            Arc::new(Delayed { node, delay, asked_for_blocks: AtomicUsize::new(0) })
        };
        let nodes = [0, 1, 2].map(delayed);
        world.env.nodes = nodes.iter().map(|node| Arc::clone(node) as Arc<dyn Node>).collect();
        world.start().await;
        let merchant = world.merchant().await;
        let asked = || nodes.each_ref().map(|node| node.asked_for_blocks.load(Ordering::Relaxed));
        tokio::time::sleep(Duration::from_secs(10)).await;
        let before = asked();
        let payment = world.open(&merchant).await;
        world.pay(payment.id);
        world.until_state(payment.id, State::Completed).await;
        let more = [0, 1, 2].map(|place| asked()[place] - before[place]);
        assert!((0..3).all(|place| (more[place] > 0) == (place != slow)), "slow at place {slow}: asked {more:?} times");
    }
}

/// A node that limits the rate of requests for a minute, and counts them.
struct Limited {
    node: ScriptedNode,
    until: tokio::time::Instant,
    asked_for_identity: AtomicUsize,
}

impl Node for Limited {
    fn name(&self) -> &str {
        "limited"
    }

    fn identity(&self) -> Answer<'_, Identity> {
        self.asked_for_identity.fetch_add(1, Ordering::Relaxed);
        let retry_after = Some(self.until.saturating_duration_since(tokio::time::Instant::now()));
        match retry_after {
            Some(Duration::ZERO) => self.node.identity(),
            _ => Box::pin(std::future::ready(Err(NodeError::RateLimited { retry_after }))),
        }
    }

    fn head(&self) -> Answer<'_, Head> {
        self.node.head()
    }

    fn blocks(&self, from: u32, count: u32) -> Answer<'_, Vec<Block>> {
        self.node.blocks(from, count)
    }

    fn virtual_operations(&self, block_num: u32) -> Answer<'_, Option<VirtualOperations>> {
        self.node.virtual_operations(block_num)
    }

    fn history(&self, account: AccountName, span: (Timestamp, Timestamp)) -> Answer<'_, Vec<Transfer>> {
        self.node.history(account, span)
    }

    fn accounts(&self, names: Vec<AccountName>) -> Answer<'_, Vec<Account>> {
        self.node.accounts(names)
    }

    fn find_transaction(&self, tx_id: TxId, expiration: Timestamp) -> Answer<'_, TxStatus> {
        self.node.find_transaction(tx_id, expiration)
    }

    fn broadcast(&self, signed_json: String) -> Answer<'_, ()> {
        self.node.broadcast(signed_json)
    }

    fn price(&self) -> Answer<'_, Option<HivePrice>> {
        self.node.price()
    }

    fn hbd_price(&self) -> Answer<'_, Option<HbdPrice>> {
        self.node.hbd_price()
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_limits_the_rate_while_the_engine_starts_is_left_alone() {
    let mut world = World::prepared(store());
    let scripted = |name| ScriptedNode { name, ledger: Arc::clone(&world.ledger), omits_transfers: false };
    let until = tokio::time::Instant::now() + Duration::from_secs(60);
    let limited = Arc::new(Limited { node: scripted("limited"), until, asked_for_identity: AtomicUsize::new(0) });
    let others = ["two", "three"].map(|name| Arc::new(scripted(name)) as Arc<dyn Node>);
    world.env.nodes = [Arc::clone(&limited) as Arc<dyn Node>].into_iter().chain(others).collect();
    world.start().await;
    tokio::time::sleep_until(until - Duration::from_secs(1)).await;
    assert_eq!(limited.asked_for_identity.load(Ordering::Relaxed), 1, "asked at the start only");
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(limited.asked_for_identity.load(Ordering::Relaxed), 2, "asked again afterwards");
}

#[tokio::test(start_paused = true)]
async fn of_three_nodes_one_that_hides_what_came_by_itself_is_outvoted() {
    let mut world = World::prepared(store());
    world.has_nodes([("liar", true), ("one", false), ("two", false)]);
    world.start().await;
    let _merchant = world.merchant().await;
    world.ledger.produce(vec![]);
    world.ledger.pay_otherwise(transfer("alice", "blue.mugs", 5, ""), transfer("bob", "somebody", 6, ""));
    world.ledger.settle();
    let kept = async || world.env.store.unmatched(name("blue.mugs"), 10).await.unwrap();
    world.until("it is kept", async || kept().await.len() == 1).await;
    assert_eq!(kept().await[0].transfer.money.units, 5);
}

#[tokio::test(start_paused = true)]
async fn while_nodes_disagree_nothing_is_believed() {
    let mut world = World::prepared(store());
    world.has_nodes([("one", true), ("two", false)]);
    world.settings.min_agreeing_nodes = 2;
    world.start().await;
    let merchant = world.merchant().await;
    let payment = world.open(&merchant).await;
    world.pay(payment.id);
    tokio::time::sleep(Duration::from_secs(600)).await;
    let scanned = world.engine().operations.health().await.unwrap().ledger.scanned_num;
    assert_eq!((world.state(payment.id).await, scanned), (State::Pending, 1));
}

#[tokio::test(start_paused = true)]
async fn without_nodes_the_engine_keeps_working_and_catches_up() {
    let world = World::started(store()).await;
    let merchant = world.merchant().await;
    world.ledger.set_down(true);
    let payment = world.open(&merchant).await;
    let registration = Registration::check("Red Mugs", "red.mugs", None).unwrap();
    let refused = world.engine().merchants.register(registration, false).await;
    assert!(matches!(refused, Err(EngineError::LedgerUnavailable)), "nobody can say whether the account exists");
    world.until("it is noticed", async || !world.engine().operations.health().await.unwrap().ledger.is_reachable).await;
    world.pay(payment.id);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(world.state(payment.id).await, State::Pending);
    world.ledger.set_down(false);
    world.until_state(payment.id, State::Completed).await;
}

#[tokio::test(start_paused = true)]
async fn before_the_chain_was_ever_reached_no_payment_is_taken() {
    let mut world = World::prepared(store());
    world.ledger.set_down(true);
    world.tree = Some(Tree::start(world.env.clone(), world.settings.clone()).await.unwrap());
    let merchant = engine_merchant();
    let refused = world.engine().payments.open(&merchant, draft(), None).await;
    assert_eq!(refused, Err(EngineError::LedgerUnavailable), "a transfer before the first block read would be missed");
    world.ledger.set_down(false);
    world.until("it is reached", async || world.engine().operations.health().await.unwrap().is_following).await;
    world.engine().payments.open(&merchant, draft(), None).await.unwrap();
}

impl Ledger {
    /// Gives every block another id: the nodes serve another chain, and the first one again after a second call.
    pub(crate) fn switch_chain(&self) {
        for block in &mut self.inner.lock().unwrap().blocks {
            block.id.0[10] ^= 1;
            block.previous.0[10] ^= 1;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_of_another_chain_are_not_followed_and_take_no_payment() {
    let world = World::started(store()).await;
    let merchant = world.merchant().await;
    let payment = world.open(&merchant).await;
    let health = async || world.engine().operations.health().await.unwrap();
    world.ledger.switch_chain();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(health().await.is_following, "no irreversible block contradicts the one read before");
    world.pay(payment.id);
    world.until("it is noticed", async || !health().await.is_following).await;
    assert!(health().await.ledger.is_reachable);
    let refused = world.engine().payments.open(&merchant, draft(), None).await;
    assert_eq!(refused, Err(EngineError::LedgerUnavailable), "no transfer would complete it");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!((health().await.is_following, world.state(payment.id).await), (false, State::Pending));
    world.ledger.switch_chain();
    world.until_state(payment.id, State::Completed).await;
    assert!(health().await.is_following);
    world.open(&merchant).await;
}

#[tokio::test(start_paused = true)]
async fn one_contradiction_of_a_node_is_no_other_chain() {
    let world = World::started(store()).await;
    world.ledger.switch_chain();
    world.ledger.produce(vec![]);
    world.ledger.settle();
    tokio::time::sleep(world.settings.poll_interval * 3 / 2).await;
    assert!(world.engine().operations.health().await.unwrap().is_following);
    world.ledger.switch_chain();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let health = world.engine().operations.health().await.unwrap();
    assert_eq!((health.is_following, health.ledger.scanned_num), (true, 2));
}

fn engine_merchant() -> engine::merchant::Merchant {
    let registration = Registration::check("Blue Mugs", "blue.mugs", None).unwrap();
    let credentials = engine::merchant::Credentials {
        id: engine::ids::MerchantId::from_bits(1),
        key_id: engine::ids::KeyId::from_bits(2),
        api_key: "sk_live_x",
        secret: engine::webhook::Secret::from_random([1; 32]),
    };
    engine::merchant::Merchant::register(registration, credentials, false, Timestamp::EPOCH)
}
