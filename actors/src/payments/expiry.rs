//! Expires payments when due, outside of the registry, which never waits for a read.

use std::sync::Arc;

use engine::{mutant, payment::Command, time::Timestamp};
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use ractor::ActorRef;
use storage::ReadError;
use tokio::sync::watch;

use crate::{
    context::Context,
    payments::{
        messages::{Answer, Order, RegistryMsg},
        waiting,
    },
};

/// Concurrent expiries: each activates an actor, and a million due payments must not become a million actors.
const MAX_EXPIRING: usize = 128;

/// Expires due payments each time `irreversible` is set, up to that block time.
pub(crate) async fn sweep(
    context: Arc<Context>,
    registry: ActorRef<RegistryMsg>,
    mut irreversible: watch::Receiver<Timestamp>,
) {
    let mut under_way = FuturesUnordered::new();
    // A crash may have ended an earlier sweep.
    irreversible.mark_changed();
    while irreversible.changed().await.is_ok() {
        let to = *irreversible.borrow_and_update();
        if mutant!("expiry-not-swept") {
            continue;
        }
        // The next sweep starts from the earliest deadline again: a payment that was refused now may expire later.
        if let Err(error) = expire_until(to, &context, &registry, &mut under_way).await {
            context.read_failed(&error);
        }
    }
}

async fn expire_until(
    to: Timestamp,
    context: &Context,
    registry: &ActorRef<RegistryMsg>,
    under_way: &mut FuturesUnordered<Answer>,
) -> Result<(), ReadError> {
    let mut after = None;
    loop {
        while under_way.len() > MAX_EXPIRING / 2 {
            under_way.next().await;
        }
        let due = context.env.store.due(to, after, MAX_EXPIRING - under_way.len()).await?;
        let Some(last) = due.last() else { return Ok(()) };
        after = Some(*last);
        let awaited = waiting::awaited(context, due.iter().map(|(_, id)| *id)).await?;
        // A transfer that waits for a payment is credited first; a later sweep expires the payment if it is not enough.
        for (_, id) in due.into_iter().filter(|(_, id)| !awaited.contains(id)) {
            let (order, answer) = Order::awaited(Command::Expire { irreversible_time: to });
            // If the registry has stopped, it drops the command, which ends the wait.
            let _ = registry.cast(RegistryMsg::Order(id, order));
            under_way.push(answer);
        }
    }
}
