//! Writes of events and their deliveries.

use engine::payment::shown_memo;

use super::*;

/// How long a commit may take after the reads that it is based on: the process may be paused meanwhile.
const COMMIT_MS: u64 = 180_000;

impl Observer {
    /// Checks that every new unmatched transfer of a batch is announced to the merchants that have proven its account, and
    /// to no others.
    pub(super) fn unmatched_are_announced(&mut self, batch: &Batch) {
        let mut events: BTreeMap<(MerchantId, String), &EventRecord> = BTreeMap::new();
        let mut kept = Vec::new();
        for write in &batch.writes {
            match write {
                Write::Event(record) if record.kind == EventType::TransferUnmatched && !record.is_test => {
                    let body: serde_json::Value = serde_json::from_slice(&record.body).unwrap_or_default();
                    let transfer = body["data"]["transferId"].as_str().unwrap_or_default().to_owned();
                    events.insert((record.merchant, transfer), record);
                }
                Write::Unmatched(unmatched) => kept.push(unmatched),
                _ => {}
            }
        }
        for unmatched in kept {
            if let Err(text) = self.is_announced(unmatched, &mut events) {
                self.violate("unmatched-are-announced", text, None);
                return;
            }
            self.passes("unmatched-are-announced");
        }
        if let Some((merchant, transfer)) = events.keys().next() {
            let text = format!("{transfer} is announced to {merchant} and is not kept as unmatched, or is not its own");
            self.violate("unmatched-are-announced", text, None);
        }
    }

    /// Takes the events of an unmatched transfer out of `events`.
    fn is_announced(
        &mut self,
        unmatched: &Unmatched,
        events: &mut BTreeMap<(MerchantId, String), &EventRecord>,
    ) -> Result<(), String> {
        let transfer = &unmatched.transfer;
        let is_known = self.unmatched.contains_key(&(transfer.tx_id, transfer.position.op_in_tx));
        // A sale is no unmatched transfer, and damage may hide a merchant.
        let is_excused = is_known
            || self.was_damaged
            || self.claims.get(&transfer.tx_id).is_some_and(|claimed| claimed.sale().is_some());
        let owners: Vec<MerchantId> =
            self.merchants.values().filter(|merchant| has_proven(merchant, &transfer.to)).map(|one| one.id).collect();
        let current: BTreeSet<MerchantId> = self.provers(&transfer.to).collect();
        for owner in owners {
            let is_new = self.proof_changed_ms.get(&owner).is_some_and(|at| self.now_ms < at + COMMIT_MS);
            match events.remove(&(owner, transfer.position.to_string())) {
                Some(_) if !current.contains(&owner) && !is_new => {
                    return Err(format!("{} is announced to {owner}, a former owner", transfer.position));
                }
                Some(event) => {
                    unmatched_event_matches(event, unmatched)?;
                    self.marks.push("an unmatched transfer is announced");
                }
                None if is_excused || is_new || !current.contains(&owner) => {}
                None => return Err(format!("{} is not announced to {owner}", transfer.position)),
            }
        }
        Ok(())
    }

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
        self.events_ms.insert(record.id, self.now_ms);
        self.subscriptions_decide(&record);
        for (endpoint, delivery) in &record.deliveries {
            let delivery_state = DeliveryState {
                event: record.id,
                payment: record.payment,
                endpoint: *endpoint,
                attempts: 0,
                schedule_from: 0,
                is_manual: false,
                is_once: record.is_test,
                due_at: Some(record.at),
                scheduled_ms: self.now_ms,
                is_delivered: false,
            };
            self.deliveries.insert(*delivery, delivery_state);
        }
        self.events.insert(record.id, record);
    }

    /// Checks that an event is sent to exactly the endpoints of its merchant that are subscribed to it, once to each; a
    /// test to the one that it tests.
    fn subscriptions_decide(&mut self, record: &EventRecord) {
        let Some(merchant) = self.merchants.get(&record.merchant) else { return };
        let default = EndpointId::from_bits(record.merchant.bits());
        let mut wanted: BTreeSet<EndpointId> =
            Some(default).filter(|_| merchant.webhook_events.has(record.kind)).into_iter().collect();
        for endpoint in merchant.endpoints.iter().filter(|endpoint| endpoint.is_enabled) {
            if endpoint.events.types().any(|kind| kind == record.kind) {
                wanted.insert(endpoint.id);
            }
        }
        let sent: BTreeSet<EndpointId> = record.deliveries.iter().map(|(endpoint, _)| *endpoint).collect();
        let is_once = sent.len() == record.deliveries.len();
        let is_right = if record.is_test { sent.len() == 1 } else { sent == wanted };
        if is_right && is_once {
            self.passes("subscriptions-decide");
            if sent.len() > 1 {
                self.marks.push("an event is sent to several endpoints");
            }
            return;
        }
        // The subscriptions may change while a change of a payment is stored; damage may hide them.
        let is_new = self.subscribed_ms.get(&record.merchant).is_some_and(|at| self.now_ms < at + 180_000);
        if !is_once || !is_new && !self.was_damaged {
            let text = format!("{} is sent to {sent:?}, and subscribed are {wanted:?}", record.kind.as_str());
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
            endpoint: delivery.endpoint,
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
        self.endpoints.entry(delivery.endpoint).or_default().note(delivery, attempt);
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

/// Compares the event of an unmatched transfer with the interface.
fn unmatched_event_matches(event: &EventRecord, Unmatched { transfer, reason, .. }: &Unmatched) -> Result<(), String> {
    let at = event.at.to_string();
    let wanted = serde_json::json!({
        "type": "transfer.unmatched",
        "id": event.id.to_string(),
        "createdAt": at,
        "timestamp": at,
        "data": {
            "transferId": transfer.position.to_string(),
            "merchantId": event.merchant.to_string(),
            "reason": reason.as_str(),
            "txId": transfer.tx_id.to_string(),
            "opIndex": transfer.position.op_in_tx,
            "blockNum": transfer.position.block_num,
            "blockTime": transfer.block_time.to_string(),
            "from": transfer.from.to_string(),
            "to": transfer.to.to_string(),
            "value": transfer.money.units.to_string(),
            "formatted": transfer.money.to_string(),
            "currency": transfer.money.currency.code(),
            "memo": shown_memo(transfer.memo.clone()),
            "livemode": true,
        },
    });
    let reported: serde_json::Value = serde_json::from_slice(&event.body).map_err(|error| error.to_string())?;
    if reported == wanted { Ok(()) } else { Err(format!("the event is {reported} and should be {wanted}")) }
}
