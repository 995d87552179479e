//! Building blocks of schemas.

use serde_json::{Value, json};

use crate::facade::record;

/// Permits additional properties.
pub(super) fn open(mut schema: Value) -> Value {
    schema["additionalProperties"] = json!(true);
    schema
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

/// A URL, returned as it was set.
pub(super) fn given_url() -> Value {
    described(text(), "A URL, as it was set.")
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
    words(record::STATUS_NAMES.names)
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

/// A count or a measurement.
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

/// An object with required fields.
pub(super) fn object(members: &[(&str, Value)]) -> Value {
    let required: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    with(json!({ "type": "object", "required": required, "properties": {} }), members)
}

/// An object with optional fields.
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

/// Adds a description.
pub(super) fn described(mut schema: Value, description: &str) -> Value {
    schema["description"] = json!(description);
    schema
}

/// The classes of errors.
pub(super) fn error_code() -> Value {
    use proto::status::RestCode::{Api, Authentication, Forbidden, NotFound, RateLimit, Server, Validation};
    let codes = [Validation, Authentication, Forbidden, NotFound, RateLimit, Server, Api];
    words(&codes.map(proto::status::RestCode::as_str))
}

/// The content of a body: its schema and an example.
pub(super) fn of_schema(name: &str) -> Value {
    json!({
        "schema": { "$ref": format!("#/components/schemas/{name}") },
        "examples": { "example": { "$ref": format!("#/components/examples/{name}") } },
    })
}
