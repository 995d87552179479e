//! Amounts in smallest units, currencies, fees and conversion to US cents.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The two liquid currencies of the Hive ledger. Both have 3 decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Currency {
    /// The native token.
    #[serde(rename = "HIVE")]
    Hive,
    /// The dollar-pegged token.
    #[serde(rename = "HBD")]
    Hbd,
}

impl Currency {
    /// Every currency, in the order they are shown.
    pub const ALL: [Self; 2] = [Self::Hive, Self::Hbd];

    /// Returns the currency code: `HIVE` or `HBD`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Hive => "HIVE",
            Self::Hbd => "HBD",
        }
    }

    /// Parses a currency code, case-sensitive.
    #[must_use]
    pub fn parse(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|currency| currency.code() == code)
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// Smallest units in one whole unit, for both currencies.
pub const UNITS_PER_WHOLE: u64 = 1_000;

/// The largest amount of a session: 1 000 000.000 of either currency.
pub const MAX_AMOUNT_UNITS: u64 = 1_000_000_000;

/// The reason why a string is not a valid amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// Not `^[1-9][0-9]{0,15}$`.
    #[error("must be a string of digits in the smallest unit (1/1000), without sign, point or leading zero")]
    NotDigits,
    /// Zero, or above [`MAX_AMOUNT_UNITS`].
    #[error("must be between 1 and {MAX_AMOUNT_UNITS}")]
    OutOfRange,
    /// Not `^(0|[1-9][0-9]*)\.[0-9]{3} (HIVE|HBD)$`, or too large for the chain.
    #[error("must look like `1.000 HBD`")]
    NotLedgerText,
}

/// An amount of one currency, in its smallest unit (1/1000).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Money {
    /// Smallest units.
    pub units: u64,
    /// The currency.
    pub currency: Currency,
}

impl Money {
    /// Returns `units` smallest units of `currency`.
    #[must_use]
    pub const fn new(units: u64, currency: Currency) -> Self {
        Self { units, currency }
    }

    /// Parses a requested amount: digits in the smallest unit, within the limits.
    ///
    /// # Errors
    /// [`MoneyError::NotDigits`] for `01`, `1.5`, `-1`, `1e3`, `0`; [`MoneyError::OutOfRange`] beyond the limit.
    pub fn parse(digits: &str, currency: Currency) -> Result<Self, MoneyError> {
        let bytes = digits.as_bytes();
        if bytes.is_empty() || !bytes.iter().all(u8::is_ascii_digit) {
            return Err(MoneyError::NotDigits);
        }
        if bytes[0] == b'0' && bytes.len() > 1 {
            return Err(MoneyError::NotDigits);
        }
        let units = digits.parse().map_err(|_| MoneyError::OutOfRange)?;
        Self::requested(units, currency)
    }

    /// Returns a requested amount if it is within the limits.
    ///
    /// # Errors
    /// [`MoneyError::OutOfRange`] for zero and beyond the limit.
    pub const fn requested(units: u64, currency: Currency) -> Result<Self, MoneyError> {
        match units {
            1..=MAX_AMOUNT_UNITS => Ok(Self { units, currency }),
            _ => Err(MoneyError::OutOfRange),
        }
    }

    /// Parses the canonical form of the ledger, `1.000 HBD`. Other forms that hived accepts (`+1.000`, `.500`,
    /// `-0.001`) are errors, so that parsing and formatting round-trip.
    ///
    /// # Errors
    /// [`MoneyError::NotLedgerText`] for anything but the canonical form, or above 2^63-1 units.
    pub fn parse_ledger(text: &str) -> Result<Self, MoneyError> {
        let (number, code) = text.split_once(' ').ok_or(MoneyError::NotLedgerText)?;
        let currency = Currency::parse(code).ok_or(MoneyError::NotLedgerText)?;
        let (whole, fraction) = number.split_once('.').ok_or(MoneyError::NotLedgerText)?;
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) || fraction.len() != 3 || (whole.len() > 1 && whole.starts_with('0')) {
            return Err(MoneyError::NotLedgerText);
        }
        let whole: u64 = whole.parse().map_err(|_| MoneyError::NotLedgerText)?;
        let fraction: u64 = fraction.parse().map_err(|_| MoneyError::NotLedgerText)?;
        whole
            .checked_mul(UNITS_PER_WHOLE)
            .and_then(|units| units.checked_add(fraction))
            .filter(|&units| i64::try_from(units).is_ok())
            .map(|units| Self { units, currency })
            .ok_or(MoneyError::NotLedgerText)
    }
}

/// Formats as on the ledger: 3 decimals, a space, the currency code.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} {}", self.units / UNITS_PER_WHOLE, self.units % UNITS_PER_WHOLE, self.currency)
    }
}

/// A percentage with up to 4 decimal places, stored as an integer of 1/10 000 percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FeePercent(u32);

