//! Exports of whole lists as CSV or JSON, streamed row by row.

use std::borrow::Cow;

use bytes::Bytes;
use engine::money::Money;
use futures_util::{Stream, StreamExt, TryStreamExt};
use http::{HeaderValue, header};
use proto::{ApiError, RecordResponse, v1};
use tonic::Status;
use warp::reply::{Reply, Response};

use crate::facade::{
    http::{call::Call, query::Query, refusal::Refusal, response, state::Facade, stream::Shared},
    record,
    rest::{sales, webhooks},
};

/// Maximum number of available rows that are written at once.
const CHUNK: usize = 100;

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// RFC 4180, optionally with a byte order mark.
    Csv { bom: bool },
    /// A JSON array.
    Json,
}

impl Format {
    /// Reads `format`, `csv` by default, and `bom`.
    fn of(query: &mut Query) -> Self {
        let bom = query.boolean("bom").unwrap_or(false);
        match query.get("format") {
            None | Some("csv") => Self::Csv { bom },
            Some("json") => Self::Json,
            Some(_) => {
                query.wrong::<()>("format", "must be csv or json");
                Self::Json
            }
        }
    }
}

/// A row of an export.
trait Row: Send + 'static {
    /// Names of the columns.
    const COLUMNS: &'static [&'static str];
    /// Returns the cells, one per column.
    ///
    /// # Errors
    /// `internal` if an amount is missing or its currency is unknown.
    fn cells(&self) -> Result<Vec<String>, ApiError>;
    /// Returns the record, as in lists.
    ///
    /// # Errors
    /// As [`Row::cells`].
    fn json(&self, address: &Address) -> Result<Vec<u8>, ApiError>;
}

/// The base URL for links in records.
struct Address(std::sync::Arc<str>);

/// Exports the merchants of the filter.
pub(crate) async fn merchants(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut query = call.query();
    let format = Format::of(&mut query);
    let request = v1::ExportMerchantsRequest {
        query: query.search().unwrap_or_default(),
        active: query.boolean("active"),
        flagged: query.boolean("flagged"),
    };
    query.finish()?;
    merchants_file(facade, call.caller.request(request), format).await
}

/// Exports the merchants of a request, of REST or of the dashboard.
pub(crate) async fn merchants_file(
    facade: &Facade,
    request: tonic::Request<v1::ExportMerchantsRequest>,
    format: Format,
) -> Result<Response, Refusal> {
    let rows = facade.engine.exports().export_merchants(request).await?.into_inner();
    Ok(file(facade, "merchants", format, records(rows)))
}

/// Exports the payments of the filter.
pub(crate) async fn payments(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut query = call.query();
    let format = Format::of(&mut query);
    let request = exported(query.payments());
    query.finish()?;
    payments_file(facade, call.caller.request(request), format).await
}

/// Converts the filters of a list to those of an export.
pub(crate) fn exported(list: v1::ListPaymentsRequest) -> v1::ExportPaymentsRequest {
    v1::ExportPaymentsRequest {
        statuses: list.statuses,
        created_from: list.created_from,
        created_to: list.created_to,
        currency: list.currency,
        unusual: list.unusual,
        ids: list.ids,
        query: list.query,
        min_amount_units: list.min_amount_units,
        max_amount_units: list.max_amount_units,
    }
}

/// Exports the payments of a request, of REST or of the dashboard.
pub(crate) async fn payments_file(
    facade: &Facade,
    request: tonic::Request<v1::ExportPaymentsRequest>,
    format: Format,
) -> Result<Response, Refusal> {
    let rows = facade.engine.exports().export_payments(request).await?.into_inner();
    Ok(file(facade, "payments", format, records(rows)))
}

/// Exports the webhook deliveries of the filter.
pub(crate) async fn deliveries(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut query = call.query();
    let format = Format::of(&mut query);
    let request = webhooks::filter(&mut query, id);
    query.finish()?;
    let rows = facade.engine.exports().export_webhook_deliveries(call.caller.request(request)).await?.into_inner();
    Ok(file(facade, "webhook-deliveries", format, records(rows)))
}

/// Exports the sales of the caller.
pub(crate) async fn sales(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut query = call.query();
    let format = Format::of(&mut query);
    query.finish()?;
    // The first page is read before the head is sent, so that errors have a status.
    let first = sales::page(&facade.engine, &call.caller, String::new()).await?;
    let (engine, caller) = (facade.engine.clone(), call.caller.clone());
    let further = futures_util::stream::try_unfold(first.next_page_token, move |token| {
        let (engine, caller) = (engine.clone(), caller.clone());
        async move {
            if token.is_empty() {
                return Ok::<_, Status>(None);
            }
            let page = sales::page(&engine, &caller, token).await?;
            Ok(Some((page.sales, page.next_page_token)))
        }
    });
    let pages = futures_util::stream::iter([Ok(first.sales)]).chain(further);
    let rows = pages.map_ok(|sales| futures_util::stream::iter(sales.into_iter().map(Ok))).try_flatten();
    Ok(file(facade, "x402-sales", format, Box::pin(rows)))
}

