//! Rate limits, quotas and connection limits, and their error responses.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::{Value, json};

use crate::harness::{Api, Dev, Opened, Payer, Response, Stopwatch, background, order, until};

crate::tests!(
    dev_has_no_limits_by_default,
    a_key_above_its_write_limit_gets_a_retry_after,
    registration_is_limited_by_the_ip_address_behind_a_trusted_proxy,
    guessing_keys_locks_out_only_the_guesser,
    the_number_of_streams_of_a_page_is_limited,
    rate_limited_payments_get_x402_errors,
    all_keys_of_a_merchant_share_one_rate_limit,
    the_number_of_open_payments_is_limited,
    a_recently_used_key_is_not_locked_out_with_its_ip_address,
    cors_allows_api_keys_from_configured_origins_only,
    clients_that_never_read_do_not_block_others,
    the_health_port_responds_while_all_connections_are_taken,
    one_ip_address_cannot_take_all_connections_of_the_health_port,
    anonymous_requests_are_limited_by_ip_address,
    third_parties_do_not_exhaust_the_attempts_of_a_payer,
    malformed_payments_cost_no_attempt,
    the_key_lockout_applies_to_the_facilitator,
    the_facilitator_limits_sellers_by_merchant,
);

/// Starts a gateway with low limits.
fn limited() -> Dev {
    Dev::with(&[
        "--limits",
        "production",
        "--set=trusted_proxies=127.0.0.1/32",
        "--set=limits.api_writes=1/min burst 3",
        "--set=limits.register=2/min",
        "--set=limits.checkout=6000/min",
        "--set=limits.streams_per_ip=1",
    ])
}

#[track_caller]
fn too_many(response: &Response) -> u64 {
    response.refused(429, "rate_limited");
    let wait = response.header("retry-after").and_then(|seconds| seconds.parse().ok()).expect("seconds to wait");
    assert!(wait > 0, "{response:?}");
    wait
}

fn register(dev: &Dev, account: &str, forwarded: &str) -> Response {
    let body = json!({ "name": "Shop", "hiveAccount": account });
    dev.api.post("/api/public/merchants/register", &body).header("x-forwarded-for", forwarded).send()
}

fn dev_has_no_limits_by_default() {
    let dev = crate::harness::shared();
    let shop = dev.shop();
    for _ in 0..60 {
        let response = shop.post("/api/public/payments", &order()).send();
        response.ok(201);
        assert_eq!(response.header("ratelimit"), None);
    }
}

fn a_key_above_its_write_limit_gets_a_retry_after() {
    let dev = limited();
    let shop = dev.shop();
    for left in [2, 1, 0] {
        let response = shop.post("/api/public/payments", &order()).send();
        response.ok(201);
        assert_eq!(response.header("ratelimit-policy"), Some("\"writes\";q=3;w=180"));
        let state = format!("\"writes\";r={left};t=");
        assert!(response.header("ratelimit").is_some_and(|shown| shown.starts_with(&state)), "{response:?}");
    }
    let refused = shop.post("/api/public/payments", &order()).send();
    assert!(too_many(&refused) <= 60);
    assert!(refused.header("ratelimit").is_some_and(|shown| shown.starts_with("\"writes\";r=0;t=")), "{refused:?}");
    let list = shop.get("/api/public/payments").send().ok(200);
    assert_eq!(list["pagination"]["total"], 3, "a refused creation makes nothing, and reading goes on");
}

fn registration_is_limited_by_the_ip_address_behind_a_trusted_proxy() {
    let dev = limited();
    let account = dev.ledger.account("shop").name;
    for _ in 0..2 {
        register(&dev, &account, "198.51.100.1, 2001:db8::1").ok(201);
    }
    too_many(&register(&dev, &account, "203.0.113.200, 2001:db8::2"));
    register(&dev, &account, "198.51.100.1, 2001:db8:0:1::1").ok(201);
}

