//! Sample merchants, payments and other records, made from small numbers.

use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};

use engine::{
    account::AccountName,
    fields::{Metadata, MetadataValue},
    hive::{Pack, PublicKey},
    ids::{DeliveryId, EndpointId, EventId, KeyId, MerchantId, PaymentId, SlugToken},
    ledger::{BlockId, ChainPosition, Transfer, TxId},
    merchant::{Credentials, Merchant, Registration},
    money::{Currency, FeePercent, Money},
    payment::{ClaimFinality, Command, Credit, Disposition, Draft, FeeMode, Finality, Payment, Route, State, Terms},
    time::Timestamp,
    webhook::{Attempt, Delivery, EventType, Outcome, Secret},
    x402::{ClaimOutcome, ClaimRecord, Facilitation, PayerProof, Purpose},
};
use storage::{
    Batch, CommitMode, Cursor, EmbeddedStore, EventRecord, HoldReason, Options, Unmatched, UnmatchedReason, Vault,
    Write,
};

/// The start time of all samples.
pub(crate) const START: Timestamp = Timestamp::from_seconds(1_763_647_200);

pub(crate) fn at(seconds: u64) -> Timestamp {
    START + Duration::from_secs(seconds)
}

/// Returns the id of the `number`th payment, created `number` milliseconds after the start.
pub(crate) fn payment_id(number: u64) -> PaymentId {
    PaymentId::new(START + Duration::from_millis(number), [7; 10])
}

pub(crate) fn merchant_id(number: u8) -> MerchantId {
    MerchantId::new(START + Duration::from_millis(u64::from(number)), [number; 10])
}

pub(crate) fn account(name: &str) -> AccountName {
    AccountName::parse(name).unwrap()
}

pub(crate) fn merchant(number: u8) -> Merchant {
    let registration = Registration::check(&format!("Shop {number}"), &format!("shop.n{number}xx"), None).unwrap();
    let credentials = Credentials {
        id: merchant_id(number),
        key_id: KeyId::from_bits(u128::from(number)),
        api_key: &engine::merchant::api_key_text([number; 24]),
        secret: Secret::from_random([number; 32]),
    };
    Merchant::register(registration, credentials, false, at(u64::from(number)))
}

pub(crate) fn terms(owner: u8) -> Terms {
    Terms {
        merchant: merchant_id(owner),
        pay_to: account("shop.example"),
        fee_percent: FeePercent::parse("1.5").unwrap(),
        fee_mode: FeeMode::Invoice,
        rate: None,
        default_lifetime: Duration::from_secs(1_800),
        grace: Duration::from_secs(60),
        livemode: false,
    }
}

pub(crate) fn draft(description: &str) -> Draft {
    Draft {
        amount: Money::new(10_500, Currency::Hbd),
        description: description.to_owned(),
        metadata: Metadata::from([("order".to_owned(), MetadataValue::Text("A-17".to_owned()))]),
        redirect_url: Some("https://shop.example/thanks".to_owned()),
        cancel_url: None,
        lifetime: None,
    }
}

