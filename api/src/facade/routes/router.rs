//! Finds the row of the table for a method and a path.

use std::sync::LazyLock;

use http::Method;
use proto::Reason;
use warp::reply::Response;

use super::table;
use crate::facade::{
    http::{
        call::Call,
        refusal::Refusal,
        response,
        route::{Access, Handler, PLACEHOLDERS_MAX, Route},
        state::Facade,
    },
    limits::Rates,
    pages::dashboard,
};

/// The rows of a path, one per method.
#[derive(Debug)]
struct PathRoutes {
    routes: Vec<&'static Route>,
    /// The value of `Allow`.
    allow: &'static str,
}

static ROUTER: LazyLock<matchit::Router<PathRoutes>> = LazyLock::new(|| {
    let mut router = matchit::Router::new();
    let rows = || table::all().iter().chain(dashboard::ROUTES);
    let mut paths: Vec<&str> = rows().map(|route| route.path).collect();
    paths.sort_unstable();
    paths.dedup();
    for path in paths {
        let of = |method: &str| rows().find(|route| route.path == path && route.method == method);
        let routes: Vec<&Route> = ["get", "post", "put", "delete"].into_iter().filter_map(of).collect();
        let methods = routes.iter().map(|route| route.method.to_ascii_uppercase() + ", ").collect::<String>();
        // Leaked once per path: the router lives as long as the process.
        let allow = (methods + "OPTIONS").leak();
        router.insert(path, PathRoutes { routes, allow }).expect("the paths of the table do not conflict");
    }
    router
});

/// The result of routing a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RouteMatch<'p> {
    target: Target,
    /// Its row, or another row of its path; `None` if the path is unknown.
    pub(crate) route: Option<&'static Route>,
    placeholders: [&'p str; PLACEHOLDERS_MAX],
    surface: Surface,
}

/// The response of a route.
#[derive(Debug, Clone, Copy)]
enum Target {
    /// A handler.
    Handler(Handler),
    /// The list of methods for OPTIONS.
    Options(&'static str),
    /// An error: the path has other methods.
    OtherMethod(&'static str),
    /// An error: the path is unknown.
    NotFound,
}

/// The part of the facade that a path belongs to, known or not. It decides the format of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    /// The REST API.
    Api,
    /// The checkout, for customers and programs.
    Checkout,
    /// The dashboard.
    Dashboard,
    /// The rest: health checks, the OpenAPI document, static files.
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

/// Finds the row of a method and a path. HEAD uses the row of GET.
pub(crate) fn find<'p>(method: &Method, path: &'p str) -> RouteMatch<'p> {
    let surface = Surface::of(path);
    let mut placeholders = [""; PLACEHOLDERS_MAX];
    let unknown_page = (Target::Handler(dashboard::UNKNOWN.handler), Some(&dashboard::UNKNOWN));
    let Ok(matched) = ROUTER.at(path) else {
        let (target, route) = match path.strip_prefix("/dashboard/") {
            Some(page) if !page.is_empty() => unknown_page,
            _ => (Target::NotFound, None),
        };
        return RouteMatch { target, route, placeholders, surface };
    };
    for (place, (_, value)) in placeholders.iter_mut().zip(matched.params.iter()) {
        *place = value;
    }
    let PathRoutes { routes, allow } = matched.value;
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    let (target, route) = match routes.iter().find(|route| route.method.eq_ignore_ascii_case(method.as_str())) {
        Some(route) => (Target::Handler(route.handler), Some(*route)),
        None if surface == Surface::Dashboard => unknown_page,
        None if *method == Method::OPTIONS => (Target::Options(allow), Some(routes[0])),
        None => (Target::OtherMethod(allow), Some(routes[0])),
    };
    RouteMatch { target, route, placeholders, surface }
}

impl<'p> RouteMatch<'p> {
    /// Returns the part of the facade.
    pub(crate) const fn surface(&self) -> Surface {
        self.surface
    }

    /// Returns the limits of the request.
    pub(crate) fn rates(&self) -> Rates {
        match (self.route, self.surface) {
            // The dashboard applies limits itself, because they depend on the session.
            (_, Surface::Dashboard) => Rates::Unlimited,
            (Some(route), _) => route.rates,
            (None, Surface::Checkout) => Rates::Checkout,
            (None, _) => Rates::Calls,
        }
    }

    /// Returns whether an API key is verified before the handler runs. This includes unknown API paths, so that no path
    /// reveals uncounted whether a key is valid.
    pub(crate) fn requires_key_check(&self) -> bool {
        self.surface == Surface::Api && self.route.is_none_or(|route| route.access != Access::Anyone)
    }

    /// Returns whether programs can pay here with x402.
    pub(crate) fn is_payable(&self) -> bool {
        self.route.is_some_and(|route| route.is_payable)
    }

    /// Returns whether the listener for health checks serves the path.
    pub(crate) fn is_health(&self) -> bool {
        self.route.is_some_and(|route| route.is_health)
    }

    /// Returns whether it is an x402 facilitator endpoint, whose errors have a separate format.
    pub(crate) fn is_x402_endpoint(&self) -> bool {
        self.rates() == Rates::X402
    }

    /// Returns whether the request has side effects but does not support an `Idempotency-Key`.
    pub(crate) fn ignores_idempotency_key(&self) -> bool {
        let route =
            self.route.filter(|_| matches!(self.target, Target::Handler(_)) && self.surface != Surface::Dashboard);
        route.is_some_and(|route| !route.is_read && !route.is_idempotent)
    }

    /// Runs the handler, or returns the error of the route.
    pub(crate) async fn respond(&self, facade: &Facade, call: Call) -> Result<Response, Refusal> {
        match self.target {
            Target::Handler(handler) => handler(facade, call, self.placeholders).await,
            Target::Options(allow) => Ok(response::options(allow)),
            Target::OtherMethod(allow) => Err(Refusal::method(allow)),
            Target::NotFound => Err(Reason::UnknownRoute.into()),
        }
    }
}
