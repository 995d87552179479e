//! Billing: usage and amounts owed of merchants, fee tiers, invoices.

use engine::{
    billing::{BillingTotals, Month, Period, RawTier, Schedule, Status as InvoiceStatus, Tiers},
    ids::MerchantId,
    merchant::{Merchant, Scope},
    time::Timestamp,
};
use proto::{
    ApiError, Reason, RecordResponse, record_response,
    v1::{self, billing_service_server::BillingService},
};
use tonic::{Request, Response, Status};

use super::{
    Service,
    convert::{self, error, timestamp},
    page_token::Filters,
    payments::{invalid_token, numeric_token, page_after, page_size},
};

impl Service {
    /// Converts a billing period. The invoice amount of a merchant that is not billed is 0.
    fn period(&self, found: &Period, merchant: &Merchant, tiers: &Tiers, now: Timestamp) -> v1::BillingPeriod {
        let message = period(found, merchant, tiers, now);
        if self.engine.operations.is_billed(merchant.id) {
            message
        } else {
            v1::BillingPeriod { invoice_amount_cents: 0, ..message }
        }
    }

    /// Returns a response with the billing summary of a merchant.
    async fn billing_of<R>(&self, id: MerchantId) -> Result<Response<R>, ApiError>
    where
        R: RecordResponse<Record = v1::BillingSummary>,
    {
        let summary = self.engine.operations.billing_summary(id).await.map_err(error)?;
        let now = self.engine.now();
        let periods = |statuses: &[InvoiceStatus]| -> Vec<v1::BillingPeriod> {
            let periods = summary.periods.iter().filter(|period| statuses.contains(&period.status(now)));
            periods.map(|found| self.period(found, &summary.merchant, &summary.tiers, now)).collect()
        };
        let outstanding = periods(&[InvoiceStatus::Invoiced, InvoiceStatus::Overdue]);
        let paid = periods(&[InvoiceStatus::Paid]);
        let sum = |periods: &[v1::BillingPeriod]| {
            periods.iter().fold(0u64, |sum, period| sum.saturating_add(period.invoice_amount_cents))
        };
        Ok(record_response(v1::BillingSummary {
            merchant_id: id.to_string(),
            merchant_name: summary.merchant.name.clone(),
            current: Some(self.period(&summary.current, &summary.merchant, &summary.tiers, now)),
            outstanding_amount_cents: sum(&outstanding),
            total_paid_cents: sum(&paid),
            outstanding,
            paid,
            fee_tiers: tiers(&summary.tiers),
        }))
    }
}

#[tonic::async_trait]
impl BillingService for Service {
    async fn get_my_billing(
        &self,
        request: Request<v1::GetMyBillingRequest>,
    ) -> Result<Response<v1::GetMyBillingResponse>, Status> {
        let merchant = self.caller(&request, Scope::PaymentsRead).await?;
        Ok(self.billing_of(merchant.id).await?)
    }

    async fn get_merchant_billing(
        &self,
        request: Request<v1::GetMerchantBillingRequest>,
    ) -> Result<Response<v1::GetMerchantBillingResponse>, Status> {
        self.admin(&request).await?;
        let id = request.get_ref().merchant_id.parse();
        let id = id.map_err(|_| ApiError::with_message(Reason::NotFound, "no such merchant"))?;
        Ok(self.billing_of(id).await?)
    }

    async fn get_billing_overview(
        &self,
        request: Request<v1::GetBillingOverviewRequest>,
    ) -> Result<Response<v1::GetBillingOverviewResponse>, Status> {
        self.admin(&request).await?;
        let overview = self.engine.operations.billing_overview().await.map_err(error)?;
        let accounts = overview.accounts.iter().map(|(merchant, found)| account(merchant, found, &overview.tiers));
        Ok(Response::new(v1::GetBillingOverviewResponse { accounts: accounts.collect() }))
    }

