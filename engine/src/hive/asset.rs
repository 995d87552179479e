//! Amounts on the chain: signed 64-bit units of one of three assets.

use std::fmt;

use crate::{
    hive::{
        DecodeError, Fault, Form, Pack,
        field::Field,
        json::{Json, write_text},
        pack::{Reader, Writer},
    },
    money::{Currency, Money},
};

/// The assets of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Symbol {
    /// HIVE, 3 decimals; STEEM in legacy bytes.
    Hive,
    /// HBD, 3 decimals; SBD in legacy bytes.
    Hbd,
    /// Vesting shares, 6 decimals.
    Vests,
}

impl Symbol {
    const ALL: [Self; 3] = [Self::Hive, Self::Hbd, Self::Vests];

    const fn name(self) -> &'static str {
        match self {
            Self::Hive => "HIVE",
            Self::Hbd => "HBD",
            Self::Vests => "VESTS",
        }
    }

    /// Returns the number of decimals.
    #[must_use]
    pub const fn precision(self) -> usize {
        match self {
            Self::Hive | Self::Hbd => 3,
            Self::Vests => 6,
        }
    }

    /// Returns the numeric asset identifier (NAI) with its check digit.
    #[must_use]
    pub const fn nai(self) -> &'static str {
        match self {
            Self::Hive => "@@000000021",
            Self::Hbd => "@@000000013",
            Self::Vests => "@@000000037",
        }
    }

    const fn legacy_bytes(self) -> [u8; 8] {
        match self {
            Self::Hive => *b"\x03STEEM\0\0",
            Self::Hbd => *b"\x03SBD\0\0\0\0",
            Self::Vests => *b"\x06VESTS\0\0",
        }
    }

    /// ((99 999 999 + n) << 5) | precision, with n: HBD 1, HIVE 2, VESTS 3 (hived: `asset_symbol.hpp`).
    const fn hf26_bytes(self) -> [u8; 4] {
        match self {
            Self::Hive => 3_200_000_035u32.to_le_bytes(),
            Self::Hbd => 3_200_000_003u32.to_le_bytes(),
            Self::Vests => 3_200_000_070u32.to_le_bytes(),
        }
    }
}

/// An amount of one asset, in its smallest unit. May be zero or negative; each operation validates its own amounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Asset {
    /// Smallest units.
    pub units: i64,
    /// The asset.
    pub symbol: Symbol,
}

impl Asset {
    /// Returns the amount as money, if it is liquid and not negative.
    #[must_use]
    pub fn money(self) -> Option<Money> {
        let currency = match self.symbol {
            Symbol::Hive => Currency::Hive,
            Symbol::Hbd => Currency::Hbd,
            Symbol::Vests => return None,
        };
        Some(Money::new(u64::try_from(self.units).ok()?, currency))
    }

    /// Parses `1.000 HBD`.
    ///
    /// hived adds the fraction after a minus sign (it parses `-1.500` as -0.500), so that only negative amounts without
    /// a fraction are unambiguous and accepted.
    ///
    /// # Errors
    /// Anything but the canonical form; STEEM and SBD as [`Fault::ObsoleteSymbol`].
    pub fn parse(text: &str) -> Result<Self, DecodeError> {
        const WANTED: Fault = Fault::Wanted { wanted: "an amount like `1.000 HBD`" };
        let (number, name) = text.split_once(' ').ok_or(WANTED)?;
        let (symbol, obsolete) = match name {
            "STEEM" => (Symbol::Hive, true),
            "SBD" => (Symbol::Hbd, true),
            _ => (Symbol::ALL.into_iter().find(|symbol| symbol.name() == name).ok_or(WANTED)?, false),
        };
        let (negative, digits) = number.strip_prefix('-').map_or((false, number), |digits| (true, digits));
        let (whole, fraction) = digits.split_once('.').ok_or(WANTED)?;
        let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !all_digits(whole)
            || !all_digits(fraction)
            || fraction.len() != symbol.precision()
            || (whole.len() > 1 && whole.starts_with('0'))
        {
            return Err(WANTED.into());
        }
        let units: i64 = format!("{whole}{fraction}").parse().map_err(|_| WANTED)?;
        if negative && (whole == "0" || fraction.bytes().any(|b| b != b'0')) {
            return Err(WANTED.into());
        }
        if obsolete {
            return Err(Fault::ObsoleteSymbol.into());
        }
        Ok(Self { units: if negative { -units } else { units }, symbol })
    }
}

impl From<Money> for Asset {
    fn from(money: Money) -> Self {
        let symbol = match money.currency {
            Currency::Hive => Symbol::Hive,
            Currency::Hbd => Symbol::Hbd,
        };
        // The supply of each asset is far below 2^63; the chain rejects larger amounts.
        Self { units: i64::try_from(money.units).unwrap_or(i64::MAX), symbol }
    }
}

