//! HTTP: one connection after another, bodies in, bodies out, open to every origin.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    Method, Request as HttpRequest, Response, StatusCode,
    body::Incoming,
    header::{self, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
    time::sleep,
};
use tracing::debug;

use super::{
    host::{Answer, Request},
    waiting,
};

/// Larger than any transaction, and than any batch that a node should take.
const MAX_BODY_BYTES: usize = 4 << 20;

/// What serves an IP address and port.
#[derive(Debug, Clone, Copy)]
pub(super) enum Endpoint {
    /// A node, by its place.
    Node(usize),
    /// Control.
    Control,
}

/// A connection that is closed without a response.
#[derive(Debug, thiserror::Error)]
#[error("closed without a response")]
struct HungUp;

pub(super) async fn serve(
    listener: TcpListener,
    endpoint: Endpoint,
    requests: mpsc::Sender<Request>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            biased;
            _ = stopped.changed() => break,
            // Closed connections are removed.
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of file handles, most likely: the next try must not spin.
                    debug!(%error, "cannot accept a connection");
                    sleep(Duration::from_millis(20)).await;
                    continue;
                }
            },
        };
        let _ = stream.set_nodelay(true);
        let requests = requests.clone();
        connections.spawn(async move {
            let service = service_fn(move |request| handle(request, endpoint, requests.clone()));
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(60));
            if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
                debug!(%error, "a connection ended");
            }
        });
    }
    connections.shutdown().await;
}

async fn handle(
    request: HttpRequest<Incoming>,
    endpoint: Endpoint,
    requests: mpsc::Sender<Request>,
) -> Result<Response<Full<Bytes>>, HungUp> {
    let mut response = match *request.method() {
        Method::POST => post(request, endpoint, requests).await?,
        Method::OPTIONS => preflight(&request),
        _ => plain(StatusCode::METHOD_NOT_ALLOWED, r#"{"error":"POST a JSON-RPC request"}"#),
    };
    // Wallets in browsers call nodes from any page; no page may call the control API.
    if let Endpoint::Node(_) = endpoint {
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    }
    Ok(response)
}

async fn post(
    request: HttpRequest<Incoming>,
    endpoint: Endpoint,
    requests: mpsc::Sender<Request>,
) -> Result<Response<Full<Bytes>>, HungUp> {
    let Ok(body) = Limited::new(request.into_body(), MAX_BODY_BYTES).collect().await else {
        return Ok(plain(StatusCode::PAYLOAD_TOO_LARGE, r#"{"error":"the request is too large"}"#));
    };
    let body = body.to_bytes();
    let waits_at = match endpoint {
        Endpoint::Node(node) if waiting::is_synchronous(&body) => Some(node),
        _ => None,
    };
    let (reply, answer) = oneshot::channel();
    let request = match endpoint {
        Endpoint::Node(node) => Request::Rpc { node, body, reply },
        Endpoint::Control => Request::ControlBody { body, reply },
    };
    requests.send(request).await.map_err(|_| HungUp)?;
    match answer.await.map_err(|_| HungUp)? {
        Answer::HangUp => Err(HungUp),
        Answer::Reply { status, body, delay, retry_after } => {
            if !delay.is_zero() {
                sleep(delay).await;
            }
            let body = match waits_at {
                Some(node) if status == 200 => waiting::included(body, node, &requests).await.ok_or(HungUp)?,
                _ => body,
            };
            let mut response = plain(StatusCode::from_u16(status).unwrap_or(StatusCode::OK), body);
            if let Some(seconds) = retry_after {
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            }
            Ok(response)
        }
    }
}

fn preflight(request: &HttpRequest<Incoming>) -> Response<Full<Bytes>> {
    let mut response = plain(StatusCode::NO_CONTENT, "");
    let asked = request.headers().get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST, OPTIONS"));
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        asked.unwrap_or_else(|| HeaderValue::from_static("content-type")),
    );
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    // A page of the public web may send a private-network preflight request.
    headers.insert("access-control-allow-private-network", HeaderValue::from_static("true"));
    response
}

fn plain(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
