//! Writes of events and their deliveries.

use super::*;

impl Observer {
    pub(super) fn event_written(&mut self, record: &EventRecord) {
        let seq = self.event_seqs.entry(record.merchant).or_default();
        *seq += 1;
        let record = EventRecord { seq: *seq, ..record.clone() };
        if self.events.contains_key(&record.id) {
            self.violate(
                "one-event-per-transition",
                format!("event {} is announced twice", record.id),
                Some(record.payment),
            );
        }
        let delivery_state = DeliveryState {
            event: record.id,
            payment: record.payment,
            attempts: 0,
            schedule_from: 0,
            is_manual: false,
            is_once: record.is_test,
            due_at: Some(record.at),
            scheduled_ms: self.now_ms,
            is_delivered: false,
        };
        self.events_ms.insert(record.id, self.now_ms);
        self.subscription_decides(&record);
        self.deliveries.extend(record.delivery.map(|delivery| (delivery, delivery_state)));
        self.events.insert(record.id, record);
    }

    /// Checks that an event is sent exactly where its merchant's endpoint is subscribed to it.
    fn subscription_decides(&mut self, record: &EventRecord) {
        let Some(merchant) = self.merchants.get(&record.merchant) else { return };
        let wanted = record.is_test || merchant.webhook_events.has(record.kind);
        if record.delivery.is_some() == wanted {
            self.passes("subscriptions-decide");
            return;
        }
        // The subscription may change while a change of a payment is stored.
        let is_new = self.subscribed_ms.get(&record.merchant).is_some_and(|at| self.now_ms < at + 180_000);
        if !is_new {
            let text = format!("{} is sent: {}, and is subscribed to: {wanted}", record.kind.as_str(), !wanted);
            self.violate("subscriptions-decide", text, None);
        }
    }

    /// Returns when an event became durable, virtual milliseconds.
    pub(crate) fn stored_ms(&self, event: EventId) -> u64 {
        self.events_ms.get(&event).copied().unwrap_or(self.now_ms)
    }

    /// Records that an event is sent once more, in addition to its earlier outcome.
    pub(super) fn redelivery_written(&mut self, delivery: &Delivery) {
        let delivery_state = DeliveryState {
            event: delivery.event,
            payment: delivery.payment,
            attempts: 0,
            schedule_from: 0,
            is_manual: true,
            is_once: true,
            due_at: Some(delivery.due_at),
            scheduled_ms: self.now_ms,
            is_delivered: false,
        };
        self.deliveries.insert(delivery.id, delivery_state);
    }

    /// Records that a failed delivery begins its schedule again.
    pub(super) fn replay_written(&mut self, delivery: DeliveryId, at: Timestamp) {
        let Some(delivery_state) = self.deliveries.get_mut(&delivery) else { return };
        delivery_state.due_at = Some(at);
        delivery_state.schedule_from = delivery_state.attempts;
        delivery_state.scheduled_ms = self.now_ms;
        if delivery_state.is_delivered {
            let (text, payment) = (format!("{delivery} was delivered and begins again"), delivery_state.payment);
            self.violate("delivered-is-delivered", text, Some(payment));
        }
    }

    pub(super) fn attempt_written(&mut self, delivery: &Delivery, attempt: &Attempt) {
        let Some(delivery_state) = self.deliveries.get(&delivery.id).cloned() else { return };
        self.ask(Some(delivery_state.payment), |observer, check| match check {
            Check::Attempt(check) => Some(check(&Attempted { before: &delivery_state, attempt, observer })),
            _ => None,
        });
        self.receiver_responses.remove(&(delivery.id, attempt.number));
        self.attempt_recorded(delivery.id, attempt.number);
        self.latency.attempted(delivery_state.payment, self.now_ms);
        self.endpoints.entry(delivery.merchant).or_default().note(delivery, attempt);
        if let Some(delivery_state) = self.deliveries.get_mut(&delivery.id) {
            delivery_state.attempts += 1;
            delivery_state.due_at = attempt.next_attempt_at;
            delivery_state.scheduled_ms = self.now_ms;
            delivery_state.is_delivered = attempt.outcome.is_success();
            if delivery_state.due_at.is_none() && !delivery_state.is_delivered {
                self.marks.push("a delivery is given up");
            }
        }
    }
}