fn guessing_keys_locks_out_only_the_guesser() {
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

fn the_number_of_streams_of_a_page_is_limited() {
    let dev = limited();
    let payment = dev.shop().open_payment();
    let path = format!("/for/{}/events", payment.slug);
    let address = dev.api.base.trim_start_matches("http://");
    let mut first = TcpStream::connect(address).expect("listening");
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
    Write::write_all(&mut first, request.as_bytes()).expect("sent");
    let mut start = [0; 12];
    Read::read_exact(&mut first, &mut start).expect("a response");
    assert_eq!(&start, b"HTTP/1.1 200");
    too_many(&dev.api.get(&path).send());
    drop(first);
    until("the place to be free", || {
        // An open stream has no end: only the start of the response is read.
        let mut again = TcpStream::connect(address).expect("listening");
        Write::write_all(&mut again, request.as_bytes()).expect("sent");
        let mut start = [0; 12];
        Read::read_exact(&mut again, &mut start).expect("a response");
        (&start == b"HTTP/1.1 200").then_some(())
    });
}

fn rate_limited_payments_get_x402_errors() {
    let body = json!({
        "sessionId": "pay_00000000000000000000000000",
        "paymentPayload": { "x402Version": 1, "scheme": "exact", "network": "hive:mainnet", "payload": {} },
    });
    let limited = Dev::with(&["--limits", "production", "--set=limits.x402=1/min"]);
    let request = || limited.api.post("/api/public/x402/verify", &body).send();
    request().ok(200);
    let refused = request();
    assert_eq!((refused.status, refused.header("retry-after").is_some()), (429, true));
    let refused = refused.json();
    assert_eq!((&refused["isValid"], &refused["invalidReason"]), (&json!(false), &json!("rate_limited")));
    assert_eq!(refused["reason"], "rate_limited");
}

fn all_keys_of_a_merchant_share_one_rate_limit() {
    let dev = Dev::with(&["--limits", "production", "--set=limits.api_writes=1/min burst 20"]);
    let shop = dev.shop();
    let keys: Vec<String> = (0..10)
        .map(|_| {
            let path = format!("/api/public/merchants/{}/api-keys", shop.id);
            let made = shop.post(&path, &json!({ "scopes": ["payments:write"] })).send().ok(201);
            made["apiKey"].as_str().expect("a key").to_owned()
        })
        .collect();
    let create = |key: &str| dev.api.post("/api/public/payments", &order()).bearer(key).send();
    let made = keys.iter().chain(&keys).filter(|key| create(key).status == 201).count();
    assert_eq!(made, 10, "ten of twenty changes made the keys");
    too_many(&create(&keys[0]));
    let other = dev.shop();
    other.post("/api/public/payments", &order()).send().ok(201);
}

fn the_number_of_open_payments_is_limited() {
    let dev = Dev::with(&[
        "--limits",
        "production",
        "--set=limits.api_writes=6000/min burst 1000",
        "--set=limits.open_payments=8",
        "--set=limits.stored_bytes=20000",
    ]);
    let shop = dev.shop();
    let once = |key: &str| shop.post("/api/public/payments", &order()).header("idempotency-key", key).send();
    let first = once("first").ok(201);
    let creators: Vec<_> = (0..16)
        .map(|_| {
            let shop = shop.clone();
            background(move || shop.post("/api/public/payments", &order()).send())
        })
        .collect();
    let responses: Vec<Response> = creators.into_iter().map(|creator| creator.join().expect("a response")).collect();
    assert_eq!(responses.iter().filter(|response| response.status == 201).count(), 7, "and the first");
    let refused = responses.iter().find(|response| response.status != 201).expect("nine of them");
    refused.refused(429, "too_many_open_payments");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    shop.post("/api/public/payments/create", &order()).send().refused(429, "too_many_open_payments");
    assert_eq!(once("first").ok(201)["id"], first["id"], "a repeated request gets its response");
    dev.shop().open_payment();
    shop.cancelled(first["id"].as_str().expect("an id"));
    let next = shop.open_payment();
    once("second").refused(429, "too_many_open_payments");
    // Final payments count permanently.
    shop.cancelled(&next.id);
    let mut long = order();
    long["metadata"] =
        json!({ "a": "x".repeat(400), "b": "x".repeat(400), "c": "x".repeat(400), "d": "x".repeat(400) });
    let full = until("the bytes to be taken", || {
        let response = shop.post("/api/public/payments", &long).send();
        if response.status != 201 {
            return Some(response);
        }
        shop.cancelled(response.ok(201)["id"].as_str().expect("an id"));
        None
    });
    full.refused(429, "stored_bytes_reached");
}

fn a_recently_used_key_is_not_locked_out_with_its_ip_address() {
    let dev = limited();
    let (shop, third_party) = (dev.shop(), dev.shop());
    let me = |key: &str| {
        let request = dev.api.get("/api/public/merchants/me").bearer(key);
        request.header("x-forwarded-for", "203.0.113.7").send()
    };
    me(&shop.key).ok(200);
    for n in 0..10 {
        me(&format!("sk_live_{n:048}")).refused(401, "invalid_api_key");
    }
    too_many(&me(&format!("sk_live_{:048}", 99)));
    too_many(&me(&third_party.key));
    me(&shop.key).ok(200);
    let make = |key: &str| {
        let request = dev.api.post("/api/public/payments", &order()).bearer(key);
        request.header("x-forwarded-for", "203.0.113.7").send()
    };
    make(&shop.key).ok(201);
    let reissue = format!("/api/admin/merchants/{}/api-key", shop.id);
    dev.api.post(&reissue, &json!({})).bearer(dev.admin_key()).send().ok(200);
    me(&shop.key).refused(401, "invalid_api_key");
    too_many(&me(&shop.key));
}

fn cors_allows_api_keys_from_configured_origins_only() {
    let dev = Dev::with(&["--set=cors.key_origins=https://admin.example"]);
    let allowed = |origin: &str| {
        let builder = dev.api.request("OPTIONS", "/api/public/payments").header("origin", origin);
        let response = builder.header("access-control-request-headers", "x-api-key").send();
        let all = response.headers.get_all("access-control-allow-headers").iter();
        let all: Vec<String> = all.map(|value| value.to_str().expect("text").to_owned()).collect();
        let origin = response.header("access-control-allow-origin").unwrap_or_default().to_owned();
        (origin, all.join(", ").contains("x-api-key"))
    };
    assert_eq!(allowed("https://evil.example"), ("*".to_owned(), false));
    assert_eq!(allowed("null"), ("*".to_owned(), false));
    assert_eq!(allowed("https://admin.example"), ("https://admin.example".to_owned(), true));
}

/// Connects from another loopback address.
pub(crate) fn connect_from(from: Ipv4Addr, url: &str) -> TcpStream {
    let address = url.split_once("://").map_or(url, |(_, address)| address);
    let to: SocketAddr = address.parse().expect("an address");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
    let connected = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(from.into(), 0))?;
        socket.connect(to).await?.into_std()
    });
    let stream = connected.expect("the server listens");
    stream.set_nonblocking(false).expect("a setting");
    stream
}

