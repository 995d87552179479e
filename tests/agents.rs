//! Agents that pay: `hivetill pay` as scripts run it, and its documentation.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use engine::x402::Reason;
use serde_json::{Value, json};

use crate::{
    harness::{Dev, Payer, Shop, background, shared, until},
    x402::{encode, json_of, nonce, v1},
};

crate::tests!(
    one_command_pays_a_session,
    a_collected_fee_is_paid_in_the_same_transaction,
    a_payment_beyond_the_payers_limits_is_never_signed,
    a_dry_run_needs_no_key_and_pays_nothing,
    the_key_is_read_from_the_environment_and_never_printed,
    a_url_without_a_payment_request_is_not_paid,
    an_unreachable_server_is_not_paid,
    attack_14_a_lost_response_of_the_ledger_results_in_one_payment,
    a_pending_payment_is_submitted_again_with_the_same_bytes,
    a_payment_that_expires_unseen_is_reported_as_unpaid,
    a_signed_payment_is_submitted_again_without_a_new_signature,
    with_json_nothing_else_is_printed,
    the_page_for_agents_lists_every_reason_and_exit_code,
    attack_35_the_page_warns_that_a_receipt_proves_nothing,
);

/// The result of `hivetill pay`: exit code, its line of JSON, and stderr.
struct Paid {
    code: i32,
    json: Value,
    report: String,
}

/// Returns a payer's command line.
fn command(dev: &Dev, url: &str, payer: &Payer, max: &str, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hivetill"));
    command
        .env_clear()
        .args(["pay", url, "--account", &payer.name, "--max", max, "--node", &dev.ledger.rpc.base])
        .args(more)
        .env("HIVETILL_KEY", &payer.key)
        .stdin(Stdio::null());
    command
}

#[track_caller]
fn run(mut command: Command) -> Paid {
    let output = command.output().expect("the binary starts");
    let (stdout, report) =
        (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned());
    let json = serde_json::from_str(stdout.trim()).unwrap_or_else(|error| panic!("{error}: {stdout}\n{report}"));
    Paid { code: output.status.code().expect("an exit code"), json, report }
}

#[track_caller]
fn pay(dev: &Dev, url: &str, payer: &Payer, max: &str) -> Paid {
    run(command(dev, url, payer, max, &[]))
}

/// Waits until the session is paid irreversibly, exactly once.
#[track_caller]
fn paid_once(shop: &Shop, id: &str) -> Value {
    let record = shop.until(id, "paid for good", |p| p["status"] == "completed" && p["amountPaid"] == "1500");
    assert_eq!(record["exceptions"], json!([]));
    record
}

fn address(shop: &Shop, slug: &str) -> String {
    format!("{}/for/{slug}", shop.api.base)
}

fn one_command_pays_a_session() {
    let dev = shared();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    for (currency, by_id) in [("HBD", false), ("HIVE", false), ("HBD", true)] {
        let order = json!({ "amount": "1500", "currency": currency, "description": "A blue mug" });
        let payment = shop.open_with(&order);
        let url =
            if by_id { format!("{}/checkout/{}", shop.api.base, payment.id) } else { address(&shop, &payment.slug) };
        let paid = pay(dev, &url, &agent, &format!("1.500 {currency}"));
        assert_eq!((paid.code, &paid.json["status"]), (0, &json!("paid")), "{} {}", paid.json, paid.report);
        assert!(paid.report.contains(&format!("1.500 {currency} to {} for \"A blue mug\"", shop.account.name)));
        assert_eq!(paid_once(&shop, &payment.id)["internalId"], paid.json["txId"]);
        let receipt = &paid.json["receipt"];
        assert_eq!((&receipt["success"], &receipt["payer"]), (&json!(true), &json!(agent.name)));
        assert_eq!(receipt["transaction"], paid.json["txId"]);
        assert_eq!(paid.json["response"]["sessionId"], payment.id);

        let again = pay(dev, &url, &agent, &format!("1.500 {currency}"));
        assert_eq!((again.code, &again.json["reason"]), (11, &json!("session_completed")), "{}", again.json);
        assert_eq!(again.json["txId"], Value::Null, "nothing was signed");
    }
}

