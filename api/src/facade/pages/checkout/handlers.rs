//! The handlers of the checkout: the page, its live status, cancellation, wallet reports and starting again.
//!
//! The slug is a secret of the customer's link. The public id is in the memo and therefore on the chain once a customer
//! has paid. Before that, a browser that requests the page by its id is redirected to the slug, which shows everything
//! until the end. Afterwards the page by id shows an open session without forms, and only state and amount of a final
//! one. A browser that has seen the page by its slug keeps a cookie for the id, so that wallets can return to the URL
//! with the id without learning the secret.

use std::time::Duration;

use engine::mutant;
use futures_util::StreamExt;
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderValue, StatusCode, header};
use proto::{
    ApiError, IntoRecord, Reason,
    v1::{self, PaymentStatus, checkout_session::Session},
};
use sha2::Sha256;
use url::form_urlencoded;
use warp::reply::{Reply, Response};

use crate::facade::{
    http::{
        call::Call,
        error,
        refusal::Refusal,
        response,
        state::Facade,
        stream::{Shared, resumed},
    },
    pages::{
        checkout::{
            phase::Live,
            view::{self, Look, View},
        },
        html,
        words::Words,
    },
    record::{self, cancellation},
    x402,
};

/// The cookie with the token of a page that was seen by its slug; sent to the URL of its id only.
const COOKIE: &str = "hivetill-checkout";
/// The maximum lifetime of a session.
const COOKIE_SECONDS: u32 = 86_400;

/// How the visitor addressed the page: by the secret slug or by the public id.
#[derive(Clone, Copy)]
enum Way<'a> {
    Slug(&'a str),
    Id(&'a str),
}

impl Way<'_> {
    fn session(self) -> Option<v1::CheckoutSession> {
        let session = match self {
            Self::Slug(slug) => Session::Slug(slug.to_owned()),
            Self::Id(id) => Session::PaymentId(id.to_owned()),
        };
        Some(v1::CheckoutSession { session: Some(session) })
    }
}

pub(crate) async fn by_slug(facade: &Facade, call: Call, slug: &str) -> Result<Response, Refusal> {
    page(facade, call, Way::Slug(slug)).await
}

pub(crate) async fn by_id(facade: &Facade, call: Call, id: &str) -> Result<Response, Refusal> {
    page(facade, call, Way::Id(id)).await
}

async fn page(facade: &Facade, call: Call, way: Way<'_>) -> Result<Response, Refusal> {
    if is_program(&call) {
        return x402::visit(facade, &call, way.session()).await;
    }
    let payment = find(facade, &call, way).await?;
    if matches!(way, Way::Id(_)) && (is_untouched(&payment) || has_token(&call, &payment)) {
        return Ok(html::see_other(&onward(&call, &payment)));
    }
    let mut response = view::checkout(StatusCode::OK, &view(facade, &call, way, &payment), None)?;
    if matches!(way, Way::Slug(_)) && is_open(&payment) {
        remember(facade, &mut response, &payment);
    }
    Ok(response)
}

/// Returns the page by its slug, with the visitor's display options.
fn onward(call: &Call, payment: &v1::Payment) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for name in ["lang", "still", "tx"] {
        if let Some(value) = call.query().get(name) {
            query.append_pair(name, value);
        }
    }
    let (path, query) = (format!("/for/{}", payment.slug), query.finish());
    if query.is_empty() { path } else { format!("{path}?{query}") }
}

/// Returns whether the session is open and no transaction on the chain can contain its id.
fn is_untouched(payment: &v1::Payment) -> bool {
    payment.status == PaymentStatus::Pending as i32 && payment.transfers.is_empty() && payment.claim_tx_id.is_none()
}

/// Returns whether the visitor has seen the page by its slug.
fn has_token(call: &Call, payment: &v1::Payment) -> bool {
    let cookies = call.headers().get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.any(|(name, value)| name == COOKIE && is_token(payment, value))
}

/// Sets the cookie that gives the browser full access by the public id.
fn remember(facade: &Facade, response: &mut Response, payment: &v1::Payment) {
    let secure = if facade.base_url.starts_with("https:") { "; Secure" } else { "" };
    let (token, id) = (form_token(payment), &payment.id);
    let cookie =
        format!("{COOKIE}={token}; Path=/checkout/{id}; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Lax{secure}");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
}

async fn find(facade: &Facade, call: &Call, way: Way<'_>) -> Result<v1::Payment, ApiError> {
    let found = facade
        .engine
        .checkout()
        .get_checkout(call.caller.request(v1::GetCheckoutRequest { session: way.session() }))
        .await?;
    Ok(found.into_record()?)
}

/// Returns whether the client is a program: it sends a payment, or does not accept HTML.
pub(crate) fn is_program(call: &Call) -> bool {
    x402::is_shown(call.headers()) || !call.accepts("text/html")
}

