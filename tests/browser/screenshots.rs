//! Screenshots of every state of the checkout at four widths, light and dark, with accessibility checks.

use serde_json::{Value, json};

use super::chrome::Tab;
use crate::harness::{Dev, Opened, Payer, Shop, until};

super::journeys!(open_states, paid_states, ended_states, a_failed_payment, refusals_and_languages);

/// A ledger and a shop of its own.
struct Stage {
    dev: Dev,
    shop: Shop,
    bob: Payer,
    tab: Tab,
}

impl Stage {
    async fn set() -> Self {
        let dev = Dev::start();
        let (shop, bob) = (dev.shop(), dev.demo_account("bob"));
        shop.update(&json!({ "name": "Blue Mug Shop", "supportUrl": "https://shop.example/help" })).ok(200);
        Self { dev, shop, bob, tab: Tab::open().await }
    }

    fn order(&self, seconds: u32) -> Opened {
        self.shop.open_with(&json!({
            "amount": "12500", "currency": "HIVE", "description": "Two blue mugs with saucers, order 4711",
            "expiresInSeconds": seconds, "cancelUrl": "https://shop.example/basket",
        }))
    }

    fn pay(&self, payment: &Opened, amount: &str) {
        self.dev.ledger.transfer(&self.bob, &self.shop.account.name, amount, &payment.memo);
    }

    async fn look(&self, payment: &Opened, query: &str, words: &str, name: &str) {
        self.tab.goto(&format!("{}/for/{}{query}", self.shop.api.base, payment.slug)).await;
        self.tab.shows(words).await;
        self.tab.look(name).await;
        self.tab.is_clean();
    }
}

async fn open_states() {
    let stage = Stage::set().await;
    let payment = stage.order(1_800);
    stage.look(&payment, "", "Choose how to pay", "pay-without-keychain").await;
    stage.tab.install_keychain(0).await;
    stage.look(&payment, "", "Pay with Hive Keychain", "pay").await;
    stage.look(&payment, "?tx=0123456789012345678901234567890123456789", "Sent. Waiting", "pay-came-back").await;
    stage.pay(&payment, "2.500 HIVE");
    stage.look(&payment, "", "Please send 10.000 HIVE more.", "part").await;
    let other = stage.order(1_800);
    stage.pay(&other, "12.500 HBD");
    stage.look(&other, "", "Wrong currency", "wrong-currency").await;
    stage.dev.ledger.hold_irreversibility(true);
    stage.pay(&payment, "10.000 HIVE");
    stage.look(&payment, "", "Confirming, usually under 10 seconds.", "seen").await;
}

async fn paid_states() {
    let stage = Stage::set().await;
    let (exact, over) = (stage.order(1_800), stage.order(1_800));
    stage.pay(&exact, "12.500 HIVE");
    stage.pay(&over, "13.000 HIVE");
    stage.look(&exact, "", "Your payment is final.", "completed").await;
    stage.look(&over, "", "0.500 HIVE too much", "overpaid").await;
    stage.tab.print("receipt").await;
    stage.tab.goto(&format!("{}/checkout/{}", stage.shop.api.base, exact.id)).await;
    stage.tab.shows("Paid").await;
    stage.tab.look("completed-for-third-parties").await;
}

