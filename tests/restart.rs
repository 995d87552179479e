//! Customers start an expired payment again: the form, the JSON response, and every refusal.

use serde_json::{Value, json};

use crate::harness::{Dev, Opened, Response, Shop, background, shared};

crate::tests!(
    an_expired_payment_is_started_again_once_with_the_same_terms,
    concurrent_restarts_lead_to_one_payment,
    the_public_id_needs_the_token_of_the_page,
    a_restart_is_refused_with_its_reason,
    restarts_are_limited_like_creations_and_count_separately,
    the_setting_is_off_until_the_merchant_turns_it_on,
);

const FORM: &str = "application/x-www-form-urlencoded";

/// Opens a payment of one minute.
fn open(shop: &Shop) -> Opened {
    shop.open_with(&json!({
        "amount": "1500", "currency": "HBD", "description": "A blue mug", "expiresInSeconds": 60,
        "metadata": { "orderId": "A-1001" },
        "redirectUrl": "https://shop.example/thanks", "cancelUrl": "https://shop.example/basket",
    }))
}

/// Opens a payment and lets it expire.
fn expired(dev: &Dev, shop: &Shop) -> Opened {
    let payment = open(shop);
    dev.ledger.advance(120);
    shop.until_status(&payment.id, "system_cancelled");
    payment
}

fn allow(shop: &Shop) {
    shop.update(&json!({ "restartEnabled": true })).ok(200);
}

/// Sends the form of a page as a browser does.
fn send_form(shop: &Shop, path: &str, body: &str) -> Response {
    let request = shop.api.request("POST", path).header("accept", "text/html").header("content-type", FORM);
    request.body(body).send()
}

/// Requests a restart as a program does.
fn restart(shop: &Shop, payment: &Opened) -> Response {
    shop.api.request("POST", &format!("/for/{}/restart", payment.slug)).header("accept", "application/json").send()
}

fn page(shop: &Shop, path: &str) -> String {
    let response = shop.api.get(path).header("accept", "text/html").send();
    assert_eq!(response.status, 200, "{}", response.text());
    response.text()
}

fn lifetime(record: &Value) -> std::time::Duration {
    let at = |member: &str| engine::time::Timestamp::parse(record[member].as_str().expect("a time")).expect("a time");
    at("expiresAt").since(at("createdAt"))
}

fn an_expired_payment_is_started_again_once_with_the_same_terms() {
    let dev = Dev::start();
    let shop = dev.shop();
    allow(&shop);
    let payment = expired(&dev, &shop);
    let path = format!("/for/{}", payment.slug);
    let form = format!("action=\"{path}/restart?lang=de\"");
    assert!(page(&shop, &format!("{path}?lang=de")).contains(&form));
    let moved = send_form(&shop, &format!("{path}/restart?lang=de"), "");
    assert_eq!(moved.status, 303, "{}", moved.text());
    let onward = moved.header("location").expect("a page").to_owned();
    assert!(onward.starts_with("/for/") && onward.ends_with("?lang=de") && !onward.starts_with(&path), "{onward}");
    assert!(page(&shop, &onward).contains("Wir warten auf Ihre Zahlung"));
    // A second click, and a program, lead to the same payment.
    assert_eq!(send_form(&shop, &format!("{path}/restart?lang=de"), "").header("location"), Some(&*onward));
    let made = restart(&shop, &payment).ok(200);
    let slug = made["slug"].as_str().expect("a slug");
    assert_eq!(onward, format!("/for/{slug}?lang=de"));
    assert_eq!(made["checkoutUrl"], json!(format!("{}/for/{slug}", shop.api.base)));
    let id = made["id"].as_str().expect("an id");
    let (old, new) = (shop.payment(&payment.id), shop.payment(id));
    assert_eq!((&new["status"], &old["status"]), (&json!("pending"), &json!("system_cancelled")));
    for same in ["amount", "description", "redirectUrl", "cancelUrl", "fee", "net"] {
        assert_eq!(new[same], old[same], "{same}");
    }
    assert_eq!(lifetime(&new), lifetime(&old));
    assert_eq!(new["metadata"], json!({ "orderId": "A-1001", "restartOf": payment.id }));
    assert_eq!(shop.get("/api/public/payments").send().ok(200)["pagination"]["total"], 2);
    // The new payment expires and is started again, too: it names the payment before it.
    dev.ledger.advance(120);
    shop.until_status(id, "system_cancelled");
    let next = restart(&shop, &Opened::of(&json!({ "id": id, "slug": slug }))).ok(200);
    let next = shop.payment(next["id"].as_str().expect("an id"));
    assert_eq!(next["metadata"], json!({ "orderId": "A-1001", "restartOf": id }));
}

fn concurrent_restarts_lead_to_one_payment() {
    let dev = Dev::start();
    let shop = dev.shop();
    allow(&shop);
    let payment = expired(&dev, &shop);
    let clicks: Vec<_> = (0..8)
        .map(|_| {
            let (shop, payment) = (shop.clone(), payment.clone());
            background(move || restart(&shop, &payment).ok(200)["id"].clone())
        })
        .collect();
    let mut ids: Vec<String> = clicks.into_iter().map(|click| click.join().expect("a response").to_string()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 1, "{ids:?}");
    assert_eq!(shop.get("/api/public/payments").send().ok(200)["pagination"]["total"], 2);
}

