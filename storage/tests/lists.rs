//! Tests of lists and filters against a naive list in memory.

use std::{sync::Arc, time::Duration};

use engine::{
    ids::{DeliveryId, PaymentId, SlugToken},
    money::{Currency, Money},
    payment::{Payment, Quote, State},
    time::Timestamp,
    webhook::{Attempt, DeliveryState, Outcome},
};
use proptest::prelude::*;
use storage::{
    Batch, DayVolume, DeliveryQuery, MerchantQuery, Page, PageAt, PaymentQuery, VolumeQuery, Write, prelude::*,
};

use crate::samples::*;

/// Returns when the `number`th payment is created: several a day.
fn moment(number: u64) -> Timestamp {
    at(number * 5 * 3_600)
}

fn id(number: u64) -> PaymentId {
    PaymentId::new(moment(number), [7; 10])
}

/// Returns a payment of merchant 1 or 2 in any state. Every other one needs attention.
fn any_payment(number: u64) -> impl Strategy<Value = Payment> {
    (1..=2u8, 0..6usize, prop::bool::ANY, prop::bool::ANY, 0..4u64).prop_map(
        move |(owner, state, hive, is_reversed, units)| Payment {
            id: id(number),
            state: State::ALL[state],
            amount: Money::new(1_000 + units, if hive { Currency::Hive } else { Currency::Hbd }),
            is_reversed,
            description: format!("{} mug m{number}", if hive { "Red" } else { "Blue" }),
            created_at: moment(number),
            ..payment(owner, number)
        },
    )
}

fn payments() -> impl Strategy<Value = Vec<Payment>> {
    (0..25u64).prop_flat_map(|count| (1..=count).map(any_payment).collect::<Vec<_>>())
}

fn queries() -> impl Strategy<Value = PaymentQuery> {
    let place = prop_oneof![(1..4u64).prop_map(PageAt::Number), (0..30u64).prop_map(|n| PageAt::After(id(n).bits()))];
    let states = prop::collection::vec((0..6usize).prop_map(|at| State::ALL[at]), 0..3);
    let time =
        || prop::option::weighted(0.3, (0..30u64, 0..3u64).prop_map(|(n, ms)| moment(n) + Duration::from_millis(ms)));
    let currency = prop::option::weighted(0.3, prop_oneof![Just(Currency::Hive), Just(Currency::Hbd)]);
    let unusual = prop::option::weighted(0.3, prop::bool::ANY);
    let units = || prop::option::weighted(0.2, 999..1_005u64);
    let ids = prop_oneof![4 => Just(Vec::new()), 1 => prop::collection::vec((0..30u64).prop_map(id), 1..9)];
    const WORDS: [&str; 11] = ["mug", "blue", "m", "m1", "red m2", "mug m7", "a 17", "01", "pay_01", "x", "?"];
    let words = prop::option::weighted(0.4, prop::sample::select(&WORDS[..]));
    (place, 1..8usize, states, time(), time(), currency, (units(), units(), unusual, words), ids).prop_map(
        |(at, limit, states, from, to, currency, (min_units, max_units, unusual, words), ids)| PaymentQuery {
            query: words.map(str::to_owned),
            at,
            states,
            from,
            to,
            currency,
            min_units,
            max_units,
            unusual,
            ids,
            ..PaymentQuery::all(merchant_id(1), limit)
        },
    )
}

/// Returns whether every word is the beginning of a word of the payment, or of its id.
fn has_words(payment: &Payment, words: &str) -> bool {
    let text = format!("{} A 17", payment.description).to_lowercase();
    let id = payment.id.to_string();
    let begins =
        |word: &str| text.split(' ').any(|known| known.starts_with(word)) || id["pay_".len()..].starts_with(word);
    let words = words.trim_start_matches("pay_");
    words != "?" && words.split(' ').all(begins)
}

