//! Tests of the exact bytes of offers, which servers and clients compare.

use std::time::Duration;

use serde_json::Value;

use super::{NOW, name, offer};
use crate::{
    hive::ChainId,
    x402::{
        NETWORK, OFFER_RECEIPT, Offer, OfferFee, OfferTerms, ReceiptKey, Signer, body_v1, is_supported_network,
        offer_extension, requirements_v2,
    },
};

const F1: &str = r#"{"sessionId":"pay_00000000000000000000000007","memo":"pos-pay_00000000000000000000000007"}"#;
const F2: &str = concat!(
    r#"{"sessionId":"pay_00000000000000000000000007","memo":"pos-pay_00000000000000000000000007","#,
    r#""feeAccount":"fee.taker","feeAmount":"0.157 HBD","netAmount":"10.343 HBD","#,
    r#""feeMemo":"fee-pay_00000000000000000000000007"}"#,
);

fn with_fee() -> Offer {
    Offer { fee: Some(OfferFee { account: name("fee.taker"), units: 157 }), ..offer() }
}

#[test]
fn version_1_offers_have_the_documented_bytes() {
    for (offer, extra) in [(offer(), F1), (with_fee(), F2)] {
        let wanted = [
            r#"{"x402Version":1,"error":"payment required","accepts":[{"x402Version":1,"scheme":"exact","#,
            r#""network":"hive:mainnet","maxAmountRequired":"10.500 HBD","resource":"/for/blue-mug-0000","#,
            r#""description":"A blue mug","mimeType":"application/json","payTo":"blue.mugs","#,
            r#""validBefore":"2027-01-15T08:30:00.000Z","asset":"HBD","maxTimeoutSeconds":300,"extra":"#,
            extra,
            "}]}",
        ];
        assert_eq!(body_v1(&offer, "payment required", NOW), wanted.concat());
    }
}

#[test]
fn version_2_offers_have_the_documented_bytes() {
    for (offer, extra) in [(offer(), F1), (with_fee(), F2)] {
        let wanted = [
            r#"{"x402Version":2,"error":"payment required","resource":{"url":"https://pay.example/for/blue-mug-0000","#,
            r#""description":"A blue mug","mimeType":"application/json"},"accepts":[{"scheme":"exact","#,
            r#""network":"hive:mainnet","amount":"10500","asset":"HBD","payTo":"blue.mugs","maxTimeoutSeconds":300,"#,
            r#""extra":"#,
            extra,
            r#"}],"extensions":{"payment-identifier":{"info":{"required":false},"schema":{"#,
            r#""$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"#,
            r#""required":{"type":"boolean"},"id":{"type":"string","minLength":16,"maxLength":128,"#,
            r#""pattern":"^[a-zA-Z0-9_-]+$"}},"required":["required"]}}}}"#,
        ];
        assert_eq!(requirements_v2(&offer, "payment required", NOW), wanted.concat());
    }
}

/// Returns the bytes of `extra`.
fn extra_of(json: &str) -> String {
    let (_, extra) = json.split_once(r#""extra":"#).expect("an extra");
    extra[..=extra.find('}').expect("its end")].to_owned()
}

#[test]
fn extra_does_not_change_during_the_session() {
    let mut later = with_fee();
    later.description = "Another text".to_owned();
    later.base_url = "https://other.example".to_owned();
    for seconds in [0, 299, 1_700, 1_800, 5_000] {
        let now = NOW + Duration::from_secs(seconds);
        assert_eq!(extra_of(&body_v1(&later, "settlement failed", now)), F2);
        assert_eq!(extra_of(&requirements_v2(&later, "", now)), F2);
    }
}

#[test]
fn the_timeout_is_the_remaining_time_between_a_second_and_five_minutes() {
    for (at, wanted) in [(0, 300), (1_500, 300), (1_501, 299), (1_799, 1), (1_800, 1), (9_999, 1)] {
        let now = NOW + Duration::from_secs(at);
        for json in [body_v1(&offer(), "", now), requirements_v2(&offer(), "", now)] {
            let json: Value = serde_json::from_str(&json).unwrap();
            assert_eq!(json["accepts"][0]["maxTimeoutSeconds"], wanted, "{at}");
        }
    }
}

#[test]
fn a_long_description_is_cut_between_two_characters_at_256_bytes() {
    // An emoji has 4 bytes and must not be split.
    for (before, wanted_bytes) in [(251, 255), (252, 256), (253, 253), (255, 255), (256, 256), (300, 256)] {
        let description = format!("{}\u{1f41d}", "a".repeat(before));
        let kept = &description[..wanted_bytes];
        let long = Offer { description: description.clone(), ..offer() };
        let v1: Value = serde_json::from_str(&body_v1(&long, "", NOW)).unwrap();
        assert_eq!(v1["accepts"][0]["description"], kept, "{before}");
        let v2: Value = serde_json::from_str(&requirements_v2(&long, "", NOW)).unwrap();
        assert_eq!(v2["resource"]["description"], kept, "{before}");
    }
}

#[test]
fn headers_of_a_split_offer_fit_a_proxy_buffer() {
    let offer = Offer { description: "m".repeat(115), ..with_fee() };
    let bytes: usize = [body_v1(&offer, "", NOW), requirements_v2(&offer, "", NOW)]
        .iter()
        .map(|json| crate::x402::encode_header(json).len())
        .sum();
    assert!(bytes < 3_500, "{bytes} bytes of 4096");
}

#[test]
fn a_signed_offer_is_one_more_extension_and_fits_a_proxy_buffer() {
    let url = "https://pay.example/for/blue-mug-0000";
    let plain = Offer { description: "m".repeat(115), ..with_fee() };
    let (amount, valid_until) = (plain.amount, plain.expires_at);
    let terms = OfferTerms { url, amount, pay_to: &plain.pay_to, valid_until };
    let jws = Signer::new(&ReceiptKey::new([1; 32])).sign_offer(&terms);
    let signed = Offer { signed: Some(jws.clone()), ..plain.clone() };
    let mut v2: Value = serde_json::from_str(&requirements_v2(&signed, "", NOW)).unwrap();
    let extension = v2["extensions"].as_object_mut().unwrap().remove(OFFER_RECEIPT).unwrap();
    assert_eq!(extension, offer_extension(&jws));
    let without: Value = serde_json::from_str(&requirements_v2(&plain, "", NOW)).unwrap();
    assert_eq!(v2, without);
    let bytes: usize = [body_v1(&signed, "", NOW), requirements_v2(&signed, "", NOW)]
        .iter()
        .map(|json| crate::x402::encode_header(json).len())
        .sum();
    assert!(bytes < 4_000, "{bytes} bytes");
    assert_eq!(body_v1(&signed, "", NOW), body_v1(&plain, "", NOW), "version 1 has no extensions");
}

#[test]
fn the_network_has_one_name_and_one_caip2_alias() {
    let chain = ChainId::MAINNET.to_string();
    assert!(is_supported_network(NETWORK));
    assert!(is_supported_network(&format!("hive:{}", &chain[..32])));
    let cut = |length: usize| format!("hive:{}", &chain[..length]);
    for other in [
        "hive:testnet",
        "hive",
        "hive:",
        "HIVE:mainnet",
        "hive:mainnet ",
        "eip155:8453",
        "",
        &cut(31),
        &cut(33),
        &cut(64),
    ] {
        assert!(!is_supported_network(other), "{other}");
    }
}