/// Formats as in the condenser API, `1.000 HBD`.
impl fmt::Display for Asset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = self.symbol.precision();
        let scale = 10u64.pow(if places == 3 { 3 } else { 6 });
        let (sign, units) = (if self.units < 0 { "-" } else { "" }, self.units.unsigned_abs());
        write!(f, "{sign}{}.{:0places$} {}", units / scale, units % scale, self.symbol.name())
    }
}

impl Field for Asset {
    fn pack(&self, writer: &mut Writer) {
        writer.put(&self.units.to_le_bytes());
        match writer.pack {
            Pack::Legacy => writer.put(&self.symbol.legacy_bytes()),
            Pack::Hf26 => writer.put(&self.symbol.hf26_bytes()),
        }
    }

    /// Decodes either form of symbol, distinguished by its first 4 bytes, as hived does.
    fn unpack(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let units = i64::from_le_bytes(reader.array()?);
        let head: [u8; 4] = reader.array()?;
        if let Some(symbol) = Symbol::ALL.into_iter().find(|symbol| symbol.hf26_bytes() == head) {
            return Ok(Self { units, symbol });
        }
        let tail: [u8; 4] = reader.array()?;
        Symbol::ALL
            .into_iter()
            .find(|symbol| symbol.legacy_bytes() == [head, tail].concat()[..])
            .map(|symbol| Self { units, symbol })
            .ok_or_else(|| Fault::Wanted { wanted: "HIVE, HBD or VESTS" }.into())
    }

    fn read(json: &Json, form: Form) -> Result<Self, DecodeError> {
        if form == Form::Condenser {
            return Self::parse(json.text()?);
        }
        let nai = json.member("nai")?.text().map_err(|e| e.inside("nai"))?;
        let symbol = Symbol::ALL
            .into_iter()
            .find(|symbol| symbol.nai() == nai)
            .ok_or(Fault::Wanted { wanted: "the asset number of HIVE, HBD or VESTS" })
            .map_err(|fault| DecodeError::from(fault).inside("nai"))?;
        let precision: usize = json.member("precision")?.whole("a precision").map_err(|e| e.inside("precision"))?;
        if precision != symbol.precision() {
            return Err(DecodeError::from(Fault::Wanted { wanted: "the asset's own precision" }).inside("precision"));
        }
        let amount = json.member("amount")?;
        let text = amount.text().map_err(|e| e.inside("amount"))?;
        let units = text.parse::<i64>().ok().filter(|units| units.to_string() == text);
        let wanted = Fault::Wanted { wanted: "a string of digits within 64 bits" };
        units.map(|units| Self { units, symbol }).ok_or_else(|| DecodeError::from(wanted).inside("amount"))
    }

    fn write(&self, out: &mut String, form: Form) {
        match form {
            Form::Condenser => write_text(out, &self.to_string()),
            Form::Hf26 => out.push_str(&format!(
                r#"{{"amount":"{}","precision":{},"nai":"{}"}}"#,
                self.units,
                self.symbol.precision(),
                self.symbol.nai()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_unambiguous_negative_amounts_are_parsed() {
        assert_eq!(Asset::parse("-1.000 HBD"), Ok(Asset { units: -1_000, symbol: Symbol::Hbd }));
        for text in ["-1.500 HBD", "-0.001 HBD", "-0.000 HBD", "--1.000 HBD", "+1.000 HBD"] {
            assert!(Asset::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn obsolete_asset_names_are_refused() {
        for text in ["1.000 STEEM", "1.000 SBD"] {
            assert_eq!(Asset::parse(text), Err(Fault::ObsoleteSymbol.into()));
        }
    }

    proptest! {
        #[test]
        fn an_amount_reads_back_in_every_form(units in 0..=i64::MAX, symbol in 0..3usize) {
            let asset = Asset { units, symbol: Symbol::ALL[symbol] };
            prop_assert_eq!(Asset::parse(&asset.to_string()), Ok(asset));
            for form in [Form::Condenser, Form::Hf26] {
                let mut text = String::new();
                asset.write(&mut text, form);
                prop_assert_eq!(Asset::read(&Json::parse(text.as_bytes())?, form), Ok(asset));
            }
            for pack in Pack::ALL {
                let mut writer = Writer::new(pack);
                asset.pack(&mut writer);
                prop_assert_eq!(Asset::unpack(&mut Reader::new(&writer.bytes)), Ok(asset));
            }
        }

        #[test]
        fn parsed_amounts_round_trip(text in "-?[0-9]{0,4}\\.?[0-9]{0,4} ?(HIVE|HBD|VESTS)") {
            if let Ok(asset) = Asset::parse(&text) {
                prop_assert_eq!(asset.to_string(), text);
            }
        }
    }
}
