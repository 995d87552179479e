//! Below the interface: oversized, slow and malformed requests.

use std::{io::Write, net::TcpStream, time::Duration};

use serde_json::json;

use crate::harness::{Dev, Stopwatch, order, raw, shared};

crate::tests!(
    a_body_above_the_limit_is_rejected,
    headers_above_the_limit_are_rejected,
    a_url_above_the_limit_is_rejected,
    malformed_requests_get_a_response,
    a_truncated_body_creates_nothing,
    slow_headers_are_disconnected_and_block_nobody,
    requests_can_be_pipelined_on_a_connection,
);

fn a_body_above_the_limit_is_rejected() {
    let shop = shared().shop();
    for size in [64 * 1024 + 1, 1 << 20, 3 << 20] {
        let mut body = order();
        body["filler"] = json!("x".repeat(size));
        shop.post("/api/public/payments", &body).send().refused(413, "body_too_large");
    }
    let fits = format!("{}{}", order(), " ".repeat(60 * 1024));
    let request = shop.api.request("POST", "/api/public/payments").x_api_key(&shop.key).body(fits);
    request.header("content-type", "application/json").send().ok(201);

    let announced = format!(
        "POST /api/public/payments HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\ncontent-type: application/json\r\n\
         content-length: 99999999999\r\n\r\n{{",
        shop.key
    );
    raw(&shop.api, announced.as_bytes()).expect("a response").refused(413, "body_too_large");
    let mut chunked = format!(
        "POST /api/public/payments HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\n\r\n",
        shop.key
    )
    .into_bytes();
    for _ in 0..80 {
        chunked.extend_from_slice(b"400\r\n");
        chunked.extend_from_slice(&[b' '; 1024]);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    raw(&shop.api, &chunked).expect("a response").refused(413, "body_too_large");
    assert_eq!(shop.get("/api/public/payments").send().ok(200)["pagination"]["total"], 1);
}

fn headers_above_the_limit_are_rejected() {
    let api = &shared().api;
    for (count, size) in [(1, 40 * 1024), (40, 1024), (90, 600)] {
        let mut request = "GET /api/health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n".to_owned();
        for number in 0..count {
            request += &format!("x-filler-{number}: {}\r\n", "x".repeat(size));
        }
        request += "\r\n";
        let response = raw(api, request.as_bytes()).expect("a response");
        assert_eq!(response.status, 431, "{count} headers of {size}: {}", response.text());
        assert_eq!(response.json()["reason"], "headers_too_large");
    }
    for (count, size) in [(1, 1 << 20), (5_000, 100)] {
        let mut request = "GET /api/health HTTP/1.1\r\nhost: x\r\n".to_owned();
        for number in 0..count {
            request += &format!("x-filler-{number}: {}\r\n", "x".repeat(size));
        }
        // Far beyond the limit the server closes while the client still sends; the response may not arrive.
        if let Some(response) = raw(api, format!("{request}\r\n").as_bytes()) {
            assert_eq!(response.status, 431, "{}", response.text());
            assert_eq!(response.json()["reason"], "headers_too_large");
        }
    }
    let mut fits = "GET /api/health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n".to_owned();
    fits += &format!("x-filler: {}\r\n\r\n", "x".repeat(20 * 1024));
    raw(api, fits.as_bytes()).expect("a response").ok(200);
}

fn a_url_above_the_limit_is_rejected() {
    let shop = shared().shop();
    let long = "x".repeat(9 * 1024);
    for path in [format!("/{long}"), format!("/api/public/payments?query={long}"), format!("/for/{long}")] {
        shop.get(&path).send().refused(414, "uri_too_long");
    }
}

fn malformed_requests_get_a_response() {
    let api = &shared().api;
    for request in [
        &b"\r\n\r\nhello\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"G\x00T / HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\ncontent-length: ten\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS client's hello \r\n\r\n",
    ] {
        let response = raw(api, request).unwrap_or_else(|| panic!("no response to {request:?}"));
        assert!((400..500).contains(&response.status), "{request:?}: {}", response.status);
        assert_eq!(response.json()["statusCode"], response.status, "{request:?}");
    }
}

fn a_truncated_body_creates_nothing() {
    let shop = shared().shop();
    let body = order().to_string();
    let address = shop.api.base.strip_prefix("http://").unwrap();
    for sent in [0, 10, body.len() - 1] {
        let mut stream = TcpStream::connect(address).unwrap();
        let head = format!(
            "POST /api/public/payments HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{}",
            shop.key,
            body.len(),
            &body[..sent]
        );
        stream.write_all(head.as_bytes()).unwrap();
    }
    let chunked = format!(
        "POST /api/public/payments HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\ntransfer-encoding: chunked\r\n\
         connection: close\r\n\r\nzz\r\n",
        shop.key
    );
    let response = raw(&shop.api, chunked.as_bytes()).expect("a response");
    assert_eq!(response.status, 400, "{}", response.text());
    assert_eq!(shop.get("/api/public/payments").send().ok(200)["pagination"]["total"], 0);
}

fn slow_headers_are_disconnected_and_block_nobody() {
    let dev = Dev::with(&["--set=limits.head_timeout_ms=500"]);
    let address = dev.api.base.strip_prefix("http://").unwrap();
    let slow: Vec<TcpStream> = (0..50)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET /api/health HTTP/1.1\r\nhost: x\r\nx-slow: ").unwrap();
            stream
        })
        .collect();
    dev.api.get("/api/health").send().ok(200);
    let watch = Stopwatch::start();
    let response = raw(&dev.api, b"GET /api/health HTTP/1.1\r\nhost: x\r\n");
    assert!(watch.elapsed() < Duration::from_secs(10), "a slow head was waited for: {:?}", watch.elapsed());
    if let Some(response) = response {
        assert!((400..500).contains(&response.status), "{}", response.status);
    }
    drop(slow);
    dev.api.get("/api/health").send().ok(200);
}

fn requests_can_be_pipelined_on_a_connection() {
    let shop = shared().shop();
    let post = |body: &str, last: &str| {
        format!(
            "POST /api/public/payments HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n{last}\r\n{body}",
            shop.key,
            body.len()
        )
    };
    let body = order().to_string();
    let both = post(&body, "") + &post("{", "") + &post(&body, "connection: close\r\n");
    let response = raw(&shop.api, both.as_bytes()).expect("a response");
    assert_eq!(response.status, 201);
    let rest = response.text();
    assert_eq!(rest.matches("HTTP/1.1 400").count(), 1, "{rest}");
    assert_eq!(rest.matches("HTTP/1.1 201").count(), 1, "{rest}");
    assert_eq!(shop.get("/api/public/payments").send().ok(200)["pagination"]["total"], 2);
}
