//! A merchant's webhooks: endpoints and their health, deliveries, redelivery and replay.

use actors::{EndpointState, Replayed, Sent};
use engine::{
    fields::Violation,
    ids::{DeliveryId, EndpointId, EventId, MerchantId, PaymentId},
    merchant::Scope,
    payment::State,
    webhook::{
        Attempt, DeliveryRecord, DeliveryState, EndpointDraft, EndpointUpdate, EventType, Outcome, RawEndpointUpdate,
        Trigger,
    },
};
use futures_util::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use proto::{
    ApiError, Reason, RecordResponse,
    caller::IDEMPOTENT_REPLAYED,
    record_response,
    v1::{self, webhook_service_server::WebhookService},
};
use storage::DeliveryQuery;
use tonic::{Request, Response, Status, metadata::MetadataValue};

use super::{
    Service,
    convert::{self, error, timestamp},
    enums,
    merchants::grace,
    page::{Filters, invalid_token, page_size},
    payments::idempotency_key,
};

/// Deliveries that an export reads per page.
const EXPORT_PAGE_SIZE: usize = 200;

/// Reads the id of a delivery.
///
/// # Errors
/// `NOT_FOUND` if it is not an id.
fn delivery_id(text: &str) -> Result<DeliveryId, ApiError> {
    text.parse().map_err(|_| ApiError::with_message(Reason::NotFound, "no such delivery"))
}

/// Reads the id of an endpoint; none is the default endpoint.
///
/// # Errors
/// `NOT_FOUND` if it is not an id.
fn endpoint_id(merchant: MerchantId, text: Option<&str>) -> Result<EndpointId, ApiError> {
    let Some(text) = text else { return Ok(EndpointId::default_of(merchant)) };
    text.parse().map_err(|_| ApiError::with_message(Reason::NotFound, "no such webhook endpoint"))
}

/// Reads the id of an additional endpoint: the default one is part of the merchant.
///
/// # Errors
/// `NOT_FOUND` if it is not an id; `INVALID_ARGUMENT` for the default endpoint.
fn additional_id(merchant: MerchantId, text: &str) -> Result<EndpointId, ApiError> {
    let id = endpoint_id(merchant, Some(text))?;
    if id == EndpointId::default_of(merchant) {
        let message = "is the default endpoint, which is changed by `webhookUrl` and `webhookEvents` of the merchant";
        return Err(ApiError::field("endpointId", message));
    }
    Ok(id)
}

fn invalid(violations: Vec<Violation>) -> ApiError {
    error(actors::EngineError::Invalid(violations))
}

#[tonic::async_trait]
impl WebhookService for Service {
    async fn list_webhook_endpoints(
        &self,
        request: Request<v1::ListWebhookEndpointsRequest>,
    ) -> Result<Response<v1::ListWebhookEndpointsResponse>, Status> {
        let (merchant, _) = self.target_merchant(&request, &request.get_ref().merchant_id, Scope::PaymentsRead).await?;
        let states = self.engine.webhooks.endpoints(merchant.id).await.map_err(error)?;
        let endpoints = states.into_iter().map(endpoint).collect();
        Ok(Response::new(v1::ListWebhookEndpointsResponse { endpoints }))
    }

    async fn create_webhook_endpoint(
        &self,
        request: Request<v1::CreateWebhookEndpointRequest>,
    ) -> Result<Response<v1::CreateWebhookEndpointResponse>, Status> {
        let (merchant, principal) =
            self.target_merchant(&request, &request.get_ref().merchant_id, Scope::MerchantWrite).await?;
        let message = request.get_ref();
        let events = enums::names(&message.events, v1::EventType::rest_name);
        let allow_insecure = self.engine.webhooks.allows_insecure();
        let draft = EndpointDraft::check(&message.url, &message.description, &events, allow_insecure);
        let draft = draft.map_err(invalid)?;
        let (id, secret) = principal.engine.merchants.create_endpoint(merchant.id, draft).await.map_err(error)?;
        let state = self.engine.webhooks.endpoint(merchant.id, id).await.map_err(error)?;
        let webhook_secret = secret.reveal().to_owned();
        Ok(Response::new(v1::CreateWebhookEndpointResponse { endpoint: Some(endpoint(state)), webhook_secret }))
    }

