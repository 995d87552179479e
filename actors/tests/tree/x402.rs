//! Agents' payments: claimed before they are broadcast, settled once, whatever is lost on the way.

use std::{sync::Arc, time::Duration};

use actors::{Settled, Target, X402Error, X402Request};
use engine::{
    hive::{Asset, ChainId, Operation, Pack, Symbol, Transaction, Transfer as TransferOp},
    ids::PaymentId,
    ledger::{TxId, memo_of},
    money::FeePercent,
    payment::{FeeMode, Payment, State},
    time::Timestamp,
    x402::{PaymentPayload, Reason, Version},
};

use crate::{
    environment::{Manner, TestEngine, key_of, name},
    facilitated::requirements,
    store,
};

/// A transfer of HBD.
pub(crate) fn op(from: &str, to: &str, units: i64, memo: &str) -> Operation {
    let amount = Asset { units, symbol: Symbol::Hbd };
    Operation::Transfer(TransferOp { from: from.to_owned(), to: to.to_owned(), amount, memo: memo.to_owned() })
}

pub(crate) fn signed(operations: Vec<Operation>, expiration: Timestamp, signer: &str) -> Transaction {
    let mut transaction = Transaction {
        ref_block_num: 1,
        ref_block_prefix: 2,
        expiration: Timestamp::from_seconds(expiration.seconds()),
        operations,
        signatures: Vec::new(),
    };
    transaction.sign(ChainId::MAINNET, Pack::Legacy, &key_of(signer));
    transaction
}

pub(crate) fn request(id: PaymentId, transaction: &Transaction, nonce: &str) -> X402Request {
    let payload = PaymentPayload {
        version: Version::V1,
        transaction: transaction.clone(),
        nonce: nonce.to_owned(),
        identifier: None,
        accepted: None,
    };
    X402Request { target: Target::Session(id), payload }
}

pub(crate) fn payment_of(test: &TestEngine, payment: &Payment, signer: &str) -> Transaction {
    let transfer = op(signer, "blue.mugs", 1_000, &memo_of(payment.id));
    signed(vec![transfer], test.engine().now() + Duration::from_secs(60), signer)
}

pub(crate) fn reason(settlement: Result<Settled, X402Error>) -> Reason {
    match settlement {
        Err(X402Error::Refused(refused)) => refused.reason,
        other => panic!("not a refusal: {other:?}"),
    }
}

pub(crate) fn id_of(transaction: &Transaction) -> TxId {
    transaction.id(Pack::Legacy)
}

/// The transfers of a transaction, under the id its legacy signature holds for.
pub(crate) fn transfers_of(transaction: &Transaction) -> Vec<engine::ledger::Transfer> {
    let tx_id = transaction.id(Pack::Legacy);
    let read = |operation: &Operation| match operation {
        Operation::Transfer(op) => {
            let money = op.amount.money().unwrap();
            engine::ledger::Transfer { tx_id, money, ..crate::transfer(&op.from, &op.to, money.units, &op.memo) }
        }
        _ => panic!("only transfers here"),
    };
    transaction.operations.iter().map(read).collect()
}

/// Settles beside the test.
pub(crate) fn settling(test: &TestEngine, request: X402Request) -> tokio::task::JoinHandle<Result<Settled, X402Error>> {
    let engine = test.engine();
    tokio::spawn(async move { engine.x402.settle(&request).await })
}

