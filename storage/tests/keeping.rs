//! Tests of idempotency keys, the audit log, secrets under a master key, and deadlines.

use std::time::Duration;

use engine::{
    audit::{Actor, Entry, FieldChange},
    idempotency::{IdempotencyRecord, Resource},
    ids::{MerchantId, PaymentId},
    merchant::Merchant,
    payment::{Canceller, Command, Payment},
    time::Timestamp,
    x402::{ReceiptKey, ReceiptKeys},
};
use storage::{
    AuditQuery, Batch, CommitError, EmbeddedStore, Idle, MasterKey, Options, Secrets, Vault, Write, prelude::*,
};

use crate::samples::*;

/// Maximum number of keys of a merchant in these tests.
const MAX_KEYS: u64 = 3_000;

#[tokio::test]
async fn idempotency_keys_are_bounded_for_each_merchant() {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path(), Options::default()).unwrap();
    let key = |merchant: u128, n: u32, hours: u64| {
        let mut digest = [0; 32];
        digest[..4].copy_from_slice(&n.to_be_bytes());
        Write::Remember {
            remembered: IdempotencyRecord {
                merchant: MerchantId::from_bits(merchant),
                key: digest,
                fingerprint: [0; 32],
                resource: Resource::Payment(PaymentId::from_bits(n.into())),
                at: Timestamp::from_seconds(hours * 3_600),
            },
            most: MAX_KEYS,
        }
    };
    for chunk in 0..3 {
        let batch = (chunk * 1_000..(chunk + 1) * 1_000).map(|n| key(1, n, 0)).collect();
        store.commit(batch).await.unwrap();
    }
    assert_eq!(store.commit(Batch::of(key(1, 3_000, 0))).await, Err(CommitError::KeysFull));
    let earlier = store.commit(Batch::of(key(1, 5, 0))).await;
    assert!(matches!(earlier, Err(CommitError::Remembered(_))), "a stored key is returned at the limit: {earlier:?}");
    store.commit(Batch::of(key(2, 3_000, 0))).await.expect("another merchant has its own limit");
    let made_before = Timestamp::from_seconds(3_600);
    let mut commits = 0;
    while store.oldest_key().await.unwrap().is_some_and(|oldest| oldest < made_before) {
        store.commit(Batch::of(Write::Forget { made_before })).await.unwrap();
        commits += 1;
    }
    assert_eq!(commits, 4, "a thousand at once, of both merchants");
    store.commit(Batch::of(key(1, 3_000, 25))).await.expect("deleted keys do not count");
}

#[tokio::test]
async fn a_key_stored_after_a_deletion_in_the_same_commit_is_in_force() {
    let day = |days: u64| Timestamp::from_seconds(days * 86_400);
    let key = |at| IdempotencyRecord {
        merchant: MerchantId::from_bits(1),
        key: [1; 32],
        fingerprint: [0; 32],
        resource: Resource::Payment(PaymentId::from_bits(1)),
        at,
    };
    let forget = Write::Forget { made_before: day(2) };
    let store = in_memory();
    let twice = vec![
        forget.clone(),
        Write::Remember { remembered: key(day(1)), most: MAX_KEYS },
        Write::Remember { remembered: key(day(0)), most: MAX_KEYS },
    ];
    let refused = store.commit(Batch::from(twice)).await;
    assert_eq!(refused, Err(CommitError::Remembered(Box::new(key(day(1))))));
    let between = vec![
        Write::Remember { remembered: key(day(1)), most: MAX_KEYS },
        forget,
        Write::Remember { remembered: key(day(0)), most: MAX_KEYS },
    ];
    store.commit(Batch::from(between)).await.expect("the first key is deleted before the second is stored");
    assert_eq!(store.remembered(MerchantId::from_bits(1), [1; 32]).await.unwrap(), Some(key(day(0))));
}

#[tokio::test]
async fn a_key_deleted_and_stored_again_by_one_commit_is_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path(), Options::default()).unwrap();
    let kept = Write::Remember {
        remembered: IdempotencyRecord {
            merchant: MerchantId::from_bits(1),
            key: [2; 32],
            fingerprint: [0; 32],
            resource: Resource::Payment(PaymentId::from_bits(1)),
            at: Timestamp::from_seconds(0),
        },
        most: MAX_KEYS,
    };
    let forget = Write::Forget { made_before: Timestamp::from_seconds(3_600) };
    store.commit(Batch::of(kept.clone())).await.unwrap();
    store.commit(Batch::from(vec![forget.clone(), kept])).await.unwrap();
    store.commit(Batch::of(forget)).await.expect("one key is counted and deleted");
}

