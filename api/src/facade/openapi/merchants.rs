//! Schemas of merchants, API keys, secrets and admin operations.

use engine::webhook::EventType;
use serde_json::{Value, json};

use super::shape::{
    array, boolean, described, given_url, integer, list, longest, nullable, object, optional, page, reference, text,
    time, url, with, words,
};

/// Adds the schemas.
pub(super) fn add(add: &mut impl FnMut(&str, Value)) {
    add("Merchant", merchant());
    add("MerchantPage", page("Merchant"));
    add("Register", register());
    add("Registered", object(&[("apiKey", text()), ("webhookSecret", text()), ("merchant", reference("Merchant"))]));
    add("Reissued", object(&[("apiKey", text()), ("merchant", reference("Merchant"))]));
    add("UpdateMerchant", update_merchant());
    add("PendingAccount", pending_account());
    add("IssueChallenge", optional(&[("hiveAccount", nullable(text())), ("cancel", boolean())]));
    add("AccountChallenge", account_challenge());
    add("CancelForm", object(&[("token", text())]));
    add("RestartForm", object(&[("token", text())]));
    add("AccountProof", object(&[("nonce", text()), ("signatures", array(text()))]));
    add("ProvenAccount", proven_account());
    add("RotateSecret", optional(&[("graceHours", integer(0, 168))]));
    add("Secret", with(object(&[("webhookSecret", text())]), &[("previousValidUntil", time())]));
    add("ApiKey", api_key());
    add("ApiKeys", object(&[("data", list("ApiKey"))]));
    add(
        "MadeKey",
        with(object(&[("apiKey", text()), ("key", reference("ApiKey"))]), &[("previousValidUntil", time())]),
    );
    add("CreateKey", with(object(&[("scopes", scopes())]), &[("name", nullable(longest(100)))]));
    add("RollKey", optional(&[("overlapHours", integer(0, 72))]));
    add("ChangeStatus", object(&[("role", words(&["user", "nonActive"]))]));
    add("SetActive", object(&[("isActive", boolean())]));
    add("AuditEntry", audit_entry());
    add("AuditPage", object(&[("data", list("AuditEntry")), ("nextCursor", nullable(text()))]));
    add("ReconciliationDay", reconciliation_day());
    add("ReconciliationPage", object(&[("data", list("ReconciliationDay")), ("nextCursor", nullable(text()))]));
    add("Thresholds", thresholds());
    add("Crossing", crossing());
    add("ComplianceStatus", compliance_status());
    add("ClearHold", with(object(&[("reason", longest(500))]), &[("limits", nullable(reference("Thresholds")))]));
    add("SetLimits", json!({ "oneOf": [reference("Thresholds"), object(&[("limits", json!({ "type": "null" }))])] }));
}

fn reconciliation_day() -> Value {
    let number = || json!({ "type": "integer", "minimum": 0 });
    let operation = object(&[("txId", text()), ("amount", reference("Sum"))]);
    let operations = || json!({ "type": "array", "items": operation });
    let finding = object(&[
        ("account", text()),
        ("merchantIds", json!({ "type": "array", "items": { "type": "string" } })),
        ("missing", operations()),
        ("missingCount", number()),
        ("extra", operations()),
        ("extraCount", number()),
    ]);
    object(&[
        ("from", time()),
        ("to", time()),
        ("checkedAt", time()),
        ("outcome", words(&["ok", "mismatch", "not_checked"])),
        ("accounts", number()),
        ("unchecked", number()),
        ("obstacle", nullable(text())),
        ("operations", number()),
        ("mismatches", number()),
        ("findings", json!({ "type": "array", "items": finding })),
    ])
}

/// US cents; 0 is no limit.
fn thresholds() -> Value {
    object(&["singleCents", "dailyCents", "monthlyCents"].map(|name| (name, cents())))
}

fn cents() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": 1_000_000_000_000u64 })
}

/// A sum has no maximum.
fn sum_of_cents() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn crossing() -> Value {
    object(&[
        ("window", words(&["single", "24h", "30d", "near_single"])),
        ("usdCents", sum_of_cents()),
        ("limitCents", sum_of_cents()),
        ("at", time()),
    ])
}

fn compliance_status() -> Value {
    let clearance = object(&[("by", text()), ("reason", text()), ("at", time())]);
    object(&[
        ("merchantId", text()),
        ("flagged", boolean()),
        ("flag", nullable(reference("Crossing"))),
        ("limits", nullable(reference("Thresholds"))),
        ("ownLimits", boolean()),
        ("softLimits", nullable(reference("Thresholds"))),
        ("completedLast24hCents", sum_of_cents()),
        ("completedLast30dCents", sum_of_cents()),
        ("notices", list("Crossing")),
        ("clearances", json!({ "type": "array", "items": clearance })),
    ])
}

