//! Golden bytes of every record: a store written by an older version must stay readable.
//!
//! Do not change an expectation here: existing stores could no longer be read. Add a field or a record version instead.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use prost::Message;

use super::*;
use engine::{
    account::AccountName,
    event_list::Epoch,
    fields::{Metadata, MetadataValue},
    hive::{Pack, PublicKey},
    ids::{DeliveryId, EndpointId, EventId, KeyId, MerchantId, PaymentId, SlugToken},
    ledger::{BlockId, ChainPosition, Transfer, TxId},
    merchant::{ApiKey, KeyDigest, Merchant, Scopes},
    money::{Currency, HbdPrice, HivePrice, Money},
    ownership::{Ownership, Proof, VerificationMethod},
    payment::{
        Acceptance, Cancellation, Canceller, Claim, ClaimFinality, ClaimedTransfer, Credit, CreditBlock, Disposition,
        FeeMode, Finality, Payment, Quote, Rate, Refund, Resolution, ResolutionKind, Route, State, Totals,
    },
    time::Timestamp,
    webhook::{
        Attempt, Delivery, DeliveryRecord, DeliveryState, DisableReason, EndpointDraft, EndpointHealth, EventType,
        Outcome, Secret, Secrets, Subscriptions, Trigger,
    },
    x402,
    x402::{ClaimOutcome, ClaimRecord, Purpose},
};

use crate::{
    batch::{Cursor, EventRecord, Handling, Unmatched, UnmatchedReason},
    record::{
        indexed::PaymentFacts,
        merchant::MerchantFacts,
        summary::{SUMMARY_LEN, Summary},
        transfer::transfer_key,
        vault::{MasterKey, Vault},
        wire::{Damage, seal},
    },
};

