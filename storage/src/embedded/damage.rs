//! Damaged rows: found when they are read, kept out of every answer, counted, and logged once each.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
};

use crate::embedded::fault::Fault;

/// Rows that are remembered one by one; more are counted again each time they are read.
const REMEMBERED: usize = 10_000;

/// The label of the counter.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct InTable {
    table: &'static str,
}

/// The damaged rows that were met since the store was opened.
#[derive(Debug, Clone, Default)]
pub(crate) struct Damages {
    met: Arc<Mutex<BTreeSet<(&'static str, String)>>>,
    pub(crate) counter: Family<InTable, Counter>,
}

impl Damages {
    /// Begins with none in any of the tables.
    pub(crate) fn none_of(tables: &[&'static str]) -> Self {
        let damages = Self::default();
        for table in tables {
            drop(damages.counter.get_or_create(&InTable { table }));
        }
        damages
    }

    /// Notes a damaged row; returns whether it was not known.
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

    /// Notes the row that a fault names.
    pub(crate) fn note_fault(&self, fault: &Fault) {
        if let Fault::Damaged { table, key, why } = fault {
            self.note(table, key, why);
        }
    }

    /// Returns how many damaged rows were met.
    pub(crate) fn count(&self) -> u64 {
        self.met.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }

    /// Passes over a row that is damaged, and notes it.
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
