//! A merchant's events, as a list and as a stream.

use actors::{After, EngineError};
use engine::{
    event_list::{Cursor, Epoch},
    ids::EventId,
    merchant::Scope,
};
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use proto::{
    ApiError, Reason,
    v1::{self, event_service_server::EventService},
};
use storage::EventRecord;
use tonic::{Request, Response, Status};

use super::{
    Service,
    convert::{self, error},
    enums,
    payments::page_size,
};

type Updates = BoxStream<'static, Result<v1::WatchEventsResponse, Status>>;

/// Reads a page token of a merchant's list of events: a cursor or the id of an event; empty means the beginning.
fn read_cursor(text: &str) -> Result<After, ApiError> {
    if text.is_empty() {
        return Ok(After::Beginning);
    }
    match text.parse::<EventId>() {
        Ok(event) => Ok(After::Event(event)),
        Err(_) => text.parse().map(After::Cursor).map_err(|_| invalid_cursor()),
    }
}

fn invalid_cursor() -> ApiError {
    ApiError::field(
        "after",
        "must be the nextCursor (gRPC: next_page_token) of a response, or the id of an event within the retention",
    )
}

/// Converts an error of a list after a cursor: an unknown event is an invalid cursor.
fn cursor_error(refused: EngineError) -> ApiError {
    match refused {
        EngineError::EventForgotten => invalid_cursor(),
        refused => error(refused),
    }
}

#[tonic::async_trait]
impl EventService for Service {
    async fn list_events(
        &self,
        request: Request<v1::ListEventsRequest>,
    ) -> Result<Response<v1::ListEventsResponse>, Status> {
        let merchant = self.caller(&request, Scope::PaymentsRead).await?;
        let message = request.into_inner();
        let limit = page_size(message.page_size)?;
        let token = &message.page_token;
        let after = read_cursor(token)?;
        let page = self.engine.webhooks.events(merchant.id, after, limit as usize).await.map_err(cursor_error)?;
        Ok(Response::new(v1::ListEventsResponse {
            events: page.events.into_iter().map(|record| event(record, page.epoch)).collect(),
            next_page_token: page.next.to_string(),
            has_more: page.has_more,
        }))
    }

    async fn get_event(&self, request: Request<v1::GetEventRequest>) -> Result<Response<v1::GetEventResponse>, Status> {
        let merchant = self.caller(&request, Scope::PaymentsRead).await?;
        let unknown = || ApiError::with_message(Reason::NotFound, "no such event within the retention");
        let id = request.get_ref().event_id.parse::<EventId>().map_err(|_| unknown())?;
        let found = self.engine.webhooks.event(merchant.id, id).await;
        let (record, epoch) = found.map_err(|refused| match refused {
            EngineError::EventForgotten => unknown(),
            refused => error(refused),
        })?;
        Ok(Response::new(v1::GetEventResponse { event: Some(event(record, epoch)) }))
    }

    type WatchEventsStream = Updates;

    async fn watch_events(&self, request: Request<v1::WatchEventsRequest>) -> Result<Response<Updates>, Status> {
        let merchant = self.caller(&request, Scope::PaymentsRead).await?;
        let key = proto::caller::api_key(&request).ok_or_else(convert::missing_api_key)?.to_owned();
        let after = request.get_ref().page_token.as_deref().map(read_cursor).transpose()?;
        let watch = self.engine.webhooks.watch_events(merchant.id, after).await.map_err(cursor_error)?;
        let epoch = watch.position().epoch;
        let first = v1::WatchEventsResponse { next_page_token: watch.position().to_string(), event: None };
        let engine = self.engine.clone();
        let service = self.clone();
        let events = stream::try_unfold(watch, move |mut watch| {
            let closed = service.closed();
            let (engine, key) = (engine.clone(), key.clone());
            async move {
                tokio::pin!(closed);
                loop {
                    let events = tokio::select! {
                        biased;
                        events = watch.next() => events.map_err(status)?,
                        () = &mut closed => {
                            let text = "the engine is shutting down; watch again after the last cursor";
                            return Err(ApiError::with_message(Reason::EngineUnavailable, text).into());
                        }
                    };
                    // The key may have been revoked since the stream started.
                    engine.merchants.authenticate(&key).await.map_err(status)?;
                    if !events.is_empty() {
                        return Ok::<_, Status>(Some((events, watch)));
                    }
                }
            }
        });
        let events =
            events.map_ok(move |events| stream::iter(events.into_iter().map(move |event| Ok(update(event, epoch)))));
        Ok(Response::new(stream::once(async { Ok(first) }).chain(events.try_flatten()).boxed()))
    }
}

fn status(refused: EngineError) -> Status {
    error(refused).into()
}

fn update(record: EventRecord, epoch: Epoch) -> v1::WatchEventsResponse {
    let event = event(record, epoch);
    v1::WatchEventsResponse { next_page_token: event.cursor.clone(), event: Some(event) }
}

fn event(record: EventRecord, epoch: Epoch) -> v1::Event {
    v1::Event {
        id: record.id.to_string(),
        r#type: enums::event_type(record.kind).into(),
        cursor: Cursor { epoch, seq: record.seq }.to_string(),
        payment_id: if record.kind.is_payment_event() { record.payment.to_string() } else { String::new() },
        created_at: Some(convert::timestamp(record.at)),
        body: record.body.into(),
    }
}
