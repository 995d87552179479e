//! The merchant's dashboard: pages written on the server, without script, over the same calls as the REST interface.
//!
//! A visitor shows the API key once; from then on a cookie names a session of this process. Every form carries its
//! session's token and must come from a page of ours.

use askama::Template;
use engine::mutant;
use http::{HeaderValue, Method, StatusCode, header};
use proto::{ApiError, Carried, Reason, v1};
use warp::reply::Response;

use super::{Facade, Refusal, call::Call, export::Format, health, pages, query::Query};

mod account;
mod astray;
mod audit;
mod ledger;
mod merchant;
mod merchants;
mod nodes;
mod overview;
mod payment;
mod payments;
mod sessions;
mod settings;
mod webhooks;

use sessions::{Session, Sessions};

/// The session's cookie: the prefix makes browsers refuse it from anywhere but this host, over TLS.
const COOKIE: &str = "__Host-hivetill";
/// How long a browser keeps it: no session lives longer.
const SESSION_SECONDS: u32 = 7 * 86_400;
const LOGIN: &str = "/dashboard/login";

/// What the dashboard needs.
#[derive(Debug)]
pub struct Desk {
    sessions: Sessions,
    /// The control address of a development ledger, whose play money pays test payments.
    test_ledger: Option<String>,
}

impl Desk {
    /// Makes a dashboard whose sessions come from `secret`, which must be random. `test_ledger` is the control address
    /// of a development ledger, if that is what the engine follows.
    #[must_use]
    pub fn new(secret: [u8; 32], test_ledger: Option<String>) -> Self {
        Self { sessions: Sessions::new(secret), test_ledger }
    }

    /// Opens a session, whose cookie goes with the answer.
    fn logged_in(&self, answer: Response, key: HeaderValue, merchant_id: String) -> Response {
        with_cookie(answer, &self.sessions.open(key, merchant_id), SESSION_SECONDS)
    }
}

/// One visit of somebody who is logged in.
struct Visit<'f> {
    facade: &'f Facade,
    desk: &'f Desk,
    call: Call,
    token: String,
    merchant: v1::Merchant,
    /// The fields of a form that was sent.
    form: Query,
}

/// What every page of the dashboard shows around its own.
struct Frame<'v> {
    merchant: &'v v1::Merchant,
    form_token: String,
    /// Where in the menu it is.
    section: &'static str,
    /// What has just been done.
    done: Option<&'static str>,
    /// What was wrong with what was asked.
    problems: Vec<String>,
}

