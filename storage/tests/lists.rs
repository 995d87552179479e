//! Lists and filters against a naive list in memory.

use std::time::Duration;

use engine::{
    ids::{PaymentId, SlugToken},
    money::{Currency, Money},
    payment::{Payment, Quote, State},
    time::Timestamp,
};
use proptest::prelude::*;
use storage::{Batch, DayVolume, MerchantQuery, Page, PageAt, PaymentQuery, Store, VolumeQuery, Write};

use crate::samples::*;

/// A payment of merchant 1 or 2 in any state; every third is unusual.
fn any_payment(number: u64) -> impl Strategy<Value = Payment> {
    (1..=2u8, 0..6usize, prop::bool::ANY, prop::bool::ANY, 0..5u64, 0..4u64).prop_map(
        move |(owner, state, hive, is_reversed, second, units)| Payment {
            state: State::ALL[state],
            amount: Money::new(1_000 + units, if hive { Currency::Hive } else { Currency::Hbd }),
            is_reversed,
            created_at: at(second),
            ..payment(owner, number)
        },
    )
}

fn payments() -> impl Strategy<Value = Vec<Payment>> {
    (0..25u64).prop_flat_map(|count| (1..=count).map(any_payment).collect::<Vec<_>>())
}

fn queries() -> impl Strategy<Value = PaymentQuery> {
    let place =
        prop_oneof![(1..4u64).prop_map(PageAt::Number), (0..30u64).prop_map(|n| PageAt::After(payment_id(n).bits()))];
    let states = prop::collection::vec((0..6usize).prop_map(|at| State::ALL[at]), 0..3);
    let moment = || prop::option::weighted(0.3, (0..6u64).prop_map(at));
    let currency = prop::option::weighted(0.3, prop_oneof![Just(Currency::Hive), Just(Currency::Hbd)]);
    let unusual = prop::option::weighted(0.3, prop::bool::ANY);
    let units = || prop::option::weighted(0.2, 999..1_005u64);
    let ids = prop_oneof![4 => Just(Vec::new()), 1 => prop::collection::vec((0..30u64).prop_map(payment_id), 1..9)];
    (place, 1..8usize, states, moment(), moment(), currency, (units(), units(), unusual), ids).prop_map(
        |(at, limit, states, from, to, currency, (min_units, max_units, unusual), ids)| PaymentQuery {
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

/// What a list should be, by its words.
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
        .collect();
    all.sort_by_key(|p| std::cmp::Reverse(p.id));
    let total = all.len() as u64;
    let skipped = match query.at {
        PageAt::Number(number) => usize::try_from(number - 1).unwrap() * query.limit,
        PageAt::After(id) | PageAt::Following(id) => all.iter().filter(|p| p.id >= PaymentId::from_bits(id)).count(),
    };
    Page { items: all.into_iter().skip(skipped).take(query.limit).cloned().collect(), total }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_list_is_what_its_filters_say(payments in payments(), queries in prop::collection::vec(queries(), 30)) {
        let store = in_memory();
        for payment in &payments {
            block_on(store.commit(create(payment))).unwrap();
        }
        for query in queries {
            let page = block_on(store.payments(query.clone())).unwrap();
            prop_assert_eq!(page, naive(&payments, &query), "{:?}", query);
        }
    }
}

#[tokio::test]
async fn sums_of_days_hold_every_payment_of_theirs_and_no_invoice() {
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
    assert_eq!(volume.median_wait, Some(Duration::from_secs(30)));
    let before_any = VolumeQuery { last_day: 3, days: 9, ..query };
    assert_eq!(store.volume(before_any).await.unwrap().days.len(), 4, "time begins in 1970");
}

#[tokio::test]
async fn pages_by_cursor_stay_where_they_are_while_new_payments_arrive() {
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
        let Page { items, total } = store.merchants(query).await.unwrap();
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
