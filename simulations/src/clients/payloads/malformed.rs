//! Payments and requirements that break one rule of the format, or that are just within it.

use engine::x402::{HeaderError, MAX_HEADER_BYTES, Reason, Refused};

use super::*;

/// The expected result of parsing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Read,
    Refused(Reason),
    /// The header is invalid.
    Header(HeaderError),
}

impl Verdict {
    fn of<T>(read: Result<T, Refused>) -> Self {
        match read {
            Ok(_) => Self::Read,
            Err(refused) => Self::Refused(refused.reason),
        }
    }
}

/// A change of a correct text, and the expected result of parsing it.
struct Change {
    what: &'static str,
    wanted: Verdict,
    make: fn(&mut Value),
}

const fn change(what: &'static str, wanted: Verdict, make: fn(&mut Value)) -> Change {
    Change { what, wanted, make }
}

/// Returns where a payment has its scheme, network and amount: version 2 in `accepted`.
fn terms(text: &mut Value) -> &mut Value {
    if text["x402Version"] == 2 { &mut text["accepted"] } else { text }
}

fn is_second(text: &Value) -> bool {
    text["x402Version"] == 2
}

const PAYMENTS: [Change; 15] = [
    change("another scheme", Verdict::Refused(Reason::UnsupportedScheme), |text| terms(text)["scheme"] = json!("upto")),
    change("another network", Verdict::Refused(Reason::InvalidNetwork), |text| {
        terms(text)["network"] = json!("hive:testnet");
    }),
    change("the network's other name", Verdict::Read, |text| {
        terms(text)["network"] = json!("hive:beeab0de000000000000000000000000");
    }),
    change("a third version", Verdict::Refused(Reason::InvalidX402Version), |text| text["x402Version"] = json!(3)),
    change("no version", Verdict::Refused(Reason::InvalidPayload), |text| text["x402Version"] = Value::Null),
    change("no payload", Verdict::Refused(Reason::InvalidPayload), |text| text["payload"] = Value::Null),
    change("an empty nonce", Verdict::Refused(Reason::InvalidPayload), |text| text["payload"]["nonce"] = json!("")),
    change("the longest nonce", Verdict::Read, |text| text["payload"]["nonce"] = json!("n".repeat(256))),
    change("a longer nonce", Verdict::Refused(Reason::InvalidPayload), |text| {
        text["payload"]["nonce"] = json!("n".repeat(257));
    }),
    change("an unknown operation", Verdict::Refused(Reason::Operations), |text| {
        text["payload"]["signedTransaction"]["operations"][0][0] = json!("no_such_operation");
    }),
    change("an amount that is a number", Verdict::Read, |text| {
        if is_second(text) {
            text["accepted"]["amount"] = json!(50);
        }
    }),
    change("an amount with its asset, and no other", Verdict::Read, |text| {
        if is_second(text) {
            text["accepted"]["amount"] = json!("0.050 HBD");
            text["accepted"]["asset"] = Value::Null;
        }
    }),
    change("a list", Verdict::Header(HeaderError::Malformed), |text| *text = json!([text.take()])),
    change("a long header", Verdict::Header(HeaderError::TooLong), |text| {
        text["extensions"] = json!({ "more": "x".repeat(MAX_HEADER_BYTES) });
    }),
    change("an unknown member", Verdict::Read, |text| text["more"] = json!({ "anything": [1, 2.5, null] })),
];

const REQUIREMENTS: [Change; 10] = [
    change("another scheme", Verdict::Refused(Reason::UnsupportedScheme), |text| text["scheme"] = json!("upto")),
    change("another network", Verdict::Refused(Reason::InvalidNetwork), |text| text["network"] = json!("hive:testnet")),
    change("no scheme", Verdict::Refused(Reason::InvalidPaymentRequirements), |text| text["scheme"] = Value::Null),
    change("no network", Verdict::Refused(Reason::InvalidPaymentRequirements), |text| text["network"] = Value::Null),
    change("two amounts", Verdict::Refused(Reason::InvalidPaymentRequirements), |text| {
        text["maxAmountRequired"] = json!("1.000 HBD");
        text["amount"] = json!("1000");
    }),
    change("an amount with its asset, and no other", Verdict::Read, |text| {
        text["maxAmountRequired"] = Value::Null;
        text["amount"] = json!("1.000 HBD");
        text["asset"] = Value::Null;
    }),
    change("an amount in another asset", Verdict::Refused(Reason::InvalidPaymentRequirements), |text| {
        text["maxAmountRequired"] = Value::Null;
        text["amount"] = json!("1.000 HBD");
        text["asset"] = json!("HIVE");
    }),
    change("no resource", Verdict::Read, |text| text["resource"] = Value::Null),
    change("a resource with hidden characters", Verdict::Refused(Reason::InvalidPaymentRequirements), |text| {
        text["resource"] = json!("/report\u{202e}gpj.exe");
    }),
    change("a long resource", Verdict::Refused(Reason::InvalidPaymentRequirements), |text| {
        text["resource"] = json!("r".repeat(2_049));
    }),
];

/// Changes a payment in one way, and checks how the engine reads it.
pub(super) fn try_payment(sim: &Simulation, text: &Value, choice: u64) {
    let (one, text) = changed(&PAYMENTS, text, choice);
    let header = BASE64_STANDARD.encode(text.to_string());
    let found = match PaymentPayload::decode_header(&header) {
        Ok(read) => Verdict::of(read),
        Err(error) => Verdict::Header(error),
    };
    judge(sim, one, found);
}

/// Changes a seller's requirements in one way, and checks how the engine reads them.
pub(super) fn try_requirements(sim: &Simulation, text: &Value, choice: u64) {
    let (one, text) = changed(&REQUIREMENTS, text, choice);
    judge(sim, one, Verdict::of(Requirements::parse(text.to_string().as_bytes())));
}

fn changed<'a>(changes: &'a [Change], text: &Value, choice: u64) -> (&'a Change, Value) {
    let one = &changes[usize::try_from(choice).unwrap_or(0) % changes.len()];
    let mut text = text.clone();
    (one.make)(&mut text);
    (one, text)
}

fn judge(sim: &Simulation, Change { what, wanted, .. }: &Change, found: Verdict) {
    sim.observe(|observer| {
        if found == *wanted {
            observer.passes("malformed-payments-are-refused");
        } else {
            let text = format!("{what}: {found:?}, and not {wanted:?}");
            observer.violate("malformed-payments-are-refused", text, None);
        }
    });
}
