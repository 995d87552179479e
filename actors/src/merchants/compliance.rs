//! Compliance: holds, the status of a merchant, its limits, and the end of a hold.

use engine::{
    audit,
    compliance::{
        Clearance, ComplianceChange, ComplianceStatus, LimitBreach, Limits, PaymentCheck, Refusal, Thresholds,
    },
    ids::MerchantId,
    payment::Payment,
};
use storage::{Batch, CommitError, Write};

use crate::{error::EngineError, merchants::handle::Merchants, settings::Compliance};

/// Maximum number of retries of a change after a concurrent write.
const MAX_CONFLICTS: usize = 5;

/// The compliance status of a merchant with its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The stored status.
    pub standing: ComplianceStatus,
    /// The default limits; `None` if none are configured.
    pub defaults: Option<Limits>,
    /// The volume completed within 24 hours, US cents.
    pub daily_cents: u64,
    /// The volume completed within 30 days, US cents.
    pub monthly_cents: u64,
}

impl Merchants {
    /// Returns the writes that permit a creation only within the limits of its merchant, if limits are configured.
    pub(crate) fn limits(&self, payment: &Payment) -> impl Iterator<Item = Write> + use<> {
        let quota = self.access.context.settings.quota;
        let (id, merchant) = (payment.id, payment.merchant);
        let admit = quota.map(|quota| Write::Admit { payment: id, merchant, quota });
        self.comply(payment).into_iter().chain(admit)
    }

    /// Payments of invoices do not count toward the volume.
    fn comply(&self, payment: &Payment) -> Option<Write> {
        let compliance = self.access.context.settings.compliance.as_ref().filter(|_| !payment.is_invoice)?;
        Some(Write::Comply(PaymentCheck {
            payment: payment.id,
            merchant: payment.merchant,
            account: payment.pay_to,
            usd_cents: payment.quote.usd_cents,
            at: payment.created_at,
            limits: compliance.limits,
        }))
    }

    /// Handles a refused creation; the first one above a limit puts its merchant on hold.
    pub(crate) async fn refused(&self, merchant: MerchantId, refusal: Refusal) -> EngineError {
        if let Refusal::LimitExceeded(crossing) = refusal
            && let Err(error) = self.hold(merchant, crossing).await
        {
            return error;
        }
        let contact =
            self.access.context.settings.compliance.as_ref().map(|Compliance { contact, .. }| contact.clone());
        EngineError::OnHold { contact: contact.unwrap_or_default() }
    }

    async fn hold(&self, merchant: MerchantId, crossing: LimitBreach) -> Result<(), EngineError> {
        let window = crossing.window.as_str();
        let flag = audit::FieldChange { field: "flag".to_owned(), before: None, after: Some(told(&crossing)) };
        let batch = Batch::of(Write::Standing { merchant, change: ComplianceChange::Hold(crossing) })
            .and(self.access.audit_event("merchant_flagged", merchant, None, vec![flag]));
        match self.access.context.env.store.commit(batch).await {
            Ok(()) => {
                tracing::warn!(merchant.id = %merchant, window, usd_cents = crossing.usd_cents, "merchant {merchant} is on hold: compliance limit exceeded");
                Ok(())
            }
            // Another request above the limit was first.
            Err(CommitError::Conflict { .. }) => Ok(()),
            Err(error) => Err(self.access.commit_failed(error)),
        }
    }

    /// Returns the compliance status of a merchant.
    ///
    /// # Errors
    /// [`EngineError::MerchantNotFound`]; store errors.
    pub async fn compliance(&self, id: MerchantId) -> Result<Report, EngineError> {
        self.access.merchant(id).await?;
        let standing = self.standing(id).await?;
        let now = self.access.now();
        Ok(Report {
            daily_cents: standing.completed_cents(now, 24),
            monthly_cents: standing.completed_cents(now, 30 * 24),
            defaults: self.access.context.settings.compliance.as_ref().map(|compliance| compliance.limits),
            standing,
        })
    }

    async fn standing(&self, id: MerchantId) -> Result<ComplianceStatus, EngineError> {
        self.access.context.env.store.compliance_status(id).await.map_err(|e| self.access.read_failed(&e))
    }

