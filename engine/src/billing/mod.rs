//! Billing: monthly usage of merchants, invoices and their status.
//!
//! Months are calendar months in UTC. A payment belongs to the month of the block that completed it.

mod month;
mod tiers;
mod usage;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use month::Month;
use sha2::{Digest, Sha256};
pub use tiers::{MAX_TIERS, MAX_VOLUME_CENTS, RawTier, Schedule, Tier, Tiers};
pub use usage::{PeriodChange, PriorUsage};

use crate::{
    fields::{Metadata, MetadataValue},
    ids::{InvoiceId, MerchantId, PaymentId, SlugToken},
    merchant::Merchant,
    money::{Currency, FeePercent, Money},
    mutant,
    payment::{Draft, FeeMode, Payment, State, Terms},
    time::Timestamp,
};

/// Lifetime of an invoice's payment session; the limit of merchants' sessions does not apply. An expired session is
/// replaced by a new one.
pub const INVOICE_LIFETIME: Duration = Duration::from_secs(366 * 86_400);
/// Smallest units of HBD per US cent.
const UNITS_PER_CENT: u64 = 10;

/// The contribution of a completed payment to its merchant's usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sale {
    /// The time of the block that completed it, or the completion time if it completed before it was in a block.
    pub at: Timestamp,
    /// The value, US cents.
    pub usd_cents: u64,
    /// Whether the fee was to be collected with the payment (split fee).
    pub is_split: bool,
    /// The part of a split fee that was not collected, thousandths of a US cent.
    pub missing_fee_millicents: u64,
}

impl Sale {
    /// Returns the contribution of a payment; `None` before it completed and for payments of invoices.
    #[must_use]
    pub fn of(payment: &Payment) -> Option<Self> {
        if payment.state != State::Completed || payment.is_invoice {
            return None;
        }
        let blocks = payment.transfers.iter().filter(|credit| payment.paid_by == Some(credit.tx_id));
        let block_time = blocks.filter_map(|credit| credit.block).map(|block| block.time).max();
        let is_split = matches!(payment.quote.fee_mode, FeeMode::Split { .. });
        let fee_units = if is_split { payment.quote.fee_units } else { 0 };
        let collected = payment.fee_collected_units();
        Some(Self {
            at: block_time.or(payment.completed_at).unwrap_or(payment.updated_at),
            usd_cents: payment.quote.usd_cents,
            is_split,
            missing_fee_millicents: missing_fee(fee_units, collected, payment.quote.usd_cents, payment.amount.units),
        })
    }
}

/// Returns the uncollected part of a fee, thousandths of a US cent, rounded down, at the price fixed for the payment.
#[must_use]
pub fn missing_fee(fee_units: u64, collected_units: u64, usd_cents: u64, amount_units: u64) -> u64 {
    let missing = u128::from(fee_units.saturating_sub(collected_units));
    let millicents = missing * u128::from(usd_cents) * 1_000 / u128::from(amount_units.max(1));
    u64::try_from(millicents).unwrap_or(u64::MAX)
}

/// A merchant's usage in a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// The volume of all sales, US cents.
    pub volume_cents: u64,
    /// The number of sales.
    pub payments: u64,
    /// The volume of sales with a split fee, US cents.
    pub split_volume_cents: u64,
    /// Uncollected split fees, thousandths of a US cent; negative if fees arrived after they had been billed.
    pub missing_fee_millicents: i64,
}

impl Usage {
    /// Adds a sale.
    pub fn add(&mut self, sale: &Sale) {
        self.payments += 1;
        self.volume_cents = self.volume_cents.saturating_add(sale.usd_cents);
        if sale.is_split {
            self.split_volume_cents = self.split_volume_cents.saturating_add(sale.usd_cents);
        }
        self.adjust_missing_fee(0, sale.missing_fee_millicents);
    }

    /// Adjusts the uncollected fees when a fee arrives, or a fork removes it, after its payment was counted.
    pub fn adjust_missing_fee(&mut self, before_millicents: u64, after_millicents: u64) {
        let change = i128::from(after_millicents) - i128::from(before_millicents);
        let next = i128::from(self.missing_fee_millicents) + change;
        self.missing_fee_millicents = i64::try_from(next.clamp(i64::MIN.into(), i64::MAX.into())).unwrap_or_default();
    }

