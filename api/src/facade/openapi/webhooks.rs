//! The shapes of webhook endpoints and deliveries.

use serde_json::Value;

use super::schemas::{
    array, boolean, count, described, list, nullable, object, optional, text, time, url, with, words,
};

/// Adds every schema of webhooks.
pub(super) fn add(add: &mut impl FnMut(&str, Value)) {
    add("WebhookEndpoint", endpoint());
    let replayed = [("replayed", described(count(), "Deliveries that are sent again.")), ("hasMore", boolean())];
    add("EnabledWebhook", with(endpoint(), &replayed));
    add("Replayed", object(&replayed));
    add("EnableWebhook", optional(&[("replaySince", nullable(time()))]));
    add("ReplayWebhooks", object(&[("since", time())]));
    add("Delivery", object(&delivery()));
    let log = [("attemptLog", array(attempt()))];
    add("DeliveryWithAttempts", object(&[&delivery()[..], &log].concat()));
    add("DeliveryList", object(&[("deliveries", list("Delivery")), ("nextCursor", nullable(text()))]));
}

fn endpoint() -> Value {
    object(&[
        ("merchantId", text()),
        ("url", nullable(url())),
        ("enabled", boolean()),
        ("status", words(&["none", "active", "failing", "disabled"])),
        ("disabledReason", nullable(text())),
        ("disabledAt", nullable(time())),
        ("failingSince", nullable(time())),
        ("failedAttempts", count()),
        ("warning", nullable(text())),
        ("breakerOpen", described(boolean(), "Whether it gets one delivery at a time, because it does not answer.")),
        ("lastSuccessAt", nullable(time())),
        ("lastFailureAt", nullable(time())),
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
        ("attempt", described(count(), "Its number, from 1.")),
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
    ])
}
