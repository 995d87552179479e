//! The facade over a small engine and real sockets: every address, every refusal.

mod checkout;
mod error_bodies;
mod rest;
mod x402;

use std::{net::SocketAddr, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{
    Facade,
    fake_engine::{FakeEngine, KEY},
    server::{Limits, serve},
};

struct Site {
    address: SocketAddr,
    fake: FakeEngine,
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// Checks that this is the error body, whole, and returns its reason and the fields it names.
    fn error(&self) -> (u16, String, Vec<String>) {
        let body = self.json();
        assert_eq!(body["statusCode"], self.status, "{self:?}");
        assert!(!body["statusMessage"].as_str().expect("a message").is_empty());
        let expected = match self.status {
            400 | 422 => "VALIDATION_ERROR",
            401 => "AUTHENTICATION_ERROR",
            403 => "FORBIDDEN_ERROR",
            404 => "NOT_FOUND_ERROR",
            429 => "RATE_LIMIT_ERROR",
            500.. => "SERVER_ERROR",
            _ => "API_ERROR",
        };
        assert_eq!(body["code"], expected);
        assert_eq!(body["requestId"].as_str(), self.header("x-request-id").or(Some("")), "{self:?}");
        let details = body["details"].as_array().cloned().unwrap_or_default();
        let fields = details.iter().map(|detail| detail["field"].as_str().expect("a field").to_owned()).collect();
        (self.status, body["reason"].as_str().expect("a reason").to_owned(), fields)
    }
}

impl Site {
    async fn open() -> Self {
        Self::open_with(Limits::default()).await
    }

    async fn open_with(limits: Limits) -> Self {
        let fake = FakeEngine::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let facade = Facade::new(fake.engine(), "https://pay.example/", 7);
        tokio::spawn(serve(listener, facade, limits, std::future::pending()));
        Self { address, fake }
    }

    async fn raw(&self, request: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.expect("listening");
        // A refused request may be answered before it is read to its end.
        let _ = stream.write_all(request).await;
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut bytes)).await;
        read.expect("an answer in time").ok();
        let text = String::from_utf8(bytes).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.get(9..12).and_then(|code| code.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    async fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
        let request =
            format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{length}{headers}\r\n{body}");
        self.raw(request.as_bytes()).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &format!("x-api-key: {KEY}\r\n"), "").await
    }

    async fn post(&self, path: &str, body: &str) -> Answer {
        let headers = format!("authorization: Bearer {KEY}\r\ncontent-type: application/json\r\n");
        self.send("POST", path, &headers, body).await
    }

    async fn browse(&self, path: &str) -> Answer {
        self.send("GET", path, "accept: text/html,*/*\r\n", "").await
    }
}

const GOOD: &str = r#"{"amount":"10500","currency":"HBD","description":"Two mugs","redirectUrl":"https://shop.example/ok","metadata":{"orderId":"7","tags":["a","b"]}}"#;
