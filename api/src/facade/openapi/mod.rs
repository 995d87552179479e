//! The interface's description: OpenAPI 3.1 made from one table of routes, a page over it, and a word for agents.

mod about;
mod billing;
#[cfg(test)]
mod errors;
mod page;
mod payments;
mod schemas;
mod webhooks;
mod words;
mod x402;

use std::sync::OnceLock;

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use warp::reply::Response;

use super::{
    Facade, Refusal,
    call::Call,
    health,
    routes::{self, Access, Content, Route},
};

/// Scripts are not needed, and nothing comes from elsewhere.
const CSP: &str = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; \
                   frame-ancestors 'none'";

/// What is written once and sent to everybody.
#[derive(Debug, Default)]
pub(super) struct Described {
    document: OnceLock<File>,
    docs: OnceLock<File>,
    /// The same page with the banner of a test network.
    test_docs: OnceLock<File>,
}

/// Bytes, and the entity tag that changes with them.
#[derive(Debug)]
struct File {
    bytes: Bytes,
    etag: HeaderValue,
}

impl File {
    fn of(bytes: Vec<u8>) -> Self {
        let etag = format!("\"{}\"", hex::encode(&Sha256::digest(&bytes)[..16]));
        let etag = HeaderValue::from_str(&etag).expect("hex digits can stand in a header");
        Self { bytes: bytes.into(), etag }
    }

    /// Answers with the file, or with 304 to who has it.
    fn response(&self, call: &Call, media_type: &'static str) -> Response {
        let is_known = call.headers().get_all(header::IF_NONE_MATCH).iter().any(|tags| {
            let tags = tags.to_str().unwrap_or_default().split(',').map(|tag| tag.trim().trim_start_matches("W/"));
            tags.into_iter().any(|tag| tag == "*" || tag.as_bytes() == self.etag.as_bytes())
        });
        let mut response = if is_known { Response::default() } else { Response::new(self.bytes.clone().into()) };
        let headers = response.headers_mut();
        headers.insert(header::ETAG, self.etag.clone());
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        } else {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        }
        response
    }
}

/// Answers with the whole description.
pub(super) async fn document(facade: &Facade, call: Call) -> Result<Response, Refusal> {
    let made = || File::of(super::answer::to_json(&describe(&facade.base_url)));
    Ok(facade.described.document.get_or_init(made).response(&call, "application/json"))
}

/// Describes the interface as it is reached at `base_url`.
fn describe(base_url: &str) -> Value {
    let mut paths = Map::new();
    for route in routes::all().iter().filter(|route| !route.is_unlisted) {
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        item[route.method] = operation(route);
    }
    let schemas = schemas::all();
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
        "tags": routes::TAGS.map(|(name, description)| json!({ "name": name, "description": description })),
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

fn operation(route: &Route) -> Value {
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
    for status in route.refusals() {
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
        Access::Anyone | Access::OptionalKey => json!([]),
        Access::Key(_) | Access::Admin => json!([{ "bearer": [] }, { "apiKey": [] }]),
    };
    let what = words::operation(&id);
    operation["description"] = match route.access {
        Access::Key(scope) if !scope.is_empty() => json!(format!("{what}\n\nThe API key needs the scope `{scope}`.")),
        Access::Admin => json!(format!("{what}\n\nFor admins: the API key needs the scope `admin`.")),
        Access::Key(_) | Access::Anyone | Access::OptionalKey => json!(what),
    };
    if let Some(body) = route.body {
        let content_type = if route.is_form { "application/x-www-form-urlencoded" } else { "application/json" };
        let content = json!({ content_type: of_schema(body) });
        operation["requestBody"] = json!({ "required": !route.is_body_optional, "content": content });
    }
    operation
}

/// Describes every parameter of an operation, with an example.
fn parameters_of(route: &Route, id: &str) -> Vec<Value> {
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

/// The content of a body: its schema, and the schema's example.
fn of_schema(name: &str) -> Value {
    json!({
        "schema": { "$ref": format!("#/components/schemas/{name}") },
        "examples": { "example": { "$ref": format!("#/components/examples/{name}") } },
    })
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
    StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("An answer")
}

/// Answers with a page over the description, drawn here: it needs no script.
pub(super) async fn docs(facade: &Facade, call: Call) -> Result<Response, Refusal> {
    let is_test = health::is_test(facade, &call.caller).await;
    let kept = if is_test { &facade.described.test_docs } else { &facade.described.docs };
    let file = kept.get_or_init(|| File::of(page::render(&facade.base_url, is_test).into_bytes()));
    let mut response = file.response(&call, "text/html; charset=utf-8");
    response.headers_mut().insert("content-security-policy", HeaderValue::from_static(CSP));
    response.headers_mut().insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    Ok(response)
}

/// Answers with what an agent should know first.
pub(super) async fn llms(facade: &Facade) -> Result<Response, Refusal> {
    let base = &facade.base_url;
    let text_of = format!(
        "# Hivetill\n\n> A self-hosted payment gateway for HIVE and HBD on the Hive ledger. Non-custodial: money goes from \
         the payer's account to the merchant's.\n\n\
         ## Pay\n\n\
         - Ask a payment's address ({base}/for/{{slug}} or {base}/checkout/{{id}}) without `Accept: text/html`: it answers \
         402 with x402 requirements; sign the transfer and ask again with it in `X-PAYMENT` (version 1) or \
         `PAYMENT-SIGNATURE` (version 2).\n\
         - {base}/api/public/x402/supported: the kinds of payment that are taken.\n\n\
         ## Take payments\n\n\
         - POST {base}/api/public/merchants/register {{\"name\",\"hiveAccount\"}}: the key and the webhook secret are shown \
         once.\n\
         - POST {base}/api/public/payments {{\"amount\":\"1500\",\"currency\":\"HBD\",\"description\"}} with \
         `Authorization: Bearer sk_live_…`: amounts are smallest units, 1/1000. Send an `Idempotency-Key`.\n\
         - GET {base}/api/public/payments/{{id}}/status until `completed`, or receive a signed webhook.\n\n\
         ## Reference\n\n\
         - [{base}/openapi.json]({base}/openapi.json): every address, OpenAPI 3.1\n\
         - [{base}/docs]({base}/docs): the same to read\n"
    );
    Ok(text(text_of, "text/plain; charset=utf-8"))
}

fn text(body: String, media_type: &'static str) -> Response {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    response
}

#[cfg(test)]
mod tests;
