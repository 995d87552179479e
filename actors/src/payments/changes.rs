//! Finds watched or followed payments that another engine has changed: their versions are read every second. An
//! exclusive engine reads nothing.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use engine::{ids::PaymentId, mutant};
use ractor::ActorRef;
use tokio::sync::oneshot;

use crate::{context::Context, payments::messages::RegistryMsg};

/// Interval between two reads.
const INTERVAL: Duration = Duration::from_secs(1);

/// Makes sessions read their payment again after another engine changed it.
pub(crate) async fn find(context: Arc<Context>, registry: ActorRef<RegistryMsg>) {
    let mut known = BTreeMap::<PaymentId, u64>::new();
    loop {
        tokio::time::sleep(INTERVAL).await;
        if context.duties.is_alone() || mutant!("changes-elsewhere-unseen") {
            known.clear();
            continue;
        }
        let (reply, followed) = oneshot::channel();
        if registry.cast(RegistryMsg::Followed(reply)).is_err() {
            return;
        }
        let Ok(followed) = followed.await else { return };
        if followed.is_empty() {
            known.clear();
            continue;
        }
        match context.env.store.versions(followed).await {
            Ok(versions) => {
                // A session that was unknown may have changed since its watcher read it.
                for (id, _) in versions.iter().filter(|(id, version)| known.get(id) != Some(version)) {
                    let _ = registry.cast(RegistryMsg::Refresh(*id));
                }
                known = versions.into_iter().collect();
            }
            Err(error) => context.read_failed(&error),
        }
    }
}
