//! The routes of the gate and their prices, from a TOML file.

use std::{path::Path, time::Duration};

use engine::{account::AccountName, money::Money};
use http::Method;
use matchit::Router;
use reqwest::Url;
use toml::{Table, Value};

use crate::commands::section::{Reading, Section};

/// Default time limit of a payer, and of the upstream, seconds.
const TIMEOUT_SECONDS: i64 = 60;
const UPSTREAM_SECONDS: i64 = 30;

/// The settings of a gate.
#[derive(Debug)]
pub(super) struct Routes {
    /// The server behind the gate.
    pub(super) upstream: Url,
    /// The public URL of the gate; `None` for the address that it listens on.
    pub(super) base_url: Option<Url>,
    /// Timeout until the upstream begins its response.
    pub(super) upstream_timeout: Duration,
    /// Whether responses to paid requests have a signed receipt.
    pub(super) signs_receipts: bool,
    /// Whether paths without a route are forwarded without a payment.
    is_open: bool,
    routes: Vec<Route>,
    /// Indexes of `routes` by path in lower case.
    router: Router<Vec<usize>>,
}

/// One route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    /// `None` for every method.
    pub(super) method: Option<Method>,
    pub(super) path: String,
    /// `None` for a free route.
    pub(super) price: Option<Price>,
}

/// The price of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Price {
    pub(super) amount: Money,
    pub(super) pay_to: AccountName,
    pub(super) description: String,
    pub(super) mime_type: String,
    pub(super) settles_first: bool,
    /// Seconds that a payer has to pay.
    pub(super) timeout_seconds: u64,
}

/// The route of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Matched<'a> {
    /// It is forwarded without a payment.
    Free,
    /// It has a price.
    Priced(&'a Route, &'a Price),
    /// There is no route.
    Nothing,
    /// The path is ambiguous: the upstream might interpret it differently than the gate.
    Ambiguous,
}

impl Routes {
    /// Reads a file of routes.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub(super) fn read(path: &Path) -> Reading<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Reading<Self> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
        let mut file = Section::new("", &table);
        let upstream =
            url(&mut file, "upstream")?.ok_or("`upstream` is missing: the URL of the server behind the gate")?;
        let base_url = url(&mut file, "base_url")?;
        let pay_to = account(&mut file, "pay_to")?;
        let seconds = file.integer("upstream_seconds")?.unwrap_or(UPSTREAM_SECONDS);
        let upstream_timeout = seconds_of(seconds).ok_or("`upstream_seconds` must be 1 to 3600")?;
        let is_open = match file.text("unmatched")? {
            None | Some("refuse") => false,
            Some("free") => true,
            Some(_) => return Err("`unmatched` must be \"refuse\" or \"free\"".to_owned()),
        };
        let signs_receipts = match file.text("receipts")? {
            None | Some("signed") => true,
            Some("unsigned") => false,
            Some(_) => return Err("`receipts` must be \"signed\" or \"unsigned\"".to_owned()),
        };
        let rows = match file.get("route") {
            Some(Value::Array(rows)) => rows.as_slice(),
            None => &[],
            Some(_) => return Err("`route` must be a list: write [[route]]".to_owned()),
        };
        file.end()?;
        let mut routes = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            let name = format!("route {}", number + 1);
            let table = row.as_table().ok_or_else(|| format!("`{name}` must be a table"))?;
            routes.push(route(Section::new(&name, table), pay_to)?);
        }
        if routes.is_empty() {
            return Err("there is no [[route]]".to_owned());
        }
        let router = router(&routes)?;
        Ok(Self { upstream, base_url, upstream_timeout, signs_receipts, is_open, routes, router })
    }

    /// Returns the route of a request. Paths match regardless of case and of a trailing slash, so that a tolerant
    /// upstream serves nothing for free.
    pub(super) fn find(&self, method: &Method, path: &str) -> Matched<'_> {
        if is_ambiguous(path) {
            return Matched::Ambiguous;
        }
        let path = canonical(path);
        let Ok(found) = self.router.at(&path) else {
            return if self.is_open { Matched::Free } else { Matched::Nothing };
        };
        // HEAD has the price of GET, because it describes the same content.
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        let is_of = |route: &&Route| route.method.as_ref().is_none_or(|of| of == method);
        match found.value.iter().map(|at| &self.routes[*at]).find(is_of) {
            Some(route) => route.price.as_ref().map_or(Matched::Free, |price| Matched::Priced(route, price)),
            None if self.is_open => Matched::Free,
            None => Matched::Nothing,
        }
    }

    /// Returns every route with a price.
    pub(super) fn priced(&self) -> impl Iterator<Item = (&Route, &Price)> {
        self.routes.iter().filter_map(|route| Some((route, route.price.as_ref()?)))
    }
}

