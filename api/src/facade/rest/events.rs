//! The events of a merchant: a list that is read from a cursor, and a live stream.

use std::{convert::Infallible, time::Duration};

use futures_util::StreamExt;
use http::StatusCode;
use proto::{ApiError, v1};
use serde::Serialize;
use serde_json::value::RawValue;
use warp::{
    reply::{Reply, Response},
    sse,
};

use crate::facade::http::{
    call::Call,
    refusal::Refusal,
    response,
    state::Facade,
    stream::{Shared, resumed},
};

/// Interval of comments that keep an idle stream open.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Time that clients wait before they reconnect.
const RETRY: Duration = Duration::from_secs(3);
/// The header with the last event id, which clients send when they reconnect.
const LAST_EVENT_ID: &str = "last-event-id";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    /// The bodies of the webhooks, as sent.
    events: Vec<&'a RawValue>,
    next_cursor: &'a str,
    has_more: bool,
}

/// Returns the events after `after`, oldest first.
pub(crate) async fn list(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut query = call.query();
    let request = v1::ListEventsRequest {
        page_token: query.get("after").unwrap_or_default().to_owned(),
        page_size: query.limit(),
    };
    query.finish()?;
    let list = facade.engine.events().list_events(call.caller.request(request)).await?.into_inner();
    let events = list.events.iter().map(|event| serde_json::from_slice(&event.body)).collect::<Result<_, _>>();
    let events = events.map_err(|_| ApiError::new(proto::Reason::Internal))?;
    let body = List { events, next_cursor: &list.next_page_token, has_more: list.has_more };
    Ok(response::json(StatusCode::OK, &body))
}

/// Returns an event: the body of its webhook.
pub(crate) async fn get(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    let request = call.with_key()?.request(v1::GetEventRequest { event_id: id.to_owned() });
    let found = facade.engine.events().get_event(request).await?.into_inner();
    Ok(response::bytes(StatusCode::OK, found.event.unwrap_or_default().body.into()))
}

/// Streams events as they happen: after `Last-Event-ID`, after `after`, or from now on. If the engine stops, the stream
/// continues at another one. It ends when the facade stops; a client that reconnects with the last id misses no event.
pub(crate) async fn stream(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    call.with_key()?;
    let last = call.headers().get(LAST_EVENT_ID).map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned());
    let query = call.query();
    let after = last.filter(|id| !id.is_empty()).or_else(|| query.get("after").map(str::to_owned));
    query.finish()?;
    let permit = call.stream(&facade.edge)?;
    let (engine, caller) = (facade.engine.clone(), call.caller.clone());
    let watch = move |after: Option<String>| {
        let (engine, request) = (engine.clone(), caller.request(v1::WatchEventsRequest { page_token: after }));
        async move { engine.events().watch_events(request).await }
    };
    let first = watch(after.clone()).await?.into_inner();
    // Every watch begins with its start cursor, which a client needs only once.
    let (mut is_started, advance) = (false, |update: &v1::WatchEventsResponse, last: &mut Option<String>| {
        *last = Some(update.next_page_token.clone());
    });
    let updates = resumed(first, after, advance, watch).filter(move |update| {
        let is_new = update.event.is_some() || !is_started;
        is_started = true;
        std::future::ready(is_new)
    });
    let updates = updates.take_until(Box::pin(facade.closed()));
    let events = updates.map(|update| Ok::<_, Infallible>(sse_event(update)));
    let stream = sse::keep_alive().interval(HEARTBEAT).stream(Shared::new(events, permit));
    let mut response = sse::reply(stream).into_response();
    response::streams(&mut response);
    Ok(response)
}

fn sse_event(update: v1::WatchEventsResponse) -> sse::Event {
    let sse = sse::Event::default().id(update.next_page_token);
    match update.event {
        None => sse.event("ready").retry(RETRY).data("{}"),
        Some(event) => {
            sse.event(event.r#type().rest_name().unwrap_or_default()).data(String::from_utf8_lossy(&event.body))
        }
    }
}
