//! Attacks on agents' payments, by a hand in the ledger or in the clock. Their numbers are those of the contract's list.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use actors::{
    Settled, Target, X402Request,
    environment::{Account, Identity, Node, NodeResponse, TxStatus},
};
use engine::{
    account::AccountName,
    hive::{Authority, Pack, Transaction},
    ids::PaymentId,
    ledger::{Block, Head, Transfer, TxId, VirtualOperations, memo_of},
    merchant::{RawUpdate, Update},
    money::{HbdPrice, HivePrice},
    payment::{ClaimFinality, Draft, State},
    x402::{ClaimOutcome, Reason},
};
use storage::Store;
use tokio::sync::oneshot;

use crate::{
    environment::{BEGIN, Ledger, Manner, ScriptedNode, TestEngine, draft, key_of, name},
    facilitated::requirements,
    store,
    x402::{id_of, op, payment_of, reason, request, settling, signed, until_broadcast},
};

/// A node that notes what it is asked, and can tell of other keys than it did.
struct Noting {
    node: ScriptedNode,
    store: Arc<dyn Store>,
    account_requests: AtomicU32,
    keys_are_new: AtomicBool,
    /// Whoever asks for accounts next waits for it.
    gate: Mutex<Option<oneshot::Receiver<()>>>,
    /// For each transaction handed in, whether its claim was stored by then.
    claimed_before: Mutex<Vec<bool>>,
}

impl Node for Noting {
    fn name(&self) -> &str {
        self.node.name()
    }

    fn identity(&self) -> NodeResponse<'_, Identity> {
        self.node.identity()
    }

    fn head(&self) -> NodeResponse<'_, Head> {
        self.node.head()
    }

    fn blocks(&self, from: u32, count: u32) -> NodeResponse<'_, Vec<Block>> {
        self.node.blocks(from, count)
    }

    fn virtual_operations(&self, block_num: u32) -> NodeResponse<'_, Option<VirtualOperations>> {
        self.node.virtual_operations(block_num)
    }

    fn history(
        &self,
        account: AccountName,
        span: (engine::time::Timestamp, engine::time::Timestamp),
    ) -> NodeResponse<'_, Vec<Transfer>> {
        self.node.history(account, span)
    }

    fn accounts(&self, names: Vec<AccountName>) -> NodeResponse<'_, Vec<Account>> {
        self.account_requests.fetch_add(1, Ordering::Relaxed);
        let gate = self.gate.lock().unwrap().take();
        Box::pin(async move {
            if let Some(gate) = gate {
                let _ = gate.await;
            }
            let mut accounts = self.node.accounts(names).await?;
            if self.keys_are_new.load(Ordering::Relaxed) {
                accounts.iter_mut().for_each(|account| account.active = Authority::of_key(key_of("new").public()));
            }
            Ok(accounts)
        })
    }

    fn find_transaction(&self, tx_id: TxId, expiration: engine::time::Timestamp) -> NodeResponse<'_, TxStatus> {
        self.node.find_transaction(tx_id, expiration)
    }

    fn broadcast(&self, signed_json: String) -> NodeResponse<'_, ()> {
        Box::pin(async move {
            let tx_id = Transaction::parse(signed_json.as_bytes()).unwrap().id(Pack::Legacy);
            let claimed = self.store.claim(tx_id).await.unwrap();
            self.claimed_before
                .lock()
                .unwrap()
                .push(claimed.is_some_and(|claimed| claimed.outcome == ClaimOutcome::Open));
            self.node.broadcast(signed_json).await
        })
    }

    fn price(&self) -> NodeResponse<'_, Option<HivePrice>> {
        self.node.price()
    }

    fn hbd_price(&self) -> NodeResponse<'_, Option<HbdPrice>> {
        self.node.hbd_price()
    }
}