/// Extracts the records of a stream of responses.
fn records<M: RecordResponse>(
    rows: impl Stream<Item = Result<M, Status>>,
) -> impl Stream<Item = Result<M::Record, Status>> {
    rows.map(|row| row.and_then(|row| row.into_option().ok_or_else(|| Status::internal("a row without its record"))))
}

fn file<R: Row>(
    facade: &Facade,
    name: &str,
    format: Format,
    rows: impl Stream<Item = Result<R, Status>> + Send + 'static,
) -> Response {
    let address = Address(facade.base_url.as_str().into());
    let (media_type, ending) = match format {
        Format::Csv { .. } => ("text/csv; charset=utf-8; header=present", "csv"),
        Format::Json => ("application/json", "json"),
    };
    let start = match format {
        Format::Csv { bom } => {
            let mark = if bom { "\u{feff}" } else { "" };
            [mark.as_bytes(), &line(R::COLUMNS.iter().copied())].concat()
        }
        Format::Json => b"[".to_vec(),
    };
    let end: &'static [u8] = if format == Format::Json { b"]\n" } else { b"" };
    let mut is_first = true;
    let written = rows.ready_chunks(CHUNK).map(move |rows| {
        let mut bytes = Vec::new();
        for row in rows {
            // On an error the body is aborted, so that a truncated file cannot be mistaken for a complete one.
            let row = row.map_err(|status| ApiError::from(status).message.into_owned())?;
            let fails = |error: ApiError| error.message.into_owned();
            match format {
                Format::Csv { .. } => {
                    bytes.extend(line(row.cells().map_err(fails)?.iter().map(|cell| harmless(cell))));
                }
                Format::Json => {
                    bytes.extend_from_slice(if is_first { b"\n" } else { b",\n" });
                    bytes.extend(row.json(&address).map_err(fails)?);
                }
            }
            is_first = false;
        }
        Ok::<_, String>(Bytes::from(bytes))
    });
    let whole = futures_util::stream::iter([Ok(Bytes::from(start))])
        .chain(written)
        .chain(futures_util::stream::iter([Ok(Bytes::from_static(end))]));
    let whole = whole.take_until(Box::pin(facade.closed()));
    let mut response = warp::reply::stream(Shared::new(whole, None)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}.{ending}\"")) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Returns one line of CSV.
fn line(cells: impl Iterator<Item = impl AsRef<[u8]>>) -> Vec<u8> {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    writer.write_record(cells).expect("memory takes every byte, and a first record has any length");
    writer.into_inner().expect("memory takes every byte")
}

/// Escapes a cell that a spreadsheet would evaluate as a formula: other parties control its content.
fn harmless(cell: &str) -> Cow<'_, [u8]> {
    if cell.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        Cow::Owned(format!("'{cell}").into_bytes())
    } else {
        Cow::Borrowed(cell.as_bytes())
    }
}

fn time(wire: impl Into<Option<proto::time::Timestamp>>) -> String {
    record::instant(wire).to_string()
}

impl Row for v1::Merchant {
    const COLUMNS: &'static [&'static str] = &[
        "id",
        "name",
        "hiveAccount",
        "iconUrl",
        "webhookUrl",
        "isActive",
        "flagged",
        "x402Enabled",
        "privileges",
        "createdAt",
        "apiKeyLast4",
        "apiKeyCreatedAt",
        "apiKeyLastUsedAt",
    ];

    fn cells(&self) -> Result<Vec<String>, ApiError> {
        Ok(vec![
            self.id.clone(),
            self.name.clone(),
            self.hive_account.clone(),
            self.icon_url.clone().unwrap_or_default(),
            self.webhook_url.clone().unwrap_or_default(),
            self.active.to_string(),
            self.flagged.unwrap_or_default().to_string(),
            self.x402_enabled.to_string(),
            if self.admin { "admin".to_owned() } else { String::new() },
            time(self.created_at),
            self.api_key_last4.clone(),
            time(self.api_key_created_at),
            self.api_key_last_used_at.map(time).unwrap_or_default(),
        ])
    }

    fn json(&self, _: &Address) -> Result<Vec<u8>, ApiError> {
        Ok(response::to_json(&record::Merchant::of(self)))
    }
}

