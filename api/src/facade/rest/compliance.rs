//! Compliance for admins: the status of a merchant, its limits, and clearing a hold.

use engine::time::Timestamp;
use http::StatusCode;
use proto::{
    IntoRecord,
    v1::{self, set_merchant_limits_request::Change},
};
use serde::Serialize;
use warp::reply::Response;

use crate::facade::{
    http::{body::Body, call::Call, refusal::Refusal, response, state::Facade},
    record::{Text, instant},
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Thresholds {
    single_cents: u64,
    daily_cents: u64,
    monthly_cents: u64,
}

impl Thresholds {
    fn of(wire: &v1::Thresholds) -> Self {
        Self {
            single_cents: wire.single_cents.unwrap_or_default(),
            daily_cents: wire.daily_cents.unwrap_or_default(),
            monthly_cents: wire.monthly_cents.unwrap_or_default(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Crossing {
    window: &'static str,
    usd_cents: u64,
    limit_cents: u64,
    at: Text<Timestamp>,
}

impl Crossing {
    fn of(wire: &v1::LimitBreach) -> Self {
        let at = Text(instant(wire.at));
        Self {
            window: wire.window().rest_name().unwrap_or_default(),
            usd_cents: wire.usd_cents,
            limit_cents: wire.limit_cents,
            at,
        }
    }
}

#[derive(Serialize)]
struct Clearance<'a> {
    by: &'a str,
    reason: &'a str,
    at: Text<Timestamp>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ComplianceStatus<'a> {
    merchant_id: &'a str,
    flagged: bool,
    flag: Option<Crossing>,
    limits: Option<Thresholds>,
    own_limits: bool,
    soft_limits: Option<Thresholds>,
    completed_last24h_cents: u64,
    completed_last30d_cents: u64,
    notices: Vec<Crossing>,
    clearances: Vec<Clearance<'a>>,
}

fn shown(status: &v1::ComplianceStatus) -> Response {
    let clearances = status.clearances.iter().map(|clearance| Clearance {
        by: &clearance.by,
        reason: &clearance.reason,
        at: Text(instant(clearance.at)),
    });
    let body = ComplianceStatus {
        merchant_id: &status.merchant_id,
        flagged: status.hold.is_some(),
        flag: status.hold.as_ref().map(Crossing::of),
        limits: status.limits.as_ref().map(Thresholds::of),
        own_limits: status.own_limits,
        soft_limits: status.soft_limits.as_ref().map(Thresholds::of),
        completed_last24h_cents: status.daily_cents,
        completed_last30d_cents: status.monthly_cents,
        notices: status.notices.iter().map(Crossing::of).collect(),
        clearances: clearances.collect(),
    };
    response::json(StatusCode::OK, &body)
}

/// Returns the compliance status of a merchant.
pub(crate) async fn get(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    let request = call.with_key()?.request(v1::GetComplianceStatusRequest { merchant_id: id.to_owned() });
    Ok(shown(&facade.engine.compliance().get_compliance_status(request).await?.into_record()?))
}

/// Clears a hold: `{"reason", "limits"?}`.
pub(crate) async fn clear(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut body = call.json().await?;
    let reason = body.text("reason");
    let limits = body.object("limits").map(|mut limits| {
        let read = thresholds(&mut limits);
        body.absorb(limits);
        read
    });
    body.finish()?;
    let request = v1::ClearHoldRequest { merchant_id: id.to_owned(), reason, limits };
    Ok(shown(&facade.engine.compliance().clear_hold(call.caller.request(request)).await?.into_record()?))
}

/// Sets the limits of a merchant; `{"limits": null}` restores the default limits.
pub(crate) async fn set_limits(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut body = call.json().await?;
    let change = if body.take_null("limits") { Change::Remove(()) } else { Change::Limits(thresholds(&mut body)) };
    body.finish()?;
    let request = v1::SetMerchantLimitsRequest { merchant_id: id.to_owned(), change: Some(change) };
    Ok(shown(&facade.engine.compliance().set_merchant_limits(call.caller.request(request)).await?.into_record()?))
}

/// Reads three required limits; 0 means no limit.
fn thresholds(body: &mut Body) -> v1::Thresholds {
    let mut cents = |field: &str| body.cents(field, engine::compliance::Thresholds::MAX_CENTS);
    v1::Thresholds {
        single_cents: Some(cents("singleCents")),
        daily_cents: Some(cents("dailyCents")),
        monthly_cents: Some(cents("monthlyCents")),
    }
}
