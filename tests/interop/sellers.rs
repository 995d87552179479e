//! The sellers of docs/how-to/x402-seller.md, in Express and Hono, as printed: one payment serves one request, also if
//! the handler fails after the settlement. Also a gate, paid by the official client.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{clients::run, folder, prepare, scheme, with};
use crate::{
    documentation::blocks,
    gate::{Gate, Upstream},
    harness::{Dev, Process, Shop, shared, until},
};

const PAGE: &str = "docs/how-to/x402-seller.md";
/// The programs, in the order of the page.
const FILES: [&str; 3] = ["seller.mjs", "express.mjs", "hono.mjs"];

/// Returns every test of this file.
pub(super) fn tests() -> Vec<Trial> {
    let tried = crate::title(module_path!(), "the_commands_that_try_a_seller_do_as_printed");
    let tried = Trial::ignorable_test(tried, || with(&missing(), try_out));
    let each = ["express", "hono"].map(|framework| {
        let title = format!("the_seller_with_{framework}_serves_each_payment_once");
        Trial::ignorable_test(crate::title(module_path!(), &title), move || with(&missing(), || sell(framework)))
    });
    let agent = crate::title(module_path!(), "the_program_for_agents_pays_as_printed");
    let agent = Trial::ignorable_test(agent, || with(&missing(), pay));
    let gate = crate::title(module_path!(), "the_official_client_pays_a_gate_and_verifies_its_receipt");
    let gate = Trial::ignorable_test(gate, || with(&missing(), pay_gate));
    each.into_iter().chain([agent, tried, gate]).collect()
}

/// Pays a gate with @x402/fetch and verifies the receipt with @x402/extensions.
fn pay_gate() {
    let (dev, work) = (shared(), crate::harness::folder("gate-client"));
    let (shop, buyer, upstream) = (dev.shop(), dev.ledger.account("buyer"), Upstream::start());
    let gate = Gate::start(dev, &shop, &upstream, "");
    std::os::unix::fs::symlink(sources().join("node_modules"), work.join("node_modules")).expect("a link");
    std::fs::copy(sources().join("gate.mjs"), work.join("gate.mjs")).expect("the client is copied");
    let report = run(Command::new("node")
        .args(["gate.mjs", &gate.url("")])
        .env("HIVETILL_RPC", &dev.ledger.rpc.base)
        .env("HIVETILL_ACCOUNT", &buyer.name)
        .env("HIVETILL_KEY", &buyer.key)
        .current_dir(&work));
    assert_eq!(report.trim(), "ok");
}

/// Runs the program of docs/how-to/pay-as-an-agent.md. The price is above the SDK's default limit of $1.
fn pay() {
    let (dev, work) = (shared(), crate::harness::folder("agent"));
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let payment = shop.open_payment();
    let programs = blocks("docs/how-to/pay-as-an-agent.md", "js");
    assert_eq!(programs.len(), 1, "the page holds one program");
    std::fs::write(work.join("pay.mjs"), &programs[0]).expect("the program is written");
    std::os::unix::fs::symlink(sources().join("node_modules"), work.join("node_modules")).expect("a link");
    let report = run(Command::new("node")
        .args(["pay.mjs", &format!("{}/for/{}", shop.api.base, payment.slug)])
        .env("HIVETILL_ACCOUNT", &agent.name)
        .env("HIVETILL_KEY", &agent.key)
        .env("LEDGER", &dev.ledger.rpc.base)
        .current_dir(&work));
    assert!(report.contains("completed"), "{report}");
    assert_eq!(shop.until_status(&payment.id, "completed")["amountPaid"], "1500");
}

fn sources() -> PathBuf {
    folder().join("sellers")
}

/// Installs the packages of the sellers and of the scheme; returns what is missing.
fn missing() -> Option<String> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    MISSING.get_or_init(|| prepare(&scheme()).or_else(|| prepare(&sources()))).clone()
}

