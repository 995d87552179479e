//! The sellers of docs/how-to/x402-seller.md, in Express and Hono, as the page prints them: one payment opens one request,
//! also where the work fails after the settlement.

use std::{path::PathBuf, process::Command, sync::OnceLock};

use libtest_mimic::Trial;
use serde_json::json;

use super::{clients::run, folder, prepare, scheme, with};
use crate::{
    documentation::blocks,
    harness::{Process, shared, until},
};

/// The programs, in the order of the page.
const FILES: [&str; 3] = ["seller.mjs", "express.mjs", "hono.mjs"];

/// Every test of this file.
pub(super) fn tests() -> Vec<Trial> {
    let each = ["express", "hono"].map(|framework| {
        let title = format!("the_seller_with_{framework}_serves_each_payment_once");
        Trial::ignorable_test(crate::title(module_path!(), &title), move || with(&missing(), || sell(framework)))
    });
    let agent = crate::title(module_path!(), "the_program_for_agents_pays_as_printed");
    let agent = Trial::ignorable_test(agent, || with(&missing(), pay));
    each.into_iter().chain([agent]).collect()
}

/// Runs the program of docs/how-to/pay-as-an-agent.md; the price is above the SDK's default limit of $1.
fn pay() {
    let (dev, work) = (shared(), crate::harness::folder("agent"));
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let payment = shop.open_payment();
    let programs = blocks("docs/how-to/pay-as-an-agent.md", "js");
    assert_eq!(programs.len(), 1, "the page holds one program");
    std::fs::write(work.join("pay.mjs"), &programs[0]).expect("the program is written");
    std::os::unix::fs::symlink(sources().join("node_modules"), work.join("node_modules")).expect("a link");
    let said = run(Command::new("node")
        .args(["pay.mjs", &format!("{}/for/{}", shop.api.base, payment.slug)])
        .env("HIVETILL_ACCOUNT", &agent.name)
        .env("HIVETILL_KEY", &agent.key)
        .env("LEDGER", &dev.ledger.rpc.base)
        .current_dir(&work));
    assert!(said.contains("completed"), "{said}");
    assert_eq!(shop.until_status(&payment.id, "completed")["amountPaid"], "1500");
}

fn sources() -> PathBuf {
    folder().join("sellers")
}

/// Makes the packages ready, of the sellers and of the scheme that they link to; says what is missing.
fn missing() -> Option<String> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    MISSING.get_or_init(|| prepare(&scheme()).or_else(|| prepare(&sources()))).clone()
}

fn sell(framework: &str) {
    let (dev, work) = (shared(), crate::harness::folder("seller"));
    let (shop, buyer) = (dev.shop(), dev.ledger.account("buyer"));
    let programs = blocks("docs/how-to/x402-seller.md", "js");
    assert_eq!(programs.len(), FILES.len(), "the page holds these programs");
    for (file, text) in FILES.iter().zip(programs) {
        std::fs::write(work.join(file), text).expect("a program is written");
    }
    std::fs::copy(sources().join("buyer.mjs"), work.join("buyer.mjs")).expect("the buyer is copied");
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
    let mut seller = Process::program("env", &work, &arguments);
    let port = seller.ready()["listening"].as_u64().expect("its port");
    let said = run(Command::new("node")
        .args(["buyer.mjs", &format!("http://127.0.0.1:{port}/report")])
        .env("HIVETILL_RPC", &dev.ledger.rpc.base)
        .env("HIVETILL_ACCOUNT", &buyer.name)
        .env("HIVETILL_KEY", &buyer.key)
        .current_dir(&work));
    assert_eq!(said.trim(), "ok", "{}", seller.log());
    let sold = until("two sales, and no third", || {
        let sales = shop.get("/api/public/x402/sales").send().ok(200);
        sales["data"].as_array().filter(|sales| sales.len() >= 2).cloned()
    });
    let amounts: Vec<_> = sold.iter().map(|sale| sale["amount"]["value"].clone()).collect();
    assert_eq!(amounts, [json!("50"), json!("50")]);
}
