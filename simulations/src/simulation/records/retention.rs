//! Retention: checks that expired records are deleted.

use super::*;

impl Simulation {
    /// Checks that nothing is kept beyond its retention once the engine had the time to delete it.
    pub(in crate::simulation) async fn check_retention(&self, store: &EmbeddedStore) -> Result<(), ReadError> {
        // A restore brings back deleted records.
        let restored_ms = self.observe(|observer| observer.restored_ms);
        let since_ms = restored_ms.max(self.processes[0].booted_ms.load(Ordering::Relaxed));
        let up_ms = self.now_ms().saturating_sub(since_ms);
        if up_ms < 900_000 || self.observe(|observer| observer.was_damaged) {
            return Ok(());
        }
        let now = self.wall_of(&self.processes[0]);
        let limit = |kept: Duration| now.minus(kept + Duration::from_millis(up_ms.min(900_000)));
        let settings = self.engine_settings();
        // Retention runs some minutes after a start, and then once a day.
        let looked_at = now.minus(Duration::from_millis(up_ms)) + Duration::from_secs(280);
        self.observe(|observer| {
            let overdue =
                observer.payments.values().find_map(|known| overdue_deletion(&known.payment, &settings, looked_at));
            match overdue {
                Some((what, id)) => observer.violate("retention-ends", format!("{what} is still kept"), Some(id)),
                None => observer.passes("retention-ends"),
            }
        });
        let beyond = [
            ("an idempotency key", store.oldest_key().await?, limit(KEY_LIFETIME)),
            ("an event", store.oldest_event().await?, limit(settings.event_retention)),
        ];
        self.observe(|observer| {
            for (what, oldest, limit) in beyond {
                match oldest.filter(|oldest| *oldest < limit) {
                    Some(oldest) => {
                        observer.violate("retention-ends", format!("{what} of {oldest} is still kept"), None);
                    }
                    None => observer.passes("retention-ends"),
                }
            }
        });
        Ok(())
    }
}

/// Returns the records of a payment that should have been deleted before a time.
fn overdue_deletion(
    payment: &engine::payment::Payment,
    settings: &actors::Settings,
    before: Timestamp,
) -> Option<(&'static str, PaymentId)> {
    let is_over = |since: Timestamp, kept: Option<Duration>| kept.is_some_and(|kept| since + kept < before);
    let has_metadata = !payment.metadata.is_empty() && payment.state.is_terminal();
    if has_metadata && is_over(payment.updated_at, settings.metadata_retention) {
        return Some(("the metadata", payment.id));
    }
    let decision = payment.resolution.as_ref().filter(|decision| !decision.note.is_empty())?;
    is_over(decision.at, settings.note_retention).then_some(("the note of a decision", payment.id))
}
