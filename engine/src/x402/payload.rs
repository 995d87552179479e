//! What a payer hands in: read strictly, whichever version it is written in.

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
    prelude::BASE64_STANDARD,
};

use super::{NETWORK, Reason, Refused, SCHEME, is_supported_network};
use crate::{
    account::AccountName,
    hive::{DecodeError, Fault, Transaction, json::Json},
    money::{Currency, Money},
    mutant, text,
    time::Timestamp,
};

/// Bytes of a payment header at most.
pub const MAX_HEADER_BYTES: usize = 16 * 1024;
/// Characters of a resource.
const MAX_RESOURCE_CHARS: usize = 2_048;
/// Bytes of a nonce.
const MAX_NONCE_BYTES: usize = 256;

/// The version a payload is written in. It decides how strict the amount is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Transfers of at least the amount.
    V1,
    /// Transfers of exactly the amount.
    V2,
}

impl Version {
    /// Returns the number on the wire.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }
}

/// A payment header that is not even JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Longer than [`MAX_HEADER_BYTES`].
    #[error("longer than {MAX_HEADER_BYTES} bytes")]
    TooLong,
    /// Not base64, or not JSON inside.
    #[error("not base64 of a JSON object")]
    Malformed,
}

/// A payment as its payer hands it in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentPayload {
    /// The version.
    pub version: Version,
    /// The signed transaction.
    pub transaction: Transaction,
    /// The payer's nonce, 1 to 256 bytes.
    pub nonce: String,
    /// The payer's own name for the payment (extension `payment-identifier`), where it follows the rules of one.
    pub identifier: Option<String>,
    /// What the payer says it accepted (version 2).
    pub accepted: Option<AcceptedRequirements>,
}

/// The requirements a version 2 payer says it accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedRequirements {
    /// As the payer wrote it: digits of the smallest unit, or `0.050 HBD`.
    pub amount: String,
    /// The currency's code.
    pub asset: String,
    /// Who is to be paid.
    pub pay_to: String,
}

/// Requirements that a caller brings along, instead of a session of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirements {
    /// How much.
    pub amount: Money,
    /// To whom.
    pub pay_to: AccountName,
    /// What for, in the words of the server that asks; opaque to us. The payer has no say in it.
    pub resource: String,
    /// Until when, where they say so.
    pub valid_before: Option<Timestamp>,
}

/// Reads a header's base64 as people write it: the standard alphabet or the URL-safe one, with or without padding,
/// nothing else.
#[must_use]
pub fn decode_header(text: &str) -> Option<Vec<u8>> {
    const CONFIG: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, CONFIG);
    const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, CONFIG);
    STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text)).ok()
}

/// Writes a header's JSON as base64, in the one alphabet every client reads.
#[must_use]
pub fn encode_header(json: &str) -> String {
    BASE64_STANDARD.encode(json)
}

impl PaymentPayload {
    /// Reads the value of an `x-payment` or `PAYMENT-SIGNATURE` header.
    ///
    /// # Errors
    /// [`HeaderError`] where it is not JSON in base64; a [`Refused`] inside where the JSON is no payment.
    pub fn decode_header(value: &str) -> Result<Result<Self, Refused>, HeaderError> {
        if value.len() > MAX_HEADER_BYTES {
            return Err(HeaderError::TooLong);
        }
        let bytes = decode_header(value).ok_or(HeaderError::Malformed)?;
        // Not JSON at all is the transport's fault; JSON that is no payment is the payer's.
        let json = Json::parse_with_fractions(&bytes).map_err(|_| HeaderError::Malformed)?;
        if !matches!(json, Json::Map(_)) {
            return Err(HeaderError::Malformed);
        }
        Ok(Self::read(&json))
    }

    /// Reads the JSON of a payload.
    ///
    /// # Errors
    /// [`Refused`] says what about it is no payment.
    pub fn parse(json: &[u8]) -> Result<Self, Refused> {
        Self::read(&Json::parse_with_fractions(json).map_err(invalid_payload)?)
    }

