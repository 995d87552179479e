//! Tests that a transfer pays once: for another server's resource or for a session.

use std::sync::Arc;

use engine::{
    ids::MerchantId,
    ledger::TxId,
    time::Timestamp,
    x402::{ClaimOutcome, ClaimRecord, Facilitation, Purpose},
};
use storage::{Batch, CommitError, Handling, Write, prelude::*};

use crate::samples::*;

#[tokio::test]
async fn a_claimed_transaction_is_never_assigned_and_an_assigned_one_is_never_claimed() {
    let store = in_memory();
    store.commit(Batch::of(Write::Payment { payment: Arc::new(payment(1, 1)), expected: None })).await.unwrap();
    let stray = |block, number| {
        let mut stray = unmatched("shop", block, 0);
        stray.transfer.tx_id = tx_id(number);
        stray
    };
    let assign = |block| {
        let handling = Handling::Assigned { payment: payment_id(1), by: "key".to_owned(), at: START };
        Batch::of(Write::Handle { account: account("shop"), place: stray(block, 0).transfer.position, handling })
    };
    for (block, number) in [(1, 1), (2, 2), (3, 3)] {
        store.commit(Batch::of(Write::Unmatched(stray(block, number)))).await.unwrap();
    }
    // The first commit wins; within one commit, the first write.
    let claim = |number: u8, nonce: &str| Write::Claim(facilitated(number, nonce));
    store.commit(Batch::of(claim(1, "a"))).await.unwrap();
    let refused = CommitError::Claimed(Box::new(facilitated(1, "a")));
    assert_eq!(store.commit(assign(1)).await, Err(refused));
    store.commit(assign(2)).await.unwrap();
    let taken = Err(CommitError::Assigned(payment_id(1)));
    assert_eq!(store.commit(Batch::of(claim(2, "b"))).await, taken);
    assert_eq!(
        store.commit(Batch::of(Write::Claim(claimed(2, "b")))).await,
        taken,
        "a claim for a session is rejected, too"
    );
    let both = store.commit(assign(3).and(claim(3, "c"))).await;
    assert_eq!(both, taken);
    assert_eq!(store.claim(tx_id(3)).await.unwrap(), None, "the rejected batch writes nothing");
    // A settled claim stays settled. An expired one can be assigned if its transfer is found later.
    let settled = ClaimOutcome::Settled { is_reported: true, block_num: Some(1) };
    let outcome =
        |expected: ClaimOutcome, outcome| Batch::of(Write::ClaimOutcome { tx_id: tx_id(1), expected, outcome });
    store.commit(outcome(ClaimOutcome::Open, settled.clone())).await.unwrap();
    assert!(matches!(store.commit(assign(1)).await, Err(CommitError::Claimed(_))));
    store.commit(outcome(settled, ClaimOutcome::Expired)).await.unwrap();
    store.commit(assign(1)).await.unwrap();
}

/// Returns a settled claim for another server.
fn decided(number: u8, nonce: &str, seller: Option<MerchantId>) -> ClaimRecord {
    let claimed = facilitated(number, nonce);
    let Purpose::Facilitated(facilitation) = claimed.purpose else { panic!() };
    let purpose = Purpose::Facilitated(Box::new(Facilitation { seller, ..*facilitation }));
    ClaimRecord { purpose, outcome: ClaimOutcome::Settled { is_reported: true, block_num: Some(1) }, ..claimed }
}

#[tokio::test]
async fn claims_without_a_merchant_are_pruned_with_their_keys_and_no_others() {
    let store = in_memory();
    let kept = [
        facilitated(1, "open"),
        ClaimRecord { outcome: ClaimOutcome::Expired, ..claimed(2, "session") },
        decided(3, "seller", Some(merchant_id(1))),
    ];
    let named = ClaimRecord { identifier: Some("0123456789abcdef".to_owned()), ..decided(5, "named", None) };
    let gone =
        [decided(4, "gone", None), named, ClaimRecord { outcome: ClaimOutcome::Expired, ..decided(6, "buried", None) }];
    for claimed in kept.iter().chain(&gone) {
        store.commit(Batch::of(Write::Claim(claimed.clone()))).await.unwrap();
    }
    // The scan skips as many claims as the limit and continues where it stopped.
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let (more, next) = store.forgettable_claims(Timestamp::MAX, after, 2).await.unwrap();
        found.extend(more);
        after = next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, gone);
    assert_eq!(store.forgettable_claims(START, None, 99).await.unwrap(), (Vec::new(), None), "none has expired");
    for claimed in &kept {
        let both = vec![gone[0].tx_id, claimed.tx_id];
        let refused = store.commit(Batch::of(Write::ForgetClaims(both))).await;
        assert!(matches!(refused, Err(CommitError::Conflict { .. })), "{refused:?}");
    }
    let ids: Vec<TxId> = gone.iter().map(|claimed| claimed.tx_id).collect();
    // A deleted claim cannot be settled, not even in the same commit.
    let outcome =
        Write::ClaimOutcome { tx_id: ids[0], expected: gone[0].outcome.clone(), outcome: ClaimOutcome::Expired };
    let both = store.commit(Batch::of(Write::ForgetClaims(ids.clone())).and(outcome)).await;
    assert!(matches!(both, Err(CommitError::Conflict { .. })), "{both:?}");
    store.commit(Batch::of(Write::ForgetClaims(ids.clone()))).await.unwrap();
    let twice = store.commit(Batch::of(Write::ForgetClaims(ids))).await;
    assert!(matches!(twice, Err(CommitError::Conflict { .. })), "{twice:?}");
    for claimed in &gone {
        assert_eq!(store.claim(claimed.tx_id).await.unwrap(), None);
        assert_eq!(
            store.overlapping_claim(claimed.pay_to, Vec::new(), None, claimed.nonce.clone()).await.unwrap(),
            None
        );
    }
    let by_identifier =
        store.overlapping_claim(gone[1].pay_to, Vec::new(), Some("0123456789abcdef".to_owned()), String::new()).await;
    assert_eq!(by_identifier.unwrap(), None);
    for claimed in &kept {
        assert_eq!(store.claim(claimed.tx_id).await.unwrap().as_ref(), Some(claimed));
        let by_nonce = store.overlapping_claim(claimed.pay_to, Vec::new(), None, claimed.nonce.clone()).await;
        assert_eq!(by_nonce.unwrap().as_ref(), Some(claimed));
    }
    assert_eq!(store.verify().await.unwrap().findings, [""; 0]);
}
