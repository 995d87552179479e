//! Replays of webhooks: which deliveries they must send, and which times they must refuse.

use actors::Replayed;
use engine::{ids::DeliveryId, time::Timestamp, webhook::DeliveryRecord};

use super::*;
use crate::model::StoreModel;

const INVARIANT: &str = "replays-are-complete";
/// Maximum age of replayed events.
const MAX_AGE: Duration = Duration::from_secs(30 * 86_400);
/// Maximum number of deliveries that one call replays.
const MAX_REPLAYED: usize = 10_000;

/// Checks the times for which a replay is refused: those that are not within the last 30 days.
pub(super) fn check_limits(sim: &Simulation, engine: &Running) {
    let (now, step) = (engine.now(), Duration::from_millis(1));
    let oldest = now.minus(MAX_AGE);
    let times = [(now, true), (now + step, false), (oldest, true), (oldest.minus(step), false)];
    let wrong = times.iter().find(|(since, is_right)| {
        let response = engine.webhooks.check_replay("since", *since);
        match response {
            Ok(()) => !is_right,
            Err(error) => *is_right || !matches!(error, EngineError::Invalid(_)),
        }
    });
    sim.observe(|observer| match wrong {
        None => observer.passes(INVARIANT),
        Some((since, is_right)) => {
            let text =
                format!("at {now} a replay since {since} must be {}", if *is_right { "accepted" } else { "refused" });
            observer.violate(INVARIANT, text, None);
        }
    });
}

/// Returns the deliveries that a replay must send.
pub(super) fn undelivered(sim: &Simulation, merchant: MerchantId, since: Timestamp) -> Vec<DeliveryRecord> {
    let first = DeliveryId::from_bits(u128::from(since.millis()) << 80);
    sim.observe(|observer| {
        let later = observer.model.deliveries.range(first..).map(|(_, record)| record);
        let own = later.filter(|record| record.delivery.merchant == merchant && StoreModel::is_replayable(record));
        // What was for a deleted endpoint is never sent.
        let known = observer.merchants.get(&merchant);
        let has_endpoint =
            |record: &&DeliveryRecord| known.is_some_and(|known| known.target(record.delivery.endpoint).is_some());
        own.filter(has_endpoint).cloned().collect()
    })
}

/// Checks that a replay sent every undelivered event, or reports that there are more.
pub(super) fn check(sim: &Simulation, undelivered: &[DeliveryRecord], replayed: Replayed) {
    sim.observe(|observer| {
        // The model follows a single engine, and damaged records are not sent.
        if observer.has_several_engines || observer.was_damaged {
            return;
        }
        let left = undelivered.iter().find(|record| {
            let now = observer.model.deliveries.get(&record.delivery.id);
            let owner = observer.merchants.get(&record.delivery.merchant);
            let is_deleted = owner.is_none_or(|owner| owner.target(record.delivery.endpoint).is_none());
            !is_deleted && now.is_some_and(|now| now.delivery == record.delivery && now.state == record.state)
        });
        if let Some(record) = left.filter(|_| !replayed.has_more) {
            let text = format!("{} is undelivered, and a replay does not send it", record.delivery.id);
            observer.violate(INVARIANT, text, Some(record.delivery.payment));
        } else if replayed.has_more && replayed.count < MAX_REPLAYED {
            observer.violate(
                INVARIANT,
                format!("a replay of {} deliveries reports that there are more", replayed.count),
                None,
            );
        } else {
            observer.passes(INVARIANT);
        }
    });
}
