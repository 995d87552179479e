//! Limits from outside: how often a caller may ask, and what it is told when that is too often.

use serde_json::json;

use crate::harness::{Answer, Dev, order};

crate::tests!(
    dev_is_unlimited_unless_it_is_told_otherwise,
    a_key_that_writes_too_often_is_told_when_to_come_back,
    registering_is_limited_by_the_address_behind_a_trusted_proxy,
    who_guesses_keys_is_locked_out_and_others_are_not,
    a_page_watched_by_too_many_streams_refuses_one_more,
    payments_shown_too_often_are_refused_in_the_words_of_clients,
    strangers_do_not_use_up_the_attempts_of_a_payer,
);

/// Limits that are reached soon.
fn limited() -> Dev {
    Dev::with(&[
        "--limits",
        "production",
        "--set=trusted_proxies=127.0.0.1/32",
        "--set=limits.api_writes=1/min burst 3",
        "--set=limits.register=2/min",
        "--set=limits.checkout=6000/min",
        "--set=limits.streams_per_address=1",
    ])
}

#[track_caller]
fn too_many(answer: &Answer) -> u64 {
    answer.refused(429, "rate_limited");
    let wait = answer.header("retry-after").and_then(|seconds| seconds.parse().ok()).expect("seconds to wait");
    assert!(wait > 0, "{answer:?}");
    wait
}

fn register(dev: &Dev, account: &str, forwarded: &str) -> Answer {
    let body = json!({ "name": "Shop", "hiveAccount": account });
    dev.api.post("/api/public/merchants/register", &body).header("x-forwarded-for", forwarded).send()
}

fn dev_is_unlimited_unless_it_is_told_otherwise() {
    let dev = crate::harness::shared();
    let shop = dev.shop();
    for _ in 0..60 {
        let answer = shop.post("/api/public/payments", &order()).send();
        answer.ok(201);
        assert_eq!(answer.header("ratelimit"), None);
    }
}

fn a_key_that_writes_too_often_is_told_when_to_come_back() {
    let dev = limited();
    let shop = dev.shop();
    for left in [2, 1, 0] {
        let answer = shop.post("/api/public/payments", &order()).send();
        answer.ok(201);
        assert_eq!(answer.header("ratelimit-policy"), Some("\"writes\";q=3;w=180"));
        let state = format!("\"writes\";r={left};t=");
        assert!(answer.header("ratelimit").is_some_and(|shown| shown.starts_with(&state)), "{answer:?}");
    }
    let refused = shop.post("/api/public/payments", &order()).send();
    assert!(too_many(&refused) <= 60);
    assert!(refused.header("ratelimit").is_some_and(|shown| shown.starts_with("\"writes\";r=0;t=")), "{refused:?}");
    let list = shop.get("/api/public/payments").send().ok(200);
    assert_eq!(list["pagination"]["total"], 3, "a refused creation makes nothing, and reading goes on");
}

fn registering_is_limited_by_the_address_behind_a_trusted_proxy() {
    let dev = limited();
    let account = dev.ledger.account("shop").name;
    for _ in 0..2 {
        register(&dev, &account, "198.51.100.1, 2001:db8::1").ok(201);
    }
    too_many(&register(&dev, &account, "203.0.113.200, 2001:db8::2"));
    register(&dev, &account, "198.51.100.1, 2001:db8:0:1::1").ok(201);
}

fn who_guesses_keys_is_locked_out_and_others_are_not() {
    let dev = limited();
    let shop = dev.shop();
    let me = |key: &str, from: &str| {
        dev.api.get("/api/public/merchants/me").bearer(key).header("x-forwarded-for", from).send()
    };
    for n in 0..10 {
        me(&format!("sk_live_{n:048}"), "203.0.113.7").refused(401, "invalid_api_key");
    }
    assert!(too_many(&me("sk_live_x", "203.0.113.7")) > 500);
    too_many(&me(&shop.key, "203.0.113.7"));
    me(&shop.key, "203.0.113.8").ok(200);
}

fn a_page_watched_by_too_many_streams_refuses_one_more() {
    let dev = limited();
    let payment = dev.shop().open_payment();
    let path = format!("/for/{}/events", payment.slug);
    let address = dev.api.base.trim_start_matches("http://");
    let mut first = std::net::TcpStream::connect(address).expect("listening");
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
    std::io::Write::write_all(&mut first, request.as_bytes()).expect("sent");
    let mut start = [0; 12];
    std::io::Read::read_exact(&mut first, &mut start).expect("an answer");
    assert_eq!(&start, b"HTTP/1.1 200");
    too_many(&dev.api.get(&path).send());
    drop(first);
    crate::harness::until("the place to be free", || {
        // A stream that is open has no end: only the beginning of the answer is read.
        let mut again = std::net::TcpStream::connect(address).expect("listening");
        std::io::Write::write_all(&mut again, request.as_bytes()).expect("sent");
        let mut start = [0; 12];
        std::io::Read::read_exact(&mut again, &mut start).expect("an answer");
        (&start == b"HTTP/1.1 200").then_some(())
    });
}

fn payments_shown_too_often_are_refused_in_the_words_of_clients() {
    let body = json!({
        "sessionId": "pay_00000000000000000000000000",
        "paymentPayload": { "x402Version": 1, "scheme": "exact", "network": "hive:mainnet", "payload": {} },
    });
    let limited = Dev::with(&["--limits", "production", "--set=limits.x402=1/min"]);
    let ask = || limited.api.post("/api/public/x402/verify", &body).send();
    ask().ok(200);
    let refused = ask();
    assert_eq!((refused.status, refused.header("retry-after").is_some()), (429, true));
    let refused = refused.json();
    assert_eq!((&refused["isValid"], &refused["invalidReason"]), (&json!(false), &json!("rate_limited")));
    assert_eq!(refused["reason"], "rate_limited");
}

fn strangers_do_not_use_up_the_attempts_of_a_payer() {
    let dev = Dev::with(&["--limits", "production", "--set=trusted_proxies=127.0.0.1/32"]);
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let payment = shop.open_payment();
    let signed = dev.ledger.signed(&agent, &[(&shop.account.name, "1.500 HBD", &payment.memo)]);
    let whole: serde_json::Value = serde_json::from_str(&signed.to_condenser_json()).expect("JSON");
    let ask = |signatures: Option<serde_json::Value>, from: &str| {
        let mut transaction = whole.clone();
        transaction["signatures"] = signatures.unwrap_or_else(|| transaction["signatures"].clone());
        let payload = json!({ "x402Version": 1, "scheme": "exact", "network": "hive:mainnet",
            "payload": { "signedTransaction": transaction, "nonce": "n" } });
        let body = json!({ "sessionId": payment.id, "paymentPayload": payload });
        dev.api.post("/api/public/x402/settle", &body).header("x-forwarded-for", from).send()
    };
    // What cannot even be read costs no attempt.
    for _ in 0..12 {
        ask(Some(json!(["00"])), "203.0.113.8").ok(200);
    }
    for _ in 0..12 {
        ask(Some(json!([])), "203.0.113.7");
    }
    too_many(&ask(Some(json!([])), "203.0.113.7"));
    assert_eq!(ask(None, "203.0.113.8").ok(200)["success"], true);
}