/// Requests the health of the gateway from another address.
fn livez_from(from: Ipv4Addr, api: &Api) -> (bool, Duration) {
    let watch = Stopwatch::start();
    let mut stream = connect_from(from, &api.base);
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").expect("sent");
    let mut report = Vec::new();
    let _ = stream.read_to_end(&mut report);
    (report.starts_with(b"HTTP/1.1 200"), watch.elapsed())
}

/// Opens connections that send many requests and read no response.
fn deaf(from: Ipv4Addr, api: &Api, count: usize) -> Vec<TcpStream> {
    let request = b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n".repeat(50);
    let open = |_| {
        let mut stream = connect_from(from, &api.base);
        stream.set_nonblocking(true).expect("a setting");
        let _ = stream.write(&request);
        stream
    };
    (0..count).map(open).collect()
}

fn clients_that_never_read_do_not_block_others() {
    let dev = Dev::with(&[
        "--limits",
        "production",
        "--set=limits.connections=100",
        "--set=limits.write_timeout_ms=2000",
        "--set=limits.anonymous=100000/s burst 100000",
    ]);
    let deaf = deaf(Ipv4Addr::new(127, 0, 0, 2), &dev.api, 110);
    for _ in 0..5 {
        let (is_well, took) = livez_from(Ipv4Addr::new(127, 0, 0, 3), &dev.api);
        assert!(is_well && took < Duration::from_secs(1), "{took:?}");
    }
    until("the deaf to be cut off", || livez_from(Ipv4Addr::new(127, 0, 0, 2), &dev.api).0.then_some(()));
    drop(deaf);
}

