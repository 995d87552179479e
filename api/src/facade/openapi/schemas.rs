//! The shapes of requests and responses: what each schema is called.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::derived::Derived;
use super::shape::{
    array, boolean, currency, described, error_code, integer, object, open, reference, text, time, with, words,
};
use crate::facade::http::route::Route;

/// Returns every schema by name. What is answered has the members it is said to have and no others; what is asked may hold
/// more than we read.
pub(super) fn all(routes: &[Route]) -> Map<String, Value> {
    let mut schemas = Map::new();
    let mut add = |name: &str, schema: Value| drop(schemas.insert(name.to_owned(), schema));
    add("Error", error());
    add("Reason", reason());
    super::merchants::add(&mut add);
    super::payments::add(&mut add);
    super::billing::add(&mut add);
    super::webhooks::add(&mut add);
    super::x402::add(&mut add);
    super::about::add(&mut add);
    let mut derived = Derived::default();
    super::payments::derive(&mut derived);
    schemas.append(&mut derived.finish());
    let asked: Vec<&str> = routes.iter().filter_map(|route| route.body).collect();
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

/// Why a request is refused: the reasons of the interface, and those of x402.
fn reason() -> Value {
    let ours = proto::status::TABLE.iter().map(|row| row.name).filter(|word| *word != "unspecified");
    let all: BTreeSet<&str> = ours.chain(engine::x402::Reason::ALL.iter().map(|reason| reason.as_str())).collect();
    let all: Vec<&str> = all.into_iter().collect();
    described(
        words(&all),
        "Why a request was refused. Each word has its cause and its fix in docs/reference/errors.md.",
    )
}
