//! Connections of the gRPC port: their maximum number, a deadline for the handshake, and a limit of watches per connection.

use std::{
    io,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{Stream, stream};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Sleep, sleep},
};
use tonic::transport::server::Connected;
use tracing::{debug, warn};

use crate::ip_connections::{IpConnections, IpPermit};

/// A connection that has not sent this many bytes within [`HANDSHAKE_TIMEOUT`] is closed: the length of the HTTP/2
/// connection preface. With TLS, decrypted bytes are counted.
const HANDSHAKE_BYTES: usize = 24;
/// Deadline for the TLS handshake, and for the HTTP/2 handshake after it.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Delay before the listener retries after a failed accept.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Maximum number of concurrent streams of a connection.
pub(super) const MAX_STREAMS: u32 = 1_024;
/// Maximum number of watches (server streams without an end) of a connection: half of its streams, so that streams remain
/// for unary calls.
pub(super) const MAX_WATCHES: usize = MAX_STREAMS as usize / 2;

/// Connection state that is available to its calls.
#[derive(Debug, Clone)]
pub(super) struct Info {
    /// Permits for watches.
    pub(super) watches: Arc<Semaphore>,
}

/// The permits of an open connection, released when it is closed.
pub(super) struct ConnectionPermit {
    _permit: OwnedSemaphorePermit,
    _ip_permit: Option<IpPermit>,
}

/// Accepts up to `max_connections` concurrent connections; others wait in the kernel's queue. An IP address may have half
/// of them; further connections are closed.
pub(super) fn accept(
    listener: TcpListener,
    max_connections: usize,
) -> impl Stream<Item = (TcpStream, ConnectionPermit)> + Send {
    let connections = Arc::new(Semaphore::new(max_connections));
    let by_ip = Arc::new(IpConnections::new(max_connections, Some(max_connections)));
    stream::unfold((listener, connections, by_ip), |open| async move {
        loop {
            let permit = Arc::clone(&open.1).acquire_owned().await.ok()?;
            match open.0.accept().await {
                Ok((stream, peer)) => match open.2.acquire(peer.ip()) {
                    Ok(ip_permit) => {
                        // Messages are small and written whole: Nagle's algorithm would only delay them.
                        let _ = stream.set_nodelay(true);
                        return Some(((stream, ConnectionPermit { _permit: permit, _ip_permit: ip_permit }), open));
                    }
                    Err(_) => log_refused(peer.ip()),
                },
                Err(error) => {
                    // The usual cause is a lack of file descriptors: retry after other connections have closed.
                    warn!("cannot accept a gRPC connection: {error}");
                    sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
    })
}

fn log_refused(client: IpAddr) {
    debug!(client.ip = %client, "refused a gRPC connection from {client}: too many connections");
}

/// A connection with its limits.
pub(super) struct Connection<C> {
    inner: C,
    _permit: Option<ConnectionPermit>,
    received: usize,
    deadline: Pin<Box<Sleep>>,
    watches: Arc<Semaphore>,
}

impl<C> Connection<C> {
    pub(super) fn new(inner: C, permit: Option<ConnectionPermit>) -> Self {
        Self {
            inner,
            _permit: permit,
            received: 0,
            deadline: Box::pin(sleep(HANDSHAKE_TIMEOUT)),
            watches: Arc::new(Semaphore::new(MAX_WATCHES)),
        }
    }
}

impl<C> Connected for Connection<C> {
    type ConnectInfo = Info;

    fn connect_info(&self) -> Info {
        Info { watches: Arc::clone(&self.watches) }
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for Connection<C> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        if self.received < HANDSHAKE_BYTES {
            self.received += buf.filled().len() - before;
            if self.received < HANDSHAKE_BYTES && self.deadline.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the handshake timed out")));
            }
        }
        read
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for Connection<C> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_complete_handshake_times_out() {
        let (_client, server) = duplex(64);
        let refused = Connection::new(server, None).read_u8().await.expect_err("silent");
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);

        let (mut client, server) = duplex(64);
        let mut connection = Connection::new(server, None);
        client.write_all(&[0; HANDSHAKE_BYTES - 1]).await.expect("written");
        let mut preface = [0; HANDSHAKE_BYTES];
        let refused = connection.read_exact(&mut preface).await.expect_err("one byte is missing");
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);

        let (mut client, server) = duplex(64);
        let mut connection = Connection::new(server, None);
        client.write_all(&preface).await.expect("written");
        connection.read_exact(&mut preface).await.expect("the preface");
        tokio::time::advance(2 * HANDSHAKE_TIMEOUT).await;
        client.write_u8(1).await.expect("written");
        assert_eq!(connection.read_u8().await.expect("an idle connection stays open"), 1);
    }
}