fn the_health_port_responds_while_all_connections_are_taken() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port");
    let health = format!("--set=health.listen={port}");
    let dev = Dev::with(&["--set=limits.connections=10", "--set=limits.write_timeout_ms=600000", &health]);
    let health = Api::new(&format!("http://{port}"));
    let deaf = deaf(Ipv4Addr::new(127, 0, 0, 2), &dev.api, 12);
    for path in ["/livez", "/readyz", "/api/health"] {
        let watch = Stopwatch::start();
        health.get(path).send().ok(200);
        assert!(watch.elapsed() < Duration::from_secs(1), "{path}: {:?}", watch.elapsed());
    }
    health.get("/api/public/payments").send().refused(404, "unknown_route");
    drop(deaf);
}

fn one_ip_address_cannot_take_all_connections_of_the_health_port() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port");
    let health = format!("--set=health.listen={port}");
    // Only the limit of connections closes idle ones.
    let dev = Dev::with(&["--set=limits.head_timeout_ms=120000", &health]);
    let health = Api::new(&format!("http://{port}"));
    let silent: Vec<TcpStream> = (0..150).map(|_| connect_from(Ipv4Addr::new(127, 0, 0, 2), &health.base)).collect();
    for path in ["/livez", "/readyz", "/api/health"] {
        health.get(path).send().ok(200);
    }
    drop((silent, dev));
}

fn anonymous_requests_are_limited_by_ip_address() {
    let dev = Dev::with(&["--limits", "production", "--set=limits.anonymous=1/min burst 3"]);
    let read = || dev.api.get("/openapi.json").send();
    for _ in 0..3 {
        assert_eq!(read().status, 200);
    }
    too_many(&read());
    too_many(&dev.api.get("/api/public/payments").send());
    for page in ["/dashboard/login", "/dashboard", "/dashboard/payments"] {
        assert_eq!(dev.api.get(page).send().status, 429, "{page}");
    }
    dev.api.get("/livez").send().ok(200);
}

/// A session of a shop, and an agent's payments for it.
struct Session {
    dev: Dev,
    agent: Payer,
    payment: Opened,
    to: String,
}

impl Session {
    fn open(dev: Dev) -> Self {
        let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
        Self { agent, payment: shop.open_payment(), to: shop.account.name.clone(), dev }
    }

    /// Returns a signed transaction with these transfers.
    fn signed(&self, transfers: &[(&str, &str, &str)]) -> Value {
        let signed = self.dev.ledger.signed(&self.agent, transfers);
        serde_json::from_str(&signed.to_condenser_json()).expect("JSON")
    }

    /// Returns the transaction that pays.
    fn good(&self) -> Value {
        self.signed(&[(&self.to, "1.500 HBD", &self.payment.memo)])
    }

