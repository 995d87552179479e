//! Compliance in a living tree: what refuses a creation, what puts a merchant on hold, and how the hold ends.

use super::*;
use actors::Compliance;
use std::sync::Arc;

use engine::{
    audit::{Actor, Entry},
    compliance::{Limits, Thresholds, Window},
    merchant::Merchant,
    money::{Currency, Money},
};
use storage::AuditQuery;

/// 10 dollars a payment, 25 a day, 100 a month.
fn limits() -> Compliance {
    let hard = Thresholds { single_cents: 1_000, daily_cents: 2_500, monthly_cents: 10_000 };
    let soft = Thresholds { single_cents: 100, ..Thresholds::default() };
    Compliance { limits: Limits { hard, soft }, contact: "compliance@pay.example".to_owned() }
}

async fn limited() -> TestEngine {
    limited_over(store()).await
}

async fn limited_over(store: Arc<dyn Store>) -> TestEngine {
    let mut test = TestEngine::prepared(store);
    test.settings.compliance = Some(limits());
    test.start().await;
    test
}

fn of_cents(cents: u64) -> Draft {
    Draft { amount: Money::new(cents * 10, Currency::Hbd), ..draft() }
}

async fn open(
    test: &TestEngine,
    merchant: &Merchant,
    cents: u64,
) -> Result<Arc<engine::payment::Payment>, EngineError> {
    test.engine().payments.open(merchant, of_cents(cents), None).await.map(|opened| opened.payment)
}

async fn sell(test: &TestEngine, merchant: &Merchant, cents: u64) {
    let payment = open(test, merchant, cents).await.unwrap();
    test.ledger.produce(vec![transfer("alice", "blue.mugs", cents * 10, &memo_of(payment.id))]);
    test.ledger.settle();
    test.until_state(payment.id, State::Completed).await;
}

/// What the audit log tells of a merchant under a word, newest first.
async fn entries(test: &TestEngine, merchant: &Merchant, action: &str) -> Vec<Entry> {
    let query = AuditQuery { before: None, limit: 100, merchant: Some(merchant.id) };
    let all = test.engine().operations.audit(query).await.unwrap();
    all.into_iter().filter(|entry| entry.action == action).collect()
}

fn on_hold() -> EngineError {
    EngineError::OnHold { contact: "compliance@pay.example".to_owned() }
}

