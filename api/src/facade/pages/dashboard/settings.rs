//! The merchant's settings, webhook secret, API keys and sessions.

use askama::Template;
use engine::webhook::EventType;
use http::{HeaderValue, StatusCode};
use proto::{ApiError, Reason, v1};
use warp::reply::Response;

use crate::facade::{
    http::{error, refusal::Refusal, sessions},
    pages::{
        dashboard::{
            login::with_session,
            visit::{Frame, Visit, minute, problems},
        },
        html,
    },
};

#[derive(Template)]
#[template(path = "dashboard/settings.html")]
struct SettingsPage<'v> {
    frame: Frame<'v>,
    name: String,
    account: String,
    icon_url: String,
    webhook_url: String,
    support_url: String,
    x402: bool,
    restart: bool,
    events: Vec<Event>,
    keys: Vec<Key>,
    may_roll: bool,
    sessions: u32,
}

/// An event type, and whether the endpoint subscribes to it.
struct Event {
    word: &'static str,
    what: &'static str,
    is_sent: bool,
    /// Whether every endpoint receives it.
    is_fixed: bool,
}

impl Event {
    fn of(kind: EventType, is_sent: bool) -> Self {
        let is_fixed = kind == EventType::StatusChanged;
        let what = match kind {
            EventType::StatusChanged => "The status of a payment changed. Always sent.",
            EventType::Exception => "A payment has an exception: underpaid, paid twice, paid late, or similar.",
            EventType::X402Settled => "An x402 payment for a resource of your server was settled.",
            EventType::AccountChange => "A change of your Hive account was requested, cancelled, or took effect.",
            EventType::RefundCompleted => "A refund that you sent is final.",
            EventType::TransferUnmatched => "A transfer to your Hive account matches no payment.",
        };
        Self { word: kind.as_str(), what, is_sent: is_sent || is_fixed, is_fixed }
    }
}

/// Returns whether the form selects an event type.
fn is_ticked(visit: &Visit<'_>, kind: EventType) -> bool {
    kind == EventType::StatusChanged || visit.form.get(&format!("event.{}", kind.as_str())).is_some()
}

/// An API key in the table.
struct Key {
    id: String,
    name: String,
    shape: String,
    scopes: String,
    created: String,
    used: String,
    expires: String,
    is_this: bool,
}

impl Key {
    fn of(key: &v1::ApiKey, shown: &str) -> Self {
        Self {
            id: key.id.clone(),
            name: key.name.clone(),
            shape: format!("{}…{}", key.prefix, key.last4),
            scopes: key.scopes().filter_map(v1::ApiKeyScope::rest_name).collect::<Vec<_>>().join(", "),
            created: minute(key.created_at),
            used: key.last_used_at.map(minute).unwrap_or_default(),
            expires: key.expires_at.map(minute).unwrap_or_default(),
            is_this: is_of(key, shown),
        }
    }
}

/// Returns whether this is the key with that text, by the characters that are stored.
fn is_of(key: &v1::ApiKey, text: &str) -> bool {
    text.starts_with(&key.prefix) && text.ends_with(&key.last4)
}

/// Returns the merchant's keys, and whether it may roll them; none if the key lacks the permission to list keys.
async fn keys(visit: &Visit<'_>) -> Result<v1::ListApiKeysResponse, ApiError> {
    let request = visit.request(v1::ListApiKeysRequest { merchant_id: visit.merchant.id.clone() });
    match visit.facade.engine.api_keys().list_api_keys(request).await.map_err(ApiError::from) {
        Err(refused) if refused.reason == Reason::InsufficientScope => Ok(v1::ListApiKeysResponse::default()),
        found => found.map(tonic::Response::into_inner),
    }
}

#[derive(Template)]
#[template(path = "dashboard/secret.html")]
struct SecretPage<'v> {
    frame: Frame<'v>,
    title: &'v str,
    secret: &'v str,
    note: String,
    back: &'v str,
}

/// Returns a page with a secret that is shown once.
pub(super) fn shown_once(visit: &Visit<'_>, title: &str, secret: &str, note: String, back: &str) -> Response {
    let page = SecretPage { frame: visit.frame("settings", Vec::new()), title, secret, note, back };
    html::page(StatusCode::OK, page.render(), None)
}

/// Returns the settings; after an error with the submitted values.
pub(super) async fn page(visit: &Visit<'_>, status: StatusCode, wrong: Vec<String>) -> Result<Response, Refusal> {
    let found = keys(visit).await?;
    let merchant = &visit.merchant;
    let is_sent = !wrong.is_empty();
    let field = |name: &str, stored: &str| match visit.form.get(name) {
        Some(sent) if is_sent => sent.to_owned(),
        _ if is_sent => String::new(),
        _ => stored.to_owned(),
    };
    let is_stored = |kind: EventType| merchant.webhook_events().any(|stored| stored.rest_name() == Some(kind.as_str()));
    let is_chosen = |kind| if is_sent { is_ticked(visit, kind) } else { is_stored(kind) };
    let request = v1::CountDashboardSessionsRequest { session_id: visit.token.id() };
    let sessions = visit.facade.engine.facades().count_dashboard_sessions(visit.request(request)).await?;
    let sessions = sessions.into_inner().sessions;
    let page = SettingsPage {
        name: field("name", &merchant.name),
        account: field("hiveAccount", &merchant.hive_account),
        icon_url: field("iconUrl", merchant.icon_url.as_deref().unwrap_or_default()),
        webhook_url: field("webhookUrl", merchant.webhook_url.as_deref().unwrap_or_default()),
        support_url: field("supportUrl", merchant.support_url.as_deref().unwrap_or_default()),
        x402: if is_sent { visit.form.get("x402").is_some() } else { merchant.x402_enabled },
        restart: if is_sent { visit.form.get("restart").is_some() } else { merchant.restart_enabled },
        events: EventType::ALL.map(|kind| Event::of(kind, is_chosen(kind))).into(),
        keys: found.keys.iter().map(|key| Key::of(key, visit.key())).collect(),
        may_roll: found.may_roll,
        sessions,
        frame: visit.frame("settings", wrong),
    };
    Ok(html::page(status, page.render(), None))
}

