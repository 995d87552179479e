//! Who is asking: what travels beside a message, written by the facade and read by the engine.

use std::fmt;

use tonic::{
    Request,
    metadata::{Ascii, MetadataMap, MetadataValue},
};

/// The merchant's key, as it came.
pub const API_KEY: &str = "x-api-key";
/// The caller's name for the request.
pub const REQUEST_ID: &str = "x-request-id";
/// The address of the person or machine behind the caller.
pub const CLIENT_IP: &str = "x-client-ip";

/// Who stands behind one call. Every part may be absent.
#[derive(Clone, Default)]
pub struct Caller {
    /// The merchant's key, unchecked.
    pub api_key: Option<String>,
    /// The name of the request.
    pub request_id: Option<String>,
    /// Where the request comes from.
    pub client_ip: Option<String>,
}

impl Caller {
    /// Wraps a message for this caller. A part that cannot stand in a header is left out: such a key is no key.
    pub fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        let metadata = request.metadata_mut();
        if let Some(mut key) = self.api_key.as_deref().and_then(ascii) {
            key.set_sensitive(true);
            metadata.insert(API_KEY, key);
        }
        if let Some(id) = self.request_id.as_deref().and_then(ascii) {
            metadata.insert(REQUEST_ID, id);
        }
        if let Some(ip) = self.client_ip.as_deref().and_then(ascii) {
            metadata.insert(CLIENT_IP, ip);
        }
        request
    }

    /// Reads the caller of a request.
    pub fn of<T>(request: &Request<T>) -> Self {
        let metadata = request.metadata();
        Self {
            api_key: text(metadata, API_KEY),
            request_id: text(metadata, REQUEST_ID),
            client_ip: text(metadata, CLIENT_IP),
        }
    }
}

/// Hides the key.
impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("api_key", &self.api_key.as_ref().map(|_| ".."))
            .field("request_id", &self.request_id)
            .field("client_ip", &self.client_ip)
            .finish()
    }
}

fn ascii(text: &str) -> Option<MetadataValue<Ascii>> {
    text.parse().ok()
}

fn text(metadata: &MetadataMap, name: &'static str) -> Option<String> {
    metadata.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_reads_back_and_its_key_is_never_shown() {
        let caller = Caller {
            api_key: Some("sk_live_secret".to_owned()),
            request_id: Some("req-1".to_owned()),
            client_ip: Some("::1".to_owned()),
        };
        let request = caller.request(());
        let read = Caller::of(&request);
        assert_eq!(read.api_key, caller.api_key);
        assert_eq!(read.request_id, caller.request_id);
        assert_eq!(read.client_ip, caller.client_ip);
        assert!(!format!("{caller:?} {request:?}").contains("secret"));
    }

    #[test]
    fn a_key_that_cannot_stand_in_a_header_is_no_key() {
        let caller = Caller { api_key: Some("sk\nlive".to_owned()), ..Caller::default() };
        assert_eq!(Caller::of(&caller.request(())).api_key, None);
    }
}
