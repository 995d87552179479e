//! Login and logout: the session cookie, and the page with the login form.

use askama::Template;
use http::{HeaderValue, StatusCode, header};
use proto::{ApiError, IntoRecord as _, Reason, v1};
use warp::reply::Response;

use crate::facade::{
    http::{
        call::Call,
        error,
        refusal::Refusal,
        sessions::{self, DashboardState, Session, Token},
        state::Facade,
    },
    pages::html,
};

/// The session cookie: because of its prefix, browsers accept it only from this host over TLS.
const COOKIE: &str = "__Host-hivetill";
/// The lifetime of the cookie, which is the maximum lifetime of a session.
const SESSION_SECONDS: u32 = 7 * 86_400;
pub(super) const LOGIN: &str = "/dashboard/login";

/// Sets the cookie of a session.
pub(super) fn with_session(response: Response, token: &Token) -> Response {
    with_cookie(response, &token.text(), SESSION_SECONDS)
}

/// Returns the session of a request. A token that was not valid lately is counted as a request without a session, because
/// the engine has to look for it.
pub(super) async fn visitor(facade: &Facade, call: &Call) -> Result<Option<(Token, Session)>, ApiError> {
    let Some(token) = cookie(call) else { return Ok(None) };
    let text = token.text();
    if facade.accepted_keys.get(text.as_bytes()).is_none() {
        admit_anonymous(facade, call)?;
    }
    let session = sessions::find(&facade.engine, &call.caller, &token).await?;
    match &session {
        Some(session) => {
            facade.accepted_keys.insert(text.as_bytes(), &session.merchant_id);
        }
        None => facade.accepted_keys.remove(text.as_bytes()),
    }
    Ok(session.map(|session| (token, session)))
}

pub(super) fn cookie(call: &Call) -> Option<Token> {
    let cookies = call.headers().get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).and_then(|(_, token)| Token::parse(token))
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
    let opened = match key.map_err(|_| ApiError::new(Reason::InvalidApiKey)) {
        Ok(key) => open(facade, dashboard, &mut call, key).await,
        Err(invalid) => Err(invalid),
    };
    match opened {
        Ok(response) => Ok(response),
        Err(refused) => {
            if refused.reason == Reason::InvalidApiKey {
                facade.record_invalid_key(&call.caller, client).await;
            }
            Ok(login_page(facade, &call, Some(&refused)).await)
        }
    }
}

/// Opens a session with a key and sets its cookie.
async fn open(
    facade: &Facade,
    dashboard: &DashboardState,
    call: &mut Call,
    key: HeaderValue,
) -> Result<Response, ApiError> {
    if facade.accepted_keys.get(key.as_bytes()).is_none() {
        facade.admit_unknown_key(&call.caller, call.client()).await.map_err(|limited| limited.error)?;
    }
    call.caller.api_key = Some(key.clone());
    let request = call.caller.request(v1::GetCurrentMerchantRequest {});
    let merchant = facade.engine.merchants().get_current_merchant(request).await?.into_record()?;
    facade.accepted_keys.insert(key.as_bytes(), &merchant.id);
    // An existing session is closed, so that the new session id is known to this client only.
    if let Some(old) = cookie(call) {
        sessions::close(&facade.engine, &call.caller, &old).await?;
    }
    let token = dashboard.open(&facade.engine, &call.caller, key, &merchant.id).await?;
    Ok(with_session(html::see_other("/dashboard"), &token))
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