    /// Returns the same transaction signed with another account's key: only the payer's authority shows that it is
    /// invalid.
    fn forged(&self) -> Value {
        let third_party = self.dev.ledger.account("third.party");
        let foreign = self.dev.ledger.signed(&third_party, &[(&self.to, "1.500 HBD", &self.payment.memo)]);
        let foreign: Value = serde_json::from_str(&foreign.to_condenser_json()).expect("JSON");
        let mut forged = self.good();
        forged["signatures"] = foreign["signatures"].clone();
        forged
    }

    fn payload(transaction: &Value) -> Value {
        json!({ "x402Version": 1, "scheme": "exact", "network": "hive:mainnet",
            "payload": { "signedTransaction": transaction, "nonce": "n" } })
    }

    fn settle(&self, transaction: &Value, from: &str) -> Response {
        let body = json!({ "sessionId": self.payment.id, "paymentPayload": Self::payload(transaction) });
        self.dev.api.post("/api/public/x402/settle", &body).header("x-forwarded-for", from).send()
    }
}

fn third_parties_do_not_exhaust_the_attempts_of_a_payer() {
    let session = Session::open(Dev::with(&["--limits", "production", "--set=trusted_proxies=127.0.0.1/32"]));
    // Unreadable payments cost no attempt.
    let mut unreadable = session.good();
    unreadable["signatures"] = json!(["00"]);
    for _ in 0..12 {
        session.settle(&unreadable, "203.0.113.8").ok(200);
    }
    let forged = session.forged();
    for _ in 0..12 {
        session.settle(&forged, "203.0.113.7");
    }
    assert_eq!(session.settle(&forged, "203.0.113.7").ok(429)["errorReason"], "rate_limited");
    assert_eq!(session.settle(&session.good(), "203.0.113.8").ok(200)["success"], true);
}

fn malformed_payments_cost_no_attempt() {
    let session = Session::open(Dev::with(&[
        "--limits",
        "production",
        "--set=trusted_proxies=127.0.0.1/32",
        "--set=limits.x402=6000/min burst 1000",
        "--set=limits.checkout=6000/min burst 1000",
    ]));
    let (to, memo, home) = (session.to.as_str(), session.payment.memo.as_str(), "203.0.113.9");
    let mut unsigned = session.good();
    unsigned["signatures"] = json!([]);
    let bad = [
        (unsigned, "invalid_exact_hive_payload_authority"),
        (session.signed(&[("alice", "1.500 HBD", memo)]), "invalid_exact_hive_payload_recipient_mismatch"),
        (session.signed(&[(to, "1.499 HBD", memo)]), "invalid_exact_hive_payload_amount"),
        (session.signed(&[(to, "1.500 HIVE", memo)]), "invalid_exact_hive_payload_asset_mismatch"),
        (session.signed(&[(to, "1.500 HBD", "a mug")]), "invalid_exact_hive_payload_memo_mismatch"),
        (session.signed(&[(to, "1.500 HBD", memo), (to, "1.500 HBD", memo)]), "invalid_exact_hive_payload_operations"),
    ];
    for (transaction, reason) in &bad {
        for _ in 0..4 {
            assert_eq!(session.settle(transaction, home).ok(200)["errorReason"], *reason);
        }
    }
    let path = format!("/for/{}", session.payment.slug);
    let show = |transaction: &Value| {
        let header = engine::x402::encode_header(&Session::payload(transaction).to_string());
        session.dev.api.get(&path).header("x-payment", &header).header("x-forwarded-for", home).send()
    };
    for (transaction, _) in &bad {
        for _ in 0..4 {
            assert_eq!(show(transaction).status, 402);
        }
    }
    // Ten payments whose signatures had to be checked reach the limit, at any endpoint.
    let forged = session.forged();
    for n in 0..10 {
        let response = if n % 2 == 0 { show(&forged) } else { session.settle(&forged, home) };
        assert!([402, 200].contains(&response.status), "{n}: {response:?}");
    }
    assert_eq!(session.settle(&session.good(), home).ok(429)["errorReason"], "rate_limited");
    too_many(&show(&session.good()));
    assert_eq!(session.settle(&session.good(), "203.0.113.10").ok(200)["success"], true);
}

