//! Daily reconciliation, for admins.

use engine::time::Timestamp;
use http::StatusCode;
use proto::{ApiError, v1};
use serde::Serialize;
use warp::reply::Response;

use crate::facade::{
    http::{call::Call, refusal::Refusal, response, state::Facade},
    record::{self, Text, instant},
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Day<'a> {
    from: Text<Timestamp>,
    to: Text<Timestamp>,
    checked_at: Text<Timestamp>,
    outcome: &'static str,
    accounts: u32,
    unchecked: u32,
    obstacle: Option<&'a str>,
    operations: u64,
    mismatches: u32,
    findings: Vec<Finding<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Finding<'a> {
    account: &'a str,
    merchant_ids: &'a [String],
    missing: Vec<Operation<'a>>,
    missing_count: u64,
    extra: Vec<Operation<'a>>,
    extra_count: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Operation<'a> {
    tx_id: &'a str,
    amount: record::Sum,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Days<'a> {
    data: Vec<Day<'a>>,
    next_cursor: Option<&'a str>,
}

impl<'a> Day<'a> {
    fn of(day: &'a v1::Reconciliation) -> Result<Self, ApiError> {
        Ok(Self {
            from: Text(instant(day.period_start)),
            to: Text(instant(day.period_end)),
            checked_at: Text(instant(day.checked_at)),
            outcome: day.outcome().rest_name().unwrap_or_default(),
            accounts: day.accounts,
            unchecked: day.unchecked,
            obstacle: day.error.as_deref(),
            operations: day.operations,
            mismatches: day.mismatches,
            findings: day.findings.iter().map(Finding::of).collect::<Result<_, _>>()?,
        })
    }
}

impl<'a> Finding<'a> {
    fn of(finding: &'a v1::ReconciliationFinding) -> Result<Self, ApiError> {
        let list = |operations: &'a [v1::ReconciliationOperation]| {
            operations.iter().map(Operation::of).collect::<Result<_, ApiError>>()
        };
        Ok(Self {
            account: &finding.account,
            merchant_ids: &finding.merchant_ids,
            missing: list(&finding.missing)?,
            missing_count: finding.missing_count,
            extra: list(&finding.extra)?,
            extra_count: finding.extra_count,
        })
    }
}

impl<'a> Operation<'a> {
    fn of(operation: &'a v1::ReconciliationOperation) -> Result<Self, ApiError> {
        Ok(Self { tx_id: &operation.tx_id, amount: record::Sum::of(operation.amount.as_ref())? })
    }
}

/// Returns reconciliations, newest day first.
pub(crate) async fn list(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut query = call.query();
    let page_token = query.cursor();
    let request = v1::ListReconciliationsRequest { page_size: query.limit(), page_token };
    query.finish()?;
    let listed = facade.engine.reconciliation().list_reconciliations(call.caller.request(request)).await?.into_inner();
    let data = listed.reconciliations.iter().map(Day::of).collect::<Result<_, _>>()?;
    Ok(response::json(StatusCode::OK, &Days { data, next_cursor: record::token(&listed.next_page_token) }))
}
