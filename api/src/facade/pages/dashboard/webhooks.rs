//! Webhooks: endpoint health, deliveries with their responses, redelivery and replay.

use askama::Template;
use engine::{payment::State, time::Timestamp, webhook::EventType};
use http::StatusCode;
use proto::{
    ApiError, IntoRecord,
    v1::{self, WebhookDeliveryState, WebhookTrigger},
};
use warp::reply::Response;

use crate::facade::{
    http::refusal::Refusal,
    pages::{
        dashboard::visit::{Frame, Visit, minute, problems},
        html,
    },
    record, rest,
};

/// The delivery states with their words.
const STATES: [(&str, WebhookDeliveryState); 4] = [
    ("pending", WebhookDeliveryState::Pending),
    ("held", WebhookDeliveryState::Held),
    ("delivered", WebhookDeliveryState::Delivered),
    ("failed", WebhookDeliveryState::Failed),
];
/// Maximum age of replayed deliveries, hours.
const REPLAY_MAX_HOURS: u32 = 720;
const HOUR_MS: u64 = 3_600_000;

#[derive(Template)]
#[template(path = "dashboard/webhooks.html")]
struct WebhooksPage<'v> {
    frame: Frame<'v>,
    url: Option<String>,
    status: &'static str,
    shade: &'static str,
    facts: Vec<(&'static str, String)>,
    is_disabled: bool,
    test: TestForm,
    filter: String,
    /// The endpoint whose deliveries are listed; empty for all.
    only: String,
    states: [&'static str; 4],
    rows: Vec<Row>,
    next: Option<String>,
}

/// The form of a test event, with the submitted values after an error.
struct TestForm {
    types: [&'static str; EventType::ALL.len()],
    statuses: [&'static str; State::ALL.len()],
    kind: String,
    status: String,
}

impl TestForm {
    fn of(visit: &Visit<'_>) -> Self {
        let sent = |name| visit.form.get(name).unwrap_or_default().to_owned();
        Self {
            types: EventType::ALL.map(EventType::as_str),
            statuses: State::ALL.map(State::as_str),
            kind: sent("type"),
            status: sent("status"),
        }
    }
}

/// A delivery in the tables.
pub(super) struct Row {
    pub(super) id: String,
    pub(super) event_id: String,
    pub(super) created: String,
    pub(super) state: &'static str,
    pub(super) trigger: &'static str,
    pub(super) attempts: u32,
    pub(super) last: String,
    pub(super) next: String,
}

impl Row {
    fn of(delivery: &v1::WebhookDelivery) -> Self {
        let state = STATES.iter().find(|(_, state)| *state == delivery.state()).map_or("", |(word, _)| word);
        let code = delivery.last_http_status.map(|code| format!(" {code}")).unwrap_or_default();
        Self {
            id: delivery.id.clone(),
            event_id: delivery.event_id.clone(),
            created: minute(delivery.created_at),
            state,
            trigger: trigger(delivery.trigger()),
            attempts: delivery.attempts,
            last: delivery.last_outcome().rest_name().map(|word| format!("{word}{code}")).unwrap_or_default(),
            next: delivery.next_attempt_at.map(minute).unwrap_or_default(),
        }
    }
}

const fn trigger(trigger: WebhookTrigger) -> &'static str {
    match trigger {
        WebhookTrigger::Manual => "redelivery",
        WebhookTrigger::Test => "test",
        WebhookTrigger::Auto | WebhookTrigger::Unspecified => "event",
    }
}

/// Returns the newest deliveries of a payment's events.
pub(super) async fn of_payment(visit: &Visit<'_>, id: &str) -> Result<Vec<Row>, Refusal> {
    let request = v1::ListWebhookDeliveriesRequest {
        merchant_id: visit.merchant.id.clone(),
        page_size: 100,
        payment_id: Some(id.to_owned()),
        ..Default::default()
    };
    let found = visit.facade.engine.webhook_endpoints().list_webhook_deliveries(visit.request(request)).await?;
    Ok(found.into_inner().deliveries.iter().map(Row::of).collect())
}

/// Returns the word for the health of an endpoint, and its CSS class.
pub(super) fn status_of(endpoint: &v1::WebhookEndpoint) -> (&'static str, &'static str) {
    match (&endpoint.url, endpoint.enabled, endpoint.failing_since) {
        (None, ..) => ("not set", ""),
        (_, false, _) => ("disabled", " bad"),
        (.., Some(_)) => ("failing", " bad"),
        _ => ("active", " completed"),
    }
}

/// Returns what is known of the health of an endpoint.
pub(super) fn facts_of(endpoint: &v1::WebhookEndpoint) -> Vec<(&'static str, String)> {
    let facts = [
        ("Reason", endpoint.disabled_reason().rest_name().map(str::to_owned)),
        ("Disabled at", endpoint.disabled_at.map(minute)),
        ("Failing since", endpoint.failing_since.map(minute)),
        ("Last success", endpoint.last_success_at.map(minute)),
        ("Last failure", endpoint.last_failure_at.map(minute)),
    ];
    facts.into_iter().filter_map(|(name, fact)| Some((name, fact?))).collect()
}

/// Returns the page of the default endpoint, and the deliveries to every endpoint or to one.
pub(super) async fn page(visit: &Visit<'_>, wrong: Vec<String>) -> Result<Response, Refusal> {
    let service = visit.facade.engine.webhook_endpoints();
    let merchant_id = visit.merchant.id.clone();
    let query = v1::GetWebhookEndpointRequest { merchant_id: merchant_id.clone(), endpoint_id: None };
    let endpoint = service.clone().get_webhook_endpoint(visit.request(query)).await?.into_record()?;
    let query = visit.call.query();
    let filter = query.get("state").unwrap_or_default().to_owned();
    let only = query.get("endpoint").filter(|id| !id.is_empty()).map(str::to_owned);
    let request = v1::ListWebhookDeliveriesRequest {
        merchant_id,
        page_size: 20,
        page_token: query.cursor(),
        states: STATES.iter().filter(|(word, _)| *word == filter).map(|(_, state)| (*state).into()).collect(),
        endpoint_id: only.clone(),
        ..Default::default()
    };
    let found = service.clone().list_webhook_deliveries(visit.request(request)).await?.into_inner();
    let next = record::token(&found.next_page_token).map(|cursor| {
        let mut out = url::form_urlencoded::Serializer::new(String::new());
        out.append_pair("state", &filter).append_pair("cursor", cursor);
        out.append_pair("endpoint", only.as_deref().unwrap_or_default());
        format!("/dashboard/webhooks?{}", out.finish())
    });
    let (status, shade) = status_of(&endpoint);
    let code = if wrong.is_empty() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    let page = WebhooksPage {
        frame: visit.frame("webhooks", wrong),
        is_disabled: endpoint.disabled_at.is_some(),
        facts: facts_of(&endpoint),
        test: TestForm::of(visit),
        url: endpoint.url,
        status,
        shade,
        filter,
        only: only.unwrap_or_default(),
        states: STATES.map(|(word, _)| word),
        rows: found.deliveries.iter().map(Row::of).collect(),
        next,
    };
    Ok(html::page(code, page.render(), None))
}

#[derive(Template)]
#[template(path = "dashboard/delivery.html")]
struct DeliveryPage<'v> {
    frame: Frame<'v>,
    row: Row,
    attempts: Vec<Attempt>,
    body: Option<String>,
}

struct Attempt {
    number: u32,
    at: String,
    duration: String,
    outcome: String,
    url: String,
    headers: String,
    response: String,
}

/// Returns the page of one delivery with its attempts.
pub(super) async fn delivery(visit: &Visit<'_>, id: &str) -> Result<Response, Refusal> {
    let request = v1::GetWebhookDeliveryRequest { merchant_id: visit.merchant.id.clone(), delivery_id: id.to_owned() };
    let found =
        visit.facade.engine.webhook_endpoints().get_webhook_delivery(visit.request(request)).await?.into_record()?;
    let attempt = |attempt: &v1::WebhookAttempt| Attempt {
        number: attempt.number,
        at: minute(attempt.started_at),
        duration: format!("{} ms", attempt.duration_ms),
        outcome: match (attempt.outcome().rest_name().unwrap_or_default(), attempt.http_status) {
            (word, Some(code)) => format!("{word} {code}"),
            (word, None) => word.to_owned(),
        },
        url: attempt.url.clone(),
        headers: attempt.request_headers.iter().map(|sent| format!("{}: {}\n", sent.name, sent.value)).collect(),
        response: attempt.response_snippet.clone(),
    };
    let page = DeliveryPage {
        frame: visit.frame("webhooks", Vec::new()),
        row: Row::of(&found),
        attempts: found.attempt_log.iter().map(attempt).collect(),
        body: found.request_body.as_deref().map(|body| rest::webhooks::shown(body).into_owned()),
    };
    Ok(html::page(StatusCode::OK, page.render(), None))
}

/// Redirects to the page with a confirmation, or shows it with the errors.
async fn after<T>(visit: &Visit<'_>, made: Result<T, tonic::Status>, done: &str) -> Result<Response, Refusal> {
    match made.map_err(ApiError::from) {
        Ok(_) => Ok(html::see_other(&format!("/dashboard/webhooks?done={done}"))),
        Err(refused) if refused.http() == 404 || refused.http() >= 500 => Err(refused.into()),
        Err(refused) => page(visit, problems(&refused)).await,
    }
}

/// Sends a test event of the selected type and status.
pub(super) async fn test(visit: &Visit<'_>) -> Result<Response, Refusal> {
    let chosen = |name| visit.form.get(name).filter(|word| !word.is_empty());
    // The engine rejects unknown words and names the field.
    let request = v1::SendTestWebhookRequest {
        merchant_id: visit.merchant.id.clone(),
        r#type: chosen("type").map(|word| v1::EventType::from_rest_name(word).unwrap_or_default().into()),
        status: chosen("status").map(|word| record::status_of_name(word).unwrap_or_default().into()),
        endpoint_id: None,
    };
    let made = visit.facade.engine.webhook_endpoints().send_test_webhook(visit.request(request)).await;
    after(visit, made, "tested").await
}

/// Enables a disabled endpoint, and optionally sends the events that were held meanwhile.
pub(super) async fn enable(visit: &Visit<'_>) -> Result<Response, Refusal> {
    let merchant_id = visit.merchant.id.clone();
    let query = visit.request(v1::GetWebhookEndpointRequest { merchant_id: merchant_id.clone(), endpoint_id: None });
    let endpoint = visit.facade.engine.webhook_endpoints().get_webhook_endpoint(query).await?.into_record()?;
    // Deliveries after the last success may be missing.
    let earliest = hours_ago(visit, REPLAY_MAX_HOURS);
    let since = endpoint.last_success_at.map_or(earliest, |taken| record::instant(taken).max(earliest));
    let replay_since = visit.form.get("replay").map(|_| record::instant_to_wire(since));
    let request = v1::EnableWebhookEndpointRequest { merchant_id, replay_since, endpoint_id: None };
    let made = visit.facade.engine.webhook_endpoints().enable_webhook_endpoint(visit.request(request)).await;
    after(visit, made, "enabled").await
}

/// Redelivers the event of a delivery.
pub(super) async fn redeliver(visit: &Visit<'_>, id: &str) -> Result<Response, Refusal> {
    let request = v1::RedeliverWebhookRequest { merchant_id: visit.merchant.id.clone(), delivery_id: id.to_owned() };
    let made = visit.facade.engine.webhook_endpoints().redeliver_webhook(visit.request(request)).await;
    let payment = visit.form.get("payment").and_then(|id| id.parse::<engine::ids::PaymentId>().ok());
    match (made.map_err(ApiError::from), payment) {
        (Ok(_), Some(id)) => Ok(html::see_other(&format!("/dashboard/payments/{id}?done=redelivered"))),
        (made, _) => after(visit, made.map_err(tonic::Status::from), "redelivered").await,
    }
}

/// Returns the time `hours` ago. The engine recorded the use of the key to the minute, which serves as its clock. Two
/// minutes are subtracted, so that the longest replay does not exceed the maximum age that the engine allows.
fn hours_ago(visit: &Visit<'_>, hours: u32) -> Timestamp {
    let now = record::instant(visit.merchant.api_key_last_used_at.or(visit.merchant.api_key_created_at));
    let earliest = now.millis().saturating_sub(u64::from(hours) * HOUR_MS);
    Timestamp::from_millis(earliest + 120_000)
}

/// Sends undelivered events of the last hours again.
pub(super) async fn replay(visit: &Visit<'_>) -> Result<Response, Refusal> {
    let hours = visit.form.get("hours").and_then(|text| text.trim().parse::<u32>().ok());
    let Some(hours) = hours.filter(|hours| (1..=REPLAY_MAX_HOURS).contains(hours)) else {
        return page(visit, vec![format!("hours must be a whole number from 1 to {REPLAY_MAX_HOURS}")]).await;
    };
    let since = Some(record::instant_to_wire(hours_ago(visit, hours)));
    let request = v1::ReplayWebhooksRequest { merchant_id: visit.merchant.id.clone(), since, endpoint_id: None };
    let made = visit.facade.engine.webhook_endpoints().replay_webhooks(visit.request(request)).await;
    after(visit, made, "replayed").await
}
