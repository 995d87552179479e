//! Whatever is thrown at the addresses of x402: an answer of the interface, no panic, no fault of ours.

use std::sync::Arc;

use engine::{
    hive::{Pack, Transaction},
    x402::Reason,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use http_body_util::BodyExt;
use proptest::{
    prelude::*,
    test_runner::{TestCaseError, TestRunner},
};
use serde_json::Value;
use tokio::runtime::Runtime;

use super::{TRANSACTION, TRANSACTION_HF26, encode, v1_payload, v2_payload};
use crate::facade::{
    Facade,
    fake_engine::{FakeEngine, PAYMENT, SLUG},
    http::call::{Head, Incoming},
};

/// Cases of each property, unless `PROPTEST_CASES` sets them, as `.ci/run` does.
const CASES: u32 = 1_000;

fn runner() -> TestRunner {
    let mut config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = CASES;
    }
    TestRunner::new(config)
}

/// A facade that is called without sockets.
struct Fixture {
    runtime: Runtime,
    facade: Arc<Facade>,
    fake: FakeEngine,
}

impl Fixture {
    fn new() -> Self {
        let fake = FakeEngine::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Self { runtime, facade: Facade::new(fake.engine(), "https://pay.example", 7), fake }
    }

    /// Returns status and body.
    fn request(&self, method: Method, path: &str, headers: HeaderMap, body: Vec<u8>) -> (u16, HeaderMap, Vec<u8>) {
        let client = std::net::Ipv6Addr::LOCALHOST.into();
        let head = Arc::new(Head {
            method,
            uri: path.parse::<Uri>().expect("a path"),
            headers,
            client,
            body_timeout: std::time::Duration::from_secs(10),
            is_health: false,
        });
        let chunks = futures_util::stream::iter([Ok(bytes::Bytes::from(body))]);
        let response = self.runtime.block_on(async {
            let body = Incoming::new(chunks, std::time::Duration::from_secs(10));
            let (parts, body) = Arc::clone(&self.facade).handle(head, body).await.into_parts();
            (parts, body.collect().await.expect("a body").to_bytes())
        });
        // What was asked is kept nowhere else, and 100,000 requests would be kept here.
        self.fake.x402_payments.lock().expect("one test").clear();
        (response.0.status.as_u16(), response.0.headers, response.1.to_vec())
    }
}

/// Words that mean something here, and such as break readers.
const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "null",
    "true",
    "0",
    "-1",
    "1e999",
    "0.5",
    "18446744073709551616",
    "\"x402Version\":2,",
    "\"payTo\":\"a\",\"payTo\":\"b\",",
    "\"signatures\"",
    "\"nonce\":",
    "\"accepted\":{}",
    "transfer_operation",
    "transfer",
    "1.000 HBD",
    "+1.000 HBD",
    "-0.001 HIVE",
    "1.000 SBD",
    "@@000000013",
    "2038-01-19T03:14:08",
    "9999-99-99T99:99:99",
    "pos-",
    "x402:",
    "\u{0}",
    "\u{feff}",
    "é",
    "🐝",
    "[[[[[[[[[[[[[[[[[[",
    "sessionId",
    "paymentRequirements",
    "amount",
    "hive:mainnet",
];

