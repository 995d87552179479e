//! Billing: usage and fees of merchants, the fee tiers, and the invoices of past months.

use std::sync::Arc;

use engine::{
    audit::{self, Actor, Entry},
    billing::{BillingTotals, Invoice, Month, Period, Schedule, Status, Tiers, invoice_session},
    fields::Violation,
    ids::MerchantId,
    merchant::Merchant,
    payment::{Payment, State},
    time::Timestamp,
};
use storage::{Batch, CommitError, Invoicing, Page, PeriodQuery, Write};

use crate::{access, context::Context, error::EngineError, operations::handle::Operations, payments::handle::Payments};

/// Periods read at once.
const AT_ONCE: usize = 100;
/// Maximum number of retries of an invoice after its month was counted concurrently.
const MAX_CONFLICTS: usize = 5;

/// Usage and fees of a merchant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BillingSummary {
    /// The merchant.
    pub merchant: Arc<Merchant>,
    /// The current month so far.
    pub current: Period,
    /// Its months, newest first.
    pub periods: Vec<Period>,
    /// The tiers in force.
    pub tiers: Tiers,
}

/// Usage and fees of all merchants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BillingOverview {
    /// Each merchant with the totals of its months, in order of registration.
    pub accounts: Vec<(Arc<Merchant>, BillingTotals)>,
    /// The tiers in force.
    pub tiers: Tiers,
}

/// The invoices of one run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Invoiced {
    /// The invoiced months with their merchants.
    pub periods: Vec<(Period, Arc<Merchant>)>,
}

impl Operations {
    /// Returns usage and fees of a merchant.
    ///
    /// # Errors
    /// [`EngineError::MerchantNotFound`]; store errors.
    pub async fn billing_summary(&self, id: MerchantId) -> Result<BillingSummary, EngineError> {
        let merchant = self.access.merchant(id).await?;
        let now = self.access.now();
        let periods = self.access.context.env.store.periods_of(id).await.map_err(|e| self.access.read_failed(&e))?;
        let month = Month::of(now);
        let current = periods.iter().find(|period| period.month == month).cloned();
        let current = current.unwrap_or_else(|| Period::begin(id, month, now));
        Ok(BillingSummary { merchant, current, periods, tiers: self.fee_tiers().await?.tiers })
    }

    /// Returns whether a merchant is billed: all except the one that receives invoice payments.
    #[must_use]
    pub fn is_billed(&self, id: MerchantId) -> bool {
        self.access.context.settings.billing.merchant != Some(id)
    }

    /// Returns usage and fees of every merchant with a billed month.
    ///
    /// # Errors
    /// Store errors.
    pub async fn billing_overview(&self) -> Result<BillingOverview, EngineError> {
        let accounts = self
            .access
            .context
            .env
            .store
            .billing_accounts(self.access.now())
            .await
            .map_err(|e| self.access.read_failed(&e))?;
        let mut named = Vec::new();
        for account in accounts.into_iter().filter(|account| self.is_billed(account.merchant)) {
            named.push((self.access.merchant(account.merchant).await?, account));
        }
        Ok(BillingOverview { accounts: named, tiers: self.fee_tiers().await?.tiers })
    }

    /// Lists merchants' months, newest first, each with its merchant.
    ///
    /// # Errors
    /// Store errors.
    pub async fn billing_periods(
        &self,
        page: u64,
        limit: usize,
        merchant: Option<MerchantId>,
        status: Option<Status>,
    ) -> Result<Page<(Period, Arc<Merchant>)>, EngineError> {
        let query = PeriodQuery { page, limit, merchant, status, now: self.access.now() };
        let found = self.access.context.env.store.periods(query).await.map_err(|e| self.access.read_failed(&e))?;
        let mut items = Vec::new();
        for period in found.items {
            let merchant = self.access.merchant(period.merchant).await?;
            items.push((period, merchant));
        }
        Ok(Page::of(items, found.total))
    }

    /// Returns the fee tiers in force; until an admin sets some, one tier with the fee of the settings, of version 0.
    ///
    /// # Errors
    /// Store errors.
    pub async fn fee_tiers(&self) -> Result<Schedule, EngineError> {
        schedule(&self.access.context).await.map_err(|e| self.access.read_failed(&e))
    }

