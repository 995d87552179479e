//! Unmatched transfers, resolutions of payments, and refunds to sign.

use engine::{money::Currency, time::Timestamp};
use http::StatusCode;
use proto::{
    ApiError, IntoRecord,
    v1::{self, ResolutionKind},
};
use serde::Serialize;
use serde_json::value::RawValue;
use warp::reply::Response;

use crate::facade::{
    http::{call::Call, refusal::Refusal, response, state::Facade},
    record::{self, Payment, Sum, Text, instant},
};

/// A transfer that matches no payment.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Unmatched<'a> {
    id: &'a str,
    status: &'static str,
    reason: &'static str,
    tx_id: &'a str,
    op_index: u32,
    block_num: u32,
    block_time: Text<Timestamp>,
    from: &'a str,
    to: &'a str,
    amount: Sum,
    memo: &'a str,
    payment_id: Option<&'a str>,
    handled_by: Option<&'a str>,
    handled_at: Option<Text<Timestamp>>,
    note: Option<&'a str>,
}

impl<'a> Unmatched<'a> {
    fn of(transfer: &'a v1::UnmatchedTransfer) -> Result<Self, ApiError> {
        Ok(Self {
            id: &transfer.id,
            status: record::unmatched_status_word(transfer.status),
            reason: record::unmatched_reason_word(transfer.reason),
            tx_id: &transfer.tx_id,
            op_index: transfer.op_index,
            block_num: transfer.block_num,
            block_time: Text(instant(transfer.block_time)),
            from: &transfer.from_account,
            to: &transfer.to_account,
            amount: Sum::of(transfer.amount.as_ref())?,
            memo: &transfer.memo,
            payment_id: transfer.payment_id.as_deref(),
            handled_by: transfer.handled_by.as_deref(),
            handled_at: transfer.handled_at.map(|at| Text(instant(at))),
            note: transfer.note.as_deref(),
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    data: Vec<Unmatched<'a>>,
    next_cursor: Option<&'a str>,
}

/// Returns unmatched transfers, newest first.
pub(crate) async fn list(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut query = call.query();
    let mut statuses = Vec::new();
    for text in query.list("status") {
        match (1..=3).find(|wire| record::unmatched_status_word(*wire) == text) {
            Some(wire) => statuses.push(wire),
            None => query.wrong("status", "must be open, assigned or ignored"),
        }
    }
    let page_token = query.cursor();
    let request = v1::ListUnmatchedRequest { page_size: query.limit(), page_token, statuses };
    query.finish()?;
    let page = facade.engine.unmatched_transfers().list_unmatched(call.caller.request(request)).await?.into_inner();
    let data = page.transfers.iter().map(Unmatched::of).collect::<Result<_, _>>()?;
    Ok(response::json(StatusCode::OK, &List { data, next_cursor: record::token(&page.next_page_token) }))
}

/// Returns an unmatched transfer.
pub(crate) async fn get(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    let request = call.with_key()?.request(v1::GetUnmatchedRequest { id: id.to_owned() });
    let transfer = facade.engine.unmatched_transfers().get_unmatched(request).await?.into_record()?;
    Ok(response::json(StatusCode::OK, &Unmatched::of(&transfer)?))
}

#[derive(Serialize)]
struct Candidates<'a> {
    data: Vec<Candidate<'a>>,
}

#[derive(Serialize)]
struct Candidate<'a> {
    payment: Payment<'a>,
    /// The fields that match: `amount`, `time`, `payer`.
    matches: Vec<&'static str>,
}

/// Returns payments that a transfer may belong to, best match first.
pub(crate) async fn candidates(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    let request = call.with_key()?.request(v1::ListCandidatesRequest { id: id.to_owned() });
    call.no_parameters()?;
    let found = facade.engine.unmatched_transfers().list_candidates(request).await?.into_inner();
    let mut data = Vec::new();
    for candidate in &found.candidates {
        let Some(payment) = &candidate.payment else { continue };
        let signs = [(candidate.same_amount, "amount"), (candidate.on_time, "time"), (candidate.same_payer, "payer")];
        let matches = signs.into_iter().filter(|(holds, _)| *holds).map(|(_, sign)| sign).collect();
        data.push(Candidate { payment: Payment::of(&facade.base_url, payment)?, matches });
    }
    Ok(response::json(StatusCode::OK, &Candidates { data }))
}

/// Assigns a transfer to a payment, `{"paymentId"}`, and returns the payment.
pub(crate) async fn assign(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut body = call.json().await?;
    let payment_id = body.text("paymentId");
    body.finish()?;
    let request = v1::AssignUnmatchedRequest { id: id.to_owned(), payment_id };
    let payment =
        facade.engine.unmatched_transfers().assign_unmatched(call.caller.request(request)).await?.into_record()?;
    Ok(response::json(StatusCode::OK, &Payment::of(&facade.base_url, &payment)?))
}

/// Marks a transfer as ignored: `{"note"?}`.
pub(crate) async fn ignore(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut body = call.optional_json().await?;
    let note = body.optional_text("note").unwrap_or_default();
    body.finish()?;
    let request = v1::IgnoreUnmatchedRequest { id: id.to_owned(), note };
    let transfer =
        facade.engine.unmatched_transfers().ignore_unmatched(call.caller.request(request)).await?.into_record()?;
    Ok(response::json(StatusCode::OK, &Unmatched::of(&transfer)?))
}

/// Records the merchant's resolution of a payment's exceptions: `{"kind", "note"?, "txId"?}`.
pub(crate) async fn resolve(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut body = call.json().await?;
    let kind = match body.text("kind").as_str() {
        "accepted" => ResolutionKind::Accepted,
        "refunded" => ResolutionKind::Refunded,
        "ignored" => ResolutionKind::Ignored,
        _ => {
            if body.is_valid("kind") {
                body.wrong::<()>("kind", "must be accepted, refunded or ignored");
            }
            ResolutionKind::Unspecified
        }
    };
    let note = body.optional_text("note").unwrap_or_default();
    let tx_id = body.optional_text("txId");
    body.finish()?;
    let request = v1::ResolvePaymentRequest { payment_id: id.to_owned(), kind: kind.into(), note, tx_id };
    let payment =
        facade.engine.unmatched_transfers().resolve_payment(call.caller.request(request)).await?.into_record()?;
    Ok(response::json(StatusCode::OK, &Payment::of(&facade.base_url, &payment)?))
}

#[derive(Serialize)]
struct Owed<'a> {
    to: &'a str,
    amount: Sum,
}

