//! Replays of webhooks: what they must send, and for which times they are refused.

use actors::Replayed;
use engine::{ids::DeliveryId, time::Timestamp, webhook::DeliveryRecord};

use super::*;
use crate::model::StoreModel;

const INVARIANT: &str = "replays-are-complete";
/// Maximum age of replayed events.
const FARTHEST: Duration = Duration::from_secs(30 * 86_400);
/// Deliveries that one call replays at most.
const MOST: usize = 10_000;

/// Checks the times for which a replay is refused: those that are not within the last 30 days.
pub(super) fn check_limits(sim: &Simulation, engine: &Running) {
    let (now, step) = (engine.now(), Duration::from_millis(1));
    let oldest = now.minus(FARTHEST);
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
            let text = format!("at {now} a replay since {since} should be accepted: {is_right}");
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
        own.cloned().collect()
    })
}

/// Checks that a replay has sent what it must, and whether it says that there is more.
pub(super) fn check(sim: &Simulation, undelivered: &[DeliveryRecord], replayed: Replayed) {
    sim.observe(|observer| {
        // The model is of a single engine, and what is damaged is left out.
        if observer.has_several_engines || observer.was_damaged {
            return;
        }
        let left = undelivered.iter().find(|record| {
            let now = observer.model.deliveries.get(&record.delivery.id);
            now.is_some_and(|now| now.delivery == record.delivery && now.state == record.state)
        });
        if let Some(record) = left.filter(|_| !replayed.has_more) {
            let text = format!("{} was not delivered, and is not sent by a replay", record.delivery.id);
            observer.violate(INVARIANT, text, Some(record.delivery.payment));
        } else if replayed.has_more && replayed.count < MOST {
            observer.violate(INVARIANT, format!("after {} deliveries more are left", replayed.count), None);
        } else {
            observer.passes(INVARIANT);
        }
    });
}
