//! Payment payloads and requirements: strict parsing of both versions.

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

/// Maximum bytes of a payment header.
pub const MAX_HEADER_BYTES: usize = 16 * 1024;
/// Maximum characters of a resource.
const MAX_RESOURCE_CHARS: usize = 2_048;
/// Maximum bytes of a nonce.
const MAX_NONCE_BYTES: usize = 256;

/// The x402 version of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Transfers of at least the amount.
    V1,
    /// Transfers of exactly the amount.
    V2,
}

impl Version {
    /// Returns the version number.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }
}

/// A payment header that does not contain JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Longer than [`MAX_HEADER_BYTES`].
    #[error("is longer than {MAX_HEADER_BYTES} bytes")]
    TooLong,
    /// Not base64, or not JSON inside.
    #[error("is not base64 of a JSON object")]
    Malformed,
}

/// A payment payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentPayload {
    /// The version.
    pub version: Version,
    /// The signed transaction.
    pub transaction: Transaction,
    /// The payer's nonce, 1 to 256 bytes.
    pub nonce: String,
    /// The `payment-identifier` of the payer, if it is valid.
    pub identifier: Option<String>,
    /// The requirements that the payer accepted (version 2).
    pub accepted: Option<AcceptedRequirements>,
}

/// The requirements that a version 2 payer accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedRequirements {
    /// The amount: digits in the smallest unit, or `0.050 HBD`.
    pub amount: String,
    /// The currency's code.
    pub asset: String,
    /// The payee.
    pub pay_to: String,
}

/// Payment requirements of another server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirements {
    /// The amount.
    pub amount: Money,
    /// The payee.
    pub pay_to: AccountName,
    /// The resource as named by its server; opaque and not controlled by the payer.
    pub resource: String,
    /// When the requirements expire, if ever.
    pub valid_before: Option<Timestamp>,
}

/// Decodes base64 of a header: standard or URL-safe alphabet, with or without padding.
#[must_use]
pub fn decode_header(text: &str) -> Option<Vec<u8>> {
    const CONFIG: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, CONFIG);
    const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, CONFIG);
    STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text)).ok()
}

/// Encodes JSON for a header as base64 with the standard alphabet.
#[must_use]
pub fn encode_header(json: &str) -> String {
    BASE64_STANDARD.encode(json)
}

impl PaymentPayload {
    /// Parses the value of an `x-payment` or `PAYMENT-SIGNATURE` header.
    ///
    /// # Errors
    /// [`HeaderError`] if it is not JSON in base64; the inner [`Refused`] if the JSON is not a payment.
    pub fn decode_header(value: &str) -> Result<Result<Self, Refused>, HeaderError> {
        if value.len() > MAX_HEADER_BYTES && !mutant!("long-headers-are-accepted") {
            return Err(HeaderError::TooLong);
        }
        let bytes = decode_header(value).ok_or(HeaderError::Malformed)?;
        // Anything but JSON is an HTTP error; JSON that is not a payment is a verdict.
        let json = Json::parse_with_fractions(&bytes).map_err(|_| HeaderError::Malformed)?;
        if !matches!(json, Json::Map(_)) {
            return Err(HeaderError::Malformed);
        }
        Ok(Self::read(&json))
    }

    /// Parses the JSON of a payload.
    ///
    /// # Errors
    /// [`Refused`] if it is not a valid payment.
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
        // Version 2 has scheme and network in `accepted` only.
        let requirements = accepted.unwrap_or(json);
        let text = |json: &Json, key: &'static str| {
            json.member(key)
                .and_then(Json::text)
                .map(str::to_owned)
                .map_err(|error| invalid_payload(error.inside_once(key)))
        };
        check_scheme(&text(requirements, "scheme")?)?;
        check_network(&text(requirements, "network")?)?;
        let accepted = accepted
            .map(|accepted| {
                let amount = accepted.member("amount").and_then(amount_text).map_err(invalid_payload)?;
                // An amount such as `0.050 HBD` includes the asset.
                let asset = match (accepted.get("asset"), Money::parse_ledger(&amount)) {
                    (Ok(None | Some(Json::Null)), Ok(money)) => money.currency.code().to_owned(),
                    _ => text(accepted, "asset")?,
                };
                Ok(AcceptedRequirements { amount, asset, pay_to: text(accepted, "payTo")? })
            })
            .transpose()?;
        let payload = json.member("payload").map_err(invalid_payload)?;
        let nonce = text(payload, "nonce")?;
        if nonce.is_empty() || (nonce.len() > MAX_NONCE_BYTES && !mutant!("long-nonces-are-accepted")) {
            return Err(Refused::new(Reason::InvalidPayload, "nonce must have 1 to 256 bytes"));
        }
        let transaction = payload.member("signedTransaction").map_err(invalid_payload)?;
        let transaction = Transaction::read(transaction).map_err(|error| {
            let reason = match error.fault {
                // An unknown operation is not a transfer.
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
    /// Parses the JSON of requirements of either version.
    ///
    /// # Errors
    /// [`Refused`] with [`Reason::InvalidPaymentRequirements`], [`Reason::UnsupportedScheme`] or
    /// [`Reason::InvalidNetwork`].
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

    /// Validates the name of a resource, which is displayed in lists, events and exports.
    ///
    /// # Errors
    /// [`Reason::InvalidPaymentRequirements`] if it is too long, or has invisible characters or direction controls.
    pub fn resource(given: &str) -> Result<String, Refused> {
        let chars = given.chars().count();
        if chars > MAX_RESOURCE_CHARS {
            let message = format!("resource must have at most {MAX_RESOURCE_CHARS} characters, not {chars}");
            return Err(invalid_requirements(message));
        }
        if !given.is_empty() && !mutant!("hidden-characters-in-resources") {
            text::visible(given).map_err(|error| invalid_requirements(format!("resource {error}")))?;
        }
        Ok(given.to_owned())
    }

    /// Checks the requirements that a version 2 payer accepted against these.
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

/// Returns an amount as a string; integers are converted to digits.
fn amount_text(json: &Json) -> Result<String, DecodeError> {
    match json {
        Json::Int(_) => json.whole::<u64>("digits, or text such as `1.000 HBD`").map(|units| units.to_string()),
        _ => json.text().map(str::to_owned),
    }
}

/// Parses `1.000 HBD`, or digits in the asset's smallest unit; clients of both versions use both formats.
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

/// Returns the `payment-identifier`; an invalid one is ignored, because the extension is optional.
fn identifier_of(payload: &Json) -> Option<&str> {
    let extension = payload.get("extensions").ok()??.get("payment-identifier").ok()??;
    let id = extension.get("info").ok()??.get("id").ok()??.text().ok()?;
    let is_fit = (16..=128).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    is_fit.then_some(id)
}

fn check_scheme(scheme: &str) -> Result<(), Refused> {
    if scheme == SCHEME || mutant!("scheme-not-checked") {
        Ok(())
    } else {
        Err(Refused::new(Reason::UnsupportedScheme, format_args!("the scheme must be {SCHEME}")))
    }
}

fn check_network(network: &str) -> Result<(), Refused> {
    if is_supported_network(network) || mutant!("network-not-checked") {
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
    /// Adds the member to the error, unless the error already names it.
    fn inside_once(self, key: &'static str) -> Self {
        if self.field == key { self } else { self.inside(key) }
    }
}
