//! Benchmarks of a payment header: decoding, local checks and signature verification, compared with one bare `k256`
//! recovery.
//!
//! `cargo bench -p engine --bench x402`

#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]

use std::{
    collections::BTreeMap,
    hint::black_box,
    time::{Duration, Instant},
};

use engine::{
    account::AccountName,
    hive::{Asset, Authority, ChainId, Operation, Pack, PrivateKey, Signature, Symbol, Transaction, Transfer},
    ids::PaymentId,
    ledger::memo_of,
    money::{Currency, Money},
    time::Timestamp,
    x402::{Expected, MemoRule, PaymentPayload, authorize, candidate_ids, check_balance, decode_header, encode_header},
};
use k256::ecdsa::{RecoveryId, VerifyingKey};

const HEADERS: usize = 512;
const ROUNDS: usize = 7;
const NOW: Timestamp = Timestamp::from_seconds(1_800_000_000);
const HOUR: Duration = Duration::from_secs(3_600);

/// A payment and its target.
struct Case {
    header: String,
    expected: Expected,
    payload: PaymentPayload,
    digest: [u8; 32],
    signature: Signature,
}

fn main() {
    for (name, is_second, pack) in [
        ("version 1, legacy digest", false, Pack::Legacy),
        ("version 2, legacy digest", true, Pack::Legacy),
        ("version 2, HF26 digest", true, Pack::Hf26),
    ] {
        measure(name, is_second, pack);
    }
}

fn measure(name: &str, is_second: bool, pack: Pack) {
    let key = PrivateKey::from_login("alice", "active", "bench").expect("a key");
    let alice = account("alice");
    let authorities = BTreeMap::from([(alice, Authority::of_key(key.public()))]);
    let balances = [Money::new(1_000_000, Currency::Hive), Money::new(1_000_000, Currency::Hbd)];
    let cases: Vec<Case> = (0..HEADERS).map(|each| case(each as u128, is_second, pack, &key)).collect();

    let bare = each_case(&cases, |case| {
        let signature = k256::ecdsa::Signature::from_slice(&case.signature.0[1..]).expect("a signature");
        let recovery = RecoveryId::from_byte(case.signature.0[0] - 31).expect("a recovery id");
        black_box(VerifyingKey::recover_from_prehash(&case.digest, &signature, recovery).expect("recovers"));
    });
    let base64 = each_case(&cases, |case| {
        black_box(decode_header(&case.header).expect("base64"));
    });
    let decode = each_case(&cases, |case| {
        black_box(PaymentPayload::decode_header(&case.header).expect("a header").expect("a payment"));
    });
    let local = each_case(&cases, |case| {
        let payload = &case.payload;
        let checked = case.expected.check(&payload.transaction, payload.version, &payload.nonce, NOW, HOUR);
        black_box(checked.expect("passes"));
    });
    let ids = each_case(&cases, |case| {
        black_box(candidate_ids(&case.payload.transaction));
    });
    let recover = each_case(&cases, |case| {
        black_box(authorize(&case.payload.transaction, &alice, ChainId::MAINNET, &authorities).expect("authorized"));
    });
    let write = each_case(&cases, |case| {
        black_box(case.payload.transaction.to_condenser_json());
    });
    let whole = each_case(&cases, |case| {
        let payload = PaymentPayload::decode_header(&case.header).expect("a header").expect("a payment");
        let presented = case.expected.check(&payload.transaction, payload.version, &payload.nonce, NOW, HOUR);
        let presented = presented.expect("passes");
        black_box(candidate_ids(&payload.transaction));
        let authorized = authorize(&payload.transaction, &presented.payer, ChainId::MAINNET, &authorities);
        check_balance(&presented, &balances).expect("has it");
        black_box(authorized.expect("authorized"));
    });

    println!("{name}: header {} bytes", cases[0].header.len());
    for (part, time) in [
        ("one bare k256 recovery", bare),
        ("base64", base64),
        ("decode the header (base64, JSON, transaction)", decode),
        ("local checks", local),
        ("both transaction ids", ids),
        ("authorize (digest, recovery, authority)", recover),
        ("write the transaction for the node", write),
        ("all of a verify but fetching the account", whole),
    ] {
        let percent = time.as_nanos() * 100 / bare.as_nanos().max(1);
        println!("  {part:<46} {:>8} ns  {percent:>4} %", time.as_nanos());
    }
}

/// Returns the time of one case: the median of several rounds over all.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn each_case(cases: &[Case], work: impl Fn(&Case)) -> Duration {
    let mut rounds: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            cases.iter().for_each(&work);
            start.elapsed()
        })
        .collect();
    rounds.sort();
    rounds[ROUNDS / 2] / u32::try_from(cases.len()).expect("few")
}

fn account(name: &str) -> AccountName {
    AccountName::parse(name).expect("a name")
}

fn case(number: u128, is_second: bool, pack: Pack, key: &PrivateKey) -> Case {
    let session = PaymentId::from_bits(number);
    let amount = Money::new(10_500, Currency::Hbd);
    let mut transaction = Transaction {
        ref_block_num: 4_711,
        ref_block_prefix: 3_141_592_653,
        expiration: NOW + Duration::from_secs(60),
        operations: vec![Operation::Transfer(Transfer {
            from: "alice".to_owned(),
            to: "shop.payments".to_owned(),
            amount: Asset { units: 10_500, symbol: Symbol::Hbd },
            memo: memo_of(session),
        })],
        signatures: Vec::new(),
    };
    transaction.sign(ChainId::MAINNET, pack, key);
    let nonce = format!("{number:032x}");
    let payload = format!(r#"{{"signedTransaction":{},"nonce":"{nonce}"}}"#, transaction.to_condenser_json());
    let json = if is_second {
        format!(
            r#"{{"x402Version":2,"resource":{{"url":"https://pay.example/for/a-blue-mug-0123456789abcdefghjkmnpqrs","description":"A blue mug"}},"accepted":{{"scheme":"exact","network":"hive:mainnet","amount":"10500","asset":"HBD","payTo":"shop.payments","maxTimeoutSeconds":300,"extra":{{"sessionId":"{session}","memo":"pos-{session}"}}}},"payload":{payload}}}"#
        )
    } else {
        format!(r#"{{"x402Version":1,"scheme":"exact","network":"hive:mainnet","payload":{payload}}}"#)
    };
    let header = encode_header(&json);
    Case {
        payload: PaymentPayload::decode_header(&header).expect("a header").expect("a payment"),
        expected: Expected {
            pay_to: account("shop.payments"),
            net: amount,
            fee: None,
            memo: MemoRule::Session(session),
        },
        digest: transaction.digest(ChainId::MAINNET, pack),
        signature: transaction.signatures[0],
        header,
    }
}
