//! The shapes of requests and answers, as the description tells them: what they are made of, merchants, admins' work.

use std::collections::BTreeSet;

use engine::webhook::EventType;
use serde_json::{Map, Value, json};

use crate::facade::record;

/// Returns every schema by name. What is answered has the members it is said to have and no others; what is asked may hold
/// more than we read.
pub(super) fn all() -> Map<String, Value> {
    let mut schemas = Map::new();
    let mut add = |name: &str, schema: Value| drop(schemas.insert(name.to_owned(), schema));
    add("Error", error());
    add("Reason", reason());
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
    add("BooksDay", books_day());
    add("BooksPage", object(&[("data", list("BooksDay")), ("nextCursor", nullable(text()))]));
    add("Thresholds", thresholds());
    add("Crossing", crossing());
    add("Standing", standing());
    add("ClearHold", with(object(&[("reason", longest(500))]), &[("limits", nullable(reference("Thresholds")))]));
    add("SetLimits", json!({ "oneOf": [reference("Thresholds"), object(&[("limits", json!({ "type": "null" }))])] }));
    super::payments::add(&mut add);
    super::billing::add(&mut add);
    super::webhooks::add(&mut add);
    super::x402::add(&mut add);
    super::about::add(&mut add);
    let asked: Vec<&str> = crate::facade::routes::all().iter().filter_map(|route| route.body).collect();
    for (_, schema) in schemas.iter_mut().filter(|(name, _)| !asked.contains(&name.as_str())) {
        close(schema);
    }
    super::words::describe(&mut schemas);
    schemas
}

/// Forbids further members to an object and all within it that do not say themselves what else they hold.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(close);
            if members.contains_key("properties") {
                members.entry("additionalProperties").or_insert(json!(false));
            }
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(close),
        _ => {}
    }
}

/// Lets an object hold more than it is said to.
pub(super) fn open(mut schema: Value) -> Value {
    schema["additionalProperties"] = json!(true);
    schema
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

pub(super) fn longest(characters: u32) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": characters })
}

pub(super) fn url() -> Value {
    json!({ "type": "string", "format": "uri" })
}

/// A URL of a merchant's, which is told as it was given.
pub(super) fn given_url() -> Value {
    described(text(), "A URL, as it was given.")
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
pub(super) fn units() -> Value {
    json!({ "type": "string", "pattern": "^[0-9]+$" })
}

pub(super) fn words(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

pub(super) fn currency() -> Value {
    words(&["HIVE", "HBD"])
}

pub(super) fn status() -> Value {
    words(record::STATUS_WORDS.words)
}

pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

pub(super) fn list(name: &str) -> Value {
    json!({ "type": "array", "items": reference(name) })
}

pub(super) fn array(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

/// Counts something, or measures it.
pub(super) fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

pub(super) fn nullable(schema: Value) -> Value {
    let mut schema = schema;
    if let Some(kind) = schema.get("type").cloned() {
        schema["type"] = json!([kind, "null"]);
        if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
            words.push(Value::Null);
        }
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
    let counted = [("total", number()), ("totalPages", number()), ("totalIsLowerBound", boolean())];
    let pagination = with(object(&[("page", number()), ("limit", number())]), &counted);
    with(object(&[("data", list(name)), ("pagination", pagination)]), &[("nextCursor", nullable(text()))])
}

/// x402's own members stand beside these where a payment is asked for, verified or settled.
fn error() -> Value {
    let detail = object(&[("field", text()), ("message", text())]);
    open(with(
        object(&[
            ("statusCode", integer(400, 599)),
            ("statusMessage", text()),
            ("code", error_code()),
            ("reason", reference("Reason")),
            ("requestId", text()),
        ]),
        &[("details", array(detail)), ("nextCursor", text())],
    ))
}

/// The classes of errors that a server returns.
pub(super) fn error_code() -> Value {
    use proto::status::RestCode::{Api, Authentication, Forbidden, NotFound, RateLimit, Server, Validation};
    let codes = [Validation, Authentication, Forbidden, NotFound, RateLimit, Server, Api];
    words(&codes.map(proto::status::RestCode::as_str))
}

/// Why a request is refused: the reasons of the interface, and those of x402.
fn reason() -> Value {
    let ours = proto::status::TABLE.iter().map(|row| row.word).filter(|word| *word != "unspecified");
    let all: BTreeSet<&str> = ours.chain(engine::x402::Reason::ALL.iter().map(|reason| reason.word())).collect();
    let all: Vec<&str> = all.into_iter().collect();
    described(
        words(&all),
        "Why a request was refused. Each word has its cause and its fix in docs/reference/errors.md.",
    )
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
                "The events that the endpoint is sent; `payment.status_changed` always is.",
            ),
        ),
        ("supportUrl", nullable(url())),
        ("x402Enabled", boolean()),
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
        ("currentProven", described(boolean(), "Whether the current account has agreed.")),
        ("newProven", described(boolean(), "Whether the new account is proven.")),
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
        ("hiveAccount", described(text(), "The account that must answer.")),
        ("action", described(text(), "`verify`, `change to <account>` or `cancel change`.")),
        ("text", described(text(), "The text to sign; the signature is over its SHA-256.")),
        ("digest", described(text(), "That SHA-256 in hex.")),
        ("nonce", text()),
        ("issuedAt", time()),
        ("expiresAt", time()),
        ("signatures", described(json!({ "type": "integer", "minimum": 0 }), "Keys that have signed so far.")),
        (
            "transfer",
            described(
                transfer,
                "A transfer of the account to itself that answers the challenge instead of signatures.",
            ),
        ),
    ])
}

fn proven_account() -> Value {
    let complete = described(boolean(), "Whether the challenge is answered; otherwise more signatures are needed.");
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
            ("apiKeyLast4", text()),
            ("apiKeyCreatedAt", time()),
            ("apiKeyLastUsedAt", nullable(time())),
            ("hiveAccountName", text()),
            ("active", boolean()),
            ("privileges", array(words(&["admin"]))),
            ("accountVerified", described(boolean(), "Whether the merchant has proven that it owns the account.")),
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
            ("flagged", described(boolean(), "Whether it is on hold for compliance; told to admins alone.")),
        ],
    )
}

/// The same with a word on what it means.
pub(super) fn described(mut schema: Value, description: &str) -> Value {
    schema["description"] = json!(description);
    schema
}
