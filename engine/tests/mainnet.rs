//! Tests of the codec with 1,000 blocks of the main chain. The blocks are not part of the repository; without them
//! these tests are skipped with a message.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use engine::{
    hive::{BlockHeader, ChainId, Fault, Form, Pack, PublicKey, Signature, Transaction, block, merkle_root},
    ledger::{BlockId, TxId},
    money::Money,
    time::Timestamp,
};
use libtest_mimic::{Arguments, Trial};
use serde_json::Value;

/// A test: its name and a function of the block data.
type Case = (&'static str, fn(&str));

const CASES: [Case; 4] = [
    ("every_block_reads_and_builds_on_the_one_before", every_block_reads_and_builds_on_the_one_before),
    ("every_id_and_witness_signature_is_that_of_its_header", every_id_and_witness_signature_is_that_of_its_header),
    ("transactions_we_serialize_have_the_ids_of_the_chain", transactions_we_serialize_have_the_ids_of_the_chain),
    ("signatures_recover_under_the_first_chain_id", signatures_recover_under_the_first_chain_id),
];

#[expect(clippy::print_stderr, reason = "who runs the tests must see that the blocks are not there")]
fn main() {
    let arguments = Arguments::from_args();
    let path = blocks();
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() {
        eprintln!("the main chain's blocks are not at {}: these tests are ignored", path.display());
    }
    let absent = text.is_none();
    let trials = CASES.map(|(name, case)| {
        let text = text.clone();
        let run = move || {
            case(&text.ok_or("the blocks are absent")?);
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(absent)
    });
    libtest_mimic::run(&arguments, trials.into()).exit();
}

fn blocks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/ledger/mainnet/blocks_1000000_1000999.json")
}

fn every_block_reads_and_builds_on_the_one_before(text: &str) {
    let blocks = block::parse_block_range(text).unwrap();
    let numbers: Vec<u32> = blocks.iter().map(engine::ledger::Block::number).collect();
    assert_eq!(numbers, (1_000_000..1_001_000).collect::<Vec<u32>>());
    assert!(blocks.windows(2).all(|pair| pair[1].previous == pair[0].id && pair[1].time > pair[0].time));
    let transfers: Vec<_> = blocks.iter().flat_map(|block| &block.transfers).collect();
    let [transfer] = transfers[..] else { panic!("one transfer, not {}", transfers.len()) };
    assert_eq!((transfer.from.as_str(), transfer.to.as_str()), ("openledger", "register"));
    assert_eq!(Ok(transfer.money), Money::parse_ledger("10.000 HIVE"));

    // The same block in the responses of the other two methods.
    let json: Value = serde_json::from_str(text).unwrap();
    let at = usize::try_from(transfer.position.block_num - 1_000_000).unwrap();
    let one = &json["blocks"][at];
    assert_eq!(block::parse_block(&serde_json::json!({ "block": one }).to_string()), Ok(Some(blocks[at].clone())));
    assert_eq!(block::parse_condenser_block(&one.to_string()), Ok(Some(blocks[at].clone())));
}

fn every_id_and_witness_signature_is_that_of_its_header(text: &str) {
    let mut checked = 0;
    each_block(text, |json| {
        if json["extensions"].as_array().is_some_and(|list| !list.is_empty()) {
            return;
        }
        let header = BlockHeader {
            previous: BlockId::parse(string(&json["previous"])).unwrap(),
            timestamp: Timestamp::parse_ledger(string(&json["timestamp"])).unwrap(),
            witness: string(&json["witness"]).to_owned(),
            transaction_merkle_root: hex::decode(string(&json["transaction_merkle_root"])).unwrap().try_into().unwrap(),
        };
        let signature = Signature::parse(string(&json["witness_signature"])).unwrap();
        assert_eq!(header.id(&signature), BlockId::parse(string(&json["block_id"])).unwrap());
        let signer = PublicKey::parse(string(&json["signing_key"])).unwrap();
        assert_eq!(signature.recover(&header.digest()), Ok(signer), "block {}", json["block_id"]);
        checked += 1;
    });
    assert_eq!(checked, 1_000);
}

fn transactions_we_serialize_have_the_ids_of_the_chain(text: &str) {
    let (mut serialized, mut passed_over, mut roots) = (0, BTreeMap::<String, usize>::new(), 0);
    each_block(text, |json| {
        let ids = json["transaction_ids"].as_array().unwrap();
        let transactions = json["transactions"].as_array().unwrap();
        let mut signed = Vec::new();
        for (transaction, id) in transactions.iter().zip(ids) {
            match Transaction::parse(transaction.to_string().as_bytes()) {
                Ok(transaction) => {
                    assert_eq!(transaction.id(Pack::Legacy), TxId::parse(string(id)).unwrap());
                    let again = Transaction::parse(transaction.to_json(Form::Condenser).as_bytes()).unwrap();
                    assert_eq!(again, transaction);
                    signed.push(transaction.signed_bytes(Pack::Legacy));
                    serialized += 1;
                }
                Err(error) => {
                    let Fault::UnknownOperation { name } = error.fault else { panic!("{error}") };
                    *passed_over.entry(name).or_default() += 1;
                }
            }
        }
        if signed.len() == transactions.len() {
            let root = merkle_root(signed.iter().map(Vec::as_slice));
            assert_eq!(hex::encode(root), string(&json["transaction_merkle_root"]), "block {}", json["block_id"]);
            roots += 1;
        }
    });
    // Mining ended with hard fork 17; every other operation of these blocks is decoded.
    assert_eq!(passed_over, BTreeMap::from([("pow".to_owned(), 49)]));
    assert_eq!((serialized, roots), (33, 951));
}

fn signatures_recover_under_the_first_chain_id(text: &str) {
    let mut signatures = 0;
    let mut keys = BTreeMap::<(String, PublicKey), usize>::new();
    each_block(text, |json| {
        for transaction in json["transactions"].as_array().unwrap() {
            let Ok(transaction) = Transaction::parse(transaction.to_string().as_bytes()) else { continue };
            let signers = transaction.recover(ChainId::ZERO, Pack::Legacy).unwrap();
            signatures += signers.len();
            for (role, account) in transaction.required().unwrap() {
                for key in &signers {
                    *keys.entry((format!("{role:?} {account}"), *key)).or_default() += 1;
                }
            }
        }
    });
    assert_eq!(signatures, 33);
    // A correct digest recovers the same key for an account every time; a wrong one recovers a different key each time.
    assert!(keys.values().any(|times| *times > 1), "{keys:?}");
}

fn each_block(text: &str, mut see: impl FnMut(&Value)) {
    let json: Value = serde_json::from_str(text).unwrap();
    json["blocks"].as_array().unwrap().iter().for_each(&mut see);
}

fn string(value: &Value) -> &str {
    value.as_str().expect("a string")
}
