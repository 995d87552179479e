//! Health of the connection to a remote engine: a failure is logged once, and again when it changes.

use std::{
    error::Error,
    sync::{Mutex, PoisonError},
};

use tonic::{Code, Status, TimeoutExpired, body::Body};
use tracing::{info, warn};

use crate::{ApiError, Reason};

type BoxError = Box<dyn Error + Send + Sync>;

/// The last failure of the connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionHealth {
    /// The URL of the engine, if there are several.
    url: Option<String>,
    failure: Mutex<Option<String>>,
}

impl ConnectionHealth {
    /// Creates the health of the connection to one of several engines.
    pub(crate) fn of(url: String) -> Self {
        Self { url: Some(url), failure: Mutex::default() }
    }

    /// Records the result of a call. Connection failures are returned as `UNAVAILABLE`.
    pub(crate) fn record(
        &self,
        outcome: Result<http::Response<Body>, tonic::transport::Error>,
    ) -> Result<http::Response<Body>, BoxError> {
        match outcome {
            Ok(response) => {
                self.set(is_denied(&response).then(|| {
                    "the engine rejected the access token; set the same grpc.token (HIVETILL_GRPC_TOKEN) for engine and facade"
                        .to_owned()
                }));
                Ok(response)
            }
            // The client timed out: the connection may be healthy.
            Err(error) if causes(&error).any(|cause| cause.is::<TimeoutExpired>()) => Err(error.into()),
            Err(error) => {
                self.set(Some(describe(&error)));
                Ok(Status::unavailable("the engine cannot be reached").into_http())
            }
        }
    }

    fn set(&self, failure: Option<String>) {
        let mut last = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if *last == failure {
            return;
        }
        let engine = self.url.as_ref().map_or_else(|| "the engine".to_owned(), |url| format!("the engine {url}"));
        match &failure {
            Some(failure) => warn!("connection to {engine} failed: {failure}"),
            None => info!("connection to {engine} restored"),
        }
        *last = failure;
    }
}

/// Returns whether the engine rejected the access token. An invalid API key has another reason.
fn is_denied(response: &http::Response<Body>) -> bool {
    let Some(status) = Status::from_header_map(response.headers()) else { return false };
    status.code() == Code::Unauthenticated && ApiError::from(status).reason == Reason::EngineAccessDenied
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// Formats an error with its causes and a hint.
fn describe(error: &tonic::transport::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    for cause in causes(error) {
        let text = cause.to_string();
        if !parts.contains(&text) {
            parts.push(text);
        }
    }
    let message = parts.join(": ");
    match hint(&message) {
        Some(hint) => format!("{message}; {hint}"),
        None => message,
    }
}

/// Returns a hint for resolving a connection error; `None` if the error is not known.
fn hint(message: &str) -> Option<&'static str> {
    let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if has(&["alert: CertificateExpired"]) {
        Some("the client certificate has expired: renew grpc.tls_client_cert")
    } else if has(&["CertificateRequired", "UnknownCA", "BadCertificate", "alert: DecryptError"]) {
        Some(
            "the engine requires a client certificate of its authority (grpc.tls_client_ca): set grpc.tls_client_cert and \
             grpc.tls_client_key",
        )
    } else if has(&["certificate expired", "certificate: Expired"]) {
        Some("the engine's certificate has expired: renew grpc.tls_cert at the engine")
    } else if has(&["certificate", "UnknownIssuer"]) {
        Some("check grpc.tls_ca, and that the engine's certificate is valid for the host of engine_url")
    } else if has(&["InvalidContentType", "corrupt message"]) {
        Some("engine_url starts with https, but the port does not seem to use TLS")
    } else if has(&["http2", "h2 protocol", "frame", "connection closed", "broken pipe"]) {
        Some(
            "if the port uses TLS, engine_url must start with https, and grpc.tls_ca must be set; if it requires client \
             certificates, set grpc.tls_client_cert and grpc.tls_client_key",
        )
    } else if has(&["Connection refused", "connection refused"]) {
        Some("check engine_url and that the engine is running")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tonic::transport::Channel;

    use super::*;
    use crate::{Engine, Transport, v1};

    #[tokio::test]
    async fn plain_http_to_a_tls_port_is_engine_unavailable() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let server = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                // The response of a TLS server to anything but a ClientHello: an alert.
                let _ = stream.read(&mut [0; 64]).await;
                let _ = stream.write_all(&[0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x16]).await;
            }
        });
        let channel = Channel::from_shared(format!("http://{address}")).expect("an address").connect_lazy();
        let engine = Engine::new(Transport::remote(channel, Some("token")).expect("a token"));
        for _ in 0..3 {
            let refused = engine.system().get_health(v1::GetHealthRequest {}).await.expect_err("no engine");
            let error = ApiError::from(refused);
            assert_eq!((error.reason, error.http()), (Reason::EngineUnavailable, 503));
        }
        server.abort();
    }

    #[test]
    fn each_connection_error_has_a_hint() {
        for (text, word) in [
            ("transport error: received fatal alert: CertificateRequired", "grpc.tls_client_cert"),
            ("transport error: received fatal alert: UnknownCA", "grpc.tls_client_cert"),
            ("transport error: received fatal alert: CertificateExpired", "renew grpc.tls_client_cert"),
            (
                "transport error: invalid peer certificate: certificate expired: verification time 2",
                "renew grpc.tls_cert ",
            ),
            ("transport error: invalid peer certificate: UnknownIssuer", "grpc.tls_ca"),
            ("transport error: received corrupt message of type InvalidContentType", "not seem to use TLS"),
            ("transport error: http2 error: frame with invalid size", "https"),
            ("transport error: tcp connect error: Connection refused (os error 111)", "engine is running"),
        ] {
            assert!(hint(text).is_some_and(|hint| hint.contains(word)), "{text}");
        }
        assert_eq!(hint("dns error"), None);
    }
}
