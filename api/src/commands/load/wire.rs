//! One connection of the load: one request at a time, over hyper's own HTTP/1.

use std::{net::SocketAddr, pin::pin};

use bytes::Bytes;
use futures_util::future::{Either, select};
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// What is sent; cheap to send again.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) accept: &'static str,
    pub(super) body: Bytes,
}

impl Ask {
    pub(super) fn get(path: String) -> Self {
        Self { method: Method::GET, path, accept: "application/json", body: Bytes::new() }
    }

    pub(super) fn post(path: &str, body: impl Into<Bytes>) -> Self {
        Self { method: Method::POST, path: path.to_owned(), accept: "application/json", body: body.into() }
    }
}

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Why there was no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Lost {
    #[error("cannot connect: {0}")]
    Connect(#[from] std::io::Error),
    #[error("the connection failed: {0}")]
    Http(#[from] hyper::Error),
    #[error("cannot send a request: {0}")]
    Request(#[from] http::Error),
}

/// An open connection. Whoever sends drives it meanwhile: a task of its own would cost two switches a request.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// Nothing once the gateway has hung up.
    driver: Option<http1::Connection<TokioIo<TcpStream>, Full<Bytes>>>,
    host: String,
    api_key: String,
}

impl Connection {
    pub(super) async fn open(target: SocketAddr, api_key: &str) -> Result<Self, Lost> {
        let stream = TcpStream::connect(target).await?;
        stream.set_nodelay(true)?;
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        Ok(Self { sender, driver: Some(driver), host: target.to_string(), api_key: api_key.to_owned() })
    }

    /// Sends a request and reads the whole answer.
    pub(super) async fn send(&mut self, ask: Ask) -> Result<Answer, Lost> {
        let request = Request::builder()
            .method(ask.method)
            .uri(ask.path)
            .header(header::HOST, &self.host)
            .header(header::USER_AGENT, "hivetill-load")
            .header(header::ACCEPT, ask.accept)
            .header(header::CONTENT_TYPE, "application/json")
            .header("x-api-key", &self.api_key)
            .body(Full::new(ask.body))?;
        let sender = &mut self.sender;
        let answer = async move {
            sender.ready().await?;
            let (head, body) = sender.send_request(request).await?.into_parts();
            Ok(Answer { status: head.status, headers: head.headers, body: body.collect().await?.to_bytes() })
        };
        let Some(driver) = &mut self.driver else { return answer.await };
        match select(pin!(answer), driver).await {
            Either::Left((answer, _)) => answer,
            // It may have hung up right behind its answer.
            Either::Right((_, answer)) => {
                self.driver = None;
                answer.await
            }
        }
    }
}
