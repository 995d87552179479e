//! Golden tests of the main requests: each request and its complete response, as a file in `tests/golden`. Ids, keys
//! and times are replaced by placeholders.
//!
//! `HIVETILL_UPDATE_GOLDEN=1 cargo test --workspace --test tests golden` updates the files.

mod script;

use serde_json::{Value, json};

use crate::harness::{Api, Ledger, Receiver, order, shared, until};
use script::Script;

crate::tests!(the_main_exchanges_match_their_golden_files);

fn the_main_exchanges_match_their_golden_files() {
    let dev = shared();
    for (name, text) in record(&dev.api, &dev.ledger, dev.admin_key()) {
        check(name, &text);
    }
}

/// Compares a transcript with its file, or updates the file.
#[track_caller]
fn check(name: &str, text: &str) {
    if is_update() {
        std::fs::write(path(name), text).expect("the file is written");
    }
    compare(name, text);
}

fn path(name: &str) -> String {
    format!("{}/../tests/golden/{name}.txt", env!("CARGO_MANIFEST_DIR"))
}

/// Compares a transcript with its file.
#[track_caller]
pub(crate) fn compare(name: &str, text: &str) {
    let written = std::fs::read_to_string(path(name)).unwrap_or_default();
    for (number, (was, is)) in written.lines().zip(text.lines()).enumerate() {
        assert_eq!(is, was, "tests/golden/{name}.txt, line {}", number + 1);
    }
    assert_eq!(text.lines().count(), written.lines().count(), "tests/golden/{name}.txt has another length");
}

#[expect(clippy::disallowed_methods, reason = "the one switch of the tests")]
pub(crate) fn is_update() -> bool {
    std::env::var("HIVETILL_UPDATE_GOLDEN").is_ok()
}

