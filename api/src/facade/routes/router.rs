//! How a method and a path find their row of the table.

use std::sync::LazyLock;

use http::Method;
use proto::Reason;
use warp::reply::Response;

use super::table;
use crate::facade::{
    http::{
        answer,
        call::Call,
        refusal::Refusal,
        route::{Access, Handler, PLACEHOLDERS_MAX, Route},
        state::Facade,
    },
    limits::Rates,
    pages::dashboard,
};

/// The rows of a path, one a method.
#[derive(Debug)]
struct AtPath {
    routes: Vec<&'static Route>,
    /// Every method that the path takes.
    allow: &'static str,
}

static ROUTER: LazyLock<matchit::Router<AtPath>> = LazyLock::new(|| {
    let mut router = matchit::Router::new();
    let rows = || table::all().iter().chain(dashboard::ROUTES);
    let mut paths: Vec<&str> = rows().map(|route| route.path).collect();
    paths.sort_unstable();
    paths.dedup();
    for path in paths {
        let of = |method: &str| rows().find(|route| route.path == path && route.method == method);
        let routes: Vec<&Route> = ["get", "post", "put", "delete"].into_iter().filter_map(of).collect();
        let methods = routes.iter().map(|route| route.method.to_ascii_uppercase() + ", ").collect::<String>();
        // Made once, for as long as the process runs.
        let allow = (methods + "OPTIONS").leak();
        router.insert(path, AtPath { routes, allow }).expect("no two paths of the table are alike");
    }
    router
});

/// Where a request leads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found<'p> {
    target: Target,
    /// Its route, or another one of its path; none where the path is unknown.
    pub(crate) route: Option<&'static Route>,
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
pub(crate) enum Surface {
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
pub(crate) fn find<'p>(method: &Method, path: &'p str) -> Found<'p> {
    let surface = Surface::of(path);
    let mut placeholders = [""; PLACEHOLDERS_MAX];
    let unknown_page = (Target::Handler(dashboard::UNKNOWN.handler), Some(&dashboard::UNKNOWN));
    let Ok(matched) = ROUTER.at(path) else {
        let (target, route) = match path.strip_prefix("/dashboard/") {
            Some(page) if !page.is_empty() => unknown_page,
            _ => (Target::Nothing, None),
        };
        return Found { target, route, placeholders, surface };
    };
    for (place, (_, value)) in placeholders.iter_mut().zip(matched.params.iter()) {
        *place = value;
    }
    let AtPath { routes, allow } = matched.value;
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    let (target, route) = match routes.iter().find(|route| route.method.eq_ignore_ascii_case(method.as_str())) {
        Some(route) => (Target::Handler(route.handler), Some(*route)),
        None if surface == Surface::Dashboard => unknown_page,
        None if *method == Method::OPTIONS => (Target::Options(allow), Some(routes[0])),
        None => (Target::OtherMethod(allow), Some(routes[0])),
    };
    Found { target, route, placeholders, surface }
}

impl<'p> Found<'p> {
    /// Returns which part of the facade the path belongs to.
    pub(crate) const fn surface(&self) -> Surface {
        self.surface
    }

    /// Returns the limits that a request counts against.
    pub(crate) fn rates(&self) -> Rates {
        match (self.route, self.surface) {
            // The dashboard counts visits itself: it knows the visitor.
            (_, Surface::Dashboard) => Rates::Unlimited,
            (Some(route), _) => route.rates,
            (None, Surface::Checkout) => Rates::Checkout,
            (None, _) => Rates::Calls,
        }
    }

    /// Says whether a key that is sent is checked before anything else. At unknown paths of the API, too: nobody learns
    /// there whether a key is right without being counted.
    pub(crate) fn checks_key(&self) -> bool {
        self.surface == Surface::Api && self.route.is_none_or(|route| route.access != Access::Anyone)
    }

    /// Says whether programs may pay at the path by x402.
    pub(crate) fn is_payable(&self) -> bool {
        self.route.is_some_and(|route| route.is_payable)
    }

    /// Says whether the health port serves the path.
    pub(crate) fn is_health(&self) -> bool {
        self.route.is_some_and(|route| route.is_health)
    }

    /// Says whether payments are judged here, whose clients read errors of a form of their own.
    pub(crate) fn judges_payments(&self) -> bool {
        self.rates() == Rates::X402
    }

    /// Says whether the request would change something without honouring an `Idempotency-Key`.
    pub(crate) fn ignores_idempotency_key(&self) -> bool {
        let route =
            self.route.filter(|_| matches!(self.target, Target::Handler(_)) && self.surface != Surface::Dashboard);
        route.is_some_and(|route| !route.is_read && !route.is_idempotent)
    }

    /// Answers the request.
    pub(crate) async fn respond(&self, facade: &Facade, call: Call) -> Result<Response, Refusal> {
        match self.target {
            Target::Handler(handler) => handler(facade, call, self.placeholders).await,
            Target::Options(allow) => Ok(answer::options(allow)),
            Target::OtherMethod(allow) => Err(Refusal::method(allow)),
            Target::Nothing => Err(Reason::UnknownRoute.into()),
        }
    }
}