    /// Ends a merchant's hold after a review. Counting restarts; individual limits are set if they are given. A
    /// merchant that is not on hold keeps its counts.
    ///
    /// # Errors
    /// [`EngineError::Contended`] after repeated concurrent changes; as [`Merchants::compliance`].
    pub async fn clear_compliance(
        &self,
        id: MerchantId,
        by: String,
        reason: String,
        limits: Option<Thresholds>,
    ) -> Result<Report, EngineError> {
        self.access.merchant(id).await?;
        let decide = |standing: &ComplianceStatus| {
            let mut decided = Decided::default();
            if let Some(hold) = &standing.hold {
                let clearance = Clearance { by: by.clone(), reason: reason.clone(), at: self.access.now() };
                decided.standing.push(ComplianceChange::Clear(clearance));
                let change = |field: &str, before, after| audit::FieldChange { field: field.to_owned(), before, after };
                decided.told.push(change("flag", Some(told(hold)), None));
                decided.told.push(change("reason", None, Some(reason.clone())));
            }
            if limits.is_some() {
                decided.limit(standing.limits, limits);
            }
            decided
        };
        let is_cleared = self.decide(id, "compliance_cleared", decide).await?;
        if is_cleared {
            tracing::info!(merchant.id = %id, %by, "merchant {id} is no longer on hold");
        }
        self.compliance(id).await
    }

    /// Sets or removes a merchant's individual hard limits.
    ///
    /// # Errors
    /// As [`Merchants::clear_compliance`].
    pub async fn limit_compliance(&self, id: MerchantId, limits: Option<Thresholds>) -> Result<Report, EngineError> {
        self.access.merchant(id).await?;
        let decide = |standing: &ComplianceStatus| {
            let mut decided = Decided::default();
            decided.limit(standing.limits, limits);
            decided
        };
        self.decide(id, "compliance_limits_set", decide).await?;
        self.compliance(id).await
    }

    /// Stores a change of the compliance status with its audit event; decides again if the status changed concurrently.
    /// Returns whether anything changed.
    async fn decide(
        &self,
        id: MerchantId,
        action: &str,
        decide: impl Fn(&ComplianceStatus) -> Decided,
    ) -> Result<bool, EngineError> {
        for _ in 0..MAX_CONFLICTS {
            let decided = decide(&self.standing(id).await?);
            if decided.standing.is_empty() {
                return Ok(false);
            }
            let mut batch = Batch::of(self.access.audit_event(action, id, None, decided.told));
            batch.writes.extend(decided.standing.into_iter().map(|change| Write::Standing { merchant: id, change }));
            match self.access.context.env.store.commit(batch).await {
                Ok(()) => return Ok(true),
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(self.access.commit_failed(error)),
            }
        }
        Err(EngineError::Contended)
    }
}

/// The change that an admin's request results in.
#[derive(Default)]
struct Decided {
    standing: Vec<ComplianceChange>,
    told: Vec<audit::FieldChange>,
}

impl Decided {
    fn limit(&mut self, from: Option<Thresholds>, to: Option<Thresholds>) {
        if from == to {
            return;
        }
        self.standing.push(ComplianceChange::Limit { from, to });
        let of = |limits: Option<Thresholds>| {
            let cents = |part: fn(Thresholds) -> u64| limits.map(|limits| part(limits).to_string());
            [
                cents(|limits| limits.single_cents),
                cents(|limits| limits.daily_cents),
                cents(|limits| limits.monthly_cents),
            ]
        };
        let fields = ["singleCents", "dailyCents", "monthlyCents"];
        for ((field, before), after) in fields.into_iter().zip(of(from)).zip(of(to)) {
            if before != after {
                self.told.push(audit::FieldChange { field: field.to_owned(), before, after });
            }
        }
    }
}

/// Formats an exceeded limit for the audit log.
fn told(crossing: &LimitBreach) -> String {
    format!("{}: {} of {} cents", crossing.window.as_str(), crossing.usd_cents, crossing.limit_cents)
}
