//! Deliveries of webhooks, their attempts, and the health of endpoints.

use std::collections::BTreeSet;

use engine::{
    ids::{DeliveryId, EventId, MerchantId, PaymentId},
    time::Timestamp,
    webhook::{Attempt, Delivery, DeliveryRecord, DeliveryState, EndpointHealth},
};

use crate::store::{
    error::Read,
    page::Page,
    topic::topic,
    wrapped::{Call, Wrapped},
};

/// A list of one merchant's deliveries, newest first. Filters combine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryQuery {
    /// Whose.
    pub merchant: MerchantId,
    /// Only older ones than this.
    pub before: Option<DeliveryId>,
    /// How many at most.
    pub limit: usize,
    /// Only these states; empty for all.
    pub states: Vec<DeliveryState>,
    /// Only of this event.
    pub event: Option<EventId>,
    /// Only of this payment's events.
    pub payment: Option<PaymentId>,
}

/// Due work that is not asked for.
#[derive(Debug, Clone, Default)]
pub struct Passed {
    /// Whose work.
    pub merchants: BTreeSet<MerchantId>,
    /// Deliveries that whoever asks knows of.
    pub deliveries: BTreeSet<DeliveryId>,
}

/// What is due of one merchant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueWork {
    /// Whose.
    pub merchant: MerchantId,
    /// How its endpoint is.
    pub endpoint: EndpointHealth,
    /// Deliveries, earliest first.
    pub deliveries: Vec<Due>,
}

/// A delivery that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// The delivery.
    pub delivery: Delivery,
    /// Whether an earlier event of the same payment still waits.
    pub follows: bool,
}

topic! {
    /// Deliveries of webhooks, their attempts, and the health of endpoints.
    Outbox {
        /// Returns deliveries due at or before `now`, earliest first, at most `limit`.
        due_deliveries(now: Timestamp, limit: usize) -> Vec<Delivery>;

        /// Returns what is due of several merchants, those first who wait longest: of each at most `per_merchant`
        /// deliveries, of at most `merchants` merchants, and nothing of what is `passed`. One merchant's million deliveries
        /// cost another nothing.
        due_work(now: Timestamp, merchants: usize, per_merchant: usize, passed: Passed) -> Vec<DueWork>;

        /// Returns when the first delivery that is not due at `now` will be.
        next_delivery_after(now: Timestamp) -> Option<Timestamp>;

        /// Returns what is known of a merchant's endpoint.
        endpoint(merchant: MerchantId) -> EndpointHealth;

        /// Returns a merchant's delivery.
        delivery(merchant: MerchantId, id: DeliveryId) -> Option<DeliveryRecord>;

        /// Lists a merchant's deliveries, newest first; they are not counted.
        deliveries(query: DeliveryQuery) -> Page<DeliveryRecord>;

        /// Returns a merchant's deliveries after `after` that may be replayed, oldest first, at most `limit`.
        replayable(merchant: MerchantId, after: DeliveryId, limit: usize) -> Vec<Delivery>;

        /// Returns the attempts made to deliver an event, in order.
        attempts(event: EventId) -> Vec<Attempt>;
    }
}
