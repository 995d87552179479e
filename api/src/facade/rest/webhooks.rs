//! Webhooks of a merchant: endpoints and their health, deliveries, and redelivery.

use std::{borrow::Cow, collections::BTreeMap};

use engine::{payment::State, time::Timestamp, webhook::EventType};
use http::StatusCode;
use proto::{
    IntoRecord, RecordResponse,
    caller::IDEMPOTENT_REPLAYED,
    v1::{self, WebhookDeliveryState, WebhookTrigger},
};
use serde::Serialize;
use warp::reply::Response;

use super::merchants::{GRACE_MAX_HOURS, Secret};
use crate::facade::{
    http::{body::Body, call::Call, nearest::nearest, query::Query, refusal::Refusal, response, state::Facade},
    record::{self, Text},
};

const NO_INSTANT: &str = "must be an ISO 8601 instant such as 2026-11-20T14:00:00Z";

/// The words of the delivery states.
const STATES: [(&str, WebhookDeliveryState); 4] = [
    ("pending", WebhookDeliveryState::Pending),
    ("held", WebhookDeliveryState::Held),
    ("delivered", WebhookDeliveryState::Delivered),
    ("failed", WebhookDeliveryState::Failed),
];

type Instant = Option<Text<Timestamp>>;

fn instant(wire: Option<proto::time::Timestamp>) -> Instant {
    wire.map(|wire| Text(record::instant(wire)))
}

/// Maximum bytes of a delivery's body in records.
const SHOWN_BODY_MAX: usize = 65_536;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Endpoint<'a> {
    id: &'a str,
    merchant_id: &'a str,
    url: Option<&'a str>,
    description: &'a str,
    events: Vec<&'static str>,
    enabled: bool,
    /// The state of the endpoint: `none`, `active`, `failing`, `disabled`.
    status: &'static str,
    disabled_reason: Option<&'static str>,
    disabled_at: Instant,
    failing_since: Instant,
    failed_attempts: u32,
    warning: Option<&'static str>,
    breaker_open: bool,
    last_success_at: Instant,
    last_failure_at: Instant,
    created_at: Text<Timestamp>,
    #[serde(flatten)]
    replayed: Option<Replayed>,
}

