//! HTML pages: headers, layout and static assets.

use std::sync::LazyLock;

use askama::Template;
use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderValue, StatusCode, header};
use proto::{ApiError, Reason};
use sha2::{Digest, Sha256};
use warp::reply::Response;

use super::words::{Lang, Words};
use crate::facade::http::{call::Call, error, file::File, refusal::Refusal};

/// The style sheet of the customer's pages. It is inlined, so that nothing has to load before the first paint.
pub(crate) const STYLE: &str = include_str!("../../../assets/checkout.css");

/// The style source of the content security policy: the digest of the style sheet only.
static STYLE_SOURCE: LazyLock<String> =
    LazyLock::new(|| format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(STYLE))));

/// Returns the language of a request: the selected one, the browser's preferred one, or English.
pub(crate) fn language(call: &Call) -> Lang {
    let header = || {
        let liked = call.headers().get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        liked.and_then(Lang::preferred)
    };
    chosen_language(call).or_else(header).unwrap_or(Lang::English)
}

/// Returns the language in the query string.
pub(crate) fn chosen_language(call: &Call) -> Option<Lang> {
    call.query().get("lang").and_then(Lang::of_tag)
}

#[derive(Template)]
#[template(path = "message.html")]
struct MessagePage<'a> {
    w: Words,
    is_test: bool,
    title: &'a str,
    message: &'a str,
    request_id: &'a str,
}

/// Returns an error page to a browser.
pub(crate) fn refusal(refused: &ApiError, lang: Lang, is_test: bool, request_id: &str) -> Response {
    let w = Words(lang);
    let (title, message) = match refused.http() {
        404 => (w.unknown(), w.unknown_more()),
        503 => (w.down(), w.down_more()),
        _ => (w.broken(), &*refused.message),
    };
    let message = MessagePage { w, is_test, title, message, request_id };
    error::with_retry(refused, page(error::status(refused), message.render(), None))
}

/// Redirects a browser to another page of this host.
pub(crate) fn see_other(path: &str) -> Response {
    let mut response = page(StatusCode::SEE_OTHER, Ok(String::new()), None);
    match HeaderValue::from_str(path) {
        Ok(path) => {
            response.headers_mut().insert(header::LOCATION, path);
        }
        Err(_) => *response.status_mut() = StatusCode::OK,
    }
    response
}

/// Returns a page. It loads no external resource except the image of `icon_url`. `form-action 'self'` is sufficient
/// because every form returns a page of this host, which then redirects.
pub(crate) fn page(status: StatusCode, rendered: askama::Result<String>, icon_url: Option<&str>) -> Response {
    let Ok(rendered) = rendered else {
        return error::response(&ApiError::new(Reason::Internal), "");
    };
    let mut response = Response::new(rendered.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("cache-control", "no-store"),
        // The slug in the URL is secret: no link sends it as the referrer.
        ("referrer-policy", "no-referrer"),
        ("x-robots-tag", "noindex, nofollow"),
        ("x-frame-options", "DENY"),
        ("cross-origin-opener-policy", "same-origin"),
        ("permissions-policy", "camera=(), microphone=(), geolocation=(), payment=()"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let image = icon_url.and_then(origin).unwrap_or_default();
    let style = STYLE_SOURCE.as_str();
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self' {style}; img-src 'self'{image}; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert("content-security-policy", policy);
    }
    response
}

/// Returns the origin of an https URL as a policy source, with a leading space.
fn origin(address: &str) -> Option<String> {
    let url = url::Url::parse(address).ok().filter(|url| url.scheme() == "https")?;
    let origin = url.origin().ascii_serialization();
    // These characters would end a source; a host contains none of them.
    (!origin.contains([' ', ';', ',', '\'', '*'])).then(|| format!(" {origin}"))
}

/// Keeps a URL only if it leads to a page or an e-mail address. The engine already rejects others; this is a second
/// check.
pub(crate) fn link(address: &str) -> Option<&str> {
    let url = url::Url::parse(address).ok()?;
    matches!(url.scheme(), "https" | "http" | "mailto").then_some(address)
}

/// The static files of the pages: name, media type, contents.
static ASSETS: LazyLock<[(&str, &str, File); 6]> = LazyLock::new(|| {
    const SCRIPT: &str = "text/javascript; charset=utf-8";
    const SHEET: &str = "text/css; charset=utf-8";
    [
        ("checkout.js", SCRIPT, include_str!("../../../assets/checkout.js")),
        ("account.js", SCRIPT, include_str!("../../../assets/account.js")),
        ("checkout.css", SHEET, STYLE),
        ("dashboard.css", SHEET, include_str!("../../../assets/dashboard.css")),
        ("docs.css", SHEET, include_str!("../../../assets/docs.css")),
        ("icon.svg", "image/svg+xml", include_str!("../../../assets/icon.svg")),
    ]
    .map(|(name, media_type, text)| (name, media_type, File::of(text)))
});

/// Returns a script, a style sheet or the icon of the pages.
pub(crate) async fn asset(call: Call, name: &str) -> Result<Response, Refusal> {
    let found = ASSETS.iter().find(|(known, ..)| *known == name);
    let (_, media_type, file) = found.ok_or(Reason::UnknownRoute)?;
    Ok(file.response(&call, media_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_lead_to_a_page_become_links() {
        for good in ["https://a.example/x?y#z", "http://localhost:3000/", "mailto:help@a.example"] {
            assert_eq!(link(good), Some(good));
        }
        for bad in
            ["javascript:alert(1)", "JavaScript:alert(1)", "data:text/html,x", "/x", "", " javascript:x", "blob:x"]
        {
            assert_eq!(link(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_policy_names_the_origin_of_the_logo_and_no_more() {
        assert_eq!(origin("https://img.example:8443/logo.png?x"), Some(" https://img.example:8443".to_owned()));
        for bad in ["http://img.example/", "data:image/png,x", "x", "javascript:1", ""] {
            assert_eq!(origin(bad), None, "{bad}");
        }
    }
}