fn a_collected_fee_is_paid_in_the_same_transaction() {
    let dev = Dev::with(&["--set=fees.mode=split", "--set=fees.account=hivetill.fees"]);
    let shop = dev.shop();
    let payment = shop.open_with(&json!({ "amount": "10500", "currency": "HBD", "description": "A mug" }));
    let paid = pay(&dev, &address(&shop, &payment.slug), &dev.demo_account("alice"), "10.500 HBD");
    assert_eq!(paid.code, 0, "{} {}", paid.json, paid.report);
    assert_eq!((&paid.json["feeAmount"], &paid.json["amount"]), (&json!("0.157 HBD"), &json!("10.500 HBD")));
    let record =
        shop.until(&payment.id, "paid with its fee", |p| p["transfers"].as_array().is_some_and(|t| t.len() == 2));
    let transfers: Vec<_> = record["transfers"].as_array().expect("transfers").iter().map(|t| &t["txId"]).collect();
    assert_eq!(transfers, [&paid.json["txId"]; 2]);
}

fn a_payment_beyond_the_payers_limits_is_never_signed() {
    let dev = shared();
    let shop = dev.shop();
    let agent = dev.ledger.account("agent");
    let payment = shop.open_payment();
    let url = address(&shop, &payment.slug);
    let other = dev.ledger.account("agent");
    let poor = dev.ledger.account("poor");
    dev.ledger.order("grant", &json!({ "name": poor.name, "amount": "-999999.000 HBD" }));
    let unknown = Payer { name: "nobody.there".to_owned(), key: agent.key.clone() };
    let wrong_key = Payer { name: agent.name.clone(), key: other.key.clone() };
    let cases = [
        (&agent, "1.499 HBD", "above_maximum"),
        (&agent, "99.000 HIVE", "other_currency"),
        (&shop.account, "99.000 HBD", "self_payment"),
        (&wrong_key, "99.000 HBD", "not_its_key"),
        (&unknown, "99.000 HBD", "no_account"),
        (&poor, "99.000 HBD", "insufficient_funds"),
    ];
    for (payer, max, reason) in cases {
        let paid = pay(dev, &url, payer, max);
        assert_eq!((paid.code, &paid.json["reason"]), (10, &json!(reason)), "{}", paid.json);
        assert_eq!((&paid.json["status"], &paid.json["txId"]), (&json!("refused"), &Value::Null));
    }
    let bad_key = Payer { key: "5nonsense".to_owned(), ..agent.clone() };
    assert_eq!(pay(dev, &url, &bad_key, "9.000 HBD").code, 2);
    let record = shop.payment(&payment.id);
    assert_eq!((&record["status"], &record["transfers"]), (&json!("pending"), &json!([])));
    assert_eq!(pay(dev, &url, &agent, "1.500 HBD").code, 0);
}

fn a_dry_run_needs_no_key_and_pays_nothing() {
    let dev = shared();
    let shop = dev.shop();
    let payment = shop.open_payment();
    let agent = Payer { name: "alice".to_owned(), key: String::new() };
    let mut dry = command(dev, &address(&shop, &payment.slug), &agent, "1.500 HBD", &["--dry-run", "--json"]);
    dry.env_remove("HIVETILL_KEY");
    let shown = run(dry);
    assert_eq!((shown.code, &shown.json["status"], shown.report.as_str()), (0, &json!("offer"), ""), "{}", shown.json);
    assert_eq!((&shown.json["amount"], &shown.json["payTo"]), (&json!("1.500 HBD"), &json!(shop.account.name)));
    assert_eq!(shown.json["sessionId"], payment.id);
    let mut keyless = command(dev, &address(&shop, &payment.slug), &agent, "1.500 HBD", &[]);
    keyless.env_remove("HIVETILL_KEY");
    let refused = run(keyless);
    assert_eq!((refused.code, &refused.json["reason"]), (2, &json!("no_key")));
    assert_eq!(shop.payment(&payment.id)["status"], "pending");
}

fn the_key_is_read_from_the_environment_and_never_printed() {
    let dev = shared();
    let shop = dev.shop();
    let agent = dev.ledger.account("agent");
    for (max, code) in [("0.001 HBD", 10), ("1.500 HBD", 0)] {
        let paid = pay(dev, &address(&shop, &shop.open_payment().slug), &agent, max);
        assert_eq!(paid.code, code);
        assert!(!paid.report.contains(&agent.key) && !paid.json.to_string().contains(&agent.key));
    }
    let help =
        Command::new(env!("CARGO_BIN_EXE_hivetill")).args(["pay", "--help"]).env("HIVETILL_KEY", &agent.key).output();
    assert!(!String::from_utf8_lossy(&help.expect("help").stdout).contains(&agent.key));
}