impl<'a> Endpoint<'a> {
    fn of(endpoint: &'a v1::WebhookEndpoint) -> Self {
        let status = match (&endpoint.url, endpoint.enabled, endpoint.failing_since) {
            (None, ..) => "none",
            (_, false, _) => "disabled",
            (.., Some(_)) => "failing",
            _ => "active",
        };
        Self {
            id: &endpoint.id,
            merchant_id: &endpoint.merchant_id,
            url: endpoint.url.as_deref(),
            description: &endpoint.description,
            events: endpoint.events().filter_map(v1::EventType::rest_name).collect(),
            enabled: endpoint.enabled,
            status,
            disabled_reason: endpoint.disabled_reason().rest_name(),
            disabled_at: instant(endpoint.disabled_at),
            failing_since: instant(endpoint.failing_since),
            failed_attempts: endpoint.failed_attempts,
            warning: endpoint.warning().rest_name(),
            breaker_open: endpoint.breaker_open,
            last_success_at: instant(endpoint.last_success_at),
            last_failure_at: instant(endpoint.last_failure_at),
            created_at: Text(record::instant(endpoint.created_at)),
            replayed: None,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Replayed {
    replayed: u32,
    has_more: bool,
}

impl From<v1::ReplayWebhooksResponse> for Replayed {
    fn from(made: v1::ReplayWebhooksResponse) -> Self {
        Self { replayed: made.replayed, has_more: made.has_more }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Delivery<'a> {
    id: &'a str,
    event_id: &'a str,
    merchant_id: &'a str,
    endpoint_id: &'a str,
    trigger: &'static str,
    status: &'static str,
    attempts: u32,
    created_at: Text<Timestamp>,
    next_attempt_at: Instant,
    last_outcome: Option<&'static str>,
    last_http_status: Option<u32>,
    last_attempt_at: Instant,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt_log: Option<Vec<Attempt<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_body: Option<Cow<'a, str>>,
}

impl<'a> Delivery<'a> {
    pub(crate) fn of(delivery: &'a v1::WebhookDelivery) -> Self {
        let status = STATES.iter().find(|(_, state)| *state == delivery.state());
        Self {
            id: &delivery.id,
            event_id: &delivery.event_id,
            merchant_id: &delivery.merchant_id,
            endpoint_id: &delivery.endpoint_id,
            trigger: trigger(delivery.trigger()),
            status: status.map_or("", |(word, _)| word),
            attempts: delivery.attempts,
            created_at: Text(record::instant(delivery.created_at)),
            next_attempt_at: instant(delivery.next_attempt_at),
            last_outcome: delivery.last_outcome().rest_name(),
            last_http_status: delivery.last_http_status,
            last_attempt_at: instant(delivery.last_attempt_at),
            attempt_log: None,
            request_body: None,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Attempt<'a> {
    attempt: u32,
    trigger: &'static str,
    url: &'a str,
    scheduled_at: Text<Timestamp>,
    started_at: Text<Timestamp>,
    ended_at: Text<Timestamp>,
    duration_ms: u64,
    outcome: &'static str,
    http_status: Option<u32>,
    response_snippet: &'a str,
    next_attempt_at: Instant,
    request_bytes_sha256: &'a str,
    request_headers: BTreeMap<&'a str, &'a str>,
}

impl<'a> Attempt<'a> {
    fn of(attempt: &'a v1::WebhookAttempt) -> Self {
        Self {
            attempt: attempt.number,
            trigger: trigger(attempt.trigger()),
            url: &attempt.url,
            scheduled_at: Text(record::instant(attempt.scheduled_at)),
            started_at: Text(record::instant(attempt.started_at)),
            ended_at: Text(record::instant(attempt.ended_at)),
            duration_ms: attempt.duration_ms,
            outcome: attempt.outcome().rest_name().unwrap_or_default(),
            http_status: attempt.http_status,
            response_snippet: &attempt.response_snippet,
            next_attempt_at: instant(attempt.next_attempt_at),
            request_bytes_sha256: &attempt.body_sha256,
            request_headers: attempt.request_headers.iter().map(|header| (&*header.name, &*header.value)).collect(),
        }
    }
}

/// Returns the words of a delivery's trigger and state.
pub(crate) fn words(delivery: &v1::WebhookDelivery) -> (&'static str, &'static str) {
    let shown = Delivery::of(delivery);
    (shown.trigger, shown.status)
}

const fn trigger(trigger: WebhookTrigger) -> &'static str {
    match trigger {
        WebhookTrigger::Unspecified => "",
        WebhookTrigger::Auto => "auto",
        WebhookTrigger::Manual => "manual",
        WebhookTrigger::Test => "test",
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    deliveries: Vec<Delivery<'a>>,
    next_cursor: Option<&'a str>,
}

/// Returns the default endpoint and its health.
pub(crate) async fn endpoint(facade: &Facade, call: Call, id: &str) -> Result<Response, Refusal> {
    health(facade, call, id, None).await
}

/// Returns an endpoint and its health.
pub(crate) async fn endpoint_of(facade: &Facade, call: Call, id: &str, endpoint: &str) -> Result<Response, Refusal> {
    health(facade, call, id, Some(endpoint)).await
}

async fn health(facade: &Facade, mut call: Call, id: &str, endpoint: Option<&str>) -> Result<Response, Refusal> {
    let (merchant_id, endpoint_id) = (id.to_owned(), endpoint.map(str::to_owned));
    let request = call.with_key()?.request(v1::GetWebhookEndpointRequest { merchant_id, endpoint_id });
    let endpoint = facade.engine.webhook_endpoints().get_webhook_endpoint(request).await?.into_record()?;
    Ok(response::json(StatusCode::OK, &Endpoint::of(&endpoint)))
}

#[derive(Serialize)]
struct Endpoints<'a> {
    endpoints: Vec<Endpoint<'a>>,
}

fn listed(endpoints: &[v1::WebhookEndpoint]) -> Response {
    response::json(StatusCode::OK, &Endpoints { endpoints: endpoints.iter().map(Endpoint::of).collect() })
}

/// Lists the endpoints, the default one first.
pub(crate) async fn endpoints(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    let request = call.with_key()?.request(v1::ListWebhookEndpointsRequest { merchant_id: id.to_owned() });
    call.no_parameters()?;
    let list = facade.engine.webhook_endpoints().list_webhook_endpoints(request).await?.into_inner();
    Ok(listed(&list.endpoints))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Made<'a> {
    webhook_secret: &'a str,
    endpoint: Endpoint<'a>,
}

/// Returns the numbers of event types. Unknown words are left to the engine, which reports them together with other
/// wrong fields.
fn event_types(words: &[String]) -> Vec<i32> {
    words.iter().map(|word| v1::EventType::from_rest_name(word).unwrap_or_default().into()).collect()
}

/// Creates an endpoint, whose secret is returned only once.
pub(crate) async fn create(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut body = call.json().await?;
    let request = v1::CreateWebhookEndpointRequest {
        merchant_id: id.to_owned(),
        url: body.text("url"),
        description: body.optional_text("description").unwrap_or_default(),
        events: event_types(&body.texts("events")),
    };
    body.finish()?;
    let request = call.caller.request(request);
    let made = facade.engine.webhook_endpoints().create_webhook_endpoint(request).await?.into_inner();
    let endpoint = made.endpoint.unwrap_or_default();
    let made = Made { webhook_secret: &made.webhook_secret, endpoint: Endpoint::of(&endpoint) };
    Ok(response::json(StatusCode::CREATED, &made))
}

/// Changes an endpoint; only the fields of the body change.
pub(crate) async fn update(facade: &Facade, mut call: Call, id: &str, endpoint: &str) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut body = call.json().await?;
    let events = body.maybe_texts("events").map(|words| v1::WebhookEventTypes { types: event_types(&words) });
    let request = v1::UpdateWebhookEndpointRequest {
        merchant_id: id.to_owned(),
        endpoint_id: endpoint.to_owned(),
        url: body.maybe_text("url"),
        description: body.change("description").map(Option::unwrap_or_default),
        events,
        enabled: body.maybe_bool("enabled"),
    };
    body.finish()?;
    let request = call.caller.request(request);
    let endpoint = facade.engine.webhook_endpoints().update_webhook_endpoint(request).await?.into_record()?;
    Ok(response::json(StatusCode::OK, &Endpoint::of(&endpoint)))
}

/// Deletes an endpoint and returns the remaining ones.
pub(crate) async fn remove(facade: &Facade, mut call: Call, id: &str, endpoint: &str) -> Result<Response, Refusal> {
    let (merchant_id, endpoint_id) = (id.to_owned(), endpoint.to_owned());
    let request = call.with_key()?.request(v1::DeleteWebhookEndpointRequest { merchant_id, endpoint_id });
    let list = facade.engine.webhook_endpoints().delete_webhook_endpoint(request).await?.into_inner();
    Ok(listed(&list.endpoints))
}

/// Rotates the secret of an endpoint; the new one is returned only once.
pub(crate) async fn rotate(facade: &Facade, mut call: Call, id: &str, endpoint: &str) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut body = call.optional_json().await?;
    let grace_hours = body.optional_integer("graceHours", 0..=GRACE_MAX_HOURS).unwrap_or(0);
    body.finish()?;
    let (merchant_id, endpoint_id, grace_hours) = (id.to_owned(), endpoint.to_owned(), Some(grace_hours));
    let request = v1::RotateWebhookEndpointSecretRequest { merchant_id, endpoint_id, grace_hours };
    let request = call.caller.request(request);
    let made = facade.engine.webhook_endpoints().rotate_webhook_endpoint_secret(request).await?.into_inner();
    Ok(response::json(StatusCode::OK, &Secret::of(&made.webhook_secret, made.previous_valid_until)))
}

/// Enables the default endpoint, and replays held events since a time if requested.
pub(crate) async fn enable(facade: &Facade, call: Call, id: &str) -> Result<Response, Refusal> {
    enabled(facade, call, id, None).await
}

/// Enables an endpoint, and replays held events since a time if requested.
pub(crate) async fn enable_of(facade: &Facade, call: Call, id: &str, endpoint: &str) -> Result<Response, Refusal> {
    enabled(facade, call, id, Some(endpoint)).await
}

async fn enabled(facade: &Facade, mut call: Call, id: &str, endpoint: Option<&str>) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut body = call.optional_json().await?;
    let replay_since = since(&mut body, "replaySince");
    body.finish()?;
    let (merchant_id, endpoint_id) = (id.to_owned(), endpoint.map(str::to_owned));
    let request = v1::EnableWebhookEndpointRequest { merchant_id, replay_since, endpoint_id };
    let request = call.caller.request(request);
    let enabled = facade.engine.webhook_endpoints().enable_webhook_endpoint(request).await?.into_inner();
    let endpoint = enabled.endpoint.unwrap_or_default();
    let replayed = enabled.replayed.map(Replayed::from);
    Ok(response::json(StatusCode::OK, &Endpoint { replayed, ..Endpoint::of(&endpoint) }))
}

/// Redelivers held and failed events since a time.
pub(crate) async fn replay(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut body = call.json().await?;
    let since = since(&mut body, "since");
    if since.is_none() && body.is_valid("since") {
        body.wrong::<()>("since", "is required");
    }
    body.finish()?;
    let request = v1::ReplayWebhooksRequest { merchant_id: id.to_owned(), since, endpoint_id: None };
    let made = facade.engine.webhook_endpoints().replay_webhooks(call.caller.request(request)).await?.into_inner();
    Ok(response::json(StatusCode::OK, &Replayed::from(made)))
}

fn since(body: &mut Body, field: &str) -> Option<proto::time::Timestamp> {
    let text = body.optional_text(field)?;
    match Timestamp::parse(&text) {
        Some(instant) => Some(record::instant_to_wire(instant)),
        None => body.wrong(field, NO_INSTANT),
    }
}

/// Returns the error of an unknown word, with the nearest known one.
fn one_of(word: &str, known: &[&'static str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("must be one of {}; did you mean {near}?", known.join(", ")),
        None => format!("must be one of {}", known.join(", ")),
    }
}

/// Sends a test event to the default endpoint and returns its delivery.
pub(crate) async fn test(facade: &Facade, call: Call, id: &str) -> Result<Response, Refusal> {
    tested(facade, call, id, None).await
}

/// Sends a test event to an endpoint and returns its delivery.
pub(crate) async fn test_of(facade: &Facade, call: Call, id: &str, endpoint: &str) -> Result<Response, Refusal> {
    tested(facade, call, id, Some(endpoint)).await
}

async fn tested(facade: &Facade, mut call: Call, id: &str, endpoint: Option<&str>) -> Result<Response, Refusal> {
    call.with_key()?;
    call.caller.idempotency_key = call.idempotency_key()?;
    let mut body = call.optional_json().await?;
    let kind = body.optional_text("type");
    let kind = kind.and_then(|word| {
        let kind = v1::EventType::from_rest_name(&word);
        if kind.is_none() {
            body.wrong::<()>("type", one_of(&word, &EventType::ALL.map(EventType::as_str)));
        }
        kind.map(i32::from)
    });
    let status = body.optional_text("status").and_then(|word| {
        let status = record::status_of_name(&word);
        if status.is_none() {
            body.wrong::<()>("status", one_of(&word, &State::ALL.map(State::as_str)));
        }
        status.map(i32::from)
    });
    body.finish()?;
    let (merchant_id, endpoint_id) = (id.to_owned(), endpoint.map(str::to_owned));
    let request = v1::SendTestWebhookRequest { merchant_id, r#type: kind, status, endpoint_id };
    let request = call.caller.request(request);
    delivery_response(facade.engine.webhook_endpoints().send_test_webhook(request).await?)
}

/// Lists deliveries, newest first.
pub(crate) async fn deliveries(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut query = call.query();
    let (page_size, page_token) = (query.limit(), query.cursor());
    let filter = filter(&mut query, id);
    let request = v1::ListWebhookDeliveriesRequest {
        merchant_id: filter.merchant_id,
        page_size,
        page_token,
        states: filter.states,
        event_id: filter.event_id,
        payment_id: filter.payment_id,
        endpoint_id: filter.endpoint_id,
    };
    query.finish()?;
    let request = call.caller.request(request);
    let list = facade.engine.webhook_endpoints().list_webhook_deliveries(request).await?.into_inner();
    let deliveries = list.deliveries.iter().map(Delivery::of).collect();
    Ok(response::json(StatusCode::OK, &List { deliveries, next_cursor: record::token(&list.next_page_token) }))
}

/// Reads the filters of deliveries.
pub(crate) fn filter(query: &mut Query, id: &str) -> v1::ExportWebhookDeliveriesRequest {
    v1::ExportWebhookDeliveriesRequest {
        merchant_id: id.to_owned(),
        states: states(query),
        event_id: query.get("eventId").map(str::to_owned),
        payment_id: query.get("paymentId").map(str::to_owned),
        endpoint_id: query.get("endpointId").map(str::to_owned),
    }
}

fn states(query: &mut Query) -> Vec<i32> {
    let mut states = Vec::new();
    for word in query.list("status") {
        match STATES.iter().find(|(known, _)| *known == word) {
            Some((_, state)) => states.push((*state).into()),
            None => query.wrong("status", "must be pending, held, delivered or failed"),
        }
    }
    states
}

/// Returns a delivery with its attempts.
pub(crate) async fn delivery(facade: &Facade, mut call: Call, id: &str, delivery: &str) -> Result<Response, Refusal> {
    let request = named(&mut call, id, delivery)?;
    let delivery = facade.engine.webhook_endpoints().get_webhook_delivery(request).await?.into_record()?;
    let attempt_log = Some(delivery.attempt_log.iter().map(Attempt::of).collect());
    let request_body = delivery.request_body.as_deref().map(shown);
    Ok(response::json(StatusCode::OK, &Delivery { attempt_log, request_body, ..Delivery::of(&delivery) }))
}

/// Returns the body of a delivery as text, truncated to 64 KiB.
pub(crate) fn shown(body: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&body[..body.len().min(SHOWN_BODY_MAX)])
}

/// Redelivers the event of a delivery and returns the new delivery.
pub(crate) async fn redeliver(facade: &Facade, mut call: Call, id: &str, delivery: &str) -> Result<Response, Refusal> {
    call.caller.idempotency_key = call.idempotency_key()?;
    call.with_key()?;
    call.no_body().await?;
    let request = v1::RedeliverWebhookRequest { merchant_id: id.to_owned(), delivery_id: delivery.to_owned() };
    let request = call.caller.request(request);
    delivery_response(facade.engine.webhook_endpoints().redeliver_webhook(request).await?)
}

/// Returns a delivery, marked as replayed if its idempotency key was used before.
fn delivery_response<R>(sent: tonic::Response<R>) -> Result<Response, Refusal>
where
    R: RecordResponse<Record = v1::WebhookDelivery>,
{
    let replayed = sent.metadata().as_ref().get(IDEMPOTENT_REPLAYED).cloned();
    let mut response = response::json(StatusCode::OK, &Delivery::of(&sent.into_record()?));
    if let Some(replayed) = replayed {
        response.headers_mut().insert(IDEMPOTENT_REPLAYED, replayed);
    }
    Ok(response)
}

fn named(call: &mut Call, id: &str, delivery: &str) -> Result<tonic::Request<v1::GetWebhookDeliveryRequest>, Refusal> {
    let request = v1::GetWebhookDeliveryRequest { merchant_id: id.to_owned(), delivery_id: delivery.to_owned() };
    Ok(call.with_key()?.request(request))
}
