//! The shapes of requests and answers, as the description tells them.

use serde_json::{Map, Value, json};

/// Returns every schema by name.
pub(super) fn all() -> Value {
    let mut schemas = Map::new();
    let mut add = |name: &str, schema: Value| drop(schemas.insert(name.to_owned(), schema));
    add("Any", json!({ "type": "object" }));
    add("Error", error());
    add("Amount", amount(true));
    add("Sum", amount(false));
    add("Metadata", metadata());
    add("CreatePayment", create_payment());
    add("Created", created());
    add("CreatedShort", object(&[("id", text()), ("slug", text()), ("redirectUrl", url()), ("checkoutUrl", url())]));
    add("Payment", payment());
    add("PaymentPage", page("Payment"));
    add("Status", object(&[("id", text()), ("status", status()), ("completedAt", nullable(time()))]));
    add("FeeRate", object(&[("feePercent", json!({ "type": "number", "minimum": 0, "maximum": 100 }))]));
    add("Event", json!({ "type": "object", "required": ["type", "id", "createdAt", "data"] }));
    add("EventList", object(&[("events", list("Event")), ("nextCursor", text()), ("hasMore", boolean())]));
    add("Merchant", merchant());
    add("MerchantPage", page("Merchant"));
    add("Register", register());
    add("Registered", object(&[("apiKey", text()), ("webhookSecret", text()), ("merchant", reference("Merchant"))]));
    add("Reissued", object(&[("apiKey", text()), ("merchant", reference("Merchant"))]));
    add("UpdateMerchant", update_merchant());
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
    add("PaymentRequired", json!({ "type": "object", "required": ["x402Version", "accepts"] }));
    add("Networks", json!({ "type": "array", "items": { "type": "string" } }));
    add(
        "X402Request",
        json!({
            "type": "object",
            "description": "A payment for a session of ours (`sessionId`) or for another server (`paymentRequirements`).",
            "required": ["paymentPayload"],
            "properties": {
                "sessionId": { "type": "string" },
                "paymentPayload": { "type": "object" },
                "paymentRequirements": { "type": "object" },
            },
        }),
    );
    add(
        "Verified",
        json!({
            "type": "object", "required": ["isValid"],
            "properties": {
                "isValid": boolean(), "payer": text(), "invalidReason": text(), "invalidMessage": text(), "transaction": text(),
            },
        }),
    );
    add(
        "Settled",
        json!({
            "type": "object", "required": ["success", "txId", "transaction", "network"],
            "properties": {
                "success": boolean(), "txId": text(), "transaction": text(), "network": text(), "payer": text(),
                "errorReason": text(), "errorMessage": text(), "blockNum": { "type": "integer" }, "amount": units(),
            },
        }),
    );
    add("Health", object(&[("status", words(&["ok", "degraded"]))]));
    add(
        "Ready",
        object(&[
            ("status", text()),
            ("ledgerReachable", boolean()),
            ("ledgerFollowed", boolean()),
            ("headBlock", json!({ "type": "integer" })),
            ("irreversibleBlock", json!({ "type": "integer" })),
            ("scannedBlock", json!({ "type": "integer" })),
        ]),
    );
    add("Unmatched", unmatched());
    add("UnmatchedList", object(&[("data", list("Unmatched")), ("nextCursor", nullable(text()))]));
    add("Candidates", object(&[("data", json!({ "type": "array", "items": { "type": "object" } }))]));
    add("Assign", object(&[("paymentId", text())]));
    add("Ignore", optional(&[("note", nullable(text()))]));
    add(
        "Resolve",
        with(
            object(&[("kind", words(&["accepted", "refunded", "ignored"]))]),
            &[("note", nullable(text())), ("txId", nullable(text()))],
        ),
    );
    add(
        "RefundPlan",
        json!({
            "type": "object",
            "required": ["paymentId", "from", "to", "amount", "memo", "operation", "uri", "hivesignerUrl", "owed"],
            "properties": { "paymentId": text(), "from": text(), "to": text(), "amount": reference("Sum"), "memo": text() },
        }),
    );
    add("BooksDay", books_day());
    add("BooksPage", object(&[("data", list("BooksDay")), ("nextCursor", nullable(text()))]));
    add("Thresholds", thresholds());
    add("Crossing", crossing());
    add("Standing", standing());
    add("ClearHold", with(object(&[("reason", longest(500))]), &[("limits", nullable(reference("Thresholds")))]));
    add("SetLimits", json!({ "oneOf": [reference("Thresholds"), object(&[("limits", json!({ "type": "null" }))])] }));
    super::billing::add(&mut add);
    Value::Object(schemas)
}

/// Returns the schema of a query parameter.
pub(super) fn parameter(name: &str) -> Value {
    match name {
        "page" => integer(1, 1_000_000_000),
        "limit" => integer(1, 100),
        "time" => time(),
        "currency" => currency(),
        "boolean" => boolean(),
        "format" => words(&["csv", "json"]),
        "billing" => super::billing::status(),
        "statuses" => json!({ "type": "string", "pattern": "^[a-z_, ]*$" }),
        _ => text(),
    }
}

pub(super) fn text() -> Value {
    json!({ "type": "string" })
}

fn longest(characters: u32) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": characters })
}

