//! The list of payments: filter, search and export.

use askama::Template;
use http::StatusCode;
use proto::{ApiError, v1};
use warp::reply::Response;

use crate::facade::{
    http::{query::Query, refusal::Refusal},
    pages::{
        dashboard::visit::{Frame, Visit, minute, problems, units},
        html,
    },
    record,
    rest::export::{self, Format},
};

const STATUSES: [&str; 6] = ["pending", "processing", "completed", "failed", "user_cancelled", "system_cancelled"];

#[derive(Template)]
#[template(path = "dashboard/payments.html")]
struct PaymentsPage<'v> {
    frame: Frame<'v>,
    rows: Vec<Row>,
    /// The total, only on the first page.
    total: Option<String>,
    filter: Filter,
    statuses: [&'static str; 6],
    next: Option<String>,
    export_query: String,
}

/// The visitor's filter as entered.
#[derive(Default)]
struct Filter {
    query: String,
    status: String,
    currency: String,
    from: String,
    to: String,
    min: String,
    max: String,
    unusual: bool,
}

struct Row {
    id: String,
    created: String,
    amount: String,
    status: &'static str,
    description: String,
    payer: String,
    unusual: bool,
}

impl Row {
    fn of(payment: &v1::Payment) -> Result<Self, ApiError> {
        Ok(Self {
            id: payment.id.clone(),
            created: minute(payment.created_at),
            amount: record::price(payment)?.to_string(),
            status: record::status_word(payment.status),
            description: payment.description.clone(),
            payer: payer(payment).map(|transfer| transfer.from_account.clone()).unwrap_or_default(),
            unusual: payment.needs_attention,
        })
    }
}

/// Returns the transfer that completed a payment, otherwise the first one listed.
fn payer(payment: &v1::Payment) -> Option<&v1::Transfer> {
    let completed_it = |transfer: &&v1::Transfer| payment.tx_id.as_ref() == Some(&transfer.tx_id);
    payment.transfers.iter().find(completed_it).or_else(|| payment.transfers.first())
}

impl Filter {
    fn read(query: &Query) -> Self {
        let text = |name: &str| query.get(name).unwrap_or_default().to_owned();
        Self {
            query: text("query"),
            status: text("status"),
            currency: text("currency"),
            from: text("from"),
            to: text("to"),
            min: text("min"),
            max: text("max"),
            unusual: query.get("unusual").is_some(),
        }
    }

    /// Formats the filter as a query string.
    fn write(&self) -> String {
        let mut out = url::form_urlencoded::Serializer::new(String::new());
        let pairs = [
            ("query", self.query.as_str()),
            ("status", &self.status),
            ("currency", &self.currency),
            ("from", &self.from),
            ("to", &self.to),
            ("min", &self.min),
            ("max", &self.max),
            ("unusual", if self.unusual { "1" } else { "" }),
        ];
        out.extend_pairs(pairs.into_iter().filter(|(_, value)| !value.is_empty()));
        out.finish()
    }

    /// Returns the request with the same parameters as the REST interface; days are whole UTC days, amounts have
    /// decimals.
    fn request(&self, limit: u32, cursor: Option<&str>) -> Result<v1::ListPaymentsRequest, ApiError> {
        let mut out = url::form_urlencoded::Serializer::new(String::new());
        out.append_pair("limit", &limit.to_string());
        for (name, value) in [("query", &self.query), ("status", &self.status), ("currency", &self.currency)] {
            if !value.is_empty() {
                out.append_pair(name, value);
            }
        }
        if !self.from.is_empty() {
            out.append_pair("from", &format!("{}T00:00:00Z", self.from));
        }
        if !self.to.is_empty() {
            out.append_pair("to", &format!("{}T23:59:59.999Z", self.to));
        }
        for (name, typed) in [("minAmount", &self.min), ("maxAmount", &self.max)] {
            if !typed.is_empty() {
                let whole = units(typed).ok_or_else(|| ApiError::field(name, "must be a number such as 12.500"))?;
                out.append_pair(name, &whole.to_string());
            }
        }
        if self.unusual {
            out.append_pair("unusual", "true");
        }
        if let Some(cursor) = cursor {
            out.append_pair("cursor", cursor);
        }
        let mut query = Query::parse(&out.finish());
        let request = query.payments();
        query.finish().map(|()| request)
    }
}

/// Formats a count.
fn counted(total: u64, is_lower_bound: bool) -> String {
    let more = if is_lower_bound { "More than " } else { "" };
    format!("{more}{total} payments.")
}

async fn list(visit: &Visit<'_>, request: v1::ListPaymentsRequest) -> Result<v1::ListPaymentsResponse, ApiError> {
    let found = visit.facade.engine.payments().list_payments(visit.request(request)).await?;
    Ok(found.into_inner())
}

/// Returns the list.
pub(super) async fn page(visit: &Visit<'_>) -> Result<Response, Refusal> {
    let query = visit.call.query();
    let filter = Filter::read(&query);
    let found = match filter.request(20, query.get("cursor")) {
        Ok(request) => list(visit, request).await,
        Err(wrong) => Err(wrong),
    };
    let (status, found, wrong) = match found {
        Ok(found) => (StatusCode::OK, found, Vec::new()),
        Err(refused) if refused.http() == 400 => {
            (StatusCode::BAD_REQUEST, v1::ListPaymentsResponse::default(), problems(&refused))
        }
        Err(refused) => return Err(refused.into()),
    };
    let export_query = filter.write();
    let next = record::token(&found.next_page_token)
        .map(|cursor| format!("/dashboard/payments?{export_query}&cursor={cursor}"));
    let page = PaymentsPage {
        frame: visit.frame("payments", wrong),
        rows: found.payments.iter().map(Row::of).collect::<Result<_, _>>()?,
        total: found.total_size.map(|total| counted(total, found.total_is_lower_bound)),
        filter,
        statuses: STATUSES,
        next,
        export_query,
    };
    Ok(html::page(status, page.render(), None))
}

/// Exports every payment that matches the filter, as the REST interface does.
pub(super) async fn export(visit: &Visit<'_>, format: Format) -> Result<Response, Refusal> {
    let request = Filter::read(&visit.call.query()).request(100, None)?;
    export::payments_file(visit.facade, visit.request(export::exported(request)), format).await
}
