//! The dashboard in a browser: login, test payments, settings, with a screenshot of every page.

use serde_json::json;

use super::chrome::Tab;
use crate::harness::{Dev, Receiver, Reply, shared};

super::journeys!(
    a_merchant_logs_in_makes_a_test_payment_and_sees_it_paid,
    a_wrong_key_shows_an_error_and_a_logout_ends_the_session,
    a_merchant_searches_payments_and_changes_settings,
    an_admin_manages_merchants,
    a_merchant_rolls_its_key_and_stays_logged_in,
    a_disabled_endpoint_is_shown_and_missed_events_are_sent_again,
    a_merchant_resolves_unmatched_transfers_and_exceptions,
    a_merchant_proves_its_account_with_keychain,
);

async fn log_in(tab: &Tab, base: &str, key: &str) {
    tab.goto(&format!("{base}/dashboard")).await;
    tab.fill("#key", key).await;
    tab.click("#login").await;
    tab.shows("Overview").await;
}

async fn a_merchant_logs_in_makes_a_test_payment_and_sees_it_paid() {
    let shop = shared().shop();
    let tab = Tab::open().await;
    log_in(&tab, &shop.api.base, &shop.key).await;
    tab.click("nav a[href='/dashboard/payments/new']").await;
    tab.shows("Redirect URL after payment").await;
    tab.look("dashboard-new").await;
    tab.fill("#amount", "2.5").await;
    tab.fill("#description", "A mug <b>for</b> two").await;
    tab.click("#create").await;
    tab.shows("Timeline").await;
    tab.look("dashboard-payment-open").await;
    tab.click("#pay-full").await;
    tab.shows("Transfer sent.").await;
    let id = tab.url().await.split('?').next().and_then(|url| url.rsplit('/').next()).expect("an id").to_owned();
    shop.until_status(&id, "completed");
    tab.goto(&format!("{}/dashboard/payments/{id}", shop.api.base)).await;
    tab.shows("irreversible").await;
    tab.look("dashboard-payment-completed").await;
    tab.goto(&format!("{}/dashboard", shop.api.base)).await;
    tab.shows("$2.50").await;
    tab.look("dashboard-overview").await;
    tab.is_clean();
}

async fn a_wrong_key_shows_an_error_and_a_logout_ends_the_session() {
    let shop = shared().shop();
    let tab = Tab::open().await;
    tab.goto(&format!("{}/dashboard", shop.api.base)).await;
    tab.look("dashboard-login").await;
    tab.fill("#key", "sk_live_nonsense").await;
    tab.click("#login").await;
    tab.shows("The API key is invalid.").await;
    tab.look("dashboard-login-refused").await;
    tab.forgive();
    log_in(&tab, &shop.api.base, &shop.key).await;
    assert_eq!(tab.eval::<String>("document.cookie").await, "", "no script can read the session");
    tab.click("#logout").await;
    tab.shows("Merchant dashboard").await;
    tab.goto(&format!("{}/dashboard/settings", shop.api.base)).await;
    tab.shows("Merchant dashboard").await;
    tab.is_clean();
}