#[tokio::test]
async fn the_audit_log_is_append_only_and_read_from_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path(), Options::default()).unwrap();
    let entry = |merchant: u128, n: u64| {
        Write::Audit(Box::new(Entry {
            seq: 0,
            at: Timestamp::from_seconds(n),
            actor: Actor { merchant: Some(MerchantId::from_bits(9)), key: None, ip: Some("::1".to_owned()) },
            action: "merchant_updated".to_owned(),
            merchant: MerchantId::from_bits(merchant),
            subject: None,
            changes: vec![FieldChange { field: "name".to_owned(), before: Some("a".to_owned()), after: None }],
        }))
    };
    for n in 1..=5 {
        store.commit(Batch::of(entry(u128::from(n % 2), n))).await.unwrap();
    }
    let seqs = async |before, limit, merchant: Option<u128>| {
        let merchant = merchant.map(MerchantId::from_bits);
        let found = store.audit(AuditQuery { before, limit, merchant }).await.unwrap();
        found.iter().map(|entry| entry.seq).collect::<Vec<_>>()
    };
    assert_eq!(seqs(None, 10, None).await, [5, 4, 3, 2, 1]);
    assert_eq!(seqs(Some(4), 2, None).await, [3, 2]);
    assert_eq!(seqs(None, 10, Some(0)).await, [4, 2]);
    assert_eq!(seqs(None, 10, Some(9)).await.len(), 5, "entries are listed for the actor, too");
}

#[tokio::test]
async fn a_master_key_seals_every_secret_and_can_be_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let merchant = merchant(1);
    let secret = merchant.secrets.current.reveal().to_owned();
    let vault = |current: Option<u8>, previous: Option<u8>| {
        let key = |n| MasterKey::new([n; 32]);
        Vault::new(current.map(key), previous.map(key))
    };
    let open = |vault: Vault| EmbeddedStore::open_sealed(folder.path(), Options::default(), vault);
    let holds_plain = || {
        let bytes = std::fs::read(folder.path().join(storage::FILE_NAME)).unwrap();
        bytes.windows(secret.len()).any(|window| window == secret.as_bytes())
    };
    let read = async |store: &EmbeddedStore| store.merchant(merchant.id).await.unwrap().unwrap();
    let keys = ReceiptKeys::create(ReceiptKey::new([9; 32]), START);
    let read_keys = async |store: &EmbeddedStore| store.receipt_keys().await.unwrap().unwrap();

    let store = open(vault(Some(1), None)).unwrap();
    let write = Write::ReceiptKeys { keys: Box::new(keys.clone()), expected: 0 };
    store.commit(Batch::of(write)).await.unwrap();
    assert_eq!(read_keys(&store).await, keys);
    store.commit(Batch::of(Write::Merchant { merchant: Box::new(merchant.clone()), expected: None })).await.unwrap();
    assert_eq!(*read(&store).await, merchant);
    store.close().await;
    drop(store);
    assert!(!holds_plain(), "the file contains the secret");

    for wrong in [vault(None, None), vault(Some(2), None), vault(Some(2), Some(3))] {
        assert!(matches!(open(wrong), Err(storage::OpenError::MasterKey { .. })));
    }
    let store = open(vault(Some(2), Some(1))).unwrap();
    assert_eq!(*read(&store).await, merchant);
    store.close().await;
    drop(store);
    assert!(matches!(open(vault(Some(1), None)), Err(storage::OpenError::MasterKey { is_given: true })));
    let store = open(vault(Some(2), None)).unwrap();
    assert_eq!(*read(&store).await, merchant);
    assert_eq!(read_keys(&store).await, keys);
    store.close().await;
}

#[tokio::test]
async fn an_unsealed_receipt_key_is_sealed_at_the_start_and_leaves_no_copy() {
    let folder = tempfile::tempdir().unwrap();
    let keys = ReceiptKeys::create(ReceiptKey::new([0xa9; 32]), START);
    let secret = keys.current.to_hex();
    let open = |key| EmbeddedStore::open_sealed(folder.path(), Options::default(), Vault::new(key, None));
    let files_with_it = || {
        let files =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
        files.filter(|bytes| bytes.windows(secret.len()).any(|window| window == secret.as_bytes())).count()
    };
    let store = open(None).unwrap();
    let write = Write::ReceiptKeys { keys: Box::new(keys.clone()), expected: 0 };
    store.commit(Batch::of(write)).await.unwrap();
    store.close().await;
    drop(store);
    assert!(files_with_it() > 0, "the unsealed key is not found in any file");

    let store = open(Some(MasterKey::new([1; 32]))).unwrap();
    assert_eq!(store.receipt_keys().await.unwrap(), Some(keys));
    store.close().await;
    drop(store);
    assert_eq!(files_with_it(), 0, "a file contains the key");
}

