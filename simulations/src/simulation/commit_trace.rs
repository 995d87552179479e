//! Durable writes as events of the trace.

use engine::{payment::Payment, reconciliation::Day, webhook::Attempt};
use storage::{CommitError, Unmatched};

use super::*;

impl Simulation {
    /// Records the outcome of a commit in the trace, and notifies the observer.
    pub(crate) fn commit_ended(&self, batch: &Batch, outcome: &Result<(), CommitError>) {
        match outcome {
            Ok(()) => {
                self.trace_commit(batch);
                self.observe(|observer| observer.committed(batch));
            }
            Err(CommitError::Unknown(why)) => {
                self.event(Source::Disk, "commit.unknown", None, 0, || format!("a commit's outcome is unknown: {why}"));
                self.observe(|observer| observer.unknown_commits.push(batch.clone()));
            }
            Err(refused) => {
                let moves_cursor = batch.writes.iter().any(|write| matches!(write, Write::Cursor { .. }));
                if moves_cursor && matches!(refused, CommitError::Conflict { .. }) {
                    self.observe(|observer| observer.cursor_refused());
                }
                self.event(Source::Disk, "commit.refused", None, 0, || format!("a commit is refused: {refused}"));
                self.mark("a stale or repeated write is refused");
                self.observe(|observer| observer.refused_commit(batch, refused));
            }
        }
    }

    /// Records what a durable batch changes in the trace.
    pub(crate) fn trace_commit(&self, batch: &Batch) {
        for write in &batch.writes {
            match write {
                Write::Payment { payment, .. } => self.trace_payment(payment),
                Write::Cursor { cursor, .. } => {
                    let block_num = cursor.block_id.number();
                    self.event(Source::Scanner, "cursor", None, u64::from(block_num), || {
                        format!("the cursor is at block {block_num}")
                    });
                }
                Write::Attempt { attempt, delivery } => self.trace_attempt(attempt, self.session(delivery.payment)),
                Write::Reconciliation { day, .. } => self.trace_reconciliation(day),
                Write::Unmatched(unmatched) => self.trace_unmatched(unmatched),
                _ => {}
            }
        }
    }

    fn trace_payment(&self, payment: &Payment) {
        let session = self.session(payment.id);
        let detail = (payment.version << 8) | payment.state as u64;
        self.event(Source::Session, "stored", session, detail, || describe_payment(payment, session));
        if payment.state == State::Completed && payment.previous_state == Some(State::Processing) {
            self.mark("a payment that was lost by a restore is found again");
        }
    }

    fn trace_attempt(&self, attempt: &Attempt, session: Option<u32>) {
        self.event(Source::Webhook, "attempt", session, u64::from(attempt.number), || {
            let next = attempt.next_attempt_at.map_or("the last".to_owned(), |at| format!("next at {at}"));
            format!("attempt {} is recorded as {}, {next}", attempt.number, attempt.outcome.as_str())
        });
    }

    fn trace_reconciliation(&self, day: &Day) {
        self.event(Source::Scanner, "reconciliation", None, day.operations, || {
            format!(
                "the reconciliation of the day to {} is {}: {} accounts with {} operations, {} without a history",
                day.to,
                day.outcome().as_str(),
                day.accounts,
                day.operations,
                day.unchecked
            )
        });
    }

    fn trace_unmatched(&self, unmatched: &Unmatched) {
        let transfer = &unmatched.transfer;
        let session = self.session_of_tx(transfer.tx_id);
        self.event(Source::Scanner, "unmatched", session, transfer.money.units, || {
            let (tx_id, money, reason) = (transfer.tx_id, transfer.money, unmatched.reason.as_str());
            format!("{tx_id} over {money} matches no session: {reason}")
        });
    }
}

fn describe_payment(payment: &Payment, session: Option<u32>) -> String {
    let state = payment.state;
    let money = if payment.transfers.is_empty() {
        String::new()
    } else {
        let (paid, wanted, seen) = (payment.paid_units(), payment.amount.units, payment.seen_units());
        format!(", {paid} of {wanted} units final, {seen} seen")
    };
    let claim = payment.claim.as_ref().map_or("", |_| ", claim open");
    let name = match session {
        // Its number is known once its creator has the response.
        None if payment.version == 1 => "a new session".to_owned(),
        known => name_of(known),
    };
    let exceptions: Vec<_> = payment.exceptions().iter().map(|exception| exception.as_str()).collect();
    let exceptions =
        if exceptions.is_empty() { String::new() } else { format!(", exceptions {}", exceptions.join(", ")) };
    format!("{name} is {state} (version {}{money}{exceptions}{claim})", payment.version)
}
