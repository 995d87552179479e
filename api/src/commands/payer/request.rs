//! The request to pay for: the same method, URL, headers and body on each attempt.

use std::fmt;

use engine::wallet::{Host, RequestKey};
use reqwest::{
    Client, Method, RequestBuilder, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};

/// The header that identifies a purchase for servers that deduplicate requests.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Headers that the command sets itself.
const OWN: [&str; 6] =
    ["x-payment", "payment-signature", "host", "content-length", "transfer-encoding", "idempotency-key"];

/// A request to a URL that may require a payment.
#[derive(Clone)]
pub(in crate::commands) struct Request {
    pub(in crate::commands) method: Method,
    pub(in crate::commands) url: Url,
    headers: HeaderMap,
    body: Vec<u8>,
    idempotency_key: Option<String>,
}

/// Hides headers and body, which may hold credentials.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("method", &self.method).field("url", &self.url).finish_non_exhaustive()
    }
}

/// Why a request cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    /// Not a method.
    #[error("method: `{0}` is not an HTTP method")]
    Method(String),
    /// Not `Name: value`.
    #[error("header: must be `Name: value`")]
    Header,
    /// A header that the payment sets.
    #[error("header: {0} is set by the payment itself")]
    OwnHeader(String),
    /// Not a valid header value.
    #[error("idempotency key: must be 1 to 255 visible ASCII characters")]
    IdempotencyKey,
    /// The file of the body cannot be read.
    #[error("data: {0}")]
    Data(String),
    /// Another argument that cannot be used.
    #[error("{0}: {1}")]
    Argument(&'static str, String),
}

impl Request {
    /// Creates a GET request.
    pub(in crate::commands) fn get(url: Url) -> Self {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        Self { method: Method::GET, url, headers, body: Vec::new(), idempotency_key: None }
    }

    /// Sets the method.
    pub(in crate::commands) fn with_method(mut self, method: &str) -> Result<Self, BadRequest> {
        let upper = method.to_ascii_uppercase();
        let known = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::HEAD];
        let known = known.into_iter().find(|known| known.as_str() == upper);
        self.method = known.ok_or_else(|| BadRequest::Method(method.to_owned()))?;
        Ok(self)
    }

    /// Sets a body; the default method becomes POST and the default content type JSON.
    pub(in crate::commands) fn with_body(mut self, body: Vec<u8>, has_method: bool) -> Self {
        if !has_method {
            self.method = Method::POST;
        }
        self.headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
        self.body = body;
        self
    }

    /// Adds a header, `Name: value`; replaces one of the same name.
    pub(in crate::commands) fn with_header(mut self, line: &str) -> Result<Self, BadRequest> {
        let (name, value) = line.split_once(':').ok_or(BadRequest::Header)?;
        let name: HeaderName = name.trim().parse().map_err(|_| BadRequest::Header)?;
        if OWN.contains(&name.as_str()) {
            return Err(BadRequest::OwnHeader(name.to_string()));
        }
        let mut value: HeaderValue = value.trim().parse().map_err(|_| BadRequest::Header)?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Sets the idempotency key: it is part of the request's identity and sent as `Idempotency-Key`.
    pub(in crate::commands) fn with_idempotency_key(mut self, key: &str) -> Result<Self, BadRequest> {
        let is_fit = (1..=255).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
        let value = HeaderValue::from_str(key).ok().filter(|_| is_fit).ok_or(BadRequest::IdempotencyKey)?;
        self.headers.insert(IDEMPOTENCY_KEY, value);
        self.idempotency_key = Some(key.to_owned());
        Ok(self)
    }

    /// Returns the idempotency key.
    pub(in crate::commands) fn idempotency_key(&self) -> Option<&str> {
        self.idempotency_key.as_deref()
    }

    /// Returns the headers.
    pub(super) const fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Returns the identity of the request: requests with equal identities are one purchase.
    pub(in crate::commands) fn key(&self) -> RequestKey {
        let mut url = self.url.clone();
        url.set_fragment(None);
        RequestKey::of(self.method.as_str(), url.as_str(), &self.body, self.idempotency_key.as_deref())
    }

    /// Returns the host and port of the URL.
    pub(in crate::commands) fn host(&self) -> Host<'_> {
        let name = self.url.host_str().unwrap_or_default();
        Host { name, port: self.url.port_or_known_default().unwrap_or_default() }
    }

    /// Starts the request.
    pub(in crate::commands) fn begin(&self, client: &Client) -> RequestBuilder {
        let request = client.request(self.method.clone(), self.url.clone()).headers(self.headers.clone());
        if self.body.is_empty() { request } else { request.body(self.body.clone()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(url: &str) -> Request {
        Request::get(Url::parse(url).unwrap())
    }

    #[test]
    fn the_identity_leaves_out_the_fragment_and_headers_but_not_the_key() {
        let first = get("https://a.example/x?y=1").key();
        assert_eq!(first, get("https://a.example/x?y=1#part").key());
        assert_eq!(first, get("https://a.example/x?y=1").with_header("X-Trace: 1").unwrap().key());
        assert_ne!(first, get("https://a.example/x?y=2").key());
        assert_ne!(first, get("https://a.example/x?y=1").with_idempotency_key("1").unwrap().key());
        assert_ne!(first, get("https://a.example/x?y=1").with_body(b"{}".to_vec(), false).key());
    }

    #[test]
    fn headers_of_the_payment_cannot_be_set() {
        for line in ["X-Payment: abc", "payment-signature: abc", "Host: b.example", "Idempotency-Key: 1"] {
            assert!(matches!(get("https://a.example/").with_header(line), Err(BadRequest::OwnHeader(_))), "{line}");
        }
        for line in ["nonsense", "a b: c", "x: \u{1}"] {
            assert!(matches!(get("https://a.example/").with_header(line), Err(BadRequest::Header)), "{line}");
        }
        assert!(get("https://a.example/").with_idempotency_key("").is_err());
        assert!(get("https://a.example/").with_idempotency_key("a b").is_err());
        assert!(get("https://a.example/").with_method("TRACE").is_err());
    }

    #[test]
    fn a_body_is_posted_as_json_by_default() {
        let posted = get("https://a.example/").with_body(b"{}".to_vec(), false);
        assert_eq!(
            (posted.method.as_str(), posted.headers[CONTENT_TYPE].to_str().unwrap()),
            ("POST", "application/json")
        );
        let put =
            get("https://a.example/").with_method("put").unwrap().with_header("content-type: text/plain").unwrap();
        let put = put.with_body(b"x".to_vec(), true);
        assert_eq!((put.method.as_str(), put.headers[CONTENT_TYPE].to_str().unwrap()), ("PUT", "text/plain"));
    }
}
