//! One payment: its details and actions, and the form for a new one.

use std::collections::BTreeMap;

use askama::Template;
use engine::money::{Currency, Money};
use http::StatusCode;
use proto::{ApiError, IntoRecord, Reason, v1};
use warp::reply::Response;

use crate::facade::{
    http::{error, refusal::Refusal, response},
    pages::{
        dashboard::{
            ledger,
            visit::{Frame, Visit, minute, problems, units},
            webhooks,
        },
        html,
    },
    record::{self, cancellation, timeline},
};

#[derive(Template)]
#[template(path = "dashboard/payment.html")]
struct PaymentPage<'v> {
    frame: Frame<'v>,
    payment: &'v v1::Payment,
    status: &'static str,
    amount: String,
    sums: Vec<(&'static str, String)>,
    exceptions: Vec<&'static str>,
    steps: Vec<(String, String)>,
    metadata: Vec<(String, String)>,
    transfers: Vec<Sent>,
    checkout_url: String,
    slug_url: String,
    raw: String,
    can_cancel: bool,
    can_delete_metadata: bool,
    is_cancelling: bool,
    can_refund: bool,
    resolution: Option<Resolved>,
    tests: Vec<(&'static str, &'static str)>,
    deliveries: Vec<webhooks::Row>,
}

/// The merchant's decision.
struct Resolved {
    kind: &'static str,
    at: String,
    note: String,
}

/// A transfer in the table.
struct Sent {
    at: String,
    from: String,
    amount: String,
    finality: &'static str,
    disposition: &'static str,
    memo: String,
    tx_id: String,
}

async fn find(visit: &Visit<'_>, id: &str) -> Result<v1::Payment, ApiError> {
    let request = visit.request(v1::GetPaymentRequest { payment_id: id.to_owned() });
    Ok(visit.facade.engine.payments().get_payment(request).await?.into_record()?)
}

/// Returns the page of a payment.
pub(super) async fn page(visit: &Visit<'_>, id: &str, wrong: Vec<String>) -> Result<Response, Refusal> {
    let payment = find(visit, id).await?;
    let deliveries = webhooks::of_payment(visit, id).await?;
    let currency = record::currency(payment.currency)?;
    let money = |units| Money::new(units, currency).to_string();
    let sums = [
        ("Fee", payment.fee_units, true),
        ("Net", payment.net_units, true),
        ("Received", payment.amount_paid_units, true),
        ("Missing", payment.amount_remaining_units, true),
        ("Over", payment.amount_overpaid_units, false),
        ("Late", payment.amount_late_units, false),
        ("Refunded", payment.amount_refunded_units, false),
    ];
    let raw = serde_json::from_slice::<serde_json::Value>(&response::to_json(&record::Payment::of(
        &visit.facade.base_url,
        &payment,
    )?));
    let is_pending = record::status_word(payment.status) == "pending";
    let has_ended = !is_pending && record::status_word(payment.status) != "processing";
    let status = if wrong.is_empty() { StatusCode::OK } else { StatusCode::CONFLICT };
    let page = PaymentPage {
        frame: visit.frame("payments", wrong),
        status: record::status_word(payment.status),
        amount: money(payment.amount_units),
        sums: sums
            .into_iter()
            .filter(|(_, units, always)| *always || *units > 0)
            .map(|(n, u, _)| (n, money(u)))
            .collect(),
        exceptions: payment.exceptions.iter().map(|wire| record::exception_word(*wire)).collect(),
        steps: timeline::of(&payment)?
            .into_iter()
            .map(|step| (minute(record::instant_to_wire(step.at)), step.what))
            .collect(),
        metadata: metadata(&payment),
        transfers: payment.transfers.iter().map(sent).collect::<Result<_, _>>()?,
        checkout_url: record::checkout_url(&visit.facade.base_url, &payment.id),
        slug_url: record::slug_url(&visit.facade.base_url, &payment.slug),
        raw: raw.map(|value| format!("{value:#}")).unwrap_or_default(),
        can_refund: payment.transfers.iter().any(|transfer| transfer.disposition != v1::Disposition::Fee as i32),
        resolution: payment.resolution.as_ref().map(|resolution| Resolved {
            kind: record::resolution_word(resolution.kind),
            at: minute(resolution.at),
            note: resolution.note.clone(),
        }),
        can_cancel: is_pending
            && !payment.expired
            && payment.claim_tx_id.is_none()
            && cancellation::undecided(&payment).is_none(),
        can_delete_metadata: has_ended && !payment.metadata.is_empty(),
        is_cancelling: cancellation::undecided(&payment).is_some(),
        tests: tests(visit, &payment, is_pending),
        deliveries,
        payment: &payment,
    };
    Ok(html::page(status, page.render(), None))
}