fn a_url_without_a_payment_request_is_not_paid() {
    let dev = shared();
    let shop = dev.shop();
    let agent = dev.ledger.account("agent");
    let free = pay(dev, &format!("{}/api/health", shop.api.base), &agent, "1.000 HBD");
    assert_eq!((free.code, &free.json["status"]), (0, &json!("free")), "{}", free.json);
    assert_eq!(free.json["response"]["status"], "ok");
    let gone = pay(dev, &address(&shop, "no-such-slug"), &agent, "1.000 HBD");
    assert_eq!((gone.code, &gone.json["status"]), (11, &json!("unpaid")), "{}", gone.json);
    let payment = shop.open_payment();
    shop.cancelled(&payment.id);
    let cancelled = pay(dev, &address(&shop, &payment.slug), &agent, "1.500 HBD");
    assert_eq!((cancelled.code, &cancelled.json["reason"]), (11, &json!("session_not_pending")), "{}", cancelled.json);
}

fn an_unreachable_server_is_not_paid() {
    let dev = shared();
    let shop = dev.shop();
    let agent = dev.ledger.account("agent");
    let nowhere = pay(dev, "http://127.0.0.1:1/for/x", &agent, "1.000 HBD");
    assert_eq!((nowhere.code, &nowhere.json["status"]), (13, &json!("unreachable")), "{}", nowhere.json);
    let url = address(&shop, &shop.open_payment().slug);
    let mut no_node = Command::new(env!("CARGO_BIN_EXE_hivetill"));
    no_node.env_clear().env("HIVETILL_KEY", &agent.key);
    no_node.args(["pay", &url, "--account", &agent.name, "--max", "9.000 HBD"]);
    let no_node = {
        no_node.args(["--node", "http://127.0.0.1:1"]);
        run(no_node)
    };
    assert_eq!((no_node.code, &no_node.json["reason"]), (13, &json!("ledger_unreachable")), "{}", no_node.json);
    let plain = pay(dev, "http://shop.example/for/x", &agent, "1.000 HBD");
    assert_eq!((plain.code, &plain.json["reason"]), (2, &json!("plain_http")));
}

fn attack_14_a_lost_response_of_the_ledger_results_in_one_payment() {
    let dev = Dev::start();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    for replies in [1, 3] {
        let payment = shop.open_payment();
        dev.ledger.order("node", &json!({ "dropBroadcastReplies": replies }));
        let paid = pay(&dev, &address(&shop, &payment.slug), &agent, "1.500 HBD");
        assert_eq!(paid.code, 0, "{} {}", paid.json, paid.report);
        paid_once(&shop, &payment.id);
    }
}

fn a_pending_payment_is_submitted_again_with_the_same_bytes() {
    let dev = Dev::start();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let payment = shop.open_payment();
    // The node accepts broadcasts, but no block contains them.
    dev.ledger.order("hold_transactions", &json!({ "held": true }));
    let command = command(&dev, &address(&shop, &payment.slug), &agent, "1.500 HBD", &["--expires-in", "120"]);
    let paying = background(move || run(command));
    // The server has answered that the outcome is unknown.
    shop.until_status(&payment.id, "processing");
    let second = pay(&dev, &address(&shop, &payment.slug), &agent, "1.500 HBD");
    assert_eq!((second.code, &second.json["reason"]), (12, &json!("payment_in_flight")), "{}", second.json);
    assert!(!second.json["txId"].is_string(), "another's transaction is not named: {}", second.json);
    assert!(second.json.get("expiresAt").is_none(), "nothing was signed");
    dev.ledger.order("hold_transactions", &json!({ "held": false }));
    let paid = paying.join().expect("it ends");
    assert_eq!((paid.code, &paid.json["status"]), (0, &json!("paid")), "{} {}", paid.json, paid.report);
    assert!(paid.json["attempts"].as_u64().expect("a count") > 1, "{}", paid.json);
    assert!(paid.report.contains("not yet: settlement_pending"), "{}", paid.report);
    assert_eq!(paid_once(&shop, &payment.id)["internalId"], paid.json["txId"]);
}

fn a_payment_that_expires_unseen_is_reported_as_unpaid() {
    let dev = Dev::start();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let payment = shop.open_payment();
    // The node acknowledges the transaction and drops it.
    dev.ledger.order("node", &json!({ "lie": { "kind": "swallowBroadcasts" } }));
    let command = command(&dev, &address(&shop, &payment.slug), &agent, "1.500 HBD", &["--expires-in", "25"]);
    let paid = run(command);
    assert_eq!((paid.code, &paid.json["status"]), (11, &json!("unpaid")), "{} {}", paid.json, paid.report);
    let record = until("the session knows, too", || {
        Some(shop.payment(&payment.id)).filter(|record| record["status"] == "failed" || record["status"] == "pending")
    });
    assert_eq!(record["amountPaid"], "0", "{record}");
}

