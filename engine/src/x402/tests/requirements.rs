//! Tests of requirements in both versions.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{NOW, name};
use crate::{
    money::{Currency, Money},
    x402::{AcceptedRequirements, Reason, Requirements},
};

fn v1() -> Value {
    json!({
        "scheme": "exact", "network": "hive:mainnet", "maxAmountRequired": "0.050 HBD", "payTo": "blue.mugs",
        "resource": "/report", "description": "A report", "validBefore": "2027-01-15T08:00:00.000Z", "maxTimeoutSeconds": 60,
    })
}

fn v2() -> Value {
    json!({
        "scheme": "exact", "network": "hive:mainnet", "amount": "50", "asset": "HBD", "payTo": "blue.mugs",
        "maxTimeoutSeconds": 60, "extra": { "rate": 0.5 },
    })
}

fn parse(json: &Value) -> Result<Requirements, Reason> {
    Requirements::parse(json.to_string().as_bytes()).map_err(|refused| refused.reason)
}

fn with(mut json: Value, key: &str, value: Value) -> Value {
    json[key] = value;
    json
}

fn without(mut json: Value, key: &str) -> Value {
    json.as_object_mut().unwrap().remove(key).unwrap();
    json
}

#[test]
fn both_versions_parse_to_equal_requirements() {
    let read = parse(&v1()).unwrap();
    let wanted = Requirements {
        amount: Money::new(50, Currency::Hbd),
        pay_to: name("blue.mugs"),
        resource: "/report".to_owned(),
        valid_before: Some(NOW),
    };
    assert_eq!(read, wanted);
    let bare = Requirements { resource: String::new(), valid_before: None, ..wanted };
    assert_eq!(parse(&v2()), Ok(bare.clone()));
    let with_resource = with(v2(), "resource", json!({ "url": "https://x/report" }));
    assert_eq!(parse(&with_resource), Ok(Requirements { resource: "https://x/report".to_owned(), ..bare }));
}

#[test]
fn an_amount_of_version_1_is_ledger_text_or_digits_of_its_asset() {
    for (amount, asset, wanted) in [
        ("0.050 HBD", None, Some(Money::new(50, Currency::Hbd))),
        ("0.050 HBD", Some("HBD"), Some(Money::new(50, Currency::Hbd))),
        ("0.050 HBD", Some("HIVE"), None),
        ("50", Some("HIVE"), Some(Money::new(50, Currency::Hive))),
        ("50", None, None),
        ("0.000 HBD", None, None),
        ("0", Some("HBD"), None),
        ("-50", Some("HBD"), None),
        ("+0.050 HBD", None, None),
        (".050 HBD", None, None),
        ("0.05 HBD", None, None),
        ("0.050 SBD", None, None),
        ("050", Some("HBD"), None),
        ("5e1", Some("HBD"), None),
        ("99999999999999999999", Some("HBD"), None),
        ("50", Some("hbd"), None),
        ("50", Some("@@000000013"), None),
    ] {
        let mut json = with(v1(), "maxAmountRequired", amount.into());
        if let Some(asset) = asset {
            json["asset"] = asset.into();
        }
        assert_eq!(parse(&json).map(|read| read.amount).ok(), wanted, "{amount} {asset:?}");
    }
}

#[test]
fn an_amount_of_version_2_is_ledger_text_or_an_integer_of_its_asset() {
    let text = with(v2(), "amount", "0.050 HBD".into());
    for json in [v2(), with(v2(), "amount", 50.into()), without(text.clone(), "asset"), text] {
        assert_eq!(parse(&json).unwrap().amount, Money::new(50, Currency::Hbd), "{json}");
    }
    for json in [
        with(v2(), "amount", "0.050 HIVE".into()),
        with(v2(), "amount", "0.05 HBD".into()),
        with(v2(), "amount", (-50).into()),
        with(v2(), "amount", 0.5.into()),
        with(v2(), "amount", true.into()),
        with(v2(), "amount", "".into()),
        with(v2(), "asset", "VESTS".into()),
        without(v2(), "asset"),
        without(v2(), "amount"),
        with(v2(), "maxAmountRequired", "0.050 HBD".into()),
    ] {
        assert_eq!(parse(&json), Err(Reason::InvalidPaymentRequirements), "{json}");
    }
}

#[test]
fn each_violation_has_its_reason() {
    let invalid = Reason::InvalidPaymentRequirements;
    let cases = [
        (with(v1(), "scheme", "upto".into()), Reason::UnsupportedScheme),
        (without(v1(), "scheme"), invalid),
        (with(v1(), "network", "hive:testnet".into()), Reason::InvalidNetwork),
        (without(v1(), "network"), invalid),
        (without(v1(), "payTo"), invalid),
        (with(v1(), "payTo", "Blue.Mugs".into()), invalid),
        (with(v1(), "payTo", 7.into()), invalid),
        (with(v1(), "resource", 7.into()), invalid),
        (with(v1(), "validBefore", "tomorrow".into()), invalid),
        (with(v1(), "validBefore", 7.into()), invalid),
        (json!([]), invalid),
        (json!("text"), invalid),
        (Value::Null, invalid),
    ];
    for (json, wanted) in cases {
        assert_eq!(parse(&json), Err(wanted), "{json}");
    }
    for text in ["", "{", r#"{"payTo":"blue.mugs","payTo":"evil.mugs"}"#] {
        assert_eq!(Requirements::parse(text.as_bytes()).unwrap_err().reason, invalid, "{text}");
    }
}

#[test]
fn accepted_requirements_must_match() {
    let required = parse(&v2()).unwrap();
    let accepted = |amount: &str, asset: &str, pay_to: &str| AcceptedRequirements {
        amount: amount.into(),
        asset: asset.into(),
        pay_to: pay_to.into(),
    };
    assert_eq!(required.check_accepted(None), Ok(()));
    for same in [accepted("50", "HBD", "blue.mugs"), accepted("0.050 HBD", "HBD", "blue.mugs")] {
        assert_eq!(required.check_accepted(Some(&same)), Ok(()), "{same:?}");
    }
    for other in [
        accepted("51", "HBD", "blue.mugs"),
        accepted("050", "HBD", "blue.mugs"),
        accepted("0.051 HBD", "HBD", "blue.mugs"),
        accepted("0.050 HBD", "HIVE", "blue.mugs"),
        accepted("50", "HIVE", "blue.mugs"),
        accepted("50", "HBD", "evil.mugs"),
    ] {
        let refused = required.check_accepted(Some(&other)).unwrap_err();
        assert_eq!(refused.reason, Reason::AcceptedRequirementsMismatch, "{other:?}");
    }
}

proptest! {
    #[test]
    fn parsing_any_requirements_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let _ = Requirements::parse(&bytes);
        for json in [v1(), v2()] {
            let mut text = json.to_string().into_bytes();
            let at = at.index(text.len());
            text[at] = byte;
            let _ = Requirements::parse(&text);
        }
    }
}