/// Returns the expected page of a list.
fn naive(payments: &[Payment], query: &PaymentQuery) -> Page<Payment> {
    let in_time = |created: Timestamp| query.from.is_none_or(|t| created >= t) && query.to.is_none_or(|t| created < t);
    let mut all: Vec<&Payment> = payments
        .iter()
        .filter(|p| p.merchant == query.merchant)
        .filter(|p| query.states.is_empty() || query.states.contains(&p.state))
        .filter(|p| in_time(p.created_at))
        .filter(|p| query.currency.is_none_or(|currency| p.amount.currency == currency))
        .filter(|p| query.min_units.is_none_or(|least| p.amount.units >= least))
        .filter(|p| query.max_units.is_none_or(|most| p.amount.units <= most))
        .filter(|p| query.unusual.is_none_or(|unusual| p.needs_attention() == unusual))
        .filter(|p| query.ids.is_empty() || query.ids.contains(&p.id))
        .filter(|p| query.query.as_deref().is_none_or(|words| has_words(p, words)))
        .collect();
    all.sort_by_key(|p| std::cmp::Reverse(p.id));
    let (skipped, total) = match query.at {
        PageAt::Number(number) => (usize::try_from(number - 1).unwrap() * query.limit, all.len() as u64),
        PageAt::After(id) | PageAt::Following(id) => {
            (all.iter().filter(|p| p.id >= PaymentId::from_bits(id)).count(), 0)
        }
    };
    let has_more = all.len() > skipped + query.limit;
    let items: Vec<_> = all.into_iter().skip(skipped).take(query.limit).cloned().collect();
    let next = items.last().filter(|_| has_more).map(|payment| payment.id.bits());
    Page { next, ..Page::of(items, total) }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_list_matches_its_filters(
        mut payments in payments(),
        changes in prop::collection::vec((0..25usize, 0..6usize, prop::bool::ANY), 0..20),
        indexed in 0..30usize,
        queries in prop::collection::vec(queries(), 30),
    ) {
        let store = in_memory();
        for payment in &payments {
            block_on(store.commit(create(payment))).unwrap();
        }
        block_on(store.index_search(at(10_000_000), indexed)).unwrap();
        for (at, state, is_reversed) in changes {
            let Some(payment) = payments.get_mut(at) else { continue };
            let (version, state) = (payment.version + 1, State::ALL[state]);
            let next = Payment { version, state, is_reversed, ..payment.clone() };
            block_on(store.commit(replace(&next, payment.version))).unwrap();
            *payment = next;
        }
        let report = block_on(store.verify()).unwrap();
        let wrong = |finding: &&String| finding.starts_with("payments_by_merchant") || finding.starts_with("payment_days");
        prop_assert_eq!(report.findings.iter().find(wrong), None);
        for query in queries {
            let page = block_on(store.payments(query.clone())).unwrap();
            prop_assert_eq!(page, naive(&payments, &query), "{:?}", query);
        }
    }
}

#[tokio::test]
async fn daily_sums_count_every_payment_and_no_invoice() {
    const DAY: u64 = 86_400;
    let store = in_memory();
    let midnight = START.seconds() / DAY * DAY;
    let made = |day: u64, number: u64, change: &dyn Fn(Payment) -> Payment| {
        let created_at = Timestamp::from_seconds(midnight + day * DAY + number);
        let id = PaymentId::new(created_at, [u8::try_from(number).unwrap(); 10]);
        let slug = SlugToken::from_bits(id.bits());
        change(Payment { id, slug, created_at, ..payment(1, number) })
    };
    let paid = |after: u64, currency| {
        move |payment: Payment| Payment {
            state: State::Completed,
            completed_at: Some(payment.created_at + Duration::from_secs(after)),
            amount: Money::new(1_000, currency),
            quote: Quote { usd_cents: 70, ..payment.quote.clone() },
            ..payment
        }
    };
    let payments = [
        made(0, 1, &paid(5, Currency::Hbd)),
        made(1, 1, &paid(9, Currency::Hbd)),
        made(1, 2, &paid(30, Currency::Hive)),
        made(1, 3, &|payment| Payment { state: State::SystemCancelled, ..payment }),
        made(1, 4, &|payment| payment),
        made(1, 5, &|invoice| Payment { is_invoice: true, ..paid(1, Currency::Hbd)(invoice) }),
        made(1, 6, &|foreign| Payment { merchant: merchant_id(2), ..paid(1, Currency::Hbd)(foreign) }),
        made(3, 1, &paid(2, Currency::Hive)),
    ];
    for payment in &payments {
        store.commit(create(payment)).await.unwrap();
    }
    let today = midnight / DAY + 2;
    let query = VolumeQuery { merchant: merchant_id(1), last_day: today, days: 2 };
    let volume = store.volume(query).await.unwrap();
    let busy = DayVolume {
        day: today - 1,
        opened: 4,
        completed: 2,
        ended: 3,
        hive_units: 1_000,
        hbd_units: 1_000,
        usd_cents: 140,
    };
    assert_eq!(volume.days, [busy, DayVolume { day: today, ..DayVolume::default() }]);
    let median = volume.median_wait.unwrap();
    assert!(
        median.abs_diff(Duration::from_secs(30)) <= Duration::from_secs(30) / 64,
        "{median:?} is not within one part in 64"
    );
    let before_any = VolumeQuery { last_day: 3, days: 9, ..query };
    assert_eq!(store.volume(before_any).await.unwrap().days.len(), 4, "there are no days before 1970");
}

