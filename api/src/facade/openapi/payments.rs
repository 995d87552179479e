//! The shapes of payments, of what happened to them, and of unmatched transfers.

use proto::v1;
use serde_json::{Value, json};

use super::shape::{
    array, boolean, count, currency, described, given_url, integer, list, longest, nullable, object, optional, page,
    reference, status, text, time, units, url, with, words,
};
use crate::facade::record;

/// Adds every schema of payments.
pub(super) fn add(add: &mut impl FnMut(&str, Value)) {
    add("Amount", amount(true));
    add("Sum", amount(false));
    add("Metadata", metadata());
    add("CreatePayment", create_payment());
    add("Created", created());
    add("CreatedShort", object(&[("id", text()), ("slug", text()), ("redirectUrl", url()), ("checkoutUrl", url())]));
    add("Transfer", transfer());
    add("TransferList", object(&[("data", list("Transfer")), ("nextCursor", nullable(text()))]));
    add("Payment", payment());
    add("PaymentPage", page("Payment"));
    let step = object(&[("at", time()), ("event", text())]);
    add("PaymentDossier", object(&[("payment", reference("Payment")), ("timeline", array(step))]));
    add("Status", object(&[("id", text()), ("status", status()), ("completedAt", nullable(time()))]));
    add("LiveStatus", live_status());
    add("CancelRequested", object(&[("id", text()), ("status", status()), ("cancelRequested", boolean())]));
    add("Volume", volume());
    add("FeeRate", object(&[("feePercent", json!({ "type": "number", "minimum": 0, "maximum": 100 }))]));
    add("PaymentEventData", payment_event_data());
    add("SaleEventData", sale_event_data());
    add("AccountEventData", account_event_data());
    add("PaymentEvent", event(&["payment.status_changed", "payment.exception"], "PaymentEventData"));
    add("SaleEvent", event(&["x402.settled"], "SaleEventData"));
    add("AccountEvent", event(&["merchant.account_change"], "AccountEventData"));
    let events = ["PaymentEvent", "SaleEvent", "AccountEvent"].map(reference);
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
    let kind = words(record::RESOLUTION_WORDS.words);
    add("Resolve", with(object(&[("kind", kind)]), &[("note", nullable(text())), ("txId", nullable(text()))]));
    add("RefundPlan", refund_plan());
}

fn amount(has_worth: bool) -> Value {
    let mut members = vec![("value", units()), ("formatted", text()), ("currency", currency())];
    if has_worth {
        members.push(("usdCents", json!({ "type": "integer", "minimum": 0 })));
    }
    object(&members)
}

