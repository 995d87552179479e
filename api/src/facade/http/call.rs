//! The request as handlers see it: head, query, caller, and a body that is read within limits.

use std::{
    fmt,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::{
    HeaderMap, HeaderValue, Method, Uri,
    header::{ACCEPT, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE},
};
use proto::{ApiError, Caller, Reason, caller::IDEMPOTENCY_KEY};

use super::{
    auth,
    body::Body,
    query::{Parameter, Query},
};
use crate::facade::limits::{Edge, StreamPermit};

/// Maximum bytes of all header names and values.
const HEADERS_MAX_BYTES: usize = 32 * 1024;
/// Maximum bytes of path and query.
const URI_MAX_BYTES: usize = 8 * 1024;
/// Maximum bytes that are discarded of a refused body, so that the client reads the response instead of a reset.
const DRAIN_MAX_BYTES: usize = 4 * 1024 * 1024;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// A body that is not read yet.
pub(crate) struct Incoming {
    chunks: Pin<Box<dyn Stream<Item = Result<Bytes, warp::Error>> + Send + Sync>>,
    timeout: Duration,
}

impl Incoming {
    /// Wraps a body that must arrive within `timeout` from the first read.
    pub(crate) fn new(
        chunks: impl Stream<Item = Result<Bytes, warp::Error>> + Send + Sync + 'static,
        timeout: Duration,
    ) -> Self {
        Self { chunks: Box::pin(chunks), timeout }
    }
}

/// The head of a request, shared instead of copied.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    /// The peer of the connection: the proxy, if there is one.
    pub(crate) client: IpAddr,
    /// Maximum time until the whole body has arrived.
    pub(crate) body_timeout: Duration,
    /// Whether it arrived at the listener for health checks.
    pub(crate) is_health: bool,
}

/// The query parameters and the body that a route accepts. An unknown path accepts none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Input {
    pub(crate) query: &'static [Parameter],
    /// Maximum body size in bytes.
    pub(crate) body_max_bytes: usize,
}

/// One request.
pub(crate) struct Call {
    /// Method; HEAD is replaced by GET.
    pub(crate) method: Method,
    /// Credentials and request id that are sent on to the engine.
    pub(crate) caller: Caller,
    head: Arc<Head>,
    body: Incoming,
    client: IpAddr,
    input: Input,
}

impl Call {
    /// Creates a request from its parts.
    pub(crate) fn new(head: Arc<Head>, body: Incoming, input: Input) -> Self {
        // HEAD runs the handler of GET; the server omits the body.
        let method = if head.method == Method::HEAD { Method::GET } else { head.method.clone() };
        let client = head.client;
        Self { method, caller: Caller::default(), head, body, client, input }
    }

    /// Sets the IP address of the client.
    pub(crate) fn set_client(&mut self, client: IpAddr) {
        self.client = client;
        self.caller.client_ip = HeaderValue::from_str(&client.to_string()).ok();
    }

    /// Returns the IP address of the client.
    pub(crate) const fn client(&self) -> IpAddr {
        self.client
    }

    /// Takes a permit for an open stream, which the response holds while it is sent.
    ///
    /// # Errors
    /// `rate_limited` if the client has the maximum of open streams.
    pub(crate) fn stream(&self, edge: &Edge) -> Result<Option<StreamPermit>, ApiError> {
        edge.stream(self.client)
    }

    /// Returns the method as sent: HEAD stays HEAD.
    pub(crate) fn sent_method(&self) -> &Method {
        &self.head.method
    }

    /// Returns the path.
    pub(crate) fn path(&self) -> &str {
        self.head.uri.path()
    }

    /// Returns the request id.
    pub(crate) fn request_id(&self) -> &str {
        self.caller.request_id.as_ref().and_then(|id| id.to_str().ok()).unwrap_or_default()
    }

    /// Returns the headers.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// Returns the `Idempotency-Key`. Two different ones are refused, because a proxy could use one and the gateway the
    /// other.
    pub(crate) fn idempotency_key(&self) -> Result<Option<HeaderValue>, ApiError> {
        let mut keys = self.headers().get_all(IDEMPOTENCY_KEY).iter();
        let first = keys.next();
        if keys.any(|key| Some(key) != first) {
            return Err(ApiError::field("Idempotency-Key", "is set more than once"));
        }
        Ok(first.cloned())
    }

    /// Checks the size of URI and headers.
    pub(crate) fn check_head(&self) -> Result<(), ApiError> {
        let query = self.head.uri.query().unwrap_or_default();
        if self.head.uri.path().len() + query.len() > URI_MAX_BYTES {
            return Err(ApiError::new(Reason::UriTooLong));
        }
        let bytes: usize = self.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
        if bytes > HEADERS_MAX_BYTES {
            return Err(ApiError::with_message(
                Reason::HeadersTooLarge,
                format!("the headers have {bytes} bytes; the maximum is {HEADERS_MAX_BYTES}"),
            ));
        }
        Ok(())
    }

    /// Reads the API key and returns the caller.
    ///
    /// # Errors
    /// `invalid_api_key` or `conflicting_credentials`, without a call of the engine.
    pub(crate) fn with_key(&mut self) -> Result<&Caller, ApiError> {
        self.caller.api_key = Some(auth::api_key(self.headers())?);
        Ok(&self.caller)
    }

    /// Returns the query parameters.
    pub(crate) fn query(&self) -> Query {
        let known = Some(self.input.query).filter(|known| !known.is_empty());
        Query::of_route(self.head.uri.query().unwrap_or_default(), known)
    }

    /// Returns an error if there are query parameters.
    pub(crate) fn no_parameters(&self) -> Result<(), ApiError> {
        Query::of_route(self.head.uri.query().unwrap_or_default(), Some(&[])).finish()
    }