    async fn list_billing_periods(
        &self,
        request: Request<v1::ListBillingPeriodsRequest>,
    ) -> Result<Response<v1::ListBillingPeriodsResponse>, Status> {
        self.admin(&request).await?;
        let message = request.into_inner();
        let limit = page_size(message.page_size)?;
        // A page token is the number of a page.
        let filters =
            v1::ListBillingPeriodsRequest { page_size: 0, skip: 0, page_token: String::new(), ..message.clone() };
        let filters = Filters::of(&filters);
        let page = match numeric_token(filters.read(&message.page_token)?)? {
            Some(0) => return Err(invalid_token().into()),
            Some(page) => page,
            None => page_after(message.skip, limit)?,
        };
        let merchant = message.merchant_id.map(|id| id.parse::<MerchantId>());
        let merchant = merchant.transpose().map_err(|_| ApiError::field("merchantId", "must be a merchant's id"))?;
        let status = match v1::BillingStatus::try_from(message.status) {
            Ok(v1::BillingStatus::Unspecified) => None,
            Ok(wanted) => InvoiceStatus::ALL.into_iter().find(|known| status(*known) == wanted),
            Err(_) => return Err(ApiError::field("status", "must be open, invoiced, paid or overdue").into()),
        };
        let found =
            self.engine.operations.billing_periods(page, limit as usize, merchant, status).await.map_err(error)?;
        let (tiers, now) = (self.engine.operations.fee_tiers().await.map_err(error)?.tiers, self.engine.now());
        let periods = found.items.iter().map(|(found, merchant)| self.period(found, merchant, &tiers, now)).collect();
        let has_more = page.saturating_mul(u64::from(limit)) < found.total;
        let next_page_token = filters.token(if has_more { (page + 1).to_string() } else { String::new() });
        Ok(Response::new(v1::ListBillingPeriodsResponse { periods, next_page_token, total_size: found.total }))
    }

    async fn get_fee_tiers(
        &self,
        request: Request<v1::GetFeeTiersRequest>,
    ) -> Result<Response<v1::GetFeeTiersResponse>, Status> {
        self.admin(&request).await?;
        Ok(record_response(schedule(&self.engine.operations.fee_tiers().await.map_err(error)?)))
    }

    async fn set_fee_tiers(
        &self,
        request: Request<v1::SetFeeTiersRequest>,
    ) -> Result<Response<v1::SetFeeTiersResponse>, Status> {
        let principal = self.admin(&request).await?;
        let tiers = request.get_ref().tiers.iter().enumerate();
        let raw = tiers.map(|(index, tier)| read_tier(index, tier)).collect::<Result<Vec<RawTier>, _>>()?;
        let tiers = Tiers::check(&raw).map_err(convert::invalid)?;
        Ok(record_response(schedule(&principal.engine.operations.set_fee_tiers(tiers).await.map_err(error)?)))
    }

    async fn generate_invoices(
        &self,
        request: Request<v1::GenerateInvoicesRequest>,
    ) -> Result<Response<v1::GenerateInvoicesResponse>, Status> {
        let principal = self.admin(&request).await?;
        let month = match (request.get_ref().year, request.get_ref().month) {
            (None, None) => None,
            (None, Some(_)) => return Err(ApiError::field("year", "is required if month is set").into()),
            (Some(_), None) => return Err(ApiError::field("month", "is required if year is set").into()),
            (Some(year), Some(month)) => Some(month_of(year, month)?),
        };
        let invoiced = principal.engine.operations.generate_invoices(month).await.map_err(error)?;
        let (tiers, now) = (self.engine.operations.fee_tiers().await.map_err(error)?.tiers, self.engine.now());
        let periods =
            invoiced.periods.iter().map(|(found, merchant)| self.period(found, merchant, &tiers, now)).collect();
        Ok(Response::new(v1::GenerateInvoicesResponse { periods }))
    }
}

