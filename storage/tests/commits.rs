//! Every write: what it makes readable, and what refuses it.

use engine::payment::{Canceller, Command};
use storage::{Batch, CommitError, PaymentQuery, Store, Write};

use crate::samples::*;

#[tokio::test]
async fn a_created_payment_is_found_by_id_by_slug_in_its_list_and_by_deadline() {
    let store = in_memory();
    let payment = payment(1, 5);
    store.commit(create(&payment)).await.unwrap();
    assert_eq!(store.payment(payment.id).await.unwrap().as_ref(), Some(&payment));
    assert_eq!(store.payment_by_slug(payment.slug).await.unwrap().as_ref(), Some(&payment));
    let page = store.payments(PaymentQuery::all(payment.merchant, 10)).await.unwrap();
    assert_eq!((page.items, page.total), (vec![payment.clone()], 1));
    let deadline = payment.deadline();
    assert_eq!(store.due(deadline, None, 10).await.unwrap(), []);
    let later = deadline + std::time::Duration::from_millis(1);
    assert_eq!(store.due(later, None, 10).await.unwrap(), [(deadline, payment.id)]);
}

#[tokio::test]
async fn a_stale_writer_is_refused() {
    let store = in_memory();
    let opened = payment(1, 5);
    store.commit(create(&opened)).await.unwrap();
    let cancelled = opened.apply(Command::Cancel(Canceller::Merchant), at(1)).unwrap().payment;
    store.commit(replace(&cancelled, opened.version)).await.unwrap();
    let stale = store.commit(replace(&cancelled, opened.version)).await;
    assert!(matches!(stale, Err(CommitError::Conflict { what }) if what.contains(&opened.id.to_string())));
    assert_eq!(store.due(at(9_999), None, 10).await.unwrap(), []);
    assert_eq!(store.payment(opened.id).await.unwrap(), Some(cancelled));
}

#[tokio::test]
async fn a_store_with_a_writer_thread_keeps_what_it_acknowledged() {
    let data = tempfile::tempdir().unwrap();
    let payment = payment(1, 5);
    {
        let store = open(data.path());
        store.commit(create(&payment)).await.unwrap();
    }
    let store = open(data.path());
    assert_eq!(store.payment(payment.id).await.unwrap(), Some(payment));
    let _ = Batch::of(Write::Note { name: "x", value: Vec::new() });
}