    /// Carries over a credit that an earlier invoice could not offset.
    pub fn carry(&mut self, millicents: i64) {
        self.missing_fee_millicents = self.missing_fee_millicents.saturating_add(millicents);
    }

    /// Returns the amount to bill: the percentage of the tier that the total volume falls in, applied to the volume
    /// without split fees, plus uncollected split fees.
    #[must_use]
    pub fn bill(&self, tiers: &Tiers) -> Bill {
        let collected = if mutant!("collected-fees-billed-again") { 0 } else { self.split_volume_cents };
        let open_cents = self.volume_cents.saturating_sub(collected);
        let fee = percentage(tiers.percent_of(self.volume_cents), open_cents);
        let millicents = i128::from(self.missing_fee_millicents) + i128::try_from(fee).unwrap_or(i128::MAX / 2);
        if millicents < 0 {
            return Bill { cents: 0, carried_millicents: i64::try_from(millicents).unwrap_or(i64::MIN) };
        }
        Bill { cents: u64::try_from(millicents / 1_000).unwrap_or(u64::MAX), carried_millicents: 0 }
    }
}

/// Returns a percentage of US cents in thousandths of a cent, rounded down.
fn percentage(percent: FeePercent, cents: u64) -> u128 {
    u128::from(cents) * u128::from(percent.ten_thousandths()) / 1_000
}

/// The amount to bill for a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bill {
    /// US cents, rounded down once for the whole month.
    pub cents: u64,
    /// The credit carried over to the next month, thousandths of a US cent: 0 or negative.
    pub carried_millicents: i64,
}

/// A billing period: a merchant's usage in a month, and its invoice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Period {
    /// The merchant.
    pub merchant: MerchantId,
    /// The month.
    pub month: Month,
    /// The usage. It is final once the invoice exists; later changes are counted in the next month.
    pub usage: Usage,
    /// The invoice, once created.
    pub invoice: Option<Invoice>,
    /// When the first usage was recorded.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A merchant's invoice for a month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invoice {
    /// The amount, US cents.
    pub cents: u64,
    /// The payment session and the slug of its checkout URL; `None` if the amount is 0.
    pub session: Option<(PaymentId, String)>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it becomes overdue.
    pub due_at: Timestamp,
    /// When it was paid.
    pub paid_at: Option<Timestamp>,
    /// The version of the fee tiers used; 0 for the tiers of the settings.
    pub tiers_version: u64,
}

/// The status of a billing period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// No invoice yet.
    Open,
    /// Invoiced and not paid.
    Invoiced,
    /// Paid, or nothing was due.
    Paid,
    /// Not paid by the due date.
    Overdue,
}

impl Status {
    /// Every status, in lifecycle order.
    pub const ALL: [Self; 4] = [Self::Open, Self::Invoiced, Self::Paid, Self::Overdue];

    /// Returns the wire name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Invoiced => "invoiced",
            Self::Paid => "paid",
            Self::Overdue => "overdue",
        }
    }

    /// Parses the wire name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

impl Period {
    /// Returns a period without usage.
    #[must_use]
    pub fn begin(merchant: MerchantId, month: Month, now: Timestamp) -> Self {
        Self { merchant, month, usage: Usage::default(), invoice: None, created_at: now, updated_at: now }
    }

    /// Returns its id, derived from merchant and month and therefore unique.
    #[must_use]
    pub fn id(&self) -> InvoiceId {
        let hash = Sha256::new()
            .chain_update(self.merchant.bits().to_be_bytes())
            .chain_update(self.month.number().to_be_bytes())
            .finalize();
        let mut random = [0; 10];
        random.copy_from_slice(&hash[..10]);
        InvoiceId::new(self.month.start(), random)
    }

    /// Returns the status.
    #[must_use]
    pub fn status(&self, now: Timestamp) -> Status {
        match &self.invoice {
            None => Status::Open,
            Some(invoice) if invoice.paid_at.is_some() => Status::Paid,
            Some(invoice) if now > invoice.due_at => Status::Overdue,
            Some(_) => Status::Invoiced,
        }
    }

