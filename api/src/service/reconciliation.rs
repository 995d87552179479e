//! Results of the daily reconciliation, for admins.

use engine::{
    reconciliation::{Day, Finding, Movement},
    time::Timestamp,
};
use proto::v1::{self, reconciliation_service_server::ReconciliationService};
use tonic::{Request, Response, Status};

use super::{
    Service,
    convert::{self, error},
    payments::{numeric_token, page_size},
};

#[tonic::async_trait]
impl ReconciliationService for Service {
    async fn list_reconciliations(
        &self,
        request: Request<v1::ListReconciliationsRequest>,
    ) -> Result<Response<v1::ListReconciliationsResponse>, Status> {
        self.admin(&request).await?;
        let message = request.into_inner();
        let limit = page_size(message.page_size)?;
        // A page token is the start of the last day of a page, in milliseconds since the Unix epoch.
        let before = numeric_token(&message.page_token)?.map(Timestamp::from_millis);
        let mut days = self.engine.operations.reconciliation(before, limit as usize + 1).await.map_err(error)?;
        let has_more = days.len() > limit as usize;
        days.truncate(limit as usize);
        let last = days.last().filter(|_| has_more);
        let next_page_token = last.map(|day| day.from.millis().to_string()).unwrap_or_default();
        let reconciliations = days.into_iter().map(reconciliation).collect();
        Ok(Response::new(v1::ListReconciliationsResponse { reconciliations, next_page_token }))
    }
}

fn reconciliation(day: Day) -> v1::Reconciliation {
    v1::Reconciliation {
        period_start: Some(convert::timestamp(day.from)),
        period_end: Some(convert::timestamp(day.to)),
        checked_at: Some(convert::timestamp(day.checked_at)),
        outcome: super::enums::reconciliation(day.outcome()).into(),
        accounts: day.accounts,
        unchecked: day.unchecked,
        error: day.obstacle,
        operations: day.operations,
        mismatches: day.mismatches,
        findings: day.findings.into_iter().map(finding).collect(),
    }
}

fn finding(finding: Finding) -> v1::ReconciliationFinding {
    let list = |movements: Vec<Movement>| movements.into_iter().map(operation).collect();
    v1::ReconciliationFinding {
        account: finding.account.to_string(),
        merchant_ids: finding.merchants.iter().map(ToString::to_string).collect(),
        missing: list(finding.missing),
        missing_count: finding.missing_count,
        extra: list(finding.extra),
        extra_count: finding.extra_count,
    }
}

fn operation(movement: Movement) -> v1::ReconciliationOperation {
    v1::ReconciliationOperation { tx_id: movement.tx_id.to_string(), amount: Some(convert::money(movement.money)) }
}
