//! Unmatched transfers, decisions about payments, and refunds.

use askama::Template;
use engine::money::Currency;
use http::StatusCode;
use proto::{
    ApiError, IntoRecord,
    v1::{self, ResolutionKind},
};
use warp::reply::Response;

use crate::facade::{
    http::{error, refusal::Refusal},
    pages::{
        dashboard::{
            account, payment,
            visit::{Frame, Visit, minute, problems, units},
        },
        html,
        wallets::Qr,
    },
    record,
};

#[derive(Template)]
#[template(path = "dashboard/unmatched.html")]
struct ListPage<'v> {
    frame: Frame<'v>,
    status: String,
    rows: Vec<Row>,
    next: Option<String>,
}

/// A transfer in the tables.
struct Row {
    id: String,
    at: String,
    from: String,
    amount: String,
    memo: String,
    reason: &'static str,
    status: &'static str,
    payment_id: Option<String>,
    note: String,
    tx_id: String,
}

impl Row {
    fn of(transfer: &v1::UnmatchedTransfer) -> Result<Self, ApiError> {
        Ok(Self {
            id: transfer.id.clone(),
            at: minute(transfer.block_time),
            from: transfer.from_account.clone(),
            amount: sum(transfer.amount.as_ref())?,
            memo: transfer.memo.clone(),
            reason: why(transfer.reason),
            status: record::unmatched_status_word(transfer.status),
            payment_id: transfer.payment_id.clone(),
            note: transfer.note.clone().unwrap_or_default(),
            tx_id: transfer.tx_id.clone(),
        })
    }

    fn is_open(&self) -> bool {
        self.status == "open"
    }
}

/// Returns why a transfer is unmatched.
fn why(reason: i32) -> &'static str {
    use v1::UnmatchedReason as Reason;
    match Reason::try_from(reason).unwrap_or_default() {
        Reason::Unspecified => "",
        Reason::NoSession => "the memo names no payment",
        Reason::AmbiguousMemo => "the memo names several payments",
        Reason::EncryptedMemo => "the memo is encrypted",
        Reason::UnknownSession => "the memo names an unknown payment",
        Reason::OtherAccount => "the memo names a payment to another account",
        Reason::UnsupportedOperation => "the operation is not a plain transfer",
    }
}

fn sum(money: Option<&v1::Money>) -> Result<String, ApiError> {
    record::money(money).map(|money| money.to_string())
}

/// Returns the unmatched transfers with a status, by default the open ones.
pub(super) async fn list(visit: &Visit<'_>) -> Result<Response, Refusal> {
    let query = visit.call.query();
    let status = query.get("status").unwrap_or("open").to_owned();
    let statuses = (1..=3).filter(|wire| record::unmatched_status_word(*wire) == status).collect();
    let request = v1::ListUnmatchedRequest { page_size: 20, page_token: query.cursor(), statuses };
    let found = visit.facade.engine.unmatched_transfers().list_unmatched(visit.request(request)).await;
    let found = match found.map_err(ApiError::from) {
        Ok(found) => found.into_inner(),
        Err(refused) => return account::instead(visit, refused),
    };
    let next = record::token(&found.next_page_token).map(|cursor| {
        let mut out = url::form_urlencoded::Serializer::new(String::new());
        out.append_pair("status", &status).append_pair("cursor", cursor);
        format!("/dashboard/unmatched?{}", out.finish())
    });
    let rows = found.transfers.iter().map(Row::of).collect::<Result<_, _>>()?;
    let page = ListPage { frame: visit.frame("unmatched", Vec::new()), status, rows, next };
    Ok(html::page(StatusCode::OK, page.render(), None))
}

#[derive(Template)]
#[template(path = "dashboard/unmatched_transfer.html")]
struct UnmatchedTransferPage<'v> {
    frame: Frame<'v>,
    row: Row,
    candidates: Vec<Candidate>,
}

/// A candidate payment of a transfer.
struct Candidate {
    id: String,
    created: String,
    amount: String,
    status: &'static str,
    description: String,
    matches: String,
}

impl Candidate {
    fn of(candidate: &v1::Candidate, payment: &v1::Payment) -> Result<Self, ApiError> {
        let matches = [(candidate.same_amount, "amount"), (candidate.on_time, "time"), (candidate.same_payer, "payer")];
        let matches: Vec<&str> = matches.into_iter().filter(|(is_equal, _)| *is_equal).map(|(_, name)| name).collect();
        Ok(Self {
            id: payment.id.clone(),
            created: minute(payment.created_at),
            amount: record::price(payment)?.to_string(),
            status: record::status_word(payment.status),
            description: payment.description.clone(),
            matches: matches.join(", "),
        })
    }
}

/// Returns one transfer with its candidate payments.
pub(super) async fn one(visit: &Visit<'_>, id: &str, wrong: Vec<String>) -> Result<Response, Refusal> {
    let service = visit.facade.engine.unmatched_transfers();
    let request = visit.request(v1::GetUnmatchedRequest { id: id.to_owned() });
    let transfer =
        match service.clone().get_unmatched(request).await.and_then(IntoRecord::into_record).map_err(ApiError::from) {
            Ok(transfer) => transfer,
            Err(refused) => return account::instead(visit, refused),
        };
    let row = Row::of(&transfer)?;
    let request = visit.request(v1::ListCandidatesRequest { id: id.to_owned() });
    let candidates = match row.is_open() {
        true => service.clone().list_candidates(request).await?.into_inner().candidates,
        false => Vec::new(),
    };
    let status = if wrong.is_empty() { StatusCode::OK } else { StatusCode::CONFLICT };
    let candidates =
        candidates.iter().filter_map(|candidate| Some(Candidate::of(candidate, candidate.payment.as_ref()?)));
    let candidates = candidates.collect::<Result<_, _>>()?;
    let page = UnmatchedTransferPage { frame: visit.frame("unmatched", wrong), row, candidates };
    Ok(html::page(status, page.render(), None))
}

