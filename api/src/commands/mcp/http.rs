//! Streamable HTTP with a bearer token, for this host unless host names are allowed.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use hyper::body::Incoming;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use subtle::ConstantTimeEq as _;
use tokio::net::TcpListener;

use super::{super::http_server, server::Server};

/// The path of the endpoint.
pub(super) const PATH: &str = "/mcp";

type Service = StreamableHttpService<Server, LocalSessionManager>;

/// Serves sessions until `stop`.
pub(super) async fn serve(
    listener: TcpListener,
    server: Server,
    token: String,
    allowed_hosts: Vec<String>,
    stop: impl Future<Output = ()>,
) {
    let this_host = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let hosts = this_host.into_iter().chain(allowed_hosts);
    // Pages in a browser must not call it.
    let config = StreamableHttpServerConfig::default().with_allowed_hosts(hosts).enforce_origin_validation();
    let cancel = config.cancellation_token.clone();
    let service = Service::new(move || Ok(server.clone()), Arc::new(LocalSessionManager::default()), config);
    let token: Arc<str> = token.into();
    let handler = |_| {
        let (service, token) = (service.clone(), Arc::clone(&token));
        hyper::service::service_fn(move |request| respond(service.clone(), Arc::clone(&token), request))
    };
    http_server::serve(listener, handler, stop, || cancel.cancel()).await;
}

async fn respond(
    service: Service,
    token: Arc<str>,
    request: Request<Incoming>,
) -> Result<Response<BoxBody<Bytes, Infallible>>, Infallible> {
    if request.uri().path() != PATH {
        return Ok(refusal(StatusCode::NOT_FOUND, "not found: the endpoint is /mcp"));
    }
    let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = given.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    if !bool::from(given.as_bytes().ct_eq(token.as_bytes())) {
        let mut response =
            refusal(StatusCode::UNAUTHORIZED, "a bearer token is required: HIVETILL_MCP_TOKEN of the server");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return Ok(response);
    }
    Ok(service.handle(request).await)
}

fn refusal(status: StatusCode, text: &'static str) -> Response<BoxBody<Bytes, Infallible>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}
