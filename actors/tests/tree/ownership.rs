//! Proof of accounts in a living tree: by a transfer, by the operator; what is refused without one, and what follows a
//! merchant to another account.

use super::*;
use actors::Compliance;
use engine::{
    compliance::{Limits, Thresholds},
    ledger::Transfer,
    merchant::{Merchant, Update},
    money::{Currency, Money},
    ownership::{CHALLENGE_LIFETIME, Rejection, VerificationMethod, VerificationStatus},
};

impl TestEngine {
    /// A merchant with an endpoint that has proven its account.
    pub(crate) async fn owner(&self) -> Merchant {
        self.owner_of("blue.mugs").await
    }

    /// The same with an account.
    pub(crate) async fn owner_of(&self, account: &str) -> Merchant {
        self.engine().merchants.vouch_for(self.merchant_of(account).await.id, None).await.unwrap()
    }
}

/// Moves the chain's clock, and with it the engine's.
fn later(test: &TestEngine, seconds: u64) {
    test.ledger.produce_at(test.engine().now().seconds() + seconds, Vec::new());
}

async fn read(test: &TestEngine, merchant: &Merchant) -> Merchant {
    (*test.engine().merchants.get(merchant.id).await.unwrap()).clone()
}

fn moved_to(account: &str) -> Update {
    Update { hive_account: Some(name(account)), ..Update::default() }
}

/// What an account sends to itself, or to whom it is tricked into paying.
fn proof(from: &str, to: &str, memo: &str) -> Transfer {
    transfer(from, to, 1, memo)
}

fn not_proven(account: &str) -> EngineError {
    EngineError::NotProven { account: name(account), status: VerificationStatus::Unverified }
}

#[tokio::test(start_paused = true)]
async fn an_irreversible_transfer_to_oneself_proves_an_account_and_is_no_unmatched_one() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    assert_eq!(test.engine().payments.unmatched(&merchant, None, 9).await, Err(not_proven("blue.mugs")));
    let issued = test.engine().merchants.issue_challenge(merchant.id, None, false).await.unwrap();
    // A customer who is tricked into sending the memo pays, and proves nothing; nor does another account.
    test.ledger.produce(vec![proof("alice", "blue.mugs", &issued.memo), proof("alice", "alice", &issued.memo)]);
    test.ledger.settle();
    test.ledger.produce(vec![proof("blue.mugs", "blue.mugs", &issued.memo)]);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(read(&test, &merchant).await.ownership.proof, None, "the block can still change");
    test.ledger.settle();
    test.until("the proof is read", async || read(&test, &merchant).await.ownership.proof.is_some()).await;
    let proven = read(&test, &merchant).await;
    let proof_of = proven.ownership.proof.unwrap();
    assert_eq!((proof_of.method, proof_of.authority.is_some()), (VerificationMethod::Transfer, true));
    let listed = test.engine().payments.unmatched(&proven, None, 9).await.unwrap().rows;
    let from: Vec<_> = listed.iter().map(|kept| kept.transfer.from.as_str()).collect();
    assert_eq!(from, ["alice"], "the customer's money is listed, the proof is not");
}

#[tokio::test(start_paused = true)]
async fn a_transfer_of_keys_that_were_replaced_before_it_is_read_gives_no_right() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let issued = test.engine().merchants.issue_challenge(merchant.id, None, false).await.unwrap();
    test.ledger.produce(vec![proof("blue.mugs", "blue.mugs", &issued.memo)]);
    // The owner finds its keys stolen and replaces them while the thief's transfer can still change.
    test.ledger.replace_key("blue.mugs");
    test.ledger.settle();
    test.until("the transfer is read", async || read(&test, &merchant).await.ownership.proof.is_some()).await;
    let thief = read(&test, &merchant).await;
    assert_eq!(thief.ownership.verification_status(), VerificationStatus::Stale);
    let paid = transfer("alice", "blue.mugs", 1_000, "for the mug");
    test.ledger.produce(vec![paid]);
    test.ledger.settle();
    let listed = async || test.env.store.unmatched(name("blue.mugs"), 9).await.unwrap();
    test.until("the money is listed", async || !listed().await.is_empty()).await;
    let place = listed().await[0].transfer.position;
    let decided = test.engine().payments.ignore(&thief, place, "key_1".to_owned(), String::new()).await;
    assert_eq!(decided, Err(EngineError::NotProven { account: name("blue.mugs"), status: VerificationStatus::Stale }));
    // The question that the old keys may have answered is not put to the new ones.
    let again = test.engine().merchants.issue_challenge(merchant.id, None, false).await.unwrap();
    assert_ne!(again.challenge.nonce, issued.challenge.nonce);
    test.ledger.produce(vec![proof("blue.mugs", "blue.mugs", &again.memo)]);
    test.ledger.settle();
    let verified =
        async || read(&test, &merchant).await.ownership.verification_status() == VerificationStatus::Verified;
    test.until("the owner has proven it", verified).await;
}

