//! One merchant, for admins: details, compliance status, limits, and the end of a hold.

use askama::Template;
use http::StatusCode;
use proto::{
    ApiError, IntoRecord,
    v1::{self, set_merchant_limits_request::Change},
};
use warp::reply::Response;

use crate::facade::{
    http::{error, refusal::Refusal},
    pages::{
        dashboard::visit::{Frame, Visit, dollars, minute, problems, units},
        html,
    },
};

/// Maximum dollars of a limit.
const MAX_CENTS: u64 = 1_000_000_000_000;

#[derive(Template)]
#[template(path = "dashboard/merchant.html")]
struct MerchantPage<'v> {
    frame: Frame<'v>,
    merchant: v1::Merchant,
    created: String,
    key_created: String,
    key_used: String,
    hold: Option<String>,
    limits: Option<[(&'static str, &'static str, String); 3]>,
    own_limits: bool,
    daily: String,
    monthly: String,
    notices: Vec<(String, String)>,
    clearances: Vec<Cleared>,
    reason: String,
}

/// A hold that was ended.
struct Cleared {
    at: String,
    by: String,
    reason: String,
}

fn crossing(crossing: &v1::LimitBreach) -> String {
    let what = match crossing.window().rest_name().unwrap_or_default() {
        "single" => "one payment",
        "24h" => "payments of 24 hours",
        "30d" => "payments of 30 days",
        "near_single" => "several payments just below the limit of one payment",
        other => other,
    };
    format!("{what}: ${}, the limit is ${}", dollars(crossing.usd_cents), dollars(crossing.limit_cents))
}

/// Returns the page of a merchant, for admins, with the errors of the last form.
pub(super) async fn page(visit: &Visit<'_>, id: &str, refused: Option<&ApiError>) -> Result<Response, Refusal> {
    let engine = &visit.facade.engine;
    let request = visit.request(v1::GetMerchantRequest { merchant_id: id.to_owned() });
    let merchant = engine.merchants().get_merchant(request).await?.into_record()?;
    let request = visit.request(v1::GetComplianceStatusRequest { merchant_id: id.to_owned() });
    let compliance = engine.compliance().get_compliance_status(request).await?.into_record()?;
    let typed = |name: &str, cents: u64| match visit.form.get(name) {
        Some(typed) if refused.is_some() => typed.to_owned(),
        _ if cents == 0 => String::new(),
        _ => dollars(cents),
    };
    let page = MerchantPage {
        frame: visit.frame("merchants", refused.map(problems).unwrap_or_default()),
        created: minute(merchant.created_at),
        key_created: minute(merchant.api_key_created_at),
        key_used: merchant.api_key_last_used_at.map(minute).unwrap_or_default(),
        merchant,
        hold: compliance.hold.as_ref().map(|hold| format!("{}, {} UTC", crossing(hold), minute(hold.at))),
        limits: compliance.soft_limits.as_ref().or(compliance.limits.as_ref()).is_some().then(|| {
            let limits = compliance.limits.unwrap_or_default();
            [
                ("single", "One payment, USD", typed("single", limits.single_cents.unwrap_or_default())),
                ("daily", "24 hours, USD", typed("daily", limits.daily_cents.unwrap_or_default())),
                ("monthly", "30 days, USD", typed("monthly", limits.monthly_cents.unwrap_or_default())),
            ]
        }),
        own_limits: compliance.own_limits,
        daily: dollars(compliance.daily_cents),
        monthly: dollars(compliance.monthly_cents),
        notices: compliance.notices.iter().rev().map(|notice| (minute(notice.at), crossing(notice))).collect(),
        clearances: compliance.clearances.iter().rev().map(cleared).collect(),
        reason: visit.form.get("reason").unwrap_or_default().to_owned(),
    };
    Ok(html::page(refused.map_or(StatusCode::OK, error::status), page.render(), None))
}

fn cleared(clearance: &v1::Clearance) -> Cleared {
    Cleared { at: minute(clearance.at), by: clearance.by.clone(), reason: clearance.reason.clone() }
}

/// Redirects to the merchant, or shows the page with the errors.
async fn after<T>(visit: &Visit<'_>, id: &str, made: Result<T, ApiError>, done: &str) -> Result<Response, Refusal> {
    match made {
        Ok(_) => Ok(html::see_other(&format!("/dashboard/merchants/{id}?done={done}"))),
        Err(refused) if refused.http() == 400 || refused.http() == 409 => page(visit, id, Some(&refused)).await,
        Err(refused) => Err(refused.into()),
    }
}

/// Ends a hold with a reason.
pub(super) async fn clear(visit: &Visit<'_>, id: &str) -> Result<Response, Refusal> {
    let reason = visit.form.get("reason").unwrap_or_default().trim().to_owned();
    let request = v1::ClearHoldRequest { merchant_id: id.to_owned(), reason, limits: None };
    let made = visit.facade.engine.compliance().clear_hold(visit.request(request)).await;
    after(visit, id, made.map_err(ApiError::from), "cleared").await
}

/// Sets or removes a merchant's individual limits.
pub(super) async fn set_limits(visit: &Visit<'_>, id: &str) -> Result<Response, Refusal> {
    let is_own = visit.form.get("own") != Some("none");
    let limits = match is_own.then(|| thresholds(visit)).transpose() {
        Ok(limits) => limits,
        Err(wrong) => return page(visit, id, Some(&wrong)).await,
    };
    let change = limits.map_or(Change::Remove(()), Change::Limits);
    let request = v1::SetMerchantLimitsRequest { merchant_id: id.to_owned(), change: Some(change) };
    let made = visit.facade.engine.compliance().set_merchant_limits(visit.request(request)).await;
    after(visit, id, made.map_err(ApiError::from), if is_own { "limited" } else { "unlimited" }).await
}

fn thresholds(visit: &Visit<'_>) -> Result<v1::Thresholds, ApiError> {
    let read = |name: &str| cents(visit.form.get(name).unwrap_or_default());
    let wrong = |name: &str| ApiError::field(name, "must be dollars such as 250.00; empty for no limit");
    let limit = |name: &str| read(name).ok_or_else(|| wrong(name));
    Ok(v1::Thresholds {
        single_cents: Some(limit("single")?),
        daily_cents: Some(limit("daily")?),
        monthly_cents: Some(limit("monthly")?),
    })
}

/// Parses dollars; empty means 0.
fn cents(text: &str) -> Option<u64> {
    if text.trim().is_empty() {
        return Some(0);
    }
    let tenths = units(text)?;
    (tenths % 10 == 0).then_some(tenths / 10).filter(|cents| *cents <= MAX_CENTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_read_as_people_type_them() {
        for (text, wanted) in
            [("", Some(0)), ("250", Some(25_000)), ("0.5", Some(50)), ("1.005", None), ("-1", None), ("much", None)]
        {
            assert_eq!(cents(text), wanted, "{text}");
        }
        assert_eq!(cents("99999999999999"), None);
    }
}
