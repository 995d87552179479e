//! What is no good request, and how the server ends.

use std::{sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{GOOD, Site};
use crate::facade::{
    Facade,
    fake_engine::{FakeEngine, KEY, SLUG},
    server::{Limits, serve},
};

#[tokio::test]
async fn what_is_no_address_or_no_method_says_so() {
    let site = Site::open().await;
    for path in [
        "/",
        "/api",
        "/api/",
        "/api/public",
        "/nothing",
        "/api/public/payments/x/y/z",
        "/a/b/c/d/e/f/g/h",
        "/assets/x.js",
    ] {
        assert_eq!(site.get(path).await.error(), (404, "unknown_route".to_owned(), Vec::new()), "{path}");
    }
    for (method, path, allow) in [
        ("DELETE", "/api/public/payments", "GET, POST, OPTIONS"),
        ("GET", "/api/public/payments/create", "POST, OPTIONS"),
        ("POST", "/api/public/payments/list", "GET, OPTIONS"),
        ("PATCH", "/api/public/merchants/mer_1", "GET, POST, PUT, OPTIONS"),
        ("POST", "/api/health", "GET, OPTIONS"),
    ] {
        let answer = site.send(method, path, "", "").await;
        assert_eq!(answer.error(), (405, "method_not_allowed".to_owned(), Vec::new()), "{method} {path}");
        assert_eq!(answer.header("allow"), Some(allow));
    }
    let options = site.send("OPTIONS", "/api/public/payments", "origin: https://shop.example\r\n", "").await;
    assert_eq!((options.status, options.header("allow")), (204, Some("GET, POST, OPTIONS")));
    assert_eq!(options.header("access-control-allow-origin"), Some("*"));
    let head = site.send("HEAD", "/api/health", "", "").await;
    assert_eq!((head.status, &*head.body), (200, ""));
    let length = site.get("/api/health").await.body.len().to_string();
    assert_eq!(head.header("content-length"), Some(length.as_str()));
}

#[tokio::test]
async fn what_is_too_large_or_no_json_is_refused_with_the_error_body() {
    let site = Site::open().await;
    let big = format!(r#"{{"description":"{}"}}"#, "x".repeat(64 * 1024));
    assert_eq!(site.post("/api/public/payments", &big).await.error(), (413, "body_too_large".to_owned(), Vec::new()));
    let chunks: String = (0..70).map(|_| format!("400\r\n{}\r\n", "x".repeat(1_024))).collect();
    let chunked = format!(
        "POST /api/public/payments HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-api-key: {KEY}\r\ntransfer-encoding: chunked\r\n\r\n{chunks}0\r\n\r\n"
    );
    assert_eq!(site.raw(chunked.as_bytes()).await.error().0, 413);

    let form = format!("x-api-key: {KEY}\r\ncontent-type: application/x-www-form-urlencoded\r\n");
    let answer = site.send("POST", "/api/public/payments", &form, "amount=1").await;
    assert_eq!(answer.error(), (415, "unsupported_media_type".to_owned(), Vec::new()));
    let untyped = site.send("POST", "/api/public/payments", &format!("x-api-key: {KEY}\r\n"), GOOD).await;
    assert_eq!(untyped.status, 201, "a body without a type is read as JSON");

    for bytes in [33 * 1024, 63 * 1024, 200 * 1024] {
        let header = format!("x-padding: {}\r\n", "x".repeat(bytes));
        let answer = site.send("GET", "/api/health", &header, "").await;
        assert_eq!((answer.status, &*answer.error().1), (431, "headers_too_large"), "{bytes}");
    }
    let many: String = (0..150).map(|n| format!("x-{n}: 1\r\n")).collect();
    assert_eq!(site.send("GET", "/api/health", &many, "").await.error().0, 431);
    let long = format!("/api/public/payments?query={}", "x".repeat(9_000));
    assert_eq!(site.get(&long).await.error(), (414, "uri_too_long".to_owned(), Vec::new()));
    for nonsense in ["\u{16}\u{3}\u{1}hello\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/1.1\r\nbad header\r\n\r\n"] {
        assert_eq!(site.raw(nonsense.as_bytes()).await.error().1, "bad_request", "{nonsense:?}");
    }
}

#[tokio::test]
async fn slow_heads_and_slow_bodies_are_not_waited_for() {
    let soon = Duration::from_millis(200);
    let limits = Limits { head_timeout: soon, body_timeout: soon, ..Limits::default() };
    let site = Site::open_with(limits).await;
    let answer = site.raw(b"GET /api/health HTTP/1.1\r\nhost: x\r\nx-slow: ").await;
    assert_eq!(answer.head, "", "the connection is closed without a word");
    let body = format!(
        "POST /api/public/payments HTTP/1.1\r\nhost: x\r\nx-api-key: {KEY}\r\ncontent-length: 50\r\n\r\n{{\"amount\""
    );
    let answer = site.raw(body.as_bytes()).await;
    assert_eq!(answer.error(), (408, "request_timeout".to_owned(), Vec::new()));
}

/// Reads until the server closes; panics where it does not.
async fn until_closed(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut bytes)).await;
    // A reset is an end, too.
    let _ = read.expect("the server closes");
    bytes
}

