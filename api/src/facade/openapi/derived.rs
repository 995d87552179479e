//! Schemas that are derived from the types of the responses, so that a response and its schema cannot diverge.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use utoipa::{
    ToSchema,
    openapi::{RefOr, Schema},
};

use super::shape::nullable;

const COMPONENTS: &str = "#/components/schemas/";

/// Schemas of types, by name.
#[derive(Default)]
pub(super) struct Derived {
    published: Map<String, Value>,
    /// The types of their fields.
    parts: BTreeMap<String, Value>,
}

impl Derived {
    /// Adds a type under its name in the document.
    pub(super) fn add<T: ToSchema>(&mut self, name: &str) {
        let mut parts = Vec::new();
        T::schemas(&mut parts);
        for (part, schema) in parts {
            let schema = written(&schema);
            let before = self.parts.insert(part.clone(), schema.clone());
            debug_assert!(before.is_none_or(|before| before == schema), "two types are called {part}");
        }
        self.published.insert(name.to_owned(), written(&T::schema()));
    }

    /// Returns the published schemas. References to other types are replaced by their schemas.
    pub(super) fn finish(self) -> Map<String, Value> {
        let Self { mut published, mut parts } = self;
        parts.retain(|name, _| !published.contains_key(name));
        published.values_mut().for_each(|schema| inline(schema, &parts));
        published
    }
}

fn written(schema: &RefOr<Schema>) -> Value {
    serde_json::to_value(schema).expect("a schema is written as JSON")
}

/// Replaces references by the schemas they name, and converts the rest to the style of the other schemas.
fn inline(schema: &mut Value, parts: &BTreeMap<String, Value>) {
    let Some(members) = schema.as_object_mut() else { return };
    let name = members.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix(COMPONENTS));
    if let Some(part) = name.and_then(|name| parts.get(name)) {
        let mut part = part.clone();
        members.remove("$ref");
        // The description of a field is more specific than that of its type.
        for (key, value) in std::mem::take(members) {
            part[key] = value;
        }
        *schema = part;
        return inline(schema, parts);
    }
    // Lines of a comment are one paragraph.
    if let Some(text) = members.get("description").and_then(Value::as_str) {
        let text = text.replace('\n', " ");
        members.insert("description".to_owned(), text.into());
    }
    for key in ["items", "additionalProperties"] {
        if let Some(part) = members.get_mut(key) {
            inline(part, parts);
        }
    }
    members.get_mut("properties").and_then(Value::as_object_mut).into_iter().for_each(|properties| {
        properties.values_mut().for_each(|property| inline(property, parts));
    });
    if let Some(choices) = members.get_mut("oneOf").and_then(Value::as_array_mut) {
        choices.iter_mut().for_each(|choice| inline(choice, parts));
        let present = choices.iter().position(|choice| choice["type"] != "null");
        if let (2, Some(present)) = (choices.len(), present.filter(|at| choices[1 - at]["type"] == "null")) {
            let mut whole = nullable(choices.swap_remove(present));
            members.remove("oneOf");
            for (key, value) in std::mem::take(members) {
                whole[key] = value;
            }
            *schema = whole;
            return;
        }
    }
    // JSON numbers have no size: clients choose the type by the bounds.
    let is_number = |kind: &Value| ["integer", "number"].iter().any(|number| kind == number);
    let kind = &members.get("type").cloned().unwrap_or_default();
    if is_number(kind) || kind.as_array().is_some_and(|kinds| kinds.iter().any(is_number)) {
        members.remove("format");
        for bound in ["minimum", "maximum"] {
            if let Some(whole) = members.get(bound).and_then(Value::as_f64).filter(|bound| bound.fract() == 0.0) {
                #[expect(clippy::cast_possible_truncation, reason = "bounds of the interface are small whole numbers")]
                members.insert(bound.to_owned(), json!(whole as i64));
            }
        }
    }
}
