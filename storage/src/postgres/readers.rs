//! The connections that reads share: statements of several callers are pipelined on each.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use tokio_postgres::Row;

use crate::postgres::{
    commit::writers::Shared,
    connection::{Connection, Parameters},
    fault::Fault,
};

/// Connections for reads.
#[derive(Debug)]
pub(crate) struct Readers {
    shared: Arc<Shared>,
    places: Vec<Place>,
    next: AtomicUsize,
    /// Number of damaged records that were found.
    damaged: AtomicU64,
}

#[derive(Debug)]
struct Place {
    connection: Mutex<Option<Arc<Connection>>>,
    /// Locked while the connection is reestablished.
    opening: tokio::sync::Mutex<()>,
}

impl Readers {
    /// Shares connections.
    pub(crate) fn of(connections: Vec<Connection>, shared: Arc<Shared>) -> Self {
        let place = |connection| Place {
            connection: Mutex::new(Some(Arc::new(connection))),
            opening: tokio::sync::Mutex::default(),
        };
        let places = connections.into_iter().map(place).collect();
        Self { shared, places, next: AtomicUsize::new(0), damaged: AtomicU64::new(0) }
    }

    /// Returns a connection, which is reestablished if it was lost.
    ///
    /// # Errors
    /// [`Fault::Lost`] if the database is unreachable.
    pub(crate) async fn connection(&self) -> Result<Arc<Connection>, Fault> {
        let place = &self.places[self.next.fetch_add(1, Ordering::Relaxed) % self.places.len()];
        if let Some(connection) = place.current() {
            return Ok(connection);
        }
        let _opening = place.opening.lock().await;
        if let Some(connection) = place.current() {
            return Ok(connection);
        }
        let connection = Arc::new(self.shared.connect().await?);
        *place.connection.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// Runs a statement that only reads, again on another connection if one was lost: all of them may be.
    ///
    /// # Errors
    /// See [`Fault`].
    pub(crate) async fn query(&self, sql: &str, parameters: &Parameters<'_>) -> Result<Vec<Row>, Fault> {
        for _ in 0..self.places.len() {
            let connection = self.connection().await?;
            match connection.query(sql, parameters).await {
                Err(Fault::Lost(_) | Fault::Unusable(_)) => self.forget(&connection),
                // Repeated, it would take as long, on every connection.
                Err(fault @ Fault::TimedOut(_)) => {
                    self.forget(&connection);
                    return Err(fault);
                }
                Err(Fault::Busy(_) | Fault::Contended(_)) => {}
                read => return read,
            }
        }
        self.connection().await?.query(sql, parameters).await
    }

    /// Drops a lost connection and all closed ones.
    fn forget(&self, lost: &Arc<Connection>) {
        for place in &self.places {
            let mut connection = place.connection.lock().unwrap_or_else(PoisonError::into_inner);
            connection.take_if(|connection| Arc::ptr_eq(connection, lost) || connection.is_closed());
        }
    }

    /// Skips a damaged record, which is counted and logged.
    ///
    /// # Errors
    /// Every other fault.
    pub(crate) fn pass<T>(&self, read: Result<T, Fault>) -> Result<Option<T>, Fault> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(fault @ Fault::Damaged { .. }) => {
                self.note(&fault);
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    /// Counts a damaged record.
    pub(crate) fn note(&self, fault: &Fault) {
        if matches!(fault, Fault::Damaged { .. }) {
            tracing::error!(%fault, "{fault}");
            self.damaged.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of damaged records that were found.
    pub(crate) fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }
}

impl Place {
    fn current(&self) -> Option<Arc<Connection>> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        connection.as_ref().filter(|connection| !connection.is_closed()).map(Arc::clone)
    }
}