#[tokio::test]
async fn lists_that_must_be_read_are_counted_up_to_ten_thousand() {
    const ALL: u64 = 10_020;
    let store = in_memory();
    let dear = |number| if number == 2 { Money::new(77, Currency::Hbd) } else { payment(1, number).amount };
    let made = |number| Payment {
        amount: dear(number),
        description: if number == 1 { "Rare mug r1".to_owned() } else { format!("Mug r{number}") },
        ..payment(1, number)
    };
    let created = |number| Write::Payment { payment: Arc::new(made(number)), expected: None };
    for first in (1..=ALL).step_by(501) {
        let rest = (first + 1..ALL + 1).take(500).map(created);
        store.commit(rest.fold(Batch::of(created(first)), Batch::and)).await.unwrap();
    }
    let list = async |query: PaymentQuery| {
        let page = store.payments(query).await.unwrap();
        (
            page.items.iter().map(|payment| payment.id).collect::<Vec<_>>(),
            page.total,
            page.total_is_lower_bound,
            page.next,
        )
    };
    let all = PaymentQuery::all(merchant_id(1), 2);
    let newest = vec![payment_id(ALL), payment_id(ALL - 1)];
    let next = Some(payment_id(ALL - 1).bits());
    assert_eq!(list(all.clone()).await, (newest.clone(), ALL, false, next));
    let by_attention = PaymentQuery { unusual: Some(false), currency: Some(Currency::Hbd), ..all.clone() };
    assert_eq!(list(by_attention.clone()).await, (newest.clone(), ALL, false, next), "an index counts them");
    let last = PaymentQuery { at: PageAt::Number(ALL / 2), ..by_attention.clone() };
    assert_eq!(list(last).await, (vec![payment_id(2), payment_id(1)], ALL, false, None));
    let beyond = PaymentQuery { at: PageAt::Number(ALL / 2 + 1), ..by_attention };
    assert_eq!(list(beyond).await, (vec![], ALL, false, None));
    let by_amount = PaymentQuery { min_units: Some(1), ..all.clone() };
    assert_eq!(list(by_amount.clone()).await, (newest.clone(), 10_000, true, next));
    let by_time = PaymentQuery { from: Some(START + Duration::from_millis(3)), ..all.clone() };
    assert_eq!(list(by_time).await, (newest.clone(), 10_000, true, next), "a part of a day is read");
    let by_cursor = PaymentQuery { at: PageAt::After(payment_id(3).bits()), ..by_amount.clone() };
    assert_eq!(list(by_cursor).await, (vec![payment_id(2), payment_id(1)], 0, false, None));
    // Payments that are not indexed are found by reading page after page.
    let rare = PaymentQuery { min_units: Some(77), max_units: Some(77), ..all.clone() };
    let first = list(rare.clone()).await;
    assert_eq!((&first.0, first.2), (&vec![], true));
    let rest = PaymentQuery { at: PageAt::After(first.3.unwrap()), ..rare.clone() };
    assert_eq!(list(rest).await, (vec![payment_id(2)], 0, false, None));
    while store.index_search(at(10_000), 1_000).await.unwrap() > 0 {}
    assert_eq!(list(rare).await, (vec![payment_id(2)], 1, false, None));
    assert_eq!(list(by_amount).await, (newest.clone(), 10_000, true, next));
    let words = |words: &str| PaymentQuery { query: Some(words.to_owned()), ..all.clone() };
    assert_eq!(list(words("rare")).await, (vec![payment_id(1)], 1, false, None));
    assert_eq!(list(words("mug rare")).await, (vec![payment_id(1)], 1, false, None));
    assert_eq!(list(words("mug")).await, (newest.clone(), 10_000, true, next));
    let many = list(words("r")).await;
    assert_eq!((many.0, many.2, many.3), (newest.clone(), true, next), "10,020 words begin with it");
    let dear = PaymentQuery { min_units: Some(77), max_units: Some(77), ..words("r mug") };
    assert_eq!(list(dear).await.0, [payment_id(2)]);
    let attention = PaymentQuery { unusual: Some(true), ..words("mug") };
    assert_eq!(list(attention).await, (vec![], 0, false, None));
}