/// Answers every address below `/dashboard`; `path` is what stands after it.
pub(super) async fn serve(facade: &Facade, mut call: Call, path: &str) -> Result<Response, Refusal> {
    let path: Vec<&str> = if path.is_empty() { Vec::new() } else { path.split('/').collect() };
    if path.iter().any(|part| part.is_empty()) {
        return Err(Reason::UnknownRoute.into());
    }
    let path = &path[..];
    let Some(desk) = &facade.desk else { return Err(Reason::UnknownRoute.into()) };
    let is_post = call.method == Method::POST;
    if !is_post && call.method != Method::GET {
        return Err(Refusal::method("GET, POST"));
    }
    if is_post && !is_from_here(&call) {
        return Err(Reason::InvalidFormToken.into());
    }
    if path == ["login"] {
        if is_post {
            return log_in(facade, desk, call).await;
        }
        admit_stranger(facade, &call)?;
        return Ok(login_page(facade, &call, None).await);
    }
    let Some((token, session)) = visitor(desk, &call) else {
        admit_stranger(facade, &call)?;
        return Ok(pages::see_other(LOGIN));
    };
    call.caller.api_key = Some(session.key.clone());
    if let Some(limits) = &facade.edge.limits {
        limits.admit_visit(&session.merchant_id, !is_post, path)?;
    }
    let form = if is_post { call.form().await? } else { Query::parse("") };
    let is_ours = desk.sessions.is_form_token(&token, form.get("token").unwrap_or_default());
    if is_post && !is_ours && !mutant!("facade-dashboard-token-not-checked") {
        return Err(Reason::InvalidFormToken.into());
    }
    if is_post && path == ["logout"] {
        match form.get("everywhere") {
            Some(_) => desk.sessions.close_all(&session.merchant_id),
            None if mutant!("facade-logout-leaves-the-session") => {}
            None => desk.sessions.close(&token),
        }
        return Ok(with_cookie(pages::see_other(LOGIN), "", 0));
    }
    let request = call.caller.request(v1::GetCurrentMerchantRequest {});
    let merchant = match facade
        .engine
        .merchants()
        .get_current_merchant(request)
        .await
        .and_then(Carried::carried)
        .map_err(ApiError::from)
    {
        Ok(merchant) => merchant,
        // The key has been replaced: who holds only the old one is a stranger.
        Err(refused) if refused.reason == Reason::InvalidApiKey => {
            desk.sessions.close(&token);
            return Ok(with_cookie(pages::see_other(LOGIN), "", 0));
        }
        Err(refused) => return Err(refused.into()),
    };
    let visit = Visit { facade, desk, call, token, merchant, form };
    match (is_post, path) {
        (false, []) => overview::page(&visit).await,
        (false, ["payments"]) => payments::page(&visit).await,
        (false, ["payments.csv"]) => payments::export(&visit, Format::Csv { bom: false }).await,
        (false, ["payments.json"]) => payments::export(&visit, Format::Json).await,
        (false, ["payments", "new"]) => Ok(payment::form(&visit, StatusCode::OK, Vec::new())),
        (true, ["payments", "new"]) => payment::create(&visit).await,
        (false, ["payments", id]) => payment::page(&visit, id, Vec::new()).await,
        (true, ["payments", id, "cancel"]) => payment::cancel(&visit, id).await,
        (true, ["payments", id, "pay"]) => payment::pay(&visit, id).await,
        (true, ["payments", id, "delete-metadata"]) => payment::delete_metadata(&visit, id).await,
        (true, ["payments", id, "delete-note"]) => payment::delete_note(&visit, id).await,
        (true, ["payments", id, "resolve"]) => astray::resolve(&visit, id).await,
        (false, ["payments", id, "refund"]) => astray::refund(&visit, id).await,
        (false, ["unmatched"]) => astray::list(&visit).await,
        (false, ["unmatched", id]) => astray::one(&visit, id, Vec::new()).await,
        (true, ["unmatched", id, "assign"]) => astray::assign(&visit, id).await,
        (true, ["unmatched", id, "ignore"]) => astray::ignore(&visit, id).await,
        (false, ["account"]) => Ok(account::page(&visit)),
        (true, ["account", "challenge"]) => account::challenge(&visit).await,
        (true, ["account", "prove"]) => account::prove(&visit).await,
        (true, ["account", "cancel"]) => account::cancel(&visit).await,
        (false, ["webhooks"]) => webhooks::page(&visit, Vec::new()).await,
        (true, ["webhooks", "test"]) => webhooks::test(&visit).await,
        (true, ["webhooks", "enable"]) => webhooks::enable(&visit).await,
        (true, ["webhooks", "replay"]) => webhooks::replay(&visit).await,
        (false, ["webhooks", id]) => webhooks::delivery(&visit, id).await,
        (true, ["webhooks", id, "redeliver"]) => webhooks::redeliver(&visit, id).await,
        (false, ["settings"]) => settings::page(&visit, StatusCode::OK, Vec::new()).await,
        (true, ["settings"]) => settings::save(&visit).await,
        (true, ["settings", "secret"]) => settings::new_secret(&visit).await,
        (true, ["settings", "keys", id, "roll"]) => settings::roll_key(&visit, id).await,
        (false, ["merchants"]) => merchants::page(&visit).await,
        (false, ["merchants.csv"]) => merchants::export(&visit, Format::Csv { bom: false }).await,
        (false, ["merchants.json"]) => merchants::export(&visit, Format::Json).await,
        (false, ["audit"]) => audit::page(&visit).await,
        (false, ["nodes"]) => nodes::page(&visit).await,
        (false, ["merchants", id]) => merchant::page(&visit, id, None).await,
        (true, ["merchants", id, "clear"]) => merchant::clear(&visit, id).await,
        (true, ["merchants", id, "limits"]) => merchant::set_limits(&visit, id).await,
        (true, ["merchants", id, "active"]) => merchants::set_active(&visit, id).await,
        (true, ["merchants", id, "key"]) => merchants::new_key(&visit, id).await,
        _ => Err(Reason::UnknownRoute.into()),
    }
}