/// Returns an invalid payment for a session that does not exist, which still gets a verdict.
fn nothing() -> Value {
    json!({ "sessionId": "pay_00000000000000000000000000",
        "paymentPayload": { "x402Version": 1, "scheme": "exact", "network": "hive:mainnet", "payload": {} } })
}

/// Asserts that a response has the members that facilitator clients read.
#[track_caller]
fn judged(path: &str, body: &Value, reason: &str) {
    match path {
        "verify" => assert_eq!((&body["isValid"], &body["invalidReason"]), (&json!(false), &json!(reason))),
        "settle" => assert_eq!((&body["success"], &body["errorReason"]), (&json!(false), &json!(reason))),
        _ => assert!(body["reason"].is_string()),
    }
}

fn the_key_lockout_applies_to_the_facilitator() {
    let dev = limited();
    let request = |path: &str, key: &str, from: &str| {
        let path = format!("/api/public/x402/{path}");
        let request = match path.contains("sales") {
            true => dev.api.get(&path),
            false => dev.api.post(&path, &nothing()),
        };
        request.bearer(key).header("x-forwarded-for", from).send()
    };
    for (place, path) in ["sales", "sales/export", "verify", "settle"].into_iter().enumerate() {
        let from = format!("203.0.113.{place}");
        for n in 0..10 {
            let refused = request(path, &format!("sk_live_{n:048}"), &from).ok(401);
            assert_eq!(refused["reason"], "invalid_api_key");
            judged(path, &refused, "invalid_payload");
        }
        let locked = request(path, &format!("sk_live_{:048}", 99), &from);
        assert!(locked.header("retry-after").is_some_and(|seconds| seconds.len() == 3), "{path}: {locked:?}");
        judged(path, &locked.ok(429), "rate_limited");
        // The lockout applies everywhere.
        let me = dev.api.get("/api/public/merchants/me").bearer("sk_live_x").header("x-forwarded-for", &from);
        too_many(&me.send());
    }
}

fn the_facilitator_limits_sellers_by_merchant() {
    let dev = Dev::with(&[
        "--limits",
        "production",
        "--set=trusted_proxies=127.0.0.1/32",
        "--set=limits.x402=1/min",
        "--set=limits.api_writes=1/min burst 4",
        "--set=limits.api_reads=1/min burst 3",
        "--set=limits.export=1/min",
    ]);
    let (shop, other) = (dev.shop(), dev.shop());
    let judge = |path: &str, key: Option<&str>, from: &str| {
        let request = dev.api.post(&format!("/api/public/x402/{path}"), &nothing()).header("x-forwarded-for", from);
        key.into_iter().fold(request, |request, key| request.bearer(key)).send()
    };
    judge("verify", None, "203.0.113.1").ok(200);
    judged("settle", &judge("settle", None, "203.0.113.1").ok(429), "rate_limited");
    // The merchant's own quota applies behind the same address and behind others.
    for (n, path) in ["settle", "verify", "settle", "verify"].into_iter().enumerate() {
        judge(path, Some(&shop.key), &format!("203.0.113.{}", n + 1)).ok(200);
    }
    for (path, from) in [("settle", "203.0.113.5"), ("verify", "203.0.113.6")] {
        judged(path, &judge(path, Some(&shop.key), from).ok(429), "rate_limited");
    }
    judge("settle", Some(&other.key), "203.0.113.1").ok(200);
    let sales = |rest: &str| shop.get(&format!("/api/public/x402/sales{rest}")).send();
    sales("/export?format=json").ok(200);
    too_many(&sales("/export?format=json"));
    let policy = sales("").header("ratelimit-policy").map(str::to_owned);
    assert_eq!(policy.as_deref(), Some("\"reads\";q=3;w=180"));
    too_many(&sales(""));
}