/// Assigns a transfer to a payment.
pub(super) async fn assign(visit: &Visit<'_>, id: &str) -> Result<Response, Refusal> {
    let payment_id = visit.form.get("paymentId").unwrap_or_default().trim().to_owned();
    let request = v1::AssignUnmatchedRequest { id: id.to_owned(), payment_id };
    let made = visit.facade.engine.unmatched_transfers().assign_unmatched(visit.request(request)).await;
    match made.and_then(IntoRecord::into_record).map_err(ApiError::from) {
        Ok(payment) => Ok(html::see_other(&format!("/dashboard/payments/{}?done=assigned", payment.id))),
        Err(refused) if refused.http() < 500 => one(visit, id, problems(&refused)).await,
        Err(refused) => Err(refused.into()),
    }
}

/// Marks a transfer as ignored.
pub(super) async fn ignore(visit: &Visit<'_>, id: &str) -> Result<Response, Refusal> {
    let note = visit.form.get("note").unwrap_or_default().trim().to_owned();
    let request = v1::IgnoreUnmatchedRequest { id: id.to_owned(), note };
    match visit
        .facade
        .engine
        .unmatched_transfers()
        .ignore_unmatched(visit.request(request))
        .await
        .map_err(ApiError::from)
    {
        Ok(_) => Ok(html::see_other("/dashboard/unmatched?done=ignored")),
        Err(refused) if refused.http() < 500 => one(visit, id, problems(&refused)).await,
        Err(refused) => Err(refused.into()),
    }
}

/// Records the merchant's decision about a payment.
pub(super) async fn resolve(visit: &Visit<'_>, id: &str) -> Result<Response, Refusal> {
    let kind = match visit.form.get("kind").unwrap_or_default() {
        "accepted" => ResolutionKind::Accepted,
        "refunded" => ResolutionKind::Refunded,
        "ignored" => ResolutionKind::Ignored,
        _ => ResolutionKind::Unspecified,
    };
    let note = visit.form.get("note").unwrap_or_default().trim().to_owned();
    let tx_id = visit.form.get("txId").map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let request = v1::ResolvePaymentRequest { payment_id: id.to_owned(), kind: kind.into(), note, tx_id };
    match visit
        .facade
        .engine
        .unmatched_transfers()
        .resolve_payment(visit.request(request))
        .await
        .map_err(ApiError::from)
    {
        Ok(_) => Ok(html::see_other(&format!("/dashboard/payments/{id}?done=resolved"))),
        Err(refused) if (400..500).contains(&refused.http()) && refused.http() != 404 => {
            payment::page(visit, id, problems(&refused)).await
        }
        Err(refused) => Err(refused.into()),
    }
}

#[derive(Template)]
#[template(path = "dashboard/refund.html")]
struct RefundPage<'v> {
    frame: Frame<'v>,
    id: &'v str,
    plan: Option<Plan>,
    amount: String,
    currency: String,
    to: String,
}

/// A refund for the merchant to sign.
struct Plan {
    from: String,
    to: String,
    amount: String,
    memo: String,
    uri: String,
    hivesigner_url: String,
    qr: Option<Qr>,
    owed: Vec<(String, String)>,
}

impl Plan {
    fn of(plan: v1::PrepareRefundResponse) -> Result<Self, ApiError> {
        let owed = |owed: &v1::Owed| Ok((owed.to_account.clone(), sum(owed.amount.as_ref())?));
        Ok(Self {
            qr: Qr::of(&plan.uri),
            amount: sum(plan.amount.as_ref())?,
            owed: plan.owed.iter().map(owed).collect::<Result<_, ApiError>>()?,
            from: plan.from_account,
            to: plan.to_account,
            memo: plan.memo,
            uri: plan.uri,
            hivesigner_url: plan.hivesigner_url,
        })
    }
}

/// Returns the refund to sign: the amount owed, or the entered one. Nothing is stored before the transfer is on the
/// chain.
pub(super) async fn refund(visit: &Visit<'_>, id: &str) -> Result<Response, Refusal> {
    let query = visit.call.query();
    let text = |name: &str| query.get(name).unwrap_or_default().trim().to_owned();
    let (amount, currency, to) = (text("amount"), text("currency"), text("to"));
    let amount_units = units(&amount).filter(|units| *units > 0);
    let request = v1::PrepareRefundRequest {
        payment_id: id.to_owned(),
        amount_units,
        currency: Currency::parse(&currency).map(|currency| record::currency_to_wire(currency).into()),
        to_account: Some(to.clone()).filter(|to| !to.is_empty()),
    };
    let is_wrong = !amount.is_empty() && amount_units.is_none();
    let planned = match is_wrong {
        true => Err(ApiError::field("amount", "must be a number such as 12.500")),
        false => {
            visit.facade.engine.unmatched_transfers().prepare_refund(visit.request(request)).await.map_err(Into::into)
        }
    };
    let (status, plan, wrong) = match planned {
        Ok(plan) => (StatusCode::OK, Some(plan.into_inner()), Vec::new()),
        Err(refused) if refused.http() == 404 || refused.http() >= 500 => return Err(refused.into()),
        Err(refused) => (error::status(&refused), None, problems(&refused)),
    };
    let plan = plan.map(Plan::of).transpose()?;
    let page = RefundPage { frame: visit.frame("payments", wrong), id, plan, amount, currency, to };
    Ok(html::page(status, page.render(), None))
}
