//! The values that records are made of: amounts, instants, percentages.

use std::fmt::Display;

use engine::{
    money::{Currency, Money},
    time::Timestamp,
};
use proto::v1;
use serde::{Serialize, Serializer};

/// A value that is written as its text.
pub(crate) struct Text<T>(pub(crate) T);

impl<T: Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// Reads a currency of the wire. A number from the future reads as HBD; the engine refuses to make such a payment.
pub(crate) fn currency(wire: i32) -> Currency {
    match v1::Currency::try_from(wire) {
        Ok(v1::Currency::Hive) => Currency::Hive,
        _ => Currency::Hbd,
    }
}

/// Writes a currency for the wire.
pub(crate) const fn currency_to_wire(currency: Currency) -> v1::Currency {
    match currency {
        Currency::Hive => v1::Currency::Hive,
        Currency::Hbd => v1::Currency::Hbd,
    }
}

/// Reads an instant of the wire.
pub(crate) fn instant(wire: impl Into<Option<proto::time::Timestamp>>) -> Timestamp {
    Timestamp::from_millis(wire.into().and_then(proto::time::to_millis).unwrap_or(0))
}

/// Writes an instant for the wire.
pub(crate) fn instant_to_wire(instant: Timestamp) -> proto::time::Timestamp {
    proto::time::from_millis(instant.millis())
}

/// A plain amount of a transfer or refund.
#[derive(Serialize)]
pub(crate) struct Sum {
    value: Text<u64>,
    formatted: Text<Money>,
    currency: &'static str,
}

impl Sum {
    pub(crate) fn of(money: Option<&v1::Money>) -> Self {
        let money =
            money.map_or(Money::new(0, Currency::Hbd), |money| Money::new(money.units, currency(money.currency)));
        Self { value: Text(money.units), formatted: Text(money), currency: money.currency.code() }
    }
}

/// Writes a percentage as the shortest JSON number.
pub(crate) fn percent(ten_thousandths: u32) -> serde_json::Number {
    let text = engine::money::FeePercent::from_ten_thousandths(ten_thousandths).unwrap_or_default().to_string();
    text.parse().unwrap_or_else(|_| 0.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_the_shortest_number() {
        for (ten_thousandths, text) in [(15_000, "1.5"), (0, "0"), (125, "0.0125"), (1_000_000, "100")] {
            assert_eq!(percent(ten_thousandths).to_string(), text);
        }
    }
}