fn route(mut section: Section<'_>, pay_to: Option<AccountName>) -> Reading<Route> {
    let method = match section.text("method")? {
        None => None,
        Some(name) => {
            let known = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
            let known = known.into_iter().find(|known| known.as_str() == name.to_ascii_uppercase());
            Some(known.ok_or_else(|| section.must("method", "GET, POST, PUT, PATCH or DELETE"))?)
        }
    };
    let path = section.text("path")?.filter(|path| path.starts_with('/') && !is_ambiguous(path));
    let path = path.ok_or_else(|| section.must("path", "a path such as /report or /reports/{id}"))?.to_owned();
    let amount = section.amounts("price")?;
    let description = section.text("description")?.unwrap_or_default().to_owned();
    let mime_type = section.text("mime_type")?.unwrap_or("application/json").to_owned();
    let settles_first = match section.text("settle")? {
        None | Some("after") => false,
        Some("before") => true,
        Some(_) => return Err(section.must("settle", "\"after\" or \"before\"")),
    };
    let own = account(&mut section, "pay_to")?;
    let seconds = section.integer("timeout_seconds")?.unwrap_or(TIMEOUT_SECONDS);
    let timeout = seconds_of(seconds).ok_or_else(|| section.must("timeout_seconds", "1 to 3600"))?;
    let price = match amount.as_slice() {
        [] => None,
        [amount] if amount.units > 0 => {
            let missing = || section.must("pay_to", "set, here or for all routes: the account that is paid");
            let pay_to = own.or(pay_to).ok_or_else(missing)?;
            let timeout_seconds = timeout.as_secs();
            Some(Price { amount: *amount, pay_to, description, mime_type, settles_first, timeout_seconds })
        }
        _ => return Err(section.must("price", "one amount above zero, such as \"0.050 HBD\"")),
    };
    section.end()?;
    Ok(Route { method, path, price })
}

fn router(routes: &[Route]) -> Reading<Router<Vec<usize>>> {
    let mut by_path: std::collections::BTreeMap<String, Vec<usize>> = std::collections::BTreeMap::new();
    for (at, route) in routes.iter().enumerate() {
        let rows = by_path.entry(canonical(&route.path)).or_default();
        if rows.iter().any(|row| routes[*row].method == route.method) {
            return Err(format!(
                "two routes match {} {}",
                route.method.as_ref().map_or("every method of", Method::as_str),
                route.path
            ));
        }
        rows.push(at);
    }
    let mut router = Router::new();
    for (path, mut rows) in by_path {
        // A route for one method precedes one for all methods.
        rows.sort_by_key(|row| routes[*row].method.is_none());
        router.insert(&path, rows).map_err(|error| format!("the path {path} cannot be used: {error}"))?;
    }
    Ok(router)
}

/// Normalizes a path: lower case, without a trailing slash.
fn canonical(path: &str) -> String {
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() { "/".to_owned() } else { trimmed.to_ascii_lowercase() }
}

/// Returns whether a path is ambiguous: encoded letters, slashes and dots, empty or dot segments, backslashes,
/// parameters of segments.
fn is_ambiguous(path: &str) -> bool {
    let is_encoded_plain = |hex: &str| {
        let byte = hex.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        byte.is_none_or(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/' | b'\\' | b'%' | 0..=31)
        })
    };
    let is_odd_segment = |segment: &str| matches!(segment, "." | "..");
    path.contains(['\\', ';'])
        || path.contains("//")
        || path.split('%').skip(1).any(is_encoded_plain)
        || path.split('/').any(is_odd_segment)
}

fn url(section: &mut Section<'_>, key: &'static str) -> Reading<Option<Url>> {
    let Some(text) = section.text(key)? else { return Ok(None) };
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let url = url.filter(|url| url.query().is_none() && url.fragment().is_none());
    url.map(Some).ok_or_else(|| section.must(key, "an http or https URL without a query"))
}

fn account(section: &mut Section<'_>, key: &'static str) -> Reading<Option<AccountName>> {
    let Some(text) = section.text(key)? else { return Ok(None) };
    AccountName::parse(text).map(Some).map_err(|error| format!("`{}` {error}", section.path(key)))
}