fn metadata(payment: &v1::Payment) -> Vec<(String, String)> {
    use v1::metadata_value::Value;
    let text = |value: &v1::MetadataValue| match &value.value {
        Some(Value::Text(text)) => text.clone(),
        Some(Value::List(list)) => list.items.join(", "),
        None => String::new(),
    };
    let mut pairs: Vec<_> = payment.metadata.iter().map(|(key, value)| (key.clone(), text(value))).collect();
    pairs.sort();
    pairs
}

fn sent(transfer: &v1::Transfer) -> Result<Sent, ApiError> {
    Ok(Sent {
        at: transfer.block_time.map(minute).unwrap_or_default(),
        from: transfer.from_account.clone(),
        amount: record::money(transfer.amount.as_ref())?.to_string(),
        finality: record::finality_word(transfer.finality),
        disposition: record::disposition_word(transfer.disposition),
        memo: transfer.memo.clone(),
        tx_id: transfer.tx_id.clone(),
    })
}

/// The test payments: the form value, and the label of the button.
fn tests(visit: &Visit<'_>, payment: &v1::Payment, is_pending: bool) -> Vec<(&'static str, &'static str)> {
    if visit.dashboard.test_ledger.is_none() || payment.livemode {
        return Vec::new();
    }
    if !is_pending {
        return vec![("late", "Pay now, after expiry")];
    }
    vec![
        ("full", "Pay the full amount"),
        ("partial", "Pay a part"),
        ("over", "Overpay"),
        ("currency", "Pay in the wrong currency"),
        ("memo", "Pay with a wrong memo"),
    ]
}

/// Cancels on behalf of the merchant.
pub(super) async fn cancel(visit: &Visit<'_>, id: &str) -> Result<Response, Refusal> {
    let request = visit.request(v1::CancelPaymentRequest { payment_id: id.to_owned() });
    let cancelled = visit.facade.engine.payments().cancel_payment(request).await;
    done(visit, id, cancelled.map(drop).map_err(ApiError::from), "cancelled").await
}

/// Deletes the metadata.
pub(super) async fn delete_metadata(visit: &Visit<'_>, id: &str) -> Result<Response, Refusal> {
    let request = visit.request(v1::DeletePaymentMetadataRequest { payment_id: id.to_owned() });
    let deleted = visit.facade.engine.payments().delete_payment_metadata(request).await;
    done(visit, id, deleted.map(drop).map_err(ApiError::from), "metadata-deleted").await
}

/// Deletes the note of the decision.
pub(super) async fn delete_note(visit: &Visit<'_>, id: &str) -> Result<Response, Refusal> {
    let request = visit.request(v1::DeletePaymentNoteRequest { payment_id: id.to_owned() });
    let deleted = visit.facade.engine.payments().delete_payment_note(request).await;
    done(visit, id, deleted.map(drop).map_err(ApiError::from), "note-deleted").await
}

async fn done(visit: &Visit<'_>, id: &str, outcome: Result<(), ApiError>, done: &str) -> Result<Response, Refusal> {
    match outcome {
        Ok(()) => Ok(html::see_other(&format!("/dashboard/payments/{id}?done={done}"))),
        Err(refused) if refused.http() == 409 => page(visit, id, problems(&refused)).await,
        Err(refused) => Err(refused.into()),
    }
}

