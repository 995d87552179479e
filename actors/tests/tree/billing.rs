//! Billing in a living tree: months that end, invoices that are made once whatever happens, and how they are paid.

use std::sync::Arc;

use engine::{
    audit::Actor,
    billing::{INVOICE_LIFETIME, Month, Period, RawTier, Status, Tiers},
    ids::MerchantId,
    merchant::Merchant,
    money::{Currency, FeePercent, Money},
    payment::{FeeMode, Payment},
    time::Timestamp,
};
use storage::AuditQuery;

use super::*;

/// 2027-02-01T00:00:00Z; the world begins on January 15.
const FEBRUARY: u64 = 1_801_440_000;

fn january() -> Month {
    Month::new(2027, 1).unwrap()
}

/// A world whose operator bills 1.5 %, and a shop in it.
struct Billed {
    world: World,
    operator: Merchant,
    shop: Merchant,
}

impl Billed {
    async fn over(store: Arc<dyn Store>) -> Self {
        let mut world = World::prepared(store);
        world.settings.fee_percent = FeePercent::parse("1.5").unwrap();
        world.start().await;
        let operator = world.merchant_of("operator").await;
        let shop = world.merchant().await;
        world.stop().await;
        world.settings.billing.merchant = Some(operator.id);
        world.start().await;
        Self { world, operator, shop }
    }

    async fn new() -> Self {
        Self::over(store()).await
    }

    /// Opens a payment over so many cents.
    async fn open(&self, cents: u64) -> Arc<Payment> {
        let draft = Draft { amount: Money::new(cents * 10, Currency::Hbd), ..draft() };
        self.world.engine().payments.open(&self.shop, draft, None).await.unwrap().payment
    }

    /// Sells for so many cents.
    async fn sell(&self, cents: u64) {
        let payment = self.open(cents).await;
        self.world.ledger.produce(vec![transfer("alice", "blue.mugs", cents * 10, &memo_of(payment.id))]);
        self.world.ledger.settle();
        self.world.until_state(payment.id, State::Completed).await;
    }

    /// Lets a month end, finally.
    fn turn(&self, seconds: u64) {
        self.world.ledger.produce_at(seconds, Vec::new());
        self.world.ledger.settle();
    }

    async fn period(&self, month: Month) -> Option<Period> {
        self.world.env.store.period(self.shop.id, month).await.unwrap()
    }

    async fn until_billed(&self, month: Month) -> Period {
        let billed = async || self.period(month).await.is_some_and(|period| period.invoice.is_some());
        self.world.until("the month is billed", billed).await;
        self.period(month).await.unwrap()
    }

    async fn session(&self, period: &Period) -> Arc<Payment> {
        let (session, _) = period.invoice.as_ref().unwrap().session.clone().unwrap();
        self.world.engine().payments.any(session).await.unwrap()
    }

    async fn invoices(&self) -> Vec<Payment> {
        self.world.engine().payments.list(PaymentQuery::all(self.operator.id, 100)).await.unwrap().items
    }

    async fn deeds(&self, action: &str) -> usize {
        let query = AuditQuery { before: None, limit: 1_000, merchant: None };
        let log = self.world.engine().operations.audit(query).await.unwrap();
        log.iter().filter(|entry| entry.action == action).count()
    }

    fn pay(&self, session: &Payment) {
        let units = session.amount.units;
        self.world.ledger.produce(vec![transfer("blue.mugs", "operator", units, &memo_of(session.id))]);
        self.world.ledger.settle();
    }
}

