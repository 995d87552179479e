//! Formats amounts for each language of the checkout. The browser localizes dates and times, because it knows the
//! visitor's time zone.

use engine::money::Money;

use super::words::Lang;

impl Lang {
    /// Returns the direction of the script for the attribute `dir`.
    pub(crate) const fn direction(self) -> &'static str {
        match self {
            Self::Arabic => "rtl",
            _ => "ltr",
        }
    }

    /// Returns the separators of thousands and of decimals.
    const fn separators(self) -> (char, char) {
        match self {
            Self::English | Self::Korean | Self::Arabic => (',', '.'),
            Self::Spanish | Self::German | Self::Portuguese => ('.', ','),
            // A narrow no-break space.
            Self::French => ('\u{202f}', ','),
        }
    }

    /// Formats the number of an amount with all decimals of its currency, such as `1,250.000`.
    pub(crate) fn number(self, money: Money) -> String {
        let text = money.to_string();
        self.localized(text.split(' ').next().unwrap_or_default())
    }

    /// Formats an amount with its currency, such as `1,250.000 HBD`.
    pub(crate) fn money(self, money: Money) -> String {
        format!("{} {}", self.number(money), money.currency.code())
    }

    /// Formats US cents, such as `$1,250.00`.
    pub(crate) fn usd(self, cents: u64) -> String {
        let number = self.localized(&format!("{}.{:02}", cents / 100, cents % 100));
        match self {
            Self::English | Self::Korean => format!("${number}"),
            Self::Portuguese => format!("US$\u{a0}{number}"),
            Self::Spanish | Self::German | Self::French | Self::Arabic => format!("{number}\u{a0}$"),
        }
    }

    /// Replaces the decimal point of a plain number, and groups its thousands.
    fn localized(self, plain: &str) -> String {
        let (group, decimal) = self.separators();
        let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
        let mut text = String::with_capacity(plain.len() + 8);
        for (at, digit) in whole.chars().enumerate() {
            if at > 0 && (whole.len() - at).is_multiple_of(3) {
                text.push(group);
            }
            text.push(digit);
        }
        if !fraction.is_empty() {
            text.push(decimal);
            text.push_str(fraction);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use engine::money::Currency;

    use super::*;

    #[test]
    fn amounts_have_three_decimals_and_the_separators_of_the_language() {
        let money = |units| Money::new(units, Currency::Hbd);
        for (lang, small, large) in [
            (Lang::English, "12.500 HBD", "1,234,567.001 HBD"),
            (Lang::Spanish, "12,500 HBD", "1.234.567,001 HBD"),
            (Lang::German, "12,500 HBD", "1.234.567,001 HBD"),
            (Lang::French, "12,500 HBD", "1\u{202f}234\u{202f}567,001 HBD"),
            (Lang::Portuguese, "12,500 HBD", "1.234.567,001 HBD"),
            (Lang::Korean, "12.500 HBD", "1,234,567.001 HBD"),
            (Lang::Arabic, "12.500 HBD", "1,234,567.001 HBD"),
        ] {
            assert_eq!((lang.money(money(12_500)).as_str(), lang.money(money(1_234_567_001)).as_str()), (small, large));
        }
        assert_eq!(Lang::English.number(money(999_999)), "999.999");
        assert_eq!(Lang::German.number(money(1_000_000)), "1.000,000");
    }

    #[test]
    fn dollars_are_written_as_the_language_writes_them() {
        let written = [
            (Lang::English, "$1,250.05"),
            (Lang::Korean, "$1,250.05"),
            (Lang::Spanish, "1.250,05\u{a0}$"),
            (Lang::German, "1.250,05\u{a0}$"),
            (Lang::Portuguese, "US$\u{a0}1.250,05"),
            (Lang::Arabic, "1,250.05\u{a0}$"),
        ];
        for (lang, text) in written {
            assert_eq!(lang.usd(125_005), text);
        }
        assert_eq!(Lang::German.usd(0), "0,00\u{a0}$");
    }
}
