//! The price in a 402 response, validated strictly: a contradictory offer is never signed.

use engine::{
    account::AccountName,
    hive::{Asset, Transaction, Transfer},
    money::{Currency, Money},
    time::Timestamp,
    wallet::Spending,
    x402::{MAX_HEADER_BYTES, NETWORK, SCHEME, decode_header, encode_header, is_supported_network},
};
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

/// The extension with which a payer identifies its payment.
const IDENTIFIER: &str = "payment-identifier";

/// A quoted price on Hive.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::commands) struct Quote {
    /// 1 or 2.
    version: u8,
    /// The payee.
    pub(in crate::commands) pay_to: AccountName,
    /// The total amount.
    pub(in crate::commands) total: Money,
    /// The part for the fee account.
    fee: Option<Fee>,
    /// The required memo; without it, `x402:<nonce>`.
    memo: Option<String>,
    pub(in crate::commands) session: Option<String>,
    pub(in crate::commands) description: Option<String>,
    valid_before: Option<Timestamp>,
    timeout_seconds: Option<u64>,
    /// Fields that a payment of version 2 repeats.
    accept: Value,
    resource: Value,
    identifier: Value,
}

#[derive(Debug, Clone, PartialEq)]
struct Fee {
    account: AccountName,
    money: Money,
    memo: String,
}

/// Why an offer is not acceptable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unacceptable {
    /// A 402 without an offer.
    #[error("the 402 response has no readable requirements")]
    NoOffer,
    /// No offer is on Hive.
    #[error("there is no offer for {SCHEME} on {NETWORK}, only {offered}")]
    NoHiveOffer {
        /// The offered schemes and networks.
        offered: String,
    },
    /// A field is invalid or missing.
    #[error("the offer's {0} is wrong or missing")]
    Malformed(&'static str),
    /// Versions 1 and 2 require different payments.
    #[error("the headers contain two different offers")]
    Contradiction,
    /// The price exceeds the maximum.
    #[error("the price is {price}, more than {max}")]
    AboveMaximum {
        /// The price.
        price: Money,
        /// The maximum.
        max: Money,
    },
    /// The price is in a currency without a maximum.
    #[error("the price is {price}, not in {}", max.currency)]
    OtherCurrency {
        /// The price.
        price: Money,
        /// The maximum.
        max: Money,
    },
    /// The payer and the payee are the same.
    #[error("{0} would pay itself")]
    SelfPayment(AccountName),
    /// The offer has expired.
    #[error("the offer expired at {0}")]
    Expired(Timestamp),
    /// The payment header would be too large.
    #[error("the payment does not fit into a header")]
    TooLarge,
}

impl Unacceptable {
    pub(in crate::commands) const fn as_str(&self) -> &'static str {
        match self {
            Self::NoOffer => "no_offer",
            Self::NoHiveOffer { .. } => "no_hive_offer",
            Self::Malformed(_) => "malformed_offer",
            Self::Contradiction => "contradicting_offers",
            Self::AboveMaximum { .. } => "above_maximum",
            Self::OtherCurrency { .. } => "other_currency",
            Self::SelfPayment(_) => "self_payment",
            Self::Expired(_) => "offer_expired",
            Self::TooLarge => "too_large",
        }
    }
}

