//! An unmodified HTTP server behind the gate: fails when it is configured to, and records its requests.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::harness::background;

/// A listening server.
pub(crate) struct Upstream {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    requests: Vec<Received>,
    behavior: Behavior,
}

/// One request as received.
#[derive(Debug, Clone)]
pub(super) struct Received {
    /// Request line and headers in lower case.
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

/// The behavior of the server.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Behavior {
    /// Responds with 200 and a report.
    #[default]
    Works,
    /// Responds with a status.
    Fails(u16),
    /// Closes the connection without a response.
    HangsUp,
    /// Announces more bytes than it sends.
    Breaks,
    /// Sends a large body in chunks.
    Streams,
}

/// Bytes of a streamed response.
pub(super) const STREAMED: usize = 8 << 20;

impl Upstream {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let shared = Arc::new(Mutex::new(Shared::default()));
        let served = Arc::clone(&shared);
        background(move || {
            for stream in listener.incoming().flatten() {
                let served = Arc::clone(&served);
                background(move || serve(stream, &served));
            }
        });
        Self { address, shared }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn set(&self, behavior: Behavior) {
        self.locked().behavior = behavior;
    }

    /// Returns the requests so far.
    pub(super) fn requests(&self) -> Vec<Received> {
        self.locked().requests.clone()
    }

    fn locked(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve(stream: TcpStream, shared: &Mutex<Shared>) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head).is_ok_and(|read| read > 2) {}
    let head = head.to_lowercase();
    let body = read_body(&head, &mut reader);
    let behavior = {
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.requests.push(Received { head, body });
        shared.behavior
    };
    let mut stream = reader.into_inner();
    let whole = |status: &str, body: &str| {
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
    };
    // Clients that disconnect are part of the tests.
    let _ = match behavior {
        Behavior::Works => stream.write_all(whole("200 OK", "{\"report\":\"Mugs are up 3 %\"}").as_bytes()),
        Behavior::Fails(status) => {
            stream.write_all(whole(&format!("{status} Failed"), "{\"error\":\"no report\"}").as_bytes())
        }
        Behavior::HangsUp => Ok(()),
        Behavior::Breaks => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\nconnection: close\r\n\r\nhalf")
        }
        Behavior::Streams => stream_body(&mut stream),
    };
}

fn read_body(head: &str, reader: &mut BufReader<TcpStream>) -> Vec<u8> {
    let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let mut body = Vec::new();
    if let Some(length) = header("content-length:").and_then(|length| length.parse().ok()) {
        body.resize(length, 0);
        let _ = reader.read_exact(&mut body);
    } else if header("transfer-encoding:") == Some("chunked") {
        loop {
            let mut line = String::new();
            let length = reader.read_line(&mut line).ok().and_then(|_| usize::from_str_radix(line.trim(), 16).ok());
            let Some(length) = length else { break };
            let mut chunk = vec![0; length + 2];
            if reader.read_exact(&mut chunk).is_err() || length == 0 {
                break;
            }
            body.extend_from_slice(&chunk[..length]);
        }
    }
    body
}

fn stream_body(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n")?;
    let chunk = vec![b'x'; 64 << 10];
    for _ in 0..STREAMED / chunk.len() {
        stream.write_all(format!("{:x}\r\n", chunk.len()).as_bytes())?;
        stream.write_all(&chunk)?;
        stream.write_all(b"\r\n")?;
    }
    stream.write_all(b"0\r\n\r\n")
}
