//! The merchant's own settings, its webhook secret, its key and its sessions.

use askama::Template;
use http::StatusCode;
use proto::{ApiError, v1};
use warp::reply::Response;

use super::{
    super::{Refusal, error, pages},
    Frame, Visit, minute, problems,
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
    key_created: String,
    key_used: String,
    sessions: usize,
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

/// Answers with something that is shown this once.
pub(super) fn shown_once(visit: &Visit<'_>, title: &str, secret: &str, note: String, back: &str) -> Response {
    let page = SecretPage { frame: visit.frame("settings", Vec::new()), title, secret, note, back };
    pages::html(StatusCode::OK, page.render(), None)
}

/// Answers with the settings; with what was sent, if that was wrong.
pub(super) fn page(visit: &Visit<'_>, status: StatusCode, wrong: Vec<String>) -> Response {
    let merchant = &visit.merchant;
    let is_sent = !wrong.is_empty();
    let field = |name: &str, stored: &str| match visit.form.get(name) {
        Some(sent) if is_sent => sent.to_owned(),
        _ if is_sent => String::new(),
        _ => stored.to_owned(),
    };
    let page = SettingsPage {
        name: field("name", &merchant.name),
        account: field("hiveAccount", &merchant.hive_account),
        icon_url: field("iconUrl", merchant.icon_url.as_deref().unwrap_or_default()),
        webhook_url: field("webhookUrl", merchant.webhook_url.as_deref().unwrap_or_default()),
        support_url: field("supportUrl", merchant.support_url.as_deref().unwrap_or_default()),
        x402: if is_sent { visit.form.get("x402").is_some() } else { merchant.x402_enabled },
        key_created: minute(merchant.api_key_created_at_ms),
        key_used: merchant.api_key_last_used_at_ms.map(minute).unwrap_or_default(),
        sessions: visit.desk.sessions.count(&merchant.id),
        frame: visit.frame("settings", wrong),
    };
    pages::html(status, page.render(), None)
}

/// Changes what the form names: every field of it, so that an emptied one is cleared.
pub(super) async fn save(visit: &Visit<'_>) -> Result<Response, Refusal> {
    let text = |name: &str| visit.form.get(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let change = |name: &str| Some(v1::TextChange { value: text(name) });
    let request = v1::UpdateMerchantRequest {
        merchant_id: visit.merchant.id.clone(),
        name: Some(text("name").unwrap_or_default()),
        // The account is asked of the ledger only when it changes.
        hive_account: Some(text("hiveAccount").unwrap_or_default()).filter(|name| *name != visit.merchant.hive_account),
        icon_url: change("iconUrl"),
        webhook_url: change("webhookUrl"),
        support_url: change("supportUrl"),
        x402_enabled: Some(visit.form.get("x402").is_some()),
    };
    let saved = visit.facade.engine.merchants().update_merchant(visit.request(request)).await;
    match saved.map_err(ApiError::from) {
        Ok(_) => Ok(pages::see_other("/dashboard/settings?done=saved")),
        Err(refused) => Ok(page(visit, error::status(&refused), problems(&refused))),
    }
}

/// Makes a new webhook secret and shows it this once.
pub(super) async fn new_secret(visit: &Visit<'_>) -> Result<Response, Refusal> {
    let hours = visit.form.get("graceHours").unwrap_or("0").parse().unwrap_or(u32::MAX);
    let request = v1::RotateWebhookSecretRequest { merchant_id: visit.merchant.id.clone(), grace_hours: hours };
    let made = visit.facade.engine.merchants().rotate_webhook_secret(visit.request(request)).await;
    match made.map_err(ApiError::from) {
        Ok(made) => {
            let made = made.into_inner();
            let note = match made.previous_valid_until_ms {
                Some(until) => format!("The old secret signs beside it until {} UTC.", minute(until)),
                None => "The old secret has stopped.".to_owned(),
            };
            Ok(shown_once(visit, "Your new webhook secret", &made.webhook_secret, note, "/dashboard/settings"))
        }
        Err(refused) => Ok(page(visit, error::status(&refused), problems(&refused))),
    }
}
