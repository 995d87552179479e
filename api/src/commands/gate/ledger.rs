//! The durable record of the payments at the gate, a redb file: settled, served and owed payments.

use std::{
    fs::OpenOptions,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Mutex,
};

use engine::{ledger::TxId, time::Timestamp};
use redb::{Database, ReadableTable as _, TableDefinition};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::state::{State, Step};

/// The file in the gate's directory.
const FILE: &str = "gate.redb";
const CACHE_BYTES: usize = 16 << 20;
/// Payments by transaction id.
const PAYMENTS: TableDefinition<'_, &[u8; 20], &[u8]> = TableDefinition::new("payments");
/// Payments that are settled and not served.
const CREDITS: TableDefinition<'_, &[u8; 20], ()> = TableDefinition::new("credits");

/// One payment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Payment {
    /// 40 hexadecimal digits.
    pub(super) tx_id: String,
    state: String,
    /// Method and path of the paid request.
    pub(super) request: String,
    pub(super) payer: String,
    pub(super) pay_to: String,
    pub(super) amount: String,
    /// The idempotency key of its settlement.
    pub(super) idempotency_key: String,
    pub(super) created_at: Timestamp,
    pub(super) changed_at: Timestamp,
    /// The last failure of serving its request.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) failure: Option<String>,
}

/// The failure of reading or writing the record.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub(super) struct Failed {
    path: PathBuf,
    why: String,
    /// Another process has it open.
    pub(super) is_in_use: bool,
}

impl Payment {
    pub(super) fn new(tx_id: TxId, request: String, idempotency_key: String, now: Timestamp) -> Self {
        let (state, empty) = (State::Settling.as_str().to_owned(), String::new);
        Self {
            tx_id: tx_id.to_string(),
            state,
            request,
            payer: empty(),
            pay_to: empty(),
            amount: empty(),
            idempotency_key,
            created_at: now,
            changed_at: now,
            failure: None,
        }
    }

    pub(super) fn state(&self) -> Option<State> {
        State::parse(&self.state)
    }

    /// Returns the payment for reports.
    pub(super) fn describe(&self) -> Value {
        json!({
            "txId": self.tx_id, "state": self.state, "request": self.request, "payer": self.payer, "payTo": self.pay_to,
            "amount": self.amount, "createdAt": self.created_at.to_string(), "changedAt": self.changed_at.to_string(),
            "failure": self.failure,
        })
    }
}

/// The record, open in this process alone.
#[derive(Debug)]
pub(super) struct Ledger {
    database: Database,
    path: PathBuf,
    /// Serializes read-modify-write operations.
    writer: Mutex<()>,
}

