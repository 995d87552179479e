//! What the observer is notified of: irreversible blocks, webhooks, broadcasts, responses, the end.

use engine::{money::HbdPrice, payment::ResolutionKind};

use super::*;
use engine::payment::Disposition;

use crate::options::EPOCH_SECONDS;

/// How long after the market paid a price it may be stored, milliseconds: a reading may be paused, or wait for the disk.
const PRICE_LASTS_MS: u64 = 600_000;

/// How long a decision may take to be stored: a commit takes up to 20 seconds, and the process may be paused meanwhile.
const DECISION_MS: u64 = 180_000;

impl Observer {
    /// Records that a delivery leaves the outbox because its endpoint is disabled or has no URL.
    pub(super) fn held(&mut self, delivery: &Delivery) {
        let target = self.merchants.get(&delivery.merchant).and_then(|merchant| merchant.target(delivery.endpoint));
        let has_url = target.is_some_and(|target| target.url.is_some() && target.is_enabled);
        let seen = self.endpoints.get(&delivery.endpoint).cloned().unwrap_or_default();
        // What was decided before the endpoint was set or enabled may be stored after it.
        let is_new = self.endpoint_set_ms.get(&delivery.endpoint).is_some_and(|at| self.now_ms < at + DECISION_MS);
        if has_url && !seen.may_be_disabled && !is_new {
            let text = format!("{} is held, and its merchant has an endpoint: {seen:?}", delivery.id);
            self.violate("held-only-while-disabled", text, Some(delivery.payment));
        } else {
            self.passes("held-only-while-disabled");
            self.marks.push(if has_url { "a delivery to a disabled endpoint is held" } else { "a delivery is held" });
        }
    }

    /// Records that blocks became irreversible.
    pub fn finalized(&mut self, number: u32, time: Timestamp, transfers: Vec<Transfer>) {
        (self.final_num, self.final_time) = (number, time);
        self.finalized_ms.insert(number, self.now_ms);
        for transfer in transfers {
            // A proof of an account is no payment.
            if Proofs::is_proof(&transfer) {
                self.proofs.is_final(&transfer);
                continue;
            }
            let key = (transfer.tx_id, transfer.position.op_in_tx);
            self.final_by_block.entry(transfer.position.block_num).or_default().push(key);
            let named = self.intents.get(&key.0).copied().flatten().or_else(|| self.fee_intents.get(&key).copied());
            if let Some(id) = named {
                self.final_by_session.entry(id).or_default().push(key);
            }
            self.keep_final(transfer);
        }
    }

    fn keep_final(&mut self, transfer: Transfer) {
        let key = (transfer.tx_id, transfer.position.op_in_tx);
        if self.final_transfers.insert(key, transfer).is_none() {
            self.final_ops.entry(key.0).or_default().push(key.1);
        }
        self.final_has_target(key);
    }

    /// Updates the index of final transfers by the session that they pay.
    pub(super) fn final_has_target(&mut self, key: (TxId, u32)) {
        let Some(id) = self.target_of(key).filter(|_| self.final_transfers.contains_key(&key)) else { return };
        let keys = self.final_by_target.entry(id).or_default();
        if !keys.contains(&key) {
            keys.push(key);
        }
    }

    /// Returns the final transfers that pay a session.
    pub(crate) fn final_transfers_to(&self, id: PaymentId) -> impl Iterator<Item = &Transfer> {
        let keys = self.final_by_target.get(&id).map_or(&[][..], Vec::as_slice);
        let pays = keys.iter().filter(move |key| self.target_of(**key) == Some(id));
        pays.filter_map(|key| self.final_transfers.get(key))
    }

    /// Records the virtual transfers of irreversible blocks: they are in no transaction, and the cursor does not wait for them.
    pub fn recurrent_transfers_executed(&mut self, transfers: Vec<Transfer>) {
        for transfer in transfers {
            self.marks.push("a recurrent transfer is executed");
            self.ever_included.insert(transfer.tx_id);
            self.keep_final(transfer);
        }
    }

    /// Records that the wall clock jumped: times before and after are not comparable.
    pub const fn clock_jumped(&mut self) {
        self.jumped_ms = Some(self.now_ms);
    }

    /// Returns whether the wall clock ever jumped.
    pub(crate) const fn has_jumped(&self) -> bool {
        self.jumped_ms.is_some()
    }

    /// Records what the market pays for HBD, in percent of a dollar.
    pub fn market_price_changed(&mut self, percent: u64) {
        let micro_usd = percent * 10_000;
        if micro_usd != self.hbd_now {
            self.hbd_prices.insert(self.hbd_now, self.now_ms);
            self.hbd_now = micro_usd;
        }
    }

    /// Records the witnesses' price of HIVE.
    pub fn hive_price_changed(&mut self, price: HivePrice) {
        if self.hive_prices.last().is_none_or(|(known, _)| *known != price) {
            if let Some((_, until_ms)) = self.hive_prices.last_mut() {
                *until_ms = self.now_ms;
            }
            self.hive_prices.push((price, u64::MAX));
        }
    }