    /// Returns whether it is not invoiced or not paid.
    #[must_use]
    pub fn is_unsettled(&self) -> bool {
        self.invoice.as_ref().is_none_or(|invoice| invoice.paid_at.is_none())
    }

    /// Returns the amount of its invoice, or the amount that these tiers would bill, US cents.
    #[must_use]
    pub fn cents(&self, tiers: &Tiers) -> u64 {
        self.invoice.as_ref().map_or_else(|| self.usage.bill(tiers).cents, |invoice| invoice.cents)
    }
}

/// Opens the payment session of an invoice: one transfer of HBD to the operator's account, without a fee.
///
/// # Panics
/// Never: a session in HBD needs no price.
#[must_use]
pub fn invoice_session(
    operator: &Merchant,
    period: &Period,
    billed: &Merchant,
    cents: u64,
    livemode: bool,
    (id, slug, now): (PaymentId, SlugToken, Timestamp),
) -> Payment {
    let text = |text: String| MetadataValue::Text(text);
    let draft = Draft {
        amount: Money::new(cents.saturating_mul(UNITS_PER_CENT), Currency::Hbd),
        description: format!("Service fees {}, {}", period.month, billed.name),
        metadata: Metadata::from([
            ("billingPeriod".to_owned(), text(period.id().to_string())),
            ("billedMerchant".to_owned(), text(period.merchant.to_string())),
            ("month".to_owned(), text(period.month.to_string())),
        ]),
        redirect_url: None,
        cancel_url: None,
        lifetime: Some(INVOICE_LIFETIME),
    };
    let terms = Terms {
        merchant: operator.id,
        pay_to: operator.hive_account,
        fee_percent: FeePercent::ZERO,
        fee_mode: FeeMode::Invoice,
        rate: None,
        default_lifetime: INVOICE_LIFETIME,
        grace: Duration::ZERO,
        livemode,
    };
    let session = Payment::open(draft, terms, id, slug, now).expect("a session in HBD needs no price");
    Payment { is_invoice: true, ..session }
}

/// Billing totals of a merchant over all periods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BillingTotals {
    /// The merchant.
    pub merchant: MerchantId,
    /// The usage of the current month.
    pub current: Usage,
    /// The number of unpaid invoices.
    pub outstanding: u64,
    /// Their total amount, US cents.
    pub outstanding_cents: u64,
    /// The number of paid invoices.
    pub paid: u64,
    /// Their total amount, US cents.
    pub paid_cents: u64,
    /// The oldest month with an unpaid invoice.
    pub oldest_unpaid: Option<Month>,
    /// Whether an invoice is overdue.
    pub is_overdue: bool,
}

impl BillingTotals {
    /// Returns totals without periods.
    #[must_use]
    pub fn of(merchant: MerchantId) -> Self {
        Self {
            merchant,
            current: Usage::default(),
            outstanding: 0,
            outstanding_cents: 0,
            paid: 0,
            paid_cents: 0,
            oldest_unpaid: None,
            is_overdue: false,
        }
    }

    /// Adds a period with its status at `now`.
    pub fn add(&mut self, period: &Period, now: Timestamp) {
        if period.month == Month::of(now) {
            self.current = period.usage;
        }
        let status = period.status(now);
        let cents = period.invoice.as_ref().map_or(0, |invoice| invoice.cents);
        match status {
            Status::Open => {}
            Status::Paid => {
                self.paid += 1;
                self.paid_cents = self.paid_cents.saturating_add(cents);
            }
            Status::Invoiced | Status::Overdue => {
                self.outstanding += 1;
                self.outstanding_cents = self.outstanding_cents.saturating_add(cents);
                self.oldest_unpaid = Some(self.oldest_unpaid.map_or(period.month, |month| month.min(period.month)));
                self.is_overdue |= status == Status::Overdue;
            }
        }
    }

    /// Returns whether the merchant is delinquent: an invoice is overdue, or at least two are unpaid.
    #[must_use]
    pub const fn is_delinquent(&self) -> bool {
        self.is_overdue || self.outstanding >= 2
    }
}