#[tokio::test]
async fn a_connection_that_is_not_used_again_is_closed_and_one_that_is_used_is_kept() {
    let limits = Limits { idle_timeout: Duration::from_millis(600), ..Limits::default() };
    let site = Site::open_with(limits).await;
    let mut stream = TcpStream::connect(site.address).await.expect("listening");
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        stream.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("kept");
        let mut start = [0; 15];
        stream.read_exact(&mut start).await.expect("an answer");
        assert_eq!(&start, b"HTTP/1.1 200 OK");
        let mut rest = vec![0; 4_096];
        while !rest.windows(15).any(|window| window == b"{\"status\":\"ok\"}") {
            let count = stream.read(&mut rest).await.expect("the rest");
            assert!(count > 0, "closed too early");
        }
    }
    assert_eq!(until_closed(&mut stream).await, b"");
}

#[tokio::test]
async fn who_never_reads_its_answers_is_cut_off() {
    let limits = Limits { write_timeout: Duration::from_millis(500), ..Limits::default() };
    let site = Site::open_with(limits).await;
    let mut stream = TcpStream::connect(site.address).await.expect("listening");
    // Far more than all buffers on the way hold.
    let request = b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n".repeat(400);
    let sent = tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            if stream.write_all(&request).await.is_err() {
                break;
            }
        }
    });
    sent.await.expect("the server closes the connection of who reads nothing");
    assert_eq!(site.get("/livez").await.status, 200);
}

#[tokio::test]
async fn a_reader_of_a_few_bytes_a_second_is_cut_off() {
    let limits = Limits { write_timeout: Duration::from_millis(500), ..Limits::default() };
    let site = Site::open_with(limits).await;
    let mut stream = TcpStream::connect(site.address).await.expect("listening");
    let (mut reader, mut writer) = stream.split();
    let request = b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n".repeat(400);
    let reads = async {
        loop {
            tokio::time::sleep(Duration::from_millis(50)).await;
            match reader.read(&mut [0]).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
    };
    let writes = async { while writer.write_all(&request).await.is_ok() {} };
    // What has arrived before the reset is still there to read.
    let either = async {
        tokio::select! { () = reads => {}, () = writes => {} }
    };
    tokio::time::timeout(Duration::from_secs(60), either).await.expect("the server gives up");
}

#[tokio::test]
async fn one_address_has_so_many_connections_and_is_told_so() {
    let limits = Limits { connections: 8, connections_per_ip: Some(100), ..Limits::default() };
    let site = Site::open_with(limits).await;
    let mut open = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(site.address).await.expect("listening");
        stream.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("sent");
        stream.read_exact(&mut [0; 15]).await.expect("an answer: half of all connections are one address's");
        open.push(stream);
    }
    let mut refused = TcpStream::connect(site.address).await.expect("listening");
    let said = String::from_utf8_lossy(&until_closed(&mut refused).await).into_owned();
    assert!(said.starts_with("HTTP/1.1 429") && said.contains("rate_limited"), "{said}");
    assert!(said.contains("retry-after: 1"), "{said}");
    open.pop();
    let again = async {
        while site.get("/livez").await.status != 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), again).await.expect("a place is free again");
}

