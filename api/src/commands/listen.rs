//! `hivetill listen`: follows the events of a merchant and posts each one to a local URL, signed like a webhook.

mod forward;
mod stream;

use std::time::Duration;

use engine::webhook::{EventType, Secret};
use reqwest::Url;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    failure::Failure,
    files,
    output::print,
    rest_client::{CallError, RestClient, text},
    shutdown,
};
use forward::{Forwarder, Outcome};
use stream::Parser;

/// The wait before the first attempt to reconnect; doubles with each failure.
const FIRST_RETRY: Duration = Duration::from_millis(500);
/// The longest wait before an attempt to reconnect.
const LONGEST_RETRY: Duration = Duration::from_secs(10);

/// Arguments of `hivetill listen`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// URL that gets each event as a webhook, such as http://127.0.0.1:9000/hook
    #[arg(long, value_name = "URL")]
    forward_to: Url,
    /// URL of the gateway
    #[arg(long, value_name = "URL", env = "HIVETILL_API", default_value = "http://127.0.0.1:8080")]
    api: Url,
    /// The merchant's API key, with the scope payments:read. Prefer the environment variable: other users of the host can
    /// see command lines
    #[arg(long, value_name = "KEY", env = "HIVETILL_API_KEY", hide_env_values = true)]
    api_key: String,
    /// The secret that signs; by default a new one, which is printed. To test with the webhook secret that your shop has,
    /// set the environment variable
    #[arg(long, value_name = "SECRET", env = "HIVETILL_WEBHOOK_SECRET", hide_env_values = true, value_parser = secret)]
    secret: Option<Secret>,
    /// Forward only these types, separated by commas; by default all
    #[arg(long, value_name = "TYPE", value_delimiter = ',', value_parser = event_type)]
    events: Vec<EventType>,
    /// Cursor to start behind; 0 forwards all stored events first. By default only events from now on
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// Print one line of JSON at the start, and one for each event with its cursor
    #[arg(long)]
    json: bool,
}

/// Hides the key.
impl std::fmt::Debug for Args {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Args").field("api", &self.api.as_str()).finish_non_exhaustive()
    }
}

fn secret(given: &str) -> Result<Secret, &'static str> {
    Secret::from_text(given.to_owned()).ok_or("must be a webhook secret: whsec_ and base64")
}

fn event_type(given: &str) -> Result<EventType, String> {
    EventType::parse(given)
        .ok_or_else(|| format!("must be one of {}", EventType::ALL.map(EventType::as_str).join(", ")))
}

/// Forwards events until the process receives a termination signal, or until the gateway refuses the API key.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let client = RestClient::new(&args.api, &args.api_key)?;
    let (secret, is_new) = match args.secret {
        Some(secret) => (secret, false),
        None => (Secret::from_random(files::random()), true),
    };
    let forwarder = Forwarder::new(args.forward_to.clone(), secret.clone())?;
    let merchant = client.call(reqwest::Method::GET, &["merchants", "me"], &[], None, None).await?;
    let greeting = Some(Greeting { merchant, to: args.forward_to, secret: is_new.then_some(secret) });
    let screen = Screen { is_json: args.json };
    let mut listener = Listener { client, forwarder, screen, greeting, types: args.events, cursor: args.after };
    tokio::select! {
        ended = listener.follow() => ended,
        () = shutdown::signal() => Ok(()),
    }
}

/// Follows the stream of events.
#[derive(Debug)]
struct Listener {
    client: RestClient,
    forwarder: Forwarder,
    screen: Screen,
    /// Printed when the first connection is open: every event from then on is forwarded.
    greeting: Option<Greeting>,
    /// The types to forward; all if empty.
    types: Vec<EventType>,
    /// The cursor behind the last event that was forwarded.
    cursor: Option<String>,
}

impl Listener {
    /// Follows the stream and opens it again behind the last event when the connection is lost. Returns only a failure
    /// that another attempt would repeat.
    async fn follow(&mut self) -> Result<(), Failure> {
        let mut retry = FIRST_RETRY;
        loop {
            let before = self.cursor.clone();
            let lost = match self.connected().await {
                Ok(lost) => lost,
                Err(Ended::Failure(failure)) => return Err(failure),
                Err(Ended::Call(error)) => self.recover(error)?,
            };
            if self.cursor != before {
                retry = FIRST_RETRY;
            }
            self.screen.note(&format!("{lost}; reconnecting in {} ms", retry.as_millis()));
            sleep(retry).await;
            retry = (retry * 2).min(LONGEST_RETRY);
        }
    }