/// An engine with a single node that counts its requests.
async fn noting(finality: ClaimFinality) -> (TestEngine, Arc<Noting>) {
    let mut test = TestEngine::prepared(store());
    test.settings.x402.finality = finality;
    let node = Arc::new(Noting {
        node: ScriptedNode { name: "one", ledger: Arc::clone(&test.ledger), omits_transfers: false },
        store: Arc::clone(&test.env.store),
        account_requests: AtomicU32::new(0),
        keys_are_new: AtomicBool::new(false),
        gate: Mutex::default(),
        claimed_before: Mutex::default(),
    });
    test.env.nodes = vec![Arc::clone(&node) as Arc<dyn Node>];
    test.start().await;
    (test, node)
}

#[tokio::test(start_paused = true)]
async fn attack_01_a_claim_is_stored_before_its_transaction_is_broadcast_and_survives_a_lost_reply() {
    let (test, node) = noting(ClaimFinality::InBlock).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let transaction = payment_of(&test, &payment, "agent");
    test.ledger.set_manner(Manner::SwallowsEverything);
    let first = settling(&test, request(payment.id, &transaction, "n-1"));
    until_broadcast(&test, &transaction).await;
    let foreign = X402Request {
        target: Target::Requirements(requirements("/a")),
        ..request(
            PaymentId::from_bits(0),
            &signed(vec![op("agent", "somebody", 1_000, "x402:n-2")], transaction.expiration, "agent"),
            "n-2",
        )
    };
    let second = settling(&test, foreign.clone());
    until_broadcast(&test, &foreign.payload.transaction).await;
    assert_eq!(reason(first.await.unwrap()), Reason::SettlementPending);
    assert_eq!(reason(second.await.unwrap()), Reason::SettlementPending);
    let claimed_before = node.claimed_before.lock().unwrap().clone();
    assert!(claimed_before.len() >= 2 && claimed_before.iter().all(|claimed| *claimed), "{claimed_before:?}");
    // The reply was lost: nobody may say that the transaction or its nonce is free again.
    let other = payment_of(&test, &*test.open(&merchant).await, "agent");
    assert_eq!(
        reason(test.engine().x402.settle(&request(payment.id, &other, "n-1")).await),
        Reason::DuplicateSettlement
    );
}

#[tokio::test(start_paused = true)]
async fn attack_02_a_concurrent_request_for_the_same_settlement_gets_the_same_result() {
    let (test, node) = noting(ClaimFinality::Accepted).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let transaction = payment_of(&test, &payment, "agent");
    let (open, gate) = oneshot::channel();
    *node.gate.lock().unwrap() = Some(gate);
    let slow = settling(&test, request(payment.id, &transaction, "n-1"));
    test.until("it looks", async || node.gate.lock().unwrap().is_none()).await;
    let fast = test.engine().x402.settle(&request(payment.id, &transaction, "n-1")).await.unwrap();
    assert_eq!(test.state(payment.id).await, State::Completed);
    open.send(()).unwrap();
    assert_eq!(slow.await.unwrap(), Ok(Settled { is_replay: true, ..fast }));
    assert_eq!(test.ledger.count_broadcasts(id_of(&transaction)), 1);
}

#[tokio::test(start_paused = true)]
async fn attack_10_a_session_whose_time_runs_out_while_it_is_settled_is_paid() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let draft = Draft { lifetime: Some(Duration::from_secs(60)), ..draft() };
    let payment = test.engine().payments.open(&merchant, draft, None).await.unwrap().payment;
    let transfer = op("agent", "blue.mugs", 1_000, &memo_of(payment.id));
    let transaction = signed(vec![transfer], test.engine().now() + Duration::from_secs(600), "agent");
    let payment_request = request(payment.id, &transaction, "n-1");
    let settlement = settling(&test, payment_request.clone());
    until_broadcast(&test, &transaction).await;
    // Final blocks pass the expiry, and the claimed transaction still waits for one.
    test.ledger.produce_at(BEGIN + 300, Vec::new());
    test.ledger.settle();
    assert_eq!(reason(settlement.await.unwrap()), Reason::SettlementPending);
    assert!(matches!(test.state(payment.id).await, State::Pending | State::Processing));
    test.ledger.produce_mempool();
    test.ledger.settle();
    test.until_state(payment.id, State::Completed).await;
    assert_eq!(test.engine().x402.settle(&payment_request).await.unwrap().tx_id, id_of(&transaction));
    // Without a claim the same time ends a session.
    let late = payment_of(&test, &payment, "other");
    assert_eq!(reason(test.engine().x402.settle(&request(payment.id, &late, "n-2")).await), Reason::SessionNotPending);
}

