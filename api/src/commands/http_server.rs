//! The HTTP server of the commands `gate` and `mcp`.

use std::{error::Error, net::IpAddr, time::Duration};

use http::{Request, Response};
use hyper::{
    body::{Body, Incoming},
    service::Service,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
};
use tokio::net::TcpListener;

/// Time for a client to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for open requests to finish at shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);
/// Pause after a failed accept, for example without free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves each connection with the service that `service` returns for the client's IP address, until `stop`. Then calls
/// `stopped`, and waits at most 20 seconds for open requests.
pub(super) async fn serve<S, B>(
    listener: TcpListener,
    mut service: impl FnMut(IpAddr) -> S,
    stop: impl Future<Output = ()>,
    stopped: impl FnOnce(),
) where
    S: Service<Request<Incoming>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let connections = GracefulShutdown::new();
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, client)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // Small responses are sent at once.
        let _ = stream.set_nodelay(true);
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
        let connection = builder.serve_connection(TokioIo::new(stream), service(client.ip())).into_owned();
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            // A broken connection affects only its client.
            let _ = connection.await;
        });
    }
    stopped();
    if tokio::time::timeout(DRAIN_TIMEOUT, connections.shutdown()).await.is_err() {
        tracing::warn!("requests were still open after {DRAIN_TIMEOUT:?}");
    }
}