impl FeePercent {
    /// No fee.
    pub const ZERO: Self = Self(0);
    const ONE_PERCENT: u32 = 10_000;

    /// Returns the percentage of `ten_thousandths` / 10 000 percent; `None` above 100 %.
    #[must_use]
    pub const fn from_ten_thousandths(ten_thousandths: u32) -> Option<Self> {
        if ten_thousandths <= 100 * Self::ONE_PERCENT { Some(Self(ten_thousandths)) } else { None }
    }

    /// Returns the percentage in 1/10 000 percent.
    #[must_use]
    pub const fn ten_thousandths(self) -> u32 {
        self.0
    }

    /// Parses a plain decimal such as `1.5`, with at most 4 places, between 0 and 100.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) || whole.len() > 3 || fraction.len() > 4 {
            return None;
        }
        let whole: u32 = whole.parse().ok()?;
        let fraction: u32 = format!("{fraction:0<4}").parse().ok()?;
        Self::from_ten_thousandths(whole * Self::ONE_PERCENT + fraction)
    }

    /// Returns `floor(units * percent / 100)`, the service's fee in smallest units.
    #[must_use]
    pub fn fee_of(self, units: u64) -> u64 {
        let whole = u128::from(100 * Self::ONE_PERCENT);
        let up = if crate::mutant!("fee-rounded-up") { whole - 1 } else { 0 };
        let fee = (u128::from(units) * u128::from(self.0) + up) / whole;
        u64::try_from(fee).expect("a fee of at most 100 % fits where the amount fitted")
    }
}

/// Formats the shortest decimal: `1.5`, `0`, `0.0125`.
impl fmt::Display for FeePercent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.0 / Self::ONE_PERCENT, self.0 % Self::ONE_PERCENT);
        if fraction == 0 {
            return write!(f, "{whole}");
        }
        let fraction = format!("{fraction:04}");
        write!(f, "{whole}.{}", fraction.trim_end_matches('0'))
    }
}

/// The price of HIVE in the witness feed: `base` HBD for `quote` HIVE, both in smallest units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HivePrice {
    /// HBD, smallest units.
    pub base_hbd_units: u64,
    /// HIVE, smallest units; never 0.
    pub quote_hive_units: u64,
}

impl HivePrice {
    /// Returns the price; `None` if a side is 0 (the feed of a new chain is `0/0`).
    #[must_use]
    pub const fn new(base_hbd_units: u64, quote_hive_units: u64) -> Option<Self> {
        if base_hbd_units == 0 || quote_hive_units == 0 {
            None
        } else {
            Some(Self { base_hbd_units, quote_hive_units })
        }
    }
}

/// The price of 1.000 HBD, in millionths of a US dollar; never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HbdPrice(u64);

impl HbdPrice {
    /// The price of HBD at its peg: one US dollar.
    pub const PEG: Self = Self(1_000_000);
    /// Maximum spread between the best bid and the best ask, percent of the bid.
    const SPREAD_MAX_PERCENT: u128 = 10;

    /// Returns the price of `micro_usd` millionths of a US dollar; `None` if it is 0.
    #[must_use]
    pub const fn of_micro_usd(micro_usd: u64) -> Option<Self> {
        if micro_usd == 0 { None } else { Some(Self(micro_usd)) }
    }

    /// Returns the price derived from the witness price of HIVE in US dollars and the midpoint of the best bid and ask
    /// of the internal market in HBD; `None` if the spread is too large.
    #[must_use]
    pub fn of_market(usd: HivePrice, bid: HivePrice, ask: HivePrice) -> Option<Self> {
        const NANO: u128 = 1_000_000_000;
        let nano = |price: HivePrice| u128::from(price.base_hbd_units) * NANO / u128::from(price.quote_hive_units);
        let (usd, bid, ask) = (nano(usd), nano(bid), nano(ask));
        if bid == 0 || ask > bid.saturating_mul(100 + Self::SPREAD_MAX_PERCENT) / 100 {
            return None;
        }
        let micro_usd = usd.checked_mul(2_000_000)? / (bid + ask);
        u64::try_from(micro_usd).ok().and_then(Self::of_micro_usd)
    }

    /// Returns the price in millionths of a US dollar.
    #[must_use]
    pub const fn micro_usd(self) -> u64 {
        self.0
    }

    /// Returns whether the price differs from the peg by at most `percent`.
    #[must_use]
    pub const fn is_within(self, percent: u64) -> bool {
        self.0.abs_diff(Self::PEG.0) <= Self::PEG.0 / 100 * percent
    }
}

