//! The accept loop: connection limits, timeouts, the peer's IP address, graceful shutdown.

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
    error,
    error_bodies::WithErrorBodies,
    state::Facade,
    timeouts::{ConnectionTimer, TimedBody, TimedStream, Timeouts, drive},
};
use crate::ip_connections::{IpConnections, TooManyConnections};

/// Limits and timeouts of the listener.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum number of connections; more wait in the backlog of the socket.
    pub connections: usize,
    /// Maximum number of connections of one IP address or IPv6 /64; `None` is unlimited. Trusted proxies are exempt.
    pub connections_per_ip: Option<usize>,
    /// Maximum time until the head of a request has arrived.
    pub head_timeout: Duration,
    /// Maximum time until the body of a request has arrived.
    pub body_timeout: Duration,
    /// Maximum time during which a client does not read its response.
    pub write_timeout: Duration,
    /// Maximum time that a connection is idle between requests.
    pub idle_timeout: Duration,
    /// Maximum time for running requests to finish at shutdown.
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
    /// Returns limits for the listener for health checks.
    #[must_use]
    pub const fn for_health(self) -> Self {
        let per_ip = Some(HEALTH_CONNECTIONS / 2);
        Self { connections: HEALTH_CONNECTIONS, connections_per_ip: per_ip, ..self }
    }
}

/// Maximum number of connections of the listener for health checks; one IP address has at most half of them.
const HEALTH_CONNECTIONS: usize = 100;

/// Maximum bytes of a head that hyper buffers. Above the limit of `Call`, so that most oversize heads get its error.
const HEAD_BUFFER_BYTES: usize = 64 * 1024;

/// Serves a facade until `stop` completes, then lets running requests finish.
pub async fn serve(listener: TcpListener, facade: Arc<Facade>, limits: Limits, stop: impl Future<Output = ()>) {
    run(listener, facade, limits, false, stop).await;
}

/// Serves only health checks until `stop` completes, separately from the load of the other listener.
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
    // `ConnectionTimer` enforces all timeouts, including that of the head.
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
        let ip_permit = match is_proxy {
            true => Ok(None),
            false => addresses.acquire(client),
        };
        let ip_permit = match ip_permit {
            Ok(permit) => permit,
            Err(TooManyConnections) => {
                facade.metrics.connections_refused.inc();
                refuse(&stream, client);
                continue;
            }
        };
        let timer = ConnectionTimer::new(timeouts);
        let service = WithHead {
            inner: service.clone(),
            client: address.ip(),
            body_timeout: limits.body_timeout,
            is_health,
            timer: Arc::clone(&timer),
        };
        let io = TokioIo::new(WithErrorBodies::new(TimedStream::new(stream, Arc::clone(&timer))));
        let connection = http.serve_connection(io, TowerToHyperService::new(service));
        let connection = graceful.watch(connection);
        let open = OpenConnection::new(&facade);
        tokio::spawn(async move {
            match drive(connection, &timer).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => debug!("connection from {address} ended: {error}"),
                Err(phase) => {
                    open.0.metrics.timed_out(phase);
                    debug!(phase = phase.as_str(), "connection from {address} timed out: {}", phase.as_str());
                }
            }
            drop((permit, open, ip_permit));
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

/// Counts an open connection in the metrics until it is dropped.
struct OpenConnection(Arc<Facade>);

impl OpenConnection {
    fn new(facade: &Arc<Facade>) -> Self {
        facade.metrics.connections.inc();
        Self(Arc::clone(facade))
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.metrics.connections.dec();
    }
}

/// Responds with 429 to a client that has too many connections, if its socket accepts the bytes at once, and closes.
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
    // The connection is closed whether the bytes were accepted or not.
    let _ = stream.try_write(&[head.as_bytes(), &body].concat());
    // Closing a socket with unread bytes resets the connection, and the client would not receive the response.
    let _ = stream.try_read(&mut [0; 4_096]);
}

type Accepted = (TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit);

async fn accept(listener: &TcpListener, connections: &Arc<Semaphore>) -> Option<Accepted> {
    let permit = Arc::clone(connections).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, address)) => {
            // Responses are written whole: waiting to fill a packet only delays them.
            let _ = stream.set_nodelay(true);
            Some((stream, address, permit))
        }
        Err(error) => {
            // Most likely out of file descriptors: wait until other connections close.
            warn!("cannot accept a connection: {error}");
            tokio::time::sleep(Duration::from_millis(100)).await;
            None
        }
    }
}

/// Handles a request without a connection: with the routes of the listener, but without its timeouts. Streaming responses
/// never complete.
pub(crate) async fn handle<B>(facade: &Arc<Facade>, client: IpAddr, request: http::Request<B>) -> http::Response<Bytes>
where
    B: hyper::body::Body + Send + Sync + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let Limits { head_timeout, body_timeout, write_timeout, idle_timeout, .. } = Limits::default();
    let timer = ConnectionTimer::new(Timeouts { head: head_timeout, idle: idle_timeout, write: write_timeout });
    let inner = warp::service(filter(facade));
    let mut service = WithHead { inner, client, body_timeout, is_health: false, timer };
    let (head, body) = match tower::Service::call(&mut service, request).await {
        Ok(response) => response.into_parts(),
        Err(never) => match never {},
    };
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    http::Response::from_parts(head, body)
}

/// Passes each request's head as an extension without copying it, and reports the exchange to the timer.
#[derive(Clone)]
struct WithHead<S> {
    inner: S,
    client: IpAddr,
    body_timeout: Duration,
    is_health: bool,
    timer: Arc<ConnectionTimer>,
}

type ResponseFuture<B, E> = Pin<Box<dyn Future<Output = Result<http::Response<TimedBody<B>>, E>> + Send>>;

impl<S, B, R> tower::Service<http::Request<B>> for WithHead<S>
where
    S: tower::Service<http::Request<B>, Response = http::Response<R>>,
    S::Future: Send + 'static,
{
    type Response = http::Response<TimedBody<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<R, S::Error>;

    fn poll_ready(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<B>) -> Self::Future {
        self.timer.begin();
        let head = Head {
            method: request.method().clone(),
            uri: request.uri().clone(),
            headers: std::mem::take(request.headers_mut()),
            client: self.client,
            body_timeout: self.body_timeout,
            is_health: self.is_health,
        };
        request.extensions_mut().insert(Arc::new(head));
        let (response, timer) = (self.inner.call(request), Arc::clone(&self.timer));
        Box::pin(async move { Ok(response.await?.map(|body| TimedBody::new(body, timer))) })
    }
}
