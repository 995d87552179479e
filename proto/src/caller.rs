//! Caller metadata of a request, written by the facade and read by the engine.

use std::fmt;

use http::HeaderValue;
use tonic::Request;

/// The API key.
pub const API_KEY: &str = "x-api-key";
/// The request id.
pub const REQUEST_ID: &str = "x-request-id";
/// The idempotency key.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// In a response: the result of an earlier request with the same idempotency key.
pub const IDEMPOTENT_REPLAYED: &str = "idempotent-replayed";
/// The client's IP address.
pub const CLIENT_IP: &str = "x-client-ip";

/// The metadata of a caller; every field is optional. Cloning is cheap.
#[derive(Clone, Default)]
pub struct Caller {
    /// The API key, unvalidated.
    pub api_key: Option<HeaderValue>,
    /// The request id.
    pub request_id: Option<HeaderValue>,
    /// The client's IP address.
    pub client_ip: Option<HeaderValue>,
    /// The idempotency key, unvalidated.
    pub idempotency_key: Option<HeaderValue>,
}

impl Caller {
    /// Returns a caller with an API key; a key that is not a valid header value is omitted.
    #[must_use]
    pub fn with_key(api_key: &str) -> Self {
        Self { api_key: HeaderValue::from_str(api_key).ok(), ..Self::default() }
    }

    /// Wraps a message with the metadata of this caller.
    pub fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        let headers = request.metadata_mut().as_mut();
        if let Some(key) = &self.api_key {
            let mut key = key.clone();
            key.set_sensitive(true);
            headers.insert(API_KEY, key);
        }
        if let Some(id) = &self.request_id {
            headers.insert(REQUEST_ID, id.clone());
        }
        if let Some(ip) = &self.client_ip {
            headers.insert(CLIENT_IP, ip.clone());
        }
        if let Some(key) = &self.idempotency_key {
            headers.insert(IDEMPOTENCY_KEY, key.clone());
        }
        request
    }

    /// Reads the caller metadata of a request.
    pub fn of<T>(request: &Request<T>) -> Self {
        let headers = request.metadata().as_ref();
        Self {
            api_key: headers.get(API_KEY).cloned(),
            request_id: headers.get(REQUEST_ID).cloned(),
            client_ip: headers.get(CLIENT_IP).cloned(),
            idempotency_key: headers.get(IDEMPOTENCY_KEY).cloned(),
        }
    }
}

/// Returns the API key of a request; `None` if it is not visible ASCII.
pub fn api_key<T>(request: &Request<T>) -> Option<&str> {
    request.metadata().as_ref().get(API_KEY).and_then(|key| key.to_str().ok())
}

/// Hides the API key.
impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("api_key", &self.api_key.as_ref().map(|_| ".."))
            .field("request_id", &self.request_id)
            .field("client_ip", &self.client_ip)
            .field("idempotency_key", &self.idempotency_key)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caller_metadata_round_trips_and_debug_hides_the_key() {
        let caller = Caller {
            api_key: Some(HeaderValue::from_static("sk_live_secret")),
            request_id: Some(HeaderValue::from_static("req-1")),
            client_ip: Some(HeaderValue::from_static("::1")),
            idempotency_key: Some(HeaderValue::from_static("order-1")),
        };
        let request = caller.request(());
        let read = Caller::of(&request);
        assert_eq!(api_key(&request), Some("sk_live_secret"));
        assert_eq!(read.request_id, caller.request_id);
        assert_eq!(read.client_ip, caller.client_ip);
        assert_eq!(read.idempotency_key, caller.idempotency_key);
        assert!(!format!("{caller:?} {request:?} {read:?}").contains("secret"));
    }

    #[test]
    fn an_api_key_that_is_not_ascii_is_none() {
        let key = HeaderValue::from_bytes(b"sk_live_\xff").ok();
        let caller = Caller { api_key: key, ..Caller::default() };
        assert_eq!(api_key(&caller.request(())), None);
    }
}