    /// Checks that a durable price of HIVE was in force recently.
    fn hive_rate_written(&mut self, price: HivePrice) {
        let is_recent = |(known, until_ms): &&(HivePrice, u64)| {
            *known == price && until_ms.saturating_add(PRICE_LASTS_MS) >= self.now_ms
        };
        if self.hive_prices.iter().any(|known| is_recent(&known)) {
            self.passes("worth-is-the-witnesses");
        } else {
            let text = format!("HIVE was read as {price:?}, and its prices were {:?}", self.hive_prices);
            self.violate("worth-is-the-witnesses", text, None);
        }
        let is_shared = self.engine_setup.engines > 0;
        self.hive_read.record(price, self.now_ms, is_shared);
    }

    /// Records a durable price of HBD: the market must have paid it.
    pub(super) fn rate_written(&mut self, rate: &Rate) {
        self.rate = Some(*rate);
        self.hive_rate_written(rate.price);
        let micro_usd = rate.hbd.unwrap_or(HbdPrice::PEG).micro_usd();
        if self.hbd_read.last() != Some(micro_usd) {
            self.marks.push("HBD is read at another price");
        }
        let left_ms = self.hbd_prices.get(&micro_usd).map(|left_ms| self.now_ms.saturating_sub(*left_ms));
        // If most nodes lack the market's price, the peg applies.
        let is_unknown = rate.hbd.is_none() && self.now_ms <= self.priceless_until_ms + PRICE_LASTS_MS;
        if micro_usd != self.hbd_now && !is_unknown && left_ms.is_none_or(|left_ms| left_ms > PRICE_LASTS_MS) {
            let text =
                format!("HBD was read as {micro_usd} millionths of a dollar, and the market pays {}", self.hbd_now);
            self.violate("worth-is-the-markets", text, None);
        }
        self.hbd_read.record(micro_usd, self.now_ms, self.engine_setup.engines > 0);
    }

    /// Records the secrets of a merchant that is written.
    pub(super) fn secrets_written(&mut self, merchant: &Merchant) {
        let known = self.merchants.get(&merchant.id).map(|known| &known.secrets);
        if known.is_some_and(|known| *known == merchant.secrets) {
            return;
        }
        let valid = merchant.secrets.previous.iter().filter(|(_, until)| merchant.updated_at < *until);
        match valid.count() {
            0..=3 => self.passes("few-secrets-sign"),
            count => {
                let text = format!("{count} replaced secrets of {} are valid", merchant.id);
                self.violate("few-secrets-sign", text, None);
            }
        }
    }

    /// Returns the correct time.
    #[must_use]
    pub const fn true_time(&self) -> Timestamp {
        Timestamp::from_millis(EPOCH_SECONDS * 1_000 + self.now_ms)
    }

    /// Returns whether the wall clock has not jumped since.
    #[must_use]
    pub fn is_clock_steady_since(&self, ms: u64) -> bool {
        self.jumped_ms.is_none_or(|jumped| jumped < ms)
    }

    /// Records that a receiver got a webhook.
    pub fn webhook_received(
        &mut self,
        headers: &[(String, String)],
        body: &[u8],
        now: Timestamp,
    ) -> Option<(DeliveryId, u32, Option<PaymentId>, String)> {
        let Some(parsed) = read_webhook(headers, body) else {
            self.violate("webhook-is-readable", "a webhook cannot be parsed".to_owned(), None);
            return None;
        };
        let (delivery, attempt, event, payment, status, sequence) = parsed;
        self.ask(payment, |observer, check| match check {
            Check::Webhook(check) => {
                let status = status.clone();
                let received = ReceivedWebhook {
                    headers,
                    body,
                    delivery,
                    attempt,
                    event,
                    payment,
                    status,
                    sequence,
                    now,
                    observer,
                };
                Some(check(&received))
            }
            _ => None,
        });
        self.posted(delivery, attempt);
        if let Some(endpoint) = self.deliveries.get(&delivery).map(|delivery_state| delivery_state.endpoint) {
            let now_ms = self.now_ms;
            let times = self.posts_ms.entry(endpoint).or_default();
            times.retain(|at| now_ms - at < 10_000);
            times.push(now_ms);
        }
        // Events of no payment wait for no other.
        let own = self.events.get(&event).map(|event| event.payment);
        self.posts_in_flight.extend(payment.or(own).map(|payment| (delivery, payment)));
        Some((delivery, attempt, payment, status))
    }

    /// Records the response of the receiver.
    pub fn receiver_responded(&mut self, delivery: DeliveryId, attempt: u32, outcome: Outcome, is_accepted: bool) {
        self.posts_in_flight.remove(&delivery);
        self.receiver_responses.insert((delivery, attempt), outcome);
        let is_status = |event| self.events.get(&event).is_some_and(|event| event.kind == EventType::StatusChanged);
        if is_accepted
            && let Some(delivery_state) = self.deliveries.get(&delivery)
            && is_status(delivery_state.event)
        {
            self.received.entry(delivery_state.payment).or_default().insert(delivery_state.event);
        }
    }