pub(crate) async fn until_broadcast(test: &TestEngine, transaction: &Transaction) {
    let tx_id = id_of(transaction);
    test.until("it is handed in", async || test.ledger.count_broadcasts(tx_id) > 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_signed_payment_is_claimed_broadcast_and_completes_in_a_block() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let transaction = payment_of(&test, &payment, "agent");
    let request = request(payment.id, &transaction, "n-1");
    assert_eq!(test.engine().x402.verify(&request).await, Ok(name("agent")));
    assert_eq!(test.ledger.count_broadcasts(id_of(&transaction)), 0, "verifying sends nothing");
    let settlement = settling(&test, request.clone());
    until_broadcast(&test, &transaction).await;
    assert_eq!(test.state(payment.id).await, State::Pending, "in the mempool is not in a block");
    test.ledger.produce_mempool();
    let settled = settlement.await.unwrap().unwrap();
    assert_eq!((settled.tx_id, settled.payer.as_str()), (id_of(&transaction), "agent"));
    assert_eq!(test.state(payment.id).await, State::Completed);
    let again = test.engine().x402.settle(&request).await.unwrap();
    assert_eq!((again.tx_id, again.payer), (settled.tx_id, settled.payer), "the same answer for the same payment");
    assert_eq!(
        test.engine().x402.verify(&request).await.unwrap_err().to_string().split(':').next(),
        Some("duplicate_settlement")
    );
    test.ledger.settle();
    test.until("the claim is let go", async || test.env.store.in_flight().await.unwrap().is_empty()).await;
    test.until("it is delivered", async || test.receiver.count() == 1).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(test.receiver.statuses(), ["completed"]);
    assert_eq!(test.ledger.count_on_chain(settled.tx_id), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_settles_of_one_transaction_are_one_success_returned_a_hundred_times() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let transaction = payment_of(&test, &payment, "agent");
    let settlements: Vec<_> = (0..100).map(|_| settling(&test, request(payment.id, &transaction, "n-1"))).collect();
    until_broadcast(&test, &transaction).await;
    test.ledger.produce_mempool();
    test.ledger.settle();
    for settlement in settlements {
        assert_eq!(settlement.await.unwrap().unwrap().tx_id, id_of(&transaction));
    }
    assert_eq!(test.ledger.count_on_chain(id_of(&transaction)), 1);
    test.until("it is delivered", async || test.receiver.count() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn attack_03_two_payers_of_one_session_and_the_loser_keeps_its_money() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let (first, second) = (payment_of(&test, &payment, "agent"), payment_of(&test, &payment, "other"));
    let winner = settling(&test, request(payment.id, &first, "n-1"));
    until_broadcast(&test, &first).await;
    let lost = reason(test.engine().x402.settle(&request(payment.id, &second, "n-2")).await);
    assert_eq!(lost, Reason::DuplicateSettlement);
    assert_eq!(test.ledger.count_broadcasts(id_of(&second)), 0, "refused before it was broadcast");
    test.ledger.produce_mempool();
    winner.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn attack_02_one_transaction_or_one_nonce_pays_one_session() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let (a, b) = (test.open(&merchant).await, test.open(&merchant).await);
    // An unbound memo could pay either.
    let nonce = "0123456789abcdef0123456789abcdef";
    let transfer = op("agent", "blue.mugs", 1_000, &format!("x402:{nonce}"));
    let transaction = signed(vec![transfer], test.engine().now() + Duration::from_secs(60), "agent");
    let settlement = settling(&test, request(a.id, &transaction, nonce));
    until_broadcast(&test, &transaction).await;
    let second = reason(test.engine().x402.settle(&request(b.id, &transaction, nonce)).await);
    assert_eq!(second, Reason::DuplicateSettlement);
    test.ledger.produce_mempool();
    test.ledger.settle();
    settlement.await.unwrap().unwrap();
    let other = payment_of(&test, &b, "agent");
    assert_eq!(reason(test.engine().x402.settle(&request(b.id, &other, nonce)).await), Reason::DuplicateSettlement);
    test.until("the scanner has read it", async || test.env.store.in_flight().await.unwrap().is_empty()).await;
    let unmatched = test.env.store.unmatched(name("blue.mugs"), 9).await.unwrap();
    assert!(unmatched.is_empty(), "the scanner knows it by its id: {unmatched:?}");
    assert_eq!(test.state(b.id).await, State::Pending);
}

#[tokio::test(start_paused = true)]
async fn attack_06_a_used_nonce_does_not_disclose_its_transaction() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let (first, second) = (payment_of(&test, &payment, "agent"), payment_of(&test, &payment, "other"));
    let settlement = settling(&test, request(payment.id, &first, "n-1"));
    until_broadcast(&test, &first).await;
    test.ledger.produce_mempool();
    settlement.await.unwrap().unwrap();
    assert_eq!(
        reason(test.engine().x402.settle(&request(payment.id, &second, "n-1")).await),
        Reason::DuplicateSettlement
    );
    let soon = test.engine().now() + Duration::from_secs(60);
    let payment_request = |units: i64| X402Request {
        target: Target::Requirements(requirements("/a")),
        ..request(payment.id, &signed(vec![op("agent", "somebody", units, "x402:n-2")], soon, "agent"), "n-2")
    };
    let settlement = settling(&test, payment_request(1_000));
    until_broadcast(&test, &payment_request(1_000).payload.transaction).await;
    test.ledger.produce_mempool();
    assert_eq!(reason(test.engine().x402.settle(&payment_request(1_001)).await), Reason::DuplicateSettlement);
    settlement.await.unwrap().expect("the claimed one is reported to whoever presents it");
}

#[tokio::test(start_paused = true)]
async fn an_unbound_payment_shown_many_times_at_once_is_one_success_for_all() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let nonce = "0123456789abcdef0123456789abcdef";
    let transfer = op("agent", "blue.mugs", 1_000, &format!("x402:{nonce}"));
    let transaction = signed(vec![transfer], test.engine().now() + Duration::from_secs(60), "agent");
    let mut settlements = Vec::new();
    for _ in 0..20 {
        settlements.push(settling(&test, request(payment.id, &transaction, nonce)));
        // Some look before it is claimed, some between, some when it is on its way.
        tokio::task::yield_now().await;
    }
    until_broadcast(&test, &transaction).await;
    test.ledger.produce_mempool();
    for settlement in settlements {
        assert_eq!(settlement.await.unwrap().unwrap().tx_id, id_of(&transaction));
    }
}

#[tokio::test(start_paused = true)]
async fn attack_05_an_earlier_transfer_without_a_session_pays_nothing() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let nonce = "0123456789abcdef0123456789abcdef";
    let transfer = op("agent", "blue.mugs", 1_000, &format!("x402:{nonce}"));
    let transaction = signed(vec![transfer], test.engine().now() + Duration::from_secs(60), "agent");
    test.env.nodes[0].broadcast(transaction.to_condenser_json()).await.unwrap();
    let stolen = test.engine().x402.settle(&request(payment.id, &transaction, nonce)).await;
    assert_eq!(reason(stolen), Reason::DuplicateSettlement);
    assert_eq!(test.env.store.claim(id_of(&transaction)).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn attack_05_a_transfer_that_a_wallet_sent_pays_and_has_no_receipt() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    for seen in ["in no block", "in a block", "for good"] {
        let payment = test.open(&merchant).await;
        let transaction = payment_of(&test, &payment, "agent");
        test.env.nodes[0].broadcast(transaction.to_condenser_json()).await.unwrap();
        if seen != "in no block" {
            test.ledger.produce_mempool();
            test.until("it is seen", async || test.engine().payments.any(payment.id).await.unwrap().seen_units() > 0)
                .await;
        }
        if seen == "for good" {
            test.ledger.settle();
            test.until_state(payment.id, State::Completed).await;
        }
        let payment_request =
            |transaction: &Transaction| request(payment.id, transaction, &format!("n-{}", payment.id));
        let settle =
            async |transaction: &Transaction| match test.engine().x402.settle(&payment_request(transaction)).await {
                Err(X402Error::Refused(refused)) => refused,
                other => panic!("{seen}: {other:?}"),
            };
        // Its payer learns that it counts; who read it off the chain and cannot sign it learns nothing.
        let refused = settle(&transaction).await;
        assert_eq!((refused.reason, refused.tx_id), (Reason::DuplicateSettlement, Some(id_of(&transaction))), "{seen}");
        assert_eq!(refused.payer, Some(name("agent")));
        let mut stripped = transaction.clone();
        stripped.signatures.clear();
        let mut forged = stripped.clone();
        forged.sign(ChainId::MAINNET, Pack::Legacy, &key_of("other"));
        for stolen in [stripped, forged] {
            let refused = settle(&stolen).await;
            assert_eq!((refused.payer, refused.tx_id), (None, None), "{seen}: {refused}");
        }
        assert_eq!(test.env.store.claim(id_of(&transaction)).await.unwrap(), None);
        test.ledger.produce_mempool();
        test.ledger.settle();
        test.until_state(payment.id, State::Completed).await;
        let payment = test.engine().payments.any(payment.id).await.unwrap();
        assert_eq!((payment.transfers.len(), payment.overpaid_units()), (1, 0), "{seen}");
    }
}

#[tokio::test(start_paused = true)]
async fn attack_25_the_receipt_of_a_session_is_its_payers_alone() {
    let mut test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let transaction = payment_of(&test, &payment, "agent");
    let settlement = settling(&test, request(payment.id, &transaction, "n-1"));
    until_broadcast(&test, &transaction).await;
    let mut stripped = transaction.clone();
    stripped.signatures.clear();
    let mut forged = stripped.clone();
    forged.sign(ChainId::MAINNET, Pack::Legacy, &key_of("other"));
    for stage in ["in flight", "completed", "restarted"] {
        for (shown, nonce) in [(&stripped, "n-1"), (&forged, "n-1"), (&transaction, "n-2"), (&stripped, "n-2")] {
            let refused = match test.engine().x402.settle(&request(payment.id, shown, nonce)).await {
                Err(X402Error::Refused(refused)) => refused,
                other => panic!("{stage}: {other:?}"),
            };
            assert_eq!(refused.reason, Reason::DuplicateSettlement, "{stage} {nonce}");
            assert_eq!((refused.payer, refused.tx_id), (None, None), "{stage} {nonce}");
        }
        match stage {
            "in flight" => {
                test.ledger.produce_mempool();
                test.ledger.settle();
                test.until_state(payment.id, State::Completed).await;
            }
            "completed" => {
                test.stop().await;
                test.start().await;
            }
            _ => {}
        }
    }
    assert!(!settlement.await.unwrap().unwrap().is_replay);
    let again = test.engine().x402.settle(&request(payment.id, &transaction, "n-1")).await.unwrap();
    assert_eq!((again.is_replay, again.tx_id), (true, id_of(&transaction)));
}

#[tokio::test(start_paused = true)]
async fn attack_14_a_lost_reply_is_not_a_failure() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let transaction = payment_of(&test, &payment, "agent");
    test.ledger.set_manner(Manner::LosesReplies);
    let settlement = settling(&test, request(payment.id, &transaction, "n-1"));
    until_broadcast(&test, &transaction).await;
    test.ledger.produce_mempool();
    settlement.await.unwrap().unwrap();
    assert_eq!(test.ledger.count_on_chain(id_of(&transaction)), 1);
}

