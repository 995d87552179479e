//! A relay of bytes before a gateway, whose connections break.

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use super::{http::Api, wait::background};

/// A listening relay. Passes on bytes unchanged.
pub(crate) struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    upstream: String,
    /// The number of bytes of responses after which a connection breaks.
    limit: Option<usize>,
    is_open: AtomicBool,
    connections: Mutex<Vec<TcpStream>>,
    count: AtomicUsize,
}

impl Relay {
    /// Starts a relay whose connections break only when they are cut.
    pub(crate) fn before(api: &Api) -> Self {
        Self::start(api, None)
    }

    /// Starts a relay whose connections break after the given number of bytes of responses, in the middle of a line.
    pub(crate) fn breaking(api: &Api, bytes: usize) -> Self {
        Self::start(api, Some(bytes))
    }

    fn start(api: &Api, limit: Option<usize>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let upstream = api.base.strip_prefix("http://").expect("plain http").to_owned();
        let (is_open, connections) = (AtomicBool::new(true), Mutex::default());
        let shared = Arc::new(Shared { upstream, limit, is_open, connections, count: AtomicUsize::new(0) });
        let accepting = Arc::clone(&shared);
        background(move || {
            for stream in listener.incoming().flatten() {
                if Arc::strong_count(&accepting) == 1 {
                    return;
                }
                accepting.accept(stream);
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the number of connections that were passed on.
    pub(crate) fn connections(&self) -> usize {
        self.shared.count.load(Ordering::SeqCst)
    }

    /// Cuts every connection and closes new ones at once, until [`Relay::mend`].
    pub(crate) fn cut(&self) {
        self.shared.is_open.store(false, Ordering::SeqCst);
        for stream in self.shared.connections.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Accepts connections again.
    pub(crate) fn mend(&self) {
        self.shared.is_open.store(true, Ordering::SeqCst);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.cut();
    }
}

impl Shared {
    fn accept(self: &Arc<Self>, client: TcpStream) {
        if !self.is_open.load(Ordering::SeqCst) {
            return;
        }
        let Ok(server) = TcpStream::connect(&self.upstream) else { return };
        let streams = [&client, &server, &client, &server].map(|stream| stream.try_clone().expect("a handle"));
        let [from_client, to_server, kept_client, kept_server] = streams;
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.extend([kept_client, kept_server]);
        drop(connections);
        self.count.fetch_add(1, Ordering::SeqCst);
        let limit = self.limit;
        background(move || copy(from_client, to_server, None));
        background(move || copy(server, client, limit));
    }
}

/// Copies bytes until one side closes, or the limit is reached; then closes both.
fn copy(mut from: TcpStream, mut to: TcpStream, mut limit: Option<usize>) {
    let mut bytes = [0; 4_096];
    while let Ok(count) = from.read(&mut bytes) {
        let passed = limit.map_or(count, |left| left.min(count));
        if passed == 0 || to.write_all(&bytes[..passed]).is_err() {
            break;
        }
        limit = limit.map(|left| left - passed);
        if limit == Some(0) {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