#[tokio::test(start_paused = true)]
async fn attack_11_what_is_switched_off_after_the_verdict_is_not_settled_and_after_the_claim_it_is() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let set = async |enabled| {
        let raw = RawUpdate { x402_enabled: Some(enabled), ..RawUpdate::default() };
        test.engine().merchants.update(merchant.id, Update::check(raw, false).unwrap()).await.unwrap();
    };
    let payment = test.open(&merchant).await;
    let transaction = payment_of(&test, &payment, "agent");
    let payment_request = request(payment.id, &transaction, "n-1");
    assert_eq!(test.engine().x402.verify(&payment_request).await, Ok(name("agent")));
    set(false).await;
    assert_eq!(reason(test.engine().x402.settle(&payment_request).await), Reason::X402Disabled);
    assert_eq!(test.ledger.count_broadcasts(id_of(&transaction)), 0);
    set(true).await;
    let settlement = settling(&test, payment_request);
    until_broadcast(&test, &transaction).await;
    set(false).await;
    test.ledger.produce_mempool();
    assert_eq!(settlement.await.unwrap().unwrap().tx_id, id_of(&transaction));
    assert_eq!(test.state(payment.id).await, State::Completed);
}

#[tokio::test(start_paused = true)]
async fn attack_15_a_node_that_lies_about_blocks_completes_nothing() {
    let mut test = TestEngine::prepared(store());
    let liars = Ledger::new();
    let node = |name, ledger: &Arc<Ledger>| {
        Arc::new(ScriptedNode { name, ledger: Arc::clone(ledger), omits_transfers: false }) as Arc<dyn Node>
    };
    test.env.nodes = vec![node("liar", &liars), node("one", &test.ledger), node("two", &test.ledger)];
    test.start().await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let transaction = payment_of(&test, &payment, "agent");
    let payment_request = request(payment.id, &transaction, "n-1");
    let settlement = settling(&test, payment_request.clone());
    test.until("the liar has it", async || liars.count_broadcasts(id_of(&transaction)) > 0).await;
    // The liar puts it into a block that it calls final; nobody else has that block.
    liars.produce_mempool();
    liars.settle();
    test.ledger.produce(Vec::new());
    test.ledger.settle();
    assert_eq!(reason(settlement.await.unwrap()), Reason::SettlementPending);
    test.until_state(payment.id, State::Processing).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(test.state(payment.id).await, State::Processing);
    assert_eq!(test.receiver.statuses(), ["processing"]);
    // What the others have in a block has happened.
    if test.ledger.count_broadcasts(id_of(&transaction)) == 0 {
        test.env.nodes[1].broadcast(transaction.to_condenser_json()).await.unwrap();
    }
    test.ledger.produce_mempool();
    test.ledger.settle();
    test.until_state(payment.id, State::Completed).await;
}

