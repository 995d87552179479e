//! Billing in the model: the usage of each month, and its invoice.

use engine::{
    billing::{Invoice, Month, Period, Schedule},
    ids::MerchantId,
    money::{Currency, Money},
    payment::{FeeMode, Payment, State},
    time::Timestamp,
};
use storage::Invoicing;

use super::StoreModel;
use crate::observer::Observer;

/// What a completed payment adds to the usage of a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sold {
    month: Month,
    cents: u64,
    is_split: bool,
    /// The uncollected part of its fee, thousandths of a US cent.
    missing_millicents: i64,
}

impl Sold {
    fn of(payment: &Payment) -> Option<Self> {
        if payment.state != State::Completed || payment.is_invoice {
            return None;
        }
        let own = payment.transfers.iter().filter(|credit| payment.paid_by == Some(credit.tx_id));
        let block_time = own.filter_map(|credit| credit.block.map(|block| block.time)).max();
        let is_split = matches!(payment.quote.fee_mode, FeeMode::Split { .. });
        let missing = if is_split {
            u128::from(payment.quote.fee_units.saturating_sub(payment.fee_collected_units()))
        } else {
            0
        };
        let millicents =
            missing * u128::from(payment.quote.usd_cents) * 1_000 / u128::from(payment.amount.units.max(1));
        Some(Self {
            month: Month::of(block_time.or(payment.completed_at)?),
            cents: payment.quote.usd_cents,
            is_split,
            missing_millicents: i64::try_from(millicents).unwrap_or(i64::MAX),
        })
    }
}

/// Returns the amount that a month's usage costs, thousandths of a US cent: negative where more was collected than is due.
fn millicents_due(period: &Period, tiers: &Schedule) -> i128 {
    let volume = period.usage.volume_cents;
    let tier =
        tiers.tiers.iter().find(|tier| tier.min_cents <= volume && tier.max_cents.is_none_or(|max| volume <= max));
    let percent = tier.map_or(0, |tier| i128::from(tier.percent.ten_thousandths()));
    let open = i128::from(volume - period.usage.split_volume_cents);
    open * percent / 1_000 + i128::from(period.usage.missing_fee_millicents)
}

impl StoreModel {
    /// Returns the billing period of a month's usage: the first one from that month on without an invoice.
    fn open_period(&mut self, merchant: MerchantId, mut month: Month, now: Timestamp) -> &mut Period {
        while self.periods.get(&(month, merchant)).is_some_and(|period| period.invoice.is_some()) {
            month = month.next();
        }
        self.periods.entry((month, merchant)).or_insert_with(|| Period::begin(merchant, month, now))
    }

    /// Returns the tiers in force, for the fee of the settings where an administrator set none.
    fn schedule(&self, flat: &Schedule) -> Schedule {
        self.tiers.clone().unwrap_or_else(|| flat.clone())
    }
}

impl Observer {
    /// Counts a payment that completes, or whose fee is paid later.
    pub(super) fn model_sale(&mut self, after: &Payment) {
        let before = self.payments.get(&after.id).map(|known| std::sync::Arc::clone(&known.payment));
        let was_completed = before.as_ref().is_some_and(|before| before.state == State::Completed);
        if after.is_invoice && after.state == State::Completed && !was_completed {
            let is_its = |period: &&mut Period| {
                period
                    .invoice
                    .as_ref()
                    .is_some_and(|invoice| invoice.session.as_ref().is_some_and(|(id, _)| *id == after.id))
            };
            let invoice = self.model.periods.values_mut().find(is_its).and_then(|period| period.invoice.as_mut());
            if let Some(invoice) = invoice {
                invoice.paid_at.get_or_insert(after.updated_at);
            }
            self.mark("an invoice is paid");
            return;
        }
        let Some(sold) = Sold::of(after) else { return };
        let earlier = before.as_deref().and_then(Sold::of);
        if earlier.is_some_and(|earlier| earlier.missing_millicents == sold.missing_millicents) {
            return;
        }
        let usage = &mut self.model.open_period(after.merchant, sold.month, after.updated_at).usage;
        if earlier.is_none() {
            usage.payments += 1;
            usage.volume_cents += sold.cents;
            usage.split_volume_cents += if sold.is_split { sold.cents } else { 0 };
        }
        usage.missing_fee_millicents +=
            sold.missing_millicents - earlier.map_or(0, |earlier| earlier.missing_millicents);
    }

    /// Checks an invoice against the usage of its month.
    pub(super) fn model_invoice(&mut self, invoicing: &Invoicing) {
        let Invoicing { period, invoice, carried_millicents, at } = invoicing;
        let key = (period.month, period.merchant);
        let flat = self.flat_tiers.clone();
        let flaw = match (self.model.periods.get(&key), flat) {
            (None, _) => Some("nothing was sold in that month".to_owned()),
            (Some(_), None) => Some("nobody is billed".to_owned()),
            (Some(known), Some(flat)) => {
                let due = millicents_due(known, &self.model.schedule(&flat));
                let version = self.model.tiers.as_ref().map_or(0, |tiers| tiers.version);
                let expected = (u64::try_from(due / 1_000).unwrap_or(0), i64::try_from(due.min(0)).unwrap_or(0));
                let is_over = Month::of(self.final_time) > period.month;
                match &known.invoice {
                    None if !is_over => Some(format!("the newest irreversible block is of {}", self.final_time)),
                    None if (invoice.cents, *carried_millicents) != expected => {
                        Some(format!("{expected:?} is due of {:?}", known.usage))
                    }
                    None if invoice.tiers_version != version => Some(format!("the tiers have version {version}")),
                    None => None,
                    Some(earlier) if earlier.paid_at.is_some() => Some("it was paid before".to_owned()),
                    Some(earlier) if (earlier.cents, earlier.due_at) != (invoice.cents, invoice.due_at) => {
                        Some(format!("it was {earlier:?} before"))
                    }
                    Some(_) => None,
                }
            }
        };
        // The counts of a damaged row are not known.
        let flaw = flaw.or_else(|| self.invoice_session_flaw(invoice)).filter(|_| !self.was_damaged);
        match flaw {
            Some(why) => {
                let text = format!("{} is billed {invoice:?} for {}: {why}", period.merchant, period.month);
                self.violate("invoices-follow-from-usage", text, None);
            }
            None => self.passes("invoices-follow-from-usage"),
        }
        if let Some(known) = self.model.periods.get_mut(&key) {
            known.invoice = Some(invoice.clone());
        }
        if *carried_millicents != 0 {
            let next = self.model.open_period(period.merchant, period.month.next(), *at);
            next.usage.missing_fee_millicents += carried_millicents;
        }
    }

    /// Returns why the payment of an invoice does not match it.
    fn invoice_session_flaw(&self, invoice: &Invoice) -> Option<String> {
        let (id, slug) = invoice.session.as_ref()?;
        let Some(session) = self.payments.get(id).map(|known| &known.payment) else {
            return Some("its payment is not durable".to_owned());
        };
        let is_right = session.is_invoice
            && session.slug_text() == *slug
            && session.amount == Money::new(invoice.cents * 10, Currency::Hbd)
            && self.merchants.get(&session.merchant).is_some_and(|operator| operator.hive_account == session.pay_to);
        (!is_right).then(|| format!("its payment is over {} to @{}", session.amount, session.pay_to))
    }
}
