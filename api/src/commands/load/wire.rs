//! HTTP/1 connections of the load test, with one request at a time.

use std::{net::SocketAddr, pin::pin};

use bytes::Bytes;
use futures_util::future::{Either, select};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Version, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// A request. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct LoadRequest {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) accept: &'static str,
    pub(super) body: Bytes,
    /// The payment header.
    pub(super) payment: Option<(HeaderName, HeaderValue)>,
}

impl LoadRequest {
    pub(super) fn get(path: String) -> Self {
        Self { method: Method::GET, path, accept: "application/json", body: Bytes::new(), payment: None }
    }

    pub(super) fn post(path: &str, body: impl Into<Bytes>) -> Self {
        let (path, body) = (path.to_owned(), body.into());
        Self { method: Method::POST, path, accept: "application/json", body, payment: None }
    }
}

/// A response.
#[derive(Debug)]
pub(super) struct LoadResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// The server closes the connection after it.
    pub(super) closes: bool,
}

/// The error of a request without a response.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error("cannot connect: {0}")]
    Connect(#[from] std::io::Error),
    #[error("the connection failed: {0}")]
    Http(#[from] hyper::Error),
    #[error("cannot send a request: {0}")]
    Request(#[from] http::Error),
}

/// An open connection. The caller of `send` polls it: a separate task would cost two context switches per request.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// `None` after the gateway closed the connection.
    driver: Option<http1::Connection<TokioIo<TcpStream>, Full<Bytes>>>,
    host: String,
    /// Empty if none is sent.
    api_key: HeaderValue,
}

impl Connection {
    pub(super) async fn open(target: SocketAddr, api_key: &str) -> Result<Self, RequestError> {
        let stream = TcpStream::connect(target).await?;
        stream.set_nodelay(true)?;
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        let api_key = HeaderValue::from_str(api_key).map_err(http::Error::from)?;
        Ok(Self { sender, driver: Some(driver), host: target.to_string(), api_key })
    }

    /// Sends a request and reads the whole response.
    pub(super) async fn send(&mut self, request: LoadRequest) -> Result<LoadResponse, RequestError> {
        let mut http_request = Request::builder()
            .method(request.method)
            .uri(request.path)
            .header(header::HOST, &self.host)
            .header(header::USER_AGENT, "hivetill-load")
            .header(header::ACCEPT, request.accept)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(request.body))?;
        let headers = http_request.headers_mut();
        if !self.api_key.is_empty() {
            headers.insert("x-api-key", self.api_key.clone());
        }
        headers.extend(request.payment);
        let sender = &mut self.sender;
        let response = async move {
            sender.ready().await?;
            let (head, body) = sender.send_request(http_request).await?.into_parts();
            let close = head.headers.get(header::CONNECTION).is_some_and(|value| value.as_bytes() == b"close");
            let closes = close || head.version == Version::HTTP_10;
            let body = body.collect().await?.to_bytes();
            Ok(LoadResponse { status: head.status, headers: head.headers, body, closes })
        };
        let Some(driver) = &mut self.driver else { return response.await };
        match select(pin!(response), driver).await {
            Either::Left((response, _)) => response,
            // The gateway may have closed the connection right after the response.
            Either::Right((_, response)) => {
                self.driver = None;
                response.await
            }
        }
    }
}