#[derive(Debug, Clone)]
enum Edit {
    Insert(usize, usize),
    Replace(usize, u8),
    Delete(usize, usize),
    Repeat(usize, usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = 0..100_000_usize;
    prop_oneof![
        (at.clone(), 0..WORDS.len()).prop_map(|(at, word)| Edit::Insert(at, word)),
        (at.clone(), any::<u8>()).prop_map(|(at, byte)| Edit::Replace(at, byte)),
        (at.clone(), 1..40_usize).prop_map(|(at, count)| Edit::Delete(at, count)),
        (at, 1..200_usize).prop_map(|(at, count)| Edit::Repeat(at, count)),
    ]
}

/// A sound text with a few things wrong, or nothing.
fn edited(texts: Vec<String>) -> impl Strategy<Value = Vec<u8>> {
    (proptest::sample::select(texts), proptest::collection::vec(edit(), 0..5)).prop_map(|(text, edits)| {
        let mut bytes = text.into_bytes();
        for edit in edits {
            let place = |at: usize| at % (bytes.len() + 1);
            match edit {
                Edit::Insert(at, word) => {
                    let at = place(at);
                    bytes.splice(at..at, WORDS[word].bytes());
                }
                Edit::Replace(at, byte) if !bytes.is_empty() => {
                    let at = at % bytes.len();
                    bytes[at] = byte;
                }
                Edit::Replace(..) => {}
                Edit::Delete(at, count) => {
                    let at = place(at);
                    let end = (at + count).min(bytes.len());
                    bytes.drain(at..end);
                }
                Edit::Repeat(at, count) => {
                    let at = place(at);
                    let end = (at + count).min(bytes.len());
                    let part = bytes[at..end].to_vec();
                    bytes.splice(at..at, part);
                }
            }
        }
        bytes
    })
}

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..300)
}