#[tokio::test(start_paused = true)]
async fn a_challenge_needs_a_majority_that_names_the_authority_and_is_kept_while_that_is_the_same() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let issue = async || test.engine().merchants.issue_challenge(merchant.id, None, false).await;
    let first = issue().await.unwrap();
    assert_eq!(issue().await.unwrap(), first);
    test.ledger.set_down(true);
    assert_eq!(issue().await, Err(EngineError::LedgerUnavailable));
    test.ledger.set_down(false);
    test.ledger.replace_key("blue.mugs");
    assert_ne!(issue().await.unwrap().challenge.nonce, first.challenge.nonce);
}

#[tokio::test(start_paused = true)]
async fn a_transfer_to_a_merchant_with_a_damaged_record_does_not_block_others() {
    let faulty = FaultyStore::over(store());
    let test = TestEngine::started(Arc::clone(&faulty) as Arc<dyn Store>).await;
    let (shop, damaged) = (test.merchant().await, test.merchant_of("red.mugs").await);
    let payment = test.open(&shop).await;
    let issued = test.engine().merchants.issue_challenge(damaged.id, None, false).await.unwrap();
    faulty.damage(damaged.id);
    // Anybody can send such a transfer, and the customer's money comes after it.
    test.ledger.produce(vec![proof("red.mugs", "red.mugs", &issued.memo)]);
    test.pay(payment.id);
    test.ledger.settle();
    test.until_state(payment.id, State::Completed).await;
}

#[tokio::test(start_paused = true)]
async fn a_transfer_after_the_challenge_has_expired_proves_nothing_and_is_not_listed() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let issued = test.engine().merchants.issue_challenge(merchant.id, None, false).await.unwrap();
    let late = (issued.challenge.issued_at + CHALLENGE_LIFETIME).seconds() + 3;
    test.ledger
        .produce_at(late, vec![proof("blue.mugs", "blue.mugs", &issued.memo), transfer("alice", "blue.mugs", 5, "x")]);
    test.ledger.settle();
    let listed = async || test.env.store.unmatched(name("blue.mugs"), 9).await.unwrap();
    test.until("the block is read", async || !listed().await.is_empty()).await;
    assert_eq!(listed().await.len(), 1);
    assert_eq!(read(&test, &merchant).await.ownership.proof, None);
}