/// Rolls a key and shows the new one once. A session of the old key continues with the new one.
pub(super) async fn roll_key(visit: &Visit<'_>, id: &str) -> Result<Response, Refusal> {
    let overlap_hours = visit.form.get("overlapHours").unwrap_or("0").trim().parse().unwrap_or(u32::MAX);
    let before = keys(visit).await?.keys.into_iter().find(|key| key.id == id);
    let merchant_id = visit.merchant.id.clone();
    let request = v1::RollApiKeyRequest {
        merchant_id: merchant_id.clone(),
        key_id: id.to_owned(),
        overlap_hours: Some(overlap_hours),
    };
    match visit.facade.engine.api_keys().roll_api_key(visit.request(request)).await.map_err(ApiError::from) {
        Ok(made) => {
            let made = made.into_inner();
            let note = match made.previous_valid_until {
                Some(until) => format!("The old key stays valid until {} UTC.", minute(until)),
                None => "The old key is revoked.".to_owned(),
            };
            let page = shown_once(visit, "New API key", &made.api_key, note, "/dashboard/settings");
            let is_own = before.is_some_and(|key| is_of(&key, visit.key()));
            let new = HeaderValue::from_str(&made.api_key).ok().filter(|_| is_own);
            Ok(match new {
                Some(key) => {
                    let (engine, caller) = (&visit.facade.engine, &visit.call.caller);
                    // The new key is shown in any case, because it cannot be shown again.
                    let _ = sessions::close(engine, caller, &visit.token).await;
                    match visit.dashboard.open(engine, caller, key, &merchant_id).await {
                        Ok(token) => with_session(page, &token),
                        Err(_) => page,
                    }
                }
                None => page,
            })
        }
        Err(refused) if refused.http() < 500 => refused_page(visit, &refused).await,
        Err(refused) => Err(refused.into()),
    }
}

/// Shows the page with the errors.
async fn refused_page(visit: &Visit<'_>, refused: &ApiError) -> Result<Response, Refusal> {
    let page = page(visit, error::status(refused), problems(refused)).await?;
    Ok(error::with_retry(refused, page))
}

/// Changes every field of the form, so that an emptied one is cleared.
pub(super) async fn save(visit: &Visit<'_>) -> Result<Response, Refusal> {
    let text = |name: &str| visit.form.get(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let change = |name: &str| Some(v1::TextChange::from(text(name)));
    let events = EventType::ALL.into_iter().filter(|kind| is_ticked(visit, *kind));
    let events = events.map(|kind| v1::EventType::from_rest_name(kind.as_str()).unwrap_or_default().into());
    let request = v1::UpdateMerchantRequest {
        merchant_id: visit.merchant.id.clone(),
        name: Some(text("name").unwrap_or_default()),
        // The ledger is queried only if the account changes.
        hive_account: Some(text("hiveAccount").unwrap_or_default()).filter(|name| *name != visit.merchant.hive_account),
        icon_url: change("iconUrl"),
        webhook_url: change("webhookUrl"),
        support_url: change("supportUrl"),
        x402_enabled: Some(visit.form.get("x402").is_some()),
        restart_enabled: Some(visit.form.get("restart").is_some()),
        webhook_events: Some(v1::WebhookEvents { types: events.collect() }),
    };
    let saved = visit.facade.engine.merchants().update_merchant(visit.request(request)).await;
    match saved.map_err(ApiError::from) {
        Ok(_) => Ok(html::see_other("/dashboard/settings?done=saved")),
        Err(refused) => refused_page(visit, &refused).await,
    }
}

/// Rotates the webhook secret and shows the new one once.
pub(super) async fn new_secret(visit: &Visit<'_>) -> Result<Response, Refusal> {
    let hours = visit.form.get("graceHours").unwrap_or("0").parse().unwrap_or(u32::MAX);
    let request = v1::RotateWebhookSecretRequest { merchant_id: visit.merchant.id.clone(), grace_hours: Some(hours) };
    let made = visit.facade.engine.merchants().rotate_webhook_secret(visit.request(request)).await;
    match made.map_err(ApiError::from) {
        Ok(made) => {
            let made = made.into_inner();
            let note = match made.previous_valid_until {
                Some(until) => format!("The old secret also signs until {} UTC.", minute(until)),
                None => "The old secret is invalid.".to_owned(),
            };
            Ok(shown_once(visit, "New webhook secret", &made.webhook_secret, note, "/dashboard/settings"))
        }
        Err(refused) => refused_page(visit, &refused).await,
    }
}