/// JSON of any shape whose keys are those that are read.
fn any_json() -> impl Strategy<Value = Value> {
    let keys = [
        "x402Version",
        "scheme",
        "network",
        "payload",
        "signedTransaction",
        "nonce",
        "accepted",
        "amount",
        "asset",
        "payTo",
        "sessionId",
        "paymentRequirements",
        "paymentPayload",
        "operations",
        "signatures",
        "expiration",
        "ref_block_num",
        "ref_block_prefix",
        "extensions",
        "resource",
        "url",
        "validBefore",
        "maxAmountRequired",
        "type",
        "value",
        "from",
        "to",
        "memo",
        "precision",
        "nai",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| serde_json::Number::from_f64(number).map_or(Value::Null, Value::from)),
        (1..3_i64).prop_map(Value::from),
        proptest::sample::select(WORDS).prop_map(Value::from),
        Just(Value::from("exact")),
        Just(Value::from(PAYMENT)),
        ".{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 8, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(proptest::sample::select(keys.to_vec()), inner, 0..8)
                .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

fn bodies() -> Vec<String> {
    let transaction: Value = serde_json::from_str(TRANSACTION_HF26).expect("JSON");
    let mut hf26 = v1_payload();
    hf26["payload"]["signedTransaction"] = transaction;
    let requirements = [
        r#""paymentRequirements":{"scheme":"exact","network":"hive:mainnet","maxAmountRequired":"10.500 HBD","payTo":"blue.mugs","resource":"/a","validBefore":"2025-11-20T14:30:00Z"}"#.to_owned(),
        r#""paymentRequirements":{"scheme":"exact","network":"hive:mainnet","amount":"10500","asset":"HBD","payTo":"blue.mugs","maxTimeoutSeconds":60}"#.to_owned(),
        format!("\"sessionId\":\"{PAYMENT}\""),
    ];
    let payloads = [v1_payload(), v2_payload(), hf26];
    let body = |target: &String, payload: &Value| format!("{{{target},\"paymentPayload\":{payload}}}");
    requirements.iter().flat_map(|target| payloads.iter().map(move |payload| body(target, payload))).collect()
}

fn fail(why: String) -> TestCaseError {
    TestCaseError::fail(why)
}

fn read_json(bytes: &[u8]) -> Result<Value, TestCaseError> {
    serde_json::from_slice(bytes).map_err(|error| fail(format!("{error}: {}", String::from_utf8_lossy(bytes))))
}

#[test]
fn any_payment_header_gets_a_documented_response() {
    let fixture = Fixture::new();
    let payloads = vec![v1_payload().to_string(), v2_payload().to_string()];
    let base64 = |bytes: Vec<u8>| base64::Engine::encode(&base64::prelude::BASE64_STANDARD, bytes).into_bytes();
    let value = prop_oneof![
        any_bytes(),
        any_bytes().prop_map(base64),
        edited(payloads).prop_map(base64),
        any_json().prop_map(|json| encode(&json).into_bytes()),
        edited(vec![encode(&v1_payload()), encode(&v2_payload())]),
    ];
    let name = proptest::sample::select(vec!["x-payment", "payment-signature"]);
    let run = runner().run(&(name, value), |(name, value)| {
        // What no HTTP library lets through never arrives.
        let Ok(value) = HeaderValue::from_bytes(&value) else { return Ok(()) };
        let headers = [(HeaderName::from_static(name), value)].into_iter().collect();
        let (status, headers, body) = fixture.request(Method::GET, &format!("/for/{SLUG}"), headers, Vec::new());
        let body = read_json(&body)?;
        prop_assert!(matches!(status, 200 | 400 | 402 | 431), "{} {}", status, body);
        prop_assert_eq!(headers.contains_key("payment-required"), status == 402);
        prop_assert_eq!(headers.contains_key("payment-response"), matches!(status, 200 | 402));
        if status == 402 {
            prop_assert!(body["error"].as_str().is_some_and(|word| Reason::parse(word).is_some()), "{}", body);
        }
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn any_body_of_verify_and_settle_gets_a_documented_response() {
    let fixture = Fixture::new();
    let body = prop_oneof![any_bytes(), edited(bodies()), any_json().prop_map(|json| json.to_string().into_bytes())];
    let path = proptest::sample::select(vec!["verify", "settle"]);
    let run = runner().run(&(path, body), |(path, body)| {
        let (status, _, response) =
            fixture.request(Method::POST, &format!("/api/public/x402/{path}"), HeaderMap::new(), body);
        let response = read_json(&response)?;
        prop_assert!(matches!(status, 200 | 400), "{} {}", status, response);
        let (good, word) = match path {
            "verify" => (&response["isValid"], &response["invalidReason"]),
            _ => (&response["success"], &response["errorReason"]),
        };
        prop_assert!(good.is_boolean() && (status == 200 || *good == false), "{}", response);
        if *good == false {
            prop_assert!(word.as_str().is_some_and(|word| Reason::parse(word).is_some()), "{}", response);
        }
        if path == "settle" {
            prop_assert!(response["transaction"].is_string() && response["network"] == "hive:mainnet", "{}", response);
        }
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn what_is_read_of_a_transaction_is_what_is_sent_on() {
    let text = prop_oneof![
        edited(vec![TRANSACTION.to_owned(), TRANSACTION_HF26.to_owned()]),
        any_json().prop_map(|json| json.to_string().into_bytes()),
    ];
    let run = runner().run(&text, |text| {
        let Ok(transaction) = Transaction::parse(&text) else { return Ok(()) };
        for pack in [Pack::Legacy, Pack::Hf26] {
            let packed = Transaction::from_signed_bytes(&transaction.signed_bytes(pack));
            prop_assert_eq!(packed.map_err(|error| fail(error.to_string()))?, transaction.clone());
        }
        // hived parses `-1.500 HBD` as -0.500: a negative amount has no condenser form. Its transaction is refused, never sent on.
        let condenser = transaction.to_condenser_json();
        let is_negative = condenser.contains(r#""amount":"-"#);
        prop_assert!(!is_negative || transaction.validate().is_err(), "{}", condenser);
        for json in [transaction.to_hf26_json()].into_iter().chain(Some(condenser).filter(|_| !is_negative)) {
            let again = Transaction::parse(json.as_bytes()).map_err(|error| fail(format!("{error}: {json}")))?;
            prop_assert_eq!(again.id(Pack::Legacy), transaction.id(Pack::Legacy));
            prop_assert_eq!(again, transaction.clone());
        }
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("{error}"));
}