    async fn update_webhook_endpoint(
        &self,
        request: Request<v1::UpdateWebhookEndpointRequest>,
    ) -> Result<Response<v1::UpdateWebhookEndpointResponse>, Status> {
        let (merchant, principal) =
            self.target_merchant(&request, &request.get_ref().merchant_id, Scope::MerchantWrite).await?;
        let message = request.into_inner();
        let id = additional_id(merchant.id, &message.endpoint_id)?;
        let raw = RawEndpointUpdate {
            url: message.url,
            description: message.description,
            events: message.events.map(|events| enums::names(&events.types, v1::EventType::rest_name)),
            is_enabled: message.enabled,
        };
        let update = EndpointUpdate::check(raw, self.engine.webhooks.allows_insecure()).map_err(invalid)?;
        principal.engine.merchants.update_endpoint(merchant.id, id, update).await.map_err(error)?;
        let state = self.engine.webhooks.endpoint(merchant.id, id).await.map_err(error)?;
        Ok(record_response(endpoint(state)))
    }

    async fn delete_webhook_endpoint(
        &self,
        request: Request<v1::DeleteWebhookEndpointRequest>,
    ) -> Result<Response<v1::DeleteWebhookEndpointResponse>, Status> {
        let (merchant, principal) =
            self.target_merchant(&request, &request.get_ref().merchant_id, Scope::MerchantWrite).await?;
        let id = additional_id(merchant.id, &request.get_ref().endpoint_id)?;
        principal.engine.merchants.delete_endpoint(merchant.id, id).await.map_err(error)?;
        let states = self.engine.webhooks.endpoints(merchant.id).await.map_err(error)?;
        let endpoints = states.into_iter().map(endpoint).collect();
        Ok(Response::new(v1::DeleteWebhookEndpointResponse { endpoints }))
    }

    async fn rotate_webhook_endpoint_secret(
        &self,
        request: Request<v1::RotateWebhookEndpointSecretRequest>,
    ) -> Result<Response<v1::RotateWebhookEndpointSecretResponse>, Status> {
        let (merchant, principal) =
            self.target_merchant(&request, &request.get_ref().merchant_id, Scope::MerchantWrite).await?;
        let id = endpoint_id(merchant.id, Some(&request.get_ref().endpoint_id))?;
        let grace = grace(request.get_ref().grace_hours)?;
        let rotated = principal.engine.merchants.rotate_endpoint_secret(merchant.id, id, grace).await;
        let (secret, until) = rotated.map_err(error)?;
        Ok(Response::new(v1::RotateWebhookEndpointSecretResponse {
            webhook_secret: secret.reveal().to_owned(),
            previous_valid_until: until.map(timestamp),
        }))
    }

    async fn get_webhook_endpoint(
        &self,
        request: Request<v1::GetWebhookEndpointRequest>,
    ) -> Result<Response<v1::GetWebhookEndpointResponse>, Status> {
        let (merchant, _) = self.target_merchant(&request, &request.get_ref().merchant_id, Scope::PaymentsRead).await?;
        let id = endpoint_id(merchant.id, request.get_ref().endpoint_id.as_deref())?;
        let state = self.engine.webhooks.endpoint(merchant.id, id).await.map_err(error)?;
        Ok(record_response(endpoint(state)))
    }

    async fn enable_webhook_endpoint(
        &self,
        request: Request<v1::EnableWebhookEndpointRequest>,
    ) -> Result<Response<v1::EnableWebhookEndpointResponse>, Status> {
        let (merchant, principal) =
            self.target_merchant(&request, &request.get_ref().merchant_id, Scope::MerchantWrite).await?;
        let since = request.get_ref().replay_since;
        let since = since.map(|since| convert::instant("replaySince", since)).transpose()?;
        // Checked first, so that a refused call does not enable the endpoint.
        since.map(|since| principal.engine.webhooks.check_replay("replaySince", since)).transpose().map_err(error)?;
        let id = endpoint_id(merchant.id, request.get_ref().endpoint_id.as_deref())?;
        let state = principal.engine.webhooks.enable_endpoint(merchant.id, id).await.map_err(error)?;
        let replayed = match since {
            Some(since) => {
                Some(replay(principal.engine.webhooks.replay(merchant.id, Some(id), since).await.map_err(error)?))
            }
            None => None,
        };
        Ok(Response::new(v1::EnableWebhookEndpointResponse { endpoint: Some(endpoint(state)), replayed }))
    }

