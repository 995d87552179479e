//! Fee tiers: the percentage billed by monthly volume.

use crate::mutant;
use crate::{fields::Violation, money::FeePercent, time::Timestamp};

/// Maximum number of tiers.
pub const MAX_TIERS: usize = 20;
/// The largest bound of a tier, US cents: the largest integer that every JSON parser represents exactly.
pub const MAX_VOLUME_CENTS: u64 = (1 << 53) - 1;

/// A fee tier. Both bounds are inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tier {
    /// The minimum volume, US cents.
    pub min_cents: u64,
    /// The maximum volume, US cents; `None` for the last tier.
    pub max_cents: Option<u64>,
    /// The percentage billed of the whole volume of a month that falls in this tier.
    pub percent: FeePercent,
}

/// Contiguous tiers: the first starts at 0, the last has no upper bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiers(Vec<Tier>);

/// The stored fee schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The version; incremented by every update.
    pub version: u64,
    /// The tiers.
    pub tiers: Tiers,
    /// When it was last updated.
    pub updated_at: Timestamp,
}

/// An unvalidated tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawTier {
    /// See [`Tier::min_cents`].
    pub min_cents: u64,
    /// See [`Tier::max_cents`].
    pub max_cents: Option<u64>,
    /// See [`Tier::percent`], 1/10 000 percent.
    pub percent_ten_thousandths: u32,
}

impl Tiers {
    /// Returns a single tier for every volume.
    #[must_use]
    pub fn flat(percent: FeePercent) -> Self {
        Self(vec![Tier { min_cents: 0, max_cents: None, percent }])
    }

    /// Validates the tiers of a request.
    ///
    /// # Errors
    /// Every invalid field, such as `tiers[1].minVolumeCents`.
    pub fn check(raw: &[RawTier]) -> Result<Self, Vec<Violation>> {
        if raw.is_empty() || raw.len() > MAX_TIERS {
            return Err(vec![Violation::new("tiers", format_args!("must be 1 to {MAX_TIERS} tiers"))]);
        }
        let (mut tiers, mut wrong) = (Vec::new(), Vec::new());
        // The expected minimum of the next tier; `None` if the previous tier has no maximum.
        let mut begin = Some(0);
        for (place, tier) in raw.iter().enumerate() {
            let mut refuse =
                |field: &str, why: String| wrong.push(Violation::new(format!("tiers[{place}].{field}"), why));
            if let Some(begin) = begin.filter(|begin| *begin != tier.min_cents) {
                let why =
                    if place == 0 { " of the first tier" } else { ", one more than the tier before it ends with" };
                refuse("minVolumeCents", format!("must be {begin}{why}"));
            }
            let is_last = place + 1 == raw.len();
            match tier.max_cents {
                Some(_) if is_last => refuse("maxVolumeCents", "must be null: the last tier has no end".to_owned()),
                None if !is_last => {
                    refuse("maxVolumeCents", "must be a number: only the last tier has no end".to_owned());
                }
                Some(max) if max < tier.min_cents || max > MAX_VOLUME_CENTS => {
                    refuse("maxVolumeCents", format!("must be from minVolumeCents to {MAX_VOLUME_CENTS}"));
                }
                _ => {}
            }
            begin = tier.max_cents.map(|max| max.saturating_add(1));
            match FeePercent::from_ten_thousandths(tier.percent_ten_thousandths) {
                Some(percent) => {
                    tiers.push(Tier { min_cents: tier.min_cents, max_cents: tier.max_cents, percent });
                }
                None => refuse("percentFee", "must be a number from 0 to 100 with at most 4 places".to_owned()),
            }
        }
        if wrong.is_empty() { Ok(Self(tiers)) } else { Err(wrong) }
    }

    /// Returns the tiers in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = &Tier> {
        self.0.iter()
    }

    /// Returns the percentage of the tier that a volume (US cents) falls in; it applies to the whole volume.
    #[must_use]
    pub fn percent_of(&self, volume_cents: u64) -> FeePercent {
        let volume_cents = if mutant!("first-tier-for-all") { 0 } else { volume_cents };
        let tier = self.0.iter().rev().find(|tier| tier.min_cents <= volume_cents);
        tier.map_or(FeePercent::ZERO, |tier| tier.percent)
    }
}

/// Formats as `0–99999: 1.5 %, from 100000: 1 %`.
impl std::fmt::Display for Tiers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (place, tier) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            match tier.max_cents {
                Some(max) => write!(f, "{comma}{}–{max}: {} %", tier.min_cents, tier.percent)?,
                None => write!(f, "{comma}from {}: {} %", tier.min_cents, tier.percent)?,
            }
        }
        Ok(())
    }
}
