//! The reference page: every operation with the fields of its body, and every schema.

use askama::Template;
use serde_json::{Map, Value};

use super::document::{TAGS, describe, operation, parameters_of};
use crate::facade::{
    http::route::{Access, Route},
    pages::words::{Lang, Words},
};

/// Renders the page.
pub(super) fn render(base_url: &str, is_test: bool, routes: &[Route]) -> String {
    let document = describe(base_url, routes);
    let (schemas, examples) = (&document["components"]["schemas"], &document["components"]["examples"]);
    let objects: Vec<Object> = schemas
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, schema)| Object::of(name, schema, &examples[name]["value"]))
        .collect();
    let groups = TAGS.map(|(name, description)| {
        let of_group = routes.iter().filter(|route| route.tag == name);
        let operations = of_group.map(|route| Operation::of(route, schemas, examples)).collect();
        Group { name, description, operations }
    });
    let w = Words(Lang::English);
    let page = Docs { w, is_test, base_url: base_url.to_owned(), groups: groups.into(), objects };
    page.render().unwrap_or_else(|error| unreachable!("writing to memory cannot fail: {error}"))
}

#[derive(Template)]
#[template(path = "docs.html")]
struct Docs {
    w: Words,
    is_test: bool,
    base_url: String,
    groups: Vec<Group>,
    objects: Vec<Object>,
}

struct Group {
    name: &'static str,
    description: &'static str,
    operations: Vec<Operation>,
}

struct Operation {
    method: String,
    path: &'static str,
    summary: &'static str,
    description: Vec<Part>,
    access: String,
    parameters: Vec<Parameter>,
    body: Option<Object>,
    responses: Vec<Response>,
    refusals: String,
}

struct Parameter {
    name: String,
    place: String,
    description: Vec<Part>,
}

struct Response {
    status: String,
    meaning: String,
    object: Option<String>,
}

/// A schema of a request or a response.
struct Object {
    name: String,
    fields: Vec<Field>,
    choices: Vec<Choice>,
    example: String,
}

/// One of the alternatives of a schema.
struct Choice {
    name: String,
    /// Whether the page describes it under that name.
    is_object: bool,
}

struct Field {
    name: String,
    kind: String,
    is_required: bool,
    description: Vec<Part>,
}

/// A part of a description: text or code.
struct Part {
    is_code: bool,
    text: String,
}

/// Parses text between backticks as code.
fn parts(value: &Value) -> Vec<Part> {
    let pieces = value.as_str().unwrap_or_default().split('`').enumerate();
    pieces.map(|(at, text)| Part { is_code: at % 2 == 1, text: text.to_owned() }).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the name of the referenced schema.
fn referred(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

impl Operation {
    fn of(route: &Route, schemas: &Value, examples: &Value) -> Self {
        let described = operation(route);
        let parameters = parameters_of(route, &route.operation_id()).into_iter().map(|parameter| Parameter {
            name: text(&parameter["name"]),
            place: text(&parameter["in"]),
            description: parts(&parameter["description"]),
        });
        let own: Vec<String> = route.responses.iter().map(|(status, _)| status.to_string()).collect();
        let responses = own.iter().map(|status| {
            let response = &described["responses"][status];
            let schema = &response["content"]["application/json"]["schema"];
            let of_rows = referred(&schema["items"]);
            Response {
                status: status.clone(),
                meaning: text(&response["description"]),
                object: referred(schema).or(of_rows).map(str::to_owned),
            }
        });
        let refusals: Vec<String> =
            route.error_statuses().map(|status| status.to_string()).filter(|status| !own.contains(status)).collect();
        Self {
            method: route.method.to_uppercase(),
            path: route.path,
            summary: route.summary,
            description: parts(&described["description"]),
            access: match route.access {
                Access::Anyone | Access::OptionalKey => "No API key".to_owned(),
                Access::Key("") => "Any API key".to_owned(),
                Access::Key(scope) => format!("API key with scope {scope}"),
                Access::Admin => "API key of an admin".to_owned(),
                Access::Visitor | Access::VisitingAdmin => "Login".to_owned(),
            },
            parameters: parameters.collect(),
            body: route.body.map(|name| Object::of(name, &schemas[name], &examples[name]["value"])),
            responses: responses.collect(),
            refusals: refusals.join(" "),
        }
    }
}

impl Object {
    fn of(name: &str, schema: &Value, example: &Value) -> Self {
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let members = schema["properties"].as_object().into_iter().flatten();
        let fields = members.map(|(name, member)| Field {
            name: name.clone(),
            kind: kind(member),
            is_required: required.contains(&name.as_str()),
            description: parts(&member["description"]),
        });
        let choices = schema["oneOf"].as_array().into_iter().flatten();
        let choices = choices.map(|one| Choice { name: kind(one), is_object: referred(one).is_some() });
        Self {
            name: name.to_owned(),
            fields: fields.collect(),
            choices: choices.collect(),
            example: serde_json::to_string_pretty(example).unwrap_or_default(),
        }
    }
}

/// Describes the type of a field in a few words.
fn kind(schema: &Value) -> String {
    if let Some(name) = referred(schema) {
        return name.to_owned();
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<_> = words.iter().map(|word| word.as_str().map_or("null".to_owned(), str::to_owned)).collect();
        return words.join(" | ");
    }
    if let Some(only) = schema["const"].as_str() {
        return only.to_owned();
    }
    let choices = ["oneOf", "anyOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten();
    let choices: Vec<_> = choices.map(kind).collect();
    if !choices.is_empty() {
        return choices.join(" | ");
    }
    match &schema["type"] {
        Value::String(one) if one == "array" => format!("list of {}", kind(&schema["items"])),
        Value::String(one) if one == "string" => bounded(schema, "text"),
        Value::String(one) => bounded(schema, one),
        Value::Array(several) => {
            let one = |word: &Value| {
                let mut single = schema.as_object().cloned().unwrap_or_else(Map::new);
                single.insert("type".to_owned(), word.clone());
                kind(&Value::Object(single))
            };
            several.iter().map(one).collect::<Vec<_>>().join(" | ")
        }
        _ => "anything".to_owned(),
    }
}

fn bounded(schema: &Value, word: &str) -> String {
    let form = schema["format"].as_str().map_or_else(|| word.to_owned(), str::to_owned);
    let range = match (&schema["minimum"], &schema["maximum"]) {
        (Value::Null, Value::Null) => String::new(),
        (least, Value::Null) => format!(", at least {least}"),
        (Value::Null, most) => format!(", at most {most}"),
        (least, most) => format!(", {least} to {most}"),
    };
    let length = schema["maxLength"].as_u64().map_or(String::new(), |most| format!(", at most {most} characters"));
    let pattern = schema["pattern"].as_str().map_or(String::new(), |pattern| format!(" like {pattern}"));
    if word == "null" { word.to_owned() } else { format!("{form}{range}{length}{pattern}") }
}