#[tokio::test]
async fn health_has_a_listener_of_its_own_that_tells_nothing_else() {
    let facade = Facade::new(FakeEngine::new().engine(), "https://pay.example", 7);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let limits = Limits::default().for_health();
    tokio::spawn(crate::facade::server::serve_health(listener, facade, limits, std::future::pending()));
    let site = Site { address, fake: FakeEngine::new() };
    for path in ["/livez", "/readyz", "/api/health"] {
        assert_eq!(site.get(path).await.status, 200, "{path}");
    }
    for path in ["/api/public/payments", "/openapi.json", "/for/x", "/dashboard"] {
        assert_eq!(site.get(path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn the_description_is_sent_once_to_who_has_it() {
    let site = Site::open().await;
    for path in ["/openapi.json", "/docs"] {
        let whole = site.send("GET", path, "", "").await;
        let tag = whole.header("etag").expect("a tag").to_owned();
        assert_eq!((whole.status, whole.header("cache-control")), (200, Some("public, max-age=300")));
        for known in [tag.clone(), format!("W/{tag}"), format!("\"other\", {tag}"), "*".to_owned()] {
            let again = site.send("GET", path, &format!("if-none-match: {known}\r\n"), "").await;
            assert_eq!((again.status, again.body.as_str()), (304, ""), "{path} {known}");
            assert_eq!(again.header("etag"), Some(tag.as_str()));
        }
        let other = site.send("GET", path, "if-none-match: \"other\"\r\n", "").await;
        assert_eq!((other.status, other.body), (200, whole.body));
    }
}

#[tokio::test]
async fn no_web_page_may_send_an_api_key() {
    let site = Site::open().await;
    for path in ["/api/public/payments", "/api/public/merchants/me", "/api/public/x402/settle"] {
        let headers = "origin: https://evil.example\r\naccess-control-request-headers: x-api-key\r\n";
        let preflight = site.send("OPTIONS", path, headers, "").await;
        let allowed = preflight.header("access-control-allow-headers").expect("headers").to_ascii_lowercase();
        assert!(!allowed.contains("api-key") && !allowed.contains("authorization"), "{path}: {allowed}");
    }
}

#[tokio::test]
async fn streams_ask_proxies_not_to_keep_them_back() {
    let site = Site::open().await;
    let events = site.send("GET", &format!("/for/{SLUG}/events"), "", "").await;
    assert_eq!((events.status, events.header("x-accel-buffering")), (200, Some("no")));
}

#[tokio::test]
async fn every_answer_names_its_request() {
    let site = Site::open().await;
    for path in ["/api/health", "/nothing", "/assets/checkout.css", "/for/x"] {
        assert!(site.get(path).await.header("x-request-id").is_some_and(|id| id.starts_with("req_")), "{path}");
    }
    let answer = site.send("GET", "/nothing", "x-request-id: order-7\r\n", "").await;
    assert_eq!(answer.header("x-request-id"), Some("order-7"));
    assert_eq!(answer.json()["requestId"], "order-7");
}

#[tokio::test]
async fn a_stopping_server_ends_the_streams_that_have_no_end() {
    let fake = FakeEngine::new();
    fake.stay_open();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let facade = Facade::new(fake.engine(), "https://pay.example", 7);
    let stop = Arc::new(tokio::sync::Notify::new());
    let stopped = Arc::clone(&stop);
    let server = tokio::spawn(serve(listener, facade, Limits::default(), async move { stopped.notified().await }));
    let mut stream = TcpStream::connect(address).await.expect("listening");
    let request = format!("GET /for/{SLUG}/events HTTP/1.1\r\nhost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut seen = String::new();
    while !seen.contains("event:status") {
        let mut some = [0; 512];
        let read = stream.read(&mut some).await.expect("an event");
        seen.push_str(&String::from_utf8_lossy(&some[..read]));
    }
    stop.notify_one();
    tokio::time::timeout(Duration::from_secs(5), server).await.expect("the server ends").expect("without panic");
}

#[tokio::test]
async fn a_stopping_server_lets_running_requests_end() {
    let fake = FakeEngine::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let facade = Facade::new(fake.engine(), "https://pay.example", 7);
    let stop = Arc::new(tokio::sync::Notify::new());
    let stopped = Arc::clone(&stop);
    let server = tokio::spawn(serve(listener, facade, Limits::default(), async move { stopped.notified().await }));
    let mut running = TcpStream::connect(address).await.expect("listening");
    let head = format!(
        "POST /api/public/payments HTTP/1.1\r\nhost: x\r\nx-api-key: {KEY}\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\r\n",
        GOOD.len()
    );
    running.write_all(head.as_bytes()).await.expect("sent");
    // The interim answer shows that the request is being handled.
    let mut interim = [0; 25];
    running.read_exact(&mut interim).await.expect("an interim answer");
    assert!(interim.starts_with(b"HTTP/1.1 100"));
    stop.notify_one();
    running.write_all(GOOD.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    running.read_to_string(&mut answer).await.expect("an answer, then the end");
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    tokio::time::timeout(Duration::from_secs(5), server).await.expect("the server ends").expect("without panic");
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
    assert_eq!(fake.payment.lock().expect("one test").amount_units, 10_500);
}