fn month_of(year: u32, month: u32) -> Result<Month, ApiError> {
    if !(1..=12).contains(&month) {
        return Err(ApiError::field("month", "must be a whole number from 1 to 12"));
    }
    Month::new(year, month).ok_or_else(|| ApiError::field("year", "must be a whole number from 1970 to 9997"))
}

const fn status(status: InvoiceStatus) -> v1::BillingStatus {
    match status {
        InvoiceStatus::Open => v1::BillingStatus::Open,
        InvoiceStatus::Invoiced => v1::BillingStatus::Invoiced,
        InvoiceStatus::Paid => v1::BillingStatus::Paid,
        InvoiceStatus::Overdue => v1::BillingStatus::Overdue,
    }
}

/// Reads the fee tier at an index of the request.
fn read_tier(index: usize, tier: &v1::FeeTier) -> Result<RawTier, ApiError> {
    let percent = convert::required(&format!("tiers[{index}].percentFee"), tier.percent_ten_thousandths)?;
    Ok(RawTier { min_cents: tier.min_volume_cents, max_cents: tier.max_volume_cents, percent_ten_thousandths: percent })
}

fn tiers(tiers: &Tiers) -> Vec<v1::FeeTier> {
    let tier = |tier: &engine::billing::Tier| v1::FeeTier {
        min_volume_cents: tier.min_cents,
        max_volume_cents: tier.max_cents,
        percent_ten_thousandths: Some(tier.percent.ten_thousandths()),
    };
    tiers.iter().map(tier).collect()
}

fn schedule(schedule: &Schedule) -> v1::FeeSchedule {
    v1::FeeSchedule {
        tiers: tiers(&schedule.tiers),
        version: schedule.version,
        updated_at: (schedule.version > 0).then(|| timestamp(schedule.updated_at)),
    }
}

fn period(period: &Period, merchant: &Merchant, tiers: &Tiers, now: Timestamp) -> v1::BillingPeriod {
    let invoice = period.invoice.as_ref();
    let session = invoice.and_then(|invoice| invoice.session.as_ref());
    v1::BillingPeriod {
        id: period.id().to_string(),
        period_start: Some(timestamp(period.month.start())),
        period_end: Some(timestamp(period.month.end())),
        total_volume_cents: period.usage.volume_cents,
        transaction_count: period.usage.payments,
        invoice_amount_cents: period.cents(tiers),
        status: status(period.status(now)).into(),
        invoice_session_id: session.map(|(id, _)| id.to_string()),
        invoice_slug: session.map(|(_, slug)| slug.clone()),
        created_at: Some(timestamp(period.created_at)),
        updated_at: Some(timestamp(period.updated_at)),
        due_at: invoice.map(|invoice| timestamp(invoice.due_at)),
        paid_at: invoice.and_then(|invoice| invoice.paid_at).map(timestamp),
        split_volume_cents: period.usage.split_volume_cents,
        missing_fee_millicents: period.usage.missing_fee_millicents,
        merchant_id: merchant.id.to_string(),
        merchant_name: merchant.name.clone(),
        merchant_hive_account: merchant.hive_account.to_string(),
        merchant_icon_url: merchant.icon_url.clone(),
    }
}

fn account(merchant: &Merchant, account: &BillingTotals, tiers: &Tiers) -> v1::BillingAccount {
    v1::BillingAccount {
        merchant_id: merchant.id.to_string(),
        merchant_name: merchant.name.clone(),
        hive_account: merchant.hive_account.to_string(),
        icon_url: merchant.icon_url.clone(),
        current_month_volume_cents: account.current.volume_cents,
        current_month_projected_cents: account.current.bill(tiers).cents,
        outstanding_invoices: account.outstanding,
        outstanding_amount_cents: account.outstanding_cents,
        paid_invoices: account.paid,
        paid_amount_cents: account.paid_cents,
        oldest_unpaid_start: account.oldest_unpaid.map(|month| timestamp(month.start())),
        is_behind: account.is_delinquent(),
    }
}
