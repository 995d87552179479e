//! Damaged rows: detected when read, never returned, counted, and logged once each.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
};

use crate::embedded::fault::Fault;

/// Maximum number of rows tracked individually. Further ones are counted each time they are read.
const MAX_TRACKED_ROWS: usize = 10_000;

/// The metric's label.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct TableLabel {
    table: &'static str,
}

/// The damaged rows found since the store was opened.
#[derive(Debug, Clone, Default)]
pub(crate) struct DamagedRows {
    seen: Arc<Mutex<BTreeSet<(&'static str, String)>>>,
    pub(crate) counter: Family<TableLabel, Counter>,
}

impl DamagedRows {
    /// Starts without damaged rows, with a counter for each table.
    pub(crate) fn none_of(tables: &[&'static str]) -> Self {
        let damages = Self::default();
        for table in tables {
            drop(damages.counter.get_or_create(&TableLabel { table }));
        }
        damages
    }

    /// Records a damaged row; returns whether it is new.
    pub(crate) fn note(&self, table: &'static str, key: &str, why: &str) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let row = (table, key.to_owned());
        if seen.contains(&row) {
            return false;
        }
        if seen.len() < MAX_TRACKED_ROWS {
            seen.insert(row);
        }
        drop(seen);
        self.counter.get_or_create(&TableLabel { table }).inc();
        tracing::error!(table, key, why, "damaged row, not served: {table} {key}: {why}");
        true
    }

    /// Records the row of a fault.
    pub(crate) fn note_fault(&self, fault: &Fault) {
        if let Fault::Damaged { table, key, why } = fault {
            self.note(table, key, why);
        }
    }

    /// Returns the number of damaged rows found.
    pub(crate) fn count(&self) -> u64 {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }

    /// Turns a damaged row into `None` and records it.
    pub(crate) fn skip_damaged<T>(&self, read: Result<T, Fault>) -> Result<Option<T>, Fault> {
        match read {
            Ok(row) => Ok(Some(row)),
            Err(fault @ Fault::Damaged { .. }) => {
                self.note_fault(&fault);
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }
}
