//! Billing: periods and invoices of a merchant; for admins those of all merchants, the fee tiers, and invoicing.

use engine::{money::FeePercent, time::Timestamp};
use http::StatusCode;
use proto::{
    IntoRecord,
    v1::{self, BillingStatus},
};
use serde::Serialize;
use serde_json::Value;
use warp::reply::Response;

use crate::facade::{
    http::{body::Body, call::Call, query, refusal::Refusal, response, state::Facade},
    record::{self, Page, Text, instant},
};

/// Years of invoices; the engine checks whether the month is over.
const YEARS: std::ops::RangeInclusive<u32> = 1_970..=9_997;
/// The largest bound of a tier, an integer that is exact in every JSON parser.
const MAX_VOLUME_CENTS: u64 = engine::billing::MAX_VOLUME_CENTS;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tier {
    min_volume_cents: u64,
    max_volume_cents: Option<u64>,
    percent_fee: serde_json::Number,
}

fn tiers(wire: &[v1::FeeTier]) -> Vec<Tier> {
    let tier = |tier: &v1::FeeTier| Tier {
        min_volume_cents: tier.min_volume_cents,
        max_volume_cents: tier.max_volume_cents,
        percent_fee: record::percent(tier.percent_ten_thousandths.unwrap_or_default()),
    };
    wire.iter().map(tier).collect()
}

const fn status_word(wire: BillingStatus) -> &'static str {
    match wire {
        BillingStatus::Unspecified | BillingStatus::Open => "open",
        BillingStatus::Invoiced => "invoiced",
        BillingStatus::Paid => "paid",
        BillingStatus::Overdue => "overdue",
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Period<'a> {
    id: &'a str,
    period_start: Text<Timestamp>,
    period_end: Text<Timestamp>,
    total_volume_cents: u64,
    transaction_count: u64,
    invoice_amount_cents: u64,
    status: &'static str,
    invoice_session_id: Option<&'a str>,
    invoice_slug: Option<&'a str>,
    invoice_payment_url: Option<String>,
    created_at: Text<Timestamp>,
    updated_at: Text<Timestamp>,
    due_at: Option<Text<Timestamp>>,
    paid_at: Option<Text<Timestamp>>,
    // For fees collected with the payments: the volume that is not billed by tiers, and fees that were not collected.
    #[serde(skip_serializing_if = "is_zero")]
    split_volume_cents: u64,
    #[serde(skip_serializing_if = "is_zero")]
    missing_fee_cents: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a field by reference")]
const fn is_zero(cents: &u64) -> bool {
    *cents == 0
}

impl<'a> Period<'a> {
    fn of(facade: &Facade, period: &'a v1::BillingPeriod) -> Self {
        let is_unpaid = matches!(period.status(), BillingStatus::Invoiced | BillingStatus::Overdue);
        let slug = period.invoice_slug.as_deref();
        Self {
            id: &period.id,
            period_start: Text(instant(period.period_start)),
            period_end: Text(instant(period.period_end)),
            total_volume_cents: period.total_volume_cents,
            transaction_count: period.transaction_count,
            invoice_amount_cents: period.invoice_amount_cents,
            status: status_word(period.status()),
            invoice_session_id: period.invoice_session_id.as_deref(),
            invoice_slug: slug,
            invoice_payment_url: slug.filter(|_| is_unpaid).map(|slug| record::slug_url(&facade.base_url, slug)),
            created_at: Text(instant(period.created_at)),
            updated_at: Text(instant(period.updated_at)),
            due_at: period.due_at.map(|at| Text(instant(at))),
            paid_at: period.paid_at.map(|at| Text(instant(at))),
            split_volume_cents: period.split_volume_cents,
            missing_fee_cents: u64::try_from(period.missing_fee_millicents / 1_000).unwrap_or(0),
        }
    }
}

/// A billing period with its merchant, for admins.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AdminPeriod<'a> {
    #[serde(flatten)]
    period: Period<'a>,
    merchant_id: &'a str,
    merchant_name: &'a str,
    merchant_hive_account_name: &'a str,
    merchant_icon_url: Option<&'a str>,
}