fn name(text: &str) -> AccountName {
    AccountName::parse(text).unwrap()
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// Checks that a value encodes to these bytes and that these bytes decode to the value.
#[track_caller]
fn pinned<T: PartialEq + std::fmt::Debug>(
    value: T,
    written: &[u8],
    golden: &str,
    read: impl Fn(&[u8]) -> Result<T, Damage>,
) {
    let golden: String = golden.split_whitespace().collect();
    assert_eq!(hex(written), golden);
    assert_eq!(read(&unhex(&golden)), Ok(value));
}

fn bare_payment() -> Payment {
    Payment {
        id: PaymentId::from_bits(1),
        merchant: MerchantId::from_bits((2 << 64) | 3),
        version: 1,
        state: State::Pending,
        previous_state: None,
        sequence: 1,
        slug: SlugToken::from_bits((4 << 64) | 5),
        amount: Money::new(10_500, Currency::Hbd),
        quote: Quote { fee_units: 157, fee_mode: FeeMode::Invoice, usd_cents: 1_050, rate: None },
        pay_to: name("blue.mugs"),
        description: "Mug".to_owned(),
        metadata: Metadata::new(),
        redirect_url: None,
        cancel_url: None,
        created_at: at(1_000),
        updated_at: at(1_000),
        expires_at: at(1_801_000),
        grace: Duration::ZERO,
        completed_at: None,
        livemode: true,
        transfers: Vec::new(),
        claim: None,
        paid_by: None,
        cancellation: None,
        wallet_opened_at: None,
        is_reversed: false,
        resolution: None,
        decided_transfers: 0,
        accepted: None,
        refunds: Vec::new(),
        is_invoice: false,
        unlisted: None,
    }
}

fn full_payment() -> Payment {
    let rate = Rate { price: HivePrice { base_hbd_units: 258, quote_hive_units: 1_000 }, hbd: None, at: at(900) };
    let money = Money::new(1_000, Currency::Hive);
    Payment {
        version: 300,
        state: State::Completed,
        previous_state: Some(State::Processing),
        sequence: 3,
        amount: money,
        quote: Quote {
            fee_units: 15,
            fee_mode: FeeMode::Split { account: name("fees") },
            usd_cents: 25,
            rate: Some(rate),
        },
        metadata: Metadata::from([
            ("a".to_owned(), MetadataValue::Text("x".to_owned())),
            ("b".to_owned(), MetadataValue::List(vec!["y".to_owned(), String::new()])),
            ("c".to_owned(), MetadataValue::List(Vec::new())),
        ]),
        redirect_url: Some("https://r".to_owned()),
        cancel_url: Some(String::new()),
        updated_at: at(5_000),
        grace: Duration::from_secs(60),
        completed_at: Some(at(5_000)),
        livemode: false,
        transfers: vec![Credit {
            seq: 1,
            tx_id: TxId([0xaa; 20]),
            op_in_tx: 1,
            block: Some(CreditBlock {
                position: ChainPosition { block_num: 100_000_000, tx_in_block: 2, op_in_tx: 1 },
                time: at(4_000),
            }),
            from: name("alice"),
            to: name("blue.mugs"),
            money,
            memo: "pos-…".to_owned(),
            finality: Finality::Irreversible,
            disposition: Disposition::Counted,
            route: Route::X402,
            memo_normalized: true,
        }],
        claim: Some(Arc::new(Claim {
            tx_id: TxId([0xaa; 20]),
            nonce: "n".to_owned(),
            identifier: Some("an-identifier-16".to_owned()),
            proof: proof(),
            payer: name("alice"),
            transfers: vec![ClaimedTransfer { op_in_tx: 1, to: name("blue.mugs"), money, memo: "m".to_owned() }],
            signed_json: "{}".to_owned(),
            expiration: at(9_000),
            claimed_at: at(3_000),
            finality: ClaimFinality::InBlock,
        })),
        paid_by: Some(TxId([0xaa; 20])),
        cancellation: Some(Cancellation {
            by: Canceller::Merchant,
            requested_at: at(3_000),
            cutoff: at(18_000),
            dropped_at: Some(at(5_000)),
        }),
        wallet_opened_at: Some(at(2_000)),
        is_reversed: true,
        resolution: Some(Resolution {
            kind: ResolutionKind::Refunded,
            by: "key_1".to_owned(),
            at: at(7_000),
            note: "sorry".to_owned(),
            tx_id: Some(TxId([0xbb; 20])),
        }),
        decided_transfers: 9,
        accepted: Some(Acceptance { transfers: 8, refunds: 1, had_ended: true }),
        refunds: vec![Refund { tx_id: TxId([0xbb; 20]), op_in_tx: 2, to: name("alice"), money, at: at(6_000) }],
        is_invoice: true,
        ..bare_payment()
    }
}

#[test]
fn a_new_payment_has_these_bytes() {
    let payment = bare_payment();
    pinned(
        payment.clone(),
        &payment_to_bytes(&payment),
        "010a12090200000000000000110300000000000000100118012801321209040000000000000011050000000000000038 \
        845240024a06089d01189a085209626c75652e6d7567735a034d756778e8078001e8078801a8f66da00101",
        |bytes| payment_from_bytes(PaymentId::from_bits(1), bytes),
    );
}

#[test]
fn a_payment_with_everything_has_these_bytes() {
    let payment = full_payment();
    pinned(
        payment.clone(),
        &payment_to_bytes(&payment),
        "010a1209020000000000000011030000000000000010ac02180320022803321209040000000000000011050000000000 \
         000038e80740014a15080f1204666565731819220908820210e8071884075209626c75652e6d7567735a034d75676206 \
         0a01611a0178620a0a016210011a01791a0062050a016310016a0968747470733a2f2f72720078e807800188278801a8 \
         f66d9001e0d40398018827aa01500a14aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa10011a0c0880c2d72f100218 \
         0120a01f2205616c6963652a09626c75652e6d75677330e80738014207706f732de280a648035001580260016801b201 \
         9e010a14aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa12016e1a05616c696365221508011209626c75652e6d7567 \
         7318e80720012a016d2a027b7d30a84638b81740024a10616e2d6964656e7469666965722d3136524708021220010101 \
         01010101010101010101010101010101010101010101010101010101011a210202020202020202020202020202020202 \
         02020202020202020202020202020202ba0114aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac2010c080210b81718 \
         d08c01208827c80101d20129080212056b65795f3118d8362205736f7272792a14bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb \
         bbbbbbbbbbda01270a14bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb10021a05616c69636520e807280130f02ee0 \
         0101e801d00f8002098a0206080810011801",
        |bytes| payment_from_bytes(PaymentId::from_bits(1), bytes),
    );
}

#[test]
fn a_transfer_has_these_bytes() {
    let credit = full_payment().transfers.remove(0);
    let (tx_id, op_in_tx) = (credit.tx_id, credit.op_in_tx);
    pinned(
        credit.clone(),
        &transfer_to_bytes(&credit),
        "011a0c0880c2d72f1002180120a01f2205616c6963652a09626c75652e6d75677330e80738014207706f732de280a648 \
        03500158026001 6801",
        |bytes| transfer_from_bytes(transfer_key(PaymentId::from_bits(1), &tx_id, op_in_tx), bytes),
    );
}

#[test]
fn totals_of_unlisted_transfers_round_trip() {
    let payment = many_transfers();
    assert_eq!(payment_from_bytes(payment.id, &payment_to_bytes(&payment)), Ok(payment));
}

/// Returns a payment that lists one transfer and has others of every disposition and finality.
fn many_transfers() -> Payment {
    let listed = full_payment().transfers.remove(0);
    let finalities = [Finality::Orphaned, Finality::Reversible, Finality::Irreversible];
    let others = Disposition::ALL.into_iter().flat_map(|disposition| {
        let money = Money::new(u64::MAX - 1, Currency::Hbd);
        let listed = &listed;
        finalities.into_iter().map(move |finality| Credit { disposition, finality, money, ..listed.clone() })
    });
    let unlisted = Totals::of(&others.collect::<Vec<_>>());
    Payment { unlisted: Some(Box::new(unlisted)), is_invoice: false, ..full_payment() }
}

#[test]
fn the_facts_of_a_stored_payment_are_those_of_the_payment() {
    let claimed = Payment { state: State::Pending, ..full_payment() };
    let unclaimed = Payment { claim: None, ..many_transfers() };
    for payment in [bare_payment(), full_payment(), claimed, many_transfers(), unclaimed] {
        let bytes = payment_to_bytes(&payment);
        assert_eq!(payment_facts(&bytes), Ok(PaymentFacts::of(&payment, &bytes)));
    }
}

#[test]
fn a_summary_has_these_bytes() {
    let summary = Summary {
        state: State::SystemCancelled,
        amount: Money::new(10_500, Currency::Hbd),
        created_at: at(1_763_647_200_007),
        is_unusual: true,
        is_invoice: true,
        completed_at: Some(at(1_763_647_260_007)),
        usd_cents: 1_050,
    };
    let bytes = "010602030000019aa1909b0700000000000029040000019aa1918567000000000000041a";
    pinned(summary, &summary_to_bytes(&summary), bytes, |bytes| summary_from_bytes(bytes.try_into().unwrap()));
    let newer = [2; SUMMARY_LEN];
    assert_eq!(summary_from_bytes(&newer), Err(Damage::Version { found: 2, known: 1 }));
}

fn full_merchant() -> Merchant {
    Merchant {
        id: MerchantId::from_bits(1),
        version: 2,
        name: "Blue Mugs".to_owned(),
        hive_account: name("blue.mugs"),
        icon_url: Some("https://i".to_owned()),
        webhook_url: None,
        webhook_events: Subscriptions::default(),
        support_url: Some("https://s".to_owned()),
        is_active: true,
        x402_enabled: false,
        restart_enabled: true,
        is_admin: true,
        created_at: at(1_000),
        updated_at: at(2_000),
        keys: vec![ApiKey {
            id: KeyId::from_bits(7),
            digest: KeyDigest([0xdd; 32]),
            last4: "0707".to_owned(),
            created_at: at(1_000),
            last_used_at: Some(at(61_000)),
            name: "till".to_owned(),
            prefix: "sk_live_0707".to_owned(),
            scopes: Scopes::MERCHANT,
            expires_at: Some(at(99_000)),
        }],
        secrets: Secrets {
            current: Secret::from_random([1; 32]),
            previous: vec![(Secret::from_random([2; 32]), at(9_000))],
        },
        endpoints: Vec::new(),
        ownership: Ownership {
            proof: Some(Proof::new(VerificationMethod::Operator, None, at(5))),
            ..Ownership::default()
        },
    }
}

#[test]
fn the_endpoints_of_a_merchant_are_read_as_they_were_stored() {
    let merchant = full_merchant();
    let events = ["refund.completed".to_owned()];
    let draft = EndpointDraft::check("https://books.example/hook", "the books", &events, false).unwrap();
    let [first, second] = [EndpointId::from_bits(8), EndpointId::from_bits(9)];
    let secret = |n| Secret::from_random([n; 32]);
    let merchant = merchant.with_endpoint(first, draft.clone(), secret(3), at(3_000)).unwrap();
    let merchant = merchant.with_endpoint(second, draft, secret(4), at(4_000)).unwrap();
    let merchant = merchant.with_endpoint_secret(second, secret(5), Some(at(9_000)), at(5_000)).unwrap();
    let sealing = Vault::new(Some(MasterKey::new([1; 32])), None);
    for (vault, is_plain) in [(Vault::default(), true), (sealing, false)] {
        let bytes = merchant_to_bytes(merchant.clone(), &vault);
        let read = merchant_from_bytes(merchant.id, &bytes, &vault).map(Arc::unwrap_or_clone);
        assert_eq!((read, merchant_is_plain(&bytes)), (Ok(merchant.clone()), Ok(is_plain)));
        let shown = merchant_to_json(merchant.id, &bytes).unwrap();
        assert_eq!(shown["webhookEndpoints"][1]["id"], second.to_string());
        assert!(!shown.to_string().contains("whsec_"), "{shown}");
    }
}

#[test]
fn a_merchant_has_these_bytes() {
    let merchant = full_merchant();
    let vault = Vault::default();
    let bytes = merchant_to_bytes(merchant.clone(), &vault);
    assert_eq!(merchant_facts(&bytes), Ok(MerchantFacts::of(&merchant)));
    pinned(
        merchant,
        &bytes,
        "0108021209426c7565204d7567731a09626c75652e6d756773220968747470733a2f2f693001400148e80750d00f5a \
         540a091107000000000000001220dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd1a \
         043037303720e80728c8dc03320474696c6c3a0c736b5f6c6976655f30373037401748b88506623277687365635f41 \
         5145424151454241514542415145424151454241514542415145424151454241514542415145424151453d6a370a32 \
         77687365635f4167494341674943416749434167494341674943416749434167494341674943416749434167494341 \
         67493d10a846a2010968747470733a2f2f73aa01060a0408031005b00101b80101",
        |bytes| merchant_from_bytes(MerchantId::from_bits(1), bytes, &vault).map(Arc::unwrap_or_clone),
    );
}

#[test]
fn an_event_has_these_bytes() {
    let event = EventRecord {
        id: EventId::from_bits(1),
        seq: 17,
        merchant: MerchantId::from_bits(2),
        payment: PaymentId::from_bits(3),
        kind: EventType::X402Settled,
        deliveries: vec![(EndpointId::from_bits(2), DeliveryId::from_bits(4))],
        at: at(1_000),
        body: b"{}".to_vec(),
        is_test: true,
    };
    pinned(
        event.clone(),
        &event_to_bytes(&event),
        "010a0911010000000000000012091103000000000000001a0911040000000000000020e8072a027b7d30013803",
        |bytes| event_from_bytes((2, 17), bytes),
    );
    let route = |endpoint, id| (EndpointId::from_bits(endpoint), DeliveryId::from_bits(id));
    let event = EventRecord { deliveries: vec![route(2, 4), route(7, 5), route(8, 6)], ..event };
    assert_eq!(event_from_bytes((2, 17), &event_to_bytes(&event)), Ok(event));
}

#[test]
fn epochs_have_these_bytes() {
    let epochs = vec![Epoch::from_bits(0x0102), Epoch::PENDING];
    pinned(epochs.clone(), &epochs_to_bytes(&epochs), "0000000000000102ffffffffffffffff", epochs_from_bytes);
    assert!(epochs_from_bytes(&[0; 9]).is_err());
}

#[test]
fn a_delivery_has_these_bytes() {
    let delivery = Delivery {
        id: DeliveryId::from_bits(4),
        event: EventId::from_bits(1),
        event_seq: 17,
        merchant: MerchantId::from_bits(2),
        endpoint: EndpointId::from_bits(2),
        payment: PaymentId::from_bits(3),
        trigger: Trigger::Manual,
        attempts: 19,
        schedule_from: 10,
        due_at: at(1_000),
    };
    let waiting = DeliveryRecord::new(delivery);
    pinned(
        waiting.clone(),
        &delivery_to_bytes(&waiting),
        "01081112091101000000000000001a091103000000000000002013280a3002380140e807",
        |bytes| delivery_from_bytes((2, 4), bytes),
    );
    let last = Some((Outcome::Refused { status: 503, retry_after: None }, at(900)));
    let failed = DeliveryRecord { state: DeliveryState::Failed, last, ..waiting };
    pinned(
        failed.clone(),
        &delivery_to_bytes(&failed),
        "01081112091101000000000000001a091103000000000000002013280a3002380440e8074a05080210f703508407",
        |bytes| delivery_from_bytes((2, 4), bytes),
    );
}

#[test]
fn an_endpoint_has_these_bytes() {
    let well = EndpointHealth { last_success_at: Some(at(7)), ..EndpointHealth::default() };
    pinned(well.clone(), &endpoint_to_bytes(&well), "014007", endpoint_from_bytes);
    let bad = EndpointHealth {
        disabled: Some((DisableReason::Failing, at(9_000))),
        failing_since: Some(at(1_000)),
        failed_attempts: 20,
        failed_events: Some((at(800), at(8_000))),
        transport_failures: 10,
        last_success_at: None,
        last_failure_at: Some(at(9_000)),
    };
    pinned(bad.clone(), &endpoint_to_bytes(&bad), "01080210a84618e807201428a00630c03e380a48a846", endpoint_from_bytes);
}

#[test]
fn attempts_have_these_bytes() {
    let attempt = |outcome| Attempt {
        delivery: DeliveryId::from_bits(4),
        event: EventId::from_bits(1),
        merchant: MerchantId::from_bits(2),
        number: 3,
        trigger: Trigger::Test,
        endpoint: "e".to_owned(),
        scheduled_at: at(500),
        started_at: at(1_000),
        ended_at: at(1_012),
        duration_ms: 12,
        outcome,
        request_headers: vec![("h".to_owned(), "v".to_owned())],
        response_snippet: "no".to_owned(),
        next_attempt_at: Some(at(2_000)),
        body_sha256: [0xbb; 32],
    };
    let outcomes = [
        (Outcome::Accepted { status: 204 }, "05080110cc01"),
        (Outcome::Refused { status: 503, retry_after: Some(Duration::from_secs(7)) }, "08080210f70318d836"),
        (Outcome::Refused { status: 410, retry_after: None }, "050802109a03"),
        (Outcome::Timeout, "020803"),
        (Outcome::Connect, "020804"),
        (Outcome::Tls, "020805"),
        (Outcome::Dns, "020806"),
        (Outcome::Blocked, "020807"),
        (Outcome::ConnectionRefused, "020808"),
        (Outcome::ConnectionReset, "020809"),
    ];
    let digest = "bb".repeat(32);
    for (outcome, golden) in outcomes {
        let golden = format!(
            "010a0911020000000000000012016518e807200c2a{golden}42026e6f48d00f500358f40360f4076a20{digest}72060a0168120176"
        );
        let attempt = attempt(outcome);
        pinned(attempt.clone(), &attempt_to_bytes(attempt), &golden, |bytes| attempt_from_bytes((1, 4, 3), bytes));
    }
}

fn proof() -> x402::PayerProof {
    x402::PayerProof { pack: Pack::Hf26, digest: [1; 32], keys: BTreeSet::from([PublicKey([2; 33])]) }
}

#[test]
fn a_claim_has_these_bytes() {
    let claimed = ClaimRecord {
        tx_id: TxId([0xaa; 20]),
        pay_to: name("blue.mugs"),
        nonce: "n".to_owned(),
        identifier: Some("an-identifier-16".to_owned()),
        proof: proof(),
        purpose: Purpose::Session(PaymentId::from_bits(3)),
        outcome: ClaimOutcome::Open,
        at: at(1_000),
    };
    pinned(
        claimed.clone(),
        &claimed_to_bytes(&claimed),
        "010a016e120911030000000000000018e8074209626c75652e6d7567734a10616e2d6964656e7469666965722d3136524708\
         02122001010101010101010101010101010101010101010101010101010101010101011a2102020202020202020202020202\
         0202020202020202020202020202020202020202",
        |bytes| claimed_from_bytes(TxId([0xaa; 20]), bytes),
    );
}

#[test]
fn the_cursor_has_these_bytes() {
    let cursor = Cursor { block_id: BlockId([5; 20]), time: at(3_000) };
    pinned(
        cursor,
        &cursor_to_bytes(&cursor),
        "010a14050505050505050505050505050505050505050510b817",
        cursor_from_bytes,
    );
}

#[test]
fn an_unmatched_transfer_has_these_bytes() {
    let transfer = Transfer {
        tx_id: TxId([0xaa; 20]),
        position: ChainPosition { block_num: 9, tx_in_block: 8, op_in_tx: 7 },
        block_time: at(3_000),
        from: name("alice"),
        to: name("blue.mugs"),
        money: Money::new(1, Currency::Hive),
        memo: "hello".to_owned(),
    };
    let unmatched = Unmatched::open(transfer, UnmatchedReason::OtherAccount);
    let bytes = unmatched_to_bytes(unmatched.clone());
    pinned(
        unmatched,
        &bytes,
        "010a14aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa10b8171a05616c69636520012801320568656c6c6f3805",
        |bytes| unmatched_from_bytes(("blue.mugs", 9, 8, 7), bytes),
    );
}

#[test]
fn a_handled_transfer_round_trips() {
    let transfer = Transfer {
        tx_id: TxId([0xaa; 20]),
        position: ChainPosition { block_num: 9, tx_in_block: 8, op_in_tx: 7 },
        block_time: at(3_000),
        from: name("alice"),
        to: name("blue.mugs"),
        money: Money::new(1, Currency::Hive),
        memo: "hello".to_owned(),
    };
    let open = Unmatched::open(transfer, UnmatchedReason::NoSession);
    let by = "key_1".to_owned();
    for handling in [
        Handling::Assigned { payment: PaymentId::from_bits(7), by: by.clone(), at: at(9) },
        Handling::Ignored { by, at: at(9), note: "a gift".to_owned() },
    ] {
        let handled = Unmatched { handling, ..open.clone() };
        let read = unmatched_from_bytes(("blue.mugs", 9, 8, 7), &unmatched_to_bytes(handled.clone()));
        assert_eq!(read, Ok(handled));
    }
}

#[test]
fn the_price_has_these_bytes() {
    let rate = Rate { price: HivePrice { base_hbd_units: 258, quote_hive_units: 1_000 }, hbd: None, at: at(900) };
    pinned(rate, &rate_to_bytes(rate), "0108820210e807188407", rate_from_bytes);
    let off_peg = Rate { hbd: HbdPrice::of_micro_usd(800_000), ..rate };
    pinned(off_peg, &rate_to_bytes(off_peg), "0108820210e8071884072080ea30", rate_from_bytes);
}

#[test]
fn damaged_bytes_are_an_error_and_never_panic() {
    let golden = payment_to_bytes(&full_payment());
    let read = |bytes: &[u8]| payment_from_bytes(PaymentId::from_bits(1), bytes);
    assert_eq!(read(&[]), Err(Damage::Empty));
    for length in 1..golden.len() {
        // Truncated bytes are an error or decode to another payment, never to this one.
        assert_ne!(read(&golden[..length]), Ok(full_payment()), "{length}");
    }
    for at in 0..golden.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut bytes = golden.clone();
            bytes[at] ^= flip;
            let _ = (read(&bytes), payment_facts(&bytes));
        }
    }
    let without_quote = QuoteRate { base_hbd_units: 1, quote_hive_units: 0, at_ms: 0 };
    assert!(matches!(rate_from_bytes(&seal(1, &without_quote)), Err(Damage::Value { field: "price", .. })));
}

/// A stored price that may be invalid.
#[derive(Clone, PartialEq, Message)]
struct QuoteRate {
    #[prost(uint64, tag = "1")]
    base_hbd_units: u64,
    #[prost(uint64, tag = "2")]
    quote_hive_units: u64,
    #[prost(uint64, tag = "3")]
    at_ms: u64,
}
