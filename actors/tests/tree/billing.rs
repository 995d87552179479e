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

/// 2027-02-01T00:00:00Z; the test begins on January 15.
const FEBRUARY: u64 = 1_801_440_000;

fn january() -> Month {
    Month::new(2027, 1).unwrap()
}

/// An engine whose operator charges 1.5 %, and a shop.
struct Billed {
    test: TestEngine,
    operator: Merchant,
    shop: Merchant,
}

impl Billed {
    async fn over(store: Arc<dyn Store>) -> Self {
        let mut test = TestEngine::prepared(store);
        test.settings.fee_percent = FeePercent::parse("1.5").unwrap();
        test.start().await;
        let operator = test.merchant_of("operator").await;
        let shop = test.merchant().await;
        test.stop().await;
        test.settings.billing.merchant = Some(operator.id);
        test.start().await;
        Self { test, operator, shop }
    }

    async fn new() -> Self {
        Self::over(store()).await
    }

    /// Opens a payment over so many cents.
    async fn open(&self, cents: u64) -> Arc<Payment> {
        let draft = Draft { amount: Money::new(cents * 10, Currency::Hbd), ..draft() };
        self.test.engine().payments.open(&self.shop, draft, None).await.unwrap().payment
    }

    /// Sells for so many cents.
    async fn sell(&self, cents: u64) {
        let payment = self.open(cents).await;
        self.test.ledger.produce(vec![transfer("alice", "blue.mugs", cents * 10, &memo_of(payment.id))]);
        self.test.ledger.settle();
        self.test.until_state(payment.id, State::Completed).await;
    }

    /// Lets a month end, finally.
    fn turn(&self, seconds: u64) {
        self.test.ledger.produce_at(seconds, Vec::new());
        self.test.ledger.settle();
    }

    async fn period(&self, month: Month) -> Option<Period> {
        self.test.env.store.period(self.shop.id, month).await.unwrap()
    }

    async fn until_billed(&self, month: Month) -> Period {
        let billed = async || self.period(month).await.is_some_and(|period| period.invoice.is_some());
        self.test.until("the month is billed", billed).await;
        self.period(month).await.unwrap()
    }

    async fn session(&self, period: &Period) -> Arc<Payment> {
        let (session, _) = period.invoice.as_ref().unwrap().session.clone().unwrap();
        self.test.engine().payments.any(session).await.unwrap()
    }

    async fn invoices(&self) -> Vec<Payment> {
        self.test.engine().payments.list(PaymentQuery::all(self.operator.id, 100)).await.unwrap().items
    }

    async fn actions(&self, action: &str) -> usize {
        let query = AuditQuery { before: None, limit: 1_000, merchant: None };
        let log = self.test.engine().operations.audit(query).await.unwrap();
        log.iter().filter(|entry| entry.action == action).count()
    }

    fn pay(&self, session: &Payment) {
        let units = session.amount.units;
        self.test.ledger.produce(vec![transfer("blue.mugs", "operator", units, &memo_of(session.id))]);
        self.test.ledger.settle();
    }
}