    async fn replay_webhooks(
        &self,
        request: Request<v1::ReplayWebhooksRequest>,
    ) -> Result<Response<v1::ReplayWebhooksResponse>, Status> {
        let (merchant, principal) =
            self.target_merchant(&request, &request.get_ref().merchant_id, Scope::MerchantWrite).await?;
        let since = convert::required("since", request.get_ref().since)?;
        let since = convert::instant("since", since)?;
        let only = request.get_ref().endpoint_id.as_deref();
        let only = only.map(|text| endpoint_id(merchant.id, Some(text))).transpose()?;
        let replayed = principal.engine.webhooks.replay(merchant.id, only, since).await.map_err(error)?;
        Ok(Response::new(replay(replayed)))
    }

    async fn send_test_webhook(
        &self,
        request: Request<v1::SendTestWebhookRequest>,
    ) -> Result<Response<v1::SendTestWebhookResponse>, Status> {
        let (merchant, principal) =
            self.target_merchant(&request, &request.get_ref().merchant_id, Scope::MerchantWrite).await?;
        let key = idempotency_key(&request)?;
        let event = test_event(request.get_ref())?;
        let to = endpoint_id(merchant.id, request.get_ref().endpoint_id.as_deref())?;
        let sent = principal.engine.webhooks.send_test(merchant.id, to, event, key.as_ref()).await.map_err(error)?;
        Ok(delivery_response(sent))
    }

    async fn list_webhook_deliveries(
        &self,
        request: Request<v1::ListWebhookDeliveriesRequest>,
    ) -> Result<Response<v1::ListWebhookDeliveriesResponse>, Status> {
        let (merchant, _) = self.target_merchant(&request, &request.get_ref().merchant_id, Scope::PaymentsRead).await?;
        let message = request.into_inner();
        let limit = page_size(message.page_size)?;
        let mut filters =
            v1::ListWebhookDeliveriesRequest { page_size: 0, page_token: String::new(), ..message.clone() };
        filters.states.sort_unstable();
        let filters = Filters::of(&filters);
        let filter = v1::ExportWebhookDeliveriesRequest {
            merchant_id: message.merchant_id,
            states: message.states,
            event_id: message.event_id,
            payment_id: message.payment_id,
            endpoint_id: message.endpoint_id,
        };
        let before = match filters.read(&message.page_token)? {
            "" => None,
            token => Some(token.parse::<DeliveryId>().map_err(|_| invalid_token())?),
        };
        let query = DeliveryQuery { before, ..delivery_query(merchant.id, filter, limit as usize)? };
        let page = self.engine.webhooks.deliveries(query).await.map_err(error)?;
        let next_page_token = page.next.map(|last| DeliveryId::from_bits(last).to_string()).unwrap_or_default();
        let next_page_token = filters.token(next_page_token);
        let deliveries = page.items.into_iter().map(delivery).collect();
        Ok(Response::new(v1::ListWebhookDeliveriesResponse { deliveries, next_page_token }))
    }

    async fn get_webhook_delivery(
        &self,
        request: Request<v1::GetWebhookDeliveryRequest>,
    ) -> Result<Response<v1::GetWebhookDeliveryResponse>, Status> {
        let (merchant, _) = self.target_merchant(&request, &request.get_ref().merchant_id, Scope::PaymentsRead).await?;
        let id = delivery_id(&request.get_ref().delivery_id)?;
        let (logged, attempts) = self.engine.webhooks.delivery(merchant.id, id).await.map_err(error)?;
        let request_body = self.engine.webhooks.delivery_body(&logged.delivery).await.map_err(error)?;
        let request_body = request_body.map(Into::into);
        let attempt_log = attempts.into_iter().map(attempt).collect();
        Ok(record_response(v1::WebhookDelivery { attempt_log, request_body, ..delivery(logged) }))
    }

    async fn redeliver_webhook(
        &self,
        request: Request<v1::RedeliverWebhookRequest>,
    ) -> Result<Response<v1::RedeliverWebhookResponse>, Status> {
        let (merchant, principal) =
            self.target_merchant(&request, &request.get_ref().merchant_id, Scope::MerchantWrite).await?;
        let id = delivery_id(&request.get_ref().delivery_id)?;
        let key = idempotency_key(&request)?;
        let sent = principal.engine.webhooks.redeliver(merchant.id, id, key.as_ref()).await.map_err(error)?;
        Ok(delivery_response(sent))
    }
}

