//! Logs: a request id connects the lines of all components, and no secret is logged.

use serde_json::{Value, json};

use crate::{
    harness::{Dev, LedgerProcess, Process, Receiver, Shop, Split, folder, until},
    x402,
};

crate::tests!(
    the_logs_of_a_full_journey_contain_no_secret,
    a_request_id_is_logged_from_the_facade_to_the_actor,
    two_processes_log_the_same_request_id,
    every_relevant_transfer_is_logged_with_its_reason,
);

const LOUD: [&str; 2] = ["--set=log.level=trace", "--set=log.format=json"];

fn lines(process: &Process) -> Vec<Value> {
    let log = process.log();
    log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Waits for a line that contains these words, and returns it.
#[track_caller]
fn line(process: &Process, words: &[&str]) -> Value {
    until(&format!("a line with {words:?}"), || {
        lines(process).into_iter().find(|line| words.iter().all(|word| line.to_string().contains(word)))
    })
}

fn the_logs_of_a_full_journey_contain_no_secret() {
    let dev = Dev::with(&LOUD);
    let (shop, agent, receiver) = (dev.shop(), dev.ledger.account("agent"), Receiver::start());
    shop.set_webhook(&receiver);
    let paid = shop.open_payment();
    let page = dev.api.get(&format!("/for/{}", paid.slug)).header("accept", "text/html").send();
    assert_eq!(page.status, 200);
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, "1.500 HBD", &paid.memo);
    shop.until_status(&paid.id, "completed");
    let shown = x402::pay_once(&shop, &dev.ledger, &agent);
    let header = x402::show_at_address(&shop, &dev.ledger, &agent);
    let path = format!("/api/public/merchants/{}/webhook-secret", shop.id);
    let rotated = shop.post(&path, &json!({ "graceHours": 1 })).send();
    let rotated = rotated.json()["webhookSecret"].as_str().expect("a secret").to_owned();
    let wrong = "sk_live_wrongwrongwrongwrongwrongwrongwrong";
    assert_eq!(dev.api.get("/api/public/payments").bearer(wrong).send().status, 401);
    dev.api.get("/api/admin/merchants").bearer(dev.admin_key()).send().ok(200);
    let login = dev.api.request("POST", "/dashboard/login").header("content-type", "application/x-www-form-urlencoded");
    login.body(format!("apiKey={}", shop.key)).send();
    receiver.hook(1);
    line(&dev.process, &[&paid.id, "completed"]);
    let signature = shown["payload"]["signedTransaction"]["signatures"][0].as_str().expect("a signature").to_owned();
    let secret_of = |text: &str| text.rsplit('-').next().unwrap_or_default().to_owned();
    let log = dev.process.log();
    assert!(lines(&dev.process).len() > 20, "the log is not as loud as it should be");
    for (what, secret) in [
        ("the API key", shop.key.clone()),
        ("the webhook secret", shop.secret.clone()),
        ("the new webhook secret", rotated),
        ("the admin's key", dev.admin_key().to_owned()),
        ("a wrong key", wrong.to_owned()),
        ("the agent's key", agent.key.clone()),
        ("alice's key", dev.demo_account("alice").key),
        ("a signature", signature),
        ("a payment header", header),
        ("the secret half of a checkout address", secret_of(&paid.slug)),
        ("any webhook secret", "whsec_".to_owned()),
    ] {
        assert!(secret.len() >= 6, "{what} is no secret: {secret}");
        assert!(!log.contains(&secret), "{what} is in the log");
    }
}

#[track_caller]
fn named(process: &Process, words: &[&str], name: &str) {
    let line = line(process, words);
    assert_eq!(line["span"]["request.id"], name, "{line}");
}

fn a_request_id_is_logged_from_the_facade_to_the_actor() {
    let dev = Dev::with(&["--set=log.level=debug", "--set=log.format=json"]);
    let shop = dev.shop();
    let payment = shop.open_payment();
    let path = format!("/api/public/payments/{}/cancel", payment.id);
    let response = dev.api.request("POST", &path).bearer(&shop.key).header("x-request-id", "order-4711").send();
    assert_eq!((response.status, response.header("x-request-id")), (200, Some("order-4711")));
    named(&dev.process, &[&payment.id, "cancellation"], "order-4711");
    let edge = line(&dev.process, &["order-4711", "/cancel", "\"status\":200"]);
    assert_eq!(edge["request.id"], "order-4711", "{edge}");
}

fn two_processes_log_the_same_request_id() {
    let folder = folder("logs");
    let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let split = Split::start(&folder.join("data"), &ledger.ledger);
    let commit = split.api.get("/api/health").send().ok(200)["commit"].as_str().expect("a commit").to_owned();
    for process in [&split.engine, &split.facade] {
        assert!(process.log().contains(&commit), "{commit} is not in\n{}", process.log());
    }
    let shop = Shop::open(&split.api, &ledger.ledger);
    let payment = shop.open_payment();
    let path = format!("/api/public/payments/{}/cancel", payment.id);
    let response = split.api.request("POST", &path).bearer(&shop.key).header("x-request-id", "order-4712").send();
    assert_eq!((response.status, response.header("x-request-id")), (200, Some("order-4712")));
    until("the engine's line", || {
        let log = split.engine.log();
        log.lines().any(|line| line.contains("order-4712") && line.contains(&payment.id)).then_some(())
    });
}

fn every_relevant_transfer_is_logged_with_its_reason() {
    let dev = Dev::with(&["--set=log.level=info", "--set=log.format=json"]);
    let (shop, other, alice) = (dev.shop(), dev.shop(), dev.demo_account("alice"));
    let payment = shop.open_payment();
    let pay = |to: &str, amount: &str, memo: &str| dev.ledger.transfer(&alice, to, amount, memo);
    let account = shop.account.name.as_str();
    let sent = [
        (pay(account, "1.500 HIVE", &payment.memo), "wrong_currency"),
        (pay(account, "0.001 HBD", "pos-pay_nobody"), "no_session"),
        (pay(&other.account.name, "0.002 HBD", &payment.memo), "other_account"),
        (pay("bob", "0.003 HBD", &payment.memo), "other_account"),
        (pay(account, "0.500 HBD", &payment.memo), "counted"),
        (pay(account, "1.000 HBD", &payment.memo), "counted"),
        (pay(account, "0.004 HBD", &payment.memo), "paid_again"),
    ];
    shop.until_status(&payment.id, "completed");
    for (tx_id, reason) in &sent {
        let report = line(&dev.process, &[tx_id, &format!("\"reason\":\"{reason}\""), "\"amount\""]);
        assert!(report["level"] == "INFO" && report["from"] == "alice", "{report}");
        if *reason != "no_session" {
            assert_eq!(report["payment.id"], payment.id.as_str(), "{report}");
        }
        if ["counted", "wrong_currency", "paid_again"].contains(reason) {
            assert_eq!(report["merchant.id"], shop.id.as_str(), "{report}");
        }
        let lines = lines(&dev.process).into_iter().filter(|line| line["tx_id"] == tx_id.as_str());
        let about_it = lines.filter(|line| line["reason"] == *reason).count();
        assert_eq!(about_it, 1, "one line for {tx_id}");
    }
    let done = line(&dev.process, &[&payment.id, "\"status\":\"completed\"", "paid_units"]);
    assert_eq!(done["merchant.id"], shop.id.as_str());
    assert_eq!(done["amount"], "1.500 HBD");
    assert!(sent[4..6].iter().any(|(counted, _)| done["tx_id"] == counted.as_str()), "{done}");
}