impl Row for v1::Payment {
    const COLUMNS: &'static [&'static str] = &[
        "id",
        "status",
        "createdAt",
        "expiresAt",
        "completedAt",
        "currency",
        "amount",
        "amountDecimal",
        "fee",
        "net",
        "amountPaid",
        "amountPaidDecimal",
        "usdCents",
        "description",
        "metadata",
        "payTo",
        "memo",
        "txId",
        "payers",
        "exceptions",
        "needsAttention",
        "livemode",
    ];

    fn cells(&self) -> Result<Vec<String>, ApiError> {
        let currency = record::currency(self.currency)?;
        let decimal = |units: u64| {
            let shown = Money::new(units, currency).to_string();
            shown.split(' ').next().unwrap_or_default().to_owned()
        };
        let mut payers: Vec<&str> = self.transfers.iter().map(|transfer| transfer.from_account.as_str()).collect();
        payers.sort_unstable();
        payers.dedup();
        let metadata = if self.metadata.is_empty() { String::new() } else { record::metadata_text(&self.metadata) };
        Ok(vec![
            self.id.clone(),
            record::status_name(self.status).to_owned(),
            time(self.created_at),
            time(self.expires_at),
            self.completed_at.map(time).unwrap_or_default(),
            currency.to_string(),
            self.amount_units.to_string(),
            decimal(self.amount_units),
            self.fee_units.to_string(),
            self.net_units.to_string(),
            self.amount_paid_units.to_string(),
            decimal(self.amount_paid_units),
            self.usd_cents.to_string(),
            self.description.clone(),
            metadata,
            self.pay_to.clone(),
            self.memo.clone(),
            self.tx_id.clone().unwrap_or_default(),
            payers.join(" "),
            record::exception_names(&self.exceptions).join(" "),
            self.needs_attention.to_string(),
            self.livemode.to_string(),
        ])
    }

    fn json(&self, address: &Address) -> Result<Vec<u8>, ApiError> {
        Ok(response::to_json(&record::Payment::of(&address.0, self)?))
    }
}

impl Row for v1::WebhookDelivery {
    const COLUMNS: &'static [&'static str] = &[
        "id",
        "eventId",
        "trigger",
        "status",
        "attempts",
        "createdAt",
        "nextAttemptAt",
        "lastOutcome",
        "lastHttpStatus",
        "lastAttemptAt",
    ];

    fn cells(&self) -> Result<Vec<String>, ApiError> {
        let (trigger, status) = webhooks::words(self);
        Ok(vec![
            self.id.clone(),
            self.event_id.clone(),
            trigger.to_owned(),
            status.to_owned(),
            self.attempts.to_string(),
            time(self.created_at),
            self.next_attempt_at.map(time).unwrap_or_default(),
            self.last_outcome().rest_name().unwrap_or_default().to_owned(),
            self.last_http_status.map(|status| status.to_string()).unwrap_or_default(),
            self.last_attempt_at.map(time).unwrap_or_default(),
        ])
    }

    fn json(&self, _: &Address) -> Result<Vec<u8>, ApiError> {
        Ok(response::to_json(&webhooks::Delivery::of(self)))
    }
}

impl Row for v1::Sale {
    const COLUMNS: &'static [&'static str] = &[
        "id",
        "kind",
        "blockTime",
        "currency",
        "amount",
        "amountDecimal",
        "payer",
        "payTo",
        "resource",
        "txId",
        "opIndex",
        "blockNum",
        "memo",
        "claimedAt",
    ];

    fn cells(&self) -> Result<Vec<String>, ApiError> {
        let amount = record::money(self.amount.as_ref())?;
        let decimal = amount.to_string();
        Ok(vec![
            self.id.clone(),
            sales::KIND.to_owned(),
            time(self.block_time),
            amount.currency.to_string(),
            amount.units.to_string(),
            decimal.split(' ').next().unwrap_or_default().to_owned(),
            self.payer.clone(),
            self.pay_to.clone(),
            self.resource.clone(),
            self.tx_id.clone(),
            self.op_index.to_string(),
            self.block_num.to_string(),
            self.memo.clone(),
            time(self.claimed_at),
        ])
    }

    fn json(&self, _: &Address) -> Result<Vec<u8>, ApiError> {
        Ok(response::to_json(&sales::Sale::of(self)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula() {
        for formula in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"] {
            assert_eq!(harmless(formula)[0], b'\'', "{formula:?}");
        }
        for plain in ["", "1", "a=b", "mug", "'="] {
            assert_eq!(harmless(plain).as_ref(), plain.as_bytes());
        }
    }

    #[test]
    fn a_line_reads_back_as_its_cells() {
        let cells = ["a,b", "say \"hi\"", "two\r\nlines", "", "é"];
        let written = line(cells.iter());
        assert!(written.ends_with(b"\r\n"));
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(written.as_slice());
        let read = reader.records().next().expect("a record").expect("readable");
        assert_eq!(read.iter().collect::<Vec<_>>(), cells);
        let hbd = v1::Currency::Hbd.into();
        let payment = v1::Payment { currency: hbd, ..v1::Payment::default() };
        let sale = v1::Sale { amount: Some(v1::Money { units: 1, currency: hbd }), ..v1::Sale::default() };
        let count = |cells: Result<Vec<String>, ApiError>| cells.expect("cells").len();
        assert_eq!(count(payment.cells()), v1::Payment::COLUMNS.len());
        assert_eq!(count(v1::WebhookDelivery::default().cells()), v1::WebhookDelivery::COLUMNS.len());
        assert_eq!(count(sale.cells()), v1::Sale::COLUMNS.len());
        assert_eq!(count(v1::Merchant::default().cells()), v1::Merchant::COLUMNS.len());
        assert!(
            v1::Payment::default().cells().is_err() && v1::Sale::default().cells().is_err(),
            "no currency is known"
        );
    }
}
