//! A merchant's webhook endpoint: records every request and returns the configured responses.

use std::{
    collections::{BTreeSet, VecDeque},
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use sha2::Sha256;

use super::wait::{TIMEOUT, background, pause, until};

/// One request as received.
#[derive(Debug, Clone)]
pub(crate) struct Hook {
    pub(crate) head: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Hook {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a body of JSON")
    }

    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).unwrap_or_else(|| panic!("no {name} in {:?}", self.headers));
        value.to_str().expect("a text")
    }

    /// Verifies both families of signatures as receivers do.
    #[track_caller]
    pub(crate) fn verify(&self, secret: &str) {
        assert!(self.is_signed_by_legacy_rule("x-hivetill-signature", secret), "the legacy signature is wrong");
        let standard = standardwebhooks::Webhook::new(secret).expect("a secret of the standard's form");
        standard.verify(&self.body, &self.headers).expect("the standard's own library verifies it");
    }

    /// Returns whether both families of signatures were made with this secret.
    pub(crate) fn is_signed_by(&self, secret: &str) -> bool {
        let standard = standardwebhooks::Webhook::new(secret).expect("a secret of the standard's form");
        self.is_signed_by_legacy_rule("x-hivetill-signature", secret)
            && standard.verify(&self.body, &self.headers).is_ok()
    }

    /// Returns whether a header is the hex HMAC-SHA256 over `{ms}.{raw body}` with the whole text of the secret as the
    /// key.
    pub(crate) fn is_signed_by_legacy_rule(&self, header: &str, secret: &str) -> bool {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any key");
        mac.update(self.header("x-hivetill-timestamp").as_bytes());
        mac.update(b".");
        mac.update(&self.body);
        self.header(header) == hex::encode(mac.finalize().into_bytes())
    }
}

/// The response to a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reply {
    /// Responds with a status.
    Status(u16),
    /// Responds with a redirect.
    Redirect(SocketAddr),
    /// Closes the connection without a response.
    CloseConnection,
}

/// A listening endpoint. By default it responds with 200.
pub(crate) struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    hooks: Mutex<Vec<Hook>>,
    replies: Mutex<VecDeque<Reply>>,
    closed: AtomicBool,
    /// Every n-th event is rejected at its first attempt; 0 rejects none.
    stumbles_every: AtomicUsize,
    known: Mutex<BTreeSet<String>>,
}

impl Shared {
    fn stumbles_at(&self, hook: &Hook) -> bool {
        let mut known = locked(&self.known);
        let every = self.stumbles_every.load(Ordering::SeqCst);
        known.insert(hook.header("webhook-id").to_owned()) && every > 0 && known.len().is_multiple_of(every)
    }
}

impl Receiver {
    pub(crate) fn start() -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").expect("a free port"))
    }

    fn on(listener: TcpListener) -> Self {
        let address = listener.local_addr().expect("bound");
        let shared = Arc::new(Shared::default());
        let served = Arc::clone(&shared);
        background(move || {
            for stream in listener.incoming() {
                if served.closed.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(stream), served) = (stream, Arc::clone(&served)) else { continue };
                background(move || serve(&stream, &served));
            }
        });
        Self { address, shared }
    }

    /// Listens at the address of an earlier endpoint.
    pub(crate) fn again_at(address: SocketAddr) -> Self {
        Self::on(until("the address to be free", || TcpListener::bind(address).ok()))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook?shop=7", self.address)
    }

    /// Sets the next responses, one for each request.
    pub(crate) fn reply(&self, replies: &[Reply]) {
        locked(&self.shared.replies).extend(replies);
    }

    /// Responds with 500 to the first attempt of every n-th event: a second failure would delay the test.
    pub(crate) fn fail_every(&self, every: usize) {
        self.shared.stumbles_every.store(every, Ordering::SeqCst);
    }

    /// Returns the requests so far.
    pub(crate) fn hooks(&self) -> Vec<Hook> {
        locked(&self.shared.hooks).clone()
    }

    /// Returns the requests after the first `count`.
    pub(crate) fn hooks_since(&self, count: usize) -> Vec<Hook> {
        locked(&self.shared.hooks).iter().skip(count).cloned().collect()
    }

    /// Waits for the n-th request, from 0.
    #[track_caller]
    pub(crate) fn hook(&self, number: usize) -> Hook {
        until(&format!("webhook {number}"), || locked(&self.shared.hooks).get(number).cloned())
    }

    /// Waits a moment and returns the requests: shows that no more arrive.
    pub(crate) fn hooks_after(&self, moment: Duration) -> Vec<Hook> {
        pause(moment);
        self.hooks()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        // The loop waits for a connection, which this is.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(stream: &TcpStream, shared: &Shared) {
    let _ = stream.set_read_timeout(Some(TIMEOUT));
    let Some(hook) = read(stream) else { return };
    let usual = if hook.headers.contains_key("webhook-id") && shared.stumbles_at(&hook) { 500 } else { 200 };
    let reply = locked(&shared.replies).pop_front().unwrap_or(Reply::Status(usual));
    locked(&shared.hooks).push(hook);
    let response = match reply {
        Reply::Status(status) => {
            format!("HTTP/1.1 {status} Status\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")
        }
        Reply::Redirect(to) => {
            format!("HTTP/1.1 307 Moved\r\nlocation: http://{to}/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        }
        Reply::CloseConnection => return,
    };
    let mut stream = stream;
    let _ = stream.write_all(response.as_bytes());
}

/// Reads one request.
pub(super) fn read(stream: &TcpStream) -> Option<Hook> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    reader.read_line(&mut head).ok()?;
    let mut headers = HeaderMap::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let Some((name, value)) = line.split_once(':') else { break };
        headers.append(HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_str(value.trim()).ok()?);
    }
    let length = headers.get("content-length")?.to_str().ok()?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Hook { head: head.trim_end().to_owned(), headers, body })
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
