//! Bodies of verify and settle requests of the x402 facilitator.

use super::{PaymentPayload, Reason, Refused, Requirements};
use crate::{
    hive::{DecodeError, json::Json},
    ids::PaymentId,
};

/// A request to verify or settle a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FacilitatorRequest {
    /// The target of the payment.
    pub target: PaymentTarget,
    /// The payment.
    pub payload: PaymentPayload,
}

/// The target of a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaymentTarget {
    /// A payment session of this engine.
    Session(PaymentId),
    /// Payment requirements of the caller.
    Requirements(Requirements),
}

/// An invalid request body, on which no verdict is possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Not JSON, or ambiguous JSON.
    #[error("the body {0}")]
    NotJson(DecodeError),
    /// JSON, but not an object.
    #[error("the body must be a JSON object")]
    NotAnObject,
    /// Neither `sessionId` nor `paymentRequirements`.
    #[error("one of sessionId and paymentRequirements must be given")]
    NoTarget,
    /// Both `sessionId` and `paymentRequirements`.
    #[error("only one of sessionId and paymentRequirements may be given")]
    TwoTargets,
    /// No `paymentPayload`.
    #[error("paymentPayload is missing")]
    NoPayload,
}

impl BodyError {
    /// Returns the member concerned, or `body` for the whole body.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        match self {
            Self::NotJson(_) | Self::NotAnObject => "body",
            Self::NoTarget | Self::TwoTargets => "sessionId",
            Self::NoPayload => "paymentPayload",
        }
    }
}

impl FacilitatorRequest {
    /// Parses a body. Unknown members and a top-level `x402Version` are ignored; `null` counts as absent.
    ///
    /// # Errors
    /// [`BodyError`] if no verdict is possible; the inner [`Refused`] is a verdict.
    pub fn parse(body: &[u8]) -> Result<Result<Self, Refused>, BodyError> {
        let json = Json::parse_with_fractions(body).map_err(BodyError::NotJson)?;
        if !matches!(json, Json::Map(_)) {
            return Err(BodyError::NotAnObject);
        }
        let given = |key| json.get(key).ok().flatten().filter(|value| **value != Json::Null);
        let session = given("sessionId");
        let requirements = given("paymentRequirements");
        let wanted = match (session, requirements) {
            (Some(session), None) => Ok(session),
            (None, Some(requirements)) => Err(requirements),
            (None, None) => return Err(BodyError::NoTarget),
            (Some(_), Some(_)) => return Err(BodyError::TwoTargets),
        };
        let payload = given("paymentPayload").ok_or(BodyError::NoPayload)?;
        Ok(Self::read(wanted, payload))
    }

    fn read(wanted: Result<&Json, &Json>, payload: &Json) -> Result<Self, Refused> {
        let read = PaymentPayload::read(payload)?;
        let target = match wanted {
            Ok(session) => PaymentTarget::Session(read_session(session)?),
            // Version 2 repeats the resource beside the payment; that copy is controlled by the payer and ignored.
            Err(requirements) => PaymentTarget::Requirements(Requirements::read(requirements)?),
        };
        Ok(Self { target, payload: read })
    }
}