/// Reads the type and the payment status of a test event. Only events of payments have a status.
fn test_event(message: &v1::SendTestWebhookRequest) -> Result<(EventType, State), ApiError> {
    let unknown =
        || ApiError::field("type", format!("must be one of {}", EventType::ALL.map(EventType::as_str).join(", ")));
    let kind = match message.r#type {
        None => EventType::StatusChanged,
        Some(_) => message.r#type().rest_name().and_then(EventType::parse).ok_or_else(unknown)?,
    };
    let status = match message.status {
        None => return Ok((kind, State::Completed)),
        Some(_) if !kind.is_payment_event() => {
            return Err(ApiError::field("status", format!("is not allowed: {} has no status", kind.as_str())));
        }
        Some(status) => {
            let unknown = |_| ApiError::field("status", "must be one of the six payment states");
            convert::read_state(status).map_err(unknown)?
        }
    };
    if kind == EventType::StatusChanged && status == State::Pending {
        return Err(ApiError::field("status", "cannot be pending: no payment changes to that status"));
    }
    Ok((kind, status))
}

/// Returns a response with a delivery; a repeated request is marked with [`IDEMPOTENT_REPLAYED`].
fn delivery_response<R: RecordResponse<Record = v1::WebhookDelivery>>(sent: Sent) -> Response<R> {
    let mut response = record_response(delivery(sent.logged));
    if sent.is_replay {
        response.metadata_mut().insert(IDEMPOTENT_REPLAYED, MetadataValue::from_static("true"));
    }
    response
}

fn delivery_query(
    merchant: MerchantId,
    message: v1::ExportWebhookDeliveriesRequest,
    limit: usize,
) -> Result<DeliveryQuery, ApiError> {
    let event = message.event_id.map(|event| event.parse::<EventId>()).transpose();
    let payment = message.payment_id.map(|payment| payment.parse::<PaymentId>()).transpose();
    let endpoint = message.endpoint_id.map(|endpoint| endpoint.parse::<EndpointId>()).transpose();
    Ok(DeliveryQuery {
        merchant,
        before: None,
        limit,
        states: message.states.into_iter().map(read_state).collect::<Result<_, _>>()?,
        payment: payment.map_err(|error| ApiError::field("paymentId", error.to_string()))?,
        event: event.map_err(|error| ApiError::field("eventId", error.to_string()))?,
        endpoint: endpoint.map_err(|error| ApiError::field("endpointId", error.to_string()))?,
    })
}

impl Service {
    /// Streams all deliveries that match a filter, newest first, read page by page.
    pub(super) async fn exported_deliveries(
        &self,
        request: Request<v1::ExportWebhookDeliveriesRequest>,
    ) -> Result<BoxStream<'static, Result<v1::ExportWebhookDeliveriesResponse, Status>>, Status> {
        let (merchant, _) = self.target_merchant(&request, &request.get_ref().merchant_id, Scope::PaymentsRead).await?;
        let first = delivery_query(merchant.id, request.into_inner(), EXPORT_PAGE_SIZE)?;
        let engine = self.engine.clone();
        let chunks = stream::try_unfold(Some(first), move |query| {
            let engine = engine.clone();
            async move {
                let Some(query) = query else { return Ok::<_, Status>(None) };
                let page = engine.webhooks.deliveries(query.clone()).await.map_err(error)?;
                let next = page.next.map(|last| DeliveryQuery { before: Some(DeliveryId::from_bits(last)), ..query });
                Ok(Some((
                    stream::iter(
                        page.items.into_iter().map(|logged| Ok(RecordResponse::from_record(delivery(logged)))),
                    ),
                    next,
                )))
            }
        });
        Ok(chunks.try_flatten().boxed())
    }
}

fn endpoint(state: EndpointState) -> v1::WebhookEndpoint {
    let health = state.health;
    let disabled_reason: i32 = match (health.disabled, state.is_enabled) {
        (_, false) => v1::WebhookDisabledReason::Merchant.into(),
        (Some((reason, _)), true) => enums::disabled(reason).into(),
        (None, true) => 0,
    };
    v1::WebhookEndpoint {
        id: state.id.to_string(),
        merchant_id: state.merchant.to_string(),
        description: state.description,
        events: state.events.into_iter().map(|kind| enums::event_type(kind).into()).collect(),
        created_at: Some(timestamp(state.created_at)),
        enabled: state.url.is_some() && state.is_enabled && health.is_enabled(),
        url: state.url,
        disabled_reason,
        disabled_at: health.disabled.map(|(_, at)| timestamp(at)),
        failing_since: health.failing_since.map(timestamp),
        failed_attempts: health.failed_attempts,
        warning: state.warning.map_or(0, |warning| enums::warning(warning).into()),
        breaker_open: health.is_breaker_open(),
        last_success_at: health.last_success_at.map(timestamp),
        last_failure_at: health.last_failure_at.map(timestamp),
    }
}

