//! The accept loop of the facade: limits, timeouts, the caller's address, graceful shutdown.

use std::{
    future::Future,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, server::graceful::GracefulShutdown, service::TowerToHyperService};
use proto::{ApiError, Reason};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tracing::{debug, info, warn};

use super::respond::filter;
use crate::facade::http::{
    call::Head,
    deadlines::{Timeouts, Tracked, Watch, Watched, drive},
    error,
    state::Facade,
    wire::PlainErrors,
};
use crate::ip_connections::{IpConnections, TooManyConnections};

/// What the loop allows.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at once; more wait in the kernel's queue.
    pub connections: usize,
    /// Connections of one IP address, or of one IPv6 /64; no limit when missing. Trusted proxies have none.
    pub connections_per_ip: Option<usize>,
    /// A request's head must have arrived by then.
    pub head_timeout: Duration,
    /// A request's body must have arrived by then.
    pub body_timeout: Duration,
    /// How long a client may take nothing of its answer.
    pub write_timeout: Duration,
    /// How long a connection is kept for another request.
    pub idle_timeout: Duration,
    /// How long running requests may take to end when the server stops.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            connections: 10_000,
            connections_per_ip: None,
            head_timeout: seconds(10),
            body_timeout: seconds(10),
            write_timeout: seconds(30),
            idle_timeout: seconds(75),
            drain_timeout: seconds(10),
        }
    }
}

impl Limits {
    /// Returns the same for the health checks of orchestrators.
    #[must_use]
    pub const fn for_health(self) -> Self {
        let per_ip = Some(HEALTH_CONNECTIONS / 2);
        Self { connections: HEALTH_CONNECTIONS, connections_per_ip: per_ip, ..self }
    }
}

/// Connections of health checks at once, of which one address has at most half.
const HEALTH_CONNECTIONS: usize = 100;

/// Bytes of a head that hyper reads at most. Above our own limit, so that the usual oversize head gets our answer.
const HEAD_BUFFER_BYTES: usize = 64 * 1024;

/// Serves a facade until `stop` is done, then lets running requests end.
pub async fn serve(listener: TcpListener, facade: Arc<Facade>, limits: Limits, stop: impl Future<Output = ()>) {
    run(listener, facade, limits, false, stop).await;
}

/// Serves nothing but health checks until `stop` is done: no crowd at the other listener keeps them waiting.
pub async fn serve_health(listener: TcpListener, facade: Arc<Facade>, limits: Limits, stop: impl Future<Output = ()>) {
    run(listener, facade, limits, true, stop).await;
}

async fn run(
    listener: TcpListener,
    facade: Arc<Facade>,
    limits: Limits,
    is_health: bool,
    stop: impl Future<Output = ()>,
) {
    let service = warp::service(filter(&facade));
    let connections = Arc::new(Semaphore::new(limits.connections));
    let addresses = Arc::new(IpConnections::new(limits.connections, limits.connections_per_ip));
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    // A watch keeps the deadlines, of heads too.
    http.header_read_timeout(None).max_buf_size(HEAD_BUFFER_BYTES);
    let timeouts = Timeouts { head: limits.head_timeout, idle: limits.idle_timeout, write: limits.write_timeout };
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = accept(&listener, &connections) => accepted,
        };
        let Some((stream, address, permit)) = accepted else { continue };
        let client = address.ip().to_canonical();
        let is_proxy = facade.edge.trusted_proxies.iter().any(|network| network.contains(&client));
        let place = match is_proxy {
            true => Ok(None),
            false => addresses.acquire(client),
        };
        let place = match place {
            Ok(place) => place,
            Err(TooManyConnections) => {
                facade.metrics.connections_refused.inc();
                refuse(&stream, client);
                continue;
            }
        };
        let watch = Watch::new(timeouts);
        let service = WithHead {
            inner: service.clone(),
            client: address.ip(),
            body_timeout: limits.body_timeout,
            is_health,
            watch: Arc::clone(&watch),
        };
        let io = TokioIo::new(PlainErrors::new(Watched::new(stream, Arc::clone(&watch))));
        let connection = http.serve_connection(io, TowerToHyperService::new(service));
        let connection = graceful.watch(connection);
        let counted = Counted::new(&facade);
        tokio::spawn(async move {
            match drive(connection, &watch).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => debug!("connection from {address} ended: {error}"),
                Err(overdue) => {
                    counted.0.metrics.timed_out(overdue);
                    debug!(phase = overdue.as_str(), "connection from {address} timed out: {}", overdue.as_str());
                }
            }
            drop((permit, counted, place));
        });
    }
    drop(listener);
    if !is_health {
        facade.close();
        info!("stopping: {} open connections", graceful.count());
    }
    if tokio::time::timeout(limits.drain_timeout, graceful.shutdown()).await.is_err() {
        warn!("some requests exceeded limits.drain_timeout_ms and were aborted");
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

/// Tells a client that has too many connections so, as far as its socket takes it at once, and closes.
fn refuse(stream: &TcpStream, client: IpAddr) {
    debug!("refused a connection from {client}: too many connections");
    let message = "too many open connections from your IP address; close some, or reuse them for several requests";
    let error = ApiError::with_message(Reason::RateLimited, message).retry_after(1);
    let body = error::body(&error, "");
    let head = format!(
        "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    // Whether it is taken or not, the connection ends.
    let _ = stream.try_write(&[head.as_bytes(), &body].concat());
    // A socket that is closed with unread bytes is reset, and its answer lost.
    let _ = stream.try_read(&mut [0; 4_096]);
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

/// Answers a request without a connection: by the routes that the listener has, without its deadlines. An answer without
/// an end is never there.
pub(crate) async fn answer<B>(facade: &Arc<Facade>, client: IpAddr, request: http::Request<B>) -> http::Response<Bytes>
where
    B: hyper::body::Body + Send + Sync + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let Limits { head_timeout, body_timeout, write_timeout, idle_timeout, .. } = Limits::default();
    let watch = Watch::new(Timeouts { head: head_timeout, idle: idle_timeout, write: write_timeout });
    let inner = warp::service(filter(facade));
    let mut service = WithHead { inner, client, body_timeout, is_health: false, watch };
    let (head, body) = match tower::Service::call(&mut service, request).await {
        Ok(answer) => answer.into_parts(),
        Err(never) => match never {},
    };
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    http::Response::from_parts(head, body)
}

/// Puts each request's head where handlers find it without copying it, and tells the watch when it is answered.
#[derive(Clone)]
struct WithHead<S> {
    inner: S,
    client: IpAddr,
    body_timeout: Duration,
    is_health: bool,
    watch: Arc<Watch>,
}

type Answering<B, E> = Pin<Box<dyn Future<Output = Result<http::Response<Tracked<B>>, E>> + Send>>;

impl<S, B, R> tower::Service<http::Request<B>> for WithHead<S>
where
    S: tower::Service<http::Request<B>, Response = http::Response<R>>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Tracked<R>>;
    type Error = S::Error;
    type Future = Answering<R, S::Error>;

    fn poll_ready(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<B>) -> Self::Future {
        self.watch.begin();
        let head = Head {
            method: request.method().clone(),
            uri: request.uri().clone(),
            headers: std::mem::take(request.headers_mut()),
            client: self.client,
            body_timeout: self.body_timeout,
            is_health: self.is_health,
        };
        request.extensions_mut().insert(Arc::new(head));
        let (answer, watch) = (self.inner.call(request), Arc::clone(&self.watch));
        Box::pin(async move { Ok(answer.await?.map(|body| Tracked::new(body, watch))) })
    }
}
