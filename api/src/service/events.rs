//! A merchant's events: the list, and the stream of what happens.

use engine::{
    ids::{EventId, MerchantId},
    merchant::Scope,
};
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use proto::{
    ApiError, Reason,
    v1::{self, events_server::Events},
};
use storage::EventRecord;
use tonic::{Request, Response, Status};

use super::{
    Service,
    convert::{self, error},
    payments::page_of,
};

type Updates = BoxStream<'static, Result<v1::WatchEventsResponse, Status>>;

impl Service {
    /// Reads a place in a merchant's list of events: a cursor, or the id of an event.
    async fn place(&self, merchant: MerchantId, text: &str) -> Result<u64, ApiError> {
        let place = match text.parse::<EventId>() {
            Ok(event) => self.gateway.event_place(merchant, event).await.map_err(error)?,
            Err(_) => {
                let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                text.parse().ok().filter(|_| is_number)
            }
        };
        place.ok_or_else(|| {
            ApiError::field("after", "must be the nextCursor of an answer, or the id of an event that is still kept")
        })
    }
}

#[tonic::async_trait]
impl Events for Service {
    async fn list_events(
        &self,
        request: Request<v1::ListEventsRequest>,
    ) -> Result<Response<v1::ListEventsResponse>, Status> {
        let merchant = self.caller(&request, Scope::PaymentsRead).await?;
        let asked = request.into_inner();
        let (_, limit) = page_of(1, asked.limit)?;
        let after = if asked.after.is_empty() { 0 } else { self.place(merchant.id, &asked.after).await? };
        let page = self.gateway.events(merchant.id, after, limit as usize).await.map_err(error)?;
        Ok(Response::new(v1::ListEventsResponse {
            events: page.events.into_iter().map(event).collect(),
            next_cursor: page.next.to_string(),
            has_more: page.has_more,
        }))
    }

    type WatchEventsStream = Updates;

    async fn watch_events(&self, request: Request<v1::WatchEventsRequest>) -> Result<Response<Updates>, Status> {
        let merchant = self.caller(&request, Scope::PaymentsRead).await?;
        let key = proto::caller::api_key(&request).ok_or(ApiError::new(Reason::InvalidApiKey))?.to_owned();
        let after = match &request.get_ref().after {
            Some(after) => Some(self.place(merchant.id, after).await?),
            None => None,
        };
        let watch = self.gateway.watch_events(merchant.id, after).await.map_err(error)?;
        let first = v1::WatchEventsResponse { cursor: watch.position().to_string(), event: None };
        let gateway = self.gateway.clone();
        let service = self.clone();
        let events = stream::try_unfold(watch, move |mut watch| {
            let closed = service.closed();
            let (gateway, key) = (gateway.clone(), key.clone());
            async move {
                tokio::pin!(closed);
                loop {
                    let events = tokio::select! {
                        biased;
                        events = watch.next() => events.map_err(refuse)?,
                        () = &mut closed => {
                            let text = "the engine stops; watch again after the last cursor";
                            return Err(ApiError::with_message(Reason::EngineUnavailable, text).into());
                        }
                    };
                    // A key that was replaced meanwhile opens nothing any more.
                    gateway.authenticate(&key).await.map_err(refuse)?;
                    if !events.is_empty() {
                        return Ok::<_, Status>(Some((events, watch)));
                    }
                }
            }
        });
        let events = events.map_ok(|events| stream::iter(events.into_iter().map(|event| Ok(update(event)))));
        Ok(Response::new(stream::once(async { Ok(first) }).chain(events.try_flatten()).boxed()))
    }
}

fn refuse(refused: actors::GatewayError) -> Status {
    error(refused).into()
}

fn update(record: EventRecord) -> v1::WatchEventsResponse {
    v1::WatchEventsResponse { cursor: record.seq.to_string(), event: Some(event(record)) }
}

fn event(record: EventRecord) -> v1::Event {
    v1::Event {
        id: record.id.to_string(),
        r#type: record.kind.as_str().to_owned(),
        cursor: record.seq,
        payment_id: if record.kind.is_of_payment() { record.payment.to_string() } else { String::new() },
        created_at_ms: convert::millis(record.at),
        body: record.body.into(),
    }
}
