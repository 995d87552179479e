//! Offers that are accepted, and every way in which one is not.

use engine::{
    hive::Pack,
    ids::PaymentId,
    x402::{Offer, OfferFee, PaymentPayload, body_v1, requirements_v2},
};
use std::time::Duration;

use super::*;

const NOW: Timestamp = Timestamp::from_seconds(1_800_000_000);
const NONCE: &str = "00112233445566778899aabbccddeeff";

fn name(text: &str) -> AccountName {
    AccountName::parse(text).unwrap()
}

fn text(text: &str) -> Money {
    Money::parse_ledger(text).unwrap()
}

fn offer(fee: Option<OfferFee>) -> Offer {
    Offer {
        session: PaymentId::from_bits(7),
        amount: text("10.500 HBD"),
        pay_to: name("blue.mugs"),
        fee,
        path: "/for/x".to_owned(),
        base_url: "https://pay.example".to_owned(),
        description: "A blue mug".to_owned(),
        expires_at: NOW + Duration::from_secs(600),
        signed: None,
    }
}

fn split() -> Offer {
    offer(Some(OfferFee { account: name("fee.taker"), units: 157 }))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn v1(offer: &Offer) -> Value {
    json(&body_v1(offer, "", NOW))
}

fn v2(offer: &Offer) -> Value {
    json(&requirements_v2(offer, "", NOW))
}

fn read(second: Option<&Value>, first: Option<&Value>, body: &Value) -> Result<Quote, Unacceptable> {
    let mut headers = HeaderMap::new();
    for (name, json) in [("payment-required", second), ("x-payment", first)] {
        if let Some(json) = json {
            headers.insert(name, encode_header(&json.to_string()).parse().unwrap());
        }
    }
    Quote::read(&headers, body.to_string().as_bytes(), Currency::Hbd)
}

fn only(second: &Value) -> Result<Quote, Unacceptable> {
    read(Some(second), None, &Value::Null)
}

fn with(mut json: Value, at: &str, value: Value) -> Value {
    let (parent, key) = at.rsplit_once('/').unwrap();
    json.pointer_mut(parent).unwrap_or_else(|| panic!("no {at}"))[key] = value;
    json
}

#[test]
fn what_a_gateway_offers_is_read_from_either_header_or_the_body() {
    for offer in [offer(None), split()] {
        let (first, second) = (v1(&offer), v2(&offer));
        let all = read(Some(&second), Some(&first), &first).unwrap();
        assert_eq!((all.version, all.total), (2, text("10.500 HBD")));
        assert_eq!(all.valid_before, Some(NOW + Duration::from_secs(600)), "version 1 contains the expiration");
        for quote in [read(None, Some(&first), &Value::Null), read(None, None, &first)] {
            let quote = quote.unwrap();
            assert_eq!(quote.version, 1);
            assert!(quote.is_same(&all));
        }
        assert!(only(&second).unwrap().is_same(&all));
    }
}

#[test]
fn one_transfer_pays_the_whole_and_two_pay_a_split_one() {
    let of = |offer: &Offer| -> Vec<_> {
        let transfers = only(&v2(offer)).unwrap().transfers(&name("alice"), NONCE);
        transfers.into_iter().map(|t| (t.to, t.amount.to_string(), t.memo)).collect()
    };
    let id = PaymentId::from_bits(7);
    assert_eq!(of(&offer(None)), [("blue.mugs".into(), "10.500 HBD".into(), format!("pos-{id}"))]);
    let wanted = [
        ("blue.mugs".to_owned(), "10.343 HBD".to_owned(), format!("pos-{id}")),
        ("fee.taker".to_owned(), "0.157 HBD".to_owned(), format!("fee-{id}")),
    ];
    assert_eq!(of(&split()), wanted);
}

#[test]
fn without_a_session_the_nonce_is_the_memo() {
    let quote = only(&with(v2(&offer(None)), "/accepts/0/extra", json!({}))).unwrap();
    assert_eq!(quote.transfers(&name("alice"), NONCE)[0].memo, format!("x402:{NONCE}"));
    let quote = only(&with(v2(&offer(None)), "/accepts/0/extra", json!({ "sessionId": "5" }))).unwrap();
    assert_eq!(quote.transfers(&name("alice"), NONCE)[0].memo, "pos-5", "as specified for requests without `memo`");
}

#[test]
fn the_header_is_what_a_gateway_reads() {
    let key = engine::hive::PrivateKey::from_login("alice", "active", "test").unwrap();
    let anchor = crate::commands::signing::Anchor {
        chain: engine::hive::ChainId::MAINNET,
        head_time: NOW,
        block: engine::ledger::BlockId::default(),
    };
    for (quote, header_name) in
        [(only(&v2(&split())), "payment-signature"), (read(None, Some(&v1(&split())), &Value::Null), "x-payment")]
    {
        let quote = quote.unwrap();
        let transfers = quote.transfers(&name("alice"), NONCE);
        let transaction = anchor.sign(transfers, Duration::from_secs(60), Pack::Legacy, &key).unwrap();
        let (named, value) = quote.header(&transaction, NONCE).unwrap();
        assert_eq!(named, header_name);
        let payload = PaymentPayload::decode_header(&value).unwrap().unwrap();
        assert_eq!((payload.version.number(), payload.nonce.as_str()), (quote.version, NONCE));
        assert_eq!(payload.transaction, transaction);
        if quote.version == 2 {
            let sent = json(&String::from_utf8(decode_header(&value).unwrap()).unwrap());
            assert_eq!(sent["accepted"], v2(&split())["accepts"][0]);
            assert_eq!(sent["extensions"][IDENTIFIER]["info"]["id"], format!("pay_{NONCE}"));
        }
    }
}

#[test]
fn an_offer_that_is_wrong_in_itself_is_refused() {
    let malformed = |at: &str, value: Value| match only(&with(v2(&split()), at, value)) {
        Err(Unacceptable::Malformed(what)) => what,
        other => panic!("{at}: {other:?}"),
    };
    for (at, value, what) in [
        ("/accepts/0/amount", json!("10.500"), "amount"),
        ("/accepts/0/amount", json!("010500"), "amount"),
        ("/accepts/0/amount", json!("0"), "amount"),
        ("/accepts/0/amount", json!(10_500), "amount"),
        ("/accepts/0/amount", json!("-10500"), "amount"),
        ("/accepts/0/amount", json!("10501"), "extra.netAmount"),
        ("/accepts/0/asset", json!("USD"), "asset"),
        ("/accepts/0/asset", json!("HIVE"), "extra.feeAmount"),
        ("/accepts/0/payTo", json!("Blue.Mugs"), "payTo"),
        ("/accepts/0/payTo", Value::Null, "payTo"),
        ("/accepts/0/payTo", json!("fee.taker"), "extra.feeAccount"),
        ("/accepts/0/extra/feeAccount", json!("X"), "extra.feeAccount"),
        ("/accepts/0/extra/feeAccount", Value::Null, "extra.feeAccount"),
        ("/accepts/0/extra/feeAmount", json!("0.158 HBD"), "extra.netAmount"),
        ("/accepts/0/extra/feeAmount", json!("0.157 HIVE"), "extra.feeAmount"),
        ("/accepts/0/extra/feeAmount", json!("-0.157 HBD"), "extra.feeAmount"),
        ("/accepts/0/extra/feeAmount", json!("0.000 HBD"), "extra.feeAmount"),
        ("/accepts/0/extra/netAmount", Value::Null, "extra.netAmount"),
        ("/accepts/0/extra/memo", json!("pos-other"), "extra.memo"),
        ("/accepts/0/extra/memo", json!(7), "extra.memo"),
        ("/accepts/0/extra/sessionId", json!(7), "extra.sessionId"),
        ("/accepts", json!({}), "accepts"),
    ] {
        assert_eq!(malformed(at, value.clone()), what, "{at} {value}");
    }
    let first = with(v1(&offer(None)), "/accepts/0/maxAmountRequired", json!("10500"));
    assert_eq!(read(None, Some(&first), &Value::Null), Err(Unacceptable::Malformed("amount")));
    let first = with(v1(&offer(None)), "/accepts/0/asset", json!("HIVE"));
    assert_eq!(read(None, Some(&first), &Value::Null), Err(Unacceptable::Malformed("amount")));
    let first = with(v1(&offer(None)), "/accepts/0/validBefore", json!("soon"));
    assert_eq!(read(None, Some(&first), &Value::Null), Err(Unacceptable::Malformed("validBefore")));
}

#[test]
fn of_several_offers_on_hive_the_one_in_the_currency_that_may_be_paid_is_taken() {
    for mut both in [v2(&offer(None)), v1(&offer(None))] {
        let mut hive = both["accepts"][0].clone();
        for (member, value) in [("asset", "HIVE"), ("amount", "200"), ("maxAmountRequired", "0.200 HIVE")] {
            if hive[member].is_string() {
                hive[member] = value.into();
            }
        }
        let version = both["x402Version"].clone();
        let price = |both: &Value, currency| {
            let mut headers = HeaderMap::new();
            let header = if version == 2 { "payment-required" } else { "x-payment" };
            headers.insert(header, encode_header(&both.to_string()).parse().unwrap());
            Quote::read(&headers, b"", currency).unwrap().total
        };
        both["accepts"].as_array_mut().unwrap().insert(0, hive);
        assert_eq!(price(&both, Currency::Hbd), text("10.500 HBD"));
        assert_eq!(price(&both, Currency::Hive), text("0.200 HIVE"));
        both["accepts"].as_array_mut().unwrap().pop();
        assert_eq!(price(&both, Currency::Hbd), text("0.200 HIVE"), "it is refused with its amount");
    }
}

#[test]
fn only_one_payment_on_hive_may_be_offered() {
    assert_eq!(read(None, None, &json!({})), Err(Unacceptable::NoOffer));
    let elsewhere = with(v2(&offer(None)), "/accepts/0/network", json!("eip155:8453"));
    let refused = Unacceptable::NoHiveOffer { offered: "exact on eip155:8453".to_owned() };
    assert_eq!(only(&elsewhere), Err(refused));
    let upto = with(v2(&offer(None)), "/accepts/0/scheme", json!("upto"));
    assert!(matches!(only(&upto), Err(Unacceptable::NoHiveOffer { .. })));
    assert_eq!(read(Some(&elsewhere), Some(&v1(&offer(None))), &Value::Null).unwrap().version, 1);
    for (at, value) in [
        ("/accepts/0/amount", json!("10501")),
        ("/accepts/0/payTo", json!("evil.mugs")),
        ("/accepts/0/asset", json!("HIVE")),
    ] {
        let other = with(v2(&offer(None)), at, value);
        assert_eq!(read(Some(&other), Some(&v1(&offer(None))), &Value::Null), Err(Unacceptable::Contradiction), "{at}");
    }
    let mut headers = HeaderMap::new();
    headers.append("payment-required", encode_header(&v2(&offer(None)).to_string()).parse().unwrap());
    headers.append("payment-required", encode_header(&elsewhere.to_string()).parse().unwrap());
    assert_eq!(Quote::read(&headers, b"", Currency::Hbd), Err(Unacceptable::Malformed("payment-required")));
    headers.clear();
    headers.append("payment-required", "nonsense!".parse().unwrap());
    assert_eq!(Quote::read(&headers, b"", Currency::Hbd), Err(Unacceptable::Malformed("payment-required")));
}

#[test]
fn the_payers_own_limits_decide() {
    let quote = read(Some(&v2(&split())), Some(&v1(&split())), &Value::Null).unwrap();
    let check = |account: &str, max: &str, now| quote.check(&name(account), text(max), now);
    assert_eq!(check("alice", "10.500 HBD", NOW), Ok(()));
    let above = Unacceptable::AboveMaximum { price: text("10.500 HBD"), max: text("10.499 HBD") };
    assert_eq!(check("alice", "10.499 HBD", NOW), Err(above));
    let other = Unacceptable::OtherCurrency { price: text("10.500 HBD"), max: text("99.000 HIVE") };
    assert_eq!(check("alice", "99.000 HIVE", NOW), Err(other));
    for own in ["blue.mugs", "fee.taker"] {
        assert_eq!(check(own, "99.000 HBD", NOW), Err(Unacceptable::SelfPayment(name(own))));
    }
    let end = NOW + Duration::from_secs(600);
    assert_eq!(check("alice", "99.000 HBD", end), Err(Unacceptable::Expired(end)));
    let over = only(&with(v2(&offer(None)), "/accepts/0/maxTimeoutSeconds", json!(0))).unwrap();
    assert_eq!(over.check(&name("alice"), text("99.000 HBD"), NOW), Err(Unacceptable::Expired(NOW)));
    let encrypted = with(v2(&offer(None)), "/accepts/0/extra", json!({ "memo": "#secret" }));
    let refused = only(&encrypted).unwrap().check(&name("alice"), text("99.000 HBD"), NOW);
    assert_eq!(refused, Err(Unacceptable::Malformed("extra.memo")));
}

#[test]
fn what_a_server_wrote_cannot_write_on_the_terminal() {
    let quote = only(&with(v2(&offer(None)), "/resource/description", json!("a\u{1b}[2Jb\nc"))).unwrap();
    assert!(!quote.sentence().contains(['\u{1b}', '\n']), "{}", quote.sentence());
}
