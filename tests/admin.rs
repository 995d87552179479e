//! Admin features: the audit log, the payment inspector and exports.

use serde_json::{Value, json};

use crate::harness::{Dev, LedgerProcess, Process, Serve, Shop, folder, shared};

crate::tests!(
    the_audit_log_records_actor_action_and_ip,
    the_audit_log_is_for_admins_and_contains_no_secret,
    an_admin_reads_any_payment_with_its_timeline_which_is_audited,
    the_operator_reads_a_payment_with_the_engine_running_or_not,
    records_about_an_account_are_exported_with_the_engine_running_or_not,
    an_export_has_every_row_that_its_filter_matches,
    no_cell_of_an_export_is_a_formula,
    merchants_are_exported_by_their_filter,
    invalid_export_requests_are_rejected,
);

fn audit(dev: &Dev, shop: &Shop, more: &str) -> Value {
    dev.api.get(&format!("/api/admin/audit?merchantId={}{more}", shop.id)).bearer(dev.admin_key()).send().ok(200)
}

fn the_audit_log_records_actor_action_and_ip() {
    let dev = shared();
    let shop = dev.shop();
    shop.update(&json!({ "name": "Blue Mugs", "webhookUrl": "http://127.0.0.1:9/hook?token=hush" })).ok(200);
    let payment = shop.open_payment();
    shop.cancelled(&payment.id);
    shop.cancelled(&payment.id);
    let rotate = format!("/api/public/merchants/{}/webhook-secret", shop.id);
    shop.post(&rotate, &json!({})).send().ok(200);
    let switch = format!("/api/admin/merchants/{}/active", shop.id);
    dev.api.post(&switch, &json!({ "isActive": false })).bearer(dev.admin_key()).send().ok(200);

    let log = audit(dev, &shop, "");
    let entries = log["data"].as_array().expect("entries").clone();
    let actions: Vec<&str> = entries.iter().filter_map(|entry| entry["action"].as_str()).collect();
    let wanted = [
        "merchant_deactivated",
        "webhook_secret_rotated",
        "payment_cancel_requested",
        "merchant_updated",
        "merchant_registered",
    ];
    assert_eq!(actions, wanted, "{log}");
    let admin = dev.api.get("/api/public/merchants/me").bearer(dev.admin_key()).send().ok(200)["id"].clone();
    assert_eq!(entries[0]["actor"]["merchantId"], admin);
    assert_eq!(entries[0]["changes"], json!([{ "field": "isActive", "before": "true", "after": "false" }]));
    assert_eq!(entries[2]["subject"], payment.id.as_str());
    assert_eq!(entries[3]["actor"]["merchantId"], shop.id.as_str());
    assert!(entries[3]["actor"]["keyId"].as_str().is_some_and(|id| id.starts_with("key_")));
    assert_eq!(entries[3]["actor"]["ip"], "127.0.0.1");
    let name = &entries[3]["changes"][0];
    assert_eq!((&name["field"], &name["after"]), (&json!("name"), &json!("Blue Mugs")));
    assert_eq!(entries[4]["actor"]["merchantId"], Value::Null, "who registers has no key yet");

    let first = audit(dev, &shop, "&limit=2");
    assert_eq!(first["data"].as_array().map(Vec::len), Some(2));
    let cursor = first["nextCursor"].as_str().expect("more").to_owned();
    let rest = audit(dev, &shop, &format!("&cursor={cursor}"));
    assert_eq!(rest["data"].as_array().map(Vec::len), Some(3));
    assert_eq!(rest["nextCursor"], Value::Null);
}

