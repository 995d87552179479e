//! Webhook endpoints of merchants: health, deliveries, replay and redelivery.

use std::{sync::Arc, time::Duration};

use engine::{
    fields::Violation,
    idempotency::{IdempotencyKey, IdempotencyRecord, Resource, redelivery_fingerprint, test_fingerprint},
    ids::{DeliveryId, EndpointId, MerchantId, PaymentId},
    merchant::Merchant,
    payment::State,
    time::Timestamp,
    webhook::{self, Attempt, Delivery, DeliveryRecord, EndpointHealth, EventType, Trigger, Warning},
};
use storage::{Batch, CommitError, DeliveryQuery, EventRecord, Page, Write};

use crate::{error::EngineError, webhooks::handle::Webhooks};

/// Maximum age of replayed events.
const MAX_REPLAY: Duration = Duration::from_secs(30 * 86_400);
/// Deliveries replayed in one commit, and commits of one replay.
const REPLAYED_AT_ONCE: usize = 500;
const REPLAY_COMMITS: usize = 20;

/// A webhook endpoint with its health.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointState {
    /// The id.
    pub id: EndpointId,
    /// The merchant.
    pub merchant: MerchantId,
    /// The URL; `None` for the default endpoint of a merchant without a `webhookUrl`.
    pub url: Option<String>,
    /// What it is for, for people; may be empty.
    pub description: String,
    /// The event types that it receives.
    pub events: Vec<EventType>,
    /// Whether the merchant has not disabled it. Health disables an endpoint independently.
    pub is_enabled: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// The health, derived from the attempts.
    pub health: EndpointHealth,
    /// The warning before the endpoint is disabled.
    pub warning: Option<Warning>,
}

/// The result of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replayed {
    /// Deliveries that were put back into the outbox.
    pub count: usize,
    /// Whether there are more than one call replays; repeat the call to continue.
    pub has_more: bool,
}

/// A requested delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The delivery.
    pub logged: DeliveryRecord,
    /// Whether an earlier request with the same idempotency key created it, so that nothing more is sent.
    pub is_replay: bool,
}

impl Webhooks {
    /// Returns an endpoint of a merchant with its health.
    ///
    /// # Errors
    /// [`EngineError::MerchantNotFound`]; [`EngineError::EndpointNotFound`]; store errors.
    pub async fn endpoint(&self, merchant: MerchantId, id: EndpointId) -> Result<EndpointState, EngineError> {
        let merchant = self.access.merchant(merchant).await?;
        self.state(&merchant, id).await
    }

    /// Returns every endpoint of a merchant with its health, the default one first.
    ///
    /// # Errors
    /// [`EngineError::MerchantNotFound`]; store errors.
    pub async fn endpoints(&self, merchant: MerchantId) -> Result<Vec<EndpointState>, EngineError> {
        let merchant = self.access.merchant(merchant).await?;
        let mut states = vec![self.state(&merchant, EndpointId::default_of(merchant.id)).await?];
        for endpoint in &merchant.endpoints {
            states.push(self.state(&merchant, endpoint.id).await?);
        }
        Ok(states)
    }

    async fn state(&self, merchant: &Merchant, id: EndpointId) -> Result<EndpointState, EngineError> {
        let target = merchant.target(id).ok_or(EngineError::EndpointNotFound)?;
        let health = self.access.context.env.store.endpoint(id).await.map_err(|e| self.access.read_failed(&e))?;
        let own = merchant.endpoints.iter().find(|endpoint| endpoint.id == id);
        let events = |kind: &EventType| match own {
            Some(endpoint) => endpoint.events.has(*kind),
            None => merchant.webhook_events.has(*kind),
        };
        Ok(EndpointState {
            id,
            merchant: merchant.id,
            url: target.url.map(str::to_owned),
            description: own.map_or_else(String::new, |endpoint| endpoint.description.clone()),
            events: EventType::ALL.into_iter().filter(events).collect(),
            is_enabled: target.is_enabled,
            created_at: own.map_or(merchant.created_at, |endpoint| endpoint.created_at),
            warning: health.warning(self.access.now()),
            health,
        })
    }

    /// Enables an endpoint that its health disabled. Events since then are held until they are replayed. The health of an
    /// enabled endpoint does not change.
    ///
    /// # Errors
    /// [`EngineError::NoEndpoint`]; [`EngineError::EndpointNotFound`]; store errors.
    pub async fn enable_endpoint(&self, merchant: MerchantId, id: EndpointId) -> Result<EndpointState, EngineError> {
        self.with_url(merchant, id).await?;
        let audit = self.access.audit_event("webhook_enabled", merchant, Some(subject(merchant, id)), Vec::new());
        let mut batch = Batch::of(audit);
        // Clearing the health of an endpoint that fails would hide the failures and close its circuit breaker.
        if !self.endpoint(merchant, id).await?.health.is_enabled() {
            batch = batch.and(Write::EnableEndpoint { merchant, endpoint: id });
        }
        self.access.commit(batch).await?;
        self.notifier.outbox_changed();
        self.endpoint(merchant, id).await
    }

