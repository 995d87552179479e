//! The summary of a payment that lists and filters read, in the fixed-width form of its index row.

use engine::{
    money::{Currency, Money},
    mutant,
    payment::{Payment, State},
    time::Timestamp,
};

use crate::record::{
    codes::Code,
    wire::{Damage, array, code, time},
};

/// The fields that a merchant's list filters by, so that filters need not read payments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The state.
    pub(crate) state: State,
    /// The requested amount.
    pub(crate) amount: Money,
    /// When it was created.
    pub(crate) created_at: Timestamp,
    /// Whether it needs attention.
    pub(crate) is_unusual: bool,
    /// Whether it collects fees and is not a sale.
    pub(crate) is_invoice: bool,
    /// When it completed.
    pub(crate) completed_at: Option<Timestamp>,
    /// The amount in US cents.
    pub(crate) usd_cents: u64,
}

impl Summary {
    /// Returns the summary of a payment.
    pub(crate) fn of(payment: &Payment) -> Self {
        Self {
            state: payment.state,
            amount: payment.amount,
            created_at: payment.created_at,
            is_unusual: payment.needs_attention() && !mutant!("attention-not-listed"),
            is_invoice: payment.is_invoice,
            completed_at: payment.completed_at,
            usd_cents: payment.quote.usd_cents,
        }
    }
}

/// Size of a summary, bytes: version, state, currency, flags, created at, amount, completed at (0 if not completed), US
/// cents; big endian.
pub(crate) const SUMMARY_LEN: usize = 36;

pub(crate) const SUMMARY_VERSION: u8 = 1;

pub(crate) const UNUSUAL: u8 = 1;

pub(crate) const INVOICE: u8 = 2;

/// Returns a summary's stored form.
pub(crate) fn summary_to_bytes(summary: &Summary) -> [u8; SUMMARY_LEN] {
    let small = |code: u32| u8::try_from(code).expect("codes of states and currencies are below 256");
    let mut bytes = [0; SUMMARY_LEN];
    bytes[0] = SUMMARY_VERSION;
    bytes[1] = small(summary.state.number());
    bytes[2] = small(summary.amount.currency.number());
    bytes[3] = if summary.is_unusual { UNUSUAL } else { 0 } | if summary.is_invoice { INVOICE } else { 0 };
    bytes[4..12].copy_from_slice(&summary.created_at.millis().to_be_bytes());
    bytes[12..20].copy_from_slice(&summary.amount.units.to_be_bytes());
    bytes[20..28].copy_from_slice(&summary.completed_at.map_or(0, Timestamp::millis).to_be_bytes());
    bytes[28..].copy_from_slice(&summary.usd_cents.to_be_bytes());
    bytes
}

/// Decodes a summary.
pub(crate) fn summary_from_bytes(bytes: &[u8; SUMMARY_LEN]) -> Result<Summary, Damage> {
    let [version, state, currency, flags, rest @ ..] = bytes;
    if *version != SUMMARY_VERSION {
        return Err(Damage::Version { found: *version, known: SUMMARY_VERSION });
    }
    let word = |at: usize| Ok::<_, Damage>(u64::from_be_bytes(array("summary", &rest[at..at + 8])?));
    let currency: Currency = code("currency", u32::from(*currency))?;
    Ok(Summary {
        state: code("state", u32::from(*state))?,
        amount: Money::new(word(8)?, currency),
        created_at: time(word(0)?),
        is_unusual: flags & UNUSUAL != 0,
        is_invoice: flags & INVOICE != 0,
        completed_at: Some(word(16)?).filter(|ms| *ms > 0).map(time),
        usd_cents: word(24)?,
    })
}

/// The number of facets. A facet is a combination of state, currency and whether the payment needs attention.
pub(crate) const FACETS: usize = 24;

/// Returns the facet of a payment, below [`FACETS`].
pub(crate) fn facet(summary: &Summary) -> u8 {
    facet_of(summary.state, summary.amount.currency, summary.is_unusual)
}

pub(crate) fn facet_of(state: State, currency: Currency, is_unusual: bool) -> u8 {
    let code = (state.number() - 1) * 4 + (currency.number() - 1) * 2 + u32::from(is_unusual);
    u8::try_from(code).expect("codes of states and currencies are small")
}