/// What this visitor may see.
fn view<'a>(facade: &Facade, call: &Call, way: Way<'a>, payment: &'a v1::Payment) -> View<'a> {
    let (whole, look) = (shows_all(way, payment), Look::of(call));
    let return_url = record::checkout_url(&facade.base_url, &payment.id);
    match way {
        Way::Slug(slug) => {
            let (url, path) = (record::slug_url(&facade.base_url, slug), format!("/for/{slug}"));
            View { payment, url, return_url, path, token: None, reports: true, whole, look }
        }
        Way::Id(id) => {
            let (url, path) = (return_url.clone(), format!("/checkout/{id}"));
            let token = is_untouched(payment).then(|| form_token(payment));
            let reports = token.is_some();
            View { payment, url, return_url, path, token, reports, whole, look }
        }
    }
}

/// Returns whether this visitor may see everything, or only state and amount.
fn shows_all(way: Way<'_>, payment: &v1::Payment) -> bool {
    matches!(way, Way::Slug(_)) || is_open(payment)
}

fn is_open(payment: &v1::Payment) -> bool {
    [PaymentStatus::Pending as i32, PaymentStatus::Processing as i32].contains(&payment.status)
}

/// Returns the token of a page's forms. It is derived from the slug, which is secret, so that it proves that the page
/// was loaded while the session was open, without stored state.
fn form_token(payment: &v1::Payment) -> String {
    hex::encode(&token_mac(payment).finalize().into_bytes()[..16])
}

fn is_token(payment: &v1::Payment, shown: &str) -> bool {
    let bytes = hex::decode(shown).unwrap_or_default();
    bytes.len() == 16 && token_mac(payment).verify_truncated_left(&bytes).is_ok()
}

fn token_mac(payment: &v1::Payment) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(payment.slug.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(b"checkout form ");
    mac.update(payment.id.as_bytes());
    mac
}

pub(crate) async fn status_by_slug(facade: &Facade, call: Call, slug: &str) -> Result<Response, Refusal> {
    status(facade, call, Way::Slug(slug)).await
}

pub(crate) async fn status_by_id(facade: &Facade, call: Call, id: &str) -> Result<Response, Refusal> {
    status(facade, call, Way::Id(id)).await
}