impl<'a> Owed<'a> {
    fn of(line: &'a v1::Owed) -> Result<Self, ApiError> {
        Ok(Self { to: &line.to_account, amount: Sum::of(line.amount.as_ref())? })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RefundPlan<'a> {
    payment_id: &'a str,
    from: &'a str,
    to: &'a str,
    amount: Sum,
    memo: &'a str,
    operation: &'a RawValue,
    uri: &'a str,
    hivesigner_url: &'a str,
    owed: Vec<Owed<'a>>,
}

/// Returns a refund for the merchant to sign: `?amount=&currency=&to=`, by default the refundable amount to the payer.
/// Nothing changes until the ledger contains the transfer.
pub(crate) async fn refund(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut query = call.query();
    let amount_units = query.get("amount").map(str::to_owned).and_then(|digits| {
        match engine::money::Money::parse(&digits, Currency::Hbd) {
            Ok(money) => Some(money.units),
            Err(error) => query.wrong("amount", error.to_string()),
        }
    });
    let currency = query.currency();
    let to = query.get("to").map(str::to_owned);
    query.finish()?;
    let request = v1::PrepareRefundRequest { payment_id: id.to_owned(), amount_units, currency, to_account: to };
    let plan = facade.engine.unmatched_transfers().prepare_refund(call.caller.request(request)).await?.into_inner();
    let operation = serde_json::from_str(&plan.operation_json).map_err(|_| proto::Reason::Internal)?;
    let body = RefundPlan {
        payment_id: &plan.payment_id,
        from: &plan.from_account,
        to: &plan.to_account,
        amount: Sum::of(plan.amount.as_ref())?,
        memo: &plan.memo,
        operation,
        uri: &plan.uri,
        hivesigner_url: &plan.hivesigner_url,
        owed: plan.owed.iter().map(Owed::of).collect::<Result<_, _>>()?,
    };
    Ok(response::json(StatusCode::OK, &body))
}