impl Quote {
    /// Parses the headers of both versions, and the body if there is no header of version 1. Version 2 is preferred; if
    /// both offer a payment on Hive, it must be the same. Of several offers on Hive returns the first in the maximum's
    /// currency, otherwise the first.
    pub(in crate::commands) fn read(
        headers: &HeaderMap,
        body: &[u8],
        currency: Currency,
    ) -> Result<Self, Unacceptable> {
        let header = |name: &'static str| -> Result<Option<Value>, Unacceptable> {
            let mut values = headers.get_all(name).iter();
            match (values.next(), values.next()) {
                (None, _) => Ok(None),
                (Some(value), None) => {
                    let json = value.to_str().ok().and_then(decode_header);
                    let json = json.and_then(|json| serde_json::from_slice(&json).ok());
                    json.map(Some).ok_or(Unacceptable::Malformed(name))
                }
                _ => Err(Unacceptable::Malformed(name)),
            }
        };
        let second = header("payment-required")?.filter(|json| json["x402Version"] == 2);
        let first = match header("x-payment")? {
            Some(json) => Some(json),
            None => serde_json::from_slice::<Value>(body).ok(),
        };
        let first = first.filter(|json| json["x402Version"] == 1);
        let mut offered = Vec::new();
        let second = second.map(|json| Self::of(&json, 2, currency, &mut offered)).transpose()?.flatten();
        let first = first.map(|json| Self::of(&json, 1, currency, &mut offered)).transpose()?.flatten();
        match (second, first) {
            (Some(second), Some(first)) if !second.is_same(&first) => Err(Unacceptable::Contradiction),
            (Some(second), first) => {
                // Only version 1 has the expiry of the offer.
                let valid_before = first.and_then(|first| first.valid_before);
                Ok(Self { valid_before, ..second })
            }
            (None, Some(first)) => Ok(first),
            (None, None) if offered.is_empty() => Err(Unacceptable::NoOffer),
            (None, None) => Err(Unacceptable::NoHiveOffer { offered: offered.join(", ") }),
        }
    }

    /// Parses the requirements of a tool's result. Of several offers on Hive returns the first in `currency`, otherwise the
    /// first.
    pub(in crate::commands) fn read_required(json: &Value, currency: Currency) -> Result<Self, Unacceptable> {
        let version = match json["x402Version"].as_u64() {
            Some(1) => 1,
            Some(2) => 2,
            _ => return Err(Unacceptable::Malformed("x402Version")),
        };
        let mut offered = Vec::new();
        match Self::of(json, version, currency, &mut offered)? {
            Some(quote) => Ok(quote),
            None if offered.is_empty() => Err(Unacceptable::NoOffer),
            None => Err(Unacceptable::NoHiveOffer { offered: offered.join(", ") }),
        }
    }

    fn of(
        json: &Value,
        version: u8,
        currency: Currency,
        offered: &mut Vec<String>,
    ) -> Result<Option<Self>, Unacceptable> {
        let accepts = json["accepts"].as_array().ok_or(Unacceptable::Malformed("accepts"))?;
        let text = |accept: &Value, key: &str| accept[key].as_str().unwrap_or_default().to_owned();
        let is_ours = |accept: &&Value| {
            text(accept, "scheme") == SCHEME && accept["network"].as_str().is_some_and(is_supported_network)
        };
        let is_wanted = |accept: &&Value| {
            let amount = money(&accept["maxAmountRequired"]).map(|money| money.currency);
            accept["asset"].as_str().and_then(Currency::parse).or(amount) == Some(currency)
        };
        let ours = || accepts.iter().filter(is_ours);
        let Some(accept) = ours().find(is_wanted).or_else(|| ours().next()) else {
            offered.extend(
                accepts.iter().map(|accept| format!("{} on {}", text(accept, "scheme"), text(accept, "network"))),
            );
            return Ok(None);
        };
        let mut quote = Self::of_accept(accept, version)?;
        quote.resource = json["resource"].clone();
        quote.identifier = json["extensions"][IDENTIFIER].clone();
        if version == 2 {
            quote.description = json["resource"]["description"].as_str().map(str::to_owned);
        }
        Ok(Some(quote))
    }

    fn of_accept(accept: &Value, version: u8) -> Result<Self, Unacceptable> {
        let name = |json: &Value, what| account(json).ok_or(Unacceptable::Malformed(what));
        let asset = accept["asset"].as_str();
        let total = match version {
            2 => {
                let currency = asset.and_then(Currency::parse).ok_or(Unacceptable::Malformed("asset"))?;
                accept["amount"].as_str().and_then(|digits| Money::parse(digits, currency).ok())
            }
            _ => money(&accept["maxAmountRequired"]).filter(|m| asset.is_none_or(|asset| asset == m.currency.code())),
        };
        let total = total.ok_or(Unacceptable::Malformed("amount"))?;
        let extra = &accept["extra"];
        let session = optional(&extra["sessionId"], "extra.sessionId")?;
        let memo = match (optional(&extra["memo"], "extra.memo")?, &session) {
            // The memo identifies the session.
            (Some(memo), Some(session)) if memo != format!("pos-{session}") => {
                return Err(Unacceptable::Malformed("extra.memo"));
            }
            (Some(memo), _) => Some(memo),
            (None, session) => session.as_ref().map(|session| format!("pos-{session}")),
        };
        let pay_to = name(&accept["payTo"], "payTo")?;
        let fee = match &extra["feeAccount"] {
            Value::Null if extra["feeAmount"].is_null() && extra["netAmount"].is_null() => None,
            fee_account => {
                let part = |key: &str, what| {
                    let money = money(&extra[key]).filter(|money| money.currency == total.currency && money.units > 0);
                    money.ok_or(Unacceptable::Malformed(what))
                };
                let (fee, net) = (part("feeAmount", "extra.feeAmount")?, part("netAmount", "extra.netAmount")?);
                if fee.units.checked_add(net.units) != Some(total.units) {
                    return Err(Unacceptable::Malformed("extra.netAmount"));
                }
                let account = name(fee_account, "extra.feeAccount")?;
                if account == pay_to {
                    return Err(Unacceptable::Malformed("extra.feeAccount"));
                }
                let session = session.as_ref().ok_or(Unacceptable::Malformed("extra.sessionId"))?;
                let memo = optional(&extra["feeMemo"], "extra.feeMemo")?.unwrap_or_else(|| format!("fee-{session}"));
                Some(Fee { account, money: fee, memo })
            }
        };
        let valid_before = match optional(&accept["validBefore"], "validBefore")? {
            Some(text) => Some(Timestamp::parse(&text).ok_or(Unacceptable::Malformed("validBefore"))?),
            None => None,
        };
        Ok(Self {
            version,
            pay_to,
            total,
            fee,
            memo,
            session,
            description: accept["description"].as_str().map(str::to_owned),
            valid_before,
            timeout_seconds: accept["maxTimeoutSeconds"].as_u64(),
            accept: accept.clone(),
            resource: Value::Null,
            identifier: Value::Null,
        })
    }

    fn is_same(&self, other: &Self) -> bool {
        let what = |quote: &Self| (quote.pay_to, quote.total, quote.fee.clone(), quote.memo.clone());
        what(self) == what(other)
    }

    /// Checks whether `account` can pay this, at most `max`, now.
    pub(in crate::commands) fn check(
        &self,
        account: &AccountName,
        max: Money,
        now: Timestamp,
    ) -> Result<(), Unacceptable> {
        let price = self.total;
        if price.currency != max.currency {
            return Err(Unacceptable::OtherCurrency { price, max });
        }
        if price.units > max.units {
            return Err(Unacceptable::AboveMaximum { price, max });
        }
        if self.pay_to == *account || self.fee.as_ref().is_some_and(|fee| fee.account == *account) {
            return Err(Unacceptable::SelfPayment(*account));
        }
        // The payer cannot encrypt a memo, and the memo of a session is never encrypted.
        let is_encrypted = |memo: &String| memo.starts_with('#');
        if self.memo.as_ref().is_some_and(is_encrypted) {
            return Err(Unacceptable::Malformed("extra.memo"));
        }
        if self.timeout_seconds == Some(0) {
            return Err(Unacceptable::Expired(now));
        }
        self.check_time(now)
    }

    /// Checks whether the offer is valid at a time of the system clock or of the ledger.
    pub(in crate::commands) fn check_time(&self, now: Timestamp) -> Result<(), Unacceptable> {
        match self.valid_before {
            Some(until) if until <= now => Err(Unacceptable::Expired(until)),
            _ => Ok(()),
        }
    }

    /// Returns the transfers of the payment, as one transaction.
    pub(in crate::commands) fn transfers(&self, payer: &AccountName, nonce: &str) -> Vec<Transfer> {
        let transfer = |to: &AccountName, money: Money, memo: String| Transfer {
            from: payer.to_string(),
            to: to.to_string(),
            amount: Asset::from(money),
            memo,
        };
        let fee_units = self.fee.as_ref().map_or(0, |fee| fee.money.units);
        let net = Money::new(self.total.units - fee_units, self.total.currency);
        let memo = self.memo.clone().unwrap_or_else(|| format!("x402:{nonce}"));
        let net = transfer(&self.pay_to, net, memo);
        let fee = self.fee.as_ref().map(|fee| transfer(&fee.account, fee.money, fee.memo.clone()));
        [net].into_iter().chain(fee).collect()
    }

    /// Returns the spending of a wallet: the payee's part first, then that of the fee account.
    pub(in crate::commands) fn spending(&self) -> Spending {
        let fee = self.fee.as_ref();
        let net = self.total.units - fee.map_or(0, |fee| fee.money.units);
        let parts = [(self.pay_to, net)].into_iter().chain(fee.map(|fee| (fee.account, fee.money.units)));
        Spending { currency: self.total.currency, parts: parts.collect() }
    }

    /// Returns the name of the payment header and its payload as JSON; the transaction may be unsigned.
    pub(in crate::commands) fn payload(&self, transaction: &Transaction, nonce: &str) -> (&'static str, Value) {
        let payload = json!({ "signedTransaction": transaction_json(transaction), "nonce": nonce });
        if self.version == 1 {
            let network = &self.accept["network"];
            let json = json!({ "x402Version": 1, "scheme": SCHEME, "network": network, "payload": payload });
            return ("x-payment", json);
        }
        let mut json = json!({ "x402Version": 2, "accepted": self.accept, "payload": payload });
        if !self.resource.is_null() {
            json["resource"] = self.resource.clone();
        }
        if self.identifier["info"].is_object() {
            let mut identifier = self.identifier.clone();
            identifier["info"]["id"] = format!("pay_{nonce}").into();
            json["extensions"][IDENTIFIER] = identifier;
        }
        ("payment-signature", json)
    }

    /// Returns the name and value of the payment header.
    pub(in crate::commands) fn header(
        &self,
        transaction: &Transaction,
        nonce: &str,
    ) -> Result<(&'static str, String), Unacceptable> {
        let (name, payload) = self.payload(transaction, nonce);
        Ok((name, header_value(&payload)?))
    }

    /// Returns the price, for scripts.
    pub(in crate::commands) fn describe(&self) -> Value {
        let mut json = json!({
            "x402Version": self.version, "network": NETWORK, "payTo": self.pay_to.as_str(),
            "amount": self.total.to_string(), "sessionId": self.session, "description": self.description,
        });
        if let Some(fee) = &self.fee {
            json["feeAccount"] = fee.account.as_str().into();
            json["feeAmount"] = fee.money.to_string().into();
        }
        if let Some(until) = self.valid_before {
            json["validBefore"] = until.to_string().into();
        }
        json
    }

    /// Returns the price, for people. Control characters in texts of the server are escaped.
    pub(in crate::commands) fn sentence(&self) -> String {
        let mut text = format!("{} to {}", self.total, self.pay_to);
        if let Some(fee) = &self.fee {
            text.push_str(&format!(" (of which {} to {})", fee.money, fee.account));
        }
        if let Some(description) = &self.description {
            text.push_str(&format!(" for {description:?}"));
        }
        text
    }
}

/// Returns a payload as the value of its header.
///
/// # Errors
/// [`Unacceptable::TooLarge`] above the limit of a payment header.
pub(in crate::commands) fn header_value(payload: &Value) -> Result<String, Unacceptable> {
    let value = encode_header(&payload.to_string());
    if value.len() > MAX_HEADER_BYTES { Err(Unacceptable::TooLarge) } else { Ok(value) }
}

/// Returns a transaction in the condenser's JSON.
pub(in crate::commands) fn transaction_json(transaction: &Transaction) -> Value {
    serde_json::from_str(&transaction.to_condenser_json()).expect("a transaction is written as JSON")
}

fn money(json: &Value) -> Option<Money> {
    json.as_str().and_then(|text| Money::parse_ledger(text).ok()).filter(|money| money.units > 0)
}

fn account(json: &Value) -> Option<AccountName> {
    json.as_str().and_then(|text| AccountName::parse(text).ok())
}

fn optional(json: &Value, what: &'static str) -> Result<Option<String>, Unacceptable> {
    match json {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        _ => Err(Unacceptable::Malformed(what)),
    }
}

#[cfg(test)]
mod tests;