async fn ended_states() {
    let stage = Stage::set().await;
    let (plain, part, late) = (stage.order(60), stage.order(60), stage.order(60));
    stage.pay(&part, "2.500 HIVE");
    stage.shop.until(&part.id, "part-paid", |record| record["amountPaid"] == "2500");
    stage.dev.ledger.advance(120);
    stage.shop.until_status(&late.id, "system_cancelled");
    stage.pay(&late, "12.500 HIVE");
    stage.shop.until(&late.id, "paid late", |record| record["amountLate"] == "12500");
    stage.shop.until_status(&part.id, "system_cancelled");
    stage.look(&plain, "", "This payment has expired.", "expired").await;
    stage.look(&part, "", "after 2.500 HIVE of 12.500 HIVE had arrived", "expired-part").await;
    stage.look(&late, "", "arrived too late", "late").await;
    let (customer, shop) = (stage.order(1_800), stage.order(1_800));
    stage.shop.api.request("POST", &format!("/for/{}/cancel", customer.slug)).send().ok(200);
    stage.shop.until_status(&customer.id, "user_cancelled");
    stage.shop.cancelled(&shop.id);
    let asked = stage.order(1_800);
    stage.dev.ledger.hold_irreversibility(true);
    stage.shop.cancel(&asked.id).ok(200);
    stage.look(&asked, "", "We are checking that no payment is on its way.", "cancelling").await;
    stage.dev.ledger.hold_irreversibility(false);
    stage.shop.until_status(&asked.id, "user_cancelled");
    stage.look(&customer, "?still=1", "This payment was cancelled.", "cancelled").await;
    stage.look(&shop, "?still=1", "Blue Mug Shop cancelled this payment.", "cancelled-by-shop").await;
}

async fn a_failed_payment() {
    let stage = Stage::set().await;
    let payment = stage.order(1_800);
    stage.dev.ledger.hold_irreversibility(true);
    stage.dev.ledger.order("hold_transactions", &json!({ "held": true }));
    let signed = stage.dev.ledger.signed(&stage.bob, &[(&stage.shop.account.name, "12.500 HIVE", &payment.memo)]);
    let signed: Value = serde_json::from_str(&signed.to_condenser_json()).expect("JSON");
    let body = json!({ "sessionId": payment.id, "paymentPayload": {
        "x402Version": 1, "scheme": "exact", "network": "hive:mainnet",
        "payload": { "signedTransaction": signed, "nonce": "gallery" },
    } });
    let api = stage.shop.api.clone();
    let settling = crate::harness::background(move || api.post("/api/public/x402/settle", &body).send().status);
    let status = format!("/for/{}/status", payment.slug);
    until("the claim", || (stage.shop.api.get(&status).send().json()["phase"] == "processing").then_some(()));
    stage.look(&payment, "", "Your signed payment was submitted", "processing").await;
    settling.join().expect("a response");
    stage.dev.ledger.order("forget_mempool", &json!({}));
    stage.dev.ledger.order("hold_transactions", &json!({ "held": false }));
    stage.dev.ledger.hold_irreversibility(false);
    stage.shop.until(&payment.id, "unknown", |record| record["status"] != "pending");
    stage.dev.ledger.advance(4_000);
    stage.shop.until_status(&payment.id, "failed");
    stage.look(&payment, "", "No money was moved.", "failed").await;
}

async fn refusals_and_languages() {
    let stage = Stage::set().await;
    let payment = stage.order(1_800);
    for lang in ["es", "de", "fr", "pt", "ko", "ar"] {
        stage.tab.goto(&format!("{}/for/{}?lang={lang}", stage.shop.api.base, payment.slug)).await;
        let direction = if lang == "ar" { "rtl" } else { "ltr" };
        let page =
            format!("document.documentElement.lang === '{lang}' && document.documentElement.dir === '{direction}'");
        stage.tab.until("its language", &page).await;
        stage.tab.look(&format!("pay-{lang}")).await;
    }
    stage.tab.is_clean();
    stage.tab.goto(&format!("{}/for/nothing", stage.shop.api.base)).await;
    stage.tab.shows("Payment not found").await;
    stage.tab.look("unknown").await;
    stage.tab.forgive();
    stage.dev.ledger.hold_irreversibility(true);
    stage.pay(&payment, "12.500 HIVE");
    until("the transfer", || {
        let record = stage.shop.payment(&payment.id);
        (record["transfers"].as_array().is_some_and(|transfers| !transfers.is_empty())).then_some(())
    });
    // A customer who clicks too late sees an error and the current state.
    let cancel = format!(
        "(f => {{ f.method = 'post'; f.action = '/for/{}/cancel'; document.body.append(f); f.submit(); return true }})(document.createElement('form'))",
        payment.slug
    );
    stage.tab.eval::<bool>(&cancel).await;
    stage.tab.shows("This payment can no longer be cancelled.").await;
    stage.tab.look("cannot-cancel").await;
}
