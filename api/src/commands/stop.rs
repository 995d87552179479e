//! The end of a process: what asks for it, and how its parts hear of it.

use std::future::Future;

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};
use tracing::info;

/// Told to every part that must end.
#[derive(Debug)]
pub(super) struct Stop(watch::Sender<bool>);

impl Stop {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Returns a future that is done when it is time to end.
    pub(super) fn heard(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut told = self.0.subscribe();
        async move {
            // A sender that is gone is a process that ends anyway.
            let _ = told.wait_for(|told| *told).await;
        }
    }

    /// Tells everybody.
    pub(super) fn tell(&self) {
        self.0.send_replace(true);
    }
}

/// Keeps SIGHUP, which a closed terminal and `systemctl reload` send, from ending the process.
pub(super) fn survive_hangup() {
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            info!("SIGHUP ignored: restart to change settings");
        }
    });
}

/// Waits until the process is asked to end: SIGINT or SIGTERM.
pub(super) async fn asked() {
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    let name = tokio::select! {
        biased;
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    };
    info!("{name}: stopping");
}
