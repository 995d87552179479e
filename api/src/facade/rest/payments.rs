//! Payments: create, read, list and cancel; and the fee rate.

use http::{HeaderValue, StatusCode, header::LOCATION};
use proto::{IntoRecord, caller::IDEMPOTENT_REPLAYED, v1};
use serde::Serialize;
use utoipa::ToSchema;
use warp::reply::Response;

use crate::facade::{
    http::{call::Call, refusal::Refusal, response, state::Facade},
    record::{self, Created, CreatedShort, Page, StatusName, Text, Time, Units},
};

/// Creates a payment and returns its links.
pub(crate) async fn create(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    let (payment, replayed) = open(facade, &mut call).await?;
    let mut response = response::json(StatusCode::CREATED, &Created::of(&facade.base_url, &payment)?);
    locate(facade, &payment, replayed, &mut response);
    Ok(response)
}

/// Creates a payment and returns the short response.
pub(crate) async fn create_short(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    let (payment, replayed) = open(facade, &mut call).await?;
    let slug_url = record::slug_url(&facade.base_url, &payment.slug);
    let mut response = response::json(StatusCode::CREATED, &CreatedShort::of(&payment, &slug_url));
    locate(facade, &payment, replayed, &mut response);
    Ok(response)
}

/// Creates a payment. If its idempotency key was used before, returns the earlier payment with the value of
/// `Idempotent-Replayed`.
async fn open(facade: &Facade, call: &mut Call) -> Result<(v1::Payment, Option<HeaderValue>), Refusal> {
    call.with_key()?;
    call.caller.idempotency_key = call.idempotency_key()?;
    let mut body = call.json().await?;
    let money = body.money();
    let request = v1::CreatePaymentRequest {
        amount_units: money.units,
        currency: record::currency_to_wire(money.currency).into(),
        description: body.text("description"),
        redirect_url: body.optional_text("redirectUrl"),
        cancel_url: body.optional_text("cancelUrl"),
        metadata: body.metadata(),
        expires_in_seconds: body.optional_integer("expiresInSeconds", 60..=86_400),
    };
    body.finish()?;
    let payment = facade.engine.create_payment(call.caller.request(request)).await?;
    let replayed = payment.metadata().as_ref().get(IDEMPOTENT_REPLAYED).cloned();
    Ok((payment.into_record()?, replayed))
}

fn locate(facade: &Facade, payment: &v1::Payment, replayed: Option<HeaderValue>, response: &mut Response) {
    if let Some(replayed) = replayed {
        response.headers_mut().insert(IDEMPOTENT_REPLAYED, replayed);
    }
    let url = facade.url(&format!("/api/public/payments/{}", payment.id));
    if let Ok(url) = HeaderValue::from_str(&url) {
        response.headers_mut().insert(LOCATION, url);
    }
}

/// Returns the record of a payment.
pub(crate) async fn get(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    let request = call.with_key()?.request(v1::GetPaymentRequest { payment_id: id.to_owned() });
    let payment = facade.engine.get_payment(request).await?.into_record()?;
    Ok(response::json(StatusCode::OK, &record::Payment::of(&facade.base_url, &payment)?))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusBody<'a> {
    id: &'a str,
    status: StatusName,
    #[schema(required = true)]
    completed_at: Option<Time>,
}

/// Returns the status of a payment.
pub(crate) async fn status(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    let request = call.with_key()?.request(v1::GetPaymentStatusRequest { payment_id: id.to_owned() });
    let status = facade.engine.get_payment_status(request).await?.into_inner();
    let body = StatusBody {
        id: &status.id,
        status: StatusName(record::status_name(status.status)),
        completed_at: status.completed_at.map(|at| Text(record::instant(at))),
    };
    Ok(response::json(StatusCode::OK, &body))
}

