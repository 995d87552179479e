//! Tests of deliveries to several webhook endpoints of a merchant.

use engine::{
    ids::{DeliveryId, EndpointId},
    webhook::EndpointHealth,
};
use storage::{Batch, DeliveryQuery, DueWork, EventRecord, Passed, Write, prelude::*};

use crate::samples::*;

#[tokio::test]
async fn each_endpoint_of_an_event_has_a_delivery_and_a_queue_of_its_own() {
    let store = in_memory();
    let books = EndpointId::from_bits(77);
    let [first, second] = [1, 2].map(|number| {
        let sent = event(1, number);
        let to_books = (books, DeliveryId::new(at(number), [3; 10]));
        EventRecord { payment: event(1, 1).payment, deliveries: vec![sent.deliveries[0], to_books], ..sent }
    });
    store.commit(Batch::of(Write::Event(first.clone())).and(Write::Event(second.clone()))).await.unwrap();
    assert_eq!(store.event(merchant_id(1), 1).await.unwrap(), Some(EventRecord { seq: 1, ..first.clone() }));
    let work = store.due_work(at(9), 8, 8, Passed::default()).await.unwrap();
    let seen: Vec<_> = work.iter().map(|work| (work.endpoint, work.merchant, work.deliveries.len())).collect();
    assert_eq!(seen, [(books, merchant_id(1), 2), (endpoint_id(1), merchant_id(1), 2)]);
    // What one endpoint gets does not wait for the other.
    for due in work.into_iter().flat_map(|work| work.deliveries).filter(|due| due.delivery.event == first.id) {
        if due.delivery.endpoint == books {
            let attempt = attempt(&due.delivery, None);
            store.commit(Batch::of(Write::Attempt { delivery: due.delivery, attempt })).await.unwrap();
        }
    }
    let work = store.due_work(at(9), 8, 8, Passed::default()).await.unwrap();
    let follows = |work: &DueWork| work.deliveries.iter().map(|due| due.follows).collect::<Vec<_>>();
    let follows: Vec<_> = work.iter().map(|work| (work.endpoint, follows(work))).collect();
    assert_eq!(follows, [(endpoint_id(1), vec![false, true]), (books, vec![false])]);
    assert!(store.endpoint(books).await.unwrap().last_failure_at.is_some(), "attempts count for their endpoint");
    assert_eq!(store.endpoint(endpoint_id(1)).await.unwrap(), EndpointHealth::default());
    let passed = Passed { endpoints: [endpoint_id(1)].into(), ..Passed::default() };
    let work = store.due_work(at(9), 8, 8, passed).await.unwrap();
    assert_eq!(work.iter().map(|work| work.endpoint).collect::<Vec<_>>(), [books]);
    let query = DeliveryQuery {
        merchant: merchant_id(1),
        before: None,
        limit: 9,
        states: Vec::new(),
        event: None,
        payment: None,
        endpoint: Some(books),
    };
    let listed = store.deliveries(query).await.unwrap().items;
    assert_eq!(
        listed.iter().map(|logged| Some(logged.delivery.id)).collect::<Vec<_>>(),
        [second.delivery_to(books), first.delivery_to(books)]
    );
    let findings = store.verify().await.unwrap().findings;
    assert!(!findings.iter().any(|text| text.contains("outbox") || text.contains("deliver")), "{findings:?}");
}
