//! The description is OpenAPI, and every route has all that it needs.

use serde_json::{Value, json};

use super::{document, schemas, words};
use crate::facade::{
    http::route::Route,
    routes::{router::find, table},
};

fn describe(base_url: &str) -> Value {
    document::describe(base_url, table::all())
}

#[test]
fn the_description_is_openapi_and_every_reference_leads_somewhere() {
    let document = describe("https://pay.example");
    let text = document.to_string();
    let read: utoipa::openapi::OpenApi = serde_json::from_str(&text).expect("OpenAPI");
    assert_eq!(read.paths.paths.len(), document["paths"].as_object().expect("paths").len());
    for name in text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(document["components"]["schemas"][name].is_object(), "there is no schema {name}");
    }
    let mut ids: Vec<String> = table::all().iter().map(Route::operation_id).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "two operations have one name");
    let is_word =
        |word: &str| word.starts_with(|c: char| c.is_ascii_lowercase()) && word.chars().all(char::is_alphanumeric);
    for id in &ids {
        assert!(id.split('.').count() >= 2 && id.split('.').all(is_word), "{id} is not a resource and an action");
    }
    for id in ["payments.create", "payments.list", "payments.get", "payments.cancel", "admin.merchants.list"] {
        assert!(ids.iter().any(|known| known == id), "{id}: {ids:#?}");
    }
    let event = &document["webhooks"]["payment.status_changed"]["post"]["requestBody"]["content"]["application/json"];
    assert_eq!(event["schema"]["$ref"], "#/components/schemas/Event");
    assert!(table::all().iter().all(|route| !route.responses.is_empty() && !route.tag.is_empty()));
}

/// Returns whether every nested array has a schema of its items.
fn arrays_have_items(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            let kind = &schema["type"];
            let is_array = kind == "array" || kind.as_array().is_some_and(|kinds| kinds.contains(&json!("array")));
            (!is_array || members.contains_key("items")) && members.values().all(arrays_have_items)
        }
        Value::Array(schemas) => schemas.iter().all(arrays_have_items),
        _ => true,
    }
}

#[test]
fn every_array_has_items_and_paths_have_only_their_parameters() {
    let document = describe("https://pay.example");
    for (name, schema) in document["components"]["schemas"].as_object().expect("schemas") {
        assert!(arrays_have_items(schema), "{name} has an array without items: {schema}");
    }
    assert!(!arrays_have_items(&json!({ "a": { "type": ["array", "object"] } })), "the test notices nothing");
    let taken = |method, path| {
        let query = find(&method, path).route?.query;
        Some(query.iter().map(|(name, _, _)| *name).collect::<Vec<_>>()).filter(|names| !names.is_empty())
    };
    let list: Option<Vec<&str>> = taken(http::Method::GET, "/api/public/merchants/mer_1/webhook-deliveries");
    assert_eq!(list.as_deref(), Some(&["cursor", "limit", "status", "eventId", "paymentId", "endpointId"][..]));
    assert!(taken(http::Method::GET, "/api/public/payments/list").is_some_and(|known| known.contains(&"unusual")));
    for ignored in ["/api/public/payments/pay_1", "/api/health", "/for/mug-1", "/readyz", "/nothing"] {
        assert_eq!(taken(http::Method::GET, ignored), None, "{ignored}");
    }
}

/// Follows a reference.
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).expect("it leads somewhere"),
        None => schema,
    }
}

/// Whether a schema restricts its values.
fn is_specific(document: &Value, schema: &Value) -> bool {
    let schema = resolved(document, schema);
    let parts = ["anyOf", "oneOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten();
    let mut parts = parts.peekable();
    if parts.peek().is_some() {
        return parts.all(|part| is_specific(document, part));
    }
    match schema["type"].as_str() {
        Some("array") => is_specific(document, &schema["items"]),
        Some("object") => schema["properties"].as_object().is_some_and(|members| !members.is_empty()),
        _ => schema["type"].is_string() || schema["type"].is_array(),
    }
}

#[test]
fn every_response_and_every_body_has_a_specific_schema() {
    let document = describe("https://pay.example");
    let mut operations = 0;
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            operations += 1;
            let responses = operation["responses"].as_object().expect("responses").iter();
            let contents = responses.map(|(status, answer)| (status.as_str(), &answer["content"]));
            for (what, content) in contents.chain([("body", &operation["requestBody"]["content"])]) {
                let Some(schema) = content["application/json"].get("schema") else { continue };
                assert!(is_specific(&document, schema), "{method} {path} {what} has no specific schema: {schema}");
            }
        }
    }
    assert!(operations > 70, "{operations}");
    let empty = [json!({}), json!({ "type": "object" }), json!({ "type": "array", "items": { "type": "object" } })];
    assert!(empty.iter().all(|schema| !is_specific(&document, schema)), "the test notices nothing");
}

#[test]
fn responses_have_no_undocumented_member() {
    let document = describe("https://pay.example");
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    let open = |schema: &Value| schema["type"] == "object" && schema["additionalProperties"] != false;
    let mut open: Vec<&str> = schemas.iter().filter(|(_, s)| open(s)).map(|(name, _)| name.as_str()).collect();
    open.retain(|name| table::all().iter().all(|route| route.body != Some(name)));
    assert_eq!(open, ["Error", "Metadata"], "x402 adds to the one, and merchants fill the other");
    let with_null = schemas["Payment"]["properties"]["cancelledBy"]["enum"].as_array().expect("words");
    assert!(with_null.contains(&Value::Null), "a nullable enumeration contains null");
}

