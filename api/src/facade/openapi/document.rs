//! The OpenAPI 3.1 document, generated from the table of routes.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::{schemas, shape::of_schema, webhooks, words};
use crate::facade::http::route::{Access, Content, Route};

/// The groups of operations, in the order of the page.
pub(crate) const TAGS: [(&str, &str); 9] = [
    ("Payments", "Create payments, and read their state."),
    ("Events", "List, read and stream events, in order."),
    ("Merchants", "Registration, the merchant's record, API keys and webhooks."),
    ("Unmatched", "Transfers that match no payment, payments that need a decision, and x402 sales."),
    ("Billing", "Usage, fees and invoices of a merchant."),
    ("Admin", "Operations for admins."),
    ("Checkout", "The checkout page, and x402 payments at the same URL."),
    (
        "x402",
        "The facilitator: verifies and settles signed payments, for payments of this gateway and for other servers.",
    ),
    ("About", "Health checks and documentation."),
];

/// Returns the document of a gateway whose public URL is `base_url`.
pub(super) fn describe(base_url: &str, routes: &[Route]) -> Value {
    let mut paths = Map::new();
    for route in routes.iter().filter(|route| !route.is_unlisted) {
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        item[route.method] = operation(route);
    }
    let schemas = schemas::all(routes);
    let examples = words::examples(&schemas);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Hivetill",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Payments in HIVE and HBD. Amounts are strings of digits in the smallest unit, 1/1000.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": base_url }],
        "tags": TAGS.map(|(name, description)| json!({ "name": name, "description": description })),
        "paths": paths,
        "webhooks": webhooks::sent(),
        "components": {
            "schemas": schemas,
            "examples": examples,
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer", "description": "The merchant's API key." },
                "apiKey": { "type": "apiKey", "in": "header", "name": "x-api-key" },
            },
        },
    })
}

pub(super) fn operation(route: &Route) -> Value {
    let id = route.operation_id();
    let parameters = parameters_of(route, &id);
    let mut responses = Map::new();
    for (status, content) in route.responses {
        let mut response = response(*status, content);
        if route.is_idempotent {
            response["headers"] = json!({ "Idempotent-Replayed": {
                "description": "`true` where the request was done before under its `Idempotency-Key`: the body shows what \
                                it made, as that is now.",
                "schema": { "type": "string", "const": "true" },
            } });
        }
        responses.insert(status.to_string(), response);
    }
    for status in route.error_statuses() {
        let error = || {
            json!({
                "description": reason_phrase(status),
                "content": { "application/json": of_schema("Error") },
            })
        };
        let refused = responses.entry(status.to_string()).or_insert_with(error);
        if route.is_page {
            refused["content"]["text/html"] = json!({ "schema": { "type": "string" } });
        }
    }
    let mut operation = json!({
        "tags": [route.tag],
        "summary": route.summary,
        "operationId": id,
        "parameters": parameters,
        "responses": responses,
    });
    operation["security"] = match route.access {
        Access::Anyone | Access::OptionalKey | Access::Visitor | Access::VisitingAdmin => json!([]),
        Access::Key(_) | Access::Admin => json!([{ "bearer": [] }, { "apiKey": [] }]),
    };
    let what = words::operation(&id);
    operation["description"] = match route.access {
        Access::Key(scope) if !scope.is_empty() => json!(format!("{what}\n\nThe API key needs the scope `{scope}`.")),
        Access::Admin => json!(format!("{what}\n\nFor admins: the API key needs the scope `admin`.")),
        _ => json!(what),
    };
    if let Some(body) = route.body {
        let content_type = if route.is_form { "application/x-www-form-urlencoded" } else { "application/json" };
        let content = json!({ content_type: of_schema(body) });
        operation["requestBody"] = json!({ "required": !route.is_body_optional, "content": content });
    }
    operation
}

/// Returns every parameter of an operation, with an example.
pub(super) fn parameters_of(route: &Route, id: &str) -> Vec<Value> {
    let mut parameters: Vec<Value> = Vec::new();
    let mut add = |name: &str, place: &str, within: &str, required: bool, schema: Value, description: &str| {
        let (examples, known) = words::parameter(place, name);
        let description = if description.is_empty() { known } else { description };
        let mut parameter = json!({
            "name": name, "in": within, "required": required, "schema": schema, "description": description,
        });
        if let Some(first) = examples.first() {
            parameter["example"] = first.clone();
        }
        parameters.push(parameter);
    };
    let mut resource = "";
    for part in route.path.split('/') {
        if let Some(name) = part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
            let schema = json!({ "type": "string", "minLength": 1 });
            add(name, &format!("{resource}/{part}"), "path", true, schema, "");
        }
        resource = part;
    }
    for (name, schema, description) in route.query {
        let schema = schemas::parameter(schema);
        add(name, &format!("{id}/{name}"), "query", description.starts_with("Required"), schema, description);
    }
    if route.is_idempotent {
        let schema = json!({ "type": "string", "minLength": 1, "maxLength": 255 });
        add("Idempotency-Key", "Idempotency-Key", "header", false, schema, "");
    }
    parameters
}

fn response(status: u16, content: &Content) -> Value {
    let schema = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let text = || json!({ "schema": { "type": "string" } });
    let content = match content {
        Content::Json(name) => json!({ "application/json": of_schema(name) }),
        Content::JsonOrPage(name) => json!({ "application/json": of_schema(name), "text/html": text() }),
        Content::File(name) => {
            let rows = json!({ "type": "array", "items": schema(name) });
            json!({ "text/csv": text(), "application/json": { "schema": rows } })
        }
        Content::Text(media_type) => json!({ *media_type: text() }),
        Content::Empty => return json!({ "description": reason_phrase(status) }),
    };
    json!({ "description": reason_phrase(status), "content": content })
}

fn reason_phrase(status: u16) -> &'static str {
    StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Response")
}
