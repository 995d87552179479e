//! What is written of events and their deliveries.

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
            due_at: Some(record.at),
            scheduled_ms: self.now_ms,
            is_delivered: false,
        };
        self.deliveries.extend(record.delivery.map(|delivery| (delivery, delivery_state)));
        self.events.insert(record.id, record);
    }

    /// Records that an event is sent once more, beside what became of it before.
    pub(super) fn redelivery_written(&mut self, delivery: &Delivery) {
        let delivery_state = DeliveryState {
            event: delivery.event,
            payment: delivery.payment,
            attempts: 0,
            schedule_from: 0,
            is_manual: true,
            due_at: Some(delivery.due_at),
            scheduled_ms: self.now_ms,
            is_delivered: false,
        };
        self.deliveries.insert(delivery.id, delivery_state);
    }

    /// Records that a delivery that was not taken begins its schedule again.
    pub(super) fn replay_written(&mut self, delivery: DeliveryId, at: Timestamp) {
        let Some(delivery_state) = self.deliveries.get_mut(&delivery) else { return };
        delivery_state.due_at = Some(at);
        delivery_state.schedule_from = delivery_state.attempts;
        delivery_state.scheduled_ms = self.now_ms;
        if delivery_state.is_delivered {
            let (text, payment) = (format!("{delivery} was taken and begins again"), delivery_state.payment);
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
