//! The routes of the facade: what a row of the table says, and how a path finds its row.

mod table;

use std::{future::Future, pin::Pin, sync::LazyLock};

use http::Method;
use proto::Reason;
use warp::reply::Response;

pub(super) use self::table::TAGS;
use super::{Facade, Refusal, call::Call, dashboard};

/// Answers a request; the text is what stands in the placeholders of the path.
pub(super) type Handler = for<'a> fn(&'a Facade, Call, [&'a str; PLACEHOLDERS_MAX]) -> Responding<'a>;

/// A response that is being made.
pub(super) type Responding<'a> = Pin<Box<dyn Future<Output = Result<Response, Refusal>> + Send + 'a>>;

/// Placeholders of a path at most.
const PLACEHOLDERS_MAX: usize = 2;
/// Bytes of a request's body at most.
const BODY_MAX_BYTES: usize = 64 * 1024;

/// Who may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// No key is needed.
    Anyone,
    /// No key is needed; one that is sent must be right.
    OptionalKey,
    /// A merchant's key with this scope; empty: any key.
    Key(&'static str),
    /// An admin's key.
    Admin,
}

/// Which limits a request counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rates {
    /// None: health checks, and the dashboard, which counts visits itself.
    Unlimited,
    /// Reads or writes of a merchant, or of an IP address without a key.
    Calls,
    /// Calls, and exports.
    Export,
    /// Calls, and test events.
    WebhookTest,
    /// Calls, and deliveries that are sent again.
    Redeliver,
    /// Registrations from an IP address.
    Registration,
    /// Visits of the checkout from an IP address.
    Checkout,
    /// Payments that are verified or settled for an IP address, or calls of the merchant whose key is sent.
    X402,
}

/// What a response contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
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

/// A query parameter: its name, its schema's name in `schemas::parameter`, and what it does.
pub(super) type Parameter = (&'static str, &'static str, &'static str);

/// One method of one path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Route {
    /// In lower case, as OpenAPI writes it.
    pub(super) method: &'static str,
    /// With placeholders in braces.
    pub(super) path: &'static str,
    pub(super) handler: Handler,
    /// The group that the description lists it in.
    pub(super) tag: &'static str,
    pub(super) summary: &'static str,
    pub(super) access: Access,
    pub(super) rates: Rates,
    /// Bytes of the request's body at most.
    pub(super) body_max_bytes: usize,
    pub(super) query: &'static [Parameter],
    /// The schema of the request's body.
    pub(super) body: Option<&'static str>,
    pub(super) is_body_optional: bool,
    pub(super) is_form: bool,
    /// Whether an `Idempotency-Key` is honoured.
    pub(super) is_idempotent: bool,
    /// Whether it changes nothing.
    pub(super) is_read: bool,
    /// Whether errors are pages for browsers.
    pub(super) is_page: bool,
    /// Whether a program may pay here by x402.
    pub(super) is_payable: bool,
    /// Whether the health port serves it.
    pub(super) is_health: bool,
    /// Whether the description leaves it out: it belongs to the pages.
    pub(super) is_unlisted: bool,
    pub(super) responses: &'static [(u16, Content)],
    refused: &'static [u16],
    id: Option<&'static str>,
}

const fn get(path: &'static str, summary: &'static str, handler: Handler) -> Route {
    Route { is_read: true, ..Route::new("get", path, summary, handler) }
}

const fn post(path: &'static str, summary: &'static str, handler: Handler) -> Route {
    Route::new("post", path, summary, handler)
}

const fn put(path: &'static str, summary: &'static str, handler: Handler) -> Route {
    Route::new("put", path, summary, handler)
}

const fn delete(path: &'static str, summary: &'static str, handler: Handler) -> Route {
    Route::new("delete", path, summary, handler)
}

