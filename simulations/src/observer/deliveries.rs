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
        let carried = Carried {
            event: record.id,
            payment: record.payment,
            attempts: 0,
            schedule_from: 0,
            is_manual: false,
            due_at: Some(record.at),
            scheduled_ms: self.now_ms,
            is_delivered: false,
        };
        self.deliveries.extend(record.delivery.map(|delivery| (delivery, carried)));
        self.events.insert(record.id, record);
    }

    /// Notes that an event is sent once more, beside what became of it before.
    pub(super) fn redelivery_written(&mut self, delivery: &Delivery) {
        let carried = Carried {
            event: delivery.event,
            payment: delivery.payment,
            attempts: 0,
            schedule_from: 0,
            is_manual: true,
            due_at: Some(delivery.due_at),
            scheduled_ms: self.now_ms,
            is_delivered: false,
        };
        self.deliveries.insert(delivery.id, carried);
    }

    /// Notes that a delivery that was not taken begins its schedule again.
    pub(super) fn replay_written(&mut self, delivery: DeliveryId, at: Timestamp) {
        let Some(carried) = self.deliveries.get_mut(&delivery) else { return };
        carried.due_at = Some(at);
        carried.schedule_from = carried.attempts;
        carried.scheduled_ms = self.now_ms;
        if carried.is_delivered {
            let (text, payment) = (format!("{delivery} was taken and begins again"), carried.payment);
            self.violate("delivered-is-delivered", text, Some(payment));
        }
    }

    pub(super) fn attempt_written(&mut self, delivery: &Delivery, attempt: &Attempt) {
        let Some(carried) = self.deliveries.get(&delivery.id).cloned() else { return };
        self.ask(Some(carried.payment), |observer, check| match check {
            Check::Attempt(check) => Some(check(&Attempted { before: &carried, attempt, observer })),
            _ => None,
        });
        self.answered.remove(&(delivery.id, attempt.number));
        self.latency.attempted(carried.payment, self.now_ms);
        self.endpoints.entry(delivery.merchant).or_default().note(delivery, attempt);
        if let Some(carried) = self.deliveries.get_mut(&delivery.id) {
            carried.attempts += 1;
            carried.due_at = attempt.next_attempt_at;
            carried.scheduled_ms = self.now_ms;
            carried.is_delivered = attempt.outcome.is_success();
            if carried.due_at.is_none() && !carried.is_delivered {
                self.marks.push("a delivery is given up");
            }
        }
    }
}