/// Sends a test payment of the selected kind.
pub(super) async fn pay(visit: &Visit<'_>, id: &str) -> Result<Response, Refusal> {
    let Some(control) = &visit.dashboard.test_ledger else { return Err(Reason::UnknownRoute.into()) };
    let payment = find(visit, id).await?;
    if payment.livemode {
        return Err(Reason::UnknownRoute.into());
    }
    let currency = record::currency(payment.currency)?;
    let other = match currency {
        Currency::Hive => Currency::Hbd,
        Currency::Hbd => Currency::Hive,
    };
    let rest = payment.amount_remaining_units.max(1);
    let (money, memo) = match visit.form.get("how").unwrap_or_default() {
        "full" => (Money::new(rest, currency), payment.memo.clone()),
        "late" => (Money::new(payment.amount_units, currency), payment.memo.clone()),
        "partial" => (Money::new((rest / 2).max(1), currency), payment.memo.clone()),
        "over" => (Money::new(rest.saturating_add(1_000), currency), payment.memo.clone()),
        "currency" => (Money::new(rest, other), payment.memo.clone()),
        "memo" => (Money::new(rest, currency), "thank you for the mug".to_owned()),
        _ => return Err(ApiError::field("how", "must be one of the page's buttons").into()),
    };
    match ledger::transfer(control, &payment.pay_to, &money.to_string(), &memo).await {
        Ok(()) => Ok(html::see_other(&format!("/dashboard/payments/{id}?done=sent"))),
        Err(refused) => page(visit, id, problems(&refused)).await,
    }
}

#[derive(Template)]
#[template(path = "dashboard/new.html")]
struct NewPage<'v> {
    frame: Frame<'v>,
    amount: &'v str,
    currency: &'v str,
    description: &'v str,
    minutes: &'v str,
    redirect_url: &'v str,
    cancel_url: &'v str,
    metadata: &'v str,
}

/// Returns the form of a new payment, filled with the submitted values.
pub(super) fn form(visit: &Visit<'_>, status: StatusCode, wrong: Vec<String>) -> Response {
    let text = |name: &str| visit.form.get(name).unwrap_or_default();
    let page = NewPage {
        frame: visit.frame("new", wrong),
        amount: text("amount"),
        currency: text("currency"),
        description: text("description"),
        minutes: text("minutes"),
        redirect_url: text("redirectUrl"),
        cancel_url: text("cancelUrl"),
        metadata: text("metadata"),
    };
    html::page(status, page.render(), None)
}

/// Creates a payment from the form.
pub(super) async fn create(visit: &Visit<'_>) -> Result<Response, Refusal> {
    match draft(visit) {
        Err(wrong) => Ok(form(visit, StatusCode::BAD_REQUEST, problems(&wrong))),
        Ok(request) => {
            let made = visit.facade.engine.payments().create_payment(visit.request(request)).await;
            match made.and_then(IntoRecord::into_record).map_err(ApiError::from) {
                Ok(payment) => Ok(html::see_other(&format!("/dashboard/payments/{}", payment.id))),
                Err(refused) if refused.http() < 500 => {
                    let page = form(visit, error::status(&refused), problems(&refused));
                    Ok(error::with_retry(&refused, page))
                }
                Err(refused) => Err(refused.into()),
            }
        }
    }
}

fn draft(visit: &Visit<'_>) -> Result<v1::CreatePaymentRequest, ApiError> {
    let text = |name: &str| visit.form.get(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let amount = text("amount").and_then(|text| units(&text)).filter(|units| *units > 0);
    let amount = amount.ok_or_else(|| ApiError::field("amount", "must be a number such as 12.500"))?;
    let currency = text("currency").and_then(|code| Currency::parse(&code));
    let currency = currency.ok_or_else(|| ApiError::field("currency", "must be HIVE or HBD"))?;
    Money::requested(amount, currency).map_err(|error| ApiError::field("amount", error.to_string()))?;
    let minutes = match text("minutes") {
        None => None,
        Some(text) => {
            let minutes = text.parse::<u32>().ok().filter(|minutes| (1..=1_440).contains(minutes));
            Some(minutes.ok_or_else(|| ApiError::field("minutes", "must be a whole number from 1 to 1440"))? * 60)
        }
    };
    let mut metadata = BTreeMap::new();
    for line in text("metadata").unwrap_or_default().lines().filter(|line| !line.trim().is_empty()) {
        let wrong = || ApiError::field("metadata", "must have lines such as orderId=4711");
        let (key, value) = line.split_once('=').ok_or_else(wrong)?;
        let value = v1::metadata_value::Value::Text(value.trim().to_owned());
        metadata.insert(key.trim().to_owned(), v1::MetadataValue { value: Some(value) });
    }
    Ok(v1::CreatePaymentRequest {
        amount_units: amount,
        currency: record::currency_to_wire(currency).into(),
        description: text("description").unwrap_or_default(),
        redirect_url: text("redirectUrl"),
        cancel_url: text("cancelUrl"),
        metadata: metadata.into_iter().collect(),
        expires_in_seconds: minutes,
    })
}
