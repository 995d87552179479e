//! A client of the REST interface that exposes every status and every header.

use std::{io::Read as _, sync::OnceLock};

use http::HeaderMap;
use serde_json::Value;

use super::{described, wait::TIMEOUT};

/// The server to which requests are sent.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    /// `http://127.0.0.1:port`.
    pub(crate) base: String,
}

impl Api {
    pub(crate) fn new(base: &str) -> Self {
        Self { base: base.trim_end_matches('/').to_owned() }
    }

    /// Starts a request; `path` may also be a complete URL.
    pub(crate) fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let uri = if path.starts_with("http") { path.to_owned() } else { format!("{}{path}", self.base) };
        RequestBuilder { request: http::Request::builder().method(method).uri(uri), body: Vec::new() }
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.request("GET", path)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        self.request("POST", path).json(body)
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> RequestBuilder {
        self.request("PUT", path).json(body)
    }
}

/// A request under construction.
pub(crate) struct RequestBuilder {
    request: http::request::Builder,
    body: Vec<u8>,
}

impl RequestBuilder {
    pub(crate) fn header(self, name: &str, value: &str) -> Self {
        Self { request: self.request.header(name, value), ..self }
    }

    /// Sends the key as `Authorization: Bearer`.
    pub(crate) fn bearer(self, key: &str) -> Self {
        self.header("authorization", &format!("Bearer {key}"))
    }

    /// Sends the key as `x-api-key`.
    pub(crate) fn x_api_key(self, key: &str) -> Self {
        self.header("x-api-key", key)
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json").body(body.to_string())
    }

    pub(crate) fn body(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..self }
    }

    /// Sends the request and reads the complete response. Panics if there is none.
    #[track_caller]
    pub(crate) fn send(self) -> Response {
        match self.try_send() {
            Ok(response) => response,
            Err(error) => panic!("no response: {error}"),
        }
    }

    /// Sends the request where a response may be missing.
    pub(crate) fn try_send(self) -> Result<Response, ureq::Error> {
        let request = self.request.body(self.body).expect("a request");
        let (method, path) = (request.method().as_str().to_lowercase(), request.uri().path().to_owned());
        let mut response = agent().run(request)?;
        let sent = response.body_mut().with_config().limit(64 << 20).read_to_vec()?;
        let (status, headers, sent_bytes) = (response.status().as_u16(), response.headers().clone(), sent.len());
        let is_gzip = headers.get("content-encoding").is_some_and(|coding| coding == "gzip");
        let body = if is_gzip { unzipped(&sent) } else { sent };
        let response = Response { status, headers, body, sent_bytes };
        described::check(&method, &path, &response);
        Ok(response)
    }
}

fn agent() -> &'static ureq::Agent {
    static AGENT: OnceLock<ureq::Agent> = OnceLock::new();
    AGENT.get_or_init(|| {
        ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .user_agent("")
            .accept("")
            .accept_encoding("")
            .max_idle_connections(0)
            .timeout_global(Some(TIMEOUT))
            .max_response_header_size(1 << 20)
            .build()
            .new_agent()
    })
}

fn unzipped(sent: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    flate2::read::GzDecoder::new(sent).read_to_end(&mut body).expect("gzip");
    body
}

/// A complete response.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// Decoded, if it was compressed.
    pub(crate) body: Vec<u8>,
    /// The size of the body as it was sent.
    pub(crate) sent_bytes: usize,
}

impl Response {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("no JSON ({e}): {} {}", self.status, self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Expects success with this status and returns the body.
    #[track_caller]
    pub(crate) fn ok(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()
    }

    /// Expects an error: status and reason, and everything that the error body guarantees.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, reason: &str) -> Value {
        assert_eq!(self.status, status, "wanted {status} {reason}: {}", self.text());
        assert!(self.header("content-type").is_some_and(|t| t.starts_with("application/json")), "{:?}", self.headers);
        let body = self.json();
        assert_eq!(body["reason"], reason, "{body}");
        assert_eq!(body["statusCode"], status, "{body}");
        let code = match status {
            400 | 422 => "VALIDATION_ERROR",
            401 => "AUTHENTICATION_ERROR",
            403 => "FORBIDDEN_ERROR",
            404 => "NOT_FOUND_ERROR",
            429 => "RATE_LIMIT_ERROR",
            500.. => "SERVER_ERROR",
            _ => "API_ERROR",
        };
        assert_eq!(body["code"], code, "{body}");
        assert!(body["statusMessage"].as_str().is_some_and(|text| !text.is_empty()), "{body}");
        assert!(body["requestId"].as_str().is_some_and(|text| !text.is_empty()), "{body}");
        assert_eq!(self.header("x-request-id"), body["requestId"].as_str(), "{body}");
        let members: Vec<&str> = body.as_object().expect("an object").keys().map(String::as_str).collect();
        let known = ["code", "details", "nextCursor", "reason", "requestId", "statusCode", "statusMessage"];
        assert!(members.iter().all(|member| known.contains(member)), "{members:?}");
        for detail in body["details"].as_array().into_iter().flatten() {
            assert!(detail["field"].is_string() && detail["message"].is_string(), "{body}");
        }
        body
    }

    /// Expects a 400 that names these fields, in any order.
    #[track_caller]
    pub(crate) fn wrong(&self, fields: &[&str]) -> Value {
        let reason = self.json()["reason"].as_str().unwrap_or_default().to_owned();
        let body = self.refused(400, &reason);
        let mut named: Vec<&str> =
            body["details"].as_array().into_iter().flatten().filter_map(|detail| detail["field"].as_str()).collect();
        named.sort_unstable();
        let mut wanted = fields.to_vec();
        wanted.sort_unstable();
        assert_eq!(named, wanted, "{body}");
        body
    }
}
