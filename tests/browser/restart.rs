//! An expired payment that its customer starts again, in a browser.

use serde_json::json;

use super::chrome::Tab;
use crate::harness::{Dev, Opened, Shop};

super::journeys!(an_expired_payment_is_started_again_and_paid, a_restart_that_is_refused_is_explained);

/// Opens a payment of one minute.
fn order(shop: &Shop) -> Opened {
    shop.open_with(&json!({
        "amount": "1500", "currency": "HBD", "description": "A blue mug", "expiresInSeconds": 60,
        "cancelUrl": format!("{}/livez?basket", shop.api.base),
    }))
}

async fn an_expired_payment_is_started_again_and_paid() {
    let dev = Dev::start();
    let shop = dev.shop();
    shop.update(&json!({ "restartEnabled": true })).ok(200);
    let payment = order(&shop);
    let expired = format!("{}/for/{}", dev.api.base, payment.slug);
    let tab = Tab::open().await;
    tab.goto(&expired).await;
    tab.shows("Choose how to pay").await;
    dev.ledger.advance(120);
    tab.shows("You can start again with the same amount.").await;
    tab.look("expired-restart").await;
    tab.click("#restart").await;
    tab.shows("Waiting for your payment").await;
    tab.shows("1.500").await;
    assert_ne!(tab.url().await, expired);
    tab.click("#manual summary").await;
    let memo: String = tab.eval("document.getElementById('pay-memo').textContent").await;
    assert_ne!(memo, payment.memo);
    dev.ledger.transfer(&dev.demo_account("bob"), &shop.account.name, "1.500 HBD", &memo);
    tab.shows("Your payment is final.").await;
    // The old page leads to the payment that was started before, and not to another one.
    let paid = tab.url().await;
    tab.goto(&format!("{expired}?lang=de")).await;
    tab.shows("Sie können mit demselben Betrag neu beginnen.").await;
    tab.click("#restart").await;
    tab.shows("Bezahlt").await;
    assert_eq!(tab.url().await, format!("{paid}?lang=de"));
    assert_eq!(shop.get("/api/public/payments").send().ok(200)["pagination"]["total"], 2);
    tab.is_clean();
}

async fn a_restart_that_is_refused_is_explained() {
    let dev = Dev::start();
    let shop = dev.shop();
    shop.update(&json!({ "restartEnabled": true })).ok(200);
    let payment = order(&shop);
    let tab = Tab::open().await;
    tab.goto(&format!("{}/for/{}", dev.api.base, payment.slug)).await;
    dev.ledger.advance(120);
    tab.shows("You can start again with the same amount.").await;
    // The page does not know that the merchant has switched it off.
    shop.update(&json!({ "restartEnabled": false })).ok(200);
    tab.click("#restart").await;
    tab.shows("This payment cannot be started again.").await;
    assert!(tab.eval::<bool>("document.getElementById('restart') === null").await);
    tab.look("cannot-restart").await;
    // The refusal has an error status.
    tab.forgive();
}
