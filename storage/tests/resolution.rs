//! Commits whose outcome is unknown: resolved by a write, once and for all.

use storage::{Batch, CommitError, CommitId, EmbeddedStore, Resolution, prelude::*};

use crate::samples::*;

fn created(number: u64, id: u128) -> Batch {
    Batch { id: Some(CommitId::from_bits(id)), ..create(&payment(1, number)) }
}

async fn resolved(store: &EmbeddedStore, id: u128) -> Resolution {
    store.resolve(CommitId::from_bits(id)).await.unwrap()
}

#[tokio::test]
async fn a_commit_that_was_applied_is_resolved_as_applied_and_not_repeated() {
    let store = in_memory();
    store.commit(created(1, 7)).await.unwrap();
    assert_eq!(resolved(&store, 7).await, Resolution::Applied);
    assert_eq!(resolved(&store, 7).await, Resolution::Applied);
    let again = store.commit(created(2, 7)).await;
    assert!(matches!(again, Err(CommitError::Conflict { .. })), "{again:?}");
    assert!(store.payment(payment(1, 2).id).await.unwrap().is_none());
}

#[tokio::test]
async fn a_commit_that_never_happened_is_forbidden() {
    let store = in_memory();
    assert_eq!(resolved(&store, 7).await, Resolution::Forbidden);
    let late = store.commit(created(1, 7)).await;
    assert!(matches!(late, Err(CommitError::Conflict { .. })), "{late:?}");
    assert!(store.payment(payment(1, 1).id).await.unwrap().is_none());
    assert_eq!(resolved(&store, 7).await, Resolution::Forbidden);
    store.commit(created(1, 8)).await.unwrap();
}

#[tokio::test]
async fn a_commit_that_was_refused_is_forbidden() {
    let store = in_memory();
    store.commit(created(1, 7)).await.unwrap();
    let refused = store.commit(created(1, 8)).await;
    assert!(matches!(refused, Err(CommitError::Conflict { .. })), "{refused:?}");
    assert_eq!(resolved(&store, 8).await, Resolution::Forbidden);
}

#[tokio::test]
async fn a_group_knows_the_commits_before_each_of_its_batches() {
    let store = in_memory();
    let outcomes = store.commit_group(vec![created(1, 7), created(2, 7), created(3, 9)]).await;
    assert!(matches!(outcomes[..], [Ok(()), Err(CommitError::Conflict { .. }), Ok(())]), "{outcomes:?}");
    assert_eq!((resolved(&store, 7).await, resolved(&store, 9).await), (Resolution::Applied, Resolution::Applied));
}
