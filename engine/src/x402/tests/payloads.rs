//! Tests of valid and invalid payloads.

use base64::{Engine, engine::general_purpose as base64s};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{NONCE, paid};
use crate::{
    hive::{Form, Transaction},
    x402::{HeaderError, MAX_HEADER_BYTES, PaymentPayload, Reason, Version, encode_header},
};

fn signed(form: Form) -> Value {
    serde_json::from_str(&paid().to_json(form)).unwrap()
}

fn v1() -> Value {
    let payload = json!({ "signedTransaction": signed(Form::Condenser), "nonce": NONCE });
    json!({ "x402Version": 1, "scheme": "exact", "network": "hive:mainnet", "payload": payload })
}

fn v2() -> Value {
    let accepted = json!({
        "scheme": "exact", "network": "hive:mainnet", "amount": "10500", "asset": "HBD", "payTo": "blue.mugs",
        "maxTimeoutSeconds": 300, "extra": { "rate": 0.25 },
    });
    let payload = json!({ "signedTransaction": signed(Form::Hf26), "nonce": NONCE });
    json!({ "x402Version": 2, "accepted": accepted, "payload": payload, "resource": { "url": "https://x" } })
}

/// Replaces the value at a JSON pointer.
fn with(mut json: Value, at: &str, value: Value) -> Value {
    *json.pointer_mut(at).unwrap_or_else(|| panic!("no {at}")) = value;
    json
}

fn without(mut json: Value, at: &str) -> Value {
    let (parent, key) = at.rsplit_once('/').unwrap();
    json.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(key).unwrap_or_else(|| panic!("no {at}"));
    json
}

fn decode(json: &Value) -> Result<PaymentPayload, Reason> {
    let header = encode_header(&json.to_string());
    PaymentPayload::decode_header(&header).expect("a header").map_err(|refused| refused.reason)
}

#[test]
fn both_versions_and_both_forms_of_transactions_are_read() {
    for (json, version) in [(v1(), Version::V1), (v2(), Version::V2)] {
        for form in [Form::Condenser, Form::Hf26] {
            let json = with(json.clone(), "/payload/signedTransaction", signed(form));
            let read = decode(&json).unwrap();
            assert_eq!((read.version, read.nonce.as_str(), &read.transaction), (version, NONCE, &paid()));
            assert_eq!(read.accepted.is_some(), version == Version::V2);
            assert_eq!(PaymentPayload::parse(json.to_string().as_bytes()), Ok(read));
        }
    }
    let accepted = decode(&v2()).unwrap().accepted.unwrap();
    assert_eq!((&*accepted.amount, &*accepted.asset, &*accepted.pay_to), ("10500", "HBD", "blue.mugs"));
}

