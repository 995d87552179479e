//! What the indexes need of a payment: the facts that a write compares, and the summary that filters read.

use std::time::Duration;

use engine::{
    billing::{self, Sale},
    money::Money,
    payment::{Disposition, Finality, Payment, State},
};
use prost::Message;

use crate::record::{
    codes::Code,
    payment::{CancellationRecord, VERSION},
    summary::Summary,
    transfer::TotalsRecord,
    wire::{Bits, Damage, code, id, time, unseal},
};

/// The fields of a payment that a write needs to maintain the indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PaymentFacts {
    /// The version, which each write increments.
    pub(crate) version: u64,
    /// The merchant.
    pub(crate) merchant: u128,
    /// The secret part of the checkout URL.
    pub(crate) slug: u128,
    /// The state.
    pub(crate) state: State,
    /// Of a pending payment: the cutoff of its cancellation or its deadline, Unix milliseconds.
    pub(crate) deadline_ms: Option<u64>,
    /// Whether it waits for a block.
    pub(crate) is_in_flight: bool,
    /// Number of refunds; it never decreases.
    pub(crate) refunds: usize,
    /// Of a completed payment: the missing part of a split fee, thousandths of a US cent.
    pub(crate) missing_fee_millicents: u64,
    /// Size of the record, bytes.
    pub(crate) bytes: u64,
    /// The fields that list filters read.
    pub(crate) summary: Summary,
    /// Number of metadata entries; it changes only to 0.
    pub(crate) metadata: usize,
}

impl PaymentFacts {
    /// Returns the facts of a payment with the given record.
    pub(crate) fn of(payment: &Payment, record: &[u8]) -> Self {
        Self {
            version: payment.version,
            merchant: payment.merchant.bits(),
            slug: payment.slug.bits(),
            state: payment.state,
            deadline_ms: (payment.state == State::Pending).then(|| payment.due_at().millis()),
            is_in_flight: payment.awaits_finality(),
            refunds: payment.refunds.len(),
            missing_fee_millicents: Sale::of(payment).map_or(0, |sale| sale.missing_fee_millicents),
            bytes: record.len() as u64,
            summary: Summary::of(payment),
            metadata: payment.metadata.len(),
        }
    }
}

/// The fields of a payment's record that [`PaymentFacts`] needs. The other fields are skipped without being decoded.
#[derive(Clone, PartialEq, Message)]
struct FactsRecord {
    #[prost(message, optional, tag = "1")]
    merchant: Option<Bits>,
    #[prost(uint64, tag = "2")]
    version: u64,
    #[prost(uint32, tag = "3")]
    state: u32,
    #[prost(message, optional, tag = "6")]
    slug: Option<Bits>,
    #[prost(uint64, tag = "7")]
    amount_units: u64,
    #[prost(uint32, tag = "8")]
    currency: u32,
    #[prost(message, optional, tag = "9")]
    quote: Option<QuoteFacts>,
    #[prost(message, repeated, tag = "12")]
    metadata: Vec<Skipped>,
    #[prost(uint64, tag = "15")]
    created_at_ms: u64,
    #[prost(uint64, tag = "17")]
    expires_at_ms: u64,
    #[prost(uint64, tag = "18")]
    grace_ms: u64,
    #[prost(uint64, optional, tag = "19")]
    completed_at_ms: Option<u64>,
    #[prost(message, repeated, tag = "21")]
    transfers: Vec<CreditFacts>,
    #[prost(message, optional, tag = "22")]
    claim: Option<Skipped>,
    #[prost(message, optional, tag = "24")]
    cancellation: Option<CancellationRecord>,
    #[prost(message, repeated, tag = "27")]
    refunds: Vec<Skipped>,
    #[prost(bool, tag = "28")]
    is_invoice: bool,
    #[prost(message, optional, tag = "30")]
    unlisted: Option<TotalsRecord>,
    #[prost(bool, tag = "31")]
    is_unusual: bool,
}

#[derive(Clone, PartialEq, Message)]
struct QuoteFacts {
    #[prost(uint64, tag = "1")]
    fee_units: u64,
    #[prost(bytes = "vec", optional, tag = "2")]
    split_account: Option<Vec<u8>>,
    #[prost(uint64, tag = "3")]
    usd_cents: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct CreditFacts {
    #[prost(uint64, tag = "6")]
    units: u64,
    #[prost(uint32, tag = "9")]
    finality: u32,
    #[prost(uint32, tag = "10")]
    disposition: u32,
}

impl FactsRecord {
    fn summary(&self, state: State) -> Result<Summary, Damage> {
        Ok(Summary {
            state,
            amount: Money::new(self.amount_units, code("currency", self.currency)?),
            created_at: time(self.created_at_ms),
            is_unusual: self.is_unusual,
            is_invoice: self.is_invoice,
            completed_at: self.completed_at_ms.map(time),
            usd_cents: self.quote.as_ref().map_or(0, |quote| quote.usd_cents),
        })
    }

    /// Returns the missing fee as [`Sale::of`] does, without decoding the payment.
    fn missing_fee_millicents(&self, state: State) -> u64 {
        let Some(quote) = self.quote.as_ref().filter(|quote| quote.split_account.is_some()) else { return 0 };
        if state != State::Completed || self.is_invoice {
            return 0;
        }
        let fees = self.transfers.iter().filter(|credit| {
            credit.disposition == Disposition::Fee.number() && credit.finality != Finality::Orphaned.number()
        });
        let unlisted = self.unlisted.as_ref().map_or(0, |unlisted| unlisted.seen_units(Disposition::Fee));
        let collected = fees.fold(unlisted, |sum, credit| sum + u128::from(credit.units));
        let collected = u64::try_from(collected).unwrap_or(u64::MAX);
        billing::missing_fee(quote.fee_units, collected, quote.usd_cents, self.amount_units)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct Skipped {}

/// Decodes the facts of a stored payment.
pub(crate) fn payment_facts(bytes: &[u8]) -> Result<PaymentFacts, Damage> {
    let record: FactsRecord = unseal(VERSION, bytes)?;
    let state: State = code("state", record.state)?;
    let undecided = record.cancellation.filter(|request| request.dropped_at_ms.is_none());
    let due_at = match undecided {
        Some(request) => time(request.cutoff_ms),
        None => time(record.expires_at_ms) + Duration::from_millis(record.grace_ms),
    };
    Ok(PaymentFacts {
        version: record.version,
        merchant: id("merchant", record.merchant)?,
        slug: id("slug", record.slug)?,
        state,
        deadline_ms: (state == State::Pending).then(|| due_at.millis()),
        is_in_flight: record.claim.is_some()
            || record.unlisted.as_ref().is_some_and(|unlisted| unlisted.reversible > 0)
            || record.transfers.iter().any(|credit| credit.finality == Finality::Reversible.number()),
        refunds: record.refunds.len(),
        missing_fee_millicents: record.missing_fee_millicents(state),
        bytes: bytes.len() as u64,
        summary: record.summary(state)?,
        metadata: record.metadata.len(),
    })
}
