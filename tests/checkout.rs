//! The checkout page without JavaScript: its content, live status and cancellation.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
};

use serde_json::{Value, json};

use crate::harness::{Api, Response, Shop, TIMEOUT, shared, until};

crate::tests!(
    both_checkout_urls_show_everything_a_payer_needs,
    the_page_loads_nothing_external_and_sends_no_referrer,
    merchant_texts_are_escaped,
    the_public_id_shows_little_of_a_final_session,
    a_customer_cancels_with_a_plain_form,
    a_cancellation_by_json_returns_a_short_status,
    a_cancelling_payment_rejects_wallets_and_claims,
    the_public_id_alone_cannot_cancel,
    script_urls_are_rejected_in_every_field,
    the_page_is_available_in_seven_languages,
    the_support_contact_is_on_every_page,
    the_live_status_follows_the_payment,
    the_stream_sends_every_change_and_ends,
    a_final_page_links_back_to_the_shop,
    an_unknown_url_is_html_for_browsers_and_json_for_programs,
);

/// Requests a path as a browser does.
fn browse(api: &Api, path: &str) -> Response {
    api.get(path).header("accept", "text/html,application/xhtml+xml,*/*;q=0.8").send()
}

fn page(api: &Api, path: &str) -> String {
    let response = browse(api, path);
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.header("content-type"), Some("text/html; charset=utf-8"));
    response.text()
}

fn has(page: &str, parts: &[&str]) {
    for part in parts {
        assert!(page.contains(part), "no {part:?} in {page}");
    }
}

fn mug() -> Value {
    json!({
        "amount": "1500", "currency": "HBD", "description": "Blue <mug> & \"saucer\"",
        "redirectUrl": "https://shop.example/thanks?order=7", "cancelUrl": "https://shop.example/basket",
    })
}

fn both_checkout_urls_show_everything_a_payer_needs() {
    let shop = shared().shop();
    let payment = shop.open_with(&mug());
    let moved = browse(&shop.api, &format!("/checkout/{}", payment.id));
    let by_slug = format!("/for/{}", payment.slug);
    assert_eq!((moved.status, moved.header("location")), (303, Some(by_slug.as_str())));
    let record = shop.payment(&payment.id);
    assert_eq!(record["slugUrl"], json!(format!("{}{by_slug}", shop.api.base)));
    let page = page(&shop.api, &by_slug);
    has(&page, &["Waiting for your payment", "lang=\"en\" dir=\"ltr\"", "Pay before", "No real money moves"]);
    has(&page, &["1.500", "HBD", &shop.account.name, &payment.memo, "hive://sign/op/", "<svg", "hivesigner.com/sign/"]);
    has(&page, &["Choose how to pay", "keychain-pay", "method=\"post\"", "Cancel", "curl -i"]);
    let memo = format!("<code id=\"pay-memo\">{}</code>", payment.memo);
    has(&page, &[&memo, "<code id=\"pay-amount\">1.500 HBD</code>"]);
}

