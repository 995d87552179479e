//! An agent's wallet: budgets, lists, approvals, keys, and one charge for a request however often it is repeated.

pub(crate) mod agent;
mod kills;
mod offers;
pub(crate) mod server;

use std::{
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::harness::{Dev, Opened, Shop, background, folder, shared};
use agent::{Agent, run};

crate::tests!(
    a_payment_is_recorded_and_counted,
    fifty_repeats_of_a_request_are_charged_once,
    a_budget_is_never_exceeded_by_the_last_unit,
    a_payees_limit_and_the_lists_refuse_before_anything_is_signed,
    a_payment_above_the_threshold_waits_for_an_operator,
    an_operator_approves_while_the_payment_waits,
    the_key_comes_from_a_private_file_or_a_descriptor,
    an_invalid_policy_is_refused_and_names_the_setting,
    a_ledger_clock_ahead_of_the_system_clock_frees_no_budget,
    an_expired_transaction_releases_its_budget,
    a_policy_is_created_once_and_readable_by_its_owner_only,
    another_idempotency_key_is_another_purchase,
);

/// Returns every test of this module.
pub(crate) fn all() -> Vec<libtest_mimic::Trial> {
    [tests(), offers::tests(), kills::tests()].into_iter().flatten().collect()
}

fn url(shop: &Shop, payment: &Opened) -> String {
    format!("{}/for/{}", shop.api.base, payment.slug)
}

fn a_payment_is_recorded_and_counted() {
    let dev = shared();
    let (shop, agent) = (dev.shop(), Agent::new(dev, "[limits]\npayment = \"2.000 HBD\"\nday = \"5.000 HBD\"\n"));
    let payment = shop.open_payment();
    let shown = agent.pay(&url(&shop, &payment), &["--dry-run"]);
    assert_eq!((shown.code, &shown.json["status"]), (Some(0), &json!("offer")), "{}", shown.json);
    assert_eq!(shown.json["policy"], json!({ "permitted": true }));
    assert_eq!(agent.wallet(&["history"]).json, json!({ "payments": [] }), "a dry run reserves nothing");

    let paid = agent.pay(&url(&shop, &payment), &[]);
    assert_eq!((paid.code, &paid.json["status"]), (Some(0), &json!("paid")), "{} {}", paid.json, paid.stderr);
    assert_eq!((&paid.json["state"], &paid.json["payer"]), (&json!("paid"), &json!(agent.payer.name)));
    assert!(paid.json.get("payment").is_none(), "a bearer token is not printed: {}", paid.json);
    let history = agent.wallet(&["history"]).json;
    let entry = &history["payments"][0];
    assert_eq!((&entry["state"], &entry["amount"]), (&json!("paid"), &json!("1.500 HBD")), "{history}");
    assert_eq!((&entry["txId"], &entry["payTo"]), (&paid.json["txId"], &json!(shop.account.name)));
    let limits = agent.wallet(&["limits"]).json;
    let row = |per: &str| limits["limits"].as_array().expect("rows").iter().find(|row| row["per"] == per).cloned();
    assert_eq!(row("day").expect("a day")["remaining"], "3.500 HBD", "{limits}");
    assert_eq!(row("payment").expect("a payment")["used"], "0.000 HBD", "{limits}");
    let status = agent.wallet(&["status"]).json;
    assert_eq!((&status["open"], &status["account"]), (&json!([]), &json!(agent.payer.name)), "{status}");
    let receipt = agent.wallet(&["show", &entry["id"].to_string()]).json;
    assert_eq!((&receipt["receipt"]["success"], &receipt["response"]["status"]), (&json!(true), &json!("completed")));
    assert!(!std::fs::read_to_string(agent.directory.join("wallet.toml")).expect("read").contains(&agent.payer.key));
    let mode = |name| std::fs::metadata(agent.directory.join(name)).expect("a file").permissions().mode() & 0o777;
    assert_eq!((mode("wallet.redb"), mode("wallet.lock")), (0o600, 0o600), "it holds bearer tokens");
}

fn fifty_repeats_of_a_request_are_charged_once() {
    let dev = shared();
    let (shop, agent) = (dev.shop(), Agent::new(dev, "[limits]\nday = \"1.500 HBD\"\n"));
    let payment = shop.open_payment();
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..5 {
        let runs: Vec<_> = (0..10)
            .map(|_| {
                let command = agent.pay_command(&url(&shop, &payment), &["--json"]);
                background(move || run(command))
            })
            .collect();
        for ended in runs {
            let ended = ended.join().expect("it ends");
            assert_eq!((ended.code, &ended.json["status"]), (Some(0), &json!("paid")), "{}", ended.json);
            ids.insert(ended.json["txId"].as_str().expect("a transaction").to_owned());
        }
    }
    assert_eq!(ids.len(), 1, "one transaction");
    shop.until_status(&payment.id, "completed");
    assert_eq!((agent.charged(), agent.used()), (1_500, 1_500));
    let again = agent.pay(&url(&shop, &payment), &[]);
    assert_eq!((&again.json["replayed"], &again.json["response"]["sessionId"]), (&json!(true), &json!(payment.id)));
}

fn a_budget_is_never_exceeded_by_the_last_unit() {
    let dev = shared();
    let (shop, agent) = (dev.shop(), Agent::new(dev, "[limits]\nday = \"3.000 HBD\"\n"));
    let order = |units: &str| shop.open_with(&json!({ "amount": units, "currency": "HBD", "description": "A mug" }));
    assert_eq!(agent.pay(&url(&shop, &order("1500")), &[]).code, Some(0));
    let over = agent.pay(&url(&shop, &order("1501")), &[]);
    assert_eq!((over.code, &over.json["reason"]), (Some(10), &json!("above_day_limit")), "{}", over.json);
    assert_eq!((&over.json["used"], &over.json["limit"]), (&json!("1.500 HBD"), &json!("3.000 HBD")));
    assert!(over.json["availableAt"].is_string() && over.json.get("txId").is_none(), "{}", over.json);
    assert_eq!(agent.pay(&url(&shop, &order("1500")), &[]).code, Some(0));
    let least = agent.pay(&url(&shop, &order("1")), &[]);
    assert_eq!((least.code, &least.json["reason"]), (Some(10), &json!("above_day_limit")), "{}", least.json);
    assert_eq!((agent.charged(), agent.used()), (3_000, 3_000));
    let hive = shop.open_with(&json!({ "amount": "1", "currency": "HIVE", "description": "A mug" }));
    let refused = agent.pay(&url(&shop, &hive), &[]);
    assert_eq!((refused.code, &refused.json["reason"]), (Some(10), &json!("currency_not_allowed")), "{}", refused.json);
}

fn a_payees_limit_and_the_lists_refuse_before_anything_is_signed() {
    let dev = shared();
    let (shop, agent) = (dev.shop(), Agent::new(dev, ""));
    let payment = shop.open_payment();
    let cases = [
        (format!("[payees.\"{}\"]\npayment = \"1.499 HBD\"", shop.account.name), "above_payment_limit"),
        (format!("[accounts]\ndeny = [\"{}\"]", shop.account.name), "account_not_allowed"),
        ("[accounts]\nallow = [\"some.body\"]".to_owned(), "account_not_allowed"),
        ("[hosts]\nallow = [\"pay.example\"]".to_owned(), "host_not_allowed"),
        ("[hosts]\ndeny = [\"127.0.0.1\"]".to_owned(), "host_not_allowed"),
    ];
    for (section, reason) in cases {
        agent.set_policy(&format!("[limits]\nday = \"9.000 HBD\"\n{section}\n"));
        let refused = agent.pay(&url(&shop, &payment), &[]);
        assert_eq!((refused.code, &refused.json["reason"]), (Some(10), &json!(reason)), "{}", refused.json);
        assert_eq!(refused.json.get("txId"), None, "{}", refused.json);
    }
    let above = agent.pay(&url(&shop, &payment), &["--max", "1.499 HBD"]);
    assert_eq!(above.json["reason"], "host_not_allowed", "the last policy is in force: {}", above.json);
    agent.set_policy("[limits]\nday = \"9.000 HBD\"\n");
    let above = agent.pay(&url(&shop, &payment), &["--max", "1.499 HBD"]);
    assert_eq!((above.code, &above.json["reason"]), (Some(10), &json!("above_maximum")), "{}", above.json);
    assert_eq!((agent.charged(), agent.used()), (0, 0));
    assert_eq!(agent.pay(&url(&shop, &payment), &["--max", "1.500 HBD"]).code, Some(0));
}

fn a_payment_above_the_threshold_waits_for_an_operator() {
    let dev = shared();
    let policy = "[limits]\nday = \"9.000 HBD\"\n[approval]\nabove = \"1.499 HBD\"\n";
    let (shop, agent) = (dev.shop(), Agent::new(dev, policy));
    let payment = shop.open_payment();
    let held = agent.pay(&url(&shop, &payment), &[]);
    assert_eq!((held.code, &held.json["reason"]), (Some(10), &json!("approval_needed")), "{}", held.json);
    let id = held.json["approvalId"].to_string();
    assert!(held.json["message"].as_str().expect("a text").contains(&format!("hivetill wallet approve {id}")));
    assert_eq!(agent.pay(&url(&shop, &payment), &[]).json["approvalId"].to_string(), id, "it is asked for once");
    let status = agent.wallet(&["status"]).json;
    assert_eq!((status["awaitingApproval"][0]["id"].to_string(), agent.used()), (id.clone(), 0), "{status}");
    assert_eq!(agent.wallet(&["approve", &id]).json["state"], "approved");
    let paid = agent.pay(&url(&shop, &payment), &[]);
    assert_eq!((paid.code, paid.json["entry"].to_string()), (Some(0), id.clone()), "{}", paid.json);
    assert_eq!(agent.wallet(&["approve", &id]).code, Some(1), "a paid payment is decided no more");

    let other = shop.open_payment();
    let id = agent.pay(&url(&shop, &other), &[]).json["approvalId"].to_string();
    assert_eq!(agent.wallet(&["deny", &id]).json["state"], "denied");
    let denied = agent.pay(&url(&shop, &other), &[]);
    assert_eq!((denied.code, &denied.json["reason"]), (Some(10), &json!("approval_denied")), "{}", denied.json);
    assert_eq!(agent.wallet(&["approve", "99"]).code, Some(1));
    assert_eq!((agent.charged(), agent.used()), (1_500, 1_500));
}

fn an_operator_approves_while_the_payment_waits() {
    let dev = shared();
    let policy = "[limits]\nday = \"9.000 HBD\"\n[approval]\nabove = \"1.000 HBD\"\nwait_seconds = 60\n";
    let (shop, agent) = (dev.shop(), Agent::new(dev, policy));
    let payment = shop.open_payment();
    let command = agent.pay_command(&url(&shop, &payment), &[]);
    let paying = background(move || run(command));
    let id = crate::harness::until("a payment that awaits approval", || {
        let status = agent.wallet(&["status"]).json;
        status["awaitingApproval"][0]["id"].as_u64()
    });
    agent.wallet(&["approve", &id.to_string()]);
    let paid = paying.join().expect("it ends");
    assert_eq!((paid.code, &paid.json["status"]), (Some(0), &json!("paid")), "{} {}", paid.json, paid.stderr);
    assert!(paid.stderr.contains(&format!("waiting for `hivetill wallet approve {id}`")), "{}", paid.stderr);
}

fn the_key_comes_from_a_private_file_or_a_descriptor() {
    let dev = shared();
    let (shop, agent) = (dev.shop(), Agent::new(dev, "[limits]\nday = \"9.000 HBD\"\n[key]\nfile = \"active.key\"\n"));
    let path = agent.directory.join("active.key");
    std::fs::write(&path, format!("{}\n", agent.payer.key)).expect("the key is written");
    let pay = |mode, more: &[&str]| {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("a mode");
        let mut command = agent.pay_command(&url(&shop, &shop.open_payment()), more);
        command.env_remove("HIVETILL_KEY");
        run(command)
    };
    let exposed = pay(0o644, &[]);
    assert_eq!((exposed.code, &exposed.json["reason"]), (Some(2), &json!("exposed_key_file")), "{}", exposed.json);
    assert!(exposed.json["message"].as_str().expect("a text").contains("chmod 600"), "{}", exposed.json);
    assert_eq!(agent.used(), 0, "without a key nothing is reserved");
    assert_eq!(pay(0o600, &[]).code, Some(0));

    let shell = format!(
        "exec {} pay {} --wallet {} --key-fd 3 3<{}",
        env!("CARGO_BIN_EXE_hivetill"),
        url(&shop, &shop.open_payment()),
        agent.directory.display(),
        path.display()
    );
    let mut command = Command::new("sh");
    command.args(["-c", &shell]).env_clear().stdin(Stdio::null());
    let by_descriptor = run(command);
    assert_eq!(by_descriptor.code, Some(0), "{} {}", by_descriptor.json, by_descriptor.stderr);
    assert_eq!(pay(0o600, &["--key-fd", "77"]).json["reason"], "bad_key");
    for report in [exposed.json.to_string(), exposed.stderr, by_descriptor.stderr] {
        assert!(!report.contains(&agent.payer.key));
    }
}

fn an_invalid_policy_is_refused_and_names_the_setting() {
    let dev = shared();
    let agent = Agent::new(dev, "[limits]\ndaily = \"9.000 HBD\"\n");
    let refused = agent.pay("http://127.0.0.1:1/", &[]);
    assert_eq!((refused.code, &refused.json["reason"]), (Some(2), &json!("bad_policy")), "{}", refused.json);
    assert!(
        refused.json["message"]
            .as_str()
            .expect("a text")
            .contains("there is no key `limits.daily`: did you mean `limits.day`?")
    );
    let status = agent.wallet(&["status"]);
    assert_eq!(status.code, Some(3));
    assert!(status.stderr.contains("did you mean `limits.day`?"), "{}", status.stderr);
    agent.set_policy("[limits]\nday = \"9.000 HBD\"\n");
    let path = agent.directory.join("wallet.toml");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).expect("a mode");
    let open = agent.pay("http://127.0.0.1:1/", &[]);
    assert_eq!(open.json["reason"], "bad_policy");
    assert!(open.json["message"].as_str().expect("a text").contains("chmod go-w"), "{}", open.json);
    std::fs::remove_file(&path).expect("removed");
    assert_eq!(agent.pay("http://127.0.0.1:1/", &[]).json["reason"], "no_wallet");
}