    pub(super) fn read(json: &Json) -> Result<Self, Refused> {
        let version =
            match json.member("x402Version").and_then(|v| v.whole::<i128>("1 or 2")).map_err(invalid_payload)? {
                1 => Version::V1,
                2 => Version::V2,
                other => {
                    return Err(Refused::new(
                        Reason::InvalidX402Version,
                        format_args!("x402Version {other} is neither 1 nor 2"),
                    ));
                }
            };
        let accepted = match version {
            Version::V1 => None,
            Version::V2 => Some(json.member("accepted").map_err(invalid_payload)?),
        };
        // Version 2 writes scheme and network once, in what was accepted.
        let says = accepted.unwrap_or(json);
        let text = |json: &Json, key: &'static str| {
            json.member(key)
                .and_then(Json::text)
                .map(str::to_owned)
                .map_err(|error| invalid_payload(error.inside_once(key)))
        };
        check_scheme(&text(says, "scheme")?)?;
        check_network(&text(says, "network")?)?;
        let accepted = accepted
            .map(|accepted| {
                let amount = accepted.member("amount").and_then(amount_text).map_err(invalid_payload)?;
                // An amount such as `0.050 HBD` names its asset itself.
                let asset = match (accepted.get("asset"), Money::parse_ledger(&amount)) {
                    (Ok(None | Some(Json::Null)), Ok(money)) => money.currency.code().to_owned(),
                    _ => text(accepted, "asset")?,
                };
                Ok(AcceptedRequirements { amount, asset, pay_to: text(accepted, "payTo")? })
            })
            .transpose()?;
        let payload = json.member("payload").map_err(invalid_payload)?;
        let nonce = text(payload, "nonce")?;
        if nonce.is_empty() || nonce.len() > MAX_NONCE_BYTES {
            return Err(Refused::new(Reason::InvalidPayload, "nonce must have 1 to 256 bytes"));
        }
        let transaction = payload.member("signedTransaction").map_err(invalid_payload)?;
        let transaction = Transaction::read(transaction).map_err(|error| {
            let reason = match error.fault {
                // An operation that we cannot even read is no transfer.
                Fault::UnknownOperation { .. } => Reason::Operations,
                _ => Reason::InvalidPayload,
            };
            Refused::new(reason, error.inside("signedTransaction"))
        })?;
        let identifier = identifier_of(json).filter(|_| !mutant!("identifier-not-read")).map(str::to_owned);
        Ok(Self { version, transaction, nonce, identifier, accepted })
    }
}

impl Requirements {
    /// Reads the JSON of requirements, of either version.
    ///
    /// # Errors
    /// [`Refused`] with [`Reason::InvalidPaymentRequirements`], or what scheme and network are wrong for.
    pub fn parse(json: &[u8]) -> Result<Self, Refused> {
        Self::read(&Json::parse_with_fractions(json).map_err(|error| invalid_requirements(error.to_string()))?)
    }