#[tokio::test(start_paused = true)]
async fn a_month_that_is_over_is_billed_by_itself_and_paid_by_its_session() {
    let billed = Billed::new().await;
    let world = &billed.world;
    billed.sell(10_000).await;
    billed.sell(40).await;
    world.ledger.produce_at(FEBRUARY + 1, Vec::new());
    tokio::time::sleep(Duration::from_secs(7_200)).await;
    assert_eq!(billed.period(january()).await.unwrap().invoice, None, "its last block can still change");
    world.ledger.settle();
    let period = billed.until_billed(january()).await;
    assert_eq!((period.usage.volume_cents, period.usage.payments), (10_040, 2));
    let session = billed.session(&period).await;
    assert_eq!((session.merchant, session.pay_to.as_str()), (billed.operator.id, "operator"));
    assert_eq!(session.amount, Money::new(1_500, Currency::Hbd), "150.6 cents, rounded down");
    assert!(session.is_invoice && session.quote.fee_units == 0 && session.quote.fee_mode == FeeMode::Invoice);
    assert_eq!(session.expires_at, session.created_at + INVOICE_LIFETIME);
    let now = || world.engine().now();
    assert_eq!(period.status(now()), Status::Invoiced);
    world.ledger.produce_at(FEBRUARY + 15 * 86_400, Vec::new());
    world
        .until("it is overdue", async || billed.period(january()).await.unwrap().status(now()) == Status::Overdue)
        .await;
    billed.pay(&session);
    world.until_state(session.id, State::Completed).await;
    let paid = billed.period(january()).await.unwrap();
    assert_eq!(paid.status(now()), Status::Paid);
    assert_eq!(paid.invoice.unwrap().paid_at, world.engine().payments.any(session.id).await.unwrap().completed_at);
    assert_eq!(world.env.store.periods_of(billed.operator.id).await.unwrap(), [], "fees are no sales");
    billed.turn(FEBRUARY + 40 * 86_400);
    tokio::time::sleep(Duration::from_secs(7_200)).await;
    assert_eq!((billed.invoices().await.len(), billed.deeds("invoice_generated").await), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_payment_belongs_to_the_month_of_its_block_however_late_we_learn_of_it() {
    let billed = Billed::new().await;
    let world = &billed.world;
    world.ledger.produce_at(FEBRUARY - 60, Vec::new());
    world.ledger.settle();
    world.until("the chain is read", async || world.engine().now().seconds() >= FEBRUARY - 60).await;
    let (early, late) = (billed.open(5_000).await, billed.open(7_000).await);
    world.ledger.produce_at(FEBRUARY - 3, vec![transfer("alice", "blue.mugs", 50_000, &memo_of(early.id))]);
    world.ledger.produce_at(FEBRUARY, vec![transfer("alice", "blue.mugs", 70_000, &memo_of(late.id))]);
    world.ledger.produce_at(FEBRUARY + 600, Vec::new());
    world
        .until("both are seen", async || !world.engine().payments.any(late.id).await.unwrap().transfers.is_empty())
        .await;
    let refused = world.engine().operations.generate_invoices(Some(january())).await.unwrap_err();
    assert!(matches!(&refused, EngineError::Invalid(wrong) if wrong[0].field == "month"), "{refused:?}");
    assert_eq!(world.engine().operations.generate_invoices(None).await.unwrap().periods, []);
    world.ledger.settle();
    let period = billed.until_billed(january()).await;
    assert_eq!((period.usage.volume_cents, period.usage.payments), (5_000, 1));
    let completed_at = world.engine().payments.any(early.id).await.unwrap().completed_at.unwrap();
    assert!(completed_at >= Timestamp::from_seconds(FEBRUARY + 600), "we learnt of it in February");
    world.until_state(late.id, State::Completed).await;
    assert_eq!(billed.period(january().next()).await.unwrap().usage.volume_cents, 7_000);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_was_away_while_the_month_ended_bills_what_the_chain_says() {
    let mut billed = Billed::new().await;
    let payment = billed.open(5_000).await;
    billed.world.stop().await;
    billed.world.ledger.produce(vec![transfer("alice", "blue.mugs", 50_000, &memo_of(payment.id))]);
    billed.turn(FEBRUARY + 3 * 86_400);
    billed.world.start().await;
    let period = billed.until_billed(january()).await;
    assert_eq!((period.usage.volume_cents, billed.session(&period).await.amount.units), (5_000, 750));
}

#[tokio::test(start_paused = true)]
async fn a_crash_while_billing_makes_one_invoice_that_can_be_paid() {
    for point in ["billing: invoice made, not stored", "billing: invoice stored, session not adopted"] {
        let billed = Billed::new().await;
        billed.sell(10_000).await;
        billed.world.trap.arm(point, 1);
        billed.turn(FEBRUARY + 1);
        let period = billed.until_billed(january()).await;
        tokio::time::sleep(Duration::from_secs(7_200)).await;
        let invoices = billed.invoices().await;
        assert_eq!(invoices.len(), 1, "{point}");
        assert!(billed.world.trap.reached.lock().unwrap().contains(&point));
        billed.pay(&invoices[0]);
        billed.world.until_state(invoices[0].id, State::Completed).await;
        assert_eq!(billed.period(period.month).await.unwrap().status(billed.world.engine().now()), Status::Paid);
    }
}

#[tokio::test(start_paused = true)]
async fn two_engines_and_ten_admins_make_one_invoice_and_count_a_payment_once() {
    let store: Arc<dyn Store> = Connection::to(&store());
    let one = Billed::over(Arc::clone(&store)).await;
    let mut two = World::prepared(Arc::clone(&store));
    two.env = actors::Environment { entropy: Arc::new(world_entropy(99)), ..one.world.env.clone() };
    two.ledger = Arc::clone(&one.world.ledger);
    two.settings = one.world.settings.clone();
    two.start().await;
    one.sell(10_000).await;
    one.turn(FEBRUARY + 1);
    let engines = [one.world.engine(), two.engine()];
    one.world
        .until("both have read it", async || {
            let read = |engine: &actors::Engine| engine.now().seconds() > FEBRUARY;
            engines.iter().all(read)
        })
        .await;
    let asked = (0..10).map(|n| {
        let engine = engines[n % 2].clone();
        tokio::spawn(async move { engine.operations.generate_invoices(None).await })
    });
    let asked: Vec<_> = asked.collect();
    for answer in asked {
        answer.await.unwrap().unwrap();
    }
    let period = one.until_billed(january()).await;
    // Several background checks of both engines.
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(one.invoices().await.len(), 1);
    assert_eq!(one.deeds("invoice_generated").await, 1);
    assert_eq!((period.usage.payments, one.period(january()).await), (1, Some(period)));
}

#[tokio::test(start_paused = true)]
async fn an_invoice_whose_session_was_cancelled_gets_another_one_for_the_same() {
    let billed = Billed::new().await;
    billed.sell(10_000).await;
    billed.turn(FEBRUARY + 1);
    let period = billed.until_billed(january()).await;
    let first = billed.session(&period).await;
    billed.world.engine().payments.cancel(first.merchant, first.id).await.unwrap();
    billed.turn(FEBRUARY + 3_600);
    billed.world.until_state(first.id, State::UserCancelled).await;
    billed.turn(FEBRUARY + 7_200);
    let renewed = async || billed.session(&billed.period(january()).await.unwrap()).await.id != first.id;
    billed.world.until("it has another one", renewed).await;
    let after = billed.period(january()).await.unwrap();
    let second = billed.session(&after).await;
    assert_eq!((second.amount, after.id()), (first.amount, period.id()));
    let (before, now) = (period.invoice.unwrap(), after.invoice.unwrap());
    assert_eq!((before.due_at, before.created_at, before.cents), (now.due_at, now.created_at, now.cents));
    assert_eq!((billed.deeds("invoice_generated").await, billed.deeds("invoice_renewed").await), (1, 1));
    billed.pay(&second);
    billed.world.until_state(second.id, State::Completed).await;
    assert_eq!(billed.period(january()).await.unwrap().status(billed.world.engine().now()), Status::Paid);
}

#[tokio::test(start_paused = true)]
async fn a_month_that_comes_to_nothing_is_paid_without_a_session() {
    let billed = Billed::new().await;
    billed.sell(66).await;
    billed.turn(FEBRUARY + 1);
    let period = billed.until_billed(january()).await;
    let invoice = period.invoice.clone().unwrap();
    assert_eq!((invoice.cents, invoice.session, period.status(invoice.created_at)), (0, None, Status::Paid));
    assert_eq!(billed.invoices().await, []);
}

#[tokio::test(start_paused = true)]
async fn without_an_operator_nobody_is_billed_and_everything_is_counted() {
    let world = World::started(store()).await;
    let shop = world.merchant().await;
    let payment = world.open(&shop).await;
    world.pay(payment.id);
    world.until_state(payment.id, State::Completed).await;
    world.ledger.produce_at(FEBRUARY + 1, Vec::new());
    world.ledger.settle();
    tokio::time::sleep(Duration::from_secs(7_200)).await;
    assert_eq!(world.engine().operations.generate_invoices(None).await, Err(EngineError::NoOperator));
    let summary = world.engine().operations.billing_summary(shop.id).await.unwrap();
    assert_eq!((summary.periods.len(), summary.periods[0].usage.volume_cents), (1, 100));
    assert_eq!((summary.periods[0].invoice.clone(), summary.current.month), (None, january().next()));
}

#[tokio::test(start_paused = true)]
async fn new_tiers_bill_what_has_no_invoice_yet() {
    let billed = Billed::new().await;
    let engine = billed.world.engine().by(Actor { merchant: Some(billed.operator.id), ..Actor::default() });
    billed.sell(10_000).await;
    let raw = |min_cents, max_cents, percent_ten_thousandths| RawTier { min_cents, max_cents, percent_ten_thousandths };
    let tiers = Tiers::check(&[raw(0, Some(9_999), 50_000), raw(10_000, None, 20_000)]).unwrap();
    let before = engine.operations.fee_tiers().await.unwrap();
    assert_eq!((before.version, before.tiers.clone()), (0, Tiers::flat(FeePercent::parse("1.5").unwrap())));
    assert_eq!(engine.operations.set_fee_tiers(tiers.clone()).await.unwrap().version, 1);
    billed.turn(FEBRUARY + 1);
    let period = billed.until_billed(january()).await;
    let invoice = period.invoice.unwrap();
    assert_eq!((invoice.cents, invoice.tiers_version), (200, 1));
    engine.operations.set_fee_tiers(before.tiers).await.unwrap();
    assert_eq!(billed.period(january()).await.unwrap().invoice.unwrap().cents, 200);
    assert_eq!(billed.deeds("fee_tiers_changed").await, 2);
    let log = engine.operations.audit(AuditQuery { before: None, limit: 1, merchant: None }).await.unwrap();
    assert_eq!(log[0].changes[0].before.as_deref(), Some("0–9999: 5 %, from 10000: 2 %"));
    assert_eq!(log[0].merchant, billed.operator.id);
    assert_ne!(log[0].merchant, MerchantId::from_bits(0));
}

#[tokio::test(start_paused = true)]
async fn a_fee_that_is_split_off_is_not_billed_again_and_one_that_is_missing_is() {
    let mut billed = Billed::new().await;
    billed.world.stop().await;
    billed.world.settings.fee_mode = FeeMode::Split { account: name("fee.taker") };
    billed.world.start().await;
    let world = &billed.world;
    let [whole, plain, late] = [billed.open(10_000).await, billed.open(10_000).await, billed.open(10_000).await];
    let to_fee = |payment: &Payment| transfer("alice", "fee.taker", 1_500, &format!("fee pos-{}", payment.id));
    world.ledger.produce(vec![
        transfer("alice", "blue.mugs", 98_500, &memo_of(whole.id)),
        to_fee(&whole),
        transfer("alice", "blue.mugs", 100_000, &memo_of(plain.id)),
        transfer("alice", "blue.mugs", 100_000, &memo_of(late.id)),
    ]);
    world.ledger.settle();
    for payment in [&whole, &plain, &late] {
        world.until_state(payment.id, State::Completed).await;
    }
    let missing = async || billed.period(january()).await.unwrap().usage.missing_fee_millicents;
    assert_eq!(missing().await, 300_000, "150 cents each of two payments");
    world.ledger.produce(vec![to_fee(&late)]);
    world.ledger.settle();
    world.until("it came after all", async || missing().await == 150_000).await;
    let paid = world.engine().payments.any(plain.id).await.unwrap();
    assert!(paid.fee_is_missing() && !world.engine().payments.any(whole.id).await.unwrap().fee_is_missing());
    billed.turn(FEBRUARY + 1);
    let period = billed.until_billed(january()).await;
    assert_eq!((period.usage.volume_cents, period.usage.split_volume_cents), (30_000, 30_000));
    assert_eq!(period.invoice.unwrap().cents, 150, "the one missing fee, and no percentage beside it");
}
