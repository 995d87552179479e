//! Billing: what a merchant's month comes to, what its invoice says, and where the two stand.
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
    payment::{Draft, FeeMode, Payment, State, Terms},
    time::Timestamp,
};

/// How long an invoice's session waits for its money, whatever limit merchants' sessions have. After that another one
/// takes its place.
pub const INVOICE_LIFETIME: Duration = Duration::from_secs(366 * 86_400);
/// Smallest units of HBD for a US cent.
const UNITS_PER_CENT: u64 = 10;

/// What a completed payment adds to its merchant's usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sale {
    /// The time of the block that completed it; where it completed on less than a block, when it did.
    pub at: Timestamp,
    /// Its worth, US cents.
    pub usd_cents: u64,
    /// Whether its fee was to come with it.
    pub is_split: bool,
    /// The part of such a fee that did not come, thousandths of a US cent.
    pub missing_fee_millicents: u64,
}

impl Sale {
    /// Returns what a payment adds: nothing before it completed, and nothing where it collects fees for the operator.
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

/// Returns what is missing of a fee, in thousandths of a US cent, at the price its payment was made with, rounded down.
#[must_use]
pub fn missing_fee(fee_units: u64, collected_units: u64, usd_cents: u64, amount_units: u64) -> u64 {
    let missing = u128::from(fee_units.saturating_sub(collected_units));
    let millicents = missing * u128::from(usd_cents) * 1_000 / u128::from(amount_units.max(1));
    u64::try_from(millicents).unwrap_or(u64::MAX)
}

/// What completed in a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// The worth of every sale, US cents.
    pub volume_cents: u64,
    /// How many there were.
    pub payments: u64,
    /// The worth of those whose fee came, or was to come, with the payment.
    pub split_volume_cents: u64,
    /// What is missing of such fees, thousandths of a US cent; below 0 where a fee came after it had been billed.
    pub missing_fee_millicents: i64,
}

impl Usage {
    /// Counts a sale.
    pub fn add(&mut self, sale: &Sale) {
        self.payments += 1;
        self.volume_cents = self.volume_cents.saturating_add(sale.usd_cents);
        if sale.is_split {
            self.split_volume_cents = self.split_volume_cents.saturating_add(sale.usd_cents);
        }
        self.adjust_missing_fee(0, sale.missing_fee_millicents);
    }

    /// Notes that a fee came, or went, after its payment was counted.
    pub fn adjust_missing_fee(&mut self, before_millicents: u64, after_millicents: u64) {
        let change = i128::from(after_millicents) - i128::from(before_millicents);
        let next = i128::from(self.missing_fee_millicents) + change;
        self.missing_fee_millicents = i64::try_from(next.clamp(i64::MIN.into(), i64::MAX.into())).unwrap_or_default();
    }

    /// Takes over what an invoice could not set off.
    pub fn carry(&mut self, millicents: i64) {
        self.missing_fee_millicents = self.missing_fee_millicents.saturating_add(millicents);
    }

    /// Returns what the month comes to: the percentage of the tier its whole volume falls in, of the volume whose fee did
    /// not come with the payments, and the missing fees of the rest.
    #[must_use]
    pub fn bill(&self, tiers: &Tiers) -> Bill {
        let open_cents = self.volume_cents.saturating_sub(self.split_volume_cents);
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

/// What a month comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bill {
    /// US cents, rounded down, once for the whole month.
    pub cents: u64,
    /// What the next month takes over, thousandths of a US cent: 0, or less where more came than was owed.
    pub carried_millicents: i64,
}

/// A merchant's month: what it used, and its invoice once there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Period {
    /// Whose.
    pub merchant: MerchantId,
    /// Which month.
    pub month: Month,
    /// What completed in it. From its invoice on it does not change: what is counted late goes to the next month.
    pub usage: Usage,
    /// Its invoice.
    pub invoice: Option<Invoice>,
    /// When the first of it was counted.
    pub created_at: Timestamp,
    /// When anything of it changed last.
    pub updated_at: Timestamp,
}

/// What a merchant owes for a month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invoice {
    /// How much, US cents.
    pub cents: u64,
    /// The session it is paid by, and the slug of its address; none where nothing is owed.
    pub session: Option<(PaymentId, String)>,
    /// When it was made.
    pub created_at: Timestamp,
    /// From then on it is overdue.
    pub due_at: Timestamp,
    /// When it was paid.
    pub paid_at: Option<Timestamp>,
    /// The version of the tiers it was made with; 0 where they are the settings'.
    pub tiers_version: u64,
}

/// Where a period stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It has no invoice yet.
    Open,
    /// It has one that waits for its money.
    Invoiced,
    /// Nothing is owed any more.
    Paid,
    /// The money should have come.
    Overdue,
}

impl Status {
    /// Every status, in the order of a period's life.
    pub const ALL: [Self; 4] = [Self::Open, Self::Invoiced, Self::Paid, Self::Overdue];

    /// Returns the word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Invoiced => "invoiced",
            Self::Paid => "paid",
            Self::Overdue => "overdue",
        }
    }

    /// Reads the word on the wire.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

impl Period {
    /// Returns a period in which nothing was counted yet.
    #[must_use]
    pub fn begin(merchant: MerchantId, month: Month, now: Timestamp) -> Self {
        Self { merchant, month, usage: Usage::default(), invoice: None, created_at: now, updated_at: now }
    }

    /// Returns its id; decided by merchant and month, so nothing can make two of it.
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

    /// Returns where it stands.
    #[must_use]
    pub fn status(&self, now: Timestamp) -> Status {
        match &self.invoice {
            None => Status::Open,
            Some(invoice) if invoice.paid_at.is_some() => Status::Paid,
            Some(invoice) if now > invoice.due_at => Status::Overdue,
            Some(_) => Status::Invoiced,
        }
    }

    /// Says whether something of it is still to be billed or paid.
    #[must_use]
    pub fn is_unsettled(&self) -> bool {
        self.invoice.as_ref().is_none_or(|invoice| invoice.paid_at.is_none())
    }

    /// Returns what its invoice asks for, or would with these tiers; US cents.
    #[must_use]
    pub fn cents(&self, tiers: &Tiers) -> u64 {
        self.invoice.as_ref().map_or_else(|| self.usage.bill(tiers).cents, |invoice| invoice.cents)
    }
}

/// Opens the session of an invoice: HBD to the operator's account, one transfer, no fee of its own.
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

/// What one merchant's periods come to together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BillingTotals {
    /// Whose.
    pub merchant: MerchantId,
    /// What completed this month.
    pub current: Usage,
    /// Invoices that wait for their money.
    pub outstanding: u64,
    /// What they ask for, US cents.
    pub outstanding_cents: u64,
    /// Invoices that are paid.
    pub paid: u64,
    /// What they asked for, US cents.
    pub paid_cents: u64,
    /// The oldest month whose invoice waits.
    pub oldest_unpaid: Option<Month>,
    /// Whether an invoice is overdue.
    pub is_overdue: bool,
}

impl BillingTotals {
    /// Returns an account without periods.
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

    /// Adds a period as it stands at `now`.
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

    /// Says whether its merchant is behind: an invoice is overdue, or two wait.
    #[must_use]
    pub const fn is_delinquent(&self) -> bool {
        self.is_overdue || self.outstanding >= 2
    }
}
