//! A row of the table of routes.

use std::{future::Future, pin::Pin};

use warp::reply::Response;

use super::{
    call::{Call, Input},
    query::Parameter,
    refusal::Refusal,
    state::Facade,
};
use crate::facade::limits::Rates;

/// Handles a request; the strings are the values of the path's placeholders.
pub(crate) type Handler = for<'a> fn(&'a Facade, Call, [&'a str; PLACEHOLDERS_MAX]) -> Responding<'a>;

/// The future of a response.
pub(crate) type Responding<'a> = Pin<Box<dyn Future<Output = Result<Response, Refusal>> + Send + 'a>>;

/// Maximum number of placeholders of a path.
pub(crate) const PLACEHOLDERS_MAX: usize = 2;
/// Default maximum size of a request body in bytes.
const BODY_MAX_BYTES: usize = 64 * 1024;

/// The credentials that a route requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// None.
    Anyone,
    /// None; an API key that is sent must be valid.
    OptionalKey,
    /// A merchant's API key with this scope; with an empty scope, any key.
    Key(&'static str),
    /// An API key of an admin.
    Admin,
    /// A dashboard session of a merchant.
    Visitor,
    /// A dashboard session of an admin.
    VisitingAdmin,
}

/// The content of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// JSON of this schema.
    Json(&'static str),
    /// JSON of this schema for programs, an HTML page for browsers.
    JsonOrPage(&'static str),
    /// Rows of this schema, as CSV or JSON.
    File(&'static str),
    /// Text of this media type.
    Text(&'static str),
    /// No body.
    Empty,
}

/// One method of one path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route {
    /// In lower case, as in OpenAPI.
    pub(crate) method: &'static str,
    /// With placeholders in braces.
    pub(crate) path: &'static str,
    pub(crate) handler: Handler,
    /// The group of operations in the OpenAPI document.
    pub(crate) tag: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) access: Access,
    pub(crate) rates: Rates,
    /// Maximum size of the request body in bytes.
    pub(crate) body_max_bytes: usize,
    pub(crate) query: &'static [Parameter],
    /// The schema of the request body.
    pub(crate) body: Option<&'static str>,
    pub(crate) is_body_optional: bool,
    pub(crate) is_form: bool,
    /// Whether it supports an `Idempotency-Key`.
    pub(crate) is_idempotent: bool,
    /// Whether it has no side effects.
    pub(crate) is_read: bool,
    /// Whether its errors are HTML pages.
    pub(crate) is_page: bool,
    /// Whether programs can pay here with x402.
    pub(crate) is_payable: bool,
    /// Whether the listener for health checks serves it.
    pub(crate) is_health: bool,
    /// Whether the OpenAPI document omits it, because it belongs to the pages.
    pub(crate) is_unlisted: bool,
    pub(crate) responses: &'static [(u16, Content)],
    /// Error statuses besides those of [`Route::error_statuses`].
    pub(crate) errors: &'static [u16],
    /// The operation id, where it is not derived from method and path.
    pub(crate) id: Option<&'static str>,
}

pub(crate) const fn get(path: &'static str, summary: &'static str, handler: Handler) -> Route {
    Route { is_read: true, ..Route::new("get", path, summary, handler) }
}

pub(crate) const fn post(path: &'static str, summary: &'static str, handler: Handler) -> Route {
    Route::new("post", path, summary, handler)
}

pub(crate) const fn put(path: &'static str, summary: &'static str, handler: Handler) -> Route {
    Route::new("put", path, summary, handler)
}

pub(crate) const fn delete(path: &'static str, summary: &'static str, handler: Handler) -> Route {
    Route::new("delete", path, summary, handler)
}

impl Route {
    pub(crate) const fn new(method: &'static str, path: &'static str, summary: &'static str, handler: Handler) -> Self {
        Self {
            method,
            path,
            handler,
            tag: "",
            summary,
            access: Access::Anyone,
            rates: Rates::Calls,
            body_max_bytes: BODY_MAX_BYTES,
            query: &[],
            body: None,
            is_body_optional: false,
            is_form: false,
            is_idempotent: false,
            is_read: false,
            is_page: false,
            is_payable: false,
            is_health: false,
            is_unlisted: false,
            responses: &[],
            errors: &[],
            id: None,
        }
    }

    pub(crate) const fn key(self, scope: &'static str) -> Self {
        Self { access: Access::Key(scope), ..self }
    }

    pub(crate) const fn optional_key(self) -> Self {
        Self { access: Access::OptionalKey, ..self }
    }

    pub(crate) const fn admin(self) -> Self {
        Self { access: Access::Admin, ..self }
    }

    pub(crate) const fn rates(self, rates: Rates) -> Self {
        Self { rates, ..self }
    }

    pub(crate) const fn query(self, query: &'static [Parameter]) -> Self {
        Self { query, ..self }
    }

    pub(crate) const fn body(self, schema: &'static str) -> Self {
        Self { body: Some(schema), ..self }
    }

    pub(crate) const fn optional_body(self, schema: &'static str) -> Self {
        Self { body: Some(schema), is_body_optional: true, ..self }
    }

    /// Accepts the form of a page.
    pub(crate) const fn form(self, schema: &'static str) -> Self {
        Self { body: Some(schema), is_form: true, ..self }
    }

    pub(crate) const fn idempotent(self) -> Self {
        Self { is_idempotent: true, ..self }
    }

    /// Marks a POST without side effects.
    pub(crate) const fn reads(self) -> Self {
        Self { is_read: true, ..self }
    }

    pub(crate) const fn checkout(self) -> Self {
        Self { is_page: true, rates: Rates::Checkout, ..self }
    }

    pub(crate) const fn payable(self) -> Self {
        Self { is_payable: true, ..self }
    }

    pub(crate) const fn health(self) -> Self {
        Self { is_health: true, rates: Rates::Unlimited, ..self }
    }

    pub(crate) const fn unlisted(self) -> Self {
        Self { is_unlisted: true, ..self }
    }

    pub(crate) const fn responds(self, responses: &'static [(u16, Content)]) -> Self {
        Self { responses, ..self }
    }

    pub(crate) const fn errors(self, errors: &'static [u16]) -> Self {
        Self { errors, ..self }
    }

    /// Sets the operation id, such as `payments.create`.
    pub(crate) const fn id(self, id: &'static str) -> Self {
        Self { id: Some(id), ..self }
    }

    /// Returns every error status: those of the row, and those that follow from its access and body.
    pub(crate) fn error_statuses(&self) -> impl Iterator<Item = u16> + use<> {
        let mut all = self.errors.to_vec();
        all.extend([400, 404, 408, 414, 429, 431, 500, 503]);
        if self.needs_key() {
            all.extend([401, 403]);
        }
        if self.body.is_some() && !self.is_form {
            all.extend([413, 415]);
        }
        if self.is_idempotent {
            all.push(422);
        }
        all.sort_unstable();
        all.dedup();
        all.into_iter()
    }

    /// Returns the query parameters and the body size that it accepts.
    pub(crate) const fn input(&self) -> Input {
        Input { query: self.query, body_max_bytes: self.body_max_bytes }
    }

    pub(crate) const fn needs_key(&self) -> bool {
        matches!(self.access, Access::Key(_) | Access::Admin)
    }

    /// Returns the operation id, such as `payments.cancel`. The resource is the segment before the last placeholder, or the
    /// first segment; the action follows from the rest of the path or from the method.
    pub(crate) fn operation_id(&self) -> String {
        if let Some(id) = self.id {
            return id.to_owned();
        }
        let mut parts: Vec<&str> =
            self.path.split('/').filter(|part| !matches!(*part, "" | "api" | "public")).collect();
        let admin = if parts.first() == Some(&"admin") { parts.remove(0) } else { "" };
        let last = parts.iter().rposition(|part| part.starts_with('{'));
        let resource = match parts[last.map_or(0, |last| last - 1)] {
            "for" => "checkoutBySlug".to_owned(),
            word => camel(&[word]),
        };
        let action = match (&parts[last.map_or(1, |last| last + 1)..], self.method, last.is_some()) {
            ([], "get", false) => "list".to_owned(),
            ([], "post", false) => "create".to_owned(),
            ([], "post", true) => "update".to_owned(),
            ([], method, _) => method.to_owned(),
            (words, _, _) => camel(words),
        };
        let words = [admin, &resource, &action];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(".")
    }
}

/// Joins words in camel case: `webhook-secret` becomes `webhookSecret`.
fn camel(words: &[&str]) -> String {
    let mut name = String::new();
    for word in words.iter().flat_map(|word| word.split(['-', '.'])) {
        let mut letters = word.chars();
        if name.is_empty() {
            name.push_str(word);
        } else {
            name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
            name.push_str(letters.as_str());
        }
    }
    name
}