#[tokio::test(start_paused = true)]
async fn a_session_of_an_account_that_was_never_proven_opens_no_way_to_its_money() {
    let test = TestEngine::started(store()).await;
    let (shop, thief) = (test.owner().await, test.merchant().await);
    let trap = test.open(&thief).await;
    test.ledger.produce(vec![transfer("alice", "blue.mugs", 1_000, "for the mug")]);
    test.ledger.settle();
    let list = async || test.engine().payments.unmatched(&shop, None, 9).await.unwrap().rows;
    test.until("it is kept", async || !list().await.is_empty()).await;
    let place = list().await[0].transfer.position;
    let engine = test.engine();
    let by = || "key_1".to_owned();
    assert_eq!(engine.payments.assign(&thief, place, trap.id, by()).await, Err(not_proven("blue.mugs")));
    assert_eq!(engine.payments.candidates(&thief, place).await, Err(not_proven("blue.mugs")));
    assert_eq!(engine.payments.ignore(&thief, place, by(), String::new()).await, Err(not_proven("blue.mugs")));
    // It proves an account of its own; the session is still paid to the shop's.
    let thief = engine.merchants.update(thief.id, moved_to("red.mugs")).await.unwrap();
    let thief = engine.merchants.vouch_for(thief.id, None).await.unwrap();
    assert_eq!(engine.payments.assign(&thief, place, trap.id, by()).await, Err(not_proven("blue.mugs")));
    let own = test.open(&shop).await;
    assert_eq!(engine.payments.assign(&shop, place, own.id, by()).await.unwrap().state, State::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_proven_account_changes_after_its_delay_and_one_without_a_merchant_is_forgotten() {
    let mut test = TestEngine::prepared(store());
    test.settings.account_change_wait = Duration::from_secs(86_400);
    test.start().await;
    let shop = test.owner().await;
    let updated = test.engine().merchants.update(shop.id, moved_to("red.mugs")).await.unwrap();
    assert_eq!(updated.hive_account, name("blue.mugs"));
    test.engine().merchants.vouch_for(shop.id, Some(name("red.mugs"))).await.unwrap();
    assert_eq!(read(&test, &shop).await.hive_account, name("blue.mugs"));
    later(&test, 86_400);
    test.until("it takes effect", async || read(&test, &shop).await.hive_account == name("red.mugs")).await;
    let watched = async || test.env.store.watched_accounts(None, 99).await.unwrap();
    assert!(watched().await.contains(&name("blue.mugs")), "sessions may still be paid there");
    later(&test, 32 * 86_400);
    test.until("it is watched no more", async || !watched().await.contains(&name("blue.mugs"))).await;
    assert!(watched().await.contains(&name("red.mugs")));

    for account in ["green.mugs", "black.mugs", "white.mugs"] {
        test.engine().merchants.update(shop.id, moved_to(account)).await.unwrap();
    }
    let fourth = test.engine().merchants.update(shop.id, moved_to("grey.mugs")).await;
    assert!(matches!(fourth, Err(EngineError::Ownership(Rejection::TooManyChanges { .. }))));
    assert_eq!(test.engine().merchants.cancel_account_change(shop.id).await.unwrap().ownership.pending, None);
}

fn of_cents(cents: u64) -> Draft {
    Draft { amount: Money::new(cents * 10, Currency::Hbd), ..draft() }
}

#[tokio::test(start_paused = true)]
async fn a_hold_of_a_proven_merchant_applies_to_its_account_and_follows_it_and_another_ones_applies_to_itself_only() {
    let mut test = TestEngine::prepared(store());
    let hard = Thresholds { single_cents: 1_000, daily_cents: 2_500, monthly_cents: 10_000 };
    let limits = Limits { hard, soft: Thresholds::default() };
    test.settings.compliance = Some(Compliance { limits, contact: "compliance@pay.example".to_owned() });
    test.start().await;
    let engine = test.engine();
    let (shop, stranger) = (test.owner().await, test.merchant().await);
    let held = |result: Result<actors::Opened, EngineError>| matches!(result, Err(EngineError::OnHold { .. }));
    assert!(held(engine.payments.open(&stranger, of_cents(1_001), None).await));
    engine.payments.open(&shop, of_cents(1_000), None).await.unwrap();
    // What the shop sold counts for everybody on its account.
    for _ in 0..2 {
        let sold = engine.payments.open(&shop, of_cents(1_000), None).await.unwrap().payment;
        test.ledger.produce(vec![transfer("alice", "blue.mugs", 10_000, &memo_of(sold.id))]);
        test.ledger.settle();
        test.until_state(sold.id, State::Completed).await;
    }
    let other = test.merchant().await;
    assert!(held(engine.payments.open(&other, of_cents(501), None).await));
    engine.payments.open(&shop, of_cents(500), None).await.unwrap();
    assert!(held(engine.payments.open(&shop, of_cents(501), None).await));
    // Registering again with the same account does not help, nor does another account.
    let again = test.merchant().await;
    assert!(held(engine.payments.open(&again, of_cents(1), None).await));
    engine.merchants.update(shop.id, moved_to("red.mugs")).await.unwrap();
    engine.merchants.vouch_for(shop.id, Some(name("red.mugs"))).await.unwrap();
    later(&test, 86_400);
    test.until("it takes effect", async || read(&test, &shop).await.hive_account == name("red.mugs")).await;
    let moved = read(&test, &shop).await;
    assert!(held(engine.payments.open(&moved, of_cents(1), None).await));
    engine.payments.open(&again, of_cents(1), None).await.unwrap();
}