/// Starts a seller whose first handler call fails; returns it with its URL.
fn start(framework: &str, work: &Path, dev: &Dev, shop: &Shop) -> (Process, String) {
    let programs = blocks(PAGE, "js");
    assert_eq!(programs.len(), FILES.len(), "the page holds these programs");
    for (file, text) in FILES.iter().zip(programs) {
        std::fs::write(work.join(file), text).expect("a program is written");
    }
    std::os::unix::fs::symlink(sources().join("node_modules"), work.join("node_modules")).expect("a link");
    let settings = [
        format!("HIVETILL_API={}", dev.api.base),
        format!("HIVETILL_API_KEY={}", shop.key),
        format!("HIVETILL_ACCOUNT={}", shop.account.name),
        "FAIL_ONCE=1".to_owned(),
        "PORT=0".to_owned(),
    ];
    let program = format!("{framework}.mjs");
    let arguments: Vec<&str> = settings.iter().map(String::as_str).chain(["node", &program]).collect();
    let mut seller = Process::program("env", work, &arguments);
    let port = seller.ready()["listening"].as_u64().expect("its port");
    (seller, format!("http://127.0.0.1:{port}/report"))
}

/// Runs the commands of the page: a payment whose handler fails, a retry, one retry too many, and wrong amounts.
fn try_out() {
    let (dev, work) = (shared(), crate::harness::folder("try"));
    let (shop, buyer) = (dev.shop(), dev.ledger.account("buyer"));
    let (_seller, url) = start("express", &work, dev, &shop);
    let [commands] = &blocks(PAGE, "sh")[..] else { panic!("{PAGE} has one block of commands") };
    let program = Path::new(env!("CARGO_BIN_EXE_hivetill")).parent().expect("a folder").display().to_string();
    let report = run(Command::new("bash")
        .args(["-eu", "-c", &format!("PATH={program}:$PATH\n{commands}")])
        .current_dir(&work)
        .env("HIVETILL_KEY", &buyer.key)
        .env("HIVETILL_ACCOUNT", &shop.account.name)
        .env("PAYER", &buyer.name)
        .env("LEDGER", &dev.ledger.rpc.base)
        .env("SELLER", url));
    let lines: Vec<&str> = report.lines().collect();
    let expected = [
        "500 Internal Server Error",
        "200 OK",
        "402 Payment Required",
        "duplicate_settlement",
        "402 Payment Required",
        "invalid_exact_hive_payload_amount",
        "402 Payment Required",
        "invalid_exact_hive_payload_amount_mismatch",
    ];
    assert!(lines.len() == 10 && lines[..8] == expected && lines[9] == "exit 14", "{report}");
    let settled: Value = serde_json::from_str(lines[8]).expect("one line of JSON");
    assert_eq!((&settled["status"], &settled["reason"]), (&json!("settled"), &json!("duplicate_settlement")));
    assert_eq!(settled["receipt"]["transaction"], settled["txId"], "it is this payment's own transaction");
}

fn sell(framework: &str) {
    let (dev, work) = (shared(), crate::harness::folder("seller"));
    let (shop, buyer) = (dev.shop(), dev.ledger.account("buyer"));
    let (seller, url) = start(framework, &work, dev, &shop);
    std::fs::copy(sources().join("buyer.mjs"), work.join("buyer.mjs")).expect("the buyer is copied");
    let report = run(Command::new("node")
        .args(["buyer.mjs", &url])
        .env("HIVETILL_RPC", &dev.ledger.rpc.base)
        .env("HIVETILL_ACCOUNT", &buyer.name)
        .env("HIVETILL_KEY", &buyer.key)
        .current_dir(&work));
    assert_eq!(report.trim(), "ok", "{}", seller.log());
    let sold = until("two sales, and no third", || {
        let sales = shop.get("/api/public/x402/sales").send().ok(200);
        sales["data"].as_array().filter(|sales| sales.len() >= 2).cloned()
    });
    let amounts: Vec<_> = sold.iter().map(|sale| sale["amount"]["value"].clone()).collect();
    assert_eq!(amounts, [json!("50"), json!("50")]);
}