    /// Records a response of the engine.
    pub fn responded(&mut self, response: &Response<'_>) {
        let payment = match response {
            Response::Created(payment)
            | Response::Cancelled(payment)
            | Response::Read(payment)
            | Response::Resolved(payment)
            | Response::Owed { payment, .. }
            | Response::Planned { payment, .. } => Some(payment.id),
            Response::Settled { payment, .. } => Some(*payment),
            Response::Facilitated { .. } => None,
        };
        self.ask(payment, |observer, check| match check {
            Check::Response(check) => Some(check(observer, response)),
            _ => None,
        });
        match response {
            Response::Created(payment) => {
                if let Some(known) = self.payments.get_mut(&payment.id) {
                    known.is_acknowledged = true;
                }
            }
            Response::Cancelled(payment) => {
                if let Some(known) = self.payments.get_mut(&payment.id) {
                    known.is_cancel_acknowledged = true;
                }
            }
            Response::Facilitated { tx_id } => {
                self.reported.insert(*tx_id);
            }
            // Merchants accept the exceptions that they resolve by hand.
            Response::Resolved(payment) => {
                let is_kept = |credit: &&Credit| {
                    credit.finality == Finality::Irreversible
                        && (payment.state.is_terminal() || credit.disposition != Disposition::Counted)
                };
                let kept = payment.transfers.iter().filter(is_kept).map(|credit| (credit.tx_id, credit.op_in_tx));
                let kept: Vec<_> = kept.collect();
                match payment.resolution.as_ref().map(|resolution| resolution.kind) {
                    Some(ResolutionKind::Accepted) => self.accepted.entry(payment.id).or_default().extend(kept),
                    // Another decision about the same transfers revokes the acceptance.
                    _ => drop(self.accepted.remove(&payment.id)),
                }
            }
            Response::Settled { .. } | Response::Read(_) | Response::Owed { .. } | Response::Planned { .. } => {}
        }
    }

    /// Returns a delivery of an event of a payment, if there is one.
    #[must_use]
    pub fn delivery_of(&self, payment: PaymentId) -> Option<DeliveryId> {
        let own = self.deliveries.iter().filter(|(_, delivery_state)| delivery_state.payment == payment);
        own.map(|(id, _)| *id).min()
    }

    /// Checks what must hold at the end.
    pub fn ends(&mut self, end: impl FnOnce(&Self) -> End<'_>) {
        let mut verdict = None;
        {
            let end = end(self);
            let mut passed = Vec::new();
            for (at, invariant) in self.invariants.iter().enumerate() {
                if let Check::End(check) = &invariant.check {
                    match check(&end) {
                        Ok(()) => passed.push(at),
                        Err((text, payment)) => {
                            verdict = Some((invariant.name, text, payment));
                            break;
                        }
                    }
                }
            }
            drop(end);
            for at in passed {
                self.passes[at] += 1;
            }
        }
        if let Some((name, text, payment)) = verdict {
            self.violate(name, text, payment);
        }
    }

    /// Records that a request with its own idempotency key returned a session.
    pub fn opens(&mut self, request: u32, payment: PaymentId) {
        let first = *self.opened.entry(request).or_insert(payment);
        if first == payment {
            self.passes("one-key-one-session");
        } else {
            let text = format!("one request returned {first} and then {payment}");
            self.violate("one-key-one-session", text, Some(payment));
        }
    }

    /// Records a pass of an invariant that the simulation itself checks.
    pub fn passes(&mut self, name: &str) {
        if let Some(at) = self.invariants.iter().position(|invariant| invariant.name == name) {
            self.passes[at] += 1;
        }
    }

    /// Returns whether the account is one whose transfers concern the engine.
    #[must_use]
    pub fn is_fee_account(&self, account: &AccountName) -> bool {
        self.fee_account.as_ref() == Some(account)
    }

    /// Returns the session a transaction pays: the one it is claimed for, or the one its memo names.
    #[must_use]
    pub fn target(&self, tx_id: TxId) -> Option<PaymentId> {
        match self.claims.get(&tx_id).map(|claimed| &claimed.purpose) {
            Some(Purpose::Session(id)) => Some(*id),
            _ => self.intents.get(&tx_id).copied().flatten(),
        }
    }

    /// Returns the session that a single transfer pays. Virtual transfers share a transaction id with the others
    /// of that block.
    #[must_use]
    pub fn target_of(&self, transfer: (TxId, u32)) -> Option<PaymentId> {
        let named = || self.target(transfer.0).or_else(|| self.fee_intents.get(&transfer).copied());
        self.assignments.get(&transfer).copied().or_else(named)
    }

    /// Returns whether the claim on a transaction is open.
    #[must_use]
    pub fn is_claim_open(&self, tx_id: TxId) -> bool {
        self.claims.get(&tx_id).is_some_and(|claimed| claimed.outcome.is_open())
    }
}