/// Collects every field of a schema that lacks a description or an example, with its place.
fn unexplained(document: &Value, place: &str, schema: &Value, found: &mut Vec<String>) {
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let place = format!("{place}.{name}");
        if member["description"].as_str().is_none_or(str::is_empty) {
            found.push(format!("{place} has no description"));
        }
        if !has_example(document, member) {
            found.push(format!("{place} has no example"));
        }
        unexplained(document, &place, member, found);
    }
    let choices = ["oneOf", "anyOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten();
    let parts = [&schema["items"], &schema["additionalProperties"]].into_iter().chain(choices);
    for part in parts.filter(|part| part.is_object()) {
        unexplained(document, place, part, found);
    }
}

/// Whether a field has an example, itself or in all that it is made of.
fn has_example(document: &Value, schema: &Value) -> bool {
    let schema = if schema.get("examples").is_some() { schema } else { resolved(document, schema) };
    let choices = ["oneOf", "anyOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten();
    let mut choices = choices.filter(|choice| choice["type"] != "null").peekable();
    schema["examples"].as_array().is_some_and(|examples| !examples.is_empty())
        || schema.get("const").is_some()
        || schema["properties"].as_object().is_some_and(|members| members.values().all(|m| has_example(document, m)))
        || schema.get("items").is_some_and(|items| has_example(document, items))
        || choices.peek().is_some() && choices.all(|choice| has_example(document, choice))
        || schema["enum"].as_array().is_some_and(|words| words.len() > 1)
}

#[test]
fn every_field_has_a_description_and_an_example() {
    let document = describe("https://pay.example");
    let mut found = Vec::new();
    for (name, schema) in document["components"]["schemas"].as_object().expect("schemas") {
        unexplained(&document, name, schema, &mut found);
    }
    assert!(found.is_empty(), "add a row to openapi/words/fields.txt for each: {found:#?}");
    let mut noticed = Vec::new();
    unexplained(&document, "X", &json!({ "properties": { "a": { "type": "string" } } }), &mut noticed);
    assert_eq!(noticed, ["X.a has no description", "X.a has no example"]);
}

#[test]
fn every_operation_and_every_parameter_has_a_description_and_an_example() {
    let document = describe("https://pay.example");
    let mut found = Vec::new();
    let mut check = |what: String, parts: &[&Value]| {
        if parts.iter().any(|part| part.is_null() || part.as_str().is_some_and(str::is_empty)) {
            found.push(what);
        }
    };
    for group in ["paths", "webhooks"] {
        for (path, methods) in document[group].as_object().expect("paths") {
            for (method, operation) in methods.as_object().expect("methods") {
                check(format!("{method} {path}"), &[&operation["summary"], &operation["description"]]);
                for parameter in operation["parameters"].as_array().expect("parameters") {
                    let what = format!("{method} {path} {}", parameter["name"]);
                    check(what, &[&parameter["description"], &parameter["example"]]);
                }
                let responses = operation["responses"].as_object().expect("responses");
                for (status, content) in responses.iter().map(|(status, answer)| (status.as_str(), &answer["content"]))
                {
                    let of_rows = content.get("text/csv").is_some();
                    if let Some(content) = content.get("application/json").filter(|_| !of_rows) {
                        check(format!("{method} {path} {status}"), &[&content["examples"]["example"]["$ref"]]);
                    }
                }
            }
        }
    }
    assert!(found.is_empty(), "add rows to openapi/words/operations.txt: {found:#?}");
}

#[test]
fn every_example_is_what_its_schema_allows() {
    let document = describe("https://pay.example");
    let mut wrong = Vec::new();
    for (name, example) in document["components"]["examples"].as_object().expect("examples") {
        let schema = json!({ "$ref": format!("#/components/schemas/{name}"), "components": document["components"] });
        let validator = jsonschema::options().should_validate_formats(true).build(&schema).expect("a schema");
        let errors = validator.iter_errors(&example["value"]);
        wrong.extend(errors.map(|error| format!("{name}{}: {error}", error.instance_path)));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_row_about_a_member_or_a_parameter_is_used() {
    let [fields, parameters] = words::rows();
    let mut schemas = schemas::all(table::all());
    let used = words::describe(&mut schemas);
    let mut superfluous: Vec<&str> = fields.into_iter().filter(|place| !used.contains(place)).collect();
    let of_a_member = |place: &str| {
        place.split('.').collect::<Vec<_>>().try_into().ok().map(|[schema, _]: [&str; 2]| schema.to_owned())
    };
    superfluous.retain(|place| of_a_member(place).is_some_and(|schema| schemas.contains_key(&schema)));
    assert!(superfluous.is_empty(), "openapi/words/fields.txt describes what is no field: {superfluous:#?}");
    let text = describe("https://pay.example")["paths"].to_string();
    let named = |place: &&str| {
        text.contains(&format!("\"name\":\"{}\"", place.rsplit('/').next().unwrap_or(place).trim_matches(['{', '}'])))
    };
    let superfluous: Vec<&str> = parameters.into_iter().filter(|place| !named(place)).collect();
    assert!(superfluous.is_empty(), "openapi/words/operations.txt describes what is no parameter: {superfluous:#?}");
}