fn seconds_of(seconds: i64) -> Option<Duration> {
    u64::try_from(seconds).ok().filter(|seconds| (1..=3_600).contains(seconds)).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        upstream = "http://127.0.0.1:3000"
        pay_to = "shop.demo"
        [[route]]
        method = "GET"
        path = "/report"
        price = "0.050 HBD"
        [[route]]
        path = "/reports/{id}"
        price = "1.000 HIVE"
        settle = "before"
        pay_to = "other.shop"
        [[route]]
        path = "/health"
    "#;

    #[test]
    fn a_request_finds_its_route() {
        let routes = Routes::parse(FILE).unwrap();
        let price = |method: Method, path: &str| match routes.find(&method, path) {
            Matched::Priced(_, price) => price.amount.to_string(),
            other => format!("{other:?}"),
        };
        assert_eq!(price(Method::GET, "/report"), "0.050 HBD");
        assert_eq!(price(Method::HEAD, "/report"), "0.050 HBD");
        assert_eq!(price(Method::POST, "/report"), "Nothing");
        assert_eq!(price(Method::POST, "/reports/5"), "1.000 HIVE");
        assert_eq!(price(Method::GET, "/health"), "Free");
        assert_eq!(price(Method::GET, "/other"), "Nothing");
        let open =
            Routes::parse(&FILE.replace("pay_to = \"shop.demo\"", "pay_to = \"shop.demo\"\nunmatched = \"free\""))
                .unwrap();
        assert_eq!(open.find(&Method::GET, "/other"), Matched::Free);
        assert_eq!(routes.priced().count(), 2);
        assert!(routes.signs_receipts);
        assert!(!Routes::parse(&format!("receipts = \"unsigned\"\n{FILE}")).unwrap().signs_receipts);
        let [first, second] =
            routes.priced().map(|(_, price)| (price.pay_to, price.settles_first)).collect::<Vec<_>>()[..]
        else {
            panic!("two prices")
        };
        assert_eq!((first.0.as_str(), first.1, second.0.as_str(), second.1), ("shop.demo", false, "other.shop", true));
    }

    #[test]
    fn no_spelling_of_a_path_gets_around_its_price() {
        let text = FILE.replace("pay_to = \"shop.demo\"", "pay_to = \"shop.demo\"\nunmatched = \"free\"");
        let routes = Routes::parse(&text).unwrap();
        for path in ["/REPORT", "/report/", "/Report//"] {
            let found = routes.find(&Method::GET, path);
            assert!(matches!(found, Matched::Priced(..) | Matched::Ambiguous), "{path}: {found:?}");
        }
        let spellings = [
            "/%72eport",
            "/./report",
            "/x/../report",
            "//report",
            "/report%2f",
            "/%2e/report",
            "/report;v=1",
            "\\report",
            "/x%5c..%5creport",
            "/report%00",
            "/%",
            "/%zz",
            "/report%25",
        ];
        for path in spellings {
            assert_eq!(routes.find(&Method::GET, path), Matched::Ambiguous, "{path}");
        }
        assert!(
            matches!(routes.find(&Method::GET, "/reports/a%20b"), Matched::Priced(..)),
            "an encoded space is no trick"
        );
    }

    #[test]
    fn a_file_that_cannot_be_used_is_refused_with_its_place() {
        let cases = [
            ("pay_to = \"shop.demo\"\n", "`upstream` is missing"),
            ("upstream = \"127.0.0.1\"\n", "`upstream` must be an http or https URL"),
            ("upstream = \"http://a.example\"\n", "there is no [[route]]"),
            (
                "upstream = \"http://a.example\"\n[[route]]\npath = \"/x\"\nprice = \"0.050 HBD\"\n",
                "`route 1.pay_to` must be set",
            ),
            ("upstream = \"http://a.example\"\n[[route]]\npath = \"x\"\n", "`route 1.path` must be a path"),
            (
                "upstream = \"http://a.example\"\n[[route]]\npath = \"/x\"\nprize = \"0.050 HBD\"\n",
                "did you mean `route 1.price`?",
            ),
            (
                "upstream = \"http://a.example\"\n[[route]]\npath = \"/x\"\nprice = \"0.000 HBD\"\n",
                "`route 1.price` must be one amount",
            ),
            (
                "upstream = \"http://a.example\"\n[[route]]\npath = \"/x\"\nsettle = \"never\"\n",
                "`route 1.settle` must be",
            ),
            (
                "upstream = \"http://a.example\"\n[[route]]\npath = \"/x\"\n[[route]]\npath = \"/X/\"\n",
                "two routes match",
            ),
            ("upstream = \"http://a.example\"\nreceipts = \"never\"\n", "`receipts` must be"),
            ("upsteam = \"http://a.example\"\nupstream = \"http://a.example\"\n", "did you mean `upstream`?"),
        ];
        for (text, expected) in cases {
            let why = Routes::parse(text).map(|_| ()).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
    }
}
