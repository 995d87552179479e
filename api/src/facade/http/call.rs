//! One request as a handler sees it: its parts, who asks, and its body read within limits.

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

/// Bytes of all header names and values at most.
const HEADERS_MAX_BYTES: usize = 32 * 1024;
/// Bytes of a path and query at most.
const URI_MAX_BYTES: usize = 8 * 1024;
/// How much of a refused body is read away, so that its sender sees the answer instead of a reset connection.
const DRAIN_MAX_BYTES: usize = 4 * 1024 * 1024;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// A body that has not been read yet.
pub(crate) struct Incoming {
    chunks: Pin<Box<dyn Stream<Item = Result<Bytes, warp::Error>> + Send + Sync>>,
    timeout: Duration,
}

impl Incoming {
    /// Takes a body that must have arrived within `timeout` of its first reading.
    pub(crate) fn new(
        chunks: impl Stream<Item = Result<Bytes, warp::Error>> + Send + Sync + 'static,
        timeout: Duration,
    ) -> Self {
        Self { chunks: Box::pin(chunks), timeout }
    }
}

/// What came before the body, shared instead of copied.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    /// The other end of the connection. Behind a proxy this is the proxy.
    pub(crate) client: IpAddr,
    /// How long the body may take to arrive.
    pub(crate) body_timeout: Duration,
    /// Whether it came where only health is told.
    pub(crate) is_health: bool,
}

/// What a route takes from a request. An unknown path takes nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Input {
    pub(crate) query: &'static [Parameter],
    /// Size of the body at most, in bytes.
    pub(crate) body_max_bytes: usize,
}

/// One request.
pub(crate) struct Call {
    /// Its method; HEAD has become GET.
    pub(crate) method: Method,
    /// Who asks.
    pub(crate) caller: Caller,
    head: Arc<Head>,
    body: Incoming,
    client: IpAddr,
    input: Input,
}

impl Call {
    /// Takes a request apart.
    pub(crate) fn new(head: Arc<Head>, body: Incoming, input: Input) -> Self {
        // HEAD gets the same answer; the server keeps its body to itself.
        let method = if head.method == Method::HEAD { Method::GET } else { head.method.clone() };
        let client = head.client;
        Self { method, caller: Caller::default(), head, body, client, input }
    }

    /// Says whom the request comes from.
    pub(crate) fn set_client(&mut self, client: IpAddr) {
        self.client = client;
        self.caller.client_ip = HeaderValue::from_str(&client.to_string()).ok();
    }

    /// Returns the address of who asks.
    pub(crate) const fn client(&self) -> IpAddr {
        self.client
    }

    /// Takes a place among the open streams, which the answer must keep.
    pub(crate) fn stream(&self, edge: &Edge) -> Result<Option<StreamPermit>, ApiError> {
        edge.stream(self.client)
    }

    /// Returns the method as it was sent: HEAD is HEAD.
    pub(crate) fn sent_method(&self) -> &Method {
        &self.head.method
    }

    /// Returns the path.
    pub(crate) fn path(&self) -> &str {
        self.head.uri.path()
    }

    /// Returns the name of the request.
    pub(crate) fn request_id(&self) -> &str {
        self.caller.request_id.as_ref().and_then(|id| id.to_str().ok()).unwrap_or_default()
    }

    /// Returns the headers.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// Returns the `Idempotency-Key`. Two that differ are refused: a proxy and we might each take another.
    pub(crate) fn idempotency_key(&self) -> Result<Option<HeaderValue>, ApiError> {
        let mut keys = self.headers().get_all(IDEMPOTENCY_KEY).iter();
        let first = keys.next();
        if keys.any(|key| Some(key) != first) {
            return Err(ApiError::field("Idempotency-Key", "is given more than once"));
        }
        Ok(first.cloned())
    }

    /// Checks the sizes of what came before the body.
    pub(crate) fn check_head(&self) -> Result<(), ApiError> {
        let query = self.head.uri.query().unwrap_or_default();
        if self.head.uri.path().len() + query.len() > URI_MAX_BYTES {
            return Err(ApiError::new(Reason::UriTooLong));
        }
        let bytes: usize = self.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
        if bytes > HEADERS_MAX_BYTES {
            return Err(ApiError::with_message(
                Reason::HeadersTooLarge,
                format!("the headers have {bytes} bytes; at most {HEADERS_MAX_BYTES} are read"),
            ));
        }
        Ok(())
    }

    /// Says who asks, by their key; without one there is nothing to ask the engine.
    pub(crate) fn with_key(&mut self) -> Result<&Caller, ApiError> {
        self.caller.api_key = Some(auth::api_key(self.headers())?);
        Ok(&self.caller)
    }

