//! Posts events to the local URL, signed like a webhook.

use std::time::Duration;

use actors::{environment::Clock as _, system::SystemClock};
use engine::{
    ids::EventId,
    webhook::{Secret, Secrets},
};
use reqwest::{Client, Url, redirect::Policy};
use serde_json::Value;

use crate::commands::{failure::Failure, rest_client::text};

/// The time within which the receiver must respond: that of a webhook.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The local receiver.
#[derive(Debug)]
pub(super) struct Forwarder {
    client: Client,
    to: Url,
    secrets: Secrets,
}

/// The outcome of a post.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The receiver responded with this status.
    Status(u16),
    /// No response arrived.
    Failed(String),
}

impl Forwarder {
    pub(super) fn new(to: Url, secret: Secret) -> Result<Self, Failure> {
        if !matches!(to.scheme(), "http" | "https") {
            return Err(Failure::Other("--forward-to must begin with http:// or https://".to_owned()));
        }
        let client = Client::builder().redirect(Policy::none()).timeout(TIMEOUT).build();
        let client = client.map_err(|error| Failure::Other(format!("cannot create a client: {error}")))?;
        Ok(Self { client, to, secrets: Secrets::only(secret) })
    }

    /// Posts an event once, with the headers of a webhook's first attempt, and waits for the response.
    pub(super) async fn post(&self, event: &Value, body: &[u8]) -> Result<Outcome, Failure> {
        let id: EventId = text(event, "id").parse().map_err(|_| Failure::Other("an event has no id".to_owned()))?;
        let signed = self.secrets.sign(id, body, SystemClock.now());
        let request = self
            .client
            .post(self.to.clone())
            .header("content-type", "application/json")
            .header("user-agent", "Hivetill-Webhooks/1")
            .header("x-hivetill-timestamp", signed.timestamp_ms)
            .header("x-hivetill-signature", signed.legacy)
            .header("x-hivetill-event", text(event, "type"))
            .header("x-hivetill-attempt", 1)
            .header("webhook-id", signed.standard_id)
            .header("webhook-timestamp", signed.standard_timestamp_s)
            .header("webhook-signature", signed.standard)
            .body(body.to_vec());
        Ok(match request.send().await {
            Ok(response) => Outcome::Status(response.status().as_u16()),
            Err(error) if error.is_timeout() => Outcome::Failed("no response within 10 seconds".to_owned()),
            Err(error) if error.is_connect() => Outcome::Failed("no connection".to_owned()),
            Err(error) => Outcome::Failed(error.without_url().to_string()),
        })
    }
}
