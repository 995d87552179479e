//! The one accept loop of the facade: limits, timeouts, the caller's address, a graceful end.

use std::{
    future::Future,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tracing::{debug, info, warn};

use super::{Facade, call::Head, routes, wire::PlainErrors};

/// What the loop allows.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at once; more wait in the kernel's queue.
    pub connections: usize,
    /// A request's head must have arrived by then; it also ends an idle connection.
    pub head_timeout: Duration,
    /// How long running requests may take to end when the server stops.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 10_000, head_timeout: Duration::from_secs(10), drain_timeout: Duration::from_secs(10) }
    }
}

/// Bytes of a head that hyper reads at most. Above our own limit, so that the usual oversize head gets our answer.
const HEAD_BUFFER_BYTES: usize = 64 * 1024;

/// Serves a facade until `stop` is done, then lets running requests end.
pub async fn serve(listener: TcpListener, facade: Arc<Facade>, limits: Limits, stop: impl Future<Output = ()>) {
    let service = warp::service(routes(&facade));
    let connections = Arc::new(Semaphore::new(limits.connections));
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head_timeout).max_buf_size(HEAD_BUFFER_BYTES);
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = accept(&listener, &connections) => accepted,
        };
        let Some((stream, address, permit)) = accepted else { continue };
        let service = WithHead { inner: service.clone(), client: address.ip() };
        let io = TokioIo::new(PlainErrors::new(stream));
        let connection = http.serve_connection(io, TowerToHyperService::new(service));
        let connection = graceful.watch(connection);
        let counted = Counted::new(&facade);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                debug!("connection from {address} ended: {error}");
            }
            drop((permit, counted));
        });
    }
    drop(listener);
    facade.close();
    let open = graceful.count();
    info!("stopping: {open} open connections");
    if tokio::time::timeout(limits.drain_timeout, graceful.shutdown()).await.is_err() {
        warn!("some requests did not end in time and were cut off");
    }
}

/// A connection that is open, as the metrics count it.
struct Counted(Arc<Facade>);

impl Counted {
    fn new(facade: &Arc<Facade>) -> Self {
        facade.metrics.connections.inc();
        Self(Arc::clone(facade))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.metrics.connections.dec();
    }
}

type Accepted = (TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit);

async fn accept(listener: &TcpListener, connections: &Arc<Semaphore>) -> Option<Accepted> {
    let permit = Arc::clone(connections).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, address)) => {
            // Answers are small and whole: waiting to fill a packet only delays them.
            let _ = stream.set_nodelay(true);
            Some((stream, address, permit))
        }
        Err(error) => {
            // Out of file handles, most likely: others must close before we can go on.
            warn!("cannot accept a connection: {error}");
            tokio::time::sleep(Duration::from_millis(100)).await;
            None
        }
    }
}

/// Puts each request's head where handlers find it without copying it.
#[derive(Clone)]
struct WithHead<S> {
    inner: S,
    client: IpAddr,
}

impl<S, B> tower::Service<http::Request<B>> for WithHead<S>
where
    S: tower::Service<http::Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<B>) -> S::Future {
        let head = Head {
            method: request.method().clone(),
            uri: request.uri().clone(),
            headers: std::mem::take(request.headers_mut()),
            client: self.client,
        };
        request.extensions_mut().insert(Arc::new(head));
        self.inner.call(request)
    }
}