fn a_ledger_clock_ahead_of_the_system_clock_frees_no_budget() {
    let dev = Dev::start();
    let (shop, agent) = (dev.shop(), Agent::new(&dev, "[limits]\nhour = \"2.000 HBD\"\nday = \"2.000 HBD\"\n"));
    assert_eq!(agent.pay(&url(&shop, &shop.open_payment()), &[]).code, Some(0));
    // The head of the chain passes midnight, and the system clock does not.
    dev.ledger.advance(25 * 3_600);
    dev.until_scanned();
    let payment = shop
        .open_with(&json!({ "amount": "501", "currency": "HBD", "description": "A mug", "expiresInSeconds": 86_400 }));
    let refused = agent.pay(&url(&shop, &payment), &[]);
    assert_eq!(refused.code, Some(10), "{} {}", refused.json, refused.stderr);
    assert_eq!(refused.json["reason"], "above_hour_limit", "{}", refused.json);
    assert_eq!((agent.charged(), agent.used()), (1_500, 1_500));
}

fn an_expired_transaction_releases_its_budget() {
    let dev = Dev::start();
    let (shop, agent) = (dev.shop(), Agent::new(&dev, "[limits]\nday = \"1.500 HBD\"\n"));
    let payment = shop.open_payment();
    let mut command = agent.pay_command(&url(&shop, &payment), &["--expires-in", "15"]);
    command.env("HIVETILL_FAILPOINT", "signed");
    assert_eq!(run(command).signal, Some(9));
    let status = agent.wallet(&["status"]).json;
    assert_eq!((&status["open"][0]["state"], agent.used(), agent.charged()), (&json!("signed"), 1_500, 0), "{status}");
    let other = agent.pay(&url(&shop, &shop.open_payment()), &[]);
    assert_eq!(other.json["reason"], "above_day_limit", "what may still happen counts: {}", other.json);
    let released = crate::harness::until("the amount to be released", || {
        let changed = agent.wallet(&["reconcile"]).json;
        changed["changed"].as_array().filter(|changed| !changed.is_empty()).cloned()
    });
    assert_eq!((&released[0]["state"], agent.used()), (&json!("released"), 0), "{released:?}");
    let paid = agent.pay(&url(&shop, &payment), &[]);
    assert_eq!((paid.code, &paid.json["entry"]), (Some(0), &json!(2)), "a new transaction: {}", paid.json);
    assert_eq!((agent.charged(), agent.used()), (1_500, 1_500));
}

