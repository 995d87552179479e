//! Adopts the claims of engines that have gone: whoever reads the ledger looks for claims that nobody follows.
//!
//! A claim does not say who follows it. Those that are old enough to be of an engine which stopped renewing its lease are followed
//! here, too: broadcasting the same bytes twice pays once.

use std::{sync::Arc, time::Duration};

use engine::mutant;
use ractor::ActorRef;
use storage::{Duty, ReadError};
use tokio::sync::Notify;

use crate::{context::Context, payments::messages::RegistryMsg, x402::claims::FacilitatorMsg};

/// Leases between two looks without a reason.
const IDLE_LEASES: u32 = 10;

/// Looks for claims that nobody follows, when an engine has gone or this one has taken duties, a lease later again, and now and
/// then.
pub(crate) async fn adopt(
    context: Arc<Context>,
    registry: ActorRef<RegistryMsg>,
    facilitator: ActorRef<FacilitatorMsg>,
    reason: Arc<Notify>,
) {
    let lease = context.settings.lease();
    let mut wait = lease;
    loop {
        // A new reason is looked at at once; what an engine that stopped in order has left is old enough after a lease.
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
    // An engine dies after its last renewal: what it claimed is nearly a lease old when its lease has expired.
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
