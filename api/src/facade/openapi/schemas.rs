//! The schemas of requests and responses by name.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::derived::Derived;
use super::shape::{
    array, boolean, currency, described, error_code, integer, object, open, reference, text, time, with, words,
};
use crate::facade::http::route::Route;

/// Returns every schema by name. Responses have the fields of their schema and no others; requests may have more.
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
    let requested: Vec<&str> = routes.iter().filter_map(|route| route.body).collect();
    for (_, schema) in schemas.iter_mut().filter(|(name, _)| !requested.contains(&name.as_str())) {
        close(schema);
    }
    super::words::describe(&mut schemas);
    schemas
}

/// Forbids additional properties of an object and of nested ones that do not define them.
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

/// The fields of x402 accompany these where a payment is required, verified or settled.
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

/// The reasons of errors: those of the API, and those of x402.
fn reason() -> Value {
    let ours = proto::status::TABLE.iter().map(|row| row.name).filter(|word| *word != "unspecified");
    let all: BTreeSet<&str> = ours.chain(engine::x402::Reason::ALL.iter().map(|reason| reason.as_str())).collect();
    let all: Vec<&str> = all.into_iter().collect();
    described(words(&all), "The reason of the error. docs/reference/errors.md has the cause and the fix of each.")
}