fn metadata() -> Value {
    let texts = json!({ "type": "array", "items": { "type": "string", "maxLength": 500 }, "maxItems": 20 });
    let value = json!({ "oneOf": [{ "type": "string", "maxLength": 500 }, texts] });
    json!({
        "description": "Data of the merchant: up to 50 keys, each with a text or a list of texts.",
        "examples": [{ "orderId": "A-1001" }],
        "type": "object", "maxProperties": 50, "additionalProperties": value,
        "propertyNames": { "type": "string", "minLength": 1, "maxLength": 40 },
    })
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

fn created() -> Value {
    let number = || json!({ "type": "integer" });
    object(&[
        ("id", text()),
        ("slug", text()),
        ("status", status()),
        ("checkoutUrl", url()),
        ("slugUrl", url()),
        ("amount", reference("Amount")),
        ("fee", units()),
        ("net", units()),
        ("description", text()),
        ("expiresAt", time()),
        ("createdAt", time()),
        ("amountFormatted", text()),
        ("currency", currency()),
        ("precision", number()),
        ("usdEquivalentCents", number()),
    ])
}

/// The exceptions of a payment, in the words of the interface.
fn exceptions() -> Value {
    array(words(record::EXCEPTION_WORDS.words))
}

fn status_reason() -> Value {
    let every: Vec<&str> = v1::PaymentStatusReason::ALL.iter().filter_map(|reason| reason.rest_name()).collect();
    words(&every)
}

fn transfer() -> Value {
    object(&[
        ("txId", text()),
        ("opIndex", count()),
        ("blockNum", nullable(count())),
        ("blockTime", nullable(time())),
        ("from", text()),
        ("to", text()),
        ("amount", reference("Sum")),
        ("memo", described(text(), "The first 256 characters; a longer one ends with an ellipsis.")),
        ("finality", words(record::FINALITY_WORDS.words)),
        ("disposition", words(record::DISPOSITION_WORDS.words)),
        ("route", words(record::ROUTE_WORDS.words)),
        ("memoNormalized", described(boolean(), "Whether the memo said more than its payment's name.")),
    ])
}

fn payment() -> Value {
    let refund = object(&[("txId", text()), ("opIndex", count()), ("amount", reference("Sum")), ("at", time())]);
    let resolution = object(&[
        ("kind", words(record::RESOLUTION_WORDS.words)),
        ("by", text()),
        ("at", time()),
        ("note", text()),
        ("txId", nullable(text())),
    ]);
    let mut members = vec![
        ("id", text()),
        ("merchantId", text()),
        ("status", status()),
        ("checkoutUrl", url()),
        ("slug", text()),
        ("slugUrl", url()),
        ("amount", reference("Amount")),
        ("fee", units()),
        ("net", units()),
        ("description", text()),
        ("metadata", reference("Metadata")),
        ("expiresAt", time()),
        ("completedAt", nullable(time())),
        ("createdAt", time()),
        ("updatedAt", time()),
        ("amountFormatted", text()),
        ("currency", currency()),
        ("precision", count()),
        ("usdEquivalentCents", count()),
        ("merchantName", text()),
        ("providerId", words(&["hive"])),
        ("payTo", text()),
        ("memo", text()),
        ("exceptions", exceptions()),
        (
            "transfers",
            described(
                list("Transfer"),
                "Those of a signed transaction, those that completed the payment and the newest others, at most 20. All of them: `/transfers`.",
            ),
        ),
        ("transferCount", described(count(), "How many transfers named the payment, listed here or not.")),
        ("refunds", array(refund)),
        ("resolution", nullable(resolution)),
        ("needsAttention", boolean()),
        ("txId", nullable(text())),
        ("txHint", nullable(text())),
        ("previousStatus", nullable(status())),
        ("statusReason", nullable(status_reason())),
        ("cancelRequested", described(boolean(), "Whether a request to cancel is undecided or in force.")),
        ("cancelRequestedAt", nullable(time())),
        ("cutoff", described(nullable(time()), "The last block time at which a transfer still counts.")),
        ("walletOpenedAt", described(nullable(time()), "When the page first reported an opened wallet.")),
        ("cancelledBy", nullable(words(record::CANCELLED_BY_WORDS.words))),
        ("sequence", count()),
        ("expired", boolean()),
        ("rateAt", nullable(time())),
        ("livemode", boolean()),
    ];
    for name in ["amountPaid", "amountRemaining", "amountOverpaid", "amountLate", "amountRefunded"] {
        members.push((name, units()));
    }
    // Left out where there is none.
    let left_out = [
        ("redirectUrl", given_url()),
        ("cancelUrl", given_url()),
        ("redirectionUrl", given_url()),
        ("merchantIconUrl", given_url()),
        ("internalId", described(text(), "The transaction that completed it.")),
    ];
    with(object(&members), &left_out)
}

/// What a customer's page shows of a payment, and what follows it.
fn live_status() -> Value {
    let phases = [
        "waiting",
        "part",
        "seen",
        "checking",
        "processing",
        "completed",
        "cancelling",
        "cancelled",
        "expired",
        "failed",
    ];
    object(&[
        ("id", text()),
        ("status", status()),
        ("completedAt", nullable(time())),
        ("expired", boolean()),
        ("sequence", count()),
        ("phase", words(&phases)),
        ("version", described(text(), "Another text whenever the page would look otherwise.")),
        ("headline", described(text(), "In the language of the request.")),
        ("message", described(text(), "In the language of the request.")),
        ("amountRemaining", units()),
    ])
}

fn volume() -> Value {
    let day = object(&[
        ("day", json!({ "type": "string", "format": "date" })),
        ("opened", count()),
        ("completed", count()),
        ("ended", described(count(), "Payments that ended otherwise.")),
        ("hive", units()),
        ("hbd", units()),
        ("usdCents", count()),
    ]);
    let median = described(
        nullable(count()),
        "Milliseconds from creation to completion, of half of the payments at most. Exact to one part in 64.",
    );
    object(&[("days", array(day)), ("medianMsToPay", median)])
}

/// The body of a webhook: the same bytes in the list, in the stream and in what is sent.
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
    let new = described(exceptions(), "In `payment.exception`: those that are new, or that notable money came for.");
    with(data, &[("internalId", text()), ("newExceptions", new)])
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

fn sale() -> Value {
    object(&[
        ("id", text()),
        ("kind", words(&["x402"])),
        ("resource", described(text(), "What was sold, in the words of its server.")),
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
        ("status", words(record::UNMATCHED_STATUS_WORDS.words)),
        ("reason", words(record::UNMATCHED_REASON_WORDS.words)),
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

/// The transfer as wallets take it: its name, then its members.
fn operation() -> Value {
    let transfer = object(&[("from", text()), ("to", text()), ("amount", text()), ("memo", text())]);
    json!({
        "description": "The transfer as wallets take it: `transfer`, then its members.",
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