async fn status(facade: &Facade, call: Call, way: Way<'_>) -> Result<Response, Refusal> {
    let payment = find(facade, &call, way).await?;
    let words = Words(html::language(&call));
    let live = Live::of(&payment, words, shows_all(way, &payment))?;
    let mut response = response::json(StatusCode::OK, &live);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

pub(crate) async fn events_by_slug(facade: &Facade, call: Call, slug: &str) -> Result<Response, Refusal> {
    events(facade, call, Way::Slug(slug)).await
}

pub(crate) async fn events_by_id(facade: &Facade, call: Call, id: &str) -> Result<Response, Refusal> {
    events(facade, call, Way::Id(id)).await
}

/// Streams the live status until the session is final or the server shuts down.
async fn events(facade: &Facade, call: Call, way: Way<'_>) -> Result<Response, Refusal> {
    let permit = call.stream(&facade.edge)?;
    let (engine, caller, session) = (facade.engine.clone(), call.caller.clone(), way.session());
    let watch = move |()| {
        let request = caller.request(v1::WatchCheckoutRequest { session: session.clone() });
        let engine = engine.clone();
        async move { engine.checkout().watch_checkout(request).await }
    };
    let first = watch(()).await?.into_inner();
    let (whole, words) = (matches!(way, Way::Slug(_)), Words(html::language(&call)));
    // Each watch begins with the current snapshot, so nothing is missed when another engine continues.
    let snapshots = resumed(first, (), |_, ()| {}, watch).take_until(Box::pin(facade.closed()));
    let events = snapshots.filter_map(move |snapshot| async move {
        let payment = snapshot.payment?;
        let whole = whole || is_open(&payment);
        let event = warp::sse::Event::default()
            .event("status")
            .id(if whole { payment.sequence } else { 0 }.to_string())
            .retry(Duration::from_secs(3))
            .json_data(Live::of(&payment, words, whole).ok()?);
        event.ok().map(Ok::<_, std::convert::Infallible>)
    });
    let events = Shared::new(events, permit);
    let stream = warp::sse::keep_alive().interval(Duration::from_secs(15)).stream(events);
    let mut response = warp::sse::reply(stream).into_response();
    response::streams(&mut response);
    Ok(response)
}

pub(crate) async fn cancel_by_slug(facade: &Facade, call: Call, slug: &str) -> Result<Response, Refusal> {
    cancel(facade, call, Way::Slug(slug)).await
}

/// Cancels by id: because the id is public, the request must contain the page's token.
pub(crate) async fn cancel_by_id(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    check_form_token(facade, &mut call, id).await?;
    cancel(facade, call, Way::Id(id)).await
}

/// Checks that the form of a request by id contains the page's token.
async fn check_form_token(facade: &Facade, call: &mut Call, id: &str) -> Result<(), Refusal> {
    let form = call.form().await?;
    let payment = find(facade, call, Way::Id(id)).await?;
    let is_ours = is_token(&payment, form.get("token").unwrap_or_default());
    if !is_ours && !mutant!("facade-form-token-not-checked") {
        return Err(Reason::InvalidFormToken.into());
    }
    Ok(())
}

pub(crate) async fn restart_by_slug(facade: &Facade, call: Call, slug: &str) -> Result<Response, Refusal> {
    restart(facade, call, Way::Slug(slug)).await
}

/// Starts an expired payment again by id, with the page's token.
pub(crate) async fn restart_by_id(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    check_form_token(facade, &mut call, id).await?;
    restart(facade, call, Way::Id(id)).await
}

/// Opens a payment with the terms of an expired one and leads to its page. Every request for the same expired payment leads
/// to the same page.
async fn restart(facade: &Facade, call: Call, way: Way<'_>) -> Result<Response, Refusal> {
    let expired = find(facade, &call, way).await?;
    facade.edge.count_restart(&expired.merchant_id)?;
    let request = call.caller.request(v1::RestartCheckoutRequest { session: way.session() });
    let restarted = facade.engine.checkout().restart_checkout(request).await;
    let restarted = restarted.and_then(IntoRecord::into_record).map_err(ApiError::from);
    if is_program(&call) {
        let payment = restarted?;
        let slug_url = record::slug_url(&facade.base_url, &payment.slug);
        return Ok(response::json(StatusCode::OK, &record::CreatedShort::of(&payment, &slug_url)));
    }
    match restarted {
        // A client that may start a payment again knows its slug, or has seen its page.
        Ok(payment) => Ok(html::see_other(&view(facade, &call, Way::Slug(&payment.slug), &payment).reload_path())),
        Err(refused) => {
            let view = view(facade, &call, way, &expired);
            let notice = match refused.reason {
                Reason::RestartDisabled | Reason::PaymentNotRestartable | Reason::InactiveMerchant => {
                    view.look.words().cannot_restart()
                }
                _ => &refused.message,
            };
            let page = view::checkout(error::status(&refused), &view, Some(notice))?;
            Ok(error::with_retry(&refused, page))
        }
    }
}

/// Records that the page opened a wallet or reports a transaction id.
pub(crate) async fn report_by_slug(facade: &Facade, call: Call, slug: &str) -> Result<Response, Refusal> {
    let request = call.caller.request(v1::ReportWalletRequest { session: Way::Slug(slug).session() });
    let payment = facade.engine.checkout().report_wallet(request).await?.into_record()?;
    Ok(response::json(StatusCode::OK, &cancellation::Requested::of(&payment)))
}

async fn cancel(facade: &Facade, call: Call, way: Way<'_>) -> Result<Response, Refusal> {
    let request = call.caller.request(v1::CancelCheckoutRequest { session: way.session() });
    let cancelled = facade.engine.checkout().cancel_checkout(request).await;
    let cancelled = cancelled.and_then(IntoRecord::into_record).map_err(ApiError::from);
    if is_program(&call) {
        return Ok(response::json(StatusCode::OK, &cancellation::Requested::of(&cancelled?)));
    }
    match cancelled {
        // A client with the page's token has seen the page while no transfer was on the chain.
        Ok(payment) => Ok(html::see_other(&view(facade, &call, Way::Slug(&payment.slug), &payment).reload_path())),
        Err(refused) => {
            let payment = find(facade, &call, way).await?;
            let view = view(facade, &call, way, &payment);
            let notice = match refused.reason {
                Reason::PaymentNotPending
                | Reason::PaymentDetected
                | Reason::PaymentInFlight
                | Reason::PaymentExpired => view.look.words().cannot_cancel(),
                _ => &refused.message,
            };
            let page = view::checkout(error::status(&refused), &view, Some(notice))?;
            Ok(error::with_retry(&refused, page))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_fits_its_own_session_only() {
        let payment = |id: &str, slug: &str| v1::Payment { id: id.into(), slug: slug.into(), ..v1::Payment::default() };
        let token = form_token(&payment("pay_1", "mug-x"));
        assert!(is_token(&payment("pay_1", "mug-x"), &token));
        assert!(!is_token(&payment("pay_2", "mug-x"), &token));
        assert!(!is_token(&payment("pay_1", "mug-y"), &token));
        for bad in ["", "zz", &token[..30], &format!("{token}00")] {
            assert!(!is_token(&payment("pay_1", "mug-x"), bad), "{bad}");
        }
    }
}
