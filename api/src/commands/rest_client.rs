//! A client of a gateway's REST API, for commands that act for a merchant.

use std::{fmt, time::Duration};

use reqwest::{
    Client, Method, Response, Url,
    header::{AUTHORIZATION, HeaderValue},
    redirect::Policy,
};
use serde_json::{Value, json};

use super::failure::Failure;

/// Timeout of a call.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The silence after which the stream of events counts as lost. The gateway sends something every 15 seconds.
const IDLE: Duration = Duration::from_secs(45);

/// The API of a gateway as a merchant sees it.
pub(super) struct RestClient {
    calls: Client,
    streams: Client,
    base: Url,
    authorization: HeaderValue,
}

/// The failure of a call.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    /// No response arrived.
    #[error("the gateway is unreachable: {0}")]
    Unreachable(#[from] reqwest::Error),
    /// The gateway refused the call.
    #[error("the gateway refused the call: {} ({status} {})", text(.body, "statusMessage"), text(.body, "reason"))]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The body of the error.
        body: Value,
    },
}

/// Hides the key.
impl fmt::Debug for RestClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestClient").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

impl RestClient {
    pub(super) fn new(base: &Url, key: &str) -> Result<Self, Failure> {
        if !matches!(base.scheme(), "http" | "https") {
            return Err(Failure::Other("the URL of the gateway must begin with http:// or https://".to_owned()));
        }
        let unfit = |_| Failure::Other("the API key is not a valid header value".to_owned());
        let mut authorization = HeaderValue::from_str(&format!("Bearer {key}")).map_err(unfit)?;
        authorization.set_sensitive(true);
        let failed = |error| Failure::Other(format!("cannot create a client: {error}"));
        let builder = || Client::builder().redirect(Policy::none()).connect_timeout(TIMEOUT);
        let calls = builder().timeout(TIMEOUT).build().map_err(failed)?;
        let streams = builder().read_timeout(IDLE).build().map_err(failed)?;
        let mut base = base.clone();
        base.set_query(None);
        Ok(Self { calls, streams, base, authorization })
    }

    /// Calls an endpoint below `/api/public` and returns the body of its response.
    pub(super) async fn call(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, String)],
        body: Option<&Value>,
        idempotency_key: Option<&str>,
    ) -> Result<Value, CallError> {
        let mut url = self.url(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = self.calls.request(method, url).header(AUTHORIZATION, self.authorization.clone());
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some(key) = idempotency_key {
            request = request.header("idempotency-key", key);
        }
        Ok(accepted(request.send().await).await?.json().await.map_err(reqwest::Error::without_url)?)
    }

    /// Opens the stream of events behind a cursor, or from now on.
    pub(super) async fn events(&self, cursor: Option<&str>) -> Result<Response, CallError> {
        let request = self.streams.get(self.url(&["events", "stream"]));
        let mut request = request.header(AUTHORIZATION, self.authorization.clone());
        if let Some(cursor) = cursor {
            request = request.header("last-event-id", cursor);
        }
        accepted(request.send().await).await
    }

    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            // Each segment is escaped, so that an id cannot select another route.
            segments.pop_if_empty().extend(["api", "public"]).extend(path);
        }
        url
    }
}

/// Returns a successful response, or the error.
async fn accepted(sent: Result<Response, reqwest::Error>) -> Result<Response, CallError> {
    let response = sent.map_err(reqwest::Error::without_url)?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    // A proxy may respond with something else than JSON.
    let other = |_| json!({ "reason": "unknown", "statusMessage": "the response is no JSON" });
    let body = response.json().await.unwrap_or_else(other);
    Err(CallError::Refused { status: status.as_u16(), body })
}

/// Returns a text of an error's body.
pub(super) fn text<'a>(body: &'a Value, member: &str) -> &'a str {
    body[member].as_str().unwrap_or_default()
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Other(error.to_string())
    }
}
