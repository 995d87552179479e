//! Values of records: amounts, times, percentages.

use engine::{
    money::{Currency, Money},
    time::Timestamp,
};
use proto::{ApiError, Reason, v1};
use serde::Serialize;
use tracing::error;
use utoipa::ToSchema;

use super::schema::{Code, Formatted, Text, Units};

/// Reads a currency of an engine's response.
///
/// # Errors
/// `internal` if the engine returns no currency, or one that this version does not know.
pub(crate) fn currency(wire: i32) -> Result<Currency, ApiError> {
    match v1::Currency::try_from(wire) {
        Ok(v1::Currency::Hive) => Ok(Currency::Hive),
        Ok(v1::Currency::Hbd) => Ok(Currency::Hbd),
        Ok(v1::Currency::Unspecified) | Err(_) => {
            error!("the engine sent an amount in the unknown currency {wire}");
            Err(Reason::Internal.into())
        }
    }
}

/// Reads an amount of an engine's response.
///
/// # Errors
/// `internal` if the amount is missing or its currency is unknown.
pub(crate) fn money(wire: Option<&v1::Money>) -> Result<Money, ApiError> {
    let Some(wire) = wire else {
        error!("the engine sent a record without its amount");
        return Err(Reason::Internal.into());
    };
    Ok(Money::new(wire.units, currency(wire.currency)?))
}

/// Reads the amount of a payment.
///
/// # Errors
/// `internal` if its currency is unknown.
pub(crate) fn price(payment: &v1::Payment) -> Result<Money, ApiError> {
    Ok(Money::new(payment.amount_units, currency(payment.currency)?))
}

/// Converts a currency for a message.
pub(crate) const fn currency_to_wire(currency: Currency) -> v1::Currency {
    match currency {
        Currency::Hive => v1::Currency::Hive,
        Currency::Hbd => v1::Currency::Hbd,
    }
}

/// Converts a time of a message.
pub(crate) fn instant(wire: impl Into<Option<proto::time::Timestamp>>) -> Timestamp {
    Timestamp::from_millis(wire.into().and_then(proto::time::to_millis).unwrap_or(0))
}

/// Converts a time for a message.
pub(crate) fn instant_to_wire(instant: Timestamp) -> proto::time::Timestamp {
    proto::time::from_millis(instant.millis())
}

/// An amount of a transfer or refund.
#[derive(Serialize, ToSchema)]
pub(crate) struct Sum {
    value: Units,
    formatted: Formatted,
    currency: Code,
}

impl Sum {
    /// # Errors
    /// `internal` if the amount is missing or its currency is unknown.
    pub(crate) fn of(wire: Option<&v1::Money>) -> Result<Self, ApiError> {
        let money = money(wire)?;
        Ok(Self { value: Text(money.units), formatted: Text(money), currency: Text(money.currency) })
    }
}

/// Formats a percentage as the shortest JSON number.
pub(crate) fn percent(ten_thousandths: u32) -> serde_json::Number {
    let text = engine::money::FeePercent::from_ten_thousandths(ten_thousandths).unwrap_or_default().to_string();
    text.parse().unwrap_or_else(|_| 0.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_known_currency_of_the_engine_is_read() {
        assert_eq!(currency(v1::Currency::Hive.into()).ok(), Some(Currency::Hive));
        assert_eq!(currency(v1::Currency::Hbd.into()).ok(), Some(Currency::Hbd));
        for wire in [0, 3, 7, -1] {
            assert_eq!(currency(wire).expect_err("an unknown currency").reason, Reason::Internal);
            assert!(money(Some(&v1::Money { units: 1, currency: wire })).is_err());
            assert!(price(&v1::Payment { currency: wire, ..v1::Payment::default() }).is_err());
        }
        assert_eq!(money(None).expect_err("no amount").reason, Reason::Internal);
    }

    #[test]
    fn a_percentage_is_the_shortest_number() {
        for (ten_thousandths, text) in [(15_000, "1.5"), (0, "0"), (125, "0.0125"), (1_000_000, "100")] {
            assert_eq!(percent(ten_thousandths).to_string(), text);
        }
    }
}