async fn a_merchant_searches_payments_and_changes_settings() {
    let shop = shared().shop();
    let payments: Vec<_> = (0..22)
        .map(|n| shop.open_with(&json!({ "amount": format!("{}", 1_000 + n * 250), "currency": "HBD", "description": format!("Blue mug {n}") })))
        .collect();
    shop.cancelled(&payments[0].id);
    let tab = Tab::open().await;
    log_in(&tab, &shop.api.base, &shop.key).await;
    tab.click("nav a[href='/dashboard/payments']").await;
    tab.shows("22 payments").await;
    tab.look("dashboard-payments").await;
    tab.click("a[rel=next]").await;
    tab.shows("Blue mug 0").await;
    tab.fill("#min", "5.5").await;
    tab.click("#filter").await;
    tab.shows("4 payments").await;
    tab.fill("#query", "mug 21").await;
    tab.click("#filter").await;
    tab.shows("1 payments").await;
    tab.click("tbody a").await;
    tab.shows("Blue mug 21").await;
    tab.click("#cancel").await;
    tab.shows("Cancellation requested.").await;
    tab.click("nav a[href='/dashboard/settings']").await;
    tab.shows("Webhook secret").await;
    tab.look("dashboard-settings").await;
    tab.fill("#name", "Mugs & <i>more</i>").await;
    tab.fill("#webhookUrl", "ftp://a.example").await;
    tab.click("#save").await;
    tab.shows("webhookUrl must be").await;
    tab.look("dashboard-settings-refused").await;
    tab.forgive();
    tab.fill("#webhookUrl", "https://a.example/hook").await;
    tab.click("label[for='event-payment.exception']").await;
    tab.click("#save").await;
    tab.shows("Saved.").await;
    let record = shop.get("/api/public/merchants/me").send().ok(200);
    assert_eq!(record["webhookEvents"], json!(["payment.status_changed", "payment.exception"]));
    tab.shows("Mugs & <i>more</i>").await;
    tab.click("#rotate").await;
    tab.shows("whsec_").await;
    tab.look("dashboard-secret").await;
    tab.click("main a.button").await;
    tab.click("#everywhere").await;
    tab.shows("Merchant dashboard").await;
    tab.is_clean();
}

async fn an_admin_manages_merchants() {
    let dev = Dev::with(&crate::operator::LIMITED);
    let shop = dev.shop();
    let tab = Tab::open().await;
    log_in(&tab, &dev.api.base, dev.admin_key()).await;
    tab.click("nav a[href='/dashboard/merchants']").await;
    tab.shows("Blue Mug Shop").await;
    tab.look("dashboard-merchants").await;
    tab.fill("#query", &shop.id).await;
    tab.click("#filter").await;
    tab.shows("1 merchants").await;
    tab.click("button[name=active]").await;
    tab.shows("The merchant is inactive.").await;
    assert_eq!(shop.get("/api/public/merchants/me").send().ok(200)["isActive"], false);
    tab.click("button[name=active]").await;
    tab.shows("The merchant is active.").await;
    let order = json!({ "amount": "10010", "currency": "HBD", "description": "A table" });
    shop.post("/api/public/payments", &order).send().refused(403, "compliance_hold");
    tab.goto(&format!("{}/dashboard/merchants?active=flagged", dev.api.base)).await;
    tab.click("tbody a").await;
    tab.shows("On hold: one payment: $10.01").await;
    tab.look("dashboard-merchant-flagged").await;
    tab.fill("#reason", "Passport <i>seen</i>").await;
    tab.click("#clear").await;
    tab.shows("The hold was ended.").await;
    tab.fill("#single", "250").await;
    tab.click("#limits").await;
    tab.shows("Individual limits were set.").await;
    tab.look("dashboard-merchant").await;
    shop.post("/api/public/payments", &order).send().ok(201);
    tab.click("#audit").await;
    tab.shows("compliance cleared").await;
    tab.look("dashboard-audit").await;
    tab.click("nav a[href='/dashboard/nodes']").await;
    tab.shows("Nodes and scanner").await;
    tab.look("dashboard-nodes").await;
    tab.goto(&format!("{}/dashboard/merchants/{}", dev.api.base, shop.id)).await;
    tab.click("#new-key").await;
    tab.click("#key").await;
    tab.shows("sk_live_").await;
    shop.get("/api/public/merchants/me").send().refused(401, "invalid_api_key");
    tab.is_clean();
}

async fn a_merchant_rolls_its_key_and_stays_logged_in() {
    let dev = Dev::with(&["--set=keys.roll=true"]);
    let shop = dev.shop();
    let tab = Tab::open().await;
    log_in(&tab, &dev.api.base, &shop.key).await;
    tab.click("nav a[href='/dashboard/settings']").await;
    tab.shows("this login").await;
    tab.look("dashboard-settings-keys").await;
    tab.fill("select[name=overlapHours]", "0").await;
    tab.click(".roll button").await;
    tab.shows("New API key").await;
    tab.click("main a.button").await;
    tab.shows("this login").await;
    shop.get("/api/public/merchants/me").send().refused(401, "invalid_api_key");
    tab.is_clean();
}