#[tokio::test(start_paused = true)]
async fn attack_08_an_unknown_outcome_is_pending_until_the_chain_has_decided() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let transaction = payment_of(&test, &payment, "agent");
    let request = request(payment.id, &transaction, "n-1");
    test.ledger.set_manner(Manner::SwallowsEverything);
    assert_eq!(reason(test.engine().x402.settle(&request).await), Reason::SettlementPending);
    test.until_state(payment.id, State::Processing).await;
    assert_eq!(reason(test.engine().x402.settle(&request).await), Reason::SettlementPending);
    // A node refuses it now; but somebody may have it, so that proves nothing.
    test.ledger.set_manner(Manner::Refuses(10, "Account agent does not have sufficient funds for balance adjustment"));
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(test.state(payment.id).await, State::Processing);
    let expiration = transaction.expiration.seconds();
    test.ledger.produce_at(expiration, Vec::new());
    test.ledger.settle();
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(test.state(payment.id).await, State::Processing, "the block is not later than the expiration");
    test.ledger.produce_at(expiration + 3, Vec::new());
    test.ledger.settle();
    test.until_state(payment.id, State::Failed).await;
    assert_eq!(reason(test.engine().x402.settle(&request).await), Reason::InvalidTransactionState);
    test.until("both are delivered", async || test.receiver.statuses() == ["processing", "failed"]).await;
}

