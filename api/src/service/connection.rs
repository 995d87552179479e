//! The connections of the gRPC port: how many there may be, a deadline for the handshake of each, and how many streams
//! without an end it may hold.

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

use crate::addresses::{Addresses, Place};

/// A connection that has not sent this many bytes within [`HANDSHAKE_TIMEOUT`] is closed: the length of the HTTP/2
/// connection preface. With TLS they are decrypted bytes.
const HANDSHAKE_BYTES: usize = 24;
/// Time to complete the handshake of HTTP/2, and before it that of TLS.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How soon a listener that could not accept tries again.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// Streams one connection may hold at once.
pub(super) const MAX_STREAMS: u32 = 1_024;
/// Watches (streams without an end) one connection may hold: half of the streams it may open, so that unary calls
/// always find a stream.
pub(super) const MAX_WATCHES: usize = MAX_STREAMS as usize / 2;

/// What a call learns of its connection.
#[derive(Debug, Clone)]
pub(super) struct Info {
    /// A permit for each watch.
    pub(super) watches: Arc<Semaphore>,
}

/// A connection among those that are open; others may open one when it goes.
pub(super) struct Held {
    _permit: OwnedSemaphorePermit,
    _place: Option<Place>,
}

/// Accepts connections: `most` at once, more wait in the kernel's queue. One IP address may have half of them; what it
/// opens beyond that is closed.
pub(super) fn accept(listener: TcpListener, most: usize) -> impl Stream<Item = (TcpStream, Held)> + Send {
    let connections = Arc::new(Semaphore::new(most));
    let addresses = Arc::new(Addresses::new(most, Some(most)));
    stream::unfold((listener, connections, addresses), |open| async move {
        loop {
            let permit = Arc::clone(&open.1).acquire_owned().await.ok()?;
            match open.0.accept().await {
                Ok((stream, peer)) => match open.2.enter(peer.ip()) {
                    Ok(place) => {
                        // Messages are small and whole: waiting to fill a packet only delays them.
                        let _ = stream.set_nodelay(true);
                        return Some(((stream, Held { _permit: permit, _place: place }), open));
                    }
                    Err(_) => refused(peer.ip()),
                },
                Err(error) => {
                    // Out of file handles, most likely: others must close before we can go on.
                    warn!("cannot accept a gRPC connection: {error}");
                    sleep(ACCEPT_AGAIN).await;
                }
            }
        }
    })
}

fn refused(client: IpAddr) {
    debug!(client.ip = %client, "refused a gRPC connection from {client}: too many connections");
}

/// A connection with its limits.
pub(super) struct Connection<C> {
    inner: C,
    _held: Option<Held>,
    received: usize,
    deadline: Pin<Box<Sleep>>,
    watches: Arc<Semaphore>,
}

impl<C> Connection<C> {
    pub(super) fn new(inner: C, held: Option<Held>) -> Self {
        Self {
            inner,
            _held: held,
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
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "no handshake in time")));
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
    async fn a_silent_connection_is_closed_and_one_that_has_begun_is_not() {
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
        assert_eq!(connection.read_u8().await.expect("idle is no fault"), 1);
    }
}
