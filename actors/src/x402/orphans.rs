//! Adopts the claims of stopped engines: the engine that scans the ledger searches for claims that no engine follows.
//!
//! A claim does not record its follower. Claims old enough to belong to an engine that stopped renewing its lease are
//! followed here, too: broadcasting the same bytes twice pays once.

use std::{sync::Arc, time::Duration};

use engine::mutant;
use ractor::ActorRef;
use storage::{Duty, ReadError};
use tokio::sync::Notify;

use crate::{context::Context, payments::messages::RegistryMsg, x402::claims::FacilitatorMsg};

/// Leases between two searches without a trigger.
const IDLE_LEASES: u32 = 10;

/// Searches for claims without a follower: when an engine has stopped or this one has taken duties, a lease later, and
/// periodically.
pub(crate) async fn adopt(
    context: Arc<Context>,
    registry: ActorRef<RegistryMsg>,
    facilitator: ActorRef<FacilitatorMsg>,
    reason: Arc<Notify>,
) {
    let lease = context.settings.lease();
    let mut wait = lease;
    loop {
        // A new trigger is handled at once; claims of an engine that stopped gracefully are old enough after a lease.
        wait = match tokio::time::timeout(wait, reason.notified()).await {
            Ok(()) => lease,
            Err(_) => lease * IDLE_LEASES,
        };
        if context.duties.held(Duty::Scanner).is_none() || mutant!("orphans-not-adopted") {
            continue;
        }
        if let Err(error) = look(&context, &registry, &facilitator, lease).await {
            context.read_failed(&error);
            wait = lease;
        }
    }
}

async fn look(
    context: &Context,
    registry: &ActorRef<RegistryMsg>,
    facilitator: &ActorRef<FacilitatorMsg>,
    lease: Duration,
) -> Result<(), ReadError> {
    let store = &context.env.store;
    // An engine crashes after its last renewal: its claims are nearly a lease old when its lease has expired.
    let claimed_before = context.now().minus(lease / 4 * 3);
    for id in store.in_flight().await? {
        let Some(payment) = context.sound(store.payment(id).await)?.flatten() else { continue };
        if payment.claim.as_ref().is_some_and(|claim| claim.claimed_at <= claimed_before) {
            let _ = registry.cast(RegistryMsg::Refresh(id));
        }
    }
    for claimed in store.open_facilitations().await? {
        if claimed.at <= claimed_before {
            let _ = facilitator.cast(FacilitatorMsg::Adopt(Box::new(claimed)));
        }
    }
    Ok(())
}