fn the_audit_log_is_for_admins_and_contains_no_secret() {
    let dev = shared();
    let shop = dev.shop();
    shop.update(&json!({ "webhookUrl": "http://127.0.0.1:9/hook?token=hush" })).ok(200);
    let made = shop.post(&format!("/api/public/merchants/{}/webhook-secret", shop.id), &json!({})).send().ok(200);
    let log = audit(dev, &shop, "").to_string();
    for secret in [&shop.key, &shop.secret, made["webhookSecret"].as_str().expect("a secret"), "hush", "whsec_"] {
        assert!(!log.contains(secret), "{log}");
    }
    shop.get("/api/admin/audit").send().refused(403, "admin_required");
    dev.api.get("/api/admin/audit").send().refused(401, "invalid_api_key");
    let request = |query: &str| dev.api.get(&format!("/api/admin/audit?{query}")).bearer(dev.admin_key()).send();
    request("limit=101").wrong(&["limit"]);
    request("cursor=x").wrong(&["cursor"]);
    request("merchantId=x").wrong(&["merchantId"]);
}

fn an_admin_reads_any_payment_with_its_timeline_which_is_audited() {
    let dev = shared();
    let (shop, other, alice) = (dev.shop(), dev.shop(), dev.demo_account("alice"));
    let payment = shop.open_payment();
    let wrong = dev.ledger.transfer(&alice, &shop.account.name, "1.500 HIVE", &payment.memo);
    let right = dev.ledger.transfer(&alice, &shop.account.name, "1.500 HBD", &payment.memo);
    shop.until_status(&payment.id, "completed");
    let path = format!("/api/admin/payments/{}", payment.id);
    let read = dev.api.get(&path).bearer(dev.admin_key()).send().ok(200);
    assert_eq!(read["payment"], shop.payment(&payment.id), "the record is the merchant's own");
    let events: Vec<&str> =
        read["timeline"].as_array().expect("a list").iter().filter_map(|step| step["event"].as_str()).collect();
    assert_eq!(events[0], "created", "{read}");
    let about = |words: &[&str]| events.iter().any(|event| words.iter().all(|word| event.contains(word)));
    assert!(about(&["1.500 HIVE from @alice", "wrong_currency", &wrong]), "{read}");
    assert!(about(&["1.500 HBD from @alice", "counted", "irreversible", &right]), "{read}");
    assert!(about(&["completed (paid)"]), "{read}");
    let log = audit(dev, &shop, "&limit=1");
    assert_eq!(log["data"][0]["action"], "payment_read", "{log}");
    assert_eq!(log["data"][0]["subject"], payment.id.as_str());
    assert!(log["data"][0]["actor"]["keyId"].as_str().is_some_and(|key| key.starts_with("key_")), "{log}");

    let before = audit(dev, &shop, "")["data"].as_array().map(Vec::len);
    for key in [&shop.key, &other.key] {
        dev.api.get(&path).bearer(key).send().refused(403, "admin_required");
    }
    dev.api.get(&path).send().refused(401, "invalid_api_key");
    let unknown = format!("/api/admin/payments/pay_{}", "0".repeat(26));
    dev.api.get(&unknown).bearer(dev.admin_key()).send().refused(404, "not_found");
    dev.api.get("/api/admin/payments/x").bearer(dev.admin_key()).send().refused(404, "not_found");
    assert_eq!(audit(dev, &shop, "")["data"].as_array().map(Vec::len), before, "a refused read is no read");
}

