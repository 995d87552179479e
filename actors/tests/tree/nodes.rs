//! Nodes that lie, disagree, or are not there.

use std::{sync::Arc, time::Duration};

use actors::{GatewayError, Tree, environment::Node};
use engine::{merchant::Registration, payment::State};

use crate::{
    store,
    world::{ScriptedNode, World, draft, name, transfer},
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
    let scanned = world.gateway().health().await.unwrap().ledger.scanned_num;
    assert_eq!((world.state(payment.id).await, scanned), (State::Pending, 1));
}

#[tokio::test(start_paused = true)]
async fn without_nodes_the_engine_keeps_working_and_catches_up() {
    let world = World::started(store()).await;
    let merchant = world.merchant().await;
    world.ledger.set_down(true);
    let payment = world.open(&merchant).await;
    let registration = Registration::check("Red Mugs", "red.mugs", None).unwrap();
    let refused = world.gateway().register(registration, false).await;
    assert!(matches!(refused, Err(GatewayError::LedgerUnavailable)), "nobody can say whether the account exists");
    world.until("it is noticed", async || !world.gateway().health().await.unwrap().ledger.is_reachable).await;
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
    let refused = world.gateway().open_payment(&merchant, draft(), None).await;
    assert_eq!(refused, Err(GatewayError::LedgerUnavailable), "a transfer before the first block read would be missed");
    world.ledger.set_down(false);
    world.until("it is reached", async || world.gateway().health().await.unwrap().is_following).await;
    world.gateway().open_payment(&merchant, draft(), None).await.unwrap();
}

fn engine_merchant() -> engine::merchant::Merchant {
    let registration = Registration::check("Blue Mugs", "blue.mugs", None).unwrap();
    let credentials = engine::merchant::Credentials {
        id: engine::ids::MerchantId::from_bits(1),
        key_id: engine::ids::KeyId::from_bits(2),
        api_key: "sk_live_x",
        secret: engine::webhook::Secret::from_random([1; 32]),
    };
    engine::merchant::Merchant::register(registration, credentials, false, engine::time::Timestamp::EPOCH)
}