fn register() -> Value {
    with(object(&[("name", longest(100)), ("hiveAccount", text())]), &[("iconUrl", nullable(url()))])
}

fn update_merchant() -> Value {
    optional(&[
        ("name", longest(100)),
        ("hiveAccount", text()),
        ("iconUrl", nullable(url())),
        ("webhookUrl", nullable(url())),
        (
            "webhookEvents",
            described(
                array(words(&EventType::ALL.map(EventType::as_str))),
                "The event types that the endpoint receives; `payment.status_changed` is always included.",
            ),
        ),
        ("supportUrl", nullable(url())),
        ("x402Enabled", boolean()),
        ("restartEnabled", boolean()),
    ])
}

fn scopes() -> Value {
    let scope = words(&["payments:read", "payments:write", "merchant:write", "merchant:payout", "admin"]);
    json!({ "type": "array", "items": scope, "minItems": 1 })
}

fn api_key() -> Value {
    object(&[
        ("id", text()),
        ("name", text()),
        ("prefix", text()),
        ("last4", text()),
        ("scopes", scopes()),
        ("createdAt", time()),
        ("lastUsedAt", nullable(time())),
        ("expiresAt", nullable(time())),
    ])
}

fn audit_entry() -> Value {
    let actor = object(&[("merchantId", nullable(text())), ("keyId", nullable(text())), ("ip", nullable(text()))]);
    let change = object(&[("field", text()), ("before", nullable(text())), ("after", nullable(text()))]);
    object(&[
        ("seq", json!({ "type": "integer", "minimum": 1 })),
        ("at", time()),
        ("actor", actor),
        ("action", text()),
        ("merchantId", text()),
        ("subject", nullable(text())),
        ("changes", json!({ "type": "array", "items": change })),
    ])
}

fn pending_account() -> Value {
    object(&[
        ("hiveAccount", text()),
        ("requestedAt", time()),
        ("effectiveAt", described(time(), "The earliest time it takes effect.")),
        ("currentProven", described(boolean(), "Whether the current account has signed.")),
        ("newProven", described(boolean(), "Whether the new account has signed.")),
    ])
}

fn account_challenge() -> Value {
    let transfer = object(&[
        ("memo", text()),
        ("operation", json!({ "type": "array", "items": {} })),
        ("uri", described(text(), "Opens a wallet with the transfer filled in.")),
        ("hivesignerUrl", text()),
    ]);
    object(&[
        ("hiveAccount", described(text(), "The account that must sign.")),
        ("action", described(text(), "`verify`, `change to <account>` or `cancel change`.")),
        ("text", described(text(), "The text to sign; the signature is over its SHA-256.")),
        ("digest", described(text(), "The SHA-256 of `text` in hex.")),
        ("nonce", text()),
        ("issuedAt", time()),
        ("expiresAt", time()),
        ("signatures", described(json!({ "type": "integer", "minimum": 0 }), "The number of keys that have signed.")),
        ("transfer", described(transfer, "A transfer of the account to itself, as an alternative to signatures.")),
    ])
}

fn proven_account() -> Value {
    let complete = described(boolean(), "Whether the signatures are sufficient; otherwise more are needed.");
    let signatures = json!({ "type": "integer", "minimum": 0 });
    object(&[("complete", complete), ("signatures", signatures), ("merchant", reference("Merchant"))])
}

fn merchant() -> Value {
    with(
        object(&[
            ("id", text()),
            ("name", text()),
            ("hiveAccount", text()),
            ("webhookEvents", array(words(&EventType::ALL.map(EventType::as_str)))),
            ("supportUrl", nullable(given_url())),
            ("isActive", boolean()),
            ("createdAt", time()),
            ("x402Enabled", boolean()),
            ("restartEnabled", boolean()),
            ("apiKeyLast4", text()),
            ("apiKeyCreatedAt", time()),
            ("apiKeyLastUsedAt", nullable(time())),
            ("hiveAccountName", text()),
            ("active", boolean()),
            ("privileges", array(words(&["admin"]))),
            ("accountVerified", described(boolean(), "Whether the merchant has proven ownership of the account.")),
            ("accountVerification", words(&["unverified", "verified", "stale"])),
            ("accountVerifiedAt", nullable(time())),
            ("accountVerifiedBy", nullable(words(&["signature", "transfer", "operator"]))),
            ("pendingAccount", nullable(reference("PendingAccount"))),
            ("livemode", boolean()),
            ("network", words(&["mainnet", "testnet", "development"])),
        ]),
        &[
            ("iconUrl", given_url()),
            ("webhookUrl", given_url()),
            ("flagged", described(boolean(), "Whether the merchant is on a compliance hold; for admins only.")),
        ],
    )
}