#[tokio::test]
async fn receipt_keys_are_replaced_only_with_the_version_that_was_read() {
    let store = in_memory();
    assert_eq!(store.receipt_keys().await.unwrap(), None);
    let first = |seed| ReceiptKeys::create(ReceiptKey::new([seed; 32]), START);
    let write =
        |keys: &ReceiptKeys| Batch::of(Write::ReceiptKeys { keys: Box::new(keys.clone()), expected: keys.version - 1 });
    store.commit(write(&first(1))).await.unwrap();
    let second = store.commit(write(&first(2))).await;
    assert!(matches!(second, Err(CommitError::Conflict { .. })), "two engines create one key: {second:?}");
    assert_eq!(store.receipt_keys().await.unwrap(), Some(first(1)));
    let rotated = first(1).rotate(ReceiptKey::new([3; 32]), START);
    store.commit(write(&rotated)).await.unwrap();
    assert!(matches!(store.commit(write(&rotated)).await, Err(CommitError::Conflict { .. })));
    assert_eq!(store.receipt_keys().await.unwrap(), Some(rotated));
}

#[tokio::test]
async fn unsealed_secrets_are_sealed_at_the_start_and_leave_no_copy() {
    let folder = tempfile::tempdir().unwrap();
    let merchant = merchant(1);
    let secret = merchant.secrets.current.reveal().to_owned();
    let key = || MasterKey::new([1; 32]);
    let open = |key| EmbeddedStore::open_sealed(folder.path(), Options::default(), Vault::new(key, None));
    let files_with_it = || {
        let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let holds = |path: &std::path::PathBuf| {
            let bytes = std::fs::read(path).unwrap();
            bytes.windows(secret.len()).any(|window| window == secret.as_bytes())
        };
        files.filter(holds).count()
    };
    let store = open(None).unwrap();
    let write = |merchant: &Merchant, expected| Write::Merchant { merchant: Box::new(merchant.clone()), expected };
    store.commit(Batch::of(write(&merchant, None))).await.unwrap();
    assert_eq!(store.secrets().unwrap(), Secrets { sealed: 0, plain: 1 });
    store.close().await;
    drop(store);
    assert!(files_with_it() > 0, "the unsealed secret is not found in any file");

    let store = open(Some(key())).unwrap();
    assert_eq!(store.secrets().unwrap(), Secrets { sealed: 1, plain: 0 });
    assert_eq!(*store.merchant(merchant.id).await.unwrap().unwrap(), merchant);
    store.close().await;
    drop(store);
    assert_eq!(files_with_it(), 0, "a file contains the secret");

    let idle = Idle::take_store(folder.path()).unwrap();
    assert_eq!(idle.secrets(&Vault::new(Some(key()), None)).unwrap(), Secrets { sealed: 1, plain: 0 });
    let wrong = idle.secrets(&Vault::new(Some(MasterKey::new([9; 32])), None));
    assert!(matches!(wrong, Err(storage::OpenError::MasterKey { is_given: true })), "{wrong:?}");
    assert!(idle.verify().unwrap().is_sound());
}

/// Returns the payment with a cancellation request whose cutoff is long before the deadline.
fn cancelling(payment: &Payment) -> Payment {
    let command = Command::Cancel { by: Canceller::Merchant, block_interval: Duration::from_secs(3) };
    payment.apply(&command, at(1)).unwrap().payment
}

#[tokio::test]
async fn a_cancelling_payment_is_due_at_its_cutoff_and_at_its_deadline_after_the_request_is_dropped() {
    let store = in_memory();
    let payment = payment(1, 5);
    store.commit(create(&payment)).await.unwrap();
    let cancelling_payment = cancelling(&payment);
    let cutoff = cancelling_payment.cancellation.unwrap().cutoff;
    assert!(cutoff < payment.deadline());
    store.commit(replace(&cancelling_payment, payment.version)).await.unwrap();
    assert_eq!(store.due(Timestamp::MAX, None, 10).await.unwrap(), [(cutoff, payment.id)]);
    let mut dropped = Payment { version: cancelling_payment.version + 1, ..cancelling_payment.clone() };
    dropped.cancellation.as_mut().unwrap().dropped_at = Some(at(30));
    store.commit(replace(&dropped, cancelling_payment.version)).await.unwrap();
    assert_eq!(store.due(Timestamp::MAX, None, 10).await.unwrap(), [(payment.deadline(), payment.id)]);
}
