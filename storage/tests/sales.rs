//! A transfer is sold once: for somebody's resource or to a session.

use std::sync::Arc;

use storage::{Batch, CommitError, Fate, Handling, Store, Write};

use crate::samples::*;

#[tokio::test]
async fn a_sale_is_never_assigned_and_what_is_assigned_is_never_sold() {
    let store = in_memory();
    store.commit(Batch::of(Write::Payment { payment: Arc::new(payment(1, 1)), expected: None })).await.unwrap();
    let stray = |block, number| {
        let mut stray = unmatched("shop", block, 0);
        stray.transfer.tx_id = tx_id(number);
        stray
    };
    let assign = |block| {
        let handling = Handling::Assigned { payment: payment_id(1), by: "key".to_owned(), at: START };
        Batch::of(Write::Handle { account: account("shop"), place: stray(block, 0).transfer.place, handling })
    };
    for (block, number) in [(1, 1), (2, 2), (3, 3)] {
        store.commit(Batch::of(Write::Unmatched(stray(block, number)))).await.unwrap();
    }
    // Whichever is committed first wins, in one commit, too.
    let claim = |number: u8, nonce: &str| Write::Claim(facilitated(number, nonce));
    store.commit(Batch::of(claim(1, "a"))).await.unwrap();
    let refused = CommitError::Claimed(Box::new(facilitated(1, "a")));
    assert_eq!(store.commit(assign(1)).await, Err(refused));
    store.commit(assign(2)).await.unwrap();
    let taken = Err(CommitError::Assigned(payment_id(1)));
    assert_eq!(store.commit(Batch::of(claim(2, "b"))).await, taken);
    assert_eq!(store.commit(Batch::of(Write::Claim(claimed(2, "b")))).await, taken, "a session is no exception");
    let both = store.commit(assign(3).and(claim(3, "c"))).await;
    assert_eq!(both, taken);
    assert_eq!(store.claim(tx_id(3)).await.unwrap(), None, "nothing of it is written");
    // What settled stays a sale; what never happened may be assigned when it is found all the same.
    let settled = Fate::Settled { told: true, block_num: Some(1) };
    let fate = |expected: Fate, fate| Batch::of(Write::Fate { tx_id: tx_id(1), expected, fate });
    store.commit(fate(Fate::Open, settled.clone())).await.unwrap();
    assert!(matches!(store.commit(assign(1)).await, Err(CommitError::Claimed(_))));
    store.commit(fate(settled, Fate::Buried)).await.unwrap();
    store.commit(assign(1)).await.unwrap();
}
