//! Compliance for admins: the status of a merchant, limits, and clearing of holds.

use actors::Report;
use engine::{
    compliance::{LimitBreach, Thresholds},
    fields::{self, Violation},
    ids::MerchantId,
    payment::NOTE_MAX_CHARS,
};
use proto::{
    ApiError, Reason, record_response,
    v1::{self, compliance_service_server::ComplianceService, set_merchant_limits_request::Change},
};
use tonic::{Request, Response, Status};

use super::{
    Service,
    convert::{self, error},
};

#[tonic::async_trait]
impl ComplianceService for Service {
    async fn get_compliance_status(
        &self,
        request: Request<v1::GetComplianceStatusRequest>,
    ) -> Result<Response<v1::GetComplianceStatusResponse>, Status> {
        self.admin(&request).await?;
        let id = merchant_id(&request.get_ref().merchant_id)?;
        Ok(record_response(compliance_status(id, self.engine.merchants.compliance(id).await.map_err(error)?)))
    }

    async fn clear_hold(
        &self,
        request: Request<v1::ClearHoldRequest>,
    ) -> Result<Response<v1::ClearHoldResponse>, Status> {
        let admin = self.admin(&request).await?;
        let message = request.into_inner();
        let id = merchant_id(&message.merchant_id)?;
        let reason = fields::text("reason", message.reason.trim(), NOTE_MAX_CHARS);
        let reason = reason.map_err(|violation| convert::invalid(vec![violation]))?;
        let by = admin.key.to_string();
        let limits = message.limits.map(read_thresholds).transpose()?;
        let report = admin.engine.merchants.clear_compliance(id, by, reason, limits).await.map_err(error)?;
        Ok(record_response(compliance_status(id, report)))
    }

    async fn set_merchant_limits(
        &self,
        request: Request<v1::SetMerchantLimitsRequest>,
    ) -> Result<Response<v1::SetMerchantLimitsResponse>, Status> {
        let admin = self.admin(&request).await?;
        let message = request.into_inner();
        let id = merchant_id(&message.merchant_id)?;
        let limits = match message.change {
            Some(Change::Limits(limits)) => Some(read_thresholds(limits)?),
            Some(Change::Remove(())) => None,
            None => return Err(ApiError::field("limits", "limits or remove must be set").into()),
        };
        let report = admin.engine.merchants.limit_compliance(id, limits).await.map_err(error)?;
        Ok(record_response(compliance_status(id, report)))
    }
}

fn merchant_id(text: &str) -> Result<MerchantId, ApiError> {
    text.parse().map_err(|_| ApiError::with_message(Reason::NotFound, "no such merchant"))
}

/// Reads limits, all of which are required.
fn read_thresholds(message: v1::Thresholds) -> Result<Thresholds, ApiError> {
    let v1::Thresholds { single_cents, daily_cents, monthly_cents } = message;
    let fields = [("singleCents", single_cents), ("dailyCents", daily_cents), ("monthlyCents", monthly_cents)];
    let missing = fields.iter().filter(|(_, cents)| cents.is_none());
    let missing: Vec<_> = missing.map(|(field, _)| Violation::new(*field, "is required; 0 means no limit")).collect();
    let limits = match (missing.is_empty(), fields.map(|(_, cents)| cents.unwrap_or_default())) {
        (false, _) => Err(missing),
        (true, [single_cents, daily_cents, monthly_cents]) => {
            Thresholds { single_cents, daily_cents, monthly_cents }.check()
        }
    };
    limits.map_err(|violations| {
        let violations = violations
            .into_iter()
            .map(|violation| Violation { field: format!("limits.{}", violation.field), ..violation });
        convert::invalid(violations.collect())
    })
}

const fn thresholds(limits: Thresholds) -> v1::Thresholds {
    let Thresholds { single_cents, daily_cents, monthly_cents } = limits;
    v1::Thresholds {
        single_cents: Some(single_cents),
        daily_cents: Some(daily_cents),
        monthly_cents: Some(monthly_cents),
    }
}

fn limit_breach(breach: LimitBreach) -> v1::LimitBreach {
    v1::LimitBreach {
        window: super::enums::window(breach.window).into(),
        usd_cents: breach.usd_cents,
        limit_cents: breach.limit_cents,
        at: Some(convert::timestamp(breach.at)),
    }
}

fn compliance_status(id: MerchantId, report: Report) -> v1::ComplianceStatus {
    let own = report.standing.limits;
    let clearances = report.standing.clearances.into_iter().map(|clearance| v1::Clearance {
        by: clearance.by,
        reason: clearance.reason,
        at: Some(convert::timestamp(clearance.at)),
    });
    v1::ComplianceStatus {
        merchant_id: id.to_string(),
        hold: report.standing.hold.map(limit_breach),
        limits: own.or(report.defaults.map(|limits| limits.hard)).map(thresholds),
        own_limits: own.is_some(),
        soft_limits: report.defaults.map(|limits| thresholds(limits.soft)),
        daily_cents: report.daily_cents,
        monthly_cents: report.monthly_cents,
        notices: report.standing.notices.into_iter().map(limit_breach).collect(),
        clearances: clearances.collect(),
    }
}