fn the_page_loads_nothing_external_and_sends_no_referrer() {
    let shop = shared().shop();
    let payment = shop.open_with(&mug());
    let response = browse(&shop.api, &format!("/for/{}", payment.slug));
    for (name, value) in [
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("vary", "Accept, X-Payment, Payment-Signature, Accept-Language"),
        ("x-frame-options", "DENY"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        assert_eq!(response.header(name), Some(value), "{name}");
    }
    assert!(response.header("x-robots-tag").is_some_and(|robots| robots.contains("noindex")));
    let policy = response.header("content-security-policy").unwrap();
    for part in
        ["default-src 'none'", "script-src 'self'", "base-uri 'none'", "frame-ancestors 'none'", "form-action 'self'"]
    {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains("data:"), "{policy}");
    let html = response.text();
    assert!(!html.contains("<script>") && !html.contains(" style=") && !html.contains(" onclick="), "inline: {html}");
    let mut bytes = html.len();
    assert!(html.contains("<style>") && !html.contains("stylesheet"), "nothing arrives before the first paint: {html}");
    assert!(policy.contains("style-src 'self' 'sha256-"), "{policy}");
    for file in ["checkout.js", "icon.svg"] {
        has(&html, &[&format!("/assets/{file}")]);
        let asset = shop.api.get(&format!("/assets/{file}")).send();
        assert_eq!(asset.status, 200);
        assert!(asset.body.len() > 100);
        bytes += asset.body.len();
    }
    assert!(bytes <= 60_000, "{bytes} bytes with everything it loads");
}

fn merchant_texts_are_escaped() {
    let dev = shared();
    let shop = Shop::open_for(&dev.api, dev.ledger.account("shop"));
    shop.update(&json!({ "name": "<b>\"Evil\" & 'Sons'</b>", "iconUrl": "https://a.example/i.png?a=\"'><script>" }))
        .ok(200);
    let payment = shop.open_with(&json!({
        "amount": "1", "currency": "HBD", "description": "<img src=x onerror=alert(1)>{{7*7}}",
        "redirectUrl": "https://shop.example/?a=\"><script>alert(1)</script>",
        "metadata": { "<script>": "<script>alert(1)</script>" },
    }));
    let by_slug = format!("/for/{}", payment.slug);
    let ways = format!("{by_slug}?lang=%22%3E%3Cscript%3E&tx=%22%3E%3Cscript%3E&t=%22%3E%3Cscript%3E");
    for path in [by_slug, ways] {
        let page = page(&dev.api, &path);
        for bad in ["<b>", "<img src=x", "<script>", "alert(1)</", "\"'>"] {
            assert!(!page.contains(bad), "{bad} in {page}");
        }
        assert!(page.contains("{{7*7}}") && page.contains("hive://"), "shown as it was written: {page}");
    }
    assert!(
        payment.slug.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
        "{}",
        payment.slug
    );
}

fn script_urls_are_rejected_in_every_field() {
    let shop = shared().shop();
    for bad in
        ["javascript:alert(1)", "JAVASCRIPT:alert(1)", "data:text/html,<script>alert(1)</script>", "vbscript:x", "//x"]
    {
        for field in ["redirectUrl", "cancelUrl"] {
            let body = json!({ "amount": "1", "currency": "HBD", "description": "x", field: bad });
            shop.post("/api/public/payments", &body).send().wrong(&[field]);
        }
        for field in ["iconUrl", "supportUrl", "webhookUrl"] {
            shop.update(&json!({ field: bad })).wrong(&[field]);
        }
    }
}

fn the_page_is_available_in_seven_languages() {
    let shop = shared().shop();
    let payment = shop.open_payment();
    let path = format!("/for/{}", payment.slug);
    for (tag, words) in [
        ("en", "Waiting for your payment"),
        ("es", "Esperando su pago"),
        ("de", "Wir warten auf Ihre Zahlung"),
        ("fr", "En attente de votre paiement"),
        ("pt", "Aguardando seu pagamento"),
        ("ko", "결제를 기다리고 있습니다"),
        ("ar", "في انتظار دفعتك"),
    ] {
        let lang = format!("<html lang=\"{tag}\"");
        let chosen = page(&shop.api, &format!("{path}?lang={tag}"));
        has(&chosen, &[words, &lang]);
        let times = chosen.matches("</time>").count();
        assert!(times > 0 && chosen.matches(" UTC</time>").count() == times, "a time without its zone: {chosen}");
        let liked = shop.api.get(&path).header("accept", "text/html").header("accept-language", tag).send();
        has(&liked.text(), &[words, &lang]);
        let status = shop.api.get(&format!("{path}/status?lang={tag}")).send().ok(200);
        assert_eq!(status["headline"], words);
    }
    let missing = shop.api.get("/for/nothing?lang=de").header("accept", "text/html").send();
    has(&missing.text(), &["Zahlung nicht gefunden"]);
}

fn the_support_contact_is_on_every_page() {
    let shop = shared().shop();
    let payment = shop.open_payment();
    let path = format!("/for/{}", payment.slug);
    assert!(!page(&shop.api, &path).contains("id=\"support\""));
    let record = shop.update(&json!({ "supportUrl": "mailto:help@shop.example" })).ok(200);
    assert_eq!(record["supportUrl"], "mailto:help@shop.example");
    has(&page(&shop.api, &path), &["id=\"support\" href=\"mailto:help@shop.example\""]);
    shop.update(&json!({ "supportUrl": null })).ok(200);
    assert!(!page(&shop.api, &path).contains("id=\"support\""));
}

fn pay(shop: &Shop, payment: &str, memo: &str) -> Value {
    let dev = shared();
    dev.ledger.transfer(&dev.demo_account("bob"), &shop.account.name, "1.500 HBD", memo);
    shop.until_status(payment, "completed")
}

fn the_public_id_shows_little_of_a_final_session() {
    let shop = shared().shop();
    let payment = shop.open_with(&mug());
    let by_id = format!("/checkout/{}", payment.id);
    let record = pay(&shop, &payment.id, &payment.memo);
    let third_party = page(&shop.api, &by_id);
    has(&third_party, &["Paid", "1.500"]);
    let tx_id = record["internalId"].as_str().unwrap();
    for secret in ["mug", "shop.example", &shop.account.name, "Shop of", &payment.slug, tx_id] {
        assert!(!third_party.contains(secret), "{secret} in {third_party}");
    }
    let customer = page(&shop.api, &format!("/for/{}", payment.slug));
    has(&customer, &["Paid", "mug", "https://shop.example/thanks?order=7", tx_id]);
}

fn a_customer_cancels_with_a_plain_form() {
    let shop = shared().shop();
    for by_slug in [true, false] {
        let payment = shop.open_with(&mug());
        let slug = format!("/for/{}", payment.slug);
        let form = browse(&shop.api, &slug);
        has(&form.text(), &[&format!("action=\"{slug}/cancel\""), "Do not cancel if you have already sent it."]);
        let path = if by_slug { slug.clone() } else { format!("/checkout/{}", payment.id) };
        let cookie = form.header("set-cookie").expect("the page's token").to_owned();
        let token = cookie.split(['=', ';']).nth(1).filter(|_| !by_slug);
        let request = shop.api.request("POST", &format!("{path}/cancel")).header("accept", "text/html");
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let response = request.body(token.map(|token| format!("token={token}")).unwrap_or_default()).send();
        assert_eq!(response.status, 303, "{}", response.text());
        let onward = response.header("location").unwrap();
        assert!(onward.starts_with(&slug), "back to our own page: {onward}");
        shop.until_status(&payment.id, "user_cancelled");
        has(&page(&shop.api, onward), &["Cancelled", "https://shop.example/basket"]);
        assert_eq!(shop.payment(&payment.id)["cancelledBy"], "customer");
    }
}

fn a_cancelling_payment_rejects_wallets_and_claims() {
    let dev = crate::harness::Dev::start();
    let shop = dev.shop();
    let payment = shop.open_with(&mug());
    // No block is later than the cutoff, so that nothing is decided.
    dev.ledger.hold_irreversibility(true);
    let path = format!("/for/{}", payment.slug);
    shop.api.request("POST", &format!("{path}/cancel")).send().ok(200);
    has(&page(&dev.api, &path), &["Cancelling…"]);
    for path in [path.clone(), format!("/checkout/{}", payment.id)] {
        let refused = dev.api.get(&path).header("accept", "application/json").send();
        assert_eq!((refused.status, &refused.json()["error"]), (410, &json!("session_cancelling")), "{path}");
    }
    shop.api.request("POST", &format!("{path}/wallet")).send().refused(410, "session_cancelling");
    let signed = dev.ledger.signed(&dev.demo_account("bob"), &[(&shop.account.name, "1.500 HBD", &payment.memo)]);
    let signed: Value = serde_json::from_str(&signed.to_condenser_json()).expect("JSON");
    let body = json!({ "sessionId": payment.id, "paymentPayload": {
        "x402Version": 1, "scheme": "exact", "network": "hive:mainnet",
        "payload": { "signedTransaction": signed, "nonce": "cancelling" },
    } });
    let settled = dev.api.post("/api/public/x402/settle", &body).send().json();
    assert_eq!((&settled["success"], &settled["errorReason"]), (&json!(false), &json!("session_cancelling")));
    assert_eq!(shop.payment(&payment.id)["status"], "pending", "not decided yet");
    dev.ledger.hold_irreversibility(false);
    let over = shop.until_status(&payment.id, "user_cancelled");
    assert_eq!((&over["transfers"], &over["cancelledBy"]), (&json!([]), &json!("customer")));
}

fn a_cancellation_by_json_returns_a_short_status() {
    let shop = shared().shop();
    let payment = shop.open_payment();
    let cancel =
        || shop.api.request("POST", &format!("/for/{}/cancel", payment.slug)).header("accept", "application/json");
    let asked = cancel().send().ok(200);
    assert_eq!(asked, json!({ "id": payment.id, "status": "pending", "cancelRequested": true }));
    shop.until_status(&payment.id, "user_cancelled");
    let over = json!({ "id": payment.id, "status": "user_cancelled", "cancelRequested": true });
    assert_eq!(cancel().send().ok(200), over, "a repeat returns its outcome");
    let paid = shop.open_payment();
    pay(&shop, &paid.id, &paid.memo);
    let late = shop.api.request("POST", &format!("/for/{}/cancel", paid.slug)).send();
    late.refused(409, "payment_not_pending");
    let page = shop.api.request("POST", &format!("/for/{}/cancel", paid.slug)).header("accept", "text/html").send();
    assert_eq!(page.status, 409);
    has(&page.text(), &["<html", "Paid"]);
}

fn the_public_id_alone_cannot_cancel() {
    let (shop, other) = (shared().shop(), shared().shop().open_payment());
    let payment = shop.open_payment();
    let foreign = browse(&shop.api, &format!("/for/{}", other.slug)).header("set-cookie").unwrap().to_owned();
    let foreign = foreign.split(['=', ';']).nth(1).unwrap();
    let path = format!("/checkout/{}/cancel", payment.id);
    for body in [String::new(), "token=".into(), "token=00".into(), format!("token={foreign}"), "{}".into()] {
        let request = shop.api.request("POST", &path).header("content-type", "application/x-www-form-urlencoded");
        request.body(body).send().refused(403, "invalid_form_token");
    }
    assert_eq!(shop.payment(&payment.id)["status"], "pending");
}

fn the_live_status_follows_the_payment() {
    let shop = shared().shop();
    let payment = shop.open_payment();
    let paths = [format!("/for/{}/status", payment.slug), format!("/checkout/{}/status", payment.id)];
    for path in &paths {
        let status = shop.api.get(path).send().ok(200);
        assert_eq!((&status["status"], &status["phase"]), (&json!("pending"), &json!("waiting")));
        assert_eq!((&status["id"], &status["expired"]), (&json!(payment.id), &json!(false)));
    }
    pay(&shop, &payment.id, &payment.memo);
    for path in &paths {
        let status = shop.api.get(path).send().ok(200);
        assert_eq!((&status["status"], &status["phase"]), (&json!("completed"), &json!("completed")));
        assert!(status["completedAt"].is_string());
    }
}

/// Reads the events of a stream until it ends.
fn events(api: &Api, path: &str) -> Vec<Value> {
    let mut stream = TcpStream::connect(api.base.strip_prefix("http://").unwrap()).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\nconnection: close\r\n\r\n").unwrap();
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let data = lines.filter_map(|line| line.strip_prefix("data:").map(|data| data.trim().to_owned()));
    data.map(|data| serde_json::from_str(&data).expect("JSON")).collect()
}

fn the_stream_sends_every_change_and_ends() {
    let shop = shared().shop();
    let payment = shop.open_payment();
    let (api, path) = (shop.api.clone(), format!("/for/{}/events", payment.slug));
    let listener = crate::harness::background(move || events(&api, &path));
    // The listener gets the final state whether it or the payment comes first.
    pay(&shop, &payment.id, &payment.memo);
    until("the stream to end", || listener.is_finished().then_some(()));
    let events = listener.join().unwrap();
    assert_eq!(events.last().map(|event| &event["status"]), Some(&json!("completed")), "{events:?}");
    let after = self::events(&shop.api, &format!("/checkout/{}/events", payment.id));
    assert_eq!(after.len(), 1, "a final session sends one event");
    assert_eq!(after[0]["phase"], "completed");
}

fn a_final_page_links_back_to_the_shop() {
    let shop = shared().shop();
    let payment = shop.open_with(&mug());
    pay(&shop, &payment.id, &payment.memo);
    let paid = page(&shop.api, &format!("/for/{}", payment.slug));
    has(&paid, &["id=\"onward\" href=\"https://shop.example/thanks?order=7\""]);
    assert!(!paid.contains("hive://") && !paid.contains("<form"), "nothing left to pay or cancel: {paid}");
    assert!(!paid.contains("http-equiv"), "a final page does not redirect: {paid}");
}

fn an_unknown_url_is_html_for_browsers_and_json_for_programs() {
    let api = &shared().api;
    for path in ["/for/nothing", "/checkout/pay_00000000000000000000000000"] {
        let response = browse(api, path);
        assert_eq!(response.status, 404);
        has(&response.text(), &["<html", "Payment not found", response.header("x-request-id").unwrap()]);
        api.get(path).send().refused(404, "not_found");
    }
}