impl<'a> AdminPeriod<'a> {
    fn of(facade: &Facade, period: &'a v1::BillingPeriod) -> Self {
        Self {
            merchant_id: &period.merchant_id,
            merchant_name: &period.merchant_name,
            merchant_hive_account_name: &period.merchant_hive_account,
            merchant_icon_url: period.merchant_icon_url.as_deref(),
            period: Period::of(facade, period),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CurrentMonth {
    period_start: Text<Timestamp>,
    period_end: Text<Timestamp>,
    total_volume_cents: u64,
    transaction_count: u64,
    projected_invoice_cents: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'a, P> {
    merchant_id: &'a str,
    merchant_name: &'a str,
    current_month: CurrentMonth,
    outstanding_invoices: Vec<P>,
    paid_invoices: Vec<P>,
    outstanding_amount_cents: u64,
    total_paid_cents: u64,
    fee_tiers: Vec<Tier>,
}

impl<'a, P> Summary<'a, P> {
    fn of(wire: &'a v1::BillingSummary, shown: impl Fn(&'a v1::BillingPeriod) -> P) -> Self {
        let current = wire.current.as_ref();
        let at = |of: fn(&v1::BillingPeriod) -> Option<proto::time::Timestamp>| Text(instant(current.and_then(of)));
        let number = |of: fn(&v1::BillingPeriod) -> u64| current.map_or(0, of);
        Self {
            merchant_id: &wire.merchant_id,
            merchant_name: &wire.merchant_name,
            current_month: CurrentMonth {
                period_start: at(|period| period.period_start),
                period_end: at(|period| period.period_end),
                total_volume_cents: number(|period| period.total_volume_cents),
                transaction_count: number(|period| period.transaction_count),
                projected_invoice_cents: number(|period| period.invoice_amount_cents),
            },
            outstanding_invoices: wire.outstanding.iter().map(&shown).collect(),
            paid_invoices: wire.paid.iter().map(shown).collect(),
            outstanding_amount_cents: wire.outstanding_amount_cents,
            total_paid_cents: wire.total_paid_cents,
            fee_tiers: tiers(&wire.fee_tiers),
        }
    }
}

/// Returns usage and fees of the merchant of the API key.
pub(crate) async fn mine(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    let request = call.with_key()?.request(v1::GetMyBillingRequest {});
    let summary = facade.engine.billing().get_my_billing(request).await?.into_record()?;
    Ok(response::json(StatusCode::OK, &Summary::of(&summary, |period| Period::of(facade, period))))
}

/// Returns usage and fees of a merchant.
pub(crate) async fn of_merchant(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    let request = call.with_key()?.request(v1::GetMerchantBillingRequest { merchant_id: id.to_owned() });
    let summary = facade.engine.billing().get_merchant_billing(request).await?.into_record()?;
    Ok(response::json(StatusCode::OK, &Summary::of(&summary, |period| AdminPeriod::of(facade, period))))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Account<'a> {
    merchant_id: &'a str,
    merchant_name: &'a str,
    hive_account_name: &'a str,
    icon_url: Option<&'a str>,
    current_month_volume_cents: u64,
    current_month_projected_cents: u64,
    outstanding_invoices: u64,
    outstanding_amount_cents: u64,
    paid_invoices: u64,
    paid_amount_cents: u64,
    oldest_unpaid_period_start: Option<Text<Timestamp>>,
    is_behind: bool,
}

impl<'a> Account<'a> {
    fn of(account: &'a v1::BillingAccount) -> Self {
        Self {
            merchant_id: &account.merchant_id,
            merchant_name: &account.merchant_name,
            hive_account_name: &account.hive_account,
            icon_url: account.icon_url.as_deref(),
            current_month_volume_cents: account.current_month_volume_cents,
            current_month_projected_cents: account.current_month_projected_cents,
            outstanding_invoices: account.outstanding_invoices,
            outstanding_amount_cents: account.outstanding_amount_cents,
            paid_invoices: account.paid_invoices,
            paid_amount_cents: account.paid_amount_cents,
            oldest_unpaid_period_start: account.oldest_unpaid_start.map(|at| Text(instant(at))),
            is_behind: account.is_behind,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Totals {
    merchants_count: usize,
    merchants_behind_count: usize,
    merchants_paid_count: usize,
    total_outstanding_cents: u64,
    total_paid_all_time_cents: u64,
    current_month_volume_cents: u64,
    current_month_projected_cents: u64,
}

impl Totals {
    fn of(accounts: &[v1::BillingAccount]) -> Self {
        let count = |is: fn(&v1::BillingAccount) -> bool| accounts.iter().filter(|account| is(account)).count();
        let sum = |of: fn(&v1::BillingAccount) -> u64| {
            accounts.iter().fold(0u64, |sum, account| sum.saturating_add(of(account)))
        };
        Self {
            merchants_count: accounts.len(),
            merchants_behind_count: count(|account| account.is_behind),
            merchants_paid_count: count(|account| account.outstanding_invoices == 0),
            total_outstanding_cents: sum(|account| account.outstanding_amount_cents),
            total_paid_all_time_cents: sum(|account| account.paid_amount_cents),
            current_month_volume_cents: sum(|account| account.current_month_volume_cents),
            current_month_projected_cents: sum(|account| account.current_month_projected_cents),
        }
    }
}

#[derive(Serialize)]
struct Overview<'a> {
    totals: Totals,
    merchants: Vec<Account<'a>>,
}

/// Returns usage and fees of all merchants.
pub(crate) async fn overview(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    let request = call.with_key()?.request(v1::GetBillingOverviewRequest {});
    call.no_parameters()?;
    let overview = facade.engine.billing().get_billing_overview(request).await?.into_inner();
    let merchants = overview.accounts.iter().map(Account::of).collect();
    Ok(response::json(StatusCode::OK, &Overview { totals: Totals::of(&overview.accounts), merchants }))
}

/// Returns a page of billing periods, newest first.
pub(crate) async fn periods(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut query = call.query();
    let status = match query.get("status") {
        None => BillingStatus::Unspecified,
        Some("open") => BillingStatus::Open,
        Some("invoiced") => BillingStatus::Invoiced,
        Some("paid") => BillingStatus::Paid,
        Some("overdue") => BillingStatus::Overdue,
        Some(_) => query.wrong("status", "must be open, invoiced, paid or overdue"),
    };
    let merchant_id = query.get("merchantId").map(str::to_owned);
    let (page, limit) = (query.page(), query.limit());
    let request = v1::ListBillingPeriodsRequest {
        skip: query::skip(page, limit),
        page_size: limit,
        page_token: String::new(),
        merchant_id,
        status: status.into(),
    };
    query.finish()?;
    let found = facade.engine.billing().list_billing_periods(call.caller.request(request)).await?.into_inner();
    let data = found.periods.iter().map(|period| AdminPeriod::of(facade, period)).collect();
    Ok(response::json(StatusCode::OK, &Page::new(data, page, limit, found.total_size, None)))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Schedule {
    tiers: Vec<Tier>,
    version: u64,
    updated_at: Option<Text<Timestamp>>,
}

fn shown(schedule: &v1::FeeSchedule) -> Response {
    let updated_at = schedule.updated_at.map(|at| Text(instant(at)));
    response::json(StatusCode::OK, &Schedule { tiers: tiers(&schedule.tiers), version: schedule.version, updated_at })
}

/// Returns the fee tiers.
pub(crate) async fn get_tiers(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    let request = call.with_key()?.request(v1::GetFeeTiersRequest {});
    Ok(shown(&facade.engine.billing().get_fee_tiers(request).await?.into_record()?))
}

/// Replaces the fee tiers: `{"tiers": [{"minVolumeCents", "maxVolumeCents", "percentFee"}]}`.
pub(crate) async fn set_tiers(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut body = call.json().await?;
    let tiers = read_tiers(&mut body);
    body.finish()?;
    let request = call.caller.request(v1::SetFeeTiersRequest { tiers });
    Ok(shown(&facade.engine.billing().set_fee_tiers(request).await?.into_record()?))
}

fn read_tiers(body: &mut Body) -> Vec<v1::FeeTier> {
    let items = match body.take("tiers") {
        Some(Value::Array(items)) => items,
        Some(_) => return body.wrong("tiers", "must be an array of tiers"),
        None => return body.wrong("tiers", "is required"),
    };
    let mut tiers = Vec::new();
    for (place, item) in items.into_iter().enumerate() {
        match item {
            Value::Object(fields) => {
                let mut inner = Body::within(fields, format!("tiers[{place}]."));
                tiers.push(read_tier(&mut inner));
                body.absorb(inner);
            }
            _ => body.wrong(&format!("tiers[{place}]"), "must be an object"),
        }
    }
    tiers
}

fn read_tier(tier: &mut Body) -> v1::FeeTier {
    let cents = |value: &Value| value.as_u64().filter(|cents| *cents <= MAX_VOLUME_CENTS);
    let whole = format!("must be a whole number from 0 to {MAX_VOLUME_CENTS}");
    let min_volume_cents = match tier.take("minVolumeCents").as_ref().map(cents) {
        Some(Some(cents)) => cents,
        Some(None) => tier.wrong("minVolumeCents", whole.as_str()),
        None => tier.wrong("minVolumeCents", "is required"),
    };
    let max_volume_cents = match tier.take("maxVolumeCents") {
        None => tier.wrong("maxVolumeCents", "is required; null in the last tier"),
        Some(Value::Null) => None,
        Some(value) => match cents(&value) {
            Some(cents) => Some(cents),
            None => tier.wrong("maxVolumeCents", format!("{whole}, or null")),
        },
    };
    // The decimal is read from its text, so that no binary rounding occurs.
    let percent = match tier.take("percentFee") {
        Some(Value::Number(number)) => FeePercent::parse(&number.to_string()),
        _ => None,
    };
    let percent_ten_thousandths = match percent {
        Some(percent) => percent.ten_thousandths(),
        None => tier.wrong("percentFee", "must be a number from 0 to 100 with at most 4 places"),
    };
    v1::FeeTier { min_volume_cents, max_volume_cents, percent_ten_thousandths: Some(percent_ten_thousandths) }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Generated<'a> {
    invoices_generated: usize,
    total_billed_cents: u64,
    details: Vec<Detail<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Detail<'a> {
    merchant_id: &'a str,
    merchant_name: &'a str,
    volume_cents: u64,
    invoice_cents: u64,
    period: AdminPeriod<'a>,
}

/// Generates missing invoices: of one month with `{"year", "month"}`, otherwise of all past months.
pub(crate) async fn generate(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut body = call.optional_json().await?;
    let year = body.optional_integer("year", YEARS);
    let month = body.optional_integer("month", 1..=12);
    match (year, month) {
        (None, Some(_)) if body.is_valid("year") => body.wrong::<()>("year", "is required beside month"),
        (Some(_), None) if body.is_valid("month") => body.wrong::<()>("month", "is required beside year"),
        _ => {}
    }
    body.finish()?;
    let request = call.caller.request(v1::GenerateInvoicesRequest { year, month });
    let made = facade.engine.billing().generate_invoices(request).await?.into_inner();
    let details: Vec<Detail<'_>> = made
        .periods
        .iter()
        .map(|period| Detail {
            merchant_id: &period.merchant_id,
            merchant_name: &period.merchant_name,
            volume_cents: period.total_volume_cents,
            invoice_cents: period.invoice_amount_cents,
            period: AdminPeriod::of(facade, period),
        })
        .collect();
    let total_billed_cents = details.iter().fold(0u64, |sum, detail| sum.saturating_add(detail.invoice_cents));
    Ok(response::json(StatusCode::OK, &Generated { invoices_generated: details.len(), total_billed_cents, details }))
}