    /// Replaces the fee tiers. Invoiced months keep their invoice.
    ///
    /// # Errors
    /// [`EngineError::Contended`] after repeated concurrent changes; store errors.
    pub async fn set_fee_tiers(&self, tiers: Tiers) -> Result<Schedule, EngineError> {
        let doer = self.access.actor();
        for _ in 0..MAX_CONFLICTS {
            let (before, now) = (self.fee_tiers().await?, self.access.now());
            let schedule = Schedule { version: before.version + 1, tiers: tiers.clone(), updated_at: now };
            let change = audit::FieldChange {
                field: "tiers".to_owned(),
                before: Some(before.tiers.to_string()),
                after: Some(tiers.to_string()),
            };
            let entry = Entry {
                seq: 0,
                at: now,
                actor: doer.clone(),
                action: "fee_tiers_changed".to_owned(),
                merchant: doer.merchant.unwrap_or(MerchantId::from_bits(0)),
                subject: None,
                changes: vec![change],
            };
            let batch = Batch::of(Write::FeeTiers { schedule: schedule.clone(), expected: before.version });
            match self.access.context.env.store.commit(batch.and(Write::Audit(Box::new(entry)))).await {
                Ok(()) => return Ok(schedule),
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(self.access.commit_failed(error)),
            }
        }
        Err(EngineError::Contended)
    }

    /// Creates the missing invoices: of one month, or of every past month. A month is past when all of its blocks are
    /// scanned and irreversible. Idempotent: each month has at most one invoice.
    ///
    /// # Errors
    /// [`EngineError::NoOperator`] if no merchant is configured to receive payments; [`EngineError::Invalid`] for a
    /// month that is not past; store errors, after which the created invoices remain.
    pub async fn generate_invoices(&self, month: Option<Month>) -> Result<Invoiced, EngineError> {
        let over = Month::of(self.ledger.view.irreversible_time());
        if let Some(month) = month.filter(|month| *month >= over) {
            let message = format!("{month} is not over yet: its last block must be irreversible");
            return Err(EngineError::Invalid(vec![Violation::new("month", message)]));
        }
        let biller = Biller { context: &self.access.context, payments: &self.payments, by: self.access.actor() };
        biller.bill(month, over).await
    }
}

async fn schedule(context: &Context) -> Result<Schedule, storage::ReadError> {
    let stored = context.env.store.fee_schedule().await?;
    let flat = || Tiers::flat(context.settings.fee_percent);
    Ok(stored.unwrap_or_else(|| Schedule { version: 0, tiers: flat(), updated_at: Timestamp::EPOCH }))
}

/// The creator of invoices: an admin, or the housekeeper.
pub(crate) struct Biller<'c> {
    pub(crate) context: &'c Context,
    pub(crate) payments: &'c Payments,
    pub(crate) by: Actor,
}