/// Runs the main requests on a gateway where these account names are unused.
pub(crate) fn record(api: &Api, ledger: &Ledger, admin_key: &str) -> Vec<(&'static str, String)> {
    let mut merchants = Script::new(api);
    let mut payments = Script::new(api);
    let mut refusals = Script::new(api);
    let receiver = Receiver::start();
    let account = |name: &str| {
        ledger.order("create_account", &json!({ "name": name, "balances": ["100.000 HBD"] }));
    };
    account("golden.shop");
    account("golden.moved");

    let body =
        json!({ "name": "The Golden Mug", "hiveAccount": "golden.shop", "iconUrl": "https://shop.example/i.png" });
    let made = merchants.exchange("Registers", "POST", "/api/public/merchants/register", None, Some(&body));
    let id = made["merchant"]["id"].as_str().expect("an id").to_owned();
    let bare_key = made["apiKey"].as_str().expect("a key").to_owned();
    let key = Some(bare_key.as_str());
    let own = format!("/api/public/merchants/{id}");
    until("the key's use to be noted", || {
        let me = api.get(&own).bearer(&bare_key).send().ok(200);
        me["apiKeyLastUsedAt"].is_string().then_some(())
    });
    merchants.exchange("Reads its record", "GET", "/api/public/merchants/me", key, None);
    let body = json!({ "webhookUrl": "https://shop.example/hook", "x402Enabled": false });
    merchants.exchange("Changes it", "POST", &own, key, Some(&body));
    let body = json!({ "webhookUrl": null, "hiveAccount": "golden.moved", "iconUrl": null });
    merchants.exchange("Changes it by the other method", "PUT", &own, key, Some(&body));
    merchants.exchange("Makes a new webhook secret", "POST", &format!("{own}/webhook-secret"), key, None);
    let body = json!({ "graceHours": 24 });
    merchants.exchange("The same with a grace", "POST", &format!("{own}/webhook-secret"), key, Some(&body));
    let list = format!("/api/admin/merchants?query={id}");
    merchants.exchange("An admin finds it", "GET", &list, Some(admin_key), None);
    let body = json!({ "isActive": false });
    let active = format!("/api/admin/merchants/{id}/active");
    merchants.exchange("An admin switches it off", "POST", &active, Some(admin_key), Some(&body));
    merchants.exchange("It creates no payment now", "POST", "/api/public/payments", key, Some(&order()));
    let status = format!("/api/admin/merchants/change-status?merchantId={id}");
    let body = json!({ "role": "user" });
    merchants.exchange("An admin switches it on again", "POST", &status, Some(admin_key), Some(&body));

    api.post(&own, &json!({ "webhookUrl": receiver.url(), "hiveAccount": "golden.shop" })).bearer(&bare_key).send();
    let body = json!({
        "amount": "1500", "currency": "HBD", "description": "A blue mug",
        "redirectUrl": "https://shop.example/thanks", "cancelUrl": "https://shop.example/basket",
        "metadata": { "orderId": "4711", "tags": ["mug", "blue"] },
    });
    let made = payments.exchange("Creates a payment", "POST", "/api/public/payments", key, Some(&body));
    let payment = format!("/api/public/payments/{}", made["id"].as_str().expect("an id"));
    let memo = format!("pos-{}", made["id"].as_str().expect("an id"));
    let slug = made["slug"].as_str().expect("a slug").to_owned();
    payments.exchange("Reads it", "GET", &payment, key, None);
    payments.exchange("Reads its state", "GET", &format!("{payment}/status"), key, None);
    payments.exchange("The checkout page requests the status", "GET", &format!("/for/{slug}/status"), None, None);
    let params = json!({ "from": "alice", "to": "golden.shop", "amount": "1.500 HBD", "memo": memo });
    ledger.order("transfer", &params);
    until("the payment to be completed", || {
        let status = api.get(&format!("{payment}/status")).bearer(&bare_key).send().ok(200);
        (status["status"] == "completed").then_some(())
    });
    payments.exchange("Reads it when it is paid", "GET", &payment, key, None);
    payments.exchange("Cancels too late", "POST", &format!("{payment}/cancel"), key, None);
    let body = json!({ "amount": "100000", "currency": "HIVE", "description": "Größe 42, é & 🐝" });
    let made = payments.exchange("Creates by the other path", "POST", "/api/public/payments/create", key, Some(&body));
    let other = format!("/api/public/payments/{}", made["id"].as_str().expect("an id"));
    payments.exchange("Cancels it", "POST", &format!("{other}/cancel"), key, None);
    until("the payment to be cancelled", || {
        let status = api.get(&format!("{other}/status")).bearer(&bare_key).send().ok(200);
        (status["status"] == "user_cancelled").then_some(())
    });
    payments.exchange("Lists both", "GET", "/api/public/payments?page=1&limit=20", key, None);
    payments.exchange("Reads the fee", "GET", "/api/public/payments/fee-rate", None, None);
    let hook = receiver.hook(0);
    payments.hear("The webhook of the first", &hook);

    let body = json!({ "amount": "01", "currency": "BTC", "description": "", "metadata": { "n": 1 } });
    let create = "/api/public/payments";
    refusals.exchange("Wrong fields", "POST", create, key, Some(&body));
    refusals.exchange("No object", "POST", create, key, Some(&Value::Null));
    refusals.exchange("No key", "POST", create, None, Some(&order()));
    refusals.exchange("No key of ours", "GET", create, Some("sk_live_none"), None);
    refusals.exchange("Not this merchant", "GET", "/api/public/merchants/mer_00000000000000000000000000", key, None);
    refusals.exchange("No admin", "GET", "/api/admin/merchants", key, None);
    refusals.exchange("No such payment", "GET", "/api/public/payments/pay_00000000000000000000000000", key, None);
    refusals.exchange("No such address", "GET", "/api/v1/payments", key, None);
    refusals.exchange("No such method", "DELETE", create, key, None);
    refusals.exchange("Too long a list", "GET", "/api/public/payments?limit=101&page=0", key, None);
    let body = json!({ "name": "x", "hiveAccount": "nobody-here" });
    refusals.exchange("No such account", "POST", "/api/public/merchants/register", None, Some(&body));
    let body = json!({ "name": "x", "hiveAccount": "null" });
    refusals.exchange("No account to be paid at", "POST", "/api/public/merchants/register", None, Some(&body));
    refusals.exchange("A program requests a paid checkout URL", "GET", &format!("/for/{slug}"), None, None);
    vec![("merchants", merchants.text()), ("payments", payments.text()), ("refusals", refusals.text())]
}