#[tokio::test(start_paused = true)]
async fn attack_13_a_definite_refusal_frees_the_session_and_is_remembered() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let transaction = payment_of(&test, &payment, "agent");
    test.ledger.set_manner(Manner::Refuses(10, "Account agent does not have sufficient funds for balance adjustment"));
    let first = request(payment.id, &transaction, "n-1");
    assert_eq!(reason(test.engine().x402.settle(&first).await), Reason::InsufficientFunds);
    assert_eq!(test.state(payment.id).await, State::Pending);
    test.ledger.set_manner(Manner::Honest);
    assert_eq!(reason(test.engine().x402.settle(&first).await), Reason::InsufficientFunds, "the same answer");
    let fresh = payment_of(&test, &payment, "other");
    let settlement = settling(&test, request(payment.id, &fresh, "n-2"));
    until_broadcast(&test, &fresh).await;
    test.ledger.produce_mempool();
    settlement.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn attack_31_a_crash_between_claim_broadcast_and_record_is_recovered_by_the_chain() {
    for point in ["settlement: claimed, not broadcast", "settlement: broadcast, not recorded"] {
        let mut test = TestEngine::started(store()).await;
        let merchant = test.merchant().await;
        let payment = test.open(&merchant).await;
        let transaction = payment_of(&test, &payment, "agent");
        let request = request(payment.id, &transaction, "n-1");
        test.trap.arm(point, 1);
        let settlement = settling(&test, request.clone());
        test.until("the trap has sprung", async || test.trap.reached.lock().unwrap().contains(&point)).await;
        test.stop().await;
        drop(settlement.await);
        test.start().await;
        test.until("it is handed in again", async || test.ledger.count_broadcasts(id_of(&transaction)) > 0).await;
        test.ledger.produce_mempool();
        test.ledger.settle();
        let settled = test.engine().x402.settle(&request).await.unwrap();
        assert_eq!(settled.tx_id, id_of(&transaction), "{point}");
        assert_eq!(test.ledger.count_on_chain(settled.tx_id), 1, "{point}");
        test.until("it is delivered", async || test.receiver.statuses() == ["completed"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn attack_04_a_wallet_payment_that_races_a_claim_completes_once_and_the_other_is_kept() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let transaction = payment_of(&test, &payment, "agent");
    test.ledger.set_manner(Manner::LosesReplies);
    let settlement = settling(&test, request(payment.id, &transaction, "n-1"));
    until_broadcast(&test, &transaction).await;
    test.pay(payment.id);
    test.until_state(payment.id, State::Completed).await;
    assert_eq!(reason(settlement.await.unwrap()), Reason::DuplicateSettlement);
    test.ledger.produce_mempool();
    test.ledger.settle();
    test.until("both are there", async || {
        test.engine().payments.any(payment.id).await.unwrap().overpaid_units() == 1_000
    })
    .await;
    assert_eq!(test.receiver.statuses(), ["completed"]);
}

#[tokio::test(start_paused = true)]
async fn two_engines_settle_one_transaction_once() {
    let store = store();
    let one = TestEngine::started(Arc::clone(&store)).await;
    let mut two = TestEngine::prepared(Arc::clone(&store));
    two.env = actors::Environment { entropy: Arc::new(crate::counting_entropy(9)), ..one.env.clone() };
    two.ledger = Arc::clone(&one.ledger);
    two.receiver = Arc::clone(&one.receiver);
    two.start().await;
    let merchant = one.merchant().await;
    let payment = one.open(&merchant).await;
    let transaction = payment_of(&one, &payment, "agent");
    let request = request(payment.id, &transaction, "n-1");
    let settlements = [settling(&one, request.clone()), settling(&two, request.clone())];
    until_broadcast(&one, &transaction).await;
    one.ledger.produce_mempool();
    one.ledger.settle();
    for settlement in settlements {
        // The engine that did not claim it may only know that it is on its way.
        match settlement.await.unwrap() {
            Ok(settled) => assert_eq!(settled.tx_id, id_of(&transaction)),
            Err(X402Error::Refused(refused)) => assert_eq!(refused.reason, Reason::SettlementPending),
            Err(error) => panic!("{error}"),
        }
    }
    for test in [&one, &two] {
        assert_eq!(test.engine().x402.settle(&request).await.unwrap().tx_id, id_of(&transaction));
    }
    assert_eq!(one.ledger.count_on_chain(id_of(&transaction)), 1);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(store.events(merchant.id, 0, 9).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn every_check_has_its_word() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let soon = test.engine().now() + Duration::from_secs(60);
    let memo = memo_of(payment.id);
    let foreign = memo_of(PaymentId::from_bits(5));
    let one = |operation, signer| signed(vec![operation], soon, signer);
    let hive = Operation::Transfer(TransferOp {
        from: "agent".to_owned(),
        to: "blue.mugs".to_owned(),
        amount: Asset { units: 1_000, symbol: Symbol::Hive },
        memo: memo.clone(),
    });
    let twice = {
        let mut transaction = one(op("agent", "blue.mugs", 1_000, &memo), "agent");
        transaction.sign(ChainId::MAINNET, Pack::Legacy, &key_of("agent"));
        transaction
    };
    let cases = [
        (signed(vec![op("agent", "blue.mugs", 1_000, &memo); 2], soon, "agent"), Reason::Operations),
        (one(op("blue.mugs", "blue.mugs", 1_000, &memo), "blue.mugs"), Reason::SelfPayment),
        (one(op("agent", "red.mugs", 1_000, &memo), "agent"), Reason::RecipientMismatch),
        (one(hive, "agent"), Reason::AssetMismatch),
        (one(op("agent", "blue.mugs", 999, &memo), "agent"), Reason::Amount),
        (one(op("agent", "blue.mugs", 1_000, &foreign), "agent"), Reason::MemoMismatch),
        (one(op("agent", "blue.mugs", 1_000, &memo.to_uppercase()), "agent"), Reason::MemoMismatch),
        (one(op("agent", "blue.mugs", 1_000, "x402:other"), "agent"), Reason::MemoMismatch),
        (signed(vec![op("agent", "blue.mugs", 1_000, &memo)], test.engine().now(), "agent"), Reason::PaymentExpired),
        (
            signed(vec![op("agent", "blue.mugs", 1_000, &memo)], soon + Duration::from_secs(7_200), "agent"),
            Reason::ExpirationTooFar,
        ),
        (one(op("agent", "blue.mugs", 1_000, &memo), "other"), Reason::Authority),
        (twice, Reason::Signature),
        (one(op("nobody", "blue.mugs", 1_000, &memo), "nobody"), Reason::AccountNotFound),
        (one(op("agent", "blue.mugs", 6_000, &memo), "agent"), Reason::InsufficientFunds),
    ];
    for (number, (transaction, wanted)) in cases.into_iter().enumerate() {
        let request = request(payment.id, &transaction, &format!("n-{number}"));
        let verdict = test.engine().x402.verify(&request).await;
        let Err(X402Error::Refused(refused)) = verdict else { panic!("{number}: {verdict:?}") };
        assert_eq!(refused.reason, wanted, "{number}");
        assert_eq!(reason(test.engine().x402.settle(&request).await), wanted, "{number}");
        assert_eq!(test.ledger.count_broadcasts(id_of(&transaction)), 0, "{number}");
    }
    let good = payment_of(&test, &payment, "agent");
    let unknown = request(PaymentId::from_bits(5), &good, "n");
    assert_eq!(reason(test.engine().x402.settle(&unknown).await), Reason::SessionNotFound);
    test.engine().merchants.set_active(merchant.id, false).await.unwrap();
    assert_eq!(reason(test.engine().x402.settle(&request(payment.id, &good, "n")).await), Reason::MerchantInactive);
}

#[tokio::test(start_paused = true)]
async fn a_collected_fee_requires_two_transfers_in_any_order() {
    let mut test = TestEngine::prepared(store());
    test.settings.fee_percent = FeePercent::parse("1.5").unwrap();
    test.settings.fee_mode = FeeMode::Split { account: name("fee.taker") };
    test.start().await;
    let merchant = test.merchant().await;
    let soon = test.engine().now() + Duration::from_secs(60);
    let payment = test.open(&merchant).await;
    let (net, fee) = (memo_of(payment.id), format!("fee-{}", payment.id));
    let cases = [
        (vec![op("agent", "blue.mugs", 1_000, &net)], Reason::Operations),
        (vec![op("agent", "blue.mugs", 985, &net), op("agent", "blue.mugs", 15, &fee)], Reason::RecipientMismatch),
        (vec![op("agent", "blue.mugs", 985, &net), op("agent", "fee.taker", 14, &fee)], Reason::Amount),
        (vec![op("agent", "blue.mugs", 984, &net), op("agent", "fee.taker", 16, &fee)], Reason::Amount),
        (vec![op("agent", "blue.mugs", 985, &net), op("other", "fee.taker", 15, &fee)], Reason::SenderMismatch),
        (vec![op("agent", "blue.mugs", 985, &net), op("agent", "fee.taker", 15, "a fee")], Reason::MemoMismatch),
        (vec![op("fee.taker", "blue.mugs", 985, &net), op("fee.taker", "fee.taker", 15, &fee)], Reason::SelfPayment),
    ];
    for (number, (operations, wanted)) in cases.into_iter().enumerate() {
        let request = request(payment.id, &signed(operations, soon, "agent"), &format!("n-{number}"));
        assert_eq!(reason(test.engine().x402.settle(&request).await), wanted, "{number}");
    }
    let operations = vec![op("agent", "fee.taker", 15, &fee), op("agent", "blue.mugs", 985, &net)];
    let transaction = signed(operations, soon, "agent");
    let settlement = settling(&test, request(payment.id, &transaction, "n"));
    until_broadcast(&test, &transaction).await;
    test.ledger.produce_mempool();
    test.ledger.settle();
    settlement.await.unwrap().unwrap();
    test.until("the claim is let go", async || test.env.store.in_flight().await.unwrap().is_empty()).await;
    let payment = test.engine().payments.any(payment.id).await.unwrap();
    assert_eq!((payment.paid_units(), payment.fee_collected_units(), payment.fee_is_missing()), (1_000, 15, false));
}

#[tokio::test(start_paused = true)]
async fn attack_12_a_settled_transaction_that_a_fork_removes_is_broadcast_again() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let transaction = payment_of(&test, &payment, "agent");
    let settlement = settling(&test, request(payment.id, &transaction, "n-1"));
    until_broadcast(&test, &transaction).await;
    test.ledger.produce_mempool();
    settlement.await.unwrap().unwrap();
    test.ledger.fork(1);
    test.ledger.produce(Vec::new());
    test.ledger.produce(Vec::new());
    let before = test.ledger.count_broadcasts(id_of(&transaction));
    test.until("it is handed in again", async || test.ledger.count_broadcasts(id_of(&transaction)) > before).await;
    test.ledger.produce_mempool();
    test.ledger.settle();
    test.until("it is final", async || test.env.store.in_flight().await.unwrap().is_empty()).await;
    let payment = test.engine().payments.any(payment.id).await.unwrap();
    assert_eq!((payment.state, payment.is_reversed, payment.transfers.len()), (State::Completed, false, 1));
    assert_eq!(test.ledger.count_on_chain(id_of(&transaction)), 1);
}

#[tokio::test(start_paused = true)]
async fn attack_12_a_settled_transaction_that_vanishes_for_good_is_reported() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let transaction = payment_of(&test, &payment, "agent");
    let settlement = settling(&test, request(payment.id, &transaction, "n-1"));
    until_broadcast(&test, &transaction).await;
    test.ledger.produce_mempool();
    settlement.await.unwrap().unwrap();
    test.ledger.fork(1);
    test.ledger.set_manner(Manner::SwallowsEverything);
    test.ledger.produce(Vec::new());
    test.ledger.produce_at(transaction.expiration.seconds() + 3, Vec::new());
    test.ledger.settle();
    test.until("it is reported", async || test.engine().payments.any(payment.id).await.unwrap().is_reversed).await;
    assert_eq!(test.state(payment.id).await, State::Completed, "terminal is terminal");
}