    pub(super) fn read(json: &Json) -> Result<Self, Refused> {
        let invalid = invalid_requirements;
        let optional = |key: &'static str| match json.get(key) {
            Ok(None | Some(Json::Null)) => Ok(None),
            Ok(Some(value)) => value.text().map(Some).map_err(|error| invalid(format!("{key} {error}"))),
            Err(error) => Err(invalid(error.to_string())),
        };
        let needed = |key: &'static str| optional(key)?.ok_or_else(|| invalid(format!("{key} is missing")));
        check_scheme(needed("scheme")?)?;
        check_network(needed("network")?)?;
        let amount = |key: &'static str| match json.get(key) {
            Ok(None | Some(Json::Null)) => Ok(None),
            Ok(Some(value)) => amount_text(value).map(Some).map_err(|error| invalid(format!("{key} {error}"))),
            Err(error) => Err(invalid(error.to_string())),
        };
        let amount = match (amount("maxAmountRequired")?, amount("amount")?) {
            (Some(text), None) | (None, Some(text)) => read_amount(&text, optional("asset")?),
            _ => None,
        };
        let amount = amount.ok_or_else(|| {
            invalid(
                "one of maxAmountRequired and amount must be given: `1.000 HBD`, or digits with asset HIVE or HBD"
                    .to_owned(),
            )
        })?;
        let pay_to = AccountName::parse(needed("payTo")?).map_err(|error| invalid(format!("payTo {error}")))?;
        let given = match json.get("resource") {
            Ok(Some(object @ Json::Map(_))) => object.get("url").ok().flatten().and_then(|url| url.text().ok()),
            _ => optional("resource")?,
        };
        let valid_before = optional("validBefore")?
            .map(|text| {
                Timestamp::parse(text).ok_or_else(|| invalid("validBefore must be an ISO 8601 time".to_owned()))
            })
            .transpose()?;
        let resource = Self::resource(given.unwrap_or_default())?;
        Ok(Self { amount, pay_to, resource, valid_before })
    }

    /// Takes the name of a resource as it is: merchants read it in lists, events and exports.
    ///
    /// # Errors
    /// [`Reason::InvalidPaymentRequirements`] where it is long, or has characters that hide or reorder others.
    pub fn resource(given: &str) -> Result<String, Refused> {
        let chars = given.chars().count();
        if chars > MAX_RESOURCE_CHARS {
            let message = format!("resource must have at most {MAX_RESOURCE_CHARS} characters, not {chars}");
            return Err(invalid_requirements(message));
        }
        if !given.is_empty() {
            text::visible(given).map_err(|error| invalid_requirements(format!("resource {error}")))?;
        }
        Ok(given.to_owned())
    }

    /// Checks what a version 2 payer says it accepted against what is required.
    ///
    /// # Errors
    /// [`Reason::AcceptedRequirementsMismatch`].
    pub fn check_accepted(&self, accepted: Option<&AcceptedRequirements>) -> Result<(), Refused> {
        let Some(accepted) = accepted else { return Ok(()) };
        let same = read_amount(&accepted.amount, Some(&accepted.asset)) == Some(self.amount)
            && accepted.pay_to == self.pay_to.as_str();
        if same {
            Ok(())
        } else {
            Err(Refused::new(Reason::AcceptedRequirementsMismatch, "accepted differs from what is required"))
        }
    }
}

/// Returns an amount as text; a whole number stands for its digits.
fn amount_text(json: &Json) -> Result<String, DecodeError> {
    match json {
        Json::Int(_) => json.whole::<u64>("digits, or text such as `1.000 HBD`").map(|units| units.to_string()),
        _ => json.text().map(str::to_owned),
    }
}

/// Reads `1.000 HBD`, or digits of the asset's smallest unit: both versions are written both ways.
fn read_amount(text: &str, asset: Option<&str>) -> Option<Money> {
    match Money::parse_ledger(text) {
        Ok(money) => {
            let agrees = asset.is_none_or(|asset| asset == money.currency.code());
            (agrees && money.units > 0).then_some(money)
        }
        Err(_) => read_units(text, asset?),
    }
}

fn read_units(digits: &str, asset: &str) -> Option<Money> {
    Money::parse(digits, Currency::parse(asset)?).ok()
}

/// A name that breaks the extension's rules is none; the extension is never needed.
fn identifier_of(payload: &Json) -> Option<&str> {
    let extension = payload.get("extensions").ok()??.get("payment-identifier").ok()??;
    let id = extension.get("info").ok()??.get("id").ok()??.text().ok()?;
    let is_fit = (16..=128).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    is_fit.then_some(id)
}

fn check_scheme(scheme: &str) -> Result<(), Refused> {
    if scheme == SCHEME {
        Ok(())
    } else {
        Err(Refused::new(Reason::UnsupportedScheme, format_args!("the scheme must be {SCHEME}")))
    }
}

fn check_network(network: &str) -> Result<(), Refused> {
    if is_supported_network(network) {
        Ok(())
    } else {
        Err(Refused::new(Reason::InvalidNetwork, format_args!("the network must be {NETWORK}")))
    }
}

fn invalid_requirements(message: String) -> Refused {
    Refused::new(Reason::InvalidPaymentRequirements, message)
}

fn invalid_payload(error: impl std::fmt::Display) -> Refused {
    Refused::new(Reason::InvalidPayload, error)
}

impl DecodeError {
    /// Names a member, unless its absence was already named.
    fn inside_once(self, key: &'static str) -> Self {
        if self.field == key { self } else { self.inside(key) }
    }
}