pub(crate) fn payment(owner: u8, number: u64) -> Payment {
    let now = START + Duration::from_millis(number);
    let slug = SlugToken::from_bits(u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
    Payment::open(draft("Blue mug"), terms(owner), payment_id(number), slug, now).unwrap()
}

/// Returns the transfer of a payment's fee to `fee.taker`.
pub(crate) fn fee_credit() -> Credit {
    Credit {
        seq: 1,
        tx_id: tx_id(8),
        op_in_tx: 1,
        block: None,
        from: account("alice"),
        to: account("fee.taker"),
        money: Money::new(157, Currency::Hbd),
        memo: String::new(),
        finality: Finality::Irreversible,
        disposition: Disposition::Fee,
        route: Route::Wallet,
        memo_normalized: false,
    }
}

/// Holds a delivery of a merchant that does not exist.
pub(crate) fn hold(delivery: Delivery) -> Write {
    Write::Hold { delivery, reason: HoldReason::NoEndpoint { merchant_version: None } }
}

pub(crate) fn create(payment: &Payment) -> Batch {
    Batch::of(Write::Payment { payment: Arc::new(payment.clone()), expected: None })
}

/// Returns a batch that replaces a payment and writes its listed transfers.
pub(crate) fn replace_with_rows(payment: &Payment, expected: u64) -> Batch {
    let row = |credit: &Credit| {
        let (payment, merchant, credit) = (payment.id, payment.merchant, Box::new(credit.clone()));
        Write::Transfer { payment, merchant, credit }
    };
    payment.transfers.iter().map(row).fold(replace(payment, expected), Batch::and)
}

pub(crate) fn replace(payment: &Payment, expected: u64) -> Batch {
    Batch::of(Write::Payment { payment: Arc::new(payment.clone()), expected: Some(expected) })
}

pub(crate) fn register(merchant: &Merchant) -> Batch {
    Batch::of(Write::Merchant { merchant: Box::new(merchant.clone()), expected: None })
}

/// Returns the default endpoint of a merchant.
pub(crate) fn endpoint_id(owner: u8) -> EndpointId {
    EndpointId::default_of(merchant_id(owner))
}

pub(crate) fn event(owner: u8, number: u64) -> EventRecord {
    EventRecord {
        id: EventId::new(at(number), [1; 10]),
        seq: 0,
        merchant: merchant_id(owner),
        payment: payment_id(number),
        kind: EventType::StatusChanged,
        deliveries: vec![(endpoint_id(owner), DeliveryId::new(at(number), [2; 10]))],
        at: at(number),
        body: format!("{{\"number\":{number}}}").into_bytes(),
        is_test: false,
    }
}

pub(crate) fn attempt(delivery: &Delivery, next_attempt_at: Option<Timestamp>) -> Attempt {
    Attempt {
        delivery: delivery.id,
        event: delivery.event,
        merchant: delivery.merchant,
        number: delivery.attempts + 1,
        trigger: delivery.trigger,
        endpoint: "shop.example/hook".to_owned(),
        scheduled_at: delivery.due_at,
        started_at: delivery.due_at,
        ended_at: delivery.due_at,
        duration_ms: 12,
        outcome: Outcome::Refused { status: 503, retry_after: Some(Duration::from_secs(7)) },
        request_headers: vec![("webhook-id".to_owned(), "evt_1".to_owned())],
        response_snippet: "later".to_owned(),
        next_attempt_at,
        body_sha256: [3; 32],
    }
}

pub(crate) fn tx_id(number: u8) -> TxId {
    TxId([number; 20])
}

pub(crate) fn claimed(number: u8, nonce: &str) -> ClaimRecord {
    let purpose = Purpose::Session(payment_id(u64::from(number)));
    ClaimRecord {
        tx_id: tx_id(number),
        pay_to: account("shop"),
        nonce: nonce.to_owned(),
        identifier: None,
        proof: proof(number),
        purpose,
        outcome: ClaimOutcome::Open,
        at: START,
    }
}

/// Returns the proof by which the payer of a claim is recognized.
pub(crate) fn proof(number: u8) -> PayerProof {
    PayerProof { pack: Pack::Legacy, digest: [number; 32], keys: BTreeSet::from([PublicKey([number; 33])]) }
}

/// Returns a claim for another server.
pub(crate) fn facilitated(number: u8, nonce: &str) -> ClaimRecord {
    let facilitation = Facilitation {
        payer: AccountName::parse("agent").unwrap(),
        seller: None,
        request_key: None,
        amount: Money::new(1_000, Currency::Hbd),
        resource: "/a".to_owned(),
        signed_json: "{}".to_owned(),
        expiration: at(60),
        finality: ClaimFinality::InBlock,
    };
    ClaimRecord { purpose: Purpose::Facilitated(Box::new(facilitation)), ..claimed(number, nonce) }
}

pub(crate) fn cursor(number: u32) -> Cursor {
    let mut block_id = [9; 20];
    block_id[..4].copy_from_slice(&number.to_be_bytes());
    Cursor { block_id: BlockId(block_id), time: at(u64::from(number) * 3) }
}

pub(crate) fn unmatched(to: &str, block_num: u32, op_in_tx: u32) -> Unmatched {
    Unmatched {
        handling: storage::Handling::Open,
        transfer: Transfer {
            tx_id: tx_id(1),
            position: ChainPosition { block_num, tx_in_block: 2, op_in_tx },
            block_time: at(u64::from(block_num) * 3),
            from: account("alice"),
            to: account(to),
            money: Money::new(1, Currency::Hive),
            memo: "for the mug".to_owned(),
        },
        reason: UnmatchedReason::NoSession,
    }
}

/// Opens the store of a directory with a writer thread.
pub(crate) fn open(data: &Path) -> EmbeddedStore {
    EmbeddedStore::open(data, Options::default()).unwrap()
}

/// Returns the value of a store's metric.
pub(crate) fn metric(store: &EmbeddedStore, name: &str) -> u64 {
    let mut registry = prometheus_client::registry::Registry::default();
    store.commit_metrics().register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("there is no {name}")).parse().unwrap()
}

/// Options of a store that commits in the caller's task.
pub(crate) const INLINE: Options =
    Options { cache_bytes: 1 << 20, log_bytes: 4096, mode: CommitMode::Inline, may_create: true };

/// Opens a store in memory that commits in the caller's task.
pub(crate) fn in_memory() -> EmbeddedStore {
    let [database, logs @ ..] = [(); 3].map(|()| redb::backends::InMemoryBackend::new());
    EmbeddedStore::open_backends(database, logs, INLINE, Vault::default()).unwrap()
}

/// Returns the payment with a decided cancellation.
pub(crate) fn cancelled(payment: &Payment) -> Payment {
    let due = payment.deadline() + Duration::from_secs(1);
    let mut next = payment.apply(&Command::Expire { irreversible_time: due }, due).unwrap().payment;
    next.state = State::UserCancelled;
    next
}
