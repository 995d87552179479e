//! The official packages of x402 and of the Model Context Protocol pay through a gate, its routes and its tools; and an agent's
//! wallet pays a tool that the official packages sell.

use std::{path::PathBuf, process::Command, sync::OnceLock};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{clients::run, folder, prepare, prepare_python, scheme, with};
use crate::{
    gate::{Gate, Upstream, tools::TOOLS},
    harness::{Dev, Payer, Process, Shop, shared, until},
    wallet::agent::Agent,
};

/// Returns every test of this file.
pub(super) fn tests() -> Vec<Trial> {
    let title = |name| crate::title(module_path!(), name);
    vec![
        Trial::ignorable_test(title("the_official_axios_client_pays_a_gate"), || {
            with(&node(), || pay_gate("axios.mjs"))
        }),
        Trial::ignorable_test(title("the_official_python_clients_pay_a_gate"), || {
            with(&python(), || pay_gate("gate.py"))
        }),
        Trial::ignorable_test(title("the_official_typescript_client_pays_a_tool"), || {
            with(&node(), || pay_tool("tool.mjs"))
        }),
        Trial::ignorable_test(title("the_official_python_client_pays_a_tool"), || {
            with(&python(), || pay_tool("tool.py"))
        }),
        Trial::ignorable_test(title("a_wallet_pays_a_tool_of_the_official_python_server"), || {
            with(&python(), buy_tool)
        }),
    ]
}

fn sources() -> PathBuf {
    folder().join("payers")
}

fn environment() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/payers"))
}

fn node() -> Option<String> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    MISSING.get_or_init(|| prepare(&scheme()).or_else(|| prepare(&sources()))).clone()
}

fn python() -> Option<String> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    MISSING.get_or_init(|| prepare_python(&environment(), &sources().join("requirements.txt"))).clone()
}

/// Runs a program as a buyer.
#[track_caller]
fn buy(dev: &Dev, buyer: &Payer, program: &str, arguments: &[&str]) -> String {
    let mut command =
        if program.ends_with(".py") { Command::new(environment().join("bin/python")) } else { Command::new("node") };
    // hive-nectar stores its settings in the home directory.
    command.arg(program).args(arguments).current_dir(sources()).env("HOME", crate::harness::folder("buyer"));
    command.env("HIVETILL_RPC", &dev.ledger.rpc.base).env("HIVETILL_ACCOUNT", &buyer.name);
    run(command.env("HIVETILL_KEY", &buyer.key).env("PYTHONDONTWRITEBYTECODE", "1"))
}

/// Waits until the merchant's list has this number of sales; returns their amounts.
#[track_caller]
fn sold(shop: &Shop, count: usize) -> Vec<Value> {
    let sales = until("the sales", || {
        let sales = shop.get("/api/public/x402/sales").send().ok(200);
        sales["data"].as_array().filter(|sales| sales.len() >= count).cloned()
    });
    sales.iter().map(|sale| sale["amount"]["value"].clone()).collect()
}

fn pay_gate(program: &str) {
    let dev = shared();
    let (shop, buyer, upstream) = (dev.shop(), dev.ledger.account("buyer"), Upstream::start());
    let gate = Gate::start(dev, &shop, &upstream, "");
    let report = buy(dev, &buyer, program, &[&gate.url("")]);
    assert!(report.lines().any(|line| line == "ok"), "{report}");
    assert_eq!((sold(&shop, 2).len(), upstream.requests().len()), (2, 2), "two requests, each with its payment");
}

fn pay_tool(program: &str) {
    let dev = shared();
    let (shop, buyer, upstream) = (dev.shop(), dev.ledger.account("buyer"), Upstream::start());
    let gate = Gate::start(dev, &shop, &upstream, TOOLS);
    let printed = buy(dev, &buyer, program, &[&gate.url("/mcp"), "report"]);
    let line = printed.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{printed}"));
    let seen: Value = serde_json::from_str(line).expect("one line of JSON");
    assert_eq!(seen["tools"], json!(["report", "work", "greet"]));
    let paid = &seen["paid"];
    assert_eq!((&paid["isError"], &paid["receipt"]["success"]), (&json!(false), &json!(true)), "{seen}");
    assert_eq!(paid["receipt"]["payer"], buyer.name.as_str(), "{seen}");
    let content = paid["content"][0]["text"].as_str().expect("a text");
    assert!(content.contains("Mugs are up 3 %"), "{seen}");
    for (refused, reason) in [("used", "duplicate_settlement"), ("invalid", "invalid_payload")] {
        let refused = &seen[refused];
        assert_eq!((&refused["isError"], &refused["receipt"]["success"]), (&json!(true), &json!(false)), "{seen}");
        assert_eq!(refused["receipt"]["errorReason"], reason, "{seen}");
    }
    let count = if program == "tool.py" {
        assert_eq!((&seen["required"]["x402Version"], &seen["paymentMade"]), (&json!(2), &json!(true)));
        assert_eq!(seen["first"]["receipt"]["success"], true, "{seen}");
        2
    } else {
        // The schemas of the official package.
        assert_eq!((&seen["isRequired"], &seen["isPayment"]), (&json!(true), &json!(true)), "{seen}");
        1
    };
    assert_eq!(sold(&shop, count), vec![json!("50"); count]);
    assert_eq!(upstream.requests().len(), count, "a refused payment executes nothing");
}

/// The official server verifies and settles through the gateway as its facilitator.
fn buy_tool() {
    let (dev, work) = (shared(), crate::harness::folder("seller"));
    let shop = dev.shop();
    let settings = [
        format!("HIVETILL_API={}", dev.api.base),
        format!("HIVETILL_API_KEY={}", shop.key),
        format!("HIVETILL_ACCOUNT={}", shop.account.name),
        "PYTHONDONTWRITEBYTECODE=1".to_owned(),
    ];
    let (python, program) = (environment().join("bin/python"), sources().join("seller.py"));
    let mut arguments: Vec<&str> = settings.iter().map(String::as_str).collect();
    arguments.extend([python.to_str().expect("a path"), program.to_str().expect("a path")]);
    let mut seller = Process::program("env", &work, &arguments);
    let url = format!("http://127.0.0.1:{}/mcp", seller.ready()["listening"]);
    let agent = Agent::new(dev, "[limits]\nday = \"0.099 HBD\"\n");
    let pay = |topic: &str| agent.pay(&url, &["--tool", "report", "--data", &json!({ "topic": topic }).to_string()]);
    let paid = pay("Mugs");
    assert_eq!((paid.code, &paid.json["status"]), (Some(0), &json!("paid")), "{} {}", paid.json, paid.stderr);
    let text = paid.json["response"]["content"][0]["text"].as_str().expect("a text");
    let content: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(content, json!({ "report": "Mugs are up 3 %", "calls": 1 }), "an unpaid call executes nothing");
    assert_eq!(paid.json["receipt"]["transaction"], paid.json["txId"], "{}", paid.json);
    assert_eq!(pay("Mugs").json["replayed"], true);
    let over = pay("Cups");
    assert_eq!((over.code, &over.json["reason"]), (Some(10), &json!("above_day_limit")), "{}", over.json);
    let free = agent.pay(&url, &["--tool", "greet"]);
    assert_eq!((free.code, &free.json["status"]), (Some(0), &json!("free")), "{} {}", free.json, free.stderr);
    assert_eq!((sold(&shop, 1), agent.charged()), (vec![json!("50")], 50));
}