    /// Validates the start time of a replay; `field` is its name in the caller's request.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] for a time that is not within the last 30 days.
    pub fn check_replay(&self, field: &'static str, since: Timestamp) -> Result<(), EngineError> {
        let now = self.access.now();
        if since > now || now.since(since) > MAX_REPLAY {
            let violation = Violation::new(field, "must be a time within the last 30 days");
            return Err(EngineError::Invalid(vec![violation]));
        }
        Ok(())
    }

    /// Puts every undelivered event since `since` back into the outbox, with a new schedule: those of one endpoint, or of
    /// all endpoints.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] for a time that is not within the last 30 days; [`EngineError::NoEndpoint`];
    /// [`EngineError::EndpointNotFound`]; store errors.
    pub async fn replay(
        &self,
        merchant: MerchantId,
        endpoint: Option<EndpointId>,
        since: Timestamp,
    ) -> Result<Replayed, EngineError> {
        self.check_replay("since", since)?;
        let now = self.access.now();
        let record = match endpoint {
            Some(endpoint) => self.with_url(merchant, endpoint).await?,
            None => self.with_any_url(merchant).await?,
        };
        let store = &self.access.context.env.store;
        // Ids are ordered by time; this one precedes all of its millisecond.
        let mut after = DeliveryId::from_bits(u128::from(since.millis()) << 80);
        let mut replayed = Replayed { count: 0, has_more: false };
        let mut audit =
            Some(self.access.audit_event("webhooks_replayed", merchant, Some(since.to_string()), Vec::new()));
        for _ in 0..REPLAY_COMMITS {
            let mut found =
                store.replayable(merchant, after, REPLAYED_AT_ONCE).await.map_err(|e| self.access.read_failed(&e))?;
            let Some(last) = found.last() else {
                if let Some(audit) = audit {
                    self.access.commit(Batch::of(audit)).await?;
                }
                return Ok(replayed);
            };
            after = last.id;
            // What was for a deleted endpoint is never sent.
            found.retain(|delivery| {
                endpoint.is_none_or(|endpoint| endpoint == delivery.endpoint)
                    && record.target(delivery.endpoint).is_some()
            });
            let count = found.len();
            let replays = found.into_iter().map(|delivery| Write::Replay { delivery, at: now });
            let batch: Batch = replays.chain(audit.take()).collect();
            if !batch.writes.is_empty() {
                self.access.commit(batch).await?;
            }
            replayed.count += count;
            self.notifier.outbox_changed();
        }
        replayed.has_more =
            !store.replayable(merchant, after, 1).await.map_err(|e| self.access.read_failed(&e))?.is_empty();
        Ok(replayed)
    }

    /// Sends a test event to an endpoint; once per idempotency key.
    ///
    /// # Errors
    /// [`EngineError::NoEndpoint`]; [`EngineError::EndpointNotFound`]; [`EngineError::KeyReused`]; store errors.
    pub async fn send_test(
        &self,
        merchant: MerchantId,
        endpoint: EndpointId,
        (kind, status): (EventType, State),
        key: Option<&IdempotencyKey>,
    ) -> Result<Sent, EngineError> {
        self.with_url(merchant, endpoint).await?;
        let (env, at) = (&self.access.context.env, self.access.now());
        let (id, delivery) = (env.entropy.event_id(at), env.entropy.delivery_id(at));
        let payment = PaymentId::new(at, env.entropy.bytes());
        let body = webhook::test_event(id, merchant, payment, (kind, status), at);
        let deliveries = vec![(endpoint, delivery)];
        let event = EventRecord { id, seq: 0, merchant, kind, payment, deliveries, at, body, is_test: true };
        let audit = self.access.audit_event("webhook_tested", merchant, Some(delivery.to_string()), Vec::new());
        let made = Resource::Delivery(delivery);
        let fingerprint = test_fingerprint(endpoint, kind, status);
        let remembered = key.map(|key| IdempotencyRecord {
            merchant,
            key: key.digest("test webhook"),
            fingerprint,
            resource: made,
            at,
        });
        let sent = self.send(Batch::of(Write::Event(event)).and(audit), merchant, delivery, remembered).await?;
        self.notifier.has_event(merchant);
        Ok(sent)
    }

