//! The checkout addresses: who looks, what they may see, and what they may do.
//!
//! The slug is a secret of the customer's link. The id stands in public memos: who has only the id sees an open
//! session (it is an invitation to pay), but of a finished one no more than state and amount.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{Stream, StreamExt};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderValue, StatusCode, header};
use proto::{
    ApiError, Reason,
    v1::{self, PaymentStatus, checkout_request::Session},
};
use sha2::Sha256;
use warp::reply::{Reply, Response};

use super::{
    Facade, Refusal, answer,
    call::Call,
    error,
    limits::StreamPermit,
    pages::{self, Look, View, Words},
    record, x402,
};

/// How a visitor came: by the secret link, or by the public id.
#[derive(Clone, Copy)]
enum Way<'a> {
    Slug(&'a str),
    Id(&'a str),
}

impl Way<'_> {
    fn request(self) -> v1::CheckoutRequest {
        let session = match self {
            Self::Slug(slug) => Session::Slug(slug.to_owned()),
            Self::Id(id) => Session::PaymentId(id.to_owned()),
        };
        v1::CheckoutRequest { session: Some(session) }
    }
}

pub(super) async fn by_slug(facade: &Facade, call: Call, slug: &str) -> Result<Response, Refusal> {
    page(facade, call, Way::Slug(slug)).await
}

pub(super) async fn by_id(facade: &Facade, call: Call, id: &str) -> Result<Response, Refusal> {
    page(facade, call, Way::Id(id)).await
}

async fn page(facade: &Facade, call: Call, way: Way<'_>) -> Result<Response, Refusal> {
    if is_program(&call) {
        return x402::visit(facade, &call, way.request()).await;
    }
    let payment = find(facade, &call, way).await?;
    Ok(pages::checkout(StatusCode::OK, &view(facade, &call, way, &payment, false), None))
}

async fn find(facade: &Facade, call: &Call, way: Way<'_>) -> Result<v1::Payment, ApiError> {
    let found = facade.engine.checkout().get_checkout(call.caller.request(way.request())).await?;
    Ok(found.into_inner())
}

/// A program, not a browser: it shows a payment, or does not ask for a page.
pub(super) fn is_program(call: &Call) -> bool {
    x402::is_shown(call.headers()) || !call.accepts("text/html")
}

/// What this visitor may see; `known` when the visitor has proved to have seen the page before.
fn view<'a>(facade: &Facade, call: &Call, way: Way<'a>, payment: &'a v1::Payment, known: bool) -> View<'a> {
    let whole = shows_all(call, way, payment) || known;
    let look = Look::of(call);
    match way {
        Way::Slug(slug) => {
            let (url, path) = (record::slug_url(facade, slug), format!("/for/{slug}"));
            View { payment, url, path, token: None, whole, look }
        }
        Way::Id(id) => {
            let token = form_token(payment);
            // Who comes back from a wallet has seen the page, and shows so by the token.
            let url = format!("{}?t={token}", record::checkout_url(facade, id));
            View { payment, url, path: format!("/checkout/{id}"), token: Some(token), whole, look }
        }
    }
}

/// Says whether this visitor may see everything, or only state and amount.
fn shows_all(call: &Call, way: Way<'_>, payment: &v1::Payment) -> bool {
    match way {
        Way::Slug(_) => true,
        Way::Id(_) => is_open(payment) || call.query().get("t").is_some_and(|shown| is_token(payment, shown)),
    }
}

fn is_open(payment: &v1::Payment) -> bool {
    [PaymentStatus::Pending as i32, PaymentStatus::Processing as i32].contains(&payment.status)
}

/// Returns the token of a page's forms. It is made from the slug, which no stranger knows, so a page proves by it that
/// it was shown while the session was open, and no state is kept.
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

pub(super) async fn status_by_slug(facade: &Facade, call: Call, slug: &str) -> Result<Response, Refusal> {
    status(facade, call, Way::Slug(slug)).await
}

pub(super) async fn status_by_id(facade: &Facade, call: Call, id: &str) -> Result<Response, Refusal> {
    status(facade, call, Way::Id(id)).await
}