impl Route {
    const fn new(method: &'static str, path: &'static str, summary: &'static str, handler: Handler) -> Self {
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

    const fn key(self, scope: &'static str) -> Self {
        Self { access: Access::Key(scope), ..self }
    }

    const fn optional_key(self) -> Self {
        Self { access: Access::OptionalKey, ..self }
    }

    const fn admin(self) -> Self {
        Self { access: Access::Admin, ..self }
    }

    const fn rates(self, rates: Rates) -> Self {
        Self { rates, ..self }
    }

    const fn query(self, query: &'static [Parameter]) -> Self {
        Self { query, ..self }
    }

    const fn body(self, schema: &'static str) -> Self {
        Self { body: Some(schema), ..self }
    }

    const fn optional_body(self, schema: &'static str) -> Self {
        Self { body: Some(schema), is_body_optional: true, ..self }
    }

    /// Takes the form of a page.
    const fn form(self, schema: &'static str) -> Self {
        Self { body: Some(schema), is_form: true, ..self }
    }

    const fn idempotent(self) -> Self {
        Self { is_idempotent: true, ..self }
    }

    /// Marks a POST that changes nothing.
    const fn reads(self) -> Self {
        Self { is_read: true, ..self }
    }

    const fn checkout(self) -> Self {
        Self { is_page: true, rates: Rates::Checkout, ..self }
    }

    const fn payable(self) -> Self {
        Self { is_payable: true, ..self }
    }

    const fn health(self) -> Self {
        Self { is_health: true, rates: Rates::Unlimited, ..self }
    }

    const fn unlisted(self) -> Self {
        Self { is_unlisted: true, ..self }
    }

    const fn responds(self, responses: &'static [(u16, Content)]) -> Self {
        Self { responses, ..self }
    }

    const fn refuses(self, refused: &'static [u16]) -> Self {
        Self { refused, ..self }
    }

    /// Names the operation for generators of clients, such as `payments.create`.
    const fn id(self, id: &'static str) -> Self {
        Self { id: Some(id), ..self }
    }

    /// Returns every status of a refusal: those of its own, and those that follow from what it takes.
    pub(super) fn refusals(&self) -> impl Iterator<Item = u16> + use<> {
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

    pub(super) const fn needs_key(&self) -> bool {
        matches!(self.access, Access::Key(_) | Access::Admin)
    }

    /// Returns the operation's name for generators of clients: the resource and what is done with it, such as
    /// `payments.cancel`. The resource is the last word before a placeholder, or the first word.
    pub(super) fn operation_id(&self) -> String {
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

/// Every route of the table.
static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| {
    let tagged = TAGS.into_iter().zip(table::GROUPS);
    tagged.flat_map(|((tag, _), routes)| routes.iter().map(move |route| Route { tag, ..*route })).collect()
});

/// Returns every route of the table.
pub(super) fn all() -> &'static [Route] {
    &ROUTES
}

/// The pages of the dashboard find their own way: whoever is not logged in learns of none.
static DASHBOARD: Route =
    post("/dashboard/{*path}", "", |facade, call, [path, _]| Box::pin(dashboard::serve(facade, call, path)))
        .rates(Rates::Unlimited)
        .unlisted();

/// What is at a path.
#[derive(Debug)]
enum AtPath {
    /// A handler a method.
    Methods {
        routes: Vec<&'static Route>,
        allow: &'static str,
    },
    Dashboard,
}

static ROUTER: LazyLock<matchit::Router<AtPath>> = LazyLock::new(|| {
    let mut router = matchit::Router::new();
    let mut paths: Vec<&str> = ROUTES.iter().map(|route| route.path).collect();
    paths.sort_unstable();
    paths.dedup();
    for path in paths {
        let of = |method: &str| ROUTES.iter().find(|route| route.path == path && route.method == method);
        let routes: Vec<&Route> = ["get", "post", "put", "delete"].into_iter().filter_map(of).collect();
        let methods = routes.iter().map(|route| route.method.to_ascii_uppercase() + ", ").collect::<String>();
        // Made once, for as long as the process runs.
        let allow = (methods + "OPTIONS").leak();
        router.insert(path, AtPath::Methods { routes, allow }).expect("no two paths of the table are alike");
    }
    for path in ["/dashboard", DASHBOARD.path] {
        router.insert(path, AtPath::Dashboard).expect("the table has no page of the dashboard");
    }
    router
});

/// Where a request leads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found<'p> {
    target: Target,
    /// Its route, or another one of its path; none where the path is unknown.
    pub(super) route: Option<&'static Route>,
    placeholders: [&'p str; PLACEHOLDERS_MAX],
    surface: Surface,
}

/// What answers a request.
#[derive(Debug, Clone, Copy)]
enum Target {
    /// A handler.
    Handler(Handler),
    /// The list of methods, for OPTIONS.
    Options(&'static str),
    /// A refusal: the path takes other methods.
    OtherMethod(&'static str),
    /// A refusal: there is no such path.
    Nothing,
}

/// Which part of the facade a path belongs to, known or not. It decides the form of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Surface {
    /// REST.
    Api,
    /// The customer's page, and payment by programs.
    Checkout,
    /// The merchant's pages.
    Dashboard,
    /// The rest: health, descriptions, files.
    Other,
}

impl Surface {
    fn of(path: &str) -> Self {
        match path.split('/').nth(1) {
            Some("api") => Self::Api,
            Some("for" | "checkout") => Self::Checkout,
            Some("dashboard") => Self::Dashboard,
            _ => Self::Other,
        }
    }
}

/// Finds the route of a method and a path. HEAD is GET.
pub(super) fn find<'p>(method: &Method, path: &'p str) -> Found<'p> {
    let surface = Surface::of(path);
    let mut placeholders = [""; PLACEHOLDERS_MAX];
    let Ok(matched) = ROUTER.at(path) else {
        return Found { target: Target::Nothing, route: None, placeholders, surface };
    };
    for (place, (_, value)) in placeholders.iter_mut().zip(matched.params.iter()) {
        *place = value;
    }
    let (target, route) = match matched.value {
        AtPath::Dashboard => (Target::Handler(DASHBOARD.handler), &DASHBOARD),
        AtPath::Methods { routes, allow } => {
            let method = if *method == Method::HEAD { &Method::GET } else { method };
            match routes.iter().find(|route| route.method.eq_ignore_ascii_case(method.as_str())) {
                Some(route) => (Target::Handler(route.handler), *route),
                None if *method == Method::OPTIONS => (Target::Options(allow), routes[0]),
                None => (Target::OtherMethod(allow), routes[0]),
            }
        }
    };
    Found { target, route: Some(route), placeholders, surface }
}

impl<'p> Found<'p> {
    /// Returns which part of the facade the path belongs to.
    pub(super) const fn surface(&self) -> Surface {
        self.surface
    }

