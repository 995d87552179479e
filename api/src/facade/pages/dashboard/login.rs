//! Login and logout: the session cookie, and the page with the login form.

use askama::Template;
use http::{HeaderValue, StatusCode, header};
use proto::{ApiError, IntoRecord, Reason, v1};
use warp::reply::Response;

use crate::facade::{
    http::{
        call::Call,
        error,
        refusal::Refusal,
        sessions::{DashboardState, Session},
        state::Facade,
    },
    pages::html,
};

/// The session cookie: because of its prefix, browsers accept it only from this host over TLS.
const COOKIE: &str = "__Host-hivetill";
/// The lifetime of the cookie, which is the maximum lifetime of a session.
const SESSION_SECONDS: u32 = 7 * 86_400;
pub(super) const LOGIN: &str = "/dashboard/login";

/// Opens a session and sets its cookie.
pub(super) fn logged_in(
    dashboard: &DashboardState,
    response: Response,
    key: HeaderValue,
    merchant_id: String,
) -> Response {
    with_cookie(response, &dashboard.sessions.open(key, merchant_id), SESSION_SECONDS)
}

/// Returns the session of a request.
pub(super) fn visitor(dashboard: &DashboardState, call: &Call) -> Option<(String, Session)> {
    let token = cookie(call)?;
    let session = dashboard.sessions.find(&token)?;
    Some((token, session))
}

pub(super) fn cookie(call: &Call) -> Option<String> {
    let cookies = call.headers().get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, token)| token.to_owned())
}

/// Sets the session cookie for `seconds`; 0 deletes it.
pub(super) fn with_cookie(mut response: Response, token: &str, seconds: u32) -> Response {
    let cookie = format!("{COOKIE}={token}; Path=/; Max-Age={seconds}; Secure; HttpOnly; SameSite=Lax");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// Returns whether the browser reports that a form originates from this host. The form's token is checked in addition.
pub(super) fn is_from_here(call: &Call) -> bool {
    let text = |name: header::HeaderName| call.headers().get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = call.headers().get("sec-fetch-site") {
        return site == "same-origin" || site == "none";
    }
    let host = text(header::HOST).unwrap_or_default();
    text(header::ORIGIN).is_none_or(|origin| origin.split_once("://").is_some_and(|(_, from)| from == host))
}

/// The cookie requires TLS; browsers make an exception for localhost.
fn is_safe(base_url: &str) -> bool {
    let Ok(url) = url::Url::parse(base_url) else { return false };
    let is_local = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    };
    url.scheme() == "https" || is_local
}

#[derive(Template)]
#[template(path = "dashboard/login.html")]
struct LoginPage {
    is_test: bool,
    problem: Option<String>,
    is_safe: bool,
}

pub(super) async fn login_page(facade: &Facade, call: &Call, refused: Option<&ApiError>) -> Response {
    let status = refused.map_or(StatusCode::OK, error::status);
    let problem = refused.map(|refused| match refused.reason {
        Reason::InvalidApiKey => "The API key is invalid.".to_owned(),
        _ => refused.message.clone().into(),
    });
    let page = LoginPage {
        is_test: facade.network.is_test(&facade.engine, &call.caller).await,
        problem,
        is_safe: is_safe(&facade.base_url),
    };
    let response = html::page(status, page.render(), None);
    match refused {
        Some(refused) => error::with_retry(refused, response),
        None => response,
    }
}

/// Counts an unauthenticated request by its IP address.
pub(super) fn admit_anonymous(facade: &Facade, call: &Call) -> Result<(), ApiError> {
    facade.edge.limits.as_ref().map_or(Ok(()), |limits| limits.admit_anonymous(call.client()))
}

pub(super) async fn log_in(facade: &Facade, dashboard: &DashboardState, mut call: Call) -> Result<Response, Refusal> {
    if !is_safe(&facade.base_url) {
        return Err(Reason::UnknownRoute.into());
    }
    let client = call.client();
    let form = call.form().await?;
    let key = HeaderValue::from_str(form.get("key").unwrap_or_default().trim());
    let key = key.map_err(|_| ApiError::new(Reason::InvalidApiKey)).and_then(|key| {
        let is_known = facade.accepted_keys.get(key.as_bytes()).is_some();
        match facade.edge.limits.as_ref().filter(|_| !is_known) {
            Some(limits) => limits.admit_unknown_key(client).map(|()| key).map_err(|limited| limited.error),
            None => Ok(key),
        }
    });
    let found = match key {
        Err(refused) => Err(refused),
        Ok(key) => {
            call.caller.api_key = Some(key.clone());
            let request = call.caller.request(v1::GetCurrentMerchantRequest {});
            let found = facade.engine.merchants().get_current_merchant(request).await;
            found.and_then(IntoRecord::into_record).map_err(ApiError::from).map(|merchant| (key, merchant))
        }
    };
    match found {
        Ok((key, merchant)) => {
            facade.accepted_keys.insert(key.as_bytes(), &merchant.id);
            // An existing session is closed, so that the new session id is known to this client only.
            if let Some(old) = cookie(&call) {
                dashboard.sessions.close(&old);
            }
            Ok(logged_in(dashboard, html::see_other("/dashboard"), key, merchant.id))
        }
        Err(refused) => {
            if let Some(limits) = facade.edge.limits.as_ref().filter(|_| refused.reason == Reason::InvalidApiKey) {
                limits.record_invalid_key(client);
            }
            Ok(login_page(facade, &call, Some(&refused)).await)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_for_tls_or_this_machine() {
        for (url, safe) in [
            ("https://pay.example", true),
            ("http://localhost:8080", true),
            ("http://127.0.0.1:8080", true),
            ("http://[::1]:8080", true),
            ("http://pay.example", false),
            ("http://localhost.pay.example", false),
            ("nonsense", false),
        ] {
            assert_eq!(is_safe(url), safe, "{url}");
        }
    }
}