impl Ledger {
    /// Opens the record of a directory; creates it if there is none.
    pub(super) fn open(directory: &Path) -> Result<Self, Failed> {
        let path = directory.join(FILE);
        let failed = |why: String, is_in_use| Failed { path: path.clone(), why, is_in_use };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path).map_err(|error| failed(error.to_string(), false))?;
        let database = Database::builder().set_cache_size(CACHE_BYTES).create_file(file);
        let database = database.map_err(|error| {
            let is_in_use = matches!(error, redb::DatabaseError::DatabaseAlreadyOpen);
            failed(error.to_string(), is_in_use)
        })?;
        let ledger = Self { database, path: path.clone(), writer: Mutex::new(()) };
        ledger.write(|transaction| {
            transaction.open_table(PAYMENTS)?;
            transaction.open_table(CREDITS)?;
            Ok(())
        })?;
        Ok(ledger)
    }

    /// Returns a payment.
    pub(super) fn find(&self, tx_id: TxId) -> Result<Option<Payment>, Failed> {
        self.read(|transaction| {
            let payments = transaction.open_table(PAYMENTS)?;
            let found = payments.get(&tx_id.0)?;
            found.map(|bytes| parse(bytes.value())).transpose()
        })
    }

    /// Stores a payment, durably.
    pub(super) fn put(&self, tx_id: TxId, payment: &Payment) -> Result<(), Failed> {
        let bytes = serde_json::to_vec(payment).map_err(|error| self.failed(&error))?;
        let is_credit = payment.state().is_some_and(State::is_credit);
        self.write(|transaction| {
            transaction.open_table(PAYMENTS)?.insert(&tx_id.0, bytes.as_slice())?;
            let mut credits = transaction.open_table(CREDITS)?;
            if is_credit {
                credits.insert(&tx_id.0, ())?;
            } else {
                credits.remove(&tx_id.0)?;
            }
            Ok(())
        })
    }

    /// Applies a step to a payment, durably. If the state does not allow the step, nothing changes.
    pub(super) fn step(&self, tx_id: TxId, step: Step, failure: Option<&str>, now: Timestamp) -> Result<(), Failed> {
        let Some(mut payment) = self.find(tx_id)? else { return Ok(()) };
        let Some(state) = payment.state().and_then(|state| state.apply(step)) else { return Ok(()) };
        payment.state = state.as_str().to_owned();
        payment.changed_at = now;
        payment.failure = failure.map(str::to_owned).or(payment.failure);
        self.put(tx_id, &payment)
    }

    /// Removes a payment that was never settled.
    pub(super) fn remove(&self, tx_id: TxId) -> Result<(), Failed> {
        self.write(|transaction| {
            transaction.open_table(PAYMENTS)?.remove(&tx_id.0)?;
            transaction.open_table(CREDITS)?.remove(&tx_id.0)?;
            Ok(())
        })
    }

    /// Returns the payments that are settled and not served.
    pub(super) fn credits(&self) -> Result<Vec<Payment>, Failed> {
        self.read(|transaction| {
            let (payments, credits) = (transaction.open_table(PAYMENTS)?, transaction.open_table(CREDITS)?);
            let mut found = Vec::new();
            for row in credits.iter()? {
                let (id, ()) = (row?.0, ());
                if let Some(bytes) = payments.get(id.value())? {
                    found.push(parse(bytes.value())?);
                }
            }
            found.sort_by_key(|payment: &Payment| payment.created_at);
            Ok(found)
        })
    }

    fn failed(&self, error: &dyn std::fmt::Display) -> Failed {
        Failed { path: self.path.clone(), why: error.to_string(), is_in_use: false }
    }

    fn write<T>(&self, change: impl FnOnce(&redb::WriteTransaction) -> Result<T, redb::Error>) -> Result<T, Failed> {
        let _one = self.writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let run = || {
            let mut transaction = self.database.begin_write()?;
            transaction.set_quick_repair(true);
            let result = change(&transaction)?;
            transaction.commit()?;
            Ok(result)
        };
        run().map_err(|error: redb::Error| self.failed(&error))
    }

    fn read<T>(&self, read: impl FnOnce(&redb::ReadTransaction) -> Result<T, redb::Error>) -> Result<T, Failed> {
        use redb::ReadableDatabase as _;
        let run = || read(&self.database.begin_read()?);
        run().map_err(|error: redb::Error| self.failed(&error))
    }
}

fn parse(bytes: &[u8]) -> Result<Payment, redb::Error> {
    serde_json::from_slice(bytes).map_err(|error| redb::Error::Corrupted(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::files::TemporaryDirectory;

    #[test]
    fn credits_survive_a_restart_and_end_when_they_are_served() {
        let folder = TemporaryDirectory::create().unwrap();
        let (id, now) = (TxId([7; 20]), Timestamp::from_seconds(1_800_000_000));
        let ledger = Ledger::open(&folder.0).unwrap();
        assert!(Ledger::open(&folder.0).is_err_and(|failed| failed.is_in_use));
        ledger.put(id, &Payment::new(id, "GET /report".to_owned(), "key".to_owned(), now)).unwrap();
        assert!(ledger.credits().unwrap().is_empty(), "nothing is settled");
        ledger.step(id, Step::Settle, None, now).unwrap();
        ledger.step(id, Step::Fail, Some("502"), now).unwrap();
        drop(ledger);
        let ledger = Ledger::open(&folder.0).unwrap();
        let [owed] = &ledger.credits().unwrap()[..] else { panic!("one credit") };
        assert_eq!((owed.state(), owed.failure.as_deref()), (Some(State::Owed), Some("502")));
        ledger.step(id, Step::Serve, None, now).unwrap();
        assert!(ledger.credits().unwrap().is_empty());
        ledger.step(id, Step::Fail, None, now).unwrap();
        assert_eq!(ledger.find(id).unwrap().unwrap().state(), Some(State::Served), "a served payment stays served");
    }
}
