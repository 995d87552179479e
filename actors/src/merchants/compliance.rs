//! Compliance through the handle: who is put on hold, where a merchant stands, and how a hold ends.

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

/// How often a change is decided anew when another writer was faster.
const MAX_CONFLICTS: usize = 5;

/// Where a merchant stands, with what holds for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What is known of it.
    pub standing: ComplianceStatus,
    /// The limits of merchants without their own; none where no limits hold.
    pub defaults: Option<Limits>,
    /// What completed within 24 hours, US cents.
    pub daily_cents: u64,
    /// What completed within 30 days, US cents.
    pub monthly_cents: u64,
}

impl Merchants {
    /// Returns the writes that let a creation through only within its merchant's limits, where limits hold.
    pub(crate) fn limits(&self, payment: &Payment) -> impl Iterator<Item = Write> + use<> {
        let quota = self.access.context.settings.quota;
        let (id, merchant) = (payment.id, payment.merchant);
        let admit = quota.map(|quota| Write::Admit { payment: id, merchant, quota });
        self.comply(payment).into_iter().chain(admit)
    }

    /// What the operator is paid for its service is no volume.
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

    /// Answers a creation that was refused; the first one beyond a limit puts its merchant on hold.
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
            // Another request beyond the limit was faster.
            Err(CommitError::Conflict { .. }) => Ok(()),
            Err(error) => Err(self.access.commit_failed(error)),
        }
    }

    /// Returns where a merchant stands.
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

    /// Ends a merchant's hold: somebody looked. Counting begins anew; limits of its own come along if they are given. A
    /// merchant that is not on hold keeps its count.
    ///
    /// # Errors
    /// [`EngineError::Contended`] while others keep changing it; as [`Merchants::compliance`].
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

    /// Gives a merchant hard limits of its own, or takes them away.
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

    /// Stores what is decided from where a merchant stands together with the audit log's line of it; decides anew if it
    /// stood elsewhere by then. Says whether anything changed.
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

/// What an admin's wish comes to.
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

/// Returns a crossing in a word for the audit log.
fn told(crossing: &LimitBreach) -> String {
    format!("{}: {} of {} cents", crossing.window.as_str(), crossing.usd_cents, crossing.limit_cents)
}
