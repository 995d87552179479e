//! What the actors of one tree share: the environment, the settings, the metrics, the time, and how to give up.

use std::sync::{Arc, Mutex, PoisonError};

use engine::{mutant, time::Timestamp};
use storage::{CommitError, EngineId, ReadError, Store};
use tokio::sync::Notify;

use crate::{
    clock::EngineClock, duties::held::Duties, environment::Environment, metrics::Metrics, settings::Settings,
    store_client::StoreClient,
};

/// The state that the actors of one tree share.
pub(crate) struct Context {
    pub(crate) env: Environment,
    pub(crate) settings: Settings,
    pub(crate) metrics: Metrics,
    pub(crate) clock: EngineClock,
    pub(crate) fatal: Arc<Fatal>,
    /// The store of the environment, which `env.store` is, too.
    pub(crate) store: Arc<StoreClient>,
    /// The duties that this engine holds.
    pub(crate) duties: Arc<Duties>,
}

impl Context {
    /// Wraps the environment; its store is replaced by the client that retries and resolves.
    pub(crate) fn new(env: Environment, settings: Settings) -> Arc<Self> {
        let clock = EngineClock::new(Arc::clone(&env.clock));
        let (metrics, fatal) = (Metrics::default(), Arc::<Fatal>::default());
        let engine = env.store.is_shared().then(|| EngineId::from_bits(u64::from_be_bytes(env.entropy.bytes())));
        let duties = Arc::new(match engine {
            Some(engine) => Duties::of(engine, Arc::clone(&env.clock), metrics.duties.clone()),
            None => Duties::all(metrics.duties.clone()),
        });
        let store = Arc::new(StoreClient::new(
            Arc::clone(&env.store),
            Arc::clone(&env.entropy),
            engine,
            settings.store_timeout,
            Arc::clone(&fatal),
            metrics.store.clone(),
        ));
        let env = Environment { store: Arc::clone(&store) as Arc<dyn Store>, ..env };
        Arc::new(Self { env, settings, metrics, clock, fatal, store, duties })
    }

    /// Returns the engine's time: the later of the wall clock and the newest head block.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Logs and counts a jump of the wall clock since this was last called.
    pub(crate) fn watch_clock(&self) {
        if let Some(jump) = self.clock.jump() {
            self.metrics.clock_jumps.inc();
            let (seconds, way) = (jump.by.as_secs(), if jump.is_back { "back" } else { "ahead" });
            tracing::warn!(seconds, way, "system clock jumped {way} by {seconds} s: check time synchronization");
        }
    }

    /// Handles a failed read: an unreadable disk stops the engine; a damaged row or an unreachable store fails only its
    /// caller. The store has already logged it.
    pub(crate) fn read_failed(&self, error: &ReadError) {
        match error {
            ReadError::Failed(_) if mutant!("read-error-ignored") => {}
            ReadError::Failed(_) => self.fatal.raise(error.to_string()),
            ReadError::Unavailable(_) => tracing::debug!(%error, "{error}"),
            ReadError::Damaged { .. } if mutant!("damaged-row-is-fatal") => self.fatal.raise(error.to_string()),
            ReadError::Damaged { .. } => tracing::debug!(%error, "{error}"),
        }
    }

    /// Returns `None` for a damaged row; passes on any other read error.
    pub(crate) fn sound<T>(&self, read: Result<T, ReadError>) -> Result<Option<T>, ReadError> {
        match read {
            Ok(row) => Ok(Some(row)),
            Err(ReadError::Damaged { .. }) if !mutant!("damaged-row-blocks") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Handles a failed commit of a background task, which retries later: a duty that another engine took is no longer
    /// held. The client of the store has stopped the process if necessary.
    pub(crate) fn commit_failed(&self, error: &CommitError) {
        if let CommitError::Deposed(duty) = error {
            self.duties.lost(*duty);
        }
        tracing::debug!(%error, "{error}");
    }
}

/// The signal that stops the process after a fatal error.
#[derive(Debug, Default)]
pub(crate) struct Fatal {
    why: Mutex<Option<String>>,
    raised: Notify,
}

impl Fatal {
    pub(crate) fn raise(&self, why: String) {
        let mut first = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        // Calls in flight fail for the same reason; only the first is logged.
        if first.is_none() {
            tracing::error!(%why, "engine shuts down: {why}");
            *first = Some(why);
        }
        drop(first);
        self.raised.notify_waiters();
    }

    /// Waits for a fatal error and returns its message; supports any number of waiters.
    pub(crate) async fn raised(&self) -> String {
        loop {
            let raised = self.raised.notified();
            let seen = self.why.lock().unwrap_or_else(PoisonError::into_inner).clone();
            match seen {
                Some(why) => return why,
                None => raised.await,
            }
        }
    }
}