fn the_operator_reads_a_payment_with_the_engine_running_or_not() {
    let folder = folder("inspect");
    let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let data = folder.join("data");
    let mut serve = Serve::start(&data, &ledger.ledger);
    let shop = Shop::open(&serve.api, &ledger.ledger);
    let payment = shop.open_payment();
    let flags = [format!("--data={}", data.display()), format!("--node={}", ledger.ledger.rpc.base)];
    let inspect = |id: &str, more: &[&str]| {
        let fixed = ["admin", "payment", id, &flags[0], &flags[1], "--set=network=dev"];
        Process::start(&fixed.iter().chain(more).copied().collect::<Vec<_>>()).finish()
    };
    let read = |more: &[&str]| {
        let ended = inspect(&payment.id, more);
        assert!(ended.success, "{ended:?}");
        ended.stdout
    };
    let shown = read(&[]);
    for words in [payment.id.as_str(), "pending", "1.500 HBD", &shop.id, "created", "expires"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let json: Value = serde_json::from_str(&read(&["--json"])).expect("a line of JSON");
    assert_eq!((&json["payment"]["id"], &json["timeline"][0]["event"]), (&json!(payment.id), &json!("created")));
    let missing = inspect("pay_nobody", &[]);
    assert!(!missing.success && missing.stderr.contains("no such payment"), "{missing:?}");
    assert!(serve.process.stop().success());
    assert!(read(&[]).contains("pending"), "with no engine running");
    let export = Process::start(&["export", &flags[0]]).finish();
    let reads = export.stdout.lines().filter(|line| line.contains("payment_read") && line.contains(&payment.id));
    assert_eq!(reads.count(), 3, "{}", export.stdout);
}

fn records_about_an_account_are_exported_with_the_engine_running_or_not() {
    let folder = folder("export-account");
    let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let data = folder.join("data");
    let mut serve = Serve::start(&data, &ledger.ledger);
    let shop = Shop::open(&serve.api, &ledger.ledger);
    let (alice, bob) = (ledger.demo_account("alice"), ledger.demo_account("bob"));
    let (paid, named, other) = (
        shop.open_payment(),
        shop.open_with(&json!({ "amount": "1500", "currency": "HBD", "description": "Mug", "metadata": { "customer": "@alice, Ada" } })),
        shop.open_with(&json!({ "amount": "1500", "currency": "HBD", "description": "Mug", "metadata": { "customer": "xalice" } })),
    );
    ledger.ledger.transfer(&alice, &shop.account.name, "1.500 HBD", &paid.memo);
    ledger.ledger.transfer(&alice, &shop.account.name, "0.001 HBD", "hello");
    ledger.ledger.transfer(&bob, &shop.account.name, "1.500 HBD", &other.memo);
    shop.until_status(&paid.id, "completed");
    shop.until_status(&other.id, "completed");
    let flags = [format!("--data={}", data.display()), format!("--node={}", ledger.ledger.rpc.base)];
    let run = |account: &str| {
        Process::start(&["admin", "export-account", account, &flags[0], &flags[1], "--set=network=dev"]).finish()
    };
    let export = || -> Vec<Value> {
        let ended = run("alice");
        assert!(ended.success, "{ended:?}");
        ended.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    };
    let of = |records: &[Value], kind: &str, member: &str| -> Vec<String> {
        let records = records.iter().filter(|record| record["record"] == kind);
        records.map(|record| record[member].as_str().expect("a text").to_owned()).collect()
    };
    let records = export();
    let mut payments = of(&records, "payment", "id");
    payments.sort();
    let mut wanted = [paid.id.clone(), named.id.clone()];
    wanted.sort();
    assert_eq!(payments, wanted, "it paid one, and another names it: {records:?}");
    assert_eq!(of(&records, "transfer", "payment"), [paid.id.as_str()]);
    assert_eq!(of(&records, "unmatched", "memo"), ["hello"]);
    let refused = run("No");
    assert!(!refused.success && refused.stderr.contains("hiveAccount"), "{refused:?}");
    assert!(serve.process.stop().success());
    let reported = of(&export(), "audit", "action");
    assert_eq!(
        reported,
        ["account_exported", "account_exported"],
        "the first export and this one, with no engine running"
    );
}

fn lines(text: &str) -> Vec<&str> {
    text.split("\r\n").filter(|line| !line.is_empty()).collect()
}

fn an_export_has_every_row_that_its_filter_matches() {
    let shop = shared().shop();
    let ids: Vec<String> = (0..230).map(|_| shop.open_payment().id).collect();
    for id in &ids[..5] {
        shop.cancelled(id);
    }
    let response = shop.get("/api/public/payments/export").send();
    assert_eq!(response.status, 200);
    assert!(response.header("content-type").is_some_and(|t| t.starts_with("text/csv")), "{:?}", response.headers);
    assert_eq!(response.header("content-disposition"), Some("attachment; filename=\"payments.csv\""));
    let text = response.text();
    let rows = lines(&text);
    assert!(rows[0].starts_with("id,status,createdAt,"), "{}", rows[0]);
    let found: Vec<&str> = rows[1..].iter().filter_map(|row| row.split(',').next()).collect();
    // Of two payments created within a millisecond either may be first.
    let mut newest_first: Vec<&str> = ids.iter().map(String::as_str).collect();
    newest_first.sort_by(|left, right| right.cmp(left));
    assert_eq!(found, newest_first);

    let json = shop.get("/api/public/payments/export?format=json").send().ok(200);
    let rows = json.as_array().expect("an array");
    assert_eq!(rows.len(), 230);
    assert_eq!(rows[0], shop.payment(newest_first[0]), "a row is the record");
    let some = shop.get("/api/public/payments/export?format=json&status=user_cancelled").send().ok(200);
    assert_eq!(some.as_array().map(Vec::len), Some(5));
    let none = shop.get("/api/public/payments/export?format=json&status=failed").send().ok(200);
    assert_eq!(none, json!([]));
    let other = shared().shop();
    assert_eq!(lines(&other.get("/api/public/payments/export").send().text()).len(), 1, "nothing of others");
}

fn no_cell_of_an_export_is_a_formula() {
    let shop = shared().shop();
    for description in ["=HYPERLINK(\"http://evil.example\")", "+1", "-1", "@x", "a, \"b\""] {
        let body = json!({ "amount": "1", "currency": "HBD", "description": description, "metadata": { "=k": "=v" } });
        shop.open_with(&body);
    }
    let text = shop.get("/api/public/payments/export?bom=true").send().text();
    assert!(text.starts_with('\u{feff}'));
    for cell in ["\"'=HYPERLINK(\"\"http://evil.example\"\")\"", ",'+1,", ",'-1,", ",'@x,", ",\"a, \"\"b\"\"\","] {
        assert!(text.contains(cell), "{cell}\n{text}");
    }
}

fn merchants_are_exported_by_their_filter() {
    let dev = shared();
    let shop = dev.shop();
    let request =
        |query: &str| dev.api.get(&format!("/api/admin/merchants/export?{query}")).bearer(dev.admin_key()).send();
    let found = request(&format!("format=json&query={}", shop.id)).ok(200);
    assert_eq!(found.as_array().map(Vec::len), Some(1));
    assert_eq!(found[0]["hiveAccount"], shop.account.name.as_str());
    let text = request(&format!("query={}", shop.id)).text();
    assert_eq!(lines(&text).len(), 2, "{text}");
    assert!(text.contains(&shop.account.name) && !text.contains(&shop.key));
    let total =
        dev.api.get("/api/admin/merchants").bearer(dev.admin_key()).send().ok(200)["pagination"]["total"].clone();
    let all = request("format=json").ok(200);
    assert!(all.as_array().map(Vec::len) >= total.as_u64().and_then(|n| usize::try_from(n).ok()), "all of {total}");
    assert!(
        request("active=false&format=json")
            .ok(200)
            .as_array()
            .is_some_and(|rows| rows.iter().all(|r| r["isActive"] == false))
    );
}

fn invalid_export_requests_are_rejected() {
    let shop = shared().shop();
    shop.get("/api/public/payments/export?format=xml").send().wrong(&["format"]);
    shop.get("/api/public/payments/export?status=paid").send().wrong(&["status"]);
    shop.get("/api/admin/merchants/export").send().refused(403, "admin_required");
    shop.api.get("/api/public/payments/export").send().refused(401, "invalid_api_key");
}
