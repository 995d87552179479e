//! A connection to a database that several engines share: it can be cut, and loses the responses to commits on request.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use futures_util::future::BoxFuture;
use storage::{Batch, Call, CommitError, CommitId, ReadError, Resolution, Store, Wrapped};

/// What becomes of a commit whose answer is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The database has applied it.
    Applied,
    /// It never reached the database.
    NotApplied,
    /// It reaches the database when the connection delivers what is late.
    Late,
    /// The database has applied it, and the connection is cut with the answer.
    Cut,
}

/// A connection of one engine.
pub(crate) struct Connection {
    database: Arc<dyn Store>,
    is_cut: AtomicBool,
    /// What becomes of the next commits.
    losses: Mutex<VecDeque<Lost>>,
    late: Mutex<Vec<Batch>>,
    resolved: AtomicU32,
}

impl Connection {
    pub(crate) fn to(database: &Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            database: Arc::clone(database),
            is_cut: AtomicBool::new(false),
            losses: Mutex::default(),
            late: Mutex::default(),
            resolved: AtomicU32::new(0),
        })
    }

    /// Makes the database unavailable, or available again.
    pub(crate) fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::SeqCst);
    }

    /// Loses the answer to a coming commit.
    pub(crate) fn lose(&self, lost: Lost) {
        self.losses.lock().unwrap().push_back(lost);
    }

    /// Delivers the commits that are late; returns what came of them.
    pub(crate) async fn deliver_late(&self) -> Vec<Result<(), CommitError>> {
        let late = std::mem::take(&mut *self.late.lock().unwrap());
        let mut outcomes = Vec::new();
        for batch in late {
            outcomes.push(self.database.commit(batch).await);
        }
        outcomes
    }

    /// Returns how many outcomes were resolved.
    pub(crate) fn resolved(&self) -> u32 {
        self.resolved.load(Ordering::SeqCst)
    }

    fn why(&self) -> Option<String> {
        self.is_cut.load(Ordering::SeqCst).then(|| "connection refused".to_owned())
    }
}

impl Wrapped for Connection {
    type Inner = dyn Store;

    fn inner(&self) -> &dyn Store {
        &*self.database
    }

    fn before(&self, _call: &Call<'_>) -> Result<(), ReadError> {
        self.why().map_or(Ok(()), |why| Err(ReadError::Unavailable(why)))
    }
}

impl Store for Connection {
    fn is_shared(&self) -> bool {
        true
    }

    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<(), CommitError>> {
        Box::pin(async move {
            if let Some(why) = self.why() {
                return Err(CommitError::Unavailable(why));
            }
            let lost = self.losses.lock().unwrap().pop_front();
            match lost {
                None => return self.database.commit(batch).await,
                Some(Lost::Applied) => self.database.commit(batch).await.expect("a commit that nothing refuses"),
                Some(Lost::Cut) => {
                    self.database.commit(batch).await.expect("a commit that nothing refuses");
                    self.cut(true);
                }
                Some(Lost::NotApplied) => {}
                Some(Lost::Late) => self.late.lock().unwrap().push(batch),
            }
            Err(CommitError::Unknown("connection reset".to_owned()))
        })
    }

    fn resolve(&self, id: CommitId) -> BoxFuture<'_, Result<Resolution, CommitError>> {
        if let Some(why) = self.why() {
            return Box::pin(async { Err(CommitError::Unavailable(why)) });
        }
        self.resolved.fetch_add(1, Ordering::SeqCst);
        self.database.resolve(id)
    }
}
