//! Reads the parameters of control methods.

use std::time::Duration;

use engine::{
    account::AccountName,
    hive::PublicKey,
    money::{HivePrice, Money},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::failure::Failure;

/// Reads the parameters of a control method.
pub(super) fn read<T: DeserializeOwned>(params: &Value) -> Result<T, Failure> {
    let params = if params.as_array().is_some_and(Vec::is_empty) { &json!({}) } else { params };
    T::deserialize(params).map_err(|error| Failure::params(&error.to_string()))
}

/// Returns the error of an invalid parameter.
pub(super) fn wrong(what: &str) -> Failure {
    Failure::params(what)
}

/// Returns a duration in milliseconds.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Reads a price of HIVE.
pub(super) fn price(base: &str, quote: &str) -> Result<HivePrice, Failure> {
    use engine::money::Currency::{Hbd, Hive};
    let (base, quote) = (money(base)?, money(quote)?);
    let price = HivePrice::new(base.units, quote.units).filter(|_| (base.currency, quote.currency) == (Hbd, Hive));
    price.ok_or_else(|| wrong("base is HBD, quote is HIVE, neither is zero"))
}

/// Reads an account name.
pub(super) fn name(text: &str) -> Result<AccountName, Failure> {
    AccountName::parse(text).map_err(|error| wrong(&format!("the account name `{text}` {error}")))
}

/// Reads an amount.
pub(super) fn money(text: &str) -> Result<Money, Failure> {
    Money::parse_ledger(text).map_err(|error| wrong(&format!("the amount `{text}` {error}")))
}

/// Reads a public key.
pub(super) fn public(text: &str) -> Result<PublicKey, Failure> {
    PublicKey::parse(text).map_err(|error| wrong(&format!("the key {error}")))
}