impl Visit<'_> {
    fn frame(&self, section: &'static str, problems: Vec<String>) -> Frame<'_> {
        Frame {
            merchant: &self.merchant,
            form_token: self.desk.sessions.form_token(&self.token),
            section,
            done: self.call.query().get("done").and_then(done),
            problems,
        }
    }

    /// Returns the text of the key the visitor logged in with.
    fn key(&self) -> &str {
        self.call.caller.api_key.as_ref().and_then(|key| key.to_str().ok()).unwrap_or_default()
    }

    /// Refuses whoever is no admin.
    fn admin(&self) -> Result<(), Refusal> {
        if self.merchant.admin { Ok(()) } else { Err(Reason::AdminRequired.into()) }
    }

    fn request<T>(&self, message: T) -> tonic::Request<T> {
        self.call.caller.request(message)
    }
}

/// What an address may claim to have been done; nothing else is repeated from it.
fn done(word: &str) -> Option<&'static str> {
    Some(match word {
        "saved" => "Saved.",
        "cancelled" => "Cancellation requested. The ledger decides it within seconds.",
        "sent" => "Sent. It is final a few blocks later.",
        "assigned" => "The transfer is assigned to this payment.",
        "ignored" => "The transfer is ignored.",
        "metadata-deleted" => "Metadata deleted.",
        "note-deleted" => "Note deleted.",
        "resolved" => "Noted.",
        "tested" => "A test event is sent.",
        "enabled" => "The endpoint is enabled.",
        "redelivered" => "The event is sent once more.",
        "replayed" => "What was not taken is sent again.",
        "active" => "The merchant is active.",
        "inactive" => "The merchant is inactive.",
        "cleared" => "The hold is ended.",
        "proven" => "Ownership is proven.",
        "kept" => "The change is cancelled.",
        "limited" => "The merchant has limits of its own.",
        "unlimited" => "Everybody’s limits hold for the merchant.",
        _ => return None,
    })
}

/// Says what was wrong, a line for each field.
fn problems(refused: &ApiError) -> Vec<String> {
    match refused.fields.as_slice() {
        [] => vec![refused.message.clone().into()],
        fields => fields.iter().map(|field| format!("{} {}", field.field, field.message)).collect(),
    }
}

/// Finds who visits.
fn visitor(desk: &Desk, call: &Call) -> Option<(String, Session)> {
    let token = cookie(call)?;
    let session = desk.sessions.find(&token)?;
    Some((token, session))
}

fn cookie(call: &Call) -> Option<String> {
    let cookies = call.headers().get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, token)| token.to_owned())
}

/// Sets the session's cookie for `seconds`; 0 takes it away.
fn with_cookie(mut response: Response, token: &str, seconds: u32) -> Response {
    let cookie = format!("{COOKIE}={token}; Path=/; Max-Age={seconds}; Secure; HttpOnly; SameSite=Lax");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// Says whether a form was sent by a page of ours, as far as the browser tells; its token is asked besides.
fn is_from_here(call: &Call) -> bool {
    let text = |name: header::HeaderName| call.headers().get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = call.headers().get("sec-fetch-site") {
        return site == "same-origin" || site == "none";
    }
    let host = text(header::HOST).unwrap_or_default();
    text(header::ORIGIN).is_none_or(|origin| origin.split_once("://").is_some_and(|(_, from)| from == host))
}

/// A cookie of that kind travels over TLS only; browsers make an exception for this machine.
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
#[template(path = "refused.html")]
struct RefusalPage<'a> {
    w: pages::Words,
    is_test: bool,
    title: &'a str,
    message: &'a str,
    request_id: &'a str,
}

