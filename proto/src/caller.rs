//! Who is asking: what travels beside a message, written by the facade and read by the engine.

use std::fmt;

use http::HeaderValue;
use tonic::Request;

/// The merchant's key, as it came.
pub const API_KEY: &str = "x-api-key";
/// The caller's name for the request.
pub const REQUEST_ID: &str = "x-request-id";
/// The key under which a request is done once.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// In an answer: the request was done before, and this is what it made.
pub const IDEMPOTENT_REPLAYED: &str = "idempotent-replayed";
/// The address of the person or machine behind the caller.
pub const CLIENT_IP: &str = "x-client-ip";

/// Who stands behind one call. Every part may be absent. Cloning copies no text.
#[derive(Clone, Default)]
pub struct Caller {
    /// The merchant's key, unchecked.
    pub api_key: Option<HeaderValue>,
    /// The name of the request.
    pub request_id: Option<HeaderValue>,
    /// Where the request comes from.
    pub client_ip: Option<HeaderValue>,
    /// The key under which it is done once, unchecked.
    pub idempotency_key: Option<HeaderValue>,
}

impl Caller {
    /// Returns the caller who shows an API key; a text that cannot stand in a header is no key.
    #[must_use]
    pub fn with_key(api_key: &str) -> Self {
        Self { api_key: HeaderValue::from_str(api_key).ok(), ..Self::default() }
    }

    /// Wraps a message for this caller.
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

    /// Reads the caller of a request.
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

/// Returns the key that came with a request; one that is no text is no key.
pub fn api_key<T>(request: &Request<T>) -> Option<&str> {
    request.metadata().as_ref().get(API_KEY).and_then(|key| key.to_str().ok())
}

/// Hides the key.
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
    fn a_caller_reads_back_and_its_key_is_never_shown() {
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
    fn a_key_that_is_no_text_is_no_key() {
        let key = HeaderValue::from_bytes(b"sk_live_\xff").ok();
        let caller = Caller { api_key: key, ..Caller::default() };
        assert_eq!(api_key(&caller.request(())), None);
    }
}