/// An invalid id is an unknown session.
fn read_session(json: &Json) -> Result<PaymentId, Refused> {
    let id = json.text().ok().and_then(|text| text.parse().ok());
    id.ok_or_else(|| Refused::new(Reason::SessionNotFound, "there is no such session"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRANSACTION: &str = r#"{"ref_block_num":1,"ref_block_prefix":2,"expiration":"2026-11-20T14:05:00","operations":[["transfer",{"from":"agent","to":"blue.mugs","amount":"1.000 HBD","memo":"x"}]],"extensions":[],"signatures":[]}"#;
    const SESSION: &str = r#""sessionId":"pay_00000000000000000000000002""#;
    const V1_REQUIREMENTS: &str = r#""paymentRequirements":{"scheme":"exact","network":"hive:mainnet","maxAmountRequired":"1.000 HBD","payTo":"blue.mugs","resource":"/a","extra":{"rate":0.5}}"#;
    const V2_REQUIREMENTS: &str = r#""paymentRequirements":{"scheme":"exact","network":"hive:mainnet","amount":"1000","asset":"HBD","payTo":"blue.mugs","maxTimeoutSeconds":60}"#;

    fn v1() -> String {
        format!(
            r#""paymentPayload":{{"x402Version":1,"scheme":"exact","network":"hive:mainnet","payload":{{"signedTransaction":{TRANSACTION},"nonce":"n"}}}}"#
        )
    }

    fn v2() -> String {
        format!(
            r#""paymentPayload":{{"x402Version":2,"resource":{{"url":"https://x.example/a"}},"accepted":{{"scheme":"exact","network":"hive:mainnet","amount":"1000","asset":"HBD","payTo":"blue.mugs"}},"payload":{{"signedTransaction":{TRANSACTION},"nonce":"n"}}}}"#
        )
    }

    fn read(members: &[&str]) -> Result<Result<FacilitatorRequest, Refused>, BodyError> {
        FacilitatorRequest::parse(format!("{{{}}}", members.join(",")).as_bytes())
    }

    #[test]
    fn a_body_targets_a_session_or_requirements() {
        let request =
            read(&[SESSION, &v1(), r#""paymentRequirements":null"#, r#""x402Version":7.5"#]).unwrap().unwrap();
        assert_eq!(request.target, PaymentTarget::Session(PaymentId::from_bits(2)));
        let request = read(&[V1_REQUIREMENTS, &v1()]).unwrap().unwrap();
        let PaymentTarget::Requirements(requirements) = request.target else { panic!("{request:?}") };
        assert_eq!((requirements.resource.as_str(), requirements.amount.units), ("/a", 1_000));
        let request = read(&[V2_REQUIREMENTS, &v2()]).unwrap().unwrap();
        let PaymentTarget::Requirements(requirements) = request.target else { panic!("{request:?}") };
        assert_eq!(requirements.resource, "", "the resource in the payment is chosen by the payer");
        for resource in [r#""https://x.example/b""#, r#"{"url":"https://x.example/b"}"#] {
            let own = V2_REQUIREMENTS.replace("\"asset\"", &format!("\"resource\":{resource},\"asset\""));
            let request = read(&[&own, &v2()]).unwrap().unwrap();
            let PaymentTarget::Requirements(requirements) = request.target else { panic!("{request:?}") };
            assert_eq!(requirements.resource, "https://x.example/b", "the resource of the requirements");
        }
    }

    #[test]
    fn a_body_without_a_single_target_and_a_payload_is_an_error() {
        assert_eq!(read(&[&v1()]), Err(BodyError::NoTarget));
        assert_eq!(read(&[SESSION, V1_REQUIREMENTS, &v1()]), Err(BodyError::TwoTargets));
        assert_eq!(read(&[SESSION]), Err(BodyError::NoPayload));
        assert_eq!(read(&[SESSION, r#""paymentPayload":null"#]), Err(BodyError::NoPayload));
        for no_object in ["[]", "null", "7", "\"x\""] {
            assert_eq!(FacilitatorRequest::parse(no_object.as_bytes()), Err(BodyError::NotAnObject), "{no_object}");
        }
    }

    #[test]
    fn attack_27_an_ambiguous_body_is_an_error() {
        let deep = format!(r#""x":{}{}"#, "[".repeat(17), "]".repeat(17));
        for bad in ["", "{", &format!(r#"{{{SESSION},{SESSION}}}"#), &format!("{{{deep}}}"), "{} {}", "{\"a\":1e999}"] {
            assert!(matches!(FacilitatorRequest::parse(bad.as_bytes()), Err(BodyError::NotJson(_))), "{bad}");
        }
    }

    #[test]
    fn a_valid_payment_identifier_is_parsed() {
        let named = |id: &str| {
            let extensions = format!(r#""extensions":{{"payment-identifier":{{"info":{{"id":{id}}}}}}},"accepted""#);
            let payload = v2().replacen("\"accepted\"", &extensions, 1);
            read(&[V2_REQUIREMENTS, &payload]).unwrap().unwrap().payload.identifier
        };
        assert_eq!(named("\"0123456789-abc_DEF\"").as_deref(), Some("0123456789-abc_DEF"));
        for unfit in ["\"short\"", "7", "null", "\"0123456789abcde é\"", &format!("\"{}\"", "x".repeat(129))] {
            assert_eq!(named(unfit), None, "{unfit}");
        }
        assert_eq!(read(&[SESSION, &v1()]).unwrap().unwrap().payload.identifier, None);
    }

    #[test]
    fn errors_inside_the_payload_are_verdicts() {
        let reason = |members: &[&str]| read(members).expect("a verdict").expect_err("a refusal").reason;
        for session in ["7", "[]", "\"\"", "\"pay_1\"", "true"] {
            assert_eq!(reason(&[&format!("\"sessionId\":{session}"), &v1()]), Reason::SessionNotFound, "{session}");
        }
        for payload in ["7", "[]", "{}", "\"x\""] {
            assert_eq!(reason(&[SESSION, &format!("\"paymentPayload\":{payload}")]), Reason::InvalidPayload);
        }
        for requirements in ["7", "[]", "{}", "\"x\""] {
            let member = format!("\"paymentRequirements\":{requirements}");
            assert_eq!(reason(&[&member, &v1()]), Reason::InvalidPaymentRequirements, "{requirements}");
        }
        assert_eq!(reason(&[SESSION, &v1().replace(":1,\"scheme", ":3,\"scheme")]), Reason::InvalidX402Version);
        assert_eq!(reason(&[SESSION, &v1().replace("exact", "upto")]), Reason::UnsupportedScheme);
        assert_eq!(reason(&[SESSION, &v1().replace("hive:mainnet", "hive:testnet")]), Reason::InvalidNetwork);
        let escrow = v1().replace("\"transfer\"", "\"escrow_transfer\"");
        assert_eq!(reason(&[SESSION, &escrow]), Reason::Operations);
    }
}