pub(super) fn url() -> Value {
    json!({ "type": "string", "format": "uri" })
}

pub(super) fn time() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

pub(super) fn boolean() -> Value {
    json!({ "type": "boolean" })
}

pub(super) fn integer(low: u32, high: u32) -> Value {
    json!({ "type": "integer", "minimum": low, "maximum": high })
}

/// An amount of smallest units.
fn units() -> Value {
    json!({ "type": "string", "pattern": "^[0-9]+$" })
}

pub(super) fn words(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

fn currency() -> Value {
    words(&["HIVE", "HBD"])
}

fn status() -> Value {
    words(&["pending", "processing", "completed", "failed", "user_cancelled", "system_cancelled"])
}

pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

pub(super) fn list(name: &str) -> Value {
    json!({ "type": "array", "items": reference(name) })
}

pub(super) fn nullable(schema: Value) -> Value {
    let mut schema = schema;
    if let Some(kind) = schema.get("type").cloned() {
        schema["type"] = json!([kind, "null"]);
        return schema;
    }
    json!({ "oneOf": [schema, { "type": "null" }] })
}

/// An object that always has these members, and may have others.
pub(super) fn object(members: &[(&str, Value)]) -> Value {
    let required: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    with(json!({ "type": "object", "required": required, "properties": {} }), members)
}

/// An object that may have these members.
pub(super) fn optional(members: &[(&str, Value)]) -> Value {
    with(json!({ "type": "object", "properties": {} }), members)
}

pub(super) fn with(mut object: Value, members: &[(&str, Value)]) -> Value {
    for (name, schema) in members {
        object["properties"][*name] = schema.clone();
    }
    object
}

pub(super) fn page(name: &str) -> Value {
    let number = || json!({ "type": "integer", "minimum": 0 });
    let pagination = object(&[("page", number()), ("limit", number()), ("total", number()), ("totalPages", number())]);
    with(object(&[("data", list(name)), ("pagination", pagination)]), &[("nextCursor", nullable(text()))])
}

fn error() -> Value {
    let detail = object(&[("field", text()), ("message", text())]);
    with(
        object(&[
            ("statusCode", integer(400, 599)),
            ("statusMessage", text()),
            ("code", text()),
            ("reason", text()),
            ("requestId", text()),
        ]),
        &[("details", json!({ "type": "array", "items": detail }))],
    )
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
        "type": "object", "maxProperties": 50, "additionalProperties": value,
        "propertyNames": { "type": "string", "minLength": 1, "maxLength": 40 },
    })
}

fn create_payment() -> Value {
    with(
        object(&[
            ("amount", json!({ "type": "string", "pattern": "^[1-9][0-9]{0,8}$", "examples": ["1500"] })),
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

fn payment() -> Value {
    let number = || json!({ "type": "integer" });
    let objects = || json!({ "type": "array", "items": { "type": "object" } });
    let mut members = vec![
        ("id", text()),
        ("merchantId", text()),
        ("status", status()),
        ("checkoutUrl", url()),
        ("slug", text()),
        ("amount", reference("Amount")),
        ("fee", units()),
        ("net", units()),
        ("description", text()),
        ("metadata", reference("Metadata")),
        ("redirectUrl", nullable(url())),
        ("cancelUrl", nullable(url())),
        ("expiresAt", time()),
        ("completedAt", nullable(time())),
        ("createdAt", time()),
        ("updatedAt", time()),
        ("payTo", text()),
        ("memo", text()),
        ("exceptions", json!({ "type": "array", "items": { "type": "string" } })),
        ("transfers", objects()),
        ("refunds", objects()),
        ("needsAttention", boolean()),
        ("txId", nullable(text())),
        ("previousStatus", nullable(text())),
        ("statusReason", nullable(text())),
        ("cancelledBy", nullable(text())),
        ("sequence", number()),
        ("expired", boolean()),
        ("livemode", boolean()),
    ];
    for name in ["amountPaid", "amountRemaining", "amountOverpaid", "amountLate", "amountRefunded"] {
        members.push((name, units()));
    }
    object(&members)
}

fn books_day() -> Value {
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

/// A sum has no greatest value.
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

fn standing() -> Value {
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

fn merchant() -> Value {
    object(&[
        ("id", text()),
        ("name", text()),
        ("hiveAccount", text()),
        ("iconUrl", nullable(url())),
        ("webhookUrl", nullable(url())),
        ("isActive", boolean()),
        ("createdAt", time()),
        ("x402Enabled", boolean()),
        ("apiKeyLast4", text()),
        ("apiKeyCreatedAt", time()),
        ("apiKeyLastUsedAt", nullable(time())),
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
        ("supportUrl", nullable(url())),
        ("x402Enabled", boolean()),
    ])
}

fn scopes() -> Value {
    let scope = words(&["payments:read", "payments:write", "merchant:write", "admin"]);
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

fn unmatched() -> Value {
    object(&[
        ("id", text()),
        ("status", words(&["open", "assigned", "ignored"])),
        ("reason", text()),
        ("txId", text()),
        ("from", text()),
        ("to", text()),
        ("amount", reference("Sum")),
        ("memo", text()),
        ("paymentId", nullable(text())),
        ("handledAt", nullable(time())),
    ])
}