#[tokio::test(start_paused = true)]
async fn a_month_that_is_over_is_billed_by_itself_and_paid_by_its_session() {
    let billed = Billed::new().await;
    let test = &billed.test;
    billed.sell(10_000).await;
    billed.sell(40).await;
    test.ledger.produce_at(FEBRUARY + 1, Vec::new());
    tokio::time::sleep(Duration::from_secs(7_200)).await;
    assert_eq!(billed.period(january()).await.unwrap().invoice, None, "its last block can still change");
    test.ledger.settle();
    let period = billed.until_billed(january()).await;
    assert_eq!((period.usage.volume_cents, period.usage.payments), (10_040, 2));
    let session = billed.session(&period).await;
    assert_eq!((session.merchant, session.pay_to.as_str()), (billed.operator.id, "operator"));
    assert_eq!(session.amount, Money::new(1_500, Currency::Hbd), "150.6 cents, rounded down");
    assert!(session.is_invoice && session.quote.fee_units == 0 && session.quote.fee_mode == FeeMode::Invoice);
    assert_eq!(session.expires_at, session.created_at + INVOICE_LIFETIME);
    let now = || test.engine().now();
    assert_eq!(period.status(now()), Status::Invoiced);
    test.ledger.produce_at(FEBRUARY + 15 * 86_400, Vec::new());
    test.until("it is overdue", async || billed.period(january()).await.unwrap().status(now()) == Status::Overdue)
        .await;
    billed.pay(&session);
    test.until_state(session.id, State::Completed).await;
    let paid = billed.period(january()).await.unwrap();
    assert_eq!(paid.status(now()), Status::Paid);
    assert_eq!(paid.invoice.unwrap().paid_at, test.engine().payments.any(session.id).await.unwrap().completed_at);
    assert_eq!(test.env.store.periods_of(billed.operator.id).await.unwrap(), [], "fees are no sales");
    billed.turn(FEBRUARY + 40 * 86_400);
    tokio::time::sleep(Duration::from_secs(7_200)).await;
    assert_eq!((billed.invoices().await.len(), billed.actions("invoice_generated").await), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_payment_belongs_to_the_month_of_its_block_however_late_the_block_is_read() {
    let billed = Billed::new().await;
    let test = &billed.test;
    test.ledger.produce_at(FEBRUARY - 60, Vec::new());
    test.ledger.settle();
    test.until("the chain is read", async || test.engine().now().seconds() >= FEBRUARY - 60).await;
    let (early, late) = (billed.open(5_000).await, billed.open(7_000).await);
    test.ledger.produce_at(FEBRUARY - 3, vec![transfer("alice", "blue.mugs", 50_000, &memo_of(early.id))]);
    test.ledger.produce_at(FEBRUARY, vec![transfer("alice", "blue.mugs", 70_000, &memo_of(late.id))]);
    test.ledger.produce_at(FEBRUARY + 600, Vec::new());
    test.until("both are seen", async || !test.engine().payments.any(late.id).await.unwrap().transfers.is_empty())
        .await;
    let refused = test.engine().operations.generate_invoices(Some(january())).await.unwrap_err();
    assert!(matches!(&refused, EngineError::Invalid(wrong) if wrong[0].field == "month"), "{refused:?}");
    assert_eq!(test.engine().operations.generate_invoices(None).await.unwrap().periods, []);
    test.ledger.settle();
    let period = billed.until_billed(january()).await;
    assert_eq!((period.usage.volume_cents, period.usage.payments), (5_000, 1));
    let completed_at = test.engine().payments.any(early.id).await.unwrap().completed_at.unwrap();
    assert!(completed_at >= Timestamp::from_seconds(FEBRUARY + 600), "we learnt of it in February");
    test.until_state(late.id, State::Completed).await;
    assert_eq!(billed.period(january().next()).await.unwrap().usage.volume_cents, 7_000);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_was_down_while_the_month_ended_bills_by_the_chain() {
    let mut billed = Billed::new().await;
    let payment = billed.open(5_000).await;
    billed.test.stop().await;
    billed.test.ledger.produce(vec![transfer("alice", "blue.mugs", 50_000, &memo_of(payment.id))]);
    billed.turn(FEBRUARY + 3 * 86_400);
    billed.test.start().await;
    let period = billed.until_billed(january()).await;
    assert_eq!((period.usage.volume_cents, billed.session(&period).await.amount.units), (5_000, 750));
}

#[tokio::test(start_paused = true)]
async fn a_crash_while_billing_makes_one_invoice_that_can_be_paid() {
    for point in ["billing: invoice made, not stored", "billing: invoice stored, session not adopted"] {
        let billed = Billed::new().await;
        billed.sell(10_000).await;
        billed.test.trap.arm(point, 1);
        billed.turn(FEBRUARY + 1);
        let period = billed.until_billed(january()).await;
        tokio::time::sleep(Duration::from_secs(7_200)).await;
        let invoices = billed.invoices().await;
        assert_eq!(invoices.len(), 1, "{point}");
        assert!(billed.test.trap.reached.lock().unwrap().contains(&point));
        billed.pay(&invoices[0]);
        billed.test.until_state(invoices[0].id, State::Completed).await;
        assert_eq!(billed.period(period.month).await.unwrap().status(billed.test.engine().now()), Status::Paid);
    }
}

#[tokio::test(start_paused = true)]
async fn two_engines_and_ten_admins_make_one_invoice_and_count_a_payment_once() {
    let store: Arc<dyn Store> = Connection::to(&store());
    let one = Billed::over(Arc::clone(&store)).await;
    let mut two = TestEngine::prepared(Arc::clone(&store));
    two.env = actors::Environment { entropy: Arc::new(counting_entropy(99)), ..one.test.env.clone() };
    two.ledger = Arc::clone(&one.test.ledger);
    two.settings = one.test.settings.clone();
    two.start().await;
    one.sell(10_000).await;
    one.turn(FEBRUARY + 1);
    let engines = [one.test.engine(), two.engine()];
    one.test
        .until("both have read it", async || {
            let read = |engine: &actors::Engine| engine.now().seconds() > FEBRUARY;
            engines.iter().all(read)
        })
        .await;
    let requests = (0..10).map(|n| {
        let engine = engines[n % 2].clone();
        tokio::spawn(async move { engine.operations.generate_invoices(None).await })
    });
    let requests: Vec<_> = requests.collect();
    for result in requests {
        result.await.unwrap().unwrap();
    }
    let period = one.until_billed(january()).await;
    // Several background checks of both engines.
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(one.invoices().await.len(), 1);
    assert_eq!(one.actions("invoice_generated").await, 1);
    assert_eq!((period.usage.payments, one.period(january()).await), (1, Some(period)));
}

#[tokio::test(start_paused = true)]
async fn an_invoice_whose_session_was_cancelled_gets_another_one_for_the_same() {
    let billed = Billed::new().await;
    billed.sell(10_000).await;
    billed.turn(FEBRUARY + 1);
    let period = billed.until_billed(january()).await;
    let first = billed.session(&period).await;
    billed.test.engine().payments.cancel(first.merchant, first.id).await.unwrap();
    billed.turn(FEBRUARY + 3_600);
    billed.test.until_state(first.id, State::UserCancelled).await;
    billed.turn(FEBRUARY + 7_200);
    let renewed = async || billed.session(&billed.period(january()).await.unwrap()).await.id != first.id;
    billed.test.until("it has another one", renewed).await;
    let after = billed.period(january()).await.unwrap();
    let second = billed.session(&after).await;
    assert_eq!((second.amount, after.id()), (first.amount, period.id()));
    let (before, now) = (period.invoice.unwrap(), after.invoice.unwrap());
    assert_eq!((before.due_at, before.created_at, before.cents), (now.due_at, now.created_at, now.cents));
    assert_eq!((billed.actions("invoice_generated").await, billed.actions("invoice_renewed").await), (1, 1));
    billed.pay(&second);
    billed.test.until_state(second.id, State::Completed).await;
    assert_eq!(billed.period(january()).await.unwrap().status(billed.test.engine().now()), Status::Paid);
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
async fn without_an_operator_no_merchant_is_billed_and_usage_is_counted() {
    let test = TestEngine::started(store()).await;
    let shop = test.merchant().await;
    let payment = test.open(&shop).await;
    test.pay(payment.id);
    test.until_state(payment.id, State::Completed).await;
    test.ledger.produce_at(FEBRUARY + 1, Vec::new());
    test.ledger.settle();
    tokio::time::sleep(Duration::from_secs(7_200)).await;
    assert_eq!(test.engine().operations.generate_invoices(None).await, Err(EngineError::NoOperator));
    let summary = test.engine().operations.billing_summary(shop.id).await.unwrap();
    assert_eq!((summary.periods.len(), summary.periods[0].usage.volume_cents), (1, 100));
    assert_eq!((summary.periods[0].invoice.clone(), summary.current.month), (None, january().next()));
}

#[tokio::test(start_paused = true)]
async fn new_tiers_bill_what_has_no_invoice_yet() {
    let billed = Billed::new().await;
    let engine = billed.test.engine().by(Actor { merchant: Some(billed.operator.id), ..Actor::default() });
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
    assert_eq!(billed.actions("fee_tiers_changed").await, 2);
    let log = engine.operations.audit(AuditQuery { before: None, limit: 1, merchant: None }).await.unwrap();
    assert_eq!(log[0].changes[0].before.as_deref(), Some("0–9999: 5 %, from 10000: 2 %"));
    assert_eq!(log[0].merchant, billed.operator.id);
    assert_ne!(log[0].merchant, MerchantId::from_bits(0));
}

#[tokio::test(start_paused = true)]
async fn a_fee_that_is_split_off_is_not_billed_again_and_one_that_is_missing_is() {
    let mut billed = Billed::new().await;
    billed.test.stop().await;
    billed.test.settings.fee_mode = FeeMode::Split { account: name("fee.taker") };
    billed.test.start().await;
    let test = &billed.test;
    let [whole, plain, late] = [billed.open(10_000).await, billed.open(10_000).await, billed.open(10_000).await];
    let to_fee = |payment: &Payment| transfer("alice", "fee.taker", 1_500, &format!("fee pos-{}", payment.id));
    test.ledger.produce(vec![
        transfer("alice", "blue.mugs", 98_500, &memo_of(whole.id)),
        to_fee(&whole),
        transfer("alice", "blue.mugs", 100_000, &memo_of(plain.id)),
        transfer("alice", "blue.mugs", 100_000, &memo_of(late.id)),
    ]);
    test.ledger.settle();
    for payment in [&whole, &plain, &late] {
        test.until_state(payment.id, State::Completed).await;
    }
    let missing = async || billed.period(january()).await.unwrap().usage.missing_fee_millicents;
    assert_eq!(missing().await, 300_000, "150 cents each of two payments");
    test.ledger.produce(vec![to_fee(&late)]);
    test.ledger.settle();
    test.until("it came after all", async || missing().await == 150_000).await;
    let paid = test.engine().payments.any(plain.id).await.unwrap();
    assert!(paid.fee_is_missing() && !test.engine().payments.any(whole.id).await.unwrap().fee_is_missing());
    billed.turn(FEBRUARY + 1);
    let period = billed.until_billed(january()).await;
    assert_eq!((period.usage.volume_cents, period.usage.split_volume_cents), (30_000, 30_000));
    assert_eq!(period.invoice.unwrap().cents, 150, "the one missing fee, and no percentage beside it");
}