    /// Returns the limits that a request counts against.
    pub(super) fn rates(&self) -> Rates {
        match (self.route, self.surface) {
            (Some(route), _) => route.rates,
            (None, Surface::Checkout) => Rates::Checkout,
            (None, Surface::Dashboard) => Rates::Unlimited,
            (None, _) => Rates::Calls,
        }
    }

    /// Says whether a key that is sent is checked before anything else. At unknown paths of the API, too: nobody learns
    /// there whether a key is right without being counted.
    pub(super) fn checks_key(&self) -> bool {
        self.surface == Surface::Api && self.route.is_none_or(|route| route.access != Access::Anyone)
    }

    /// Says whether programs may pay at the path by x402.
    pub(super) fn is_payable(&self) -> bool {
        self.route.is_some_and(|route| route.is_payable)
    }

    /// Says whether the health port serves the path.
    pub(super) fn is_health(&self) -> bool {
        self.route.is_some_and(|route| route.is_health)
    }

    /// Says whether payments are judged here, whose clients read errors of a form of their own.
    pub(super) fn judges_payments(&self) -> bool {
        self.rates() == Rates::X402
    }

    /// Says whether the request would change something without honouring an `Idempotency-Key`.
    pub(super) fn ignores_idempotency_key(&self) -> bool {
        let route =
            self.route.filter(|_| matches!(self.target, Target::Handler(_)) && self.surface != Surface::Dashboard);
        route.is_some_and(|route| !route.is_read && !route.is_idempotent)
    }

    /// Answers the request.
    pub(super) async fn respond(&self, facade: &Facade, call: Call) -> Result<Response, Refusal> {
        match self.target {
            Target::Handler(handler) => handler(facade, call, self.placeholders).await,
            Target::Options(allow) => Ok(super::answer::options(allow)),
            Target::OtherMethod(allow) => Err(Refusal::method(allow)),
            Target::Nothing => Err(Reason::UnknownRoute.into()),
        }
    }
}