async fn a_disabled_endpoint_is_shown_and_missed_events_are_sent_again() {
    let shop = shared().shop();
    let receiver = Receiver::start();
    receiver.reply(&[Reply::Status(410)]);
    shop.set_webhook(&receiver);
    let (first, second) = (shop.open_payment(), shop.open_payment());
    shop.cancelled(&first.id);
    let tab = Tab::open().await;
    log_in(&tab, &shop.api.base, &shop.key).await;
    crate::harness::until("the endpoint to be disabled", || {
        let path = format!("/api/public/merchants/{}/webhook", shop.id);
        (shop.get(&path).send().ok(200)["enabled"] == false).then_some(())
    });
    shop.cancelled(&second.id);
    tab.goto(&format!("{}/dashboard", shop.api.base)).await;
    tab.shows("disabled since").await;
    tab.look("dashboard-overview-unwell").await;
    tab.goto(&format!("{}/dashboard/webhooks?state=held", shop.api.base)).await;
    tab.shows("Enable and send held events").await;
    tab.look("dashboard-webhooks-disabled").await;
    tab.click("#enable").await;
    tab.shows("The endpoint is enabled.").await;
    let sent = crate::harness::until("what it missed", || {
        let page = shop.get(&format!("/api/public/merchants/{}/webhook-deliveries", shop.id)).send().ok(200);
        let all = page["deliveries"].as_array().expect("a list").clone();
        all.iter().all(|one| one["status"] == "delivered").then_some(all)
    });
    assert_eq!(sent.len(), 2, "{sent:?}");
    tab.goto(&format!("{}/dashboard/webhooks", shop.api.base)).await;
    tab.choose("#test-type", "payment.exception").await;
    tab.choose("#test-status", "system_cancelled").await;
    tab.click("#test").await;
    tab.shows("A test event was sent.").await;
    let is_test = |hook: &crate::harness::Hook| hook.json()["type"] == "payment.exception";
    let test = crate::harness::until("the test event", || receiver.hooks().into_iter().find(is_test));
    assert_eq!(test.json()["data"]["status"], "system_cancelled");
    tab.look("dashboard-webhooks-tested").await;
    tab.goto(&format!("{}/docs", shop.api.base)).await;
    tab.shows("No real money moves.").await;
    tab.look("docs").await;
    tab.goto(&format!("{}/dashboard/payments/{}", shop.api.base, second.id)).await;
    tab.shows("Webhook deliveries").await;
    tab.look("dashboard-payment-deliveries").await;
    tab.click("main table button").await;
    tab.shows("The event is being redelivered.").await;
    tab.is_clean();
}