    /// Redelivers an event: a new delivery of the same event, with the same body; once per idempotency key.
    ///
    /// # Errors
    /// [`EngineError::DeliveryNotFound`]; [`EngineError::EventForgotten`]; [`EngineError::NoEndpoint`];
    /// [`EngineError::EndpointNotFound`]; [`EngineError::KeyReused`]; store errors.
    pub async fn redeliver(
        &self,
        merchant: MerchantId,
        id: DeliveryId,
        key: Option<&IdempotencyKey>,
    ) -> Result<Sent, EngineError> {
        let earlier = self.logged(merchant, id).await?.delivery;
        self.with_url(merchant, earlier.endpoint).await?;
        let (env, due_at) = (&self.access.context.env, self.access.now());
        let event = env.store.event(merchant, earlier.event_seq).await.map_err(|e| self.access.read_failed(&e))?;
        if event.is_none() {
            return Err(EngineError::EventForgotten);
        }
        let audit = self.access.audit_event("webhook_redelivered", merchant, Some(id.to_string()), Vec::new());
        let fingerprint = redelivery_fingerprint(id);
        let id = env.entropy.delivery_id(due_at);
        let delivery = Delivery { id, trigger: Trigger::Manual, attempts: 0, schedule_from: 0, due_at, ..earlier };
        let remembered = key.map(|key| IdempotencyRecord {
            merchant,
            key: key.digest("redeliver webhook"),
            fingerprint,
            resource: Resource::Delivery(id),
            at: due_at,
        });
        self.send(Batch::of(Write::Redeliver(delivery)).and(audit), merchant, id, remembered).await
    }

    /// Stores a requested delivery, or returns the earlier one of its idempotency key.
    async fn send(
        &self,
        mut batch: Batch,
        merchant: MerchantId,
        id: DeliveryId,
        remembered: Option<IdempotencyRecord>,
    ) -> Result<Sent, EngineError> {
        if let Some(remembered) = remembered {
            batch = batch.and(Write::Remember { remembered, most: self.access.context.settings.idempotency_keys });
        }
        let (id, is_replay) = match self.access.context.env.store.commit(batch).await {
            Ok(()) => (id, false),
            Err(CommitError::Remembered(earlier)) => match earlier.resource {
                Resource::Delivery(id) if remembered.is_some_and(|new| new.fingerprint == earlier.fingerprint) => {
                    (id, true)
                }
                _ => return Err(EngineError::KeyReused),
            },
            Err(error) => return Err(self.access.commit_failed(error)),
        };
        self.notifier.outbox_changed();
        Ok(Sent { logged: self.logged(merchant, id).await?, is_replay })
    }

    /// Lists a merchant's deliveries, newest first, without a total; a page may be shorter than requested and have a
    /// next one.
    ///
    /// # Errors
    /// Store errors.
    pub async fn deliveries(&self, query: DeliveryQuery) -> Result<Page<DeliveryRecord>, EngineError> {
        self.access.context.env.store.deliveries(query).await.map_err(|e| self.access.read_failed(&e))
    }

    /// Returns the body of a delivery, within the retention of its event.
    ///
    /// # Errors
    /// Store errors.
    pub async fn delivery_body(&self, delivery: &Delivery) -> Result<Option<Vec<u8>>, EngineError> {
        let event = self.access.context.env.store.event(delivery.merchant, delivery.event_seq).await;
        let event = event.map_err(|e| self.access.read_failed(&e))?.filter(|event| event.id == delivery.event);
        Ok(event.map(|event| event.body))
    }

    /// Returns a delivery with all of its attempts.
    ///
    /// # Errors
    /// [`EngineError::DeliveryNotFound`]; store errors.
    pub async fn delivery(
        &self,
        merchant: MerchantId,
        id: DeliveryId,
    ) -> Result<(DeliveryRecord, Vec<Attempt>), EngineError> {
        let logged = self.logged(merchant, id).await?;
        let event = logged.delivery.event;
        let mut attempts =
            self.access.context.env.store.attempts(event).await.map_err(|e| self.access.read_failed(&e))?;
        attempts.retain(|attempt| attempt.delivery == id);
        Ok((logged, attempts))
    }

    async fn logged(&self, merchant: MerchantId, id: DeliveryId) -> Result<DeliveryRecord, EngineError> {
        let found =
            self.access.context.env.store.delivery(merchant, id).await.map_err(|e| self.access.read_failed(&e))?;
        found.ok_or(EngineError::DeliveryNotFound)
    }

    /// Returns a merchant that has an endpoint with a URL.
    async fn with_url(&self, merchant: MerchantId, id: EndpointId) -> Result<Arc<Merchant>, EngineError> {
        let merchant = self.access.merchant(merchant).await?;
        let has_url = merchant.target(id).ok_or(EngineError::EndpointNotFound)?.url.is_some();
        if has_url { Ok(merchant) } else { Err(EngineError::NoEndpoint) }
    }

    /// Returns a merchant that has any endpoint with a URL.
    async fn with_any_url(&self, merchant: MerchantId) -> Result<Arc<Merchant>, EngineError> {
        let merchant = self.access.merchant(merchant).await?;
        let has_one = merchant.webhook_url.is_some() || !merchant.endpoints.is_empty();
        if has_one { Ok(merchant) } else { Err(EngineError::NoEndpoint) }
    }
}

/// Returns the subject of an audit event: an additional endpoint, or the merchant for its default endpoint.
fn subject(merchant: MerchantId, id: EndpointId) -> String {
    if id == EndpointId::default_of(merchant) { merchant.to_string() } else { id.to_string() }
}
