//! Administration of merchants: list, activate, deactivate, replace API keys.

use http::StatusCode;
use proto::{IntoRecord, v1};
use serde::Serialize;
use utoipa::ToSchema;
use warp::reply::Response;

use crate::facade::{
    http::{call::Call, query, refusal::Refusal, response, state::Facade},
    record::{self, Page, timeline},
};

/// Returns a page of merchants, newest first.
pub(crate) async fn list(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut query = call.query();
    let (page, limit) = (query.page(), query.limit());
    let request = v1::ListMerchantsRequest {
        skip: query::skip(page, limit),
        page_size: limit,
        page_token: String::new(),
        query: query.search().unwrap_or_default(),
        active: query.boolean("active"),
        flagged: query.boolean("flagged"),
    };
    query.finish()?;
    let found = facade.engine.merchants().list_merchants(call.caller.request(request)).await?.into_inner();
    let data = found.merchants.iter().map(record::Merchant::of).collect();
    Ok(response::json(StatusCode::OK, &Page::new(data, page, limit, found.total_size, None)))
}

/// Activates or deactivates a merchant: `{"isActive"}`.
pub(crate) async fn set_active(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut body = call.json().await?;
    let active = body.bool("isActive");
    body.finish()?;
    switch(facade, &call, id, active).await
}

/// Activates or deactivates a merchant in the alternative form: `?merchantId=` and `{"role":"user"|"nonActive"}`.
pub(crate) async fn change_status(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut query = call.query();
    let id = query.get("merchantId").map(str::to_owned);
    let id = id.unwrap_or_else(|| query.wrong("merchantId", "is required"));
    query.finish()?;
    let mut body = call.json().await?;
    let active = match body.text("role").as_str() {
        "user" => true,
        "nonActive" => false,
        _ if body.is_valid("role") => body.wrong("role", "must be user or nonActive"),
        _ => false,
    };
    body.finish()?;
    switch(facade, &call, &id, active).await
}

async fn switch(facade: &Facade, call: &Call, id: &str, active: bool) -> Result<Response, Refusal> {
    let request = v1::SetMerchantActiveRequest { merchant_id: id.to_owned(), active: Some(active) };
    let merchant = facade.engine.merchants().set_merchant_active(call.caller.request(request)).await?.into_record()?;
    Ok(response::json(StatusCode::OK, &record::Merchant::of(&merchant)))
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Dossier<'a> {
    payment: record::Payment<'a>,
    timeline: Vec<timeline::Entry<'a>>,
}

/// Returns any merchant's payment with its timeline; the audit log records the read.
pub(crate) async fn payment(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    let request = call.with_key()?.request(v1::InspectPaymentRequest { payment_id: id.to_owned() });
    let found = facade.engine.payments().inspect_payment(request).await?.into_inner();
    let payment = found.payment.unwrap_or_default();
    let steps = timeline::of(&payment)?;
    let timeline = steps.iter().map(timeline::Entry::of).collect();
    let payment = record::Payment::of(&facade.base_url, &payment)?;
    Ok(response::json(StatusCode::OK, &Dossier { payment, timeline }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reissued<'a> {
    api_key: &'a str,
    merchant: record::Merchant<'a>,
}

/// Issues a new API key, which is returned only once; all others are revoked.
pub(crate) async fn reissue_key(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    call.with_key()?;
    call.no_body().await?;
    let request = call.caller.request(v1::ReissueApiKeyRequest { merchant_id: id.to_owned() });
    let made = facade.engine.merchants().reissue_api_key(request).await?.into_inner();
    let merchant = made.merchant.unwrap_or_default();
    let body = Reissued { api_key: &made.api_key, merchant: record::Merchant::of(&merchant) };
    Ok(response::json(StatusCode::OK, &body))
}
