//! Deliveries of webhooks, their attempts, and the health of endpoints.

use std::{collections::BTreeSet, sync::Arc};

use engine::{
    ids::{DeliveryId, EndpointId, EventId, MerchantId, PaymentId},
    merchant::Merchant,
    time::Timestamp,
    webhook::{Attempt, Delivery, DeliveryRecord, DeliveryState, EndpointHealth},
};

use crate::{
    batch::EventRecord,
    duty::Buckets,
    store::{
        error::Read,
        page::Page,
        topic::topic,
        wrapped::{Call, Wrapped},
    },
};

/// A list of one merchant's deliveries, newest first. All filters must match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryQuery {
    /// The merchant.
    pub merchant: MerchantId,
    /// Only deliveries older than this one.
    pub before: Option<DeliveryId>,
    /// Maximum number of deliveries.
    pub limit: usize,
    /// Only these states; empty for all.
    pub states: Vec<DeliveryState>,
    /// Only deliveries of this event.
    pub event: Option<EventId>,
    /// Only deliveries of this payment's events.
    pub payment: Option<PaymentId>,
    /// Only deliveries to this endpoint.
    pub endpoint: Option<EndpointId>,
}

/// Due work that a read excludes.
#[derive(Debug, Clone, Default)]
pub struct Passed {
    /// The buckets of the endpoints that are included.
    pub buckets: Buckets,
    /// Excluded endpoints.
    pub endpoints: BTreeSet<EndpointId>,
    /// Excluded deliveries, such as those in progress.
    pub deliveries: BTreeSet<DeliveryId>,
}

/// The due deliveries of one endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueWork {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// Its merchant.
    pub merchant: MerchantId,
    /// The merchant's record; none if there is none or it is damaged.
    pub record: Option<Arc<Merchant>>,
    /// The health of the endpoint.
    pub health: EndpointHealth,
    /// Deliveries, earliest due time first.
    pub deliveries: Vec<Due>,
}

/// A due delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// The delivery.
    pub delivery: Delivery,
    /// Whether an earlier event of the same payment is not delivered to the endpoint yet.
    pub follows: bool,
}

topic! {
    /// Deliveries of webhooks, their attempts, and the health of endpoints.
    Outbox {
        /// Returns at most `limit` deliveries that are due at or before `now`, earliest first.
        due_deliveries(now: Timestamp, limit: usize) -> Vec<Delivery>;

        /// Returns due deliveries of at most `endpoints` endpoints, at most `per_endpoint` of each, without the
        /// `passed` ones. The endpoint with the earliest due delivery comes first. The cost does not depend on how many
        /// deliveries an endpoint has.
        due_work(now: Timestamp, endpoints: usize, per_endpoint: usize, passed: Passed) -> Vec<DueWork>;

        /// Returns the record of a merchant and one of its events. A damaged event is none.
        webhook_content(merchant: MerchantId, event_seq: u64) -> (Option<Arc<Merchant>>, Option<EventRecord>);

        /// Returns the earliest due time after `now`.
        next_delivery_after(now: Timestamp) -> Option<Timestamp>;

        /// Returns the health of an endpoint.
        endpoint(id: EndpointId) -> EndpointHealth;

        /// Returns a merchant's delivery.
        delivery(merchant: MerchantId, id: DeliveryId) -> Option<DeliveryRecord>;

        /// Lists a merchant's deliveries, newest first, without a total.
        deliveries(query: DeliveryQuery) -> Page<DeliveryRecord>;

        /// Returns at most `limit` of a merchant's deliveries after `after` that can be replayed, oldest first.
        replayable(merchant: MerchantId, after: DeliveryId, limit: usize) -> Vec<Delivery>;

        /// Returns the attempts made to deliver an event, in order.
        attempts(event: EventId) -> Vec<Attempt>;
    }
}
