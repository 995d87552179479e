//! Merchants: registration, and their own record.

use http::StatusCode;
use proto::{IntoRecord, v1};
use serde::Serialize;
use warp::reply::Response;

use crate::facade::{
    http::{call::Call, refusal::Refusal, response, state::Facade},
    record::{self, Text},
};

/// Maximum hours that the previous webhook secret also signs.
pub(super) const GRACE_MAX_HOURS: u32 = 168;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Registered<'a> {
    api_key: &'a str,
    webhook_secret: &'a str,
    merchant: record::Merchant<'a>,
}

/// Registers a merchant. Its API key and webhook secret are returned only once.
pub(crate) async fn register(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    let mut body = call.json().await?;
    let name = body.text("name");
    let account = match body.maybe_account() {
        Some(account) => account,
        None if body.is_valid("hiveAccount") && body.is_valid("hiveAccountName") => {
            body.wrong("hiveAccount", "is required")
        }
        None => String::new(),
    };
    let icon_url = body.optional_text("iconUrl");
    body.finish()?;
    let request = v1::RegisterMerchantRequest { name, hive_account: account, icon_url };
    let made = facade.engine.merchants().register_merchant(call.caller.request(request)).await?.into_inner();
    let merchant = made.merchant.unwrap_or_default();
    let body = Registered {
        api_key: &made.api_key,
        webhook_secret: &made.webhook_secret,
        merchant: record::Merchant::of(&merchant),
    };
    Ok(response::json(StatusCode::CREATED, &body))
}

/// Returns the merchant of the API key.
pub(crate) async fn me(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    let request = call.with_key()?.request(v1::GetCurrentMerchantRequest {});
    let merchant = facade.engine.merchants().get_current_merchant(request).await?.into_record()?;
    Ok(response::json(StatusCode::OK, &record::Merchant::of(&merchant)))
}

/// Returns a merchant: the caller's own, or any for an admin.
pub(crate) async fn get(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    let request = call.with_key()?.request(v1::GetMerchantRequest { merchant_id: id.to_owned() });
    let merchant = facade.engine.merchants().get_merchant(request).await?.into_record()?;
    Ok(response::json(StatusCode::OK, &record::Merchant::of(&merchant)))
}

/// Updates the fields of the body and returns the merchant.
pub(crate) async fn update(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut body = call.json().await?;
    let change = |value: Option<Option<String>>| value.map(v1::TextChange::from);
    let request = v1::UpdateMerchantRequest {
        merchant_id: id.to_owned(),
        name: body.maybe_text("name"),
        hive_account: body.maybe_account(),
        icon_url: change(body.change("iconUrl")),
        webhook_url: change(body.change("webhookUrl")),
        support_url: change(body.change("supportUrl")),
        x402_enabled: body.maybe_bool("x402Enabled"),
        restart_enabled: body.maybe_bool("restartEnabled"),
        webhook_events: body.maybe_texts("webhookEvents").map(|words| v1::WebhookEvents {
            types: words.iter().map(|word| v1::EventType::from_rest_name(word).unwrap_or_default().into()).collect(),
        }),
    };
    body.finish()?;
    let merchant = facade.engine.merchants().update_merchant(call.caller.request(request)).await?.into_record()?;
    Ok(response::json(StatusCode::OK, &record::Merchant::of(&merchant)))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Secret<'a> {
    webhook_secret: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_valid_until: Option<Text<engine::time::Timestamp>>,
}

impl<'a> Secret<'a> {
    pub(super) fn of(webhook_secret: &'a str, previous_valid_until: Option<proto::time::Timestamp>) -> Self {
        Self { webhook_secret, previous_valid_until: previous_valid_until.map(|at| Text(record::instant(at))) }
    }
}

/// Rotates the webhook secret; the new one is returned only once.
pub(crate) async fn rotate_secret(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut body = call.optional_json().await?;
    let grace_hours = body.optional_integer("graceHours", 0..=GRACE_MAX_HOURS).unwrap_or(0);
    body.finish()?;
    let request = v1::RotateWebhookSecretRequest { merchant_id: id.to_owned(), grace_hours: Some(grace_hours) };
    let made = facade.engine.merchants().rotate_webhook_secret(call.caller.request(request)).await?.into_inner();
    Ok(response::json(StatusCode::OK, &Secret::of(&made.webhook_secret, made.previous_valid_until)))
}