fn a_policy_is_created_once_and_readable_by_its_owner_only() {
    let directory = folder("wallets").join("agent");
    let init = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hivetill"));
        command.env_clear().args(["wallet", "--dir", directory.to_str().expect("a path"), "--json", "init"]);
        command.args(["--account", "agent.demo", "--payment", "0.100 HBD", "--day", "1.000 HBD"]);
        run(command)
    };
    assert_eq!(init().code, Some(0));
    let mode = |path: &std::path::Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(&directory), mode(&directory.join("wallet.toml"))), (0o700, 0o600));
    assert_eq!(init().code, Some(1), "it is not replaced");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hivetill"));
    command.env_clear().env("HIVETILL_WALLET", &directory).args(["wallet", "limits", "--json"]);
    let limits = run(command).json;
    let rows: Vec<&Value> = limits["limits"].as_array().expect("rows").iter().map(|row| &row["limit"]).collect();
    assert_eq!(rows, ["0.100 HBD", "1.000 HBD"], "{limits}");
}

fn another_idempotency_key_is_another_purchase() {
    let dev = shared();
    let (shop, agent) = (dev.shop(), Agent::new(dev, "[limits]\nday = \"9.000 HBD\"\n"));
    let payment = shop.open_payment();
    assert_eq!(agent.pay(&url(&shop, &payment), &["--idempotency-key", "one"]).code, Some(0));
    let same = agent.pay(&url(&shop, &payment), &["--idempotency-key", "one"]);
    assert_eq!((same.code, &same.json["replayed"]), (Some(0), &json!(true)), "{}", same.json);
    let other = agent.pay(&url(&shop, &payment), &["--idempotency-key", "two"]);
    assert_eq!((other.code, &other.json["reason"]), (Some(11), &json!("session_completed")), "{}", other.json);
    assert_eq!((agent.charged(), agent.used()), (1_500, 1_500));
}
