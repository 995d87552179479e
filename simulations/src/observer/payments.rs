//! Writes of payments and their transfers.

use super::*;

impl Observer {
    /// Returns the sum of irreversible transfers of wallets to a session that are in time.
    pub(crate) fn paid_in_time(&self, payment: &Payment) -> u64 {
        self.paid_until(payment, payment.expires_at + payment.grace)
    }

    /// Returns the same up to a block time.
    pub(crate) fn paid_until(&self, payment: &Payment, last: Timestamp) -> u64 {
        let keys = self.final_by_session.get(&payment.id).map_or(&[][..], Vec::as_slice);
        let transfers = keys.iter().filter_map(|key| self.final_transfers.get(key));
        transfers
            .filter(|transfer| transfer.to == payment.pay_to && transfer.money.currency == payment.amount.currency)
            .filter(|transfer| transfer.from != payment.pay_to && transfer.block_time <= last)
            .filter(|transfer| self.target_of((transfer.tx_id, transfer.position.op_in_tx)) == Some(payment.id))
            .map(|transfer| transfer.money.units)
            .sum()
    }

    pub(super) fn payment_written(&mut self, after: &Arc<Payment>, batch: &Batch) {
        self.is_list_changed = true;
        let announced = |kind| {
            batch.writes.iter().find_map(move |write| match write {
                Write::Event(record) if record.payment == after.id && record.kind == kind => Some(record),
                _ => None,
            })
        };
        let (event, exception) = (announced(EventType::StatusChanged), announced(EventType::Exception));
        let refund = announced(EventType::RefundCompleted);
        let claim = batch.writes.iter().find_map(|write| match write {
            Write::Claim(claimed) => Some(claimed),
            _ => None,
        });
        let (written, replaced) = self.rows_written(after.id, batch);
        self.sighted(after, &written, &replaced);
        let none = Rows::new();
        self.ask(Some(after.id), |observer, check| match check {
            Check::Payment(check) => {
                let before = observer.payments.get(&after.id).map(|known| &*known.payment);
                let rows = observer.rows.get(&after.id).unwrap_or(&none);
                let (written, replaced) = (&written[..], &replaced[..]);
                Some(check(&PaymentWrite {
                    before,
                    after,
                    event,
                    exception,
                    refund,
                    claim,
                    rows,
                    written,
                    replaced,
                    observer,
                }))
            }
            _ => None,
        });
        let before = self.payments.get(&after.id).and_then(|known| known.payment.claim.as_ref());
        if let Some(claim) = before.filter(|_| after.claim.is_none() && after.paid_by.is_none()) {
            let tx_id = claim.tx_id;
            self.released_claims.insert(tx_id);
            self.latency.claim_released(tx_id, self.now_ms);
        }
        for credit in &written {
            if credit.finality == Finality::Irreversible {
                self.credited.insert((credit.tx_id, credit.op_in_tx), after.id);
            }
        }
        self.dirty.insert(after.id);
        self.mark_transition(after);
        match self.payments.get_mut(&after.id) {
            Some(known) => known.payment = Arc::clone(after),
            None => {
                let known = Known {
                    payment: Arc::clone(after),
                    session: None,
                    stored_ms: self.now_ms,
                    is_acknowledged: false,
                    is_cancel_acknowledged: false,
                };
                self.payments.insert(after.id, known);
            }
        }
    }

    /// Records the transfers of a payment that a batch writes; returns them, and what they were before.
    fn rows_written(&mut self, payment: PaymentId, batch: &Batch) -> (Vec<Credit>, Vec<Credit>) {
        let (mut written, mut replaced) = (Vec::new(), Vec::new());
        for write in &batch.writes {
            let Write::Transfer { payment: id, credit, .. } = write else { continue };
            if *id == payment {
                let rows = self.rows.entry(payment).or_default();
                let key = (credit.tx_id, credit.op_in_tx);
                let before = rows.get(&key).cloned();
                let mut row = (**credit).clone();
                if let Some(before) = &before {
                    // A changed transfer may have been classified by a truncated memo.
                    row.memo.clone_from(&before.memo);
                }
                rows.insert(key, row.clone());
                written.push(row);
                replaced.extend(before);
            }
        }
        if self.rows.get(&payment).is_some_and(|rows| rows.len() > LISTED_TRANSFERS_MAX) {
            self.marks.push("a payment has more transfers than it lists");
        }
        (written, replaced)
    }

    fn mark_transition(&mut self, after: &Payment) {
        let before = self.payments.get(&after.id).map(|known| &known.payment);
        let state_before = before.map(|payment| payment.state);
        if let Some(before) = before {
            let orphaned = |payment: &Payment| payment.transfers.iter().any(|c| c.finality == Finality::Orphaned);
            if !orphaned(before) && orphaned(after) {
                self.marks.push("a reorg removes a sighted transfer");
            }
            if !before.is_reversed && after.is_reversed {
                self.marks.push("a settled payment vanishes for good");
            }
            if before.cancellation.is_none() && after.cancellation.is_some() {
                self.marks.push("a cancellation is requested");
            }
            if before.active_cancellation().is_some() && after.active_cancellation().is_none() {
                self.marks.push("a timely payment drops a cancellation request");
            }
        }
        if state_before == Some(after.state) {
            return;
        }
        self.marks.push(match after.state {
            State::Pending => "a session opens",
            State::Processing => "a session is processing",
            State::Completed if state_before == Some(State::Processing) => "processing ends in completed",
            State::Completed => "a session completes",
            State::Failed => "a session fails",
            State::UserCancelled => "a session is cancelled",
            State::SystemCancelled => "a session expires",
        });
    }
}