#[tokio::test(start_paused = true)]
async fn attack_16_keys_are_believed_for_thirty_seconds_and_complete_nothing() {
    let (test, node) = noting(ClaimFinality::InBlock).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let transaction = payment_of(&test, &payment, "agent");
    let payment_request = request(payment.id, &transaction, "n-1");
    let requests = || node.account_requests.load(Ordering::Relaxed);
    let before = requests();
    assert_eq!(test.engine().x402.verify(&payment_request).await, Ok(name("agent")));
    node.keys_are_new.store(true, Ordering::Relaxed);
    assert_eq!(test.engine().x402.verify(&payment_request).await, Ok(name("agent")));
    assert_eq!(requests(), before + 1, "the second verdict cost no question");
    // What was believed of the key does not settle: the chain has the last word.
    test.ledger.set_manner(Manner::Refuses(3_010_000, "missing required active authority"));
    assert_eq!(reason(test.engine().x402.settle(&payment_request).await), Reason::Authority);
    assert_eq!(test.state(payment.id).await, State::Pending);
    tokio::time::sleep(Duration::from_secs(31)).await;
    let fresh = payment_of(&test, &payment, "agent");
    assert_eq!(reason(test.engine().x402.settle(&request(payment.id, &fresh, "n-2")).await), Reason::Authority);
    assert_eq!(test.ledger.count_broadcasts(id_of(&fresh)), 0, "the new key is known by now");
}

#[tokio::test(start_paused = true)]
async fn attack_24_forged_requirements_can_only_pay_the_account_that_the_payer_signed() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let soon = test.engine().now() + Duration::from_secs(60);
    let payment_request = |to: &str, memo: &str| X402Request {
        target: Target::Requirements(requirements("/forged")),
        ..request(PaymentId::from_bits(0), &signed(vec![op("agent", to, 1_000, memo)], soon, "agent"), "n-1")
    };
    let cases = [
        (payment_request("blue.mugs", "x402:n-1"), Reason::RecipientMismatch),
        (payment_request("somebody", &memo_of(payment.id)), Reason::MemoMismatch),
        (payment_request("somebody", "x402:other"), Reason::MemoMismatch),
    ];
    for (payment_request, wanted) in cases {
        assert_eq!(reason(test.engine().x402.settle(&payment_request).await), wanted);
        assert_eq!(test.ledger.count_broadcasts(id_of(&payment_request.payload.transaction)), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn attack_29_what_can_be_refused_without_a_node_costs_no_question() {
    let (test, node) = noting(ClaimFinality::InBlock).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let soon = test.engine().now() + Duration::from_secs(60);
    let memo = memo_of(payment.id);
    let before = node.account_requests.load(Ordering::Relaxed);
    for (to, units, memo) in [("red.mugs", 1_000, &*memo), ("blue.mugs", 999, &memo), ("blue.mugs", 1_000, "x")] {
        let transaction = signed(vec![op("agent", to, units, memo)], soon, "agent");
        test.engine().x402.verify(&request(payment.id, &transaction, "n-1")).await.unwrap_err();
    }
    let late = signed(vec![op("agent", "blue.mugs", 1_000, &memo)], test.engine().now(), "agent");
    test.engine().x402.verify(&request(payment.id, &late, "n-1")).await.unwrap_err();
    assert_eq!(node.account_requests.load(Ordering::Relaxed), before);
    // An account that does not exist is asked for once, however often it is named in a moment.
    for _ in 0..50 {
        let transaction = signed(vec![op("nobody", "blue.mugs", 1_000, &memo)], soon, "nobody");
        let refused = test.engine().x402.settle(&request(payment.id, &transaction, "n-1")).await;
        assert_eq!(reason(refused), Reason::AccountNotFound);
    }
    assert_eq!(node.account_requests.load(Ordering::Relaxed), before + 1);
}

#[tokio::test(start_paused = true)]
async fn attack_32_a_clock_that_is_behind_the_ledger_lets_no_expired_payment_out() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let transaction = payment_of(&test, &payment, "agent");
    test.ledger.produce_at(BEGIN + 600, Vec::new());
    test.until("the head is seen", async || test.engine().now().seconds() >= BEGIN + 600).await;
    assert!(test.env.clock.now().seconds() < BEGIN + 60, "our own clock says that there is time");
    let refused = test.engine().x402.settle(&request(payment.id, &transaction, "n-1")).await;
    assert_eq!(reason(refused), Reason::PaymentExpired);
    assert_eq!(test.ledger.count_broadcasts(id_of(&transaction)), 0);
}
