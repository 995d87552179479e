//! Additional webhook endpoints: list, creation, changes, health, tests, secret, deletion.

use askama::Template;
use engine::webhook::EventType;
use http::StatusCode;
use proto::{ApiError, IntoRecord, v1};
use warp::reply::Response;

use crate::facade::{
    http::{error, refusal::Refusal},
    pages::{
        dashboard::{
            settings::shown_once,
            visit::{Frame, Visit, minute, problems},
            webhooks::{facts_of, status_of},
        },
        html,
    },
};

const LIST: &str = "/dashboard/endpoints";

#[derive(Template)]
#[template(path = "dashboard/endpoints.html")]
struct EndpointsPage<'v> {
    frame: Frame<'v>,
    rows: Vec<Row>,
    form: Form,
}

/// An endpoint in the table.
struct Row {
    id: String,
    url: String,
    description: String,
    events: String,
    status: &'static str,
    shade: &'static str,
}

impl Row {
    fn of(endpoint: &v1::WebhookEndpoint) -> Self {
        let (status, shade) = status_of(endpoint);
        Self {
            id: endpoint.id.clone(),
            url: endpoint.url.clone().unwrap_or_default(),
            description: endpoint.description.clone(),
            events: endpoint.events().filter_map(v1::EventType::rest_name).collect::<Vec<_>>().join(", "),
            status,
            shade,
        }
    }
}