fn a_signed_payment_is_submitted_again_without_a_new_signature() {
    let dev = Dev::start();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let refused_of = |agent: &Payer| {
        dev.ledger.order("set_rc", &json!({ "name": agent.name, "hasRc": false }));
        let refused = pay(&dev, &address(&shop, &shop.open_payment().slug), agent, "1.500 HBD");
        dev.ledger.order("set_rc", &json!({ "name": agent.name, "hasRc": true }));
        refused.json
    };
    let refused = refused_of(&agent);
    assert_eq!(refused["status"], "unpaid", "{refused}");
    let kept = BASE64_STANDARD.decode(refused["payment"].as_str().expect("the signed payment")).expect("base64");
    let kept: Value = serde_json::from_slice(&kept).expect("JSON");
    assert_eq!(kept["payload"]["signedTransaction"]["operations"][0][1]["from"], agent.name);

    let payment = shop.open_payment();
    let signed = dev.ledger.signed(&agent, &[(&shop.account.name, "1.500 HBD", &payment.memo)]);
    let header = encode(&v1(&json_of(&signed), &nonce()));
    let again = |payer: &Payer, max: &str| {
        let url = address(&shop, &payment.slug);
        let mut again = command(&dev, &url, payer, max, &["--payment", &header]);
        again.env_remove("HIVETILL_KEY");
        run(again)
    };
    assert_eq!(again(&agent, "1.499 HBD").json["reason"], "above_maximum");
    assert_eq!(again(&agent, "9.000 HIVE").json["reason"], "other_currency");
    let other = again(&shop.account, "1.500 HBD");
    assert_eq!((other.code, &other.json["reason"]), (2, &json!("bad_payment")), "{}", other.json);
    let [first, second] = [0, 1].map(|_| {
        let paid = again(&agent, "1.500 HBD");
        assert_eq!((paid.code, &paid.json["status"]), (0, &json!("paid")), "{} {}", paid.json, paid.report);
        assert!(paid.json.get("payment").is_none(), "it is spent: {}", paid.json);
        paid.json["txId"].clone()
    });
    assert_eq!(first, second);
    assert_eq!(paid_once(&shop, &payment.id)["internalId"], first);
}

fn with_json_nothing_else_is_printed() {
    let dev = shared();
    let shop = dev.shop();
    let agent = dev.ledger.account("agent");
    let url = address(&shop, &shop.open_payment().slug);
    for (max, code) in [("0.001 HBD", 10), ("1.500 HBD", 0)] {
        let paid = run(command(dev, &url, &agent, max, &["--json"]));
        assert_eq!((paid.code, paid.report.as_str()), (code, ""), "{}", paid.json);
    }
}

fn page_named(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    std::fs::read_to_string(docs.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn the_page_for_agents_lists_every_reason_and_exit_code() {
    let page = page_named("reference/x402.md");
    let (_, words) = page.split_once("## Every word").expect("the list");
    for reason in Reason::ALL {
        assert!(words.contains(&format!("| `{}` |", reason.as_str())), "{} is not explained", reason.as_str());
    }
    for line in words.lines().filter_map(|line| line.strip_prefix("| `")) {
        let (word, _) = line.split_once('`').expect("a word");
        assert!(Reason::parse(word).is_some(), "{word} is explained and never returned");
    }
    let codes = page_named("reference/exit-codes.md");
    let (_, codes) = codes.split_once("## hivetill pay").expect("its table");
    let help = Command::new(env!("CARGO_BIN_EXE_hivetill")).args(["pay", "--help"]).output().expect("help").stdout;
    let help = String::from_utf8_lossy(&help).split_whitespace().collect::<Vec<_>>().join(" ");
    for code in ["0", "1", "2", "10", "11", "12", "13"] {
        assert!(codes.contains(&format!("\n| {code} | `")), "exit code {code} is not in the page");
        assert!(help.contains(&format!(" {code} ")), "exit code {code} is not in --help");
    }
}

fn attack_35_the_page_warns_that_a_receipt_proves_nothing() {
    let page = page_named("how-to/pay-as-an-agent.md");
    assert!(page.contains("`PAYMENT-RESPONSE` is not signed. As a merchant, trust the webhook"));
}