async fn status(facade: &Facade, call: Call, way: Way<'_>) -> Result<Response, Refusal> {
    let payment = find(facade, &call, way).await?;
    let words = Words(pages::language(&call));
    let live = pages::Live::of(&payment, words, shows_all(&call, way, &payment));
    let mut response = answer::json(StatusCode::OK, &live);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

pub(super) async fn events_by_slug(facade: &Facade, call: Call, slug: &str) -> Result<Response, Refusal> {
    events(facade, call, Way::Slug(slug)).await
}

pub(super) async fn events_by_id(facade: &Facade, call: Call, id: &str) -> Result<Response, Refusal> {
    events(facade, call, Way::Id(id)).await
}

/// Streams the live status until the session is finished, or we stop.
async fn events(facade: &Facade, call: Call, way: Way<'_>) -> Result<Response, Refusal> {
    let permit = call.stream(&facade.edge)?;
    let request = call.caller.request(way.request());
    let snapshots = facade.engine.checkout().watch_checkout(request).await?.into_inner();
    // An engine that goes away ends the stream; the page's browser comes back by itself.
    let (whole, words) = (matches!(way, Way::Slug(_)), Words(pages::language(&call)));
    let snapshots = snapshots.take_while(|snapshot| std::future::ready(snapshot.is_ok()));
    let snapshots = snapshots.take_until(Box::pin(facade.closed()));
    let events = snapshots.filter_map(move |snapshot| async move {
        let payment = snapshot.ok()?;
        let event = warp::sse::Event::default()
            .event("status")
            .id(payment.sequence.to_string())
            .retry(Duration::from_secs(3))
            .json_data(pages::Live::of(&payment, words, whole || is_open(&payment)));
        event.ok().map(Ok::<_, std::convert::Infallible>)
    });
    let events = Shared::new(events, permit);
    let stream = warp::sse::keep_alive().interval(Duration::from_secs(15)).stream(events);
    let mut response = warp::sse::reply(stream).into_response();
    answer::streams(&mut response);
    Ok(response)
}

/// A stream that threads may pass around. It is only ever polled through `&mut`, so the lock is never taken.
pub(super) struct Shared<S> {
    events: std::sync::Mutex<Pin<Box<S>>>,
    _permit: Option<StreamPermit>,
}

impl<S> Shared<S> {
    /// The stream keeps its place among the open ones until it goes.
    pub(super) fn new(stream: S, permit: Option<StreamPermit>) -> Self {
        Self { events: std::sync::Mutex::new(Box::pin(stream)), _permit: permit }
    }
}

impl<S: Stream> Stream for Shared<S> {
    type Item = S::Item;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.events.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner).as_mut().poll_next(cx)
    }
}

pub(super) async fn cancel_by_slug(facade: &Facade, call: Call, slug: &str) -> Result<Response, Refusal> {
    cancel(facade, call, Way::Slug(slug)).await
}

/// Cancels by id: the id is public, so the page's token must come with it.
pub(super) async fn cancel_by_id(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    let form = call.form().await?;
    let query = call.query();
    let shown = form.get("token").or_else(|| query.get("t")).unwrap_or_default();
    let payment = find(facade, &call, Way::Id(id)).await?;
    if !is_token(&payment, shown) {
        return Err(Reason::InvalidFormToken.into());
    }
    cancel(facade, call, Way::Id(id)).await
}

async fn cancel(facade: &Facade, call: Call, way: Way<'_>) -> Result<Response, Refusal> {
    let cancelled = facade.engine.checkout().cancel_checkout(call.caller.request(way.request())).await;
    let cancelled = cancelled.map(tonic::Response::into_inner).map_err(ApiError::from);
    if is_program(&call) {
        return Ok(answer::json(StatusCode::OK, &record::Payment::of(facade, &cancelled?)));
    }
    match cancelled {
        Ok(payment) => Ok(pages::see_other(&view(facade, &call, way, &payment, true).reload_path())),
        Err(refused) => {
            let payment = find(facade, &call, way).await?;
            let view = view(facade, &call, way, &payment, true);
            let notice = match refused.reason {
                Reason::PaymentNotPending
                | Reason::PaymentDetected
                | Reason::PaymentInFlight
                | Reason::PaymentExpired => view.look.words().cannot_cancel(),
                _ => &refused.message,
            };
            Ok(pages::checkout(error::status(&refused), &view, Some(notice)))
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