impl Biller<'_> {
    /// Creates the missing invoices of months before `over`, of all merchants or of one.
    pub(crate) async fn bill(&self, month: Option<Month>, over: Month) -> Result<Invoiced, EngineError> {
        let store = &self.context.env.store;
        let operator = self.context.settings.billing.merchant.ok_or(EngineError::NoOperator)?;
        let operator = self.merchant(operator).await?.ok_or(EngineError::NoOperator)?;
        let schedule = schedule(self.context).await.map_err(|e| self.read_failed(&e))?;
        let mut made = Invoiced::default();
        let mut after = None;
        loop {
            let read = store.unsettled_periods(over, after, AT_ONCE).await.map_err(|e| self.read_failed(&e))?;
            let is_last = read.len() < AT_ONCE;
            after = read.last().map(|period| (period.month, period.merchant)).or(after);
            for period in read {
                // The operator would pay itself.
                if period.merchant == operator.id || month.is_some_and(|month| month != period.month) {
                    continue;
                }
                match self.invoice(period, &operator, &schedule).await {
                    Ok(invoiced) => made.periods.extend(invoiced),
                    // An unreadable merchant or session does not delay the others.
                    Err(EngineError::Damaged { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            if is_last {
                return Ok(made);
            }
        }
    }

    /// Creates an invoice, or another session for one whose session ended unpaid; `None` if there is nothing to do.
    async fn invoice(
        &self,
        mut period: Period,
        operator: &Merchant,
        schedule: &Schedule,
    ) -> Result<Option<(Period, Arc<Merchant>)>, EngineError> {
        let store = &self.context.env.store;
        let Some(billed) = self.merchant(period.merchant).await? else { return Ok(None) };
        for _ in 0..MAX_CONFLICTS {
            if !self.is_wanted(&period).await? {
                return Ok(None);
            }
            let now = self.context.now();
            let (invoice, session, batch) = self.prepare(&period, operator, &billed, schedule, now);
            let (env, cents) = (&self.context.env, invoice.cents);
            env.probe.reach("billing: invoice made, not stored");
            match store.commit(batch).await {
                Ok(()) => {
                    env.probe.reach("billing: invoice stored, session not adopted");
                    if let Some(session) = session {
                        self.payments.adopt(session)?;
                    }
                    tracing::info!(merchant.id = %billed.id, month = %period.month, cents, "invoice created for {}, {}", billed.id, period.month);
                    let period = Period { invoice: Some(invoice), updated_at: period.updated_at.max(now), ..period };
                    return Ok(Some((period, billed)));
                }
                // The month was counted concurrently, or another caller was first.
                Err(CommitError::Conflict { .. }) => {
                    let read = store.period(period.merchant, period.month).await.map_err(|e| self.read_failed(&e))?;
                    period = match read {
                        Some(period) => period,
                        None => return Ok(None),
                    };
                }
                Err(error) => {
                    return Err(match error {
                        CommitError::Overloaded => EngineError::Overloaded,
                        CommitError::Unavailable(_) => EngineError::Unavailable,
                        CommitError::Unknown(_) => EngineError::StoreFailed,
                        _ => EngineError::Contended,
                    });
                }
            }
        }
        Err(EngineError::Contended)
    }

    /// Returns the invoice of a period, the session that pays it unless nothing is due, and the batch that stores both.
    fn prepare(
        &self,
        period: &Period,
        operator: &Merchant,
        billed: &Merchant,
        schedule: &Schedule,
        now: Timestamp,
    ) -> (Invoice, Option<Arc<Payment>>, Batch) {
        let (cents, carried_millicents) = match &period.invoice {
            Some(invoice) => (invoice.cents, 0),
            None => {
                let amount = period.usage.bill(&schedule.tiers);
                (amount.cents, amount.carried_millicents)
            }
        };
        let env = &self.context.env;
        let parts = (env.entropy.payment_id(now), env.entropy.slug(), now);
        let livemode = self.context.settings.network().is_live();
        let session = (cents > 0).then(|| Arc::new(invoice_session(operator, period, billed, cents, livemode, parts)));
        let named = session.as_ref().map(|session| (session.id, session.slug_text()));
        let invoice = match period.invoice.clone() {
            Some(known) => Invoice { session: named, ..known },
            None => Invoice {
                cents,
                session: named,
                created_at: now,
                due_at: now + self.context.settings.billing.due,
                paid_at: (cents == 0).then_some(now),
                tiers_version: schedule.version,
            },
        };
        let entry = self.told(period, &invoice);
        let mut batch = Batch::default();
        if let Some(session) = &session {
            batch = batch.and(Write::Payment { payment: Arc::clone(session), expected: None });
        }
        let invoicing = Invoicing { period: period.clone(), invoice: invoice.clone(), carried_millicents, at: now };
        let batch = batch.and(Write::Invoice(Box::new(invoicing))).and(Write::Audit(Box::new(entry)));
        (invoice, session, batch)
    }

    /// Returns whether a period needs an invoice, or its invoice a session.
    async fn is_wanted(&self, period: &Period) -> Result<bool, EngineError> {
        let session = match &period.invoice {
            None => return Ok(true),
            Some(Invoice { paid_at: Some(_), .. } | Invoice { session: None, .. }) => return Ok(false),
            Some(Invoice { session: Some((session, _)), .. }) => *session,
        };
        let found = self.context.env.store.payment(session).await.map_err(|e| self.read_failed(&e))?;
        Ok(found.is_none_or(|session| session.state.is_terminal() && session.state != State::Completed))
    }

    fn told(&self, period: &Period, invoice: &Invoice) -> Entry {
        let change = |field: &str, before: Option<String>, after: Option<String>| audit::FieldChange {
            field: field.to_owned(),
            before,
            after,
        };
        let known = period.invoice.as_ref();
        let session = |invoice: &Invoice| invoice.session.as_ref().map(|(id, _)| id.to_string());
        let changes = [
            change("invoiceAmountCents", known.map(|known| known.cents.to_string()), Some(invoice.cents.to_string())),
            change("invoiceSessionId", known.and_then(session), session(invoice)),
        ];
        Entry {
            seq: 0,
            at: self.context.now(),
            actor: self.by.clone(),
            action: if known.is_some() { "invoice_renewed" } else { "invoice_generated" }.to_owned(),
            merchant: period.merchant,
            subject: Some(period.id().to_string()),
            changes: changes.into_iter().filter(|change| change.before != change.after).collect(),
        }
    }

    async fn merchant(&self, id: MerchantId) -> Result<Option<Arc<Merchant>>, EngineError> {
        self.context.env.store.merchant(id).await.map_err(|e| self.read_failed(&e))
    }

    fn read_failed(&self, error: &storage::ReadError) -> EngineError {
        access::read_failed(self.context, error)
    }
}

/// Creates the missing invoices on behalf of the housekeeper.
pub(crate) async fn bill_what_is_over(
    context: &Arc<Context>,
    payments: &Payments,
    over: Month,
) -> Result<(), EngineError> {
    let biller = Biller { context, payments, by: Actor::default() };
    match biller.bill(None, over).await {
        Ok(made) if made.periods.is_empty() => Ok(()),
        Ok(made) => {
            let invoices = made.periods.len();
            tracing::info!(invoices, "{invoices} invoices created");
            Ok(())
        }
        Err(error) => {
            tracing::warn!(%error, "cannot create invoices: {error}");
            Err(error)
        }
    }
}
