//! Tests of search before, while and after payments are indexed.

use engine::{
    fields::{Metadata, MetadataValue},
    ledger::TxId,
    payment::{Credit, Disposition, Finality, Payment, Route, State},
    time::Timestamp,
};
use proptest::prelude::*;
use storage::{CommitError, EmbeddedStore, PageAt, PaymentQuery, prelude::*};

use crate::{disk::Gate, samples::*};

/// A time long after every sample payment was created.
fn later() -> Timestamp {
    at(3_600)
}

async fn found(store: &EmbeddedStore, query: &str) -> Vec<u64> {
    let query = PaymentQuery { query: Some(query.to_owned()), ..PaymentQuery::all(merchant_id(1), 100) };
    let page = store.payments(query).await.unwrap();
    assert_eq!(page.total, page.items.len() as u64);
    page.items.iter().map(|payment| payment.id.created_at().since(START).as_millis().try_into().unwrap()).collect()
}

/// Returns the payment with a transfer.
fn credited(payment: &Payment, payer: &str, tx: u8) -> Payment {
    let credit = Credit {
        seq: 1,
        tx_id: TxId([tx; 20]),
        op_in_tx: 0,
        block: None,
        from: account(payer),
        to: payment.pay_to,
        money: payment.amount,
        memo: String::new(),
        finality: Finality::Reversible,
        disposition: Disposition::Counted,
        route: Route::Wallet,
        memo_normalized: false,
    };
    Payment { version: payment.version + 1, transfers: vec![credit], ..payment.clone() }
}

fn described(number: u64, description: &str, order: &str) -> Payment {
    let metadata = Metadata::from([
        ("order".to_owned(), MetadataValue::Text(order.to_owned())),
        ("tags".to_owned(), MetadataValue::List(vec!["gift".to_owned(), "Priority-mail".to_owned()])),
    ]);
    Payment { description: description.to_owned(), metadata, ..payment(1, number) }
}

#[tokio::test]
async fn words_of_description_metadata_and_id_are_found_before_and_after_indexing() {
    let store = in_memory();
    store.commit(create(&described(1, "Blue mug, large", "A-17"))).await.unwrap();
    store.commit(create(&described(2, "Blue plate", "A-18"))).await.unwrap();
    store.commit(create(&Payment { merchant: merchant_id(2), ..described(3, "Blue mug", "A-19") })).await.unwrap();
    for rounds in 0..=3 {
        for (query, numbers) in [
            ("blue", vec![2, 1]),
            ("BLU mu", vec![1]),
            ("large-blue", vec![1]),
            ("17", vec![1]),
            ("mail", vec![2, 1]),
            ("order", vec![]),
            ("lue", vec![]),
            ("blue cup", vec![]),
            ("?", vec![]),
            (&payment_id(2).to_string(), vec![2]),
            (&payment_id(2).to_string()[..12], vec![2, 1]),
            (&format!("blue {}", payment_id(1)), vec![1]),
            (&format!("plate {}", payment_id(1)), vec![]),
            (&payment_id(3).to_string(), vec![]),
            ("", vec![2, 1]),
        ] {
            assert_eq!(found(&store, query).await, numbers, "{query:?} with {rounds} indexed");
        }
        assert_eq!(store.index_search(later(), 1).await.unwrap(), usize::from(rounds < 3));
    }
    assert_eq!(store.index_search(later(), 9).await.unwrap(), 0);
}

#[tokio::test]
async fn a_new_payment_is_not_indexed_yet() {
    let store = in_memory();
    store.commit(create(&described(1, "Blue mug", "A"))).await.unwrap();
    assert_eq!(store.index_search(at(9), 9).await.unwrap(), 0);
    assert_eq!(found(&store, "mug").await, [1]);
    assert_eq!(store.index_search(at(11), 9).await.unwrap(), 1);
    assert_eq!(found(&store, "mug").await, [1]);
}

