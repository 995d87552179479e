//! Lists and filters against a naive list in memory.

use engine::{
    ids::PaymentId,
    money::{Currency, Money},
    payment::{Payment, State},
    time::Timestamp,
};
use proptest::prelude::*;
use storage::{Page, PageAt, PaymentQuery, Store};

use crate::samples::*;

/// A payment of merchant 1 or 2 in any state; every third is unusual.
fn any_payment(number: u64) -> impl Strategy<Value = Payment> {
    (1..=2u8, 0..6usize, prop::bool::ANY, prop::bool::ANY, 0..5u64).prop_map(
        move |(owner, state, hive, is_reversed, second)| Payment {
            state: State::ALL[state],
            amount: Money::new(1_000, if hive { Currency::Hive } else { Currency::Hbd }),
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
    let ids = prop_oneof![4 => Just(Vec::new()), 1 => prop::collection::vec((0..30u64).prop_map(payment_id), 1..9)];
    (place, 1..8usize, states, moment(), moment(), currency, unusual, ids).prop_map(
        |(at, limit, states, from, to, currency, unusual, ids)| PaymentQuery {
            at,
            states,
            from,
            to,
            currency,
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