/// Returns the value in US cents, rounded down. HIVE requires a price; HBD without a price counts as one US dollar.
#[must_use]
pub fn usd_cents(money: Money, hive_price: Option<HivePrice>, hbd_price: Option<HbdPrice>) -> Option<u64> {
    match money.currency {
        Currency::Hbd => {
            let micro_usd = u128::from(hbd_price.unwrap_or(HbdPrice::PEG).0);
            u64::try_from(u128::from(money.units) * micro_usd / 10_000_000).ok()
        }
        Currency::Hive => {
            let price = hive_price?;
            let cents =
                u128::from(money.units) * u128::from(price.base_hbd_units) / (u128::from(price.quote_hive_units) * 10);
            u64::try_from(cents).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requested_amount_is_plain_digits_within_the_limits() {
        for good in ["1", "1000", "999999999", "1000000000"] {
            assert_eq!(Money::parse(good, Currency::Hbd).map(|m| m.units.to_string()).as_deref(), Ok(good));
        }
        for bad in ["", "01", "1.5", "-1", "+1", "1e3", " 1", "1 ", "١", "0x1", "00"] {
            assert_eq!(Money::parse(bad, Currency::Hbd), Err(MoneyError::NotDigits), "{bad:?}");
        }
        for bad in ["0", "1000000001", "99999999999999999999999"] {
            assert_eq!(Money::parse(bad, Currency::Hbd), Err(MoneyError::OutOfRange), "{bad:?}");
        }
    }

    #[test]
    fn ledger_amounts_round_trip() {
        for text in ["0.001 HBD", "1.000 HIVE", "9223372036854775.807 HBD", "0.000 HIVE"] {
            assert_eq!(Money::parse_ledger(text).map(|m| m.to_string()).as_deref(), Ok(text));
        }
        for bad in [
            "1.00 HBD",
            "1.0000 HBD",
            "+1.000 HBD",
            "-0.001 HBD",
            ".500 HBD",
            "0001.000 HBD",
            "1.000  HBD",
            "1.000 SBD",
            "1.000 STEEM",
            "1,000 HBD",
            "1 HBD",
            "1.000HBD",
            "9223372036854775.808 HBD",
            "1.000 hbd",
            " 1.000 HBD",
        ] {
            assert_eq!(Money::parse_ledger(bad), Err(MoneyError::NotLedgerText), "{bad:?}");
        }
    }

    #[test]
    fn the_fee_is_rounded_down() {
        let fee = |percent: &str, units| FeePercent::parse(percent).map(|p| p.fee_of(units));
        assert_eq!(fee("1.5", 10_500), Some(157), "157.5 floors");
        assert_eq!(fee("0", 10_500), Some(0));
        assert_eq!(fee("100", 7), Some(7));
        assert_eq!(fee("0.0001", 999_999), Some(0));
        assert_eq!(fee("0.0001", 1_000_000), Some(1));
        assert_eq!(fee("1.5", u64::MAX), Some(276_701_161_105_643_274));
    }

    #[test]
    fn a_percentage_has_at_most_four_places() {
        for (text, shown) in [("1.5", "1.5"), ("0", "0"), ("0.0125", "0.0125"), ("100", "100"), ("2.50", "2.5")] {
            assert_eq!(FeePercent::parse(text).map(|p| p.to_string()).as_deref(), Some(shown));
        }
        for bad in ["", "-1", "1.", ".5", "1.00001", "100.0001", "1e1", "1,5", "101"] {
            assert_eq!(FeePercent::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn hbd_defaults_to_one_dollar_and_hive_requires_a_price() {
        assert_eq!(usd_cents(Money::new(10_500, Currency::Hbd), None, None), Some(1_050));
        assert_eq!(usd_cents(Money::new(10_500, Currency::Hive), None, None), None);
        assert_eq!(usd_cents(Money::new(10_500, Currency::Hive), HivePrice::new(258, 1_000), None), Some(270));
        assert_eq!(HivePrice::new(0, 0), None);
    }

    #[test]
    fn hbd_off_its_peg_is_valued_at_the_market_price() {
        let price = |base, quote| HivePrice::new(base, quote).unwrap();
        let usd = price(258, 1_000);
        let hbd = |bid, ask| HbdPrice::of_market(usd, price(bid, 1_000), price(ask, 1_000)).map(HbdPrice::micro_usd);
        assert_eq!(hbd(258, 258), Some(1_000_000));
        assert_eq!(hbd(516, 516), Some(500_000), "HIVE costs twice as many HBD as dollars");
        assert_eq!(hbd(129, 129), Some(2_000_000));
        assert_eq!(hbd(250, 266), Some(1_000_000), "the middle of bid and ask");
        assert_eq!(hbd(200, 221), None, "a market too thin to make a price");
        let half = HbdPrice::of_micro_usd(500_000);
        assert_eq!(usd_cents(Money::new(10_500, Currency::Hbd), None, half), Some(525));
        assert_eq!(usd_cents(Money::new(u64::MAX, Currency::Hbd), None, HbdPrice::of_micro_usd(u64::MAX)), None);
        let is_within = |micro_usd| HbdPrice::of_micro_usd(micro_usd).unwrap().is_within(5);
        assert_eq!([949_999, 950_000, 1_050_000, 1_050_001].map(is_within), [false, true, true, false]);
    }
}