#[tokio::test]
async fn a_rare_state_is_found_at_once_and_a_common_one_in_bounded_reads() {
    const ALL: u64 = 2_010;
    let store = in_memory();
    store.commit(Batch::of(Write::Event(event(1, 1)))).await.unwrap();
    let delivery = store.due_deliveries(at(1_000), 1).await.unwrap().remove(0);
    let delivered = delivery.id;
    let attempt = Attempt { outcome: Outcome::Accepted { status: 200 }, ..attempt(&delivery, None) };
    store.commit(Batch::of(Write::Attempt { delivery, attempt })).await.unwrap();
    for number in 2..=ALL {
        store.commit(Batch::of(Write::Event(event(1, number)))).await.unwrap();
    }
    for delivery in store.due_deliveries(Timestamp::MAX, 3).await.unwrap() {
        store.commit(Batch::of(hold(delivery))).await.unwrap();
    }
    let list = async |states: &[DeliveryState], before: Option<u128>| {
        let before = before.map(DeliveryId::from_bits);
        let (merchant, states) = (merchant_id(1), states.to_vec());
        let query = DeliveryQuery { merchant, before, limit: 2, states, event: None, payment: None, endpoint: None };
        let Page { items, next, total, .. } = store.deliveries(query).await.unwrap();
        assert_eq!(total, 0, "deliveries are not counted");
        (items.into_iter().map(|logged| logged.delivery.id).collect::<Vec<_>>(), next)
    };
    let (held, next) = list(&[DeliveryState::Held], None).await;
    assert_eq!((held.len(), next.is_some()), (2, true));
    let rest = list(&[DeliveryState::Held], next).await;
    assert_eq!((rest.0.len(), rest.1), (1, None));
    // Delivered deliveries have no index: the log is read, and a page ends at the read limit.
    let first = list(&[DeliveryState::Delivered], None).await;
    assert_eq!((&first.0, first.1.is_some()), (&vec![], true));
    assert_eq!(list(&[DeliveryState::Delivered], first.1).await, (vec![delivered], None));
}

#[tokio::test]
async fn pages_by_cursor_do_not_shift_when_new_payments_arrive() {
    let store = in_memory();
    for number in 1..=5 {
        store.commit(create(&payment(1, number))).await.unwrap();
    }
    let ids = async |at| {
        let page = store.payments(PaymentQuery { at, ..PaymentQuery::all(merchant_id(1), 2) }).await.unwrap();
        page.items.into_iter().map(|payment| payment.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(PageAt::Number(1)).await, [payment_id(5), payment_id(4)]);
    store.commit(create(&payment(1, 6))).await.unwrap();
    assert_eq!(ids(PageAt::After(payment_id(4).bits())).await, [payment_id(3), payment_id(2)]);
    assert_eq!(ids(PageAt::Number(2)).await, [payment_id(4), payment_id(3)], "pages by number move");
    assert_eq!(ids(PageAt::Number(u64::MAX)).await, []);
}

#[tokio::test]
async fn merchants_are_listed_newest_first_and_filtered() {
    let store = in_memory();
    for number in [1, 2, 3] {
        store.commit(register(&merchant(number))).await.unwrap();
    }
    let asleep = merchant(2).set_active(false, at(9));
    store.commit(Batch::of(Write::Merchant { merchant: Box::new(asleep), expected: Some(1) })).await.unwrap();
    let list = async |query: Option<&str>, active, at, limit| {
        let query = MerchantQuery { at, limit, query: query.map(str::to_owned), active, on_hold: None };
        let Page { items, total, .. } = store.merchants(query).await.unwrap();
        (items.into_iter().map(|listed| listed.merchant.name.clone()).collect::<Vec<_>>(), total)
    };
    let names = |names: &[&str], total| (names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>(), total);
    let first = PageAt::Number(1);
    assert_eq!(list(None, None, first, 2).await, names(&["Shop 3", "Shop 2"], 3));
    assert_eq!(list(None, None, PageAt::Number(2), 2).await, names(&["Shop 1"], 3));
    assert_eq!(list(None, None, PageAt::After(merchant_id(3).bits()), 1).await, names(&["Shop 2"], 3));
    assert_eq!(list(None, Some(true), first, 1).await, names(&["Shop 3"], 2));
    assert_eq!(list(Some("shop.N2"), None, first, 9).await, names(&["Shop 2"], 1));
    assert_eq!(list(Some("SHOP"), Some(true), PageAt::After(merchant_id(3).bits()), 9).await, names(&["Shop 1"], 2));
    assert_eq!(list(Some(&merchant_id(1).to_string()), None, first, 9).await, names(&["Shop 1"], 1));
    assert_eq!(list(Some(" "), None, PageAt::Number(3), 9).await, names(&[], 3));
}
