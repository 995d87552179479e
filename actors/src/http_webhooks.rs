//! Webhooks over real HTTP: one request, no redirects, no proxy, no cookies, no connection shared between merchants.

use std::time::Duration;

use engine::webhook::Outcome;
use futures_util::future::BoxFuture;
use reqwest::{Client, redirect::Policy};

use crate::environment::{WebhookRequest, WebhookResponse, WebhookTransport};

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// What is read of an answer, and what of that is kept.
const MAX_ANSWER: usize = 64 * 1024;
const MAX_SNIPPET: usize = 1024;

/// Posts webhooks with reqwest.
#[derive(Debug, Clone)]
pub struct HttpWebhooks {
    client: Client,
}

impl HttpWebhooks {
    /// Returns a transport.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new() -> Result<Self, reqwest::Error> {
        let client = Client::builder()
            .redirect(Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_max_idle_per_host(0)
            .build()?;
        Ok(Self { client })
    }

    async fn send(&self, request: WebhookRequest) -> WebhookResponse {
        let mut outgoing = self.client.post(&request.url).timeout(request.timeout).body(request.body);
        for (name, value) in request.headers {
            outgoing = outgoing.header(name, value);
        }
        let mut answer = match outgoing.send().await {
            Ok(answer) => answer,
            Err(error) => return WebhookResponse { outcome: failure(&error), snippet: String::new() },
        };
        let status = answer.status();
        let retry_after = answer.headers().get(reqwest::header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok()).map(Duration::from_secs);
        let mut read = 0;
        let mut body = Vec::new();
        // The status is what counts: an answer that breaks off or never ends does not undo it.
        while let Ok(Some(chunk)) = answer.chunk().await {
            read += chunk.len();
            body.extend(chunk.iter().take(MAX_SNIPPET - body.len().min(MAX_SNIPPET)));
            if read >= MAX_ANSWER {
                break;
            }
        }
        let outcome = if status.is_success() {
            Outcome::Accepted { status: status.as_u16() }
        } else {
            Outcome::Refused { status: status.as_u16(), retry_after }
        };
        WebhookResponse { outcome, snippet: String::from_utf8_lossy(&body).into_owned() }
    }
}

impl WebhookTransport for HttpWebhooks {
    fn post(&self, request: WebhookRequest) -> BoxFuture<'_, WebhookResponse> {
        Box::pin(self.send(request))
    }
}

fn failure(error: &reqwest::Error) -> Outcome {
    let mut causes = String::new();
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(inner) = cause {
        causes.push_str(&inner.to_string());
        cause = inner.source();
    }
    let causes = causes.to_lowercase();
    if error.is_timeout() {
        Outcome::Timeout
    } else if causes.contains("dns") || causes.contains("resolve") {
        Outcome::Dns
    } else if causes.contains("certificate") || causes.contains("tls") || causes.contains("handshake") {
        Outcome::Tls
    } else {
        Outcome::Connect
    }
}