#[tokio::test]
async fn a_payment_behind_the_search_cursor_is_indexed_by_its_own_commit() {
    let data = tempfile::tempdir().unwrap();
    {
        let store = open(data.path());
        store.commit(create(&described(50, "Red mug", "A"))).await.unwrap();
        assert_eq!(store.index_search(later(), 9).await.unwrap(), 1);
        // A clock ran behind: this payment has an earlier id than the search cursor.
        store.commit(create(&described(40, "Blue mug", "B"))).await.unwrap();
        assert_eq!(found(&store, "mug").await, [50, 40]);
        assert_eq!(store.index_search(later(), 9).await.unwrap(), 0, "the indexer has no more payments");
    }
    // The cursor is read again after a restart.
    let store = open(data.path());
    store.commit(create(&described(30, "Green mug", "C"))).await.unwrap();
    assert_eq!(found(&store, "mug").await, [50, 40, 30]);
}

#[tokio::test]
async fn a_changed_payment_is_still_found_with_its_new_state() {
    let store = in_memory();
    let opened = described(1, "Blue mug", "A");
    store.commit(create(&opened)).await.unwrap();
    store.index_search(later(), 9).await.unwrap();
    let cancelled = cancelled(&opened);
    store.commit(replace(&cancelled, 1)).await.unwrap();
    let query = |states| PaymentQuery { states, query: Some("mug".to_owned()), ..PaymentQuery::all(merchant_id(1), 9) };
    assert_eq!(store.payments(query(vec![cancelled.state])).await.unwrap().items, [cancelled]);
    assert_eq!(store.payments(query(vec![opened.state])).await.unwrap().total, 0);
}

#[tokio::test]
async fn payers_and_transactions_are_found_whenever_they_arrive() {
    let store = in_memory();
    let pay = async |number: u64, payer: &str, tx: u8| {
        let opened = described(number, "Blue mug", "A");
        store.commit(create(&opened)).await.unwrap();
        // Odd payments are indexed before their transfer, even ones after.
        if number % 2 == 1 {
            store.index_search(later(), 9).await.unwrap();
        }
        let paid = credited(&opened, payer, tx);
        store.commit(replace_with_rows(&paid, opened.version)).await.unwrap();
    };
    pay(1, "alice.shop", 0xa1).await;
    pay(2, "bob", 0xb2).await;
    let tx = "a1".repeat(20);
    for _ in 0..2 {
        for (query, numbers) in [
            ("alice", vec![1]),
            ("@alice.shop mug", vec![1]),
            ("bob", vec![2]),
            (&tx, vec![1]),
            (&tx[..12], vec![1]),
            (&tx.to_uppercase(), vec![1]),
            ("carol", vec![]),
            ("alice bob", vec![]),
        ] {
            assert_eq!(found(&store, query).await, numbers, "{query:?}");
        }
        store.index_search(later(), 9).await.unwrap();
    }
}

#[tokio::test]
async fn the_number_and_the_length_of_indexed_words_are_bounded() {
    let store = in_memory();
    let words: Vec<String> = (0..120).map(|number| format!("w{number:03}")).collect();
    let long = "x".repeat(40);
    store.commit(create(&described(1, &format!("{long} {}", words.join(" ")), "A"))).await.unwrap();
    for _ in 0..2 {
        assert_eq!(found(&store, "w098").await, [1]);
        assert_eq!(found(&store, "w099").await, [0; 0]);
        assert_eq!(found(&store, &"x".repeat(33)).await, [1]);
        store.index_search(later(), 9).await.unwrap();
    }
}

#[tokio::test]
async fn deleted_metadata_is_removed_from_the_index_and_from_every_row() {
    let store = in_memory();
    let before =
        Payment { state: State::Completed, completed_at: Some(at(1)), ..described(1, "Blue mug", "lovelace blue") };
    let paid = Payment { transfers: vec![fee_credit()], version: 2, ..before.clone() };
    store.commit(create(&before)).await.unwrap();
    store.commit(replace_with_rows(&paid, 1)).await.unwrap();
    store.index_search(later(), 100).await.unwrap();
    assert_eq!(found(&store, "lovelace").await, [1]);
    let after = Payment { metadata: Metadata::new(), version: 3, ..paid };
    store.commit(replace(&after, 2)).await.unwrap();
    assert_eq!(found(&store, "lovelace").await, [0; 0]);
    for kept in ["blue", "mug", "alice"] {
        assert_eq!(found(&store, kept).await, [1], "{kept}");
    }
    let mut rows = store.rows().unwrap();
    while let Some(rows) = rows.recv().await {
        for row in rows.unwrap() {
            assert!(memchr::memmem::find(&row.key, b"lovelace").is_none(), "{}", row.table);
            assert!(memchr::memmem::find(&row.value, b"lovelace").is_none(), "{}", row.table);
        }
    }
}