/// Answers a merchant's browser with a page that says what is wrong.
pub(super) fn refusal(refused: &ApiError, is_test: bool, request_id: &str) -> Response {
    let title = match refused.http() {
        403 => "Not allowed",
        404 => "Not found",
        429 => "Too many requests",
        _ => "Something went wrong",
    };
    let message = match refused.reason {
        Reason::InvalidFormToken => {
            "The form is too old or not ours. Go back, load the page again, and send it once more."
        }
        Reason::NotFound => "There is nothing of yours by that name.",
        _ => &refused.message,
    };
    let page = RefusalPage { w: pages::Words(pages::Lang::English), is_test, title, message, request_id };
    super::error::with_retry(refused, pages::html(super::error::status(refused), page.render(), None))
}

#[derive(Template)]
#[template(path = "dashboard/login.html")]
struct LoginPage {
    is_test: bool,
    problem: Option<String>,
    is_safe: bool,
}

async fn login_page(facade: &Facade, call: &Call, refused: Option<&ApiError>) -> Response {
    let status = refused.map_or(StatusCode::OK, super::error::status);
    let problem = refused.map(|refused| match refused.reason {
        Reason::InvalidApiKey => "This is no API key of ours.".to_owned(),
        _ => refused.message.clone().into(),
    });
    let page =
        LoginPage { is_test: health::is_test(facade, &call.caller).await, problem, is_safe: is_safe(&facade.base_url) };
    let response = pages::html(status, page.render(), None);
    match refused {
        Some(refused) => super::error::with_retry(refused, response),
        None => response,
    }
}

/// Counts a visit of nobody who is logged in, by its address.
fn admit_stranger(facade: &Facade, call: &Call) -> Result<(), ApiError> {
    facade.edge.limits.as_ref().map_or(Ok(()), |limits| limits.admit_stranger(call.client()))
}

async fn log_in(facade: &Facade, desk: &Desk, mut call: Call) -> Result<Response, Refusal> {
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
            found.and_then(Carried::carried).map_err(ApiError::from).map(|merchant| (key, merchant))
        }
    };
    match found {
        Ok((key, merchant)) => {
            facade.accepted_keys.insert(key.as_bytes(), &merchant.id);
            // A session that came with the request is ended: nobody else can know the new one.
            if let Some(old) = cookie(&call) {
                desk.sessions.close(&old);
            }
            Ok(desk.logged_in(pages::see_other("/dashboard"), key, merchant.id))
        }
        Err(refused) => {
            if let Some(limits) = facade.edge.limits.as_ref().filter(|_| refused.reason == Reason::InvalidApiKey) {
                limits.note_bad_key(client);
            }
            Ok(login_page(facade, &call, Some(&refused)).await)
        }
    }
}

/// Writes money without its currency, as people type it.
fn decimal(units: u64) -> String {
    format!("{}.{:03}", units / 1_000, units % 1_000)
}

/// Writes US cents as dollars.
fn dollars(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// Reads money as people type it: at most three decimals.
fn units(text: &str) -> Option<u64> {
    let (whole, part) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let are_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || part.len() > 3 || !are_digits(whole) || !are_digits(part) {
        return None;
    }
    whole.parse::<u64>().ok()?.checked_mul(1_000)?.checked_add(format!("{part:0<3}").parse().ok()?)
}

/// Writes an instant for people, to the minute.
fn minute(wire: impl Into<Option<proto::time::Timestamp>>) -> String {
    let text = super::record::instant(wire).to_ledger();
    text.chars().take(16).collect::<String>().replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_read_as_people_type_it() {
        for (text, wanted) in [
            ("1", Some(1_000)),
            ("1.5", Some(1_500)),
            (" 0.001 ", Some(1)),
            ("12.345", Some(12_345)),
            ("1.2345", None),
            (".5", None),
            ("", None),
            ("-1", None),
            ("1e3", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(units(text), wanted, "{text}");
        }
        assert_eq!(decimal(12_045), "12.045");
    }

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
