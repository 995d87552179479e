//! Deliveries and their attempts in the model.

use engine::{
    ids::{DeliveryId, EventId},
    time::Timestamp,
    webhook::{Attempt, Delivery, DeliveryRecord, DeliveryState, Trigger},
};
use storage::EventRecord;

use super::StoreModel;

impl StoreModel {
    /// Puts the deliveries of a new event, which is number `seq` of its merchant's list, into the outbox.
    pub(super) fn announced(&mut self, record: &EventRecord, seq: u64) {
        for (endpoint, id) in &record.deliveries {
            let delivery = Delivery {
                id: *id,
                event: record.id,
                event_seq: seq,
                merchant: record.merchant,
                endpoint: *endpoint,
                payment: record.payment,
                trigger: if record.is_test { Trigger::Test } else { Trigger::Auto },
                attempts: 0,
                schedule_from: 0,
                due_at: record.at,
            };
            self.deliveries.insert(*id, DeliveryRecord { delivery, state: DeliveryState::Pending, last: None });
        }
    }

    pub(super) fn attempted(&mut self, delivery: &Delivery, attempt: &Attempt) {
        let number = self.attempts.len() as u64;
        self.attempts.insert((attempt.event, attempt.delivery, attempt.number), (attempt.clone(), number));
        let Some(record) = self.deliveries.get_mut(&delivery.id) else { return };
        record.delivery.attempts += 1;
        record.last = Some((attempt.outcome, attempt.ended_at));
        let is_gone = attempt.outcome.status() == Some(410) && record.delivery.trigger == Trigger::Auto;
        record.state = match attempt.next_attempt_at {
            Some(due_at) => {
                record.delivery.due_at = due_at;
                DeliveryState::Pending
            }
            None if attempt.outcome.is_success() => DeliveryState::Delivered,
            None if is_gone => DeliveryState::Held,
            None => DeliveryState::Failed,
        };
    }

    pub(super) fn replayed(&mut self, delivery: DeliveryId, at: Timestamp) {
        if let Some(record) = self.deliveries.get_mut(&delivery) {
            record.state = DeliveryState::Pending;
            record.delivery.schedule_from = record.delivery.attempts;
            record.delivery.due_at = at;
        }
    }

    pub(super) fn held(&mut self, delivery: DeliveryId) {
        self.ends(delivery, DeliveryState::Held);
    }

    pub(super) fn given_up(&mut self, delivery: DeliveryId) {
        self.ends(delivery, DeliveryState::Failed);
    }

    fn ends(&mut self, delivery: DeliveryId, state: DeliveryState) {
        if let Some(record) = self.deliveries.get_mut(&delivery) {
            record.state = state;
        }
    }

    /// Returns how many attempts a delivery has.
    pub(crate) fn attempts_of(&self, event: EventId, delivery: DeliveryId) -> usize {
        self.attempts.range((event, delivery, 0)..=(event, delivery, u32::MAX)).count()
    }

    /// Returns whether a delivery may be replayed.
    pub(crate) fn is_replayable(record: &DeliveryRecord) -> bool {
        record.delivery.trigger == Trigger::Auto && matches!(record.state, DeliveryState::Held | DeliveryState::Failed)
    }
}