/// Returns a page of payments, newest first.
pub(crate) async fn list(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut query = call.query();
    let request = query.payments();
    // `skip` is a multiple of the page size.
    let (limit, skip) = (request.page_size, request.skip);
    let page = u32::try_from(skip / u64::from(limit)).unwrap_or(u32::MAX).saturating_add(1);
    query.finish()?;
    let found = facade.engine.payments().list_payments(call.caller.request(request)).await?.into_inner();
    let records = found.payments.iter().map(|payment| record::Payment::of(&facade.base_url, payment));
    let data = records.collect::<Result<_, _>>()?;
    let next_cursor = record::token(&found.next_page_token).map(str::to_owned);
    let mut body = Page::uncounted(data, page, limit, next_cursor);
    if let Some(total) = found.total_size {
        body = body.counted(total, found.total_is_lower_bound);
    }
    Ok(response::json(StatusCode::OK, &body))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Transfers<'a> {
    data: Vec<record::Transfer<'a>>,
    #[schema(required = true)]
    next_cursor: Option<&'a str>,
}

/// Returns the transfers of a payment, newest first: `?cursor=&limit=`.
pub(crate) async fn transfers(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut query = call.query();
    let page_token = query.cursor();
    let request = v1::ListTransfersRequest { payment_id: id.to_owned(), page_size: query.limit(), page_token };
    query.finish()?;
    let page = facade.engine.payments().list_transfers(call.caller.request(request)).await?.into_inner();
    let data = page.transfers.iter().map(record::Transfer::of).collect::<Result<_, _>>()?;
    Ok(response::json(StatusCode::OK, &Transfers { data, next_cursor: record::token(&page.next_page_token) }))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Volume {
    days: Vec<Day>,
    /// Milliseconds from creation to completion, of half of the payments at most. Exact to one part in 64.
    #[schema(required = true)]
    median_ms_to_pay: Option<u64>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Day {
    #[schema(format = "date")]
    day: String,
    opened: u64,
    completed: u64,
    /// Payments that ended otherwise.
    ended: u64,
    hive: Units,
    hbd: Units,
    usd_cents: u64,
}

/// Returns the payment volume of the last days, including today.
pub(crate) async fn volume(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut query = call.query();
    let days = query.days();
    query.finish()?;
    let request = call.caller.request(v1::GetVolumeRequest { days });
    let volume = facade.engine.payments().get_volume(request).await?.into_inner();
    let day = |day: &v1::DayVolume| Day {
        day: record::instant(day.day).to_ledger().chars().take(10).collect(),
        opened: day.opened,
        completed: day.completed,
        ended: day.ended,
        hive: Text(day.hive_units),
        hbd: Text(day.hbd_units),
        usd_cents: day.usd_cents,
    };
    let body = Volume { days: volume.days.iter().map(day).collect(), median_ms_to_pay: volume.median_ms_to_pay };
    Ok(response::json(StatusCode::OK, &body))
}

/// Requests the cancellation as the merchant.
pub(crate) async fn cancel(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    call.with_key()?;
    call.no_body().await?;
    let request = call.caller.request(v1::CancelPaymentRequest { payment_id: id.to_owned() });
    let payment = facade.engine.payments().cancel_payment(request).await?.into_record()?;
    Ok(response::json(StatusCode::OK, &record::Payment::of(&facade.base_url, &payment)?))
}

/// Deletes the metadata of a payment and returns the payment.
pub(crate) async fn delete_metadata(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    let request = call.with_key()?.request(v1::DeletePaymentMetadataRequest { payment_id: id.to_owned() });
    let payment = facade.engine.payments().delete_payment_metadata(request).await?.into_record()?;
    Ok(response::json(StatusCode::OK, &record::Payment::of(&facade.base_url, &payment)?))
}

/// Deletes the note of a payment's resolution and returns the payment.
pub(crate) async fn delete_note(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    let request = call.with_key()?.request(v1::DeletePaymentNoteRequest { payment_id: id.to_owned() });
    let payment = facade.engine.payments().delete_payment_note(request).await?.into_record()?;
    Ok(response::json(StatusCode::OK, &record::Payment::of(&facade.base_url, &payment)?))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FeeRate {
    #[schema(value_type = f64, minimum = 0, maximum = 100)]
    fee_percent: serde_json::Number,
}

/// Returns the fee rate of new payments.
pub(crate) async fn fee_rate(facade: &Facade, call: Call) -> Result<Response, Refusal> {
    let rate = facade.engine.fees().get_fee_rate(call.caller.request(v1::GetFeeRateRequest {})).await?.into_inner();
    let fee_percent = record::percent(rate.fee_percent_ten_thousandths);
    Ok(response::json(StatusCode::OK, &FeeRate { fee_percent }))
}
