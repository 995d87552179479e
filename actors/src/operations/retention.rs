//! Deletes personal data of payments after the configured retention: metadata and notes.

use std::time::Duration;

use engine::{
    audit::{Actor, Entry},
    ids::PaymentId,
    mutant,
    payment::{Command, Payment},
    time::Timestamp,
};

use crate::{
    context::Context,
    payments::{
        handle::Payments,
        messages::{Order, RegistryMsg},
    },
};

/// Interval of complete passes over all payments.
const INTERVAL: Duration = Duration::from_secs(86_400);
/// Time after which a pass that could not delete something is repeated.
const RETRY_INTERVAL: Duration = Duration::from_secs(120);
/// Payments per read, and reads per run; the next run continues.
const AT_ONCE: usize = 500;
const READS: usize = 20;

/// The position of the current pass.
#[derive(Debug)]
pub(crate) struct Pass {
    after: PaymentId,
    next_at: Timestamp,
    has_failed: bool,
}

impl Pass {
    /// Starts at a time.
    pub(crate) const fn starting(next_at: Timestamp) -> Self {
        Self { after: PaymentId::from_bits(0), next_at, has_failed: false }
    }

    /// Deletes expired data of the next payments.
    pub(crate) async fn go_on(&mut self, context: &Context, payments: &Payments) {
        let settings = &context.settings;
        if (settings.metadata_retention.is_none() && settings.note_retention.is_none()) || context.now() < self.next_at
        {
            return;
        }
        for _ in 0..READS {
            let page = match context.env.store.payments_after(self.after, AT_ONCE).await {
                Ok(page) => page,
                Err(error) => return context.read_failed(&error),
            };
            for payment in &page.items {
                for (command, action) in over(context, payment) {
                    self.has_failed |= !delete(context, payments, payment, command, action).await;
                }
            }
            let Some(last) = page.next else {
                let interval = if self.has_failed { RETRY_INTERVAL } else { INTERVAL };
                *self = Self::starting(context.now() + interval);
                return;
            };
            self.after = PaymentId::from_bits(last);
        }
    }
}

/// Returns the data of a payment to delete, and the audit action.
fn over(context: &Context, payment: &Payment) -> impl Iterator<Item = (Command, &'static str)> {
    let (now, settings) = (context.now(), &context.settings);
    let is_over = |since: Timestamp, kept: Option<Duration>| kept.is_some_and(|kept| since + kept <= now);
    let metadata = !payment.metadata.is_empty()
        && payment.state.is_terminal()
        && is_over(
            if mutant!("metadata-deleted-early") { payment.created_at } else { payment.updated_at },
            settings.metadata_retention,
        );
    let note = payment.resolution.as_ref().is_some_and(|resolution| {
        !resolution.note.is_empty()
            && is_over(resolution.at, settings.note_retention)
            && !mutant!("notes-kept-for-ever")
    });
    let metadata = metadata.then_some((Command::DeleteMetadata, "payment_metadata_deleted"));
    metadata.into_iter().chain(note.then_some((Command::DeleteNote, "payment_note_deleted")))
}

/// Deletes data of a payment, and returns whether it is gone.
async fn delete(context: &Context, payments: &Payments, payment: &Payment, command: Command, action: &str) -> bool {
    let id = payment.id;
    let (mut order, response) = Order::awaited(command);
    order.audit_entry = Some(Box::new(Entry {
        seq: 0,
        at: context.now(),
        actor: Actor::default(),
        action: action.to_owned(),
        merchant: payment.merchant,
        subject: Some(id.to_string()),
        changes: Vec::new(),
    }));
    if payments.registry().cast(RegistryMsg::Order(id, order)).is_err() {
        return false;
    }
    match response.await {
        Ok(Ok(_)) => {
            tracing::info!(payment.id = %id, action, "retention of payment {id} ended: {action}");
            true
        }
        Ok(Err(error)) => {
            tracing::debug!(payment.id = %id, %error, "nothing deleted from payment {id}: {error}");
            false
        }
        Err(_) => false,
    }
}