#[tokio::test]
async fn search_works_with_many_hits() {
    let store = in_memory();
    for number in 1..=600 {
        let order = format!("n{number}");
        store
            .commit(create(&described(number, if number % 2 == 0 { "Blue mug" } else { "Red mug" }, &order)))
            .await
            .unwrap();
    }
    while store.index_search(later(), 100).await.unwrap() == 100 {}
    let page = async |query: &str, at| {
        let query = PaymentQuery { at, query: Some(query.to_owned()), ..PaymentQuery::all(merchant_id(1), 3) };
        let page = store.payments(query).await.unwrap();
        (page.items.into_iter().map(|payment| payment.id).collect::<Vec<_>>(), page.total)
    };
    assert_eq!(
        page("mug blue", PageAt::Number(1)).await,
        (vec![payment_id(600), payment_id(598), payment_id(596)], 300)
    );
    assert_eq!(
        page("mug", PageAt::After(payment_id(2).bits())).await,
        (vec![payment_id(1)], 0),
        "a page by cursor has no total"
    );
    assert_eq!(page("gift mug n7", PageAt::Number(1)).await.1, 11, "7, 70 to 79");
}

const WORDS: [&str; 6] = ["blue", "bl", "red", "mug", "mugs", "A-17"];

fn texts() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&WORDS[..]), 1..4).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn search_matches_a_full_scan(
        steps in prop::collection::vec((1..40u64, texts(), 0..4usize), 1..25),
        queries in prop::collection::vec(texts(), 10),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = in_memory();
            let mut kept: Vec<(u64, String)> = Vec::new();
            for (number, text, index) in steps {
                match store.commit(create(&described(number, &text, "Z"))).await {
                    Ok(()) => kept.push((number, text)),
                    Err(CommitError::Conflict { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
                store.index_search(later(), index).await.unwrap();
            }
            kept.sort_unstable_by_key(|(number, _)| std::cmp::Reverse(*number));
            for query in queries {
                let words = |text: &str| text.to_lowercase().split([' ', '-']).map(str::to_owned).collect::<Vec<_>>();
                let finds = |text: &str| {
                    words(&query).iter().all(|wanted| words(text).iter().any(|word| word.starts_with(wanted)))
                };
                // A word of digits may also be the beginning of an id; none of these is, because every id starts with
                // 01.
                let wanted: Vec<u64> = kept.iter().filter(|(_, text)| finds(text)).map(|(number, _)| *number).collect();
                assert_eq!(found(&store, &query).await, wanted, "{query:?}");
            }
        });
    }
}

#[tokio::test]
async fn words_read_before_an_intermediate_payment_are_rejected() {
    let gate = Gate::default();
    let store = gate.open(10);
    store.commit(create(&described(10, "Blue mug", "A"))).await.unwrap();
    store.commit(create(&described(30, "Blue mug", "C"))).await.unwrap();
    gate.block();
    let slips_in = create(&described(20, "Blue mug", "B"));
    let mut slips_in = store.commit(slips_in);
    assert!(futures_util::poll!(&mut slips_in).is_pending());
    gate.sync_is_blocked().await;
    // The indexer reads payments 10 and 30; its words reach the writer after payment 20 is committed.
    let mut indexing = store.index_search(later(), 9);
    assert!(futures_util::poll!(&mut indexing).is_pending());
    gate.unblock();
    assert_eq!(slips_in.await, Ok(()));
    assert_eq!(indexing.await, Ok(0));
    assert_eq!(store.index_search(later(), 9).await, Ok(3));
    assert_eq!(found(&store, "mug").await, [30, 20, 10]);
}
