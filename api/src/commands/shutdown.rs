//! Graceful shutdown: termination signals, and their propagation to the tasks of the process.

use std::future::Future;

use tokio::{
    signal::unix::{self, SignalKind},
    sync::watch,
};
use tracing::info;

/// A shutdown request that tasks can wait for.
#[derive(Debug)]
pub(super) struct Shutdown(watch::Sender<bool>);

impl Shutdown {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Returns a future that resolves when the shutdown is requested.
    pub(super) fn requested(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut requested = self.0.subscribe();
        async move {
            // Fails only if the sender is dropped, at the exit of the process.
            let _ = requested.wait_for(|requested| *requested).await;
        }
    }

    /// Requests the shutdown.
    pub(super) fn request(&self) {
        self.0.send_replace(true);
    }
}

/// Ignores SIGHUP, which is sent by a closed terminal and by `systemctl reload`.
pub(super) fn ignore_hangup() {
    let Ok(mut hangup) = unix::signal(SignalKind::hangup()) else { return };
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            info!("SIGHUP ignored: restart to change settings");
        }
    });
}

/// Waits for SIGINT or SIGTERM.
pub(super) async fn signal() {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (unix::signal(SignalKind::interrupt()), unix::signal(SignalKind::terminate()))
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