#[test]
fn base64_is_read_in_both_alphabets_with_or_without_padding_and_in_nothing_else() {
    // Characters on which the alphabets differ, and every length of padding.
    for tail in ["", "?", "??", "???>>>", "\u{fb}\u{ff}\u{fb}\u{ff}"] {
        let json = with(v1(), "/payload/nonce", format!("{NONCE}{tail}").into()).to_string();
        for engine in [&base64s::STANDARD, &base64s::STANDARD_NO_PAD, &base64s::URL_SAFE, &base64s::URL_SAFE_NO_PAD] {
            let read = PaymentPayload::decode_header(&engine.encode(&json)).unwrap().unwrap();
            assert_eq!(read.nonce, format!("{NONCE}{tail}"));
        }
    }
    let good = encode_header(&v1().to_string());
    let middle = good.len() / 2;
    let broken = |c: char| format!("{}{c}{}", &good[..middle], &good[middle..]);
    let mixed = encode_header(r#"{"a":"???>>>~~~"}"#).replacen('+', "-", 1);
    assert!(mixed.contains('-') && mixed.contains('/'), "{mixed}");
    for bad in [
        String::new(),
        "=".into(),
        "====".into(),
        "a".into(),
        broken(' '),
        broken('\n'),
        broken('\0'),
        broken('='),
        broken(','),
        format!("{good}, {good}"),
        format!("{good},{good}"),
        format!(" {good}"),
        format!("{good} "),
        format!("{good}===="),
        format!("{good}{good}"),
        mixed,
    ] {
        assert_eq!(PaymentPayload::decode_header(&bad), Err(HeaderError::Malformed), "{bad:?}");
    }
    // Non-zero trailing bits.
    assert_eq!(PaymentPayload::decode_header("e31="), Err(HeaderError::Malformed));
}

#[test]
fn a_header_that_holds_no_json_object_is_malformed() {
    let text = v1().to_string();
    let deep = format!("{}{}", r#"{"a":"#.repeat(17), "1".to_owned() + &"}".repeat(17));
    let twice = text.replacen(r#""nonce""#, r#""nonce":"other","nonce""#, 1);
    let pay_to_twice = v2().to_string().replacen(r#""payTo""#, r#""payTo":"evil","payTo""#, 1);
    for bad in [
        "",
        "nonsense",
        "[]",
        "null",
        "\"text\"",
        "1",
        "{",
        &format!("{text}x"),
        &format!("{text}{text}"),
        &format!("{text}\0"),
        &deep,
        &twice,
        &pay_to_twice,
        &text.replacen("\"exact\"", "\"ex\u{1}act\"", 1),
        "{\"a\":1e999}",
    ] {
        assert_eq!(PaymentPayload::decode_header(&encode_header(bad)), Err(HeaderError::Malformed), "{bad}");
    }
    let not_utf8 = base64s::STANDARD.encode(b"{\"a\":\"\xff\"}");
    assert_eq!(PaymentPayload::decode_header(&not_utf8), Err(HeaderError::Malformed));
}

#[test]
fn a_header_has_at_most_16_kib() {
    let padded = |bytes: usize| {
        let mut json = v1();
        json["filler"] = "".into();
        let json = with(json.clone(), "/filler", "f".repeat(bytes / 4 * 3 - json.to_string().len()).into());
        encode_header(&json.to_string())
    };
    let longest = padded(MAX_HEADER_BYTES);
    assert_eq!(longest.len(), MAX_HEADER_BYTES);
    assert!(PaymentPayload::decode_header(&longest).unwrap().is_ok());
    assert_eq!(PaymentPayload::decode_header(&padded(MAX_HEADER_BYTES + 4)), Err(HeaderError::TooLong));
}

#[test]
fn each_violation_has_its_reason() {
    let (v1, v2) = (v1(), v2());
    let cases = [
        (without(v1.clone(), "/x402Version"), Reason::InvalidPayload),
        (with(v1.clone(), "/x402Version", "1".into()), Reason::InvalidPayload),
        (with(v1.clone(), "/x402Version", json!(1.5)), Reason::InvalidPayload),
        (with(v1.clone(), "/x402Version", 0.into()), Reason::InvalidX402Version),
        (with(v1.clone(), "/x402Version", 3.into()), Reason::InvalidX402Version),
        (with(v1.clone(), "/x402Version", (-1).into()), Reason::InvalidX402Version),
        (with(v1.clone(), "/x402Version", u64::MAX.into()), Reason::InvalidX402Version),
        (without(v1.clone(), "/scheme"), Reason::InvalidPayload),
        (with(v1.clone(), "/scheme", "upto".into()), Reason::UnsupportedScheme),
        (with(v1.clone(), "/scheme", json!({})), Reason::InvalidPayload),
        (without(v1.clone(), "/network"), Reason::InvalidPayload),
        (with(v1.clone(), "/network", "hive:testnet".into()), Reason::InvalidNetwork),
        (with(v1.clone(), "/network", "eip155:8453".into()), Reason::InvalidNetwork),
        (without(v1.clone(), "/payload"), Reason::InvalidPayload),
        (with(v1.clone(), "/payload", "text".into()), Reason::InvalidPayload),
        (without(v1.clone(), "/payload/nonce"), Reason::InvalidPayload),
        (with(v1.clone(), "/payload/nonce", "".into()), Reason::InvalidPayload),
        (with(v1.clone(), "/payload/nonce", 7.into()), Reason::InvalidPayload),
        (with(v1.clone(), "/payload/nonce", "n".repeat(257).into()), Reason::InvalidPayload),
        (with(v1.clone(), "/payload/nonce", "\u{e9}".repeat(129).into()), Reason::InvalidPayload),
        (without(v1.clone(), "/payload/signedTransaction"), Reason::InvalidPayload),
        (with(v1.clone(), "/payload/signedTransaction", json!([])), Reason::InvalidPayload),
        (with(v1.clone(), "/payload/signedTransaction/ref_block_num", json!(1.5)), Reason::InvalidPayload),
        (with(v1.clone(), "/payload/signedTransaction/extensions", json!([1])), Reason::InvalidPayload),
        (with(v1.clone(), "/payload/signedTransaction/signatures/0", "00".into()), Reason::InvalidPayload),
        (with(v1.clone(), "/payload/signedTransaction/operations/0/0", "escrow_transfer".into()), Reason::Operations),
        (
            with(v1.clone(), "/payload/signedTransaction/operations/0/1/amount", ".500 HBD".into()),
            Reason::InvalidPayload,
        ),
        (with(v1, "/payload/signedTransaction/operations/0/1/amount", "1.000 SBD".into()), Reason::InvalidPayload),
        (without(v2.clone(), "/accepted"), Reason::InvalidPayload),
        (with(v2.clone(), "/accepted", json!([])), Reason::InvalidPayload),
        (with(v2.clone(), "/accepted/scheme", "upto".into()), Reason::UnsupportedScheme),
        (with(v2.clone(), "/accepted/network", "hive:testnet".into()), Reason::InvalidNetwork),
        (with(v2.clone(), "/accepted/amount", 10.5.into()), Reason::InvalidPayload),
        (with(v2.clone(), "/accepted/amount", json!(null)), Reason::InvalidPayload),
        (without(v2.clone(), "/accepted/asset"), Reason::InvalidPayload),
        (without(v2, "/accepted/payTo"), Reason::InvalidPayload),
    ];
    for (json, wanted) in cases {
        assert_eq!(decode(&json), Err(wanted), "{json}");
    }
}

#[test]
fn version_scheme_and_network_are_checked_before_the_payload() {
    let broken = with(v1(), "/payload", Value::Null);
    assert_eq!(decode(&broken), Err(Reason::InvalidPayload));
    let broken = with(broken, "/network", "solana:mainnet".into());
    assert_eq!(decode(&broken), Err(Reason::InvalidNetwork));
    let broken = with(broken, "/scheme", "upto".into());
    assert_eq!(decode(&broken), Err(Reason::UnsupportedScheme));
    assert_eq!(decode(&with(broken, "/x402Version", 9.into())), Err(Reason::InvalidX402Version));
}

#[test]
fn a_nonce_has_1_to_256_bytes_of_anything() {
    for nonce in ["n".to_owned(), "n".repeat(256), "\u{e9}".repeat(128), " \" \\ \u{1f41d}".to_owned()] {
        assert_eq!(decode(&with(v1(), "/payload/nonce", nonce.clone().into())).unwrap().nonce, nonce);
    }
}

#[test]
fn the_network_alias_is_accepted_and_unknown_members_are_ignored() {
    let mut json = with(v2(), "/accepted/network", "hive:beeab0de000000000000000000000000".into());
    json["extensions"] = json!({ "payment-identifier": { "info": { "required": false, "id": "i".repeat(16) } } });
    json["scheme"] = "not read in version 2".into();
    json["weight"] = json!(1.5e300);
    assert!(decode(&json).is_ok());
}

proptest! {
    #[test]
    fn parsing_any_header_never_panics(text in any::<String>(), bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = PaymentPayload::decode_header(&text);
        let _ = PaymentPayload::decode_header(&base64s::STANDARD.encode(&bytes));
        let _ = PaymentPayload::parse(&bytes);
    }

    #[test]
    fn a_payload_with_bytes_changed_never_panics_and_never_becomes_another_payment(
        is_second in any::<bool>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = if is_second { v2() } else { v1() }.to_string().into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(read) = PaymentPayload::parse(&bytes) {
            // The broadcast transaction equals the parsed one.
            let again = Transaction::parse(read.transaction.to_condenser_json().as_bytes());
            prop_assert_eq!(again, Ok(read.transaction));
        }
    }

    #[test]
    fn a_header_with_one_character_changed_never_panics(at in any::<prop::sample::Index>(), byte in 0x20u8..0x7f) {
        let mut header = encode_header(&v2().to_string()).into_bytes();
        let at = at.index(header.len());
        header[at] = byte;
        let _ = PaymentPayload::decode_header(std::str::from_utf8(&header).expect("ASCII"));
    }
}
