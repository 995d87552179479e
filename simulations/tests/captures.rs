//! The shapes of our responses against captured responses of real nodes. Those are read in place, beside the repository,
//! and are not part of it: where they are absent these tests are skipped with a message.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use engine::time::Timestamp;
use libtest_mimic::{Arguments, Trial};
use serde_json::{Value, json};
use simulations::{
    devnet::{Devnet, Options},
    ledger::Genesis,
};

/// The captured file, the method with such a response, its parameters, and members whose values vary in shape.
const CASES: [(&str, &str, &str); 9] = [
    ("condenser_api.get_dynamic_global_properties.json", "condenser_api.get_dynamic_global_properties", "[]"),
    ("database_api.get_dynamic_global_properties.json", "database_api.get_dynamic_global_properties", "{}"),
    ("condenser_api.get_block.1000000.json", "condenser_api.get_block", "[2]"),
    ("condenser_api.get_block.non_existing.json", "condenser_api.get_block", "[99]"),
    ("condenser_api.get_accounts.json", "condenser_api.get_accounts", "[[\"alice\"]]"),
    ("database_api.find_accounts.json", "database_api.find_accounts", "{\"accounts\":[\"alice\"]}"),
    ("condenser_api.get_current_median_history_price.json", "condenser_api.get_current_median_history_price", "[]"),
    (
        "transaction_status_api.find_transaction.within_irreversible_block.json",
        "transaction_status_api.find_transaction",
        "TX",
    ),
    ("condenser_api.get_transaction.json", "condenser_api.get_transaction", "[TX]"),
];

#[expect(clippy::print_stderr, reason = "who runs the tests must see that the captures are not there")]
fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/ledger/rpc");
    let absent = !folder.is_dir();
    if absent {
        eprintln!("no captured responses at {}: these tests are ignored", folder.display());
    }
    let trials = CASES
        .into_iter()
        .map(|(file, method, params)| {
            let path = folder.join(file);
            let run = move || {
                judge(&path, method, params);
                Ok(())
            };
            Trial::test(file, run).with_ignored_flag(absent)
        })
        .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn judge(path: &PathBuf, method: &str, params: &str) {
    let captured: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ours = runtime.block_on(ours(method, params));
    let mut wrong = Vec::new();
    compare("", &captured, &ours, &mut wrong);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

async fn ours(method: &str, params: &str) -> Value {
    let clock = Arc::new(|| Timestamp::from_seconds(1_800_000_000));
    let options = Options::new(Genesis::demo([7; 32], clock()), clock);
    let devnet = Devnet::start(Options { auto_produce: false, control: None, ..options }).await.unwrap();
    let paid = devnet.control("control.transfer", json!({"from": "alice", "to": "bob", "amount": "1.000 HBD"})).await;
    let id = paid.unwrap()["id"].as_str().unwrap().to_owned();
    devnet.control("control.produce", json!({"count": 5})).await.unwrap();
    let params = match params {
        "TX" => json!({ "transaction_id": id }),
        "[TX]" => json!([id]),
        text => serde_json::from_str(text).unwrap(),
    };
    let answer = devnet.rpc(0, method, params).await.unwrap();
    devnet.shutdown().await;
    answer
}

/// Every member of a captured response is in ours, of the same type; a number may replace digits and the other way
/// round, as hived itself changes with the size of the number.
fn compare(at: &str, captured: &Value, ours: &Value, wrong: &mut Vec<String>) {
    match (captured, ours) {
        (Value::Object(captured), Value::Object(ours)) => {
            for (name, value) in captured {
                match ours.get(name) {
                    Some(own) => compare(&format!("{at}.{name}"), value, own, wrong),
                    None => wrong.push(format!("{at}.{name} is missing")),
                }
            }
        }
        (Value::Array(captured), Value::Array(ours)) => {
            if let (Some(captured), Some(ours)) = (captured.first(), ours.first()) {
                compare(&format!("{at}[0]"), captured, ours, wrong);
            }
        }
        (Value::Number(_) | Value::String(_), Value::Number(_) | Value::String(_))
            if digits(captured) && digits(ours) => {}
        _ if std::mem::discriminant(captured) == std::mem::discriminant(ours) => {}
        _ => wrong.push(format!("{at} is {captured} there and {ours} here")),
    }
}

fn digits(value: &Value) -> bool {
    value.is_number() || value.as_str().is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
}
