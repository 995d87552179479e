//! Descriptions and examples of operations, parameters and fields, read from text files.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use serde_json::{Map, Value, json};

/// Fields by path, with examples and descriptions.
static FIELDS: LazyLock<BTreeMap<&str, Entry>> = LazyLock::new(|| entries(include_str!("words/fields.txt")));

/// Parameters with examples and descriptions.
static PARAMETERS: LazyLock<BTreeMap<&str, Entry>> =
    LazyLock::new(|| entries(halves(include_str!("words/operations.txt")).1));

/// Operations by id, with descriptions.
static OPERATIONS: LazyLock<BTreeMap<&str, &str>> = LazyLock::new(|| {
    let rows = halves(include_str!("words/operations.txt")).0.lines();
    rows.filter_map(|row| row.split_once(" | ")).collect()
});

/// A row of a table.
#[derive(Debug)]
struct Entry {
    examples: Vec<Value>,
    description: &'static str,
}

/// Separates the operations from the parameters below them.
fn halves(text: &'static str) -> (&'static str, &'static str) {
    let text = text.split_once("\n\n").map_or(text, |(_, rows)| rows);
    text.split_once("\n\n").unwrap_or((text, ""))
}

fn entries(text: &'static str) -> BTreeMap<&'static str, Entry> {
    let rows = text.lines().filter(|row| !row.is_empty() && !row.starts_with('#'));
    let mut entries = BTreeMap::new();
    for row in rows {
        let mut columns = row.splitn(3, '|').map(str::trim);
        let mut column = || columns.next().unwrap_or_default();
        let (place, examples, description) = (column(), column(), column());
        let examples = serde_json::from_str(&format!("[{examples}]"));
        let examples = examples.unwrap_or_else(|error| panic!("the examples of {place} are not JSON: {error}"));
        let before = entries.insert(place, Entry { examples, description });
        assert!(before.is_none(), "{place} has two rows");
    }
    entries
}

/// Returns the description of an operation.
pub(super) fn operation(id: &str) -> &'static str {
    OPERATIONS.get(id).copied().unwrap_or_default()
}

/// Returns the examples and the description of a parameter. `place` is its most specific name.
pub(super) fn parameter(place: &str, name: &str) -> (Vec<Value>, &'static str) {
    let entry = PARAMETERS.get(place).or_else(|| PARAMETERS.get(name));
    entry.map(|entry| (entry.examples.clone(), entry.description)).unwrap_or_default()
}

/// Adds descriptions and examples to every field of the schemas.
pub(super) fn describe(schemas: &mut Map<String, Value>) -> BTreeSet<&'static str> {
    let mut used = BTreeSet::new();
    for (name, schema) in schemas {
        fill(name, schema, &mut used);
    }
    used
}

/// Adds them to the fields of one schema and of its nested objects.
fn fill(place: &str, schema: &mut Value, used: &mut BTreeSet<&'static str>) {
    if let Some(members) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, member) in members {
            let place = format!("{place}.{name}");
            fill(&place, member, used);
            explain(member, entry(&place, name, used));
        }
    }
    for part in ["items", "additionalProperties"] {
        if let Some(part) = schema.get_mut(part).filter(|part| part.is_object()) {
            fill(place, part, used);
        }
    }
    for part in ["oneOf", "anyOf"].into_iter().filter_map(|key| schema.get(key).map(|_| key)).collect::<Vec<_>>() {
        for choice in schema[part].as_array_mut().into_iter().flatten() {
            fill(place, choice, used);
        }
    }
}

/// Finds the row of a field: by its whole path, by the last two parts, or by the last one.
fn entry(place: &str, name: &str, used: &mut BTreeSet<&'static str>) -> Option<&'static Entry> {
    let pair = place.rmatch_indices('.').nth(1).map(|(at, _)| &place[at + 1..]);
    let found = [Some(place), pair, Some(name)].into_iter().flatten().find_map(|key| FIELDS.get_key_value(key));
    found.map(|(key, entry)| {
        used.insert(*key);
        entry
    })
}

fn explain(member: &mut Value, entry: Option<&Entry>) {
    let Some(entry) = entry else { return };
    if !entry.description.is_empty() {
        member["description"] = json!(entry.description);
    }
    // A row may apply to a field that is `null` in a request and absent in a response.
    let is_never_null = member["type"].as_str().is_some_and(|kind| kind != "null");
    let examples: Vec<_> = entry.examples.iter().filter(|example| !(is_never_null && example.is_null())).collect();
    if !examples.is_empty() {
        member["examples"] = json!(examples);
    }
}

/// Returns one example for each schema, from the first examples of its fields.
pub(super) fn examples(schemas: &Map<String, Value>) -> Map<String, Value> {
    let whole = |(name, schema): (&String, &Value)| {
        let example = json!({ "summary": name, "value": example(schemas, schema) });
        (name.clone(), example)
    };
    schemas.iter().map(whole).collect()
}

/// Returns an example that a schema permits; `null` if it has none.
fn example(schemas: &Map<String, Value>, schema: &Value) -> Value {
    if let Some(first) = schema["examples"].get(0) {
        return first.clone();
    }
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return schemas.get(name).map_or(Value::Null, |schema| example(schemas, schema));
    }
    if let Some(constant) = schema.get("const") {
        return constant.clone();
    }
    let choices = ["oneOf", "anyOf"].into_iter().filter_map(|key| schema[key].as_array());
    if let Some(choice) = choices.flatten().next() {
        return example(schemas, choice);
    }
    if let Some(members) = schema["properties"].as_object() {
        let members = members.iter().map(|(name, member)| (name.clone(), example(schemas, member)));
        return Value::Object(members.collect());
    }
    if let Some(items) = schema.get("items") {
        return json!([example(schemas, items)]);
    }
    schema["enum"].get(0).cloned().unwrap_or(Value::Null)
}

/// Every row of the tables, for the test that each one is used.
#[cfg(test)]
pub(super) fn rows() -> [Vec<&'static str>; 2] {
    let keys = |table: &'static BTreeMap<&'static str, Entry>| table.keys().copied().collect();
    [keys(&FIELDS), keys(&PARAMETERS)]
}