async fn a_merchant_resolves_unmatched_transfers_and_exceptions() {
    let dev = shared();
    let shop = dev.shop().prove();
    let receiver = Receiver::start();
    shop.set_webhook(&receiver);
    let payment = shop.open_payment();
    let over = shop.open_with(&json!({ "amount": "2000", "currency": "HBD", "description": "A large mug" }));
    let bob = dev.demo_account("bob");
    dev.ledger.transfer(&bob, &shop.account.name, "1.500 HBD", "for the mug");
    dev.ledger.transfer(&bob, &shop.account.name, "3.000 HBD", &over.memo);
    let tab = Tab::open().await;
    log_in(&tab, &shop.api.base, &shop.key).await;
    shop.until(&over.id, "overpaid", |record| record["amountOverpaid"] == "1000");
    tab.click("nav a[href='/dashboard/unmatched']").await;
    tab.shows("for the mug").await;
    tab.look("dashboard-unmatched").await;
    tab.click("tbody a").await;
    tab.shows("Candidate payments").await;
    tab.look("dashboard-unmatched-transfer").await;
    tab.click("tbody button").await;
    tab.shows("The transfer was assigned to this payment.").await;
    shop.until(&payment.id, "paid by hand", |record| record["transfers"][0]["route"] == "manual");
    tab.goto(&format!("{}/dashboard/payments/{}", shop.api.base, over.id)).await;
    tab.shows("Resolve this payment").await;
    tab.look("dashboard-payment-overpaid").await;
    tab.click("#refund").await;
    tab.shows("1.000 HBD").await;
    tab.look("dashboard-refund").await;
    tab.goto(&format!("{}/dashboard/payments/{}", shop.api.base, over.id)).await;
    tab.fill("#note", "A <b>tip</b>").await;
    tab.click("#resolve").await;
    tab.shows("The decision was saved.").await;
    tab.shows("A <b>tip</b>").await;
    tab.look("dashboard-payment-resolved").await;
    tab.goto(&format!("{}/dashboard/webhooks", shop.api.base)).await;
    tab.shows("success 200").await;
    tab.look("dashboard-webhooks").await;
    tab.click("tbody a").await;
    tab.shows("Attempt 1").await;
    tab.look("dashboard-delivery").await;
    tab.click("#redeliver").await;
    tab.shows("The event is being redelivered.").await;
    tab.click("#test").await;
    tab.shows("A test event was sent.").await;
    tab.click("#replay").await;
    tab.shows("Undelivered events are being sent again.").await;
    dev.ledger.transfer(&bob, &shop.account.name, "0.007 HBD", "thanks");
    crate::harness::until("the tip", || {
        let list = shop.get("/api/public/unmatched?status=open").send().ok(200);
        list.to_string().contains("thanks").then_some(())
    });
    tab.click("nav a[href='/dashboard/unmatched']").await;
    tab.click("tbody a").await;
    tab.shows("Ignore this transfer").await;
    tab.fill("#note", "A tip").await;
    tab.click("#ignore").await;
    tab.shows("The transfer was ignored.").await;
    tab.shows("No transfers.").await;
    tab.look("dashboard-unmatched-none").await;
    tab.is_clean();
    tab.goto(&format!("{}/dashboard/payments/pay_00000000000000000000000000", shop.api.base)).await;
    tab.shows("This record does not exist, or it belongs to another merchant.").await;
    tab.look("dashboard-refused").await;
    tab.click("#back").await;
    tab.shows("Overview").await;
}

async fn a_merchant_proves_its_account_with_keychain() {
    let dev = shared();
    let shop = dev.shop();
    let tab = Tab::open().await;
    tab.install_keychain(0).await;
    log_in(&tab, &shop.api.base, &shop.key).await;
    tab.goto(&format!("{}/dashboard/account", shop.api.base)).await;
    tab.click("#prove").await;
    tab.shows("Sign a message").await;
    tab.look("dashboard-account-challenge").await;
    tab.click("#keychain-sign").await;
    let request = tab.asked().await;
    assert_eq!((&request["type"], &request["key"]), (&json!("signBuffer"), &json!("Active")));
    assert_eq!(request["account"], json!(shop.account.name));
    tab.response(&request, &json!({ "success": false, "error": "user_cancel", "message": "Canceled" })).await;
    tab.shows("Keychain did not sign: Canceled").await;
    tab.click("#keychain-sign").await;
    let request = tab.asked().await;
    let message = request["message"].as_str().expect("a message");
    assert_eq!(json!(message), shop.challenge(&json!({}))["text"], "the text is signed as it is");
    tab.response(&request, &json!({ "success": true, "error": null, "result": shop.account.sign(message) })).await;
    tab.shows("Ownership is proven.").await;
    assert_eq!(shop.get("/api/public/merchants/me").send().ok(200)["accountVerified"], true);
    shop.update(&json!({ "hiveAccount": dev.ledger.account("new").name })).ok(200);
    tab.goto(&format!("{}/dashboard/account", shop.api.base)).await;
    tab.shows("Pending change").await;
    tab.look("dashboard-account-pending").await;
    tab.click("#cancel-change").await;
    tab.shows("The change was cancelled.").await;
    tab.is_clean();
}
