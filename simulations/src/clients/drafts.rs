//! Orders of sessions: a valid one, and orders that break one rule, which must be refused for it.

use engine::{fields::MetadataValue, payment::RawDraft};

use super::*;

fn raw(session: u32, amount: Money, lifetime_seconds: Option<u64>) -> RawDraft {
    let items = ["mug", "tea"].map(str::to_owned).to_vec();
    let metadata = [("order", MetadataValue::Text(session.to_string())), ("items", MetadataValue::List(items))];
    RawDraft {
        amount_units: amount.units,
        currency: amount.currency,
        description: "A blue mug".to_owned(),
        metadata: metadata.map(|(key, value)| (key.to_owned(), value)).into_iter().collect(),
        redirect_url: session.is_multiple_of(2).then(|| "https://shop.example/thanks".to_owned()),
        cancel_url: session.is_multiple_of(3).then(|| "https://shop.example/cancelled".to_owned()),
        expires_in_seconds: lifetime_seconds,
    }
}

/// Returns the order of a session.
pub(super) fn draft(session: u32, amount: Money, lifetime_seconds: Option<u64>) -> Draft {
    Draft::check(raw(session, amount, lifetime_seconds)).expect("a valid order")
}

/// A change of a valid order, and the fields that are invalid then.
type Change = (fn(&mut RawDraft), &'static [&'static str]);

const CHANGES: [Change; 13] = [
    (|raw| raw.amount_units = 0, &["amount"]),
    (|raw| raw.description = " ".to_owned(), &["description"]),
    (|raw| raw.redirect_url = Some("shop.example".to_owned()), &["redirectUrl"]),
    (|raw| raw.cancel_url = Some("shop.example".to_owned()), &["cancelUrl"]),
    (|raw| raw.expires_in_seconds = Some(59), &["expiresInSeconds"]),
    (|raw| raw.expires_in_seconds = Some(60), &[]),
    (|raw| raw.expires_in_seconds = Some(86_400), &[]),
    (|raw| raw.expires_in_seconds = Some(86_401), &["expiresInSeconds"]),
    (|raw| raw.expires_in_seconds = None, &[]),
    (|raw| (raw.redirect_url, raw.cancel_url) = (None, None), &[]),
    (|raw| drop(raw.metadata.insert(String::new(), MetadataValue::Text(String::new()))), &["metadata."]),
    (
        |raw| {
            raw.amount_units = 0;
            raw.cancel_url = Some("javascript:alert(1)".to_owned());
        },
        &["amount", "cancelUrl"],
    ),
    (|_| {}, &[]),
];

/// Sends an invalid order that the session's number selects; it must create nothing.
pub(super) fn try_order(sim: &Simulation, session: u32, amount: Money) {
    let (make, wanted) = CHANGES[usize::try_from(session).unwrap_or(0) % CHANGES.len()];
    let mut raw = raw(session, amount, None);
    make(&mut raw);
    let violations = Draft::check(raw.clone()).err().unwrap_or_default();
    let fields: Vec<&str> = violations.iter().map(|violation| violation.field.as_str()).collect();
    sim.observe(|observer| {
        if fields == wanted {
            observer.passes("wrong-orders-are-refused");
        } else {
            let text = format!("{fields:?} is invalid in {raw:?}, and {wanted:?} should be");
            observer.violate("wrong-orders-are-refused", text, None);
        }
    });
}
