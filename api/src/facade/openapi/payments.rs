//! Schemas of payments, events, unmatched transfers and sales.

use serde_json::{Value, json};

use super::derived::Derived;
use super::shape::{
    array, boolean, count, currency, described, integer, list, longest, nullable, object, optional, reference, status,
    text, time, units, url, with, words,
};
use crate::facade::{pages::checkout::phase::Live, record, rest};

/// Adds the schemas that are derived from the types of the responses.
pub(super) fn derive(derived: &mut Derived) {
    derived.add::<record::Amount>("Amount");
    derived.add::<record::Sum>("Sum");
    derived.add::<record::Metadata<'_>>("Metadata");
    derived.add::<record::Created<'_>>("Created");
    derived.add::<record::CreatedShort<'_>>("CreatedShort");
    derived.add::<record::Transfer<'_>>("Transfer");
    derived.add::<rest::payments::Transfers<'_>>("TransferList");
    derived.add::<record::Payment<'_>>("Payment");
    derived.add::<record::Page<record::Payment<'_>>>("PaymentPage");
    derived.add::<rest::admin::Dossier<'_>>("PaymentDossier");
    derived.add::<rest::payments::StatusBody<'_>>("CurrentStatus");
    derived.add::<Live<'_>>("LiveStatus");
    derived.add::<record::cancellation::Requested<'_>>("CancelRequested");
    derived.add::<rest::payments::Volume>("Volume");
    derived.add::<rest::payments::FeeRate>("FeeRate");
}

/// Adds the other schemas of payments: requests, events, unmatched transfers and sales.
pub(super) fn add(add: &mut impl FnMut(&str, Value)) {
    add("CreatePayment", create_payment());
    add("PaymentEventData", payment_event_data());
    add("SaleEventData", sale_event_data());
    add("AccountEventData", account_event_data());
    add("UnmatchedEventData", unmatched_event_data());
    let of_payments = ["payment.status_changed", "payment.exception", "refund.completed"];
    add("PaymentEvent", event(&of_payments, "PaymentEventData"));
    add("SaleEvent", event(&["x402.settled"], "SaleEventData"));
    add("AccountEvent", event(&["merchant.account_change"], "AccountEventData"));
    add("UnmatchedEvent", event(&["transfer.unmatched"], "UnmatchedEventData"));
    let events = ["PaymentEvent", "SaleEvent", "AccountEvent", "UnmatchedEvent"].map(reference);
    add("Event", json!({ "oneOf": events }));
    add("EventList", object(&[("events", list("Event")), ("nextCursor", text()), ("hasMore", boolean())]));
    add("Unmatched", unmatched());
    add("Sale", sale());
    add("SaleList", object(&[("data", list("Sale")), ("nextCursor", nullable(text()))]));
    add("UnmatchedList", object(&[("data", list("Unmatched")), ("nextCursor", nullable(text()))]));
    let candidate =
        object(&[("payment", reference("Payment")), ("matches", array(words(&["amount", "time", "payer"])))]);
    add("Candidates", object(&[("data", array(candidate))]));
    add("Assign", object(&[("paymentId", text())]));
    add("Ignore", optional(&[("note", nullable(text()))]));
    let kind = words(record::RESOLUTION_NAMES.names);
    add("Resolve", with(object(&[("kind", kind)]), &[("note", nullable(text())), ("txId", nullable(text()))]));
    add("RefundPlan", refund_plan());
}

fn create_payment() -> Value {
    with(
        object(&[
            ("amount", json!({ "type": "string", "pattern": "^([1-9][0-9]{0,8}|1000000000)$"})),
            ("currency", currency()),
            ("description", longest(255)),
        ]),
        &[
            ("redirectUrl", nullable(url())),
            ("cancelUrl", nullable(url())),
            ("metadata", reference("Metadata")),
            ("expiresInSeconds", integer(60, 86_400)),
        ],
    )
}

/// The exceptions of a payment.
fn exceptions() -> Value {
    array(words(record::EXCEPTION_NAMES.names))
}