/// The fields of an endpoint, with the submitted values after an error.
struct Form {
    url: String,
    description: String,
    events: Vec<(&'static str, bool)>,
}

impl Form {
    fn of(visit: &Visit<'_>, stored: &v1::WebhookEndpoint, is_sent: bool) -> Self {
        let field = |name: &str, stored: &str| match is_sent {
            true => visit.form.get(name).unwrap_or_default().to_owned(),
            false => stored.to_owned(),
        };
        let is_stored = |kind: EventType| stored.events().any(|known| known.rest_name() == Some(kind.as_str()));
        let is_chosen = |kind| if is_sent { is_ticked(visit, kind) } else { is_stored(kind) };
        Self {
            url: field("url", stored.url.as_deref().unwrap_or_default()),
            description: field("description", &stored.description),
            events: EventType::ALL.map(|kind| (kind.as_str(), is_chosen(kind))).into(),
        }
    }
}

fn is_ticked(visit: &Visit<'_>, kind: EventType) -> bool {
    visit.form.get(&format!("event.{}", kind.as_str())).is_some()
}

/// Returns the numbers of the selected event types.
fn ticked(visit: &Visit<'_>) -> Vec<i32> {
    let chosen = EventType::ALL.into_iter().filter(|kind| is_ticked(visit, *kind));
    chosen.map(|kind| v1::EventType::from_rest_name(kind.as_str()).unwrap_or_default().into()).collect()
}

fn text(visit: &Visit<'_>, name: &str) -> String {
    visit.form.get(name).unwrap_or_default().trim().to_owned()
}

/// Returns the list of additional endpoints; after an error with the submitted values.
pub(super) async fn list(visit: &Visit<'_>, status: StatusCode, wrong: Vec<String>) -> Result<Response, Refusal> {
    let request = v1::ListWebhookEndpointsRequest { merchant_id: visit.merchant.id.clone() };
    let found = visit.facade.engine.webhook_endpoints().list_webhook_endpoints(visit.request(request)).await?;
    // The first one is the default endpoint, which the settings change.
    let rows = found.into_inner().endpoints.iter().skip(1).map(Row::of).collect();
    let form = Form::of(visit, &v1::WebhookEndpoint::default(), !wrong.is_empty());
    let page = EndpointsPage { rows, form, frame: visit.frame("webhooks", wrong) };
    Ok(html::page(status, page.render(), None))
}

/// Creates an endpoint and shows its secret once.
pub(super) async fn create(visit: &Visit<'_>) -> Result<Response, Refusal> {
    let request = v1::CreateWebhookEndpointRequest {
        merchant_id: visit.merchant.id.clone(),
        url: text(visit, "url"),
        description: text(visit, "description"),
        events: ticked(visit),
    };
    let made = visit.facade.engine.webhook_endpoints().create_webhook_endpoint(visit.request(request)).await;
    match made.map_err(ApiError::from) {
        Ok(made) => {
            let note = "It signs the webhooks to the new endpoint.".to_owned();
            Ok(shown_once(visit, "Webhook secret", &made.into_inner().webhook_secret, note, LIST))
        }
        Err(refused) if refused.http() < 500 => {
            let page = list(visit, error::status(&refused), problems(&refused)).await?;
            Ok(error::with_retry(&refused, page))
        }
        Err(refused) => Err(refused.into()),
    }
}

#[derive(Template)]
#[template(path = "dashboard/endpoint.html")]
struct EndpointPage<'v> {
    frame: Frame<'v>,
    id: String,
    url: String,
    status: &'static str,
    shade: &'static str,
    facts: Vec<(&'static str, String)>,
    /// Whether its health disabled it.
    is_disabled: bool,
    is_switched_on: bool,
    form: Form,
    types: [&'static str; EventType::ALL.len()],
}

/// Returns the page of an endpoint; after an error with the submitted values.
pub(super) async fn one(
    visit: &Visit<'_>,
    id: &str,
    status: StatusCode,
    wrong: Vec<String>,
) -> Result<Response, Refusal> {
    let request =
        v1::GetWebhookEndpointRequest { merchant_id: visit.merchant.id.clone(), endpoint_id: Some(id.to_owned()) };
    let found = visit.facade.engine.webhook_endpoints().get_webhook_endpoint(visit.request(request)).await?;
    let endpoint = found.into_record()?;
    let (word, shade) = status_of(&endpoint);
    let is_sent = !wrong.is_empty() && visit.form.get("url").is_some();
    let page = EndpointPage {
        form: Form::of(visit, &endpoint, is_sent),
        facts: facts_of(&endpoint),
        is_disabled: endpoint.disabled_at.is_some(),
        is_switched_on: endpoint.disabled_reason() != v1::WebhookDisabledReason::Merchant,
        types: EventType::ALL.map(EventType::as_str),
        status: word,
        shade,
        id: endpoint.id,
        url: endpoint.url.unwrap_or_default(),
        frame: visit.frame("webhooks", wrong),
    };
    Ok(html::page(status, page.render(), None))
}

/// Redirects to the page of the endpoint with a confirmation, or shows it with the errors.
async fn after<T>(
    visit: &Visit<'_>,
    id: &str,
    made: Result<T, tonic::Status>,
    done: &str,
) -> Result<Response, Refusal> {
    match made.map_err(ApiError::from) {
        Ok(_) => Ok(html::see_other(&format!("{LIST}/{id}?done={done}"))),
        Err(refused) => failed(visit, id, refused).await,
    }
}

async fn failed(visit: &Visit<'_>, id: &str, refused: ApiError) -> Result<Response, Refusal> {
    if refused.http() == 404 || refused.http() >= 500 {
        return Err(refused.into());
    }
    let page = one(visit, id, error::status(&refused), problems(&refused)).await?;
    Ok(error::with_retry(&refused, page))
}

/// Changes every field of the form.
pub(super) async fn save(visit: &Visit<'_>, id: &str) -> Result<Response, Refusal> {
    let request = v1::UpdateWebhookEndpointRequest {
        merchant_id: visit.merchant.id.clone(),
        endpoint_id: id.to_owned(),
        url: Some(text(visit, "url")),
        description: Some(text(visit, "description")),
        events: Some(v1::WebhookEventTypes { types: ticked(visit) }),
        enabled: Some(visit.form.get("enabled").is_some()),
    };
    let saved = visit.facade.engine.webhook_endpoints().update_webhook_endpoint(visit.request(request)).await;
    after(visit, id, saved, "saved").await
}

/// Sends a test event of the selected type.
pub(super) async fn test(visit: &Visit<'_>, id: &str) -> Result<Response, Refusal> {
    let kind = visit.form.get("type").filter(|word| !word.is_empty());
    let request = v1::SendTestWebhookRequest {
        merchant_id: visit.merchant.id.clone(),
        r#type: kind.map(|word| v1::EventType::from_rest_name(word).unwrap_or_default().into()),
        status: None,
        endpoint_id: Some(id.to_owned()),
    };
    let made = visit.facade.engine.webhook_endpoints().send_test_webhook(visit.request(request)).await;
    after(visit, id, made, "tested").await
}

/// Enables an endpoint that its health disabled.
pub(super) async fn enable(visit: &Visit<'_>, id: &str) -> Result<Response, Refusal> {
    let request = v1::EnableWebhookEndpointRequest {
        merchant_id: visit.merchant.id.clone(),
        replay_since: None,
        endpoint_id: Some(id.to_owned()),
    };
    let made = visit.facade.engine.webhook_endpoints().enable_webhook_endpoint(visit.request(request)).await;
    after(visit, id, made, "enabled").await
}

/// Rotates the secret of an endpoint and shows the new one once.
pub(super) async fn new_secret(visit: &Visit<'_>, id: &str) -> Result<Response, Refusal> {
    let hours = visit.form.get("graceHours").unwrap_or("0").trim().parse().unwrap_or(u32::MAX);
    let request = v1::RotateWebhookEndpointSecretRequest {
        merchant_id: visit.merchant.id.clone(),
        endpoint_id: id.to_owned(),
        grace_hours: Some(hours),
    };
    let made = visit.facade.engine.webhook_endpoints().rotate_webhook_endpoint_secret(visit.request(request)).await;
    match made.map_err(ApiError::from) {
        Ok(made) => {
            let made = made.into_inner();
            let note = match made.previous_valid_until {
                Some(until) => format!("The old secret also signs until {} UTC.", minute(until)),
                None => "The old secret is invalid.".to_owned(),
            };
            Ok(shown_once(visit, "New webhook secret", &made.webhook_secret, note, &format!("{LIST}/{id}")))
        }
        Err(refused) => failed(visit, id, refused).await,
    }
}

/// Deletes an endpoint.
pub(super) async fn remove(visit: &Visit<'_>, id: &str) -> Result<Response, Refusal> {
    let request =
        v1::DeleteWebhookEndpointRequest { merchant_id: visit.merchant.id.clone(), endpoint_id: id.to_owned() };
    let made = visit.facade.engine.webhook_endpoints().delete_webhook_endpoint(visit.request(request)).await;
    match made.map_err(ApiError::from) {
        Ok(_) => Ok(html::see_other(&format!("{LIST}?done=endpoint-deleted"))),
        Err(refused) => failed(visit, id, refused).await,
    }
}
