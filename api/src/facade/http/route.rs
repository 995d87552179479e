//! What a row of the table of routes says.

use std::{future::Future, pin::Pin};

use warp::reply::Response;

use super::{
    call::{Call, Input},
    query::Parameter,
    refusal::Refusal,
    state::Facade,
};
use crate::facade::limits::Rates;

/// Answers a request; the text is what stands in the placeholders of the path.
pub(crate) type Handler = for<'a> fn(&'a Facade, Call, [&'a str; PLACEHOLDERS_MAX]) -> Responding<'a>;

/// A response that is being made.
pub(crate) type Responding<'a> = Pin<Box<dyn Future<Output = Result<Response, Refusal>> + Send + 'a>>;

/// Placeholders of a path at most.
pub(crate) const PLACEHOLDERS_MAX: usize = 2;
/// Bytes of a request's body at most.
const BODY_MAX_BYTES: usize = 64 * 1024;

/// Who may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// No key is needed.
    Anyone,
    /// No key is needed; one that is sent must be right.
    OptionalKey,
    /// A merchant's key with this scope; empty: any key.
    Key(&'static str),
    /// An admin's key.
    Admin,
    /// A merchant who is logged in to the dashboard.
    Visitor,
    /// An admin who is logged in to the dashboard.
    VisitingAdmin,
}

/// What a response contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// JSON of this schema.
    Json(&'static str),
    /// The same for programs, a page for browsers.
    JsonOrPage(&'static str),
    /// Rows of this schema, as CSV or JSON.
    File(&'static str),
    /// Text of this media type.
    Text(&'static str),
    /// Nothing.
    Empty,
}

/// One method of one path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route {
    /// In lower case, as OpenAPI writes it.
    pub(crate) method: &'static str,
    /// With placeholders in braces.
    pub(crate) path: &'static str,
    pub(crate) handler: Handler,
    /// The group that the description lists it in.
    pub(crate) tag: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) access: Access,
    pub(crate) rates: Rates,
    /// Bytes of the request's body at most.
    pub(crate) body_max_bytes: usize,
    pub(crate) query: &'static [Parameter],
    /// The schema of the request's body.
    pub(crate) body: Option<&'static str>,
    pub(crate) is_body_optional: bool,
    pub(crate) is_form: bool,
    /// Whether an `Idempotency-Key` is honoured.
    pub(crate) is_idempotent: bool,
    /// Whether it changes nothing.
    pub(crate) is_read: bool,
    /// Whether errors are pages for browsers.
    pub(crate) is_page: bool,
    /// Whether a program may pay here by x402.
    pub(crate) is_payable: bool,
    /// Whether the health port serves it.
    pub(crate) is_health: bool,
    /// Whether the description leaves it out: it belongs to the pages.
    pub(crate) is_unlisted: bool,
    pub(crate) responses: &'static [(u16, Content)],
    pub(crate) refused: &'static [u16],
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
            refused: &[],
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

    /// Takes the form of a page.
    pub(crate) const fn form(self, schema: &'static str) -> Self {
        Self { body: Some(schema), is_form: true, ..self }
    }

    pub(crate) const fn idempotent(self) -> Self {
        Self { is_idempotent: true, ..self }
    }

    /// Marks a POST that changes nothing.
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

    pub(crate) const fn refuses(self, refused: &'static [u16]) -> Self {
        Self { refused, ..self }
    }

    /// Names the operation for generators of clients, such as `payments.create`.
    pub(crate) const fn id(self, id: &'static str) -> Self {
        Self { id: Some(id), ..self }
    }

    /// Returns every status of a refusal: those of its own, and those that follow from what it takes.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = u16> + use<> {
        let mut all = self.refused.to_vec();
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

    /// Returns what it takes from a request.
    pub(crate) const fn input(&self) -> Input {
        Input { query: self.query, body_max_bytes: self.body_max_bytes }
    }

    pub(crate) const fn needs_key(&self) -> bool {
        matches!(self.access, Access::Key(_) | Access::Admin)
    }

    /// Returns the operation's name for generators of clients: the resource and what is done with it, such as
    /// `payments.cancel`. The resource is the last word before a placeholder, or the first word.
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

/// Writes words as one name: `webhook-secret` as `webhookSecret`.
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