fn the_public_id_needs_the_token_of_the_page() {
    let dev = Dev::start();
    let shop = dev.shop();
    allow(&shop);
    let (payment, other) = (open(&shop), open(&shop));
    let token = |payment: &Opened| {
        let response = shop.api.get(&format!("/for/{}", payment.slug)).header("accept", "text/html").send();
        response.header("set-cookie").expect("the token").split(['=', ';']).nth(1).expect("its value").to_owned()
    };
    let (own, foreign) = (token(&payment), token(&other));
    dev.ledger.advance(120);
    shop.until_status(&payment.id, "system_cancelled");
    let path = format!("/checkout/{}/restart", payment.id);
    for body in [String::new(), "token=".into(), format!("token={foreign}"), "{}".into()] {
        let request = shop.api.request("POST", &path).header("content-type", FORM);
        request.body(body).send().refused(403, "invalid_form_token");
    }
    assert!(!page(&shop, &format!("/checkout/{}", payment.id)).contains("<form"), "the id alone shows no form");
    assert_eq!(shop.get("/api/public/payments").send().ok(200)["pagination"]["total"], 2);
    let moved = send_form(&shop, &path, &format!("token={own}"));
    let slug = restart(&shop, &payment).ok(200)["slug"].as_str().expect("a slug").to_owned();
    assert_eq!((moved.status, moved.header("location")), (303, Some(&*format!("/for/{slug}"))));
}

fn a_restart_is_refused_with_its_reason() {
    let dev = Dev::start();
    let (shop, other) = (dev.shop(), dev.shop());
    let partly_paid = open(&shop);
    dev.ledger.transfer(&dev.demo_account("bob"), &shop.account.name, "0.500 HBD", &partly_paid.memo);
    shop.until(&partly_paid.id, "partly paid", |record| record["amountPaid"] == "500");
    let payment = expired(&dev, &shop);
    shop.until_status(&partly_paid.id, "system_cancelled");
    restart(&shop, &payment).refused(403, "restart_disabled");
    let path = format!("/for/{}", payment.slug);
    assert!(!page(&shop, &path).contains("/restart"), "no button that is refused");
    let refused = send_form(&shop, &format!("{path}/restart"), "");
    assert_eq!(refused.status, 403);
    let text = refused.text();
    assert!(text.contains("This payment cannot be started again.") && text.contains("This payment has expired."));
    allow(&shop);
    for (not_restartable, why) in [(&partly_paid, "a transfer"), (&open(&shop), "only an expired payment")] {
        let body = restart(&shop, not_restartable).refused(409, "payment_not_restartable");
        assert!(body["statusMessage"].as_str().expect("a text").starts_with(why), "{body}");
        assert!(!page(&shop, &format!("/for/{}", not_restartable.slug)).contains("/restart"));
    }
    restart(&shop, &payment).ok(200);
    let deactivate = |active: bool| {
        let path = format!("/api/admin/merchants/{}/active", shop.id);
        dev.api.post(&path, &json!({ "isActive": active })).bearer(dev.admin_key()).send().ok(200);
    };
    deactivate(false);
    restart(&shop, &payment).refused(403, "inactive_merchant");
    assert!(!page(&shop, &path).contains("/restart"));
    deactivate(true);
    dev.ledger.advance(24 * 3_600);
    crate::harness::until("a block of the next day", || {
        let body = restart(&shop, &payment);
        (body.status == 409).then(|| body.refused(409, "payment_not_restartable"))
    });
    let unknown = Opened { slug: "nothing".to_owned(), ..payment };
    restart(&other, &unknown).refused(404, "not_found");
}

fn restarts_are_limited_like_creations_and_count_separately() {
    let dev = Dev::with(&[
        "--limits=production",
        "--set=limits.api_writes=1/h burst 4",
        "--set=limits.checkout=",
        "--set=limits.api_reads=",
    ]);
    let shop = dev.shop();
    allow(&shop);
    let payment = expired(&dev, &shop);
    let first = restart(&shop, &payment).ok(200);
    for _ in 1..4 {
        assert_eq!(restart(&shop, &payment).ok(200), first);
    }
    let refused = restart(&shop, &payment);
    refused.refused(429, "rate_limited");
    assert!(refused.header("retry-after").is_some());
    // The merchant has used two of its four writes: the setting and the payment.
    for _ in 2..4 {
        open(&shop);
    }
    shop.post("/api/public/payments", &crate::harness::order()).send().refused(429, "rate_limited");
}

fn the_setting_is_off_until_the_merchant_turns_it_on() {
    let shop = shared().shop();
    let setting = || shop.get("/api/public/merchants/me").send().ok(200)["restartEnabled"].clone();
    assert_eq!(setting(), false);
    assert_eq!(shop.update(&json!({ "restartEnabled": true })).ok(200)["restartEnabled"], true);
    shop.update(&json!({ "name": "Mugs" })).ok(200);
    assert_eq!(setting(), true, "other changes keep it");
    for bad in [json!("true"), json!(1), Value::Null] {
        shop.update(&json!({ "restartEnabled": bad })).wrong(&["restartEnabled"]);
    }
    assert_eq!(shop.update(&json!({ "restartEnabled": false })).ok(200)["restartEnabled"], false);
}
