//! Schemas of webhook endpoints and deliveries.

use engine::{payment::State, webhook::EventType};
use serde_json::{Map, Value, json};

use super::shape::{
    array, boolean, count, described, list, nullable, object, of_schema, optional, reference, text, time, url, with,
    words,
};

/// The events that are sent to merchants: their type, the operation's name, and a description.
const EVENTS: [(&str, &str, &str); 6] = [
    (
        "payment.status_changed",
        "webhooks.paymentStatusChanged",
        "The status of a payment changed. Creation sends no event.",
    ),
    (
        "payment.exception",
        "webhooks.paymentException",
        "A payment has new exceptions. Sent if `webhookEvents` contains it.",
    ),
    (
        "x402.settled",
        "webhooks.x402Settled",
        "A payment was settled by x402 for a resource of the merchant. Sent if `webhookEvents` contains it.",
    ),
    (
        "merchant.account_change",
        "webhooks.merchantAccountChange",
        "A change of a proven Hive account was requested, cancelled or completed. Sent if `webhookEvents` contains it.",
    ),
    (
        "refund.completed",
        "webhooks.refundCompleted",
        "A refund of a payment is final. Sent if `webhookEvents` contains it.",
    ),
    (
        "transfer.unmatched",
        "webhooks.transferUnmatched",
        "A transfer to a proven Hive account matches no payment. Sent if `webhookEvents` contains it.",
    ),
];

/// The headers of a delivery, with the default of the setting `webhooks.header_prefix`.
const HEADERS: [(&str, &str, &str); 8] = [
    (
        "X-Hivetill-Signature",
        "5d41402abc4b2a76b9719d911017c592ae2f7d6c1b0e9a8f7c6d5e4f3a2b1c0d",
        "Hex HMAC-SHA256 of `{timestamp}.{body}`, keyed with the webhook secret.",
    ),
    (
        "X-Hivetill-Timestamp",
        "1795183512000",
        "When it was signed, in Unix milliseconds. Reject signatures older than 5 minutes.",
    ),
    ("X-Hivetill-Event", "payment.status_changed", "The type of the event."),
    ("X-Hivetill-Delivery", "whd_01m82atcw4q6t8y0v2x4z6b8d0", "The id of the delivery."),
    ("X-Hivetill-Attempt", "1", "The number of the attempt, from 1."),
    (
        "webhook-id",
        "evt_01m82atc5k3v8q2w4e6r8t0y1a",
        "The id of the event (Standard Webhooks): the same for every attempt.",
    ),
    ("webhook-timestamp", "1795183512", "When it was signed, Unix seconds (Standard Webhooks)."),
    (
        "webhook-signature",
        "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
        "`v1,` and the base64 of the signature (Standard Webhooks).",
    ),
];

/// Returns the webhooks of the document.
pub(super) fn sent() -> Value {
    let parameters: Vec<Value> = HEADERS
        .iter()
        .map(|(name, example, description)| {
            json!({
                "name": name, "in": "header", "required": true, "schema": text(), "description": description,
                "example": example,
            })
        })
        .collect();
    let webhook = |(kind, id, description): (&str, &str, &str)| {
        let operation = json!({
            "tags": ["Events"],
            "operationId": id,
            "summary": kind,
            "description": description,
            "parameters": parameters,
            "requestBody": { "required": true, "content": { "application/json": of_schema("Event") } },
            "responses": {
                "200": { "description": "Any status from 200 to 299 within 5 seconds acknowledges the event." },
                "410": { "description": "Disables the endpoint." },
            },
            "security": [],
        });
        (kind.to_owned(), json!({ "post": operation }))
    };
    EVENTS.into_iter().map(webhook).collect::<Map<_, _>>().into()
}

/// Adds every schema of webhooks.
pub(super) fn add(add: &mut impl FnMut(&str, Value)) {
    add("WebhookEndpoint", endpoint());
    add("WebhookEndpoints", object(&[("endpoints", list("WebhookEndpoint"))]));
    let types = EventType::ALL.map(EventType::as_str);
    let events = || json!({ "type": "array", "items": words(&types), "minItems": 1 });
    let purpose = [("description", nullable(text()))];
    add("CreateWebhookEndpoint", with(object(&[("url", url()), ("events", events())]), &purpose));
    let changes = [("url", url()), ("events", events()), ("enabled", boolean())];
    add("UpdateWebhookEndpoint", with(optional(&changes), &purpose));
    let made = [("webhookSecret", text()), ("endpoint", reference("WebhookEndpoint"))];
    add("MadeWebhookEndpoint", object(&made));
    let replayed =
        [("replayed", described(count(), "The number of deliveries that are sent again.")), ("hasMore", boolean())];
    add("EnabledWebhook", with(endpoint(), &replayed));
    add("Replayed", object(&replayed));
    add("EnableWebhook", optional(&[("replaySince", nullable(time()))]));
    let statuses = State::ALL.map(State::as_str);
    add("TestWebhook", optional(&[("type", words(&types)), ("status", words(&statuses))]));
    add("ReplayWebhooks", object(&[("since", time())]));
    add("Delivery", object(&delivery()));
    let log = [("attemptLog", array(attempt()))];
    add("DeliveryWithAttempts", with(object(&[&delivery()[..], &log].concat()), &[("requestBody", text())]));
    add("DeliveryList", object(&[("deliveries", list("Delivery")), ("nextCursor", nullable(text()))]));
}

fn endpoint() -> Value {
    object(&[
        ("id", text()),
        ("merchantId", text()),
        ("url", nullable(url())),
        ("description", text()),
        ("events", array(words(&EventType::ALL.map(EventType::as_str)))),
        ("enabled", boolean()),
        ("status", words(&["none", "active", "failing", "disabled"])),
        ("disabledReason", nullable(text())),
        ("disabledAt", nullable(time())),
        ("failingSince", nullable(time())),
        ("failedAttempts", count()),
        ("warning", nullable(text())),
        (
            "breakerOpen",
            described(boolean(), "Whether the endpoint gets one delivery at a time, because it does not respond."),
        ),
        ("lastSuccessAt", nullable(time())),
        ("lastFailureAt", nullable(time())),
        ("createdAt", time()),
    ])
}

fn trigger() -> Value {
    words(&["auto", "manual", "test"])
}

fn delivery() -> Vec<(&'static str, Value)> {
    vec![
        ("id", text()),
        ("eventId", text()),
        ("merchantId", text()),
        ("endpointId", text()),
        ("trigger", trigger()),
        ("status", words(&["pending", "held", "delivered", "failed"])),
        ("attempts", count()),
        ("createdAt", time()),
        ("nextAttemptAt", nullable(time())),
        ("lastOutcome", nullable(text())),
        ("lastHttpStatus", nullable(count())),
        ("lastAttemptAt", nullable(time())),
    ]
}

fn attempt() -> Value {
    object(&[
        ("attempt", described(count(), "The number of the attempt, from 1.")),
        ("trigger", trigger()),
        ("url", text()),
        ("scheduledAt", time()),
        ("startedAt", time()),
        ("endedAt", time()),
        ("durationMs", count()),
        ("outcome", text()),
        ("httpStatus", nullable(count())),
        ("responseSnippet", text()),
        ("nextAttemptAt", nullable(time())),
        ("requestBytesSha256", text()),
        ("requestHeaders", json!({ "type": "object", "additionalProperties": text() })),
    ])
}