    /// Forwards the events of one connection. Returns why it ended.
    async fn connected(&mut self) -> Result<String, Ended> {
        let mut response = self.client.events(self.cursor.as_deref()).await?;
        let mut parser = Parser::default();
        loop {
            let part = match response.chunk().await {
                Ok(Some(part)) => part,
                Ok(None) => return Ok("the gateway closed the stream of events".to_owned()),
                Err(error) => return Ok(format!("the stream of events was lost: {}", error.without_url())),
            };
            for message in parser.feed(&part).map_err(|reason| Ended::Failure(Failure::Other(reason.to_owned())))? {
                if message.event == "ready" {
                    self.greet().map_err(Ended::Failure)?;
                } else if !message.data.is_empty() {
                    self.forward(message.data.as_bytes(), &message.id).await.map_err(Ended::Failure)?;
                }
                if !message.id.is_empty() {
                    self.cursor = Some(message.id);
                }
            }
        }
    }

    fn greet(&mut self) -> Result<(), Failure> {
        self.greeting.take().map_or(Ok(()), |greeting| self.screen.started(&greeting))
    }

    async fn forward(&self, body: &[u8], cursor: &str) -> Result<(), Failure> {
        let event: Value =
            serde_json::from_slice(body).map_err(|_| Failure::Other("an event is no JSON".to_owned()))?;
        let kind = text(&event, "type");
        if !self.types.is_empty() && !self.types.iter().any(|wanted| wanted.as_str() == kind) {
            return Ok(());
        }
        let outcome = self.forwarder.post(&event, body).await?;
        self.screen.forwarded(&event, cursor, &outcome)
    }

    /// Returns the text about a refused or failed call if another attempt may succeed.
    fn recover(&mut self, error: CallError) -> Result<String, Failure> {
        match &error {
            CallError::Unreachable(_) | CallError::Refused { status: 408 | 429 | 500.., .. } => Ok(error.to_string()),
            // The gateway was restored from a backup: events behind this cursor may come again with the same ids.
            CallError::Refused { status: 410, body } if body["nextCursor"].is_string() => {
                self.cursor = Some(text(body, "nextCursor").to_owned());
                Ok("the gateway was restored from a backup".to_owned())
            }
            CallError::Refused { .. } => Err(error.into()),
        }
    }
}

/// Why a connection was not opened, or cannot be used.
enum Ended {
    Call(CallError),
    Failure(Failure),
}

impl From<CallError> for Ended {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

/// What is printed at the start.
#[derive(Debug)]
struct Greeting {
    merchant: Value,
    to: Url,
    /// The secret, if it is new.
    secret: Option<Secret>,
}

/// What is printed.
#[derive(Debug, Clone, Copy)]
struct Screen {
    is_json: bool,
}

impl Screen {
    fn started(self, greeting: &Greeting) -> Result<(), Failure> {
        let Greeting { merchant, to, secret } = greeting;
        if self.is_json {
            let mut line = json!({ "merchantId": merchant["id"], "forwardTo": to.as_str() });
            if let Some(secret) = secret {
                line["webhookSecret"] = secret.reveal().into();
            }
            return print(&format!("{line}\n"));
        }
        let signed = secret.as_ref().map_or_else(
            || "Signed with the given webhook secret".to_owned(),
            |secret| format!("Webhook secret  {}", secret.reveal()),
        );
        let (name, network) = (text(merchant, "name"), text(merchant, "network"));
        print(&format!("Forwarding the events of {name} ({network}) to {to}\n{signed}\nPress Ctrl-C to stop.\n\n"))
    }

    /// Prints an event and the response.
    fn forwarded(self, event: &Value, cursor: &str, outcome: &Outcome) -> Result<(), Failure> {
        let (kind, id) = (text(event, "type"), text(event, "id"));
        if self.is_json {
            let mut line = json!({ "type": kind, "id": id, "cursor": cursor });
            match outcome {
                Outcome::Status(status) => line["status"] = (*status).into(),
                Outcome::Failed(reason) => line["error"] = reason.as_str().into(),
            }
            return print(&format!("{line}\n"));
        }
        let data = &event["data"];
        let subject: Vec<&str> = ["id", "txId", "hiveAccount", "status", "change"]
            .iter()
            .map(|member| text(data, member))
            .filter(|value| !value.is_empty())
            .collect();
        let result = match outcome {
            Outcome::Status(status) => status.to_string(),
            Outcome::Failed(reason) => format!("failed: {reason}"),
        };
        print(&format!("{}  {kind}  {id}  {}  -> {result}\n", text(event, "createdAt"), subject.join(" ")))
    }

    /// Reports a lost connection on standard error.
    fn note(self, note: &str) {
        use std::io::Write as _;
        // A closed standard error is no reason to stop.
        let _ = writeln!(std::io::stderr(), "hivetill: {note}");
    }
}
