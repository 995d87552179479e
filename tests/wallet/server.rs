//! A server that returns any 402 response, for false offers.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener},
    sync::{Arc, Mutex, PoisonError},
};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use crate::harness::background;

/// A listening server; it returns the last set response to every request.
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    response: Vec<u8>,
    /// The headers of the received requests.
    requests: Vec<String>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let shared = Arc::new(Mutex::new(Shared { response: Vec::new(), requests: Vec::new() }));
        let served = Arc::clone(&shared);
        background(move || {
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream);
                let (mut head, mut length) = (String::new(), 0_usize);
                while reader.read_line(&mut head).is_ok_and(|read| read > 2) {}
                for line in head.to_lowercase().lines() {
                    if let Some(value) = line.strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap_or(0);
                    }
                }
                let mut body = vec![0; length];
                let _ = reader.read_exact(&mut body);
                let response = {
                    let mut shared = served.lock().unwrap_or_else(PoisonError::into_inner);
                    shared.requests.push(head);
                    shared.response.clone()
                };
                // Clients that disconnect early are part of the tests.
                let _ = reader.into_inner().write_all(&response);
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/report", self.address)
    }

    /// Sets the response: a status, headers and a body.
    pub(crate) fn respond(&self, status: u16, headers: &[(&str, String)], body: &str) {
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        let head =
            format!("HTTP/1.1 {status} Status\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n");
        self.locked().response = [head.as_bytes(), body.as_bytes()].concat();
    }

    /// Sets a 402 response with offers of version 2.
    pub(crate) fn offer(&self, accepts: &[Value]) {
        self.respond(402, &[("payment-required", required(&self.url(), accepts))], "{}");
    }

    /// Returns the number of requests with a payment.
    pub(crate) fn payments(&self) -> usize {
        let is_payment = |head: &&String| head.to_lowercase().contains("payment-signature:");
        self.locked().requests.iter().filter(is_payment).count()
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the header of a 402 response of version 2.
pub(crate) fn required(url: &str, accepts: &[Value]) -> String {
    let json = json!({ "x402Version": 2, "resource": { "url": url }, "accepts": accepts });
    BASE64_STANDARD.encode(json.to_string())
}

/// Returns an offer of version 2.
pub(crate) fn accept(pay_to: &str, units: u64, asset: &str) -> Value {
    json!({
        "scheme": "exact", "network": "hive:mainnet", "amount": units.to_string(), "asset": asset, "payTo": pay_to,
        "maxTimeoutSeconds": 60, "extra": {}
    })
}