    /// Returns the query's parameters.
    pub(crate) fn query(&self) -> Query {
        let known = Some(self.input.query).filter(|known| !known.is_empty());
        Query::of_route(self.head.uri.query().unwrap_or_default(), known)
    }

    /// Refuses every query parameter: the list has none.
    pub(crate) fn no_parameters(&self) -> Result<(), ApiError> {
        Query::of_route(self.head.uri.query().unwrap_or_default(), Some(&[])).finish()
    }

    /// Refuses every member of a body that need not be there.
    pub(crate) async fn no_body(&mut self) -> Result<(), ApiError> {
        self.optional_json().await?.finish()
    }

    /// Says whether the caller takes an answer of this type.
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

    /// Reads the body as a JSON object; no body at all is an empty one.
    pub(crate) async fn optional_json(&mut self) -> Result<Body, ApiError> {
        let bytes = self.read_body(true).await?;
        if bytes.is_empty() { Ok(Body::default()) } else { Body::parse(&bytes) }
    }

    /// Reads the body as bytes that are announced as JSON.
    pub(crate) async fn json_bytes(&mut self) -> Result<Bytes, ApiError> {
        self.read_body(true).await
    }

    /// Reads the body as an HTML form's fields.
    pub(crate) async fn form(&mut self) -> Result<Query, ApiError> {
        let bytes = self.read_body(false).await?;
        Ok(Query::parse(std::str::from_utf8(&bytes).unwrap_or_default()))
    }

    async fn read_body(&mut self, is_json: bool) -> Result<Bytes, ApiError> {
        let most = self.input.body_max_bytes;
        let announced = self.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|length| length > most as u64) {
            return Err(self.refuse_large_body(most).await);
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
                        "the body ended too early or is badly framed",
                    ));
                }
                Ok(Some(Ok(chunk))) => chunk,
            };
            if whole.len() + chunk.len() > most {
                return Err(self.refuse_large_body(most).await);
            }
            // Nearly every body arrives in one piece and is not copied.
            whole = if whole.is_empty() { chunk } else { [whole, chunk].concat().into() };
        }
        if is_json && !whole.is_empty() {
            if !self.headers().get(CONTENT_TYPE).is_none_or(is_json_type) {
                return Err(ApiError::new(Reason::UnsupportedMediaType));
            }
            if self.headers().get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
                let message = "request bodies are read without content-encoding only";
                return Err(ApiError::with_message(Reason::UnsupportedMediaType, message));
            }
        }
        Ok(whole)
    }

    async fn refuse_large_body(&mut self, most: usize) -> ApiError {
        let drain = async {
            let mut read = 0;
            while let Some(Ok(chunk)) = self.body.chunks.next().await {
                read += chunk.len();
                if read > DRAIN_MAX_BYTES {
                    break;
                }
            }
        };
        // Whether it ended or not, the answer is the same.
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, drain).await;
        ApiError::with_message(Reason::BodyTooLarge, format!("the body has more than {most} bytes"))
    }
}

fn is_json_type(value: &HeaderValue) -> bool {
    let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let lower = essence.to_ascii_lowercase();
    lower == "application/json" || (lower.starts_with("application/") && lower.ends_with("+json"))
}

/// Shows neither key nor body.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("method", &self.method).field("caller", &self.caller).finish_non_exhaustive()
    }
}

/// Names requests: the caller's own name where it is fit, or one of ours.
pub(crate) struct RequestIds {
    seed: u64,
    count: AtomicU64,
}

impl RequestIds {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { seed, count: AtomicU64::new(0) }
    }

    pub(crate) fn of(&self, headers: &HeaderMap) -> HeaderValue {
        let given = headers.get(proto::caller::REQUEST_ID);
        given.filter(|name| is_fit(name.as_bytes())).cloned().unwrap_or_else(|| self.next())
    }

    fn next(&self) -> HeaderValue {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let bits = (u128::from(self.seed) << 64) | u128::from(count);
        let mut name = *b"req_00000000000000000000000000";
        name[4..].copy_from_slice(&engine::ids::encode(bits));
        HeaderValue::from_bytes(&name).expect("letters and digits may stand in a header")
    }
}

fn is_fit(name: &[u8]) -> bool {
    (1..=64).contains(&name.len()) && name.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.:".contains(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_keeps_a_fit_name_of_its_callers() {
        let ids = RequestIds::new(7);
        let named = |name: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-request-id", HeaderValue::from_str(name).expect("a header"));
            ids.of(&headers).to_str().expect("text").to_owned()
        };
        assert_eq!(named("order-7.2"), "order-7.2");
        for unfit in ["", "a b", "<script>", &"x".repeat(65)] {
            assert!(named(unfit).starts_with("req_"), "{unfit}");
        }
        assert_ne!(ids.of(&HeaderMap::new()), ids.of(&HeaderMap::new()));
    }

    #[test]
    fn json_is_announced_as_json() {
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
