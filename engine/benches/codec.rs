//! Benchmarks of the codec: key recovery compared with bare `k256`, and parsing and matching blocks of 60 transactions.
//!
//! `cargo bench -p engine --bench codec`

#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use engine::{
    hive::{Asset, ChainId, Form, Operation, Pack, PrivateKey, Signature, Symbol, Transaction, Transfer, block},
    ids::PaymentId,
    ledger::{MemoMatch, match_memo, memo_of},
    time::Timestamp,
};
use k256::ecdsa::{RecoveryId, VerifyingKey};

const SIGNATURES: usize = 512;
const BLOCKS: u32 = 400;
const TRANSACTIONS: usize = 60;
const ROUNDS: usize = 5;

fn main() {
    recovery();
    transactions();
    blocks();
}

/// Returns the median of five rounds of `work`, each interleaved with `other` so that both run under the same
/// conditions.
fn medians(mut work: impl FnMut(), mut other: impl FnMut()) -> (Duration, Duration) {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        first.push(timed(&mut work));
        second.push(timed(&mut other));
    }
    first.sort();
    second.sort();
    (first[ROUNDS / 2], second[ROUNDS / 2])
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn timed(work: &mut impl FnMut()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn recovery() {
    let signed: Vec<([u8; 32], Signature)> = (0..SIGNATURES)
        .map(|each| {
            let key = PrivateKey::from_bytes(&[u8::try_from(each % 200 + 1).expect("at most 200"); 32]).expect("a key");
            let mut digest = [0x5a; 32];
            digest[..8].copy_from_slice(&each.to_le_bytes());
            (digest, key.sign(&digest))
        })
        .collect();
    let (ours, bare) = medians(
        || {
            for (digest, signature) in &signed {
                black_box(signature.recover(digest).expect("recovers"));
            }
        },
        || {
            for (digest, signature) in &signed {
                let bare = k256::ecdsa::Signature::from_slice(&signature.0[1..]).expect("a signature");
                let recovery = RecoveryId::from_byte(signature.0[0] - 31).expect("a recovery id");
                black_box(VerifyingKey::recover_from_prehash(digest, &bare, recovery).expect("recovers"));
            }
        },
    );
    let each = |time: Duration| time.as_nanos() / SIGNATURES as u128;
    println!("recovery, per signature and digest: ours {} ns, bare k256 {} ns", each(ours), each(bare));
    println!("ratio to bare k256: {} %", ours.as_nanos() * 100 / bare.as_nanos().max(1));
}

/// A signed transfer from JSON to ids, digests and keys of both serializations, compared with its key recoveries.
fn transactions() {
    let key = PrivateKey::from_bytes(&[7; 32]).expect("a key");
    let texts: Vec<String> = (0..SIGNATURES).map(|each| signed(each, &key).to_condenser_json()).collect();
    let read: Vec<Transaction> = texts.iter().map(|text| Transaction::parse(text.as_bytes()).expect("reads")).collect();
    let recoveries: Vec<([u8; 32], Signature)> = read
        .iter()
        .flat_map(|transaction| {
            Pack::ALL.map(|pack| (transaction.digest(ChainId::MAINNET, pack), transaction.signatures[0]))
        })
        .collect();
    let (whole, bare) = medians(
        || {
            for text in &texts {
                let transaction = Transaction::parse(text.as_bytes()).expect("reads");
                for pack in Pack::ALL {
                    black_box(transaction.id(pack));
                    black_box(transaction.recover(ChainId::MAINNET, pack).expect("recovers"));
                }
            }
        },
        || {
            for (digest, signature) in &recoveries {
                let bare = k256::ecdsa::Signature::from_slice(&signature.0[1..]).expect("a signature");
                let recovery = RecoveryId::from_byte(signature.0[0] - 31).expect("a recovery id");
                black_box(VerifyingKey::recover_from_prehash(digest, &bare, recovery).expect("recovers"));
            }
        },
    );
    let each = |time: Duration| time.as_nanos() / SIGNATURES as u128 / 2;
    println!(
        "a signed transfer read, named and recovered, per signature and digest: {} ns, bare k256 {} ns: {} %",
        each(whole),
        each(bare),
        whole.as_nanos() * 100 / bare.as_nanos().max(1)
    );
}

fn signed(each: usize, key: &PrivateKey) -> Transaction {
    let memo = memo_of(PaymentId::from_bits(each as u128));
    let (from, to) = ("alice".to_owned(), "shop.payments".to_owned());
    let mut transaction = Transaction {
        ref_block_num: 1,
        ref_block_prefix: 2,
        expiration: Timestamp::from_seconds(1_800_000_000),
        operations: vec![Operation::Transfer(Transfer {
            from,
            to,
            amount: Asset { units: 1_000, symbol: Symbol::Hbd },
            memo,
        })],
        signatures: Vec::new(),
    };
    transaction.sign(ChainId::MAINNET, Pack::Legacy, key);
    transaction
}

fn blocks() {
    for (name, form) in [("block_api", Form::Hf26), ("condenser_api", Form::Condenser)] {
        let texts: Vec<String> = (0..BLOCKS).map(|number| block_text(number, form)).collect();
        let bytes: usize = texts.iter().map(String::len).sum();
        let mut matched = 0;
        let (time, _) = medians(
            || {
                for text in &texts {
                    let block = block::parse_condenser_block(text).expect("a block").expect("there");
                    matched += block
                        .transfers
                        .iter()
                        .filter(|transfer| matches!(match_memo(&transfer.memo), MemoMatch::Exact(_)))
                        .count();
                }
            },
            || (),
        );
        let rate = u128::from(BLOCKS) * 1_000_000_000 / time.as_nanos().max(1);
        println!(
            "{name} blocks of {TRANSACTIONS} transactions and {} kB, parsed and matched: {rate} per second",
            bytes / texts.len() / 1_000
        );
        assert_eq!(matched, ROUNDS * BLOCKS as usize * TRANSACTIONS / 6, "every sixth transaction pays a session");
    }
}

/// A block in a node's response: one operation in six pays a session, one in six is another transfer, the rest are
/// other operations.
fn block_text(number: u32, form: Form) -> String {
    let key = PrivateKey::from_bytes(&[7; 32]).expect("a key");
    let mut transactions = Vec::new();
    let mut ids = Vec::new();
    for each in 0..TRANSACTIONS {
        let memo = memo_of(PaymentId::from_bits(u128::from(number) << 64 | each as u128));
        let transfer = |memo: String| {
            let (from, to) = ("alice".to_owned(), "shop.payments".to_owned());
            Operation::Transfer(Transfer { from, to, amount: Asset { units: 1_000, symbol: Symbol::Hbd }, memo })
        };
        let operation = match each % 6 {
            0 => transfer(memo),
            1 => transfer("thank you".to_owned()),
            _ => Operation::CustomJson(engine::hive::CustomJson {
                required_auths: std::collections::BTreeSet::new(),
                required_posting_auths: ["alice".to_owned()].into(),
                id: "application".to_owned(),
                json: format!(r#"{{"memo":"{memo}","body":"{}"}}"#, "x".repeat(900)),
            }),
        };
        let mut transaction = Transaction {
            ref_block_num: 1,
            ref_block_prefix: 2,
            expiration: Timestamp::from_seconds(1_800_000_000),
            operations: vec![operation],
            signatures: Vec::new(),
        };
        transaction.sign(ChainId::MAINNET, Pack::Legacy, &key);
        ids.push(format!("\"{}\"", transaction.id(Pack::Legacy)));
        transactions.push(transaction.to_json(form));
    }
    format!(
        r#"{{"previous":"{number:08x}{:032x}","timestamp":"2026-11-20T14:00:00","witness":"w","transaction_merkle_root":"{:040x}","extensions":[],"witness_signature":"","transactions":[{}],"block_id":"{:08x}{:032x}","signing_key":"","transaction_ids":[{}]}}"#,
        0,
        0,
        transactions.join(","),
        number + 1,
        0,
        ids.join(",")
    )
}
