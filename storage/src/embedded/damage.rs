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
const REMEMBERED: usize = 10_000;

/// The metric's label.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct InTable {
    table: &'static str,
}

/// The damaged rows found since the store was opened.
#[derive(Debug, Clone, Default)]
pub(crate) struct Damages {
    met: Arc<Mutex<BTreeSet<(&'static str, String)>>>,
    pub(crate) counter: Family<InTable, Counter>,
}

impl Damages {
    /// Starts without damaged rows, with a counter for each table.
    pub(crate) fn none_of(tables: &[&'static str]) -> Self {
        let damages = Self::default();
        for table in tables {
            drop(damages.counter.get_or_create(&InTable { table }));
        }
        damages
    }

    /// Records a damaged row; returns whether it is new.
    pub(crate) fn note(&self, table: &'static str, key: &str, why: &str) -> bool {
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        let row = (table, key.to_owned());
        if met.contains(&row) {
            return false;
        }
        if met.len() < REMEMBERED {
            met.insert(row);
        }
        drop(met);
        self.counter.get_or_create(&InTable { table }).inc();
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
        self.met.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }

    /// Turns a damaged row into `None` and records it.
    pub(crate) fn pass<T>(&self, read: Result<T, Fault>) -> Result<Option<T>, Fault> {
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