    /// Returns an error if the body has fields. It may be missing.
    pub(crate) async fn no_body(&mut self) -> Result<(), ApiError> {
        self.optional_json().await?.finish()
    }

    /// Returns whether `Accept` names a media type.
    pub(crate) fn accepts(&self, media_type: &str) -> bool {
        let accept = self.headers().get_all(ACCEPT);
        accept.iter().filter_map(|value| value.to_str().ok()).any(|value| {
            value
                .split(',')
                .any(|part| part.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(media_type))
        })
    }

    /// Reads the body as a JSON object.
    pub(crate) async fn json(&mut self) -> Result<Body, ApiError> {
        let bytes = self.read_body(true).await?;
        Body::parse(&bytes)
    }

    /// Reads the body as a JSON object; a missing body counts as an empty one.
    pub(crate) async fn optional_json(&mut self) -> Result<Body, ApiError> {
        let bytes = self.read_body(true).await?;
        if bytes.is_empty() { Ok(Body::default()) } else { Body::parse(&bytes) }
    }

    /// Reads a body of type JSON as bytes.
    pub(crate) async fn json_bytes(&mut self) -> Result<Bytes, ApiError> {
        self.read_body(true).await
    }

    /// Reads the fields of an HTML form.
    pub(crate) async fn form(&mut self) -> Result<Query, ApiError> {
        let bytes = self.read_body(false).await?;
        Ok(Query::parse(std::str::from_utf8(&bytes).unwrap_or_default()))
    }

    async fn read_body(&mut self, is_json: bool) -> Result<Bytes, ApiError> {
        let max_bytes = self.input.body_max_bytes;
        let announced = self.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|length| length > max_bytes as u64) {
            return Err(self.refuse_large_body(max_bytes).await);
        }
        let mut whole = Bytes::new();
        let deadline = tokio::time::Instant::now() + self.body.timeout;
        loop {
            let next = tokio::time::timeout_at(deadline, self.body.chunks.next()).await;
            let chunk = match next {
                Err(_) => return Err(ApiError::new(Reason::RequestTimeout)),
                Ok(None) => break,
                Ok(Some(Err(_))) => {
                    return Err(ApiError::with_message(
                        Reason::BadRequest,
                        "the body is incomplete or its framing is invalid",
                    ));
                }
                Ok(Some(Ok(chunk))) => chunk,
            };
            if whole.len() + chunk.len() > max_bytes {
                return Err(self.refuse_large_body(max_bytes).await);
            }
            // Nearly every body arrives in one chunk and is not copied.
            whole = if whole.is_empty() { chunk } else { [whole, chunk].concat().into() };
        }
        if is_json && !whole.is_empty() {
            if !self.headers().get(CONTENT_TYPE).is_none_or(is_json_type) {
                return Err(ApiError::new(Reason::UnsupportedMediaType));
            }
            if self.headers().get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
                let message = "request bodies must not have a content-encoding";
                return Err(ApiError::with_message(Reason::UnsupportedMediaType, message));
            }
        }
        Ok(whole)
    }

    async fn refuse_large_body(&mut self, max_bytes: usize) -> ApiError {
        let drain = async {
            let mut read = 0;
            while let Some(Ok(chunk)) = self.body.chunks.next().await {
                read += chunk.len();
                if read > DRAIN_MAX_BYTES {
                    break;
                }
            }
        };
        // The response is the same whether all of it arrived or not.
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, drain).await;
        ApiError::with_message(Reason::BodyTooLarge, format!("the body has more than {max_bytes} bytes"))
    }
}

fn is_json_type(value: &HeaderValue) -> bool {
    let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let lower = essence.to_ascii_lowercase();
    lower == "application/json" || (lower.starts_with("application/") && lower.ends_with("+json"))
}

/// Omits API key and body.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("method", &self.method).field("caller", &self.caller).finish_non_exhaustive()
    }
}

/// Chooses the request id: that of the client if it is valid, otherwise a new one.
pub(crate) struct RequestIds {
    seed: u64,
    count: AtomicU64,
}

impl RequestIds {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { seed, count: AtomicU64::new(0) }
    }

    pub(crate) fn of(&self, headers: &HeaderMap) -> HeaderValue {
        let sent = headers.get(proto::caller::REQUEST_ID);
        sent.filter(|id| is_valid_id(id.as_bytes())).cloned().unwrap_or_else(|| self.next())
    }

    fn next(&self) -> HeaderValue {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let bits = (u128::from(self.seed) << 64) | u128::from(count);
        let mut id = *b"req_00000000000000000000000000";
        id[4..].copy_from_slice(&engine::ids::encode(bits));
        HeaderValue::from_bytes(&id).expect("letters and digits are valid in a header")
    }
}

fn is_valid_id(id: &[u8]) -> bool {
    (1..=64).contains(&id.len()) && id.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.:".contains(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valid_request_id_of_the_client_is_kept() {
        let ids = RequestIds::new(7);
        let id_of = |name: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-request-id", HeaderValue::from_str(name).expect("a header"));
            ids.of(&headers).to_str().expect("text").to_owned()
        };
        assert_eq!(id_of("order-7.2"), "order-7.2");
        for invalid in ["", "a b", "<script>", &"x".repeat(65)] {
            assert!(id_of(invalid).starts_with("req_"), "{invalid}");
        }
        assert_ne!(ids.of(&HeaderMap::new()), ids.of(&HeaderMap::new()));
    }

    #[test]
    fn json_media_types_are_recognized() {
        for (value, yes) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/merge-patch+json", true),
            ("text/plain", false),
            ("application/x-www-form-urlencoded", false),
        ] {
            assert_eq!(is_json_type(&HeaderValue::from_static(value)), yes, "{value}");
        }
    }
}