fn replay(replayed: Replayed) -> v1::ReplayWebhooksResponse {
    let count = u32::try_from(replayed.count).unwrap_or(u32::MAX);
    v1::ReplayWebhooksResponse { replayed: count, has_more: replayed.has_more }
}

fn delivery(logged: DeliveryRecord) -> v1::WebhookDelivery {
    let (delivery, last) = (logged.delivery, logged.last);
    let is_pending = logged.state == DeliveryState::Pending;
    v1::WebhookDelivery {
        id: delivery.id.to_string(),
        event_id: delivery.event.to_string(),
        merchant_id: delivery.merchant.to_string(),
        endpoint_id: delivery.endpoint.to_string(),
        trigger: trigger(delivery.trigger).into(),
        state: state(logged.state).into(),
        attempts: delivery.attempts,
        created_at: Some(timestamp(delivery.id.created_at())),
        next_attempt_at: is_pending.then(|| timestamp(delivery.due_at)),
        last_outcome: last.map_or(0, |(outcome, _)| enums::attempt(outcome).into()),
        last_http_status: last.and_then(|(outcome, _)| status(outcome)),
        last_attempt_at: last.map(|(_, at)| timestamp(at)),
        attempt_log: Vec::new(),
        request_body: None,
    }
}

fn attempt(attempt: Attempt) -> v1::WebhookAttempt {
    v1::WebhookAttempt {
        number: attempt.number,
        trigger: trigger(attempt.trigger).into(),
        url: attempt.endpoint,
        scheduled_at: Some(timestamp(attempt.scheduled_at)),
        started_at: Some(timestamp(attempt.started_at)),
        ended_at: Some(timestamp(attempt.ended_at)),
        duration_ms: attempt.duration_ms,
        outcome: enums::attempt(attempt.outcome).into(),
        http_status: status(attempt.outcome),
        response_snippet: attempt.response_snippet,
        next_attempt_at: attempt.next_attempt_at.map(timestamp),
        body_sha256: hex::encode(attempt.body_sha256),
        request_headers: attempt
            .request_headers
            .into_iter()
            .map(|(name, value)| v1::WebhookHeader { name, value })
            .collect(),
    }
}

fn status(outcome: Outcome) -> Option<u32> {
    outcome.status().map(u32::from)
}

const fn trigger(trigger: Trigger) -> v1::WebhookTrigger {
    match trigger {
        Trigger::Auto => v1::WebhookTrigger::Auto,
        Trigger::Manual => v1::WebhookTrigger::Manual,
        Trigger::Test => v1::WebhookTrigger::Test,
    }
}

const fn state(state: DeliveryState) -> v1::WebhookDeliveryState {
    match state {
        DeliveryState::Pending => v1::WebhookDeliveryState::Pending,
        DeliveryState::Held => v1::WebhookDeliveryState::Held,
        DeliveryState::Delivered => v1::WebhookDeliveryState::Delivered,
        DeliveryState::Failed => v1::WebhookDeliveryState::Failed,
    }
}

fn read_state(number: i32) -> Result<DeliveryState, ApiError> {
    let unknown = || ApiError::field("states", "must be pending, held, delivered or failed");
    let wanted = v1::WebhookDeliveryState::try_from(number).map_err(|_| unknown())?;
    DeliveryState::ALL.into_iter().find(|known| state(*known) == wanted).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_and_triggers_have_the_names_of_the_engine() {
        for known in DeliveryState::ALL {
            let message = state(known);
            assert_eq!(read_state(message.into()).ok(), Some(known));
            assert_eq!(message.as_str_name().to_lowercase(), format!("webhook_delivery_state_{}", known.as_str()));
        }
        for known in Trigger::ALL {
            assert_eq!(trigger(known).as_str_name().to_lowercase(), format!("webhook_trigger_{}", known.as_str()));
        }
        assert!(read_state(0).is_err() && read_state(9).is_err());
    }
}