/// The body of a webhook, which is the same in the list and in the stream of events.
fn event(types: &[&str], data: &str) -> Value {
    let data = reference(data);
    object(&[("type", words(types)), ("id", text()), ("createdAt", time()), ("timestamp", time()), ("data", data)])
}

fn payment_event_data() -> Value {
    let data = object(&[
        ("id", text()),
        ("paymentId", text()),
        ("merchantId", text()),
        ("status", status()),
        ("previousStatus", status()),
        ("providerId", words(&["hive"])),
        ("sequence", count()),
        ("exceptions", exceptions()),
        ("metadata", reference("Metadata")),
        ("livemode", boolean()),
    ]);
    let new =
        described(exceptions(), "In `payment.exception`: those that are new, or for which notable money arrived.");
    let refund = object(&[
        ("txId", text()),
        ("opIndex", count()),
        ("to", text()),
        ("value", units()),
        ("formatted", text()),
        ("currency", currency()),
        ("at", time()),
    ]);
    with(data, &[("internalId", text()), ("newExceptions", new), ("refund", refund)])
}

fn sale_event_data() -> Value {
    let data = object(&[
        ("txId", text()),
        ("merchantId", text()),
        ("payer", text()),
        ("payTo", text()),
        ("value", units()),
        ("formatted", text()),
        ("currency", currency()),
        ("resource", text()),
        ("livemode", boolean()),
    ]);
    with(data, &[("blockNum", count())])
}

fn account_event_data() -> Value {
    let data = object(&[
        ("merchantId", text()),
        ("change", words(&["requested", "cancelled", "completed"])),
        ("hiveAccount", text()),
        ("livemode", boolean()),
    ]);
    with(data, &[("pendingAccount", text()), ("effectiveAt", time())])
}

fn unmatched_event_data() -> Value {
    object(&[
        ("transferId", text()),
        ("merchantId", text()),
        ("reason", words(record::UNMATCHED_REASON_NAMES.names)),
        ("txId", text()),
        ("opIndex", count()),
        ("blockNum", count()),
        ("blockTime", time()),
        ("from", text()),
        ("to", text()),
        ("value", units()),
        ("formatted", text()),
        ("currency", currency()),
        ("memo", text()),
        ("livemode", boolean()),
    ])
}

fn sale() -> Value {
    object(&[
        ("id", text()),
        ("kind", words(&["x402"])),
        ("resource", described(text(), "What was sold, as its server named it.")),
        ("txId", text()),
        ("opIndex", count()),
        ("blockNum", count()),
        ("blockTime", time()),
        ("payer", text()),
        ("payTo", text()),
        ("amount", reference("Sum")),
        ("memo", text()),
        ("claimedAt", time()),
    ])
}

fn unmatched() -> Value {
    object(&[
        ("id", text()),
        ("status", words(record::UNMATCHED_STATUS_NAMES.names)),
        ("reason", words(record::UNMATCHED_REASON_NAMES.names)),
        ("txId", text()),
        ("opIndex", count()),
        ("blockNum", count()),
        ("blockTime", time()),
        ("from", text()),
        ("to", text()),
        ("amount", reference("Sum")),
        ("memo", text()),
        ("paymentId", nullable(text())),
        ("handledBy", nullable(text())),
        ("handledAt", nullable(time())),
        ("note", nullable(text())),
    ])
}

/// The transfer as wallets expect it: its name, then its fields.
fn operation() -> Value {
    let transfer = object(&[("from", text()), ("to", text()), ("amount", text()), ("memo", text())]);
    json!({
        "description": "The transfer as wallets expect it: `transfer`, then its fields.",
        "type": "array", "items": { "anyOf": [text(), transfer] }, "minItems": 2, "maxItems": 2,
    })
}

fn refund_plan() -> Value {
    let owed = object(&[("to", text()), ("amount", reference("Sum"))]);
    object(&[
        ("paymentId", text()),
        ("from", text()),
        ("to", text()),
        ("amount", reference("Sum")),
        ("memo", text()),
        ("operation", operation()),
        ("uri", text()),
        ("hivesignerUrl", url()),
        ("owed", array(owed)),
    ])
}