#[tokio::test(start_paused = true)]
async fn a_creation_beyond_the_days_volume_puts_its_merchant_on_hold_until_an_admin_has_looked() {
    let test = limited().await;
    let merchant = test.merchant().await;
    // Unpaid sessions are no volume: spam cannot flag its victim.
    let unpaid = open(&test, &merchant, 1_000).await.unwrap();
    for _ in 0..5 {
        open(&test, &merchant, 1_000).await.unwrap();
    }
    sell(&test, &merchant, 1_000).await;
    sell(&test, &merchant, 1_000).await;
    open(&test, &merchant, 500).await.unwrap();
    assert_eq!(open(&test, &merchant, 501).await, Err(on_hold()));
    assert_eq!(open(&test, &merchant, 1).await, Err(on_hold()), "from then on every creation");
    let report = test.engine().merchants.compliance(merchant.id).await.unwrap();
    let hold = report.status.hold.unwrap();
    assert_eq!((hold.window, hold.usd_cents, report.daily_cents), (Window::Daily, 2_501, 2_000));
    assert!(report.status.notices.iter().any(|notice| notice.window == Window::NearSingle), "five close to the limit");
    // What was open before still completes, and counts.
    test.ledger.produce(vec![transfer("alice", "blue.mugs", 10_000, &memo_of(unpaid.id))]);
    test.ledger.settle();
    test.until_state(unpaid.id, State::Completed).await;
    let engine = test.engine();
    let flagged = entries(&test, &merchant, "merchant_flagged").await;
    assert_eq!(flagged.len(), 1, "one hold is reported once");
    assert_eq!(flagged[0].changes[0].after.as_deref(), Some("24h: 2501 of 2500 cents"));
    let admin = Actor { merchant: None, key: None, ip: Some("203.0.113.9".to_owned()) };
    let engine = engine.by(admin.clone());
    let (by, reason) = ("key_9".to_owned(), "seen".to_owned());
    let cleared = engine.merchants.clear_compliance(merchant.id, by, reason, None).await.unwrap();
    assert_eq!((cleared.status.hold, cleared.daily_cents, &*cleared.status.clearances[0].by), (None, 0, "key_9"));
    let again =
        engine.merchants.clear_compliance(merchant.id, "key_8".to_owned(), "again".to_owned(), None).await.unwrap();
    assert_eq!(again.status.clearances.len(), 1, "there was nothing left to clear");
    let cleared = entries(&test, &merchant, "compliance_cleared").await;
    assert_eq!((cleared.len(), &cleared[0].actor, cleared[0].changes[1].after.as_deref()), (1, &admin, Some("seen")));
    open(&test, &merchant, 1_000).await.unwrap();
    let other = test.merchant_of("red.mugs").await;
    open(&test, &other, 1_000).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_single_payment_and_a_months_volume_have_limits_and_a_merchant_may_have_its_own() {
    let test = limited().await;
    let merchant = test.merchant().await;
    assert_eq!(open(&test, &merchant, 1_001).await, Err(on_hold()));
    let own = Thresholds { single_cents: 5_000, daily_cents: 0, monthly_cents: 9_000 };
    let engine = test.engine();
    let report =
        engine.merchants.clear_compliance(merchant.id, "k".to_owned(), "r".to_owned(), Some(own)).await.unwrap();
    assert_eq!(report.status.limits, Some(own));
    sell(&test, &merchant, 5_000).await;
    tokio::time::sleep(Duration::from_secs(3 * 86_400)).await;
    open(&test, &merchant, 4_000).await.unwrap();
    assert_eq!(open(&test, &merchant, 4_001).await, Err(on_hold()), "the month is longer than the day");
    engine.merchants.clear_compliance(merchant.id, "k".to_owned(), "r".to_owned(), None).await.unwrap();
    engine.merchants.limit_compliance(merchant.id, None).await.unwrap();
    let limited = entries(&test, &merchant, "compliance_limits_set").await;
    let change = &limited[0].changes[0];
    assert_eq!((limited.len(), &*change.field, change.before.as_deref()), (1, "singleCents", Some("5000")));
    assert_eq!(open(&test, &merchant, 1_001).await, Err(on_hold()), "back to everybody's");
    let unlimited = TestEngine::started(store()).await;
    let merchant = unlimited.merchant().await;
    open(&unlimited, &merchant, 100_000).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn two_engines_over_one_store_let_nothing_through_that_one_would_refuse() {
    let test = limited_over(Connection::to(&store())).await;
    let merchant = test.merchant().await;
    let second = Tree::start(test.env.clone(), test.settings.clone()).await.unwrap();
    test.until("the second follows", async || second.engine().operations.health().await.unwrap().is_following).await;
    sell(&test, &merchant, 1_000).await;
    sell(&test, &merchant, 1_000).await;
    // 500 cents are left. Of many creations on both sides, the first beyond them ends all that come after it.
    let engines = [test.engine(), second.engine()];
    let creations = (0..60u64).map(|n| {
        let (engine, merchant) = (engines[usize::from(n % 2 == 0)].clone(), merchant.clone());
        let cents = if n == 30 { 501 } else { 100 };
        tokio::spawn(async move { engine.payments.open(&merchant, of_cents(cents), None).await })
    });
    let results = futures_util::future::join_all(creations).await;
    let refused = results.iter().filter(|a| matches!(a, Ok(Err(EngineError::OnHold { .. })))).count();
    let opened = results.iter().filter(|a| matches!(a, Ok(Ok(_)))).count();
    assert!(refused >= 1 && refused + opened == 60, "{refused} refused, {opened} opened");
    for engine in &engines {
        assert_eq!(engine.payments.open(&merchant, of_cents(1), None).await.err(), Some(on_hold()));
    }
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn fifty_payments_that_complete_with_one_block_all_count_also_after_a_restart() {
    let mut test = limited().await;
    let merchant = test.merchant().await;
    let mut transfers = Vec::new();
    let mut ids = Vec::new();
    for _ in 0..50 {
        let payment = open(&test, &merchant, 50).await.unwrap();
        transfers.push(transfer("alice", "blue.mugs", 500, &memo_of(payment.id)));
        ids.push(payment.id);
    }
    test.ledger.produce(transfers);
    test.ledger.settle();
    for id in &ids {
        test.until_state(*id, State::Completed).await;
    }
    assert_eq!(test.engine().merchants.compliance(merchant.id).await.unwrap().daily_cents, 2_500);
    test.stop().await;
    test.start().await;
    assert_eq!(test.engine().merchants.compliance(merchant.id).await.unwrap().daily_cents, 2_500);
    assert_eq!(open(&test, &merchant, 1).await, Err(on_hold()));
    test.stop().await;
    test.start().await;
    assert_eq!(open(&test, &merchant, 1).await, Err(on_hold()), "a hold lasts");
}
