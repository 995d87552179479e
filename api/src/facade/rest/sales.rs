//! Sales: transfers settled by x402 for a merchant's own resources.

use engine::time::Timestamp;
use http::StatusCode;
use proto::{ApiError, caller::Caller, v1};
use serde::Serialize;
use tonic::Status;
use warp::reply::Response;

use crate::facade::{
    http::{call::Call, refusal::Refusal, response, state::Facade},
    record::{self, Sum, Text, instant},
};
use proto::Engine;

/// The value of `kind` of a sale.
pub(crate) const KIND: &str = "x402";
/// Page size of exports.
const PAGE: u32 = 100;

/// A transfer that was settled for a resource.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sale<'a> {
    id: &'a str,
    kind: &'static str,
    resource: &'a str,
    tx_id: &'a str,
    op_index: u32,
    block_num: u32,
    block_time: Text<Timestamp>,
    payer: &'a str,
    pay_to: &'a str,
    amount: Sum,
    memo: &'a str,
    claimed_at: Text<Timestamp>,
}

impl<'a> Sale<'a> {
    /// # Errors
    /// `internal` if the amount is missing or its currency is unknown.
    pub(crate) fn of(sale: &'a v1::Sale) -> Result<Self, ApiError> {
        Ok(Self {
            id: &sale.id,
            kind: KIND,
            resource: &sale.resource,
            tx_id: &sale.tx_id,
            op_index: sale.op_index,
            block_num: sale.block_num,
            block_time: Text(instant(sale.block_time)),
            payer: &sale.payer,
            pay_to: &sale.pay_to,
            amount: Sum::of(sale.amount.as_ref())?,
            memo: &sale.memo,
            claimed_at: Text(instant(sale.claimed_at)),
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    data: Vec<Sale<'a>>,
    next_cursor: Option<&'a str>,
}

/// Returns the sales of the merchant's account, newest first.
pub(crate) async fn list(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut query = call.query();
    let page_token = query.cursor();
    let request = v1::ListSalesRequest { page_size: query.limit(), page_token };
    query.finish()?;
    let page = facade.engine.unmatched_transfers().list_sales(call.caller.request(request)).await?.into_inner();
    let data = page.sales.iter().map(Sale::of).collect::<Result<_, _>>()?;
    Ok(response::json(StatusCode::OK, &List { data, next_cursor: record::token(&page.next_page_token) }))
}

/// Reads a page for an export.
pub(crate) async fn page(
    engine: &Engine,
    caller: &Caller,
    page_token: String,
) -> Result<v1::ListSalesResponse, Status> {
    let request = caller.request(v1::ListSalesRequest { page_size: PAGE, page_token });
    Ok(engine.unmatched_transfers().list_sales(request).await?.into_inner())
}
