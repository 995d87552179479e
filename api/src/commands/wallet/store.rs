//! The durable ledger of a wallet, a redb file in its directory.
//!
//! Several processes share it: each operation takes a file lock, opens the file, commits durably and closes it. No lock
//! is held while a payment is in flight.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use engine::{
    time::Timestamp,
    wallet::{Counted, Period, Policy, Refusal, Rejection, RequestKey, Spending, State, Step, Verdict, wallet_time},
};
use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition, TableError, WriteTransaction};
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{
    entry::{Decision, Entry, Outcome, Payment, Subject},
    error::Error,
    failpoint,
};

/// The file in the wallet's directory.
pub(super) const FILE: &str = "wallet.redb";
const LOCK_FILE: &str = "wallet.lock";
/// Time to wait for another process to release the file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);
const LOCK_POLL: Duration = Duration::from_millis(5);
/// The file is small; redb's default would be a gigabyte.
const CACHE_BYTES: usize = 4 << 20;
/// The version of the stored bytes.
const SCHEMA: u64 = 1;

/// Entries by number.
const ENTRIES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("entries");
/// The latest entry of each request.
const REQUESTS: TableDefinition<'_, &[u8; 32], u64> = TableDefinition::new("requests");
/// Entries that count in budgets, by expiration in milliseconds and number.
const COUNTED: TableDefinition<'_, (u64, u64), ()> = TableDefinition::new("counted");
/// Entries whose outcome is open.
const OPEN: TableDefinition<'_, u64, ()> = TableDefinition::new("open");
/// `schema`, `clock` (the wallet's time in milliseconds) and `last` (the highest entry number).
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

/// The ledger of a wallet's directory.
#[derive(Debug, Clone)]
pub(in crate::commands) struct Store {
    directory: PathBuf,
}

/// A payment to reserve.
pub(super) struct Proposal<'a> {
    pub(super) key: RequestKey,
    pub(super) subject: Subject,
    pub(super) spending: Spending,
    /// The unsigned transaction.
    pub(super) payment: Payment,
    pub(super) policy: &'a Policy,
    /// The system clock.
    pub(super) clock: Timestamp,
    /// The time of the ledger's head.
    pub(super) head: Timestamp,
}

/// The result of a reservation.
pub(super) enum Reservation {
    /// The amount is reserved, durably.
    Reserved(Box<Entry>),
    /// The request already has a payment.
    Existing(Box<Entry>),
    /// An operator must approve the entry.
    NeedsApproval(u64, Refusal),
    /// The policy refuses it.
    Refused(Refusal),
}

/// The open file with its lock, released when dropped.
struct Locked {
    database: Database,
    path: PathBuf,
    _lock: File,
}

impl Store {
    pub(super) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// Reserves a payment: checks the policy against all counted amounts and stores the transaction, in one durable
    /// commit. A request that already has a payment gets that one.
    pub(super) async fn reserve(&self, proposal: Proposal<'_>) -> Result<Reservation, Error> {
        let locked = self.lock().await?;
        failpoint::reach("reserving");
        let reserved = locked.write(|tables| tables.reserve(proposal))?;
        failpoint::reach("reserved");
        Ok(reserved)
    }

    /// Stores the signed payment, durably.
    pub(super) async fn sign(&self, id: u64, payload: Value) -> Result<Entry, Error> {
        let locked = self.lock().await?;
        locked.write(|tables| {
            tables.change(
                id,
                |state| state.apply(Step::Sign),
                |entry| {
                    // The first signature is kept: anyone who has it may submit it.
                    if entry.state == State::Reserved
                        && let Some(payment) = &mut entry.payment
                    {
                        payment.payload = payload;
                    }
                },
            )
        })
    }

    /// Applies a step of the server or the ledger, with the facts about the outcome.
    pub(super) async fn conclude(&self, id: u64, step: Step, outcome: Outcome) -> Result<Entry, Error> {
        let locked = self.lock().await?;
        locked.write(|tables| {
            tables.change(
                id,
                |state| state.conclude(step),
                |entry| {
                    let known = entry.outcome.take().unwrap_or_default();
                    entry.outcome = Some(Outcome {
                        receipt: outcome.receipt.clone().or(known.receipt),
                        response: outcome.response.clone().or(known.response),
                        ..outcome.clone()
                    });
                },
            )
        })
    }

    /// Stores facts about the outcome of an entry whose state does not change.
    pub(super) async fn note(&self, id: u64, outcome: Outcome) -> Result<Entry, Error> {
        let locked = self.lock().await?;
        locked.write(|tables| {
            let mut entry = tables.entry(id)?;
            if !matches!(entry.state, State::Paid | State::Released) {
                entry.outcome = Some(outcome);
                tables.put(&entry)?;
            }
            Ok(entry)
        })
    }

    /// Stores an operator's decision.
    pub(in crate::commands) async fn decide(&self, id: u64, is_granted: bool, now: Timestamp) -> Result<Entry, Error> {
        let locked = self.lock().await?;
        locked.write(|tables| {
            let step = if is_granted { Step::Approve } else { Step::Deny };
            tables.change(
                id,
                |state| state.apply(step),
                |entry| entry.decision = Some(Decision { is_granted, decided_at: now }),
            )
        })
    }

    /// Returns the latest entry of a request.
    pub(super) async fn find(&self, key: RequestKey) -> Result<Option<Entry>, Error> {
        self.lock().await?.read(|tables| tables.latest(key))
    }

    /// Returns an entry.
    pub(in crate::commands) async fn entry(&self, id: u64) -> Result<Entry, Error> {
        self.lock().await?.read(|tables| tables.entry(id))
    }

    /// Returns the entries whose outcome is open.
    pub(in crate::commands) async fn open_entries(&self) -> Result<Vec<Entry>, Error> {
        self.lock().await?.read(|tables| {
            let open = tables.transaction.open_table(OPEN).map_err(failed)?;
            let ids = open.iter().map_err(failed)?.map(|row| Ok(row.map_err(failed)?.0.value()));
            let ids: Vec<u64> = ids.collect::<Result<_, Failed>>()?;
            ids.into_iter().map(|id| tables.entry(id)).collect()
        })
    }

    /// Returns the newest entries, the newest first.
    pub(in crate::commands) async fn newest(&self, limit: usize) -> Result<Vec<Entry>, Error> {
        self.lock().await?.read(|tables| {
            let entries = tables.transaction.open_table(ENTRIES).map_err(failed)?;
            let newest = entries.iter().map_err(failed)?.rev().take(limit);
            newest.map(|row| parse(row.map_err(failed)?.1.value())).collect()
        })
    }

    /// Returns the payments that count in budgets, and the wallet's time for a time of the system clock.
    pub(in crate::commands) async fn counted(&self, clock: Timestamp) -> Result<(Vec<Counted>, Timestamp), Error> {
        self.lock().await?.read(|tables| {
            let last = tables.meta("clock")?;
            let now = wallet_time(Timestamp::from_millis(last), clock, clock);
            Ok((tables.counted(now)?, now))
        })
    }

    async fn lock(&self) -> Result<Locked, Error> {
        let path = self.directory.join(FILE);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let open = |name: &str| options.open(self.directory.join(name)).map_err(|error| Error::ledger(&path, error));
        let lock = open(LOCK_FILE)?;
        let deadline = Instant::now() + LOCK_TIMEOUT;
        while let Err(error) = flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            if io::Error::from(error).kind() != io::ErrorKind::WouldBlock {
                return Err(Error::ledger(&path, io::Error::from(error)));
            }
            if Instant::now() > deadline {
                return Err(Error::Busy(path));
            }
            sleep(LOCK_POLL).await;
        }
        let file = open(FILE)?;
        let database = Database::builder().set_cache_size(CACHE_BYTES).create_file(file);
        let database = database.map_err(|error| Error::ledger(&path, error))?;
        Ok(Locked { database, path, _lock: lock })
    }
}

/// A failure inside a transaction, without the path.
enum Failed {
    Ledger(String),
    Other(Error),
}

fn failed(error: impl std::fmt::Display) -> Failed {
    Failed::Ledger(error.to_string())
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl Locked {
    /// Runs a change in one durable commit; an error changes nothing.
    fn write<T>(&self, change: impl FnOnce(&mut Tables<'_>) -> Result<T, Failed>) -> Result<T, Error> {
        let run = || {
            let mut transaction = self.database.begin_write().map_err(failed)?;
            // The file opens quickly after kill -9.
            transaction.set_quick_repair(true);
            let mut tables = Tables { transaction: &transaction };
            tables.check_schema()?;
            let result = change(&mut tables)?;
            transaction.commit().map_err(failed)?;
            Ok(result)
        };
        run().map_err(|error| self.explain(error))
    }

    /// Reads one state. A file without a commit is empty.
    fn read<T>(&self, read: impl FnOnce(&Tables<'_>) -> Result<T, Failed>) -> Result<T, Error> {
        let is_new = || match self.database.begin_read().map_err(failed)?.open_table(META) {
            Ok(_) => Ok(false),
            Err(TableError::TableDoesNotExist(_)) => Ok(true),
            Err(error) => Err(failed(error)),
        };
        let run = || {
            if is_new()? {
                return self.write(|_| Ok(())).map_err(Failed::Other);
            }
            Ok(())
        };
        run().map_err(|error| self.explain(error))?;
        // A write transaction that is never committed: one set of functions reads in both.
        let run = || {
            let transaction = self.database.begin_write().map_err(failed)?;
            let result = read(&Tables { transaction: &transaction });
            transaction.abort().map_err(failed)?;
            result
        };
        run().map_err(|error| self.explain(error))
    }

    fn explain(&self, error: Failed) -> Error {
        match error {
            Failed::Ledger(why) => Error::ledger(&self.path, why),
            Failed::Other(error) => error,
        }
    }
}

struct Tables<'a> {
    transaction: &'a WriteTransaction,
}

fn parse(bytes: &[u8]) -> Result<Entry, Failed> {
    serde_json::from_slice(bytes).map_err(failed)
}

impl Tables<'_> {
    /// Creates the tables of a new file; rejects one of another version.
    fn check_schema(&mut self) -> Result<(), Failed> {
        self.transaction.open_table(ENTRIES).map_err(failed)?;
        self.transaction.open_table(REQUESTS).map_err(failed)?;
        self.transaction.open_table(COUNTED).map_err(failed)?;
        self.transaction.open_table(OPEN).map_err(failed)?;
        match self.meta("schema")? {
            0 => self.set_meta("schema", SCHEMA),
            SCHEMA => Ok(()),
            other => Err(failed(format!("unsupported schema {other}: this version supports {SCHEMA}"))),
        }
    }

    fn meta(&self, name: &str) -> Result<u64, Failed> {
        let meta = self.transaction.open_table(META).map_err(failed)?;
        Ok(meta.get(name).map_err(failed)?.map(|value| value.value()).unwrap_or_default())
    }

    fn set_meta(&mut self, name: &str, value: u64) -> Result<(), Failed> {
        let mut meta = self.transaction.open_table(META).map_err(failed)?;
        meta.insert(name, value).map_err(failed)?;
        Ok(())
    }

    fn entry(&self, id: u64) -> Result<Entry, Failed> {
        let entries = self.transaction.open_table(ENTRIES).map_err(failed)?;
        let entry = entries.get(id).map_err(failed)?;
        entry.map_or(Err(Failed::Other(Error::NoEntry(id))), |bytes| parse(bytes.value()))
    }

    fn latest(&self, key: RequestKey) -> Result<Option<Entry>, Failed> {
        let requests = self.transaction.open_table(REQUESTS).map_err(failed)?;
        let id = requests.get(&key.0).map_err(failed)?.map(|id| id.value());
        id.map(|id| self.entry(id)).transpose()
    }

    /// Returns the amounts in the longest window at a time.
    fn counted(&self, now: Timestamp) -> Result<Vec<Counted>, Failed> {
        let counted = self.transaction.open_table(COUNTED).map_err(failed)?;
        let from = now.minus(Period::LONGEST).millis();
        let mut found = Vec::new();
        for row in counted.range((from, 0)..).map_err(failed)? {
            let (until, id) = row.map_err(failed)?.0.value();
            let spending = self.entry(id)?.spending().map_err(failed)?;
            found.push(Counted { spending, until: Timestamp::from_millis(until) });
        }
        Ok(found)
    }

    fn reserve(&mut self, proposal: Proposal<'_>) -> Result<Reservation, Failed> {
        let existing = self.latest(proposal.key)?;
        let last = Timestamp::from_millis(self.meta("clock")?);
        let now = wallet_time(last, proposal.clock, proposal.head);
        self.set_meta("clock", now.millis())?;
        let past = self.counted(now)?;
        let approval = match &existing {
            Some(entry) => entry.approval().map_err(failed)?,
            None => None,
        };
        let latest = existing.as_ref().map(|entry| (entry.state, approval.as_ref()));
        let verdict = proposal.policy.decide(&proposal.spending, latest, &past, now);
        let undecided = |entry: &Entry| matches!(entry.state, State::AwaitingApproval | State::Approved);
        let entry = match (&verdict, existing) {
            (Verdict::Repeat, Some(entry)) => return Ok(Reservation::Existing(Box::new(entry))),
            (_, existing) => existing.filter(undecided),
        };
        match verdict {
            Verdict::Repeat | Verdict::Reserve => {
                let mut entry = self.begin(entry, &proposal, now)?;
                entry.state = entry.state.apply(Step::Reserve).map_err(Error::from)?;
                entry.payment = Some(proposal.payment);
                self.put(&entry)?;
                Ok(Reservation::Reserved(Box::new(entry)))
            }
            Verdict::AwaitApproval(refusal) => {
                let mut entry = self.begin(entry, &proposal, now)?;
                entry.state = State::AwaitingApproval;
                entry.decision = None;
                self.put(&entry)?;
                Ok(Reservation::NeedsApproval(entry.id, refusal))
            }
            Verdict::Refuse(refusal) => Ok(Reservation::Refused(refusal)),
        }
    }

    /// Returns the entry to write: the undecided one with the current amounts, or a new one.
    fn begin(&mut self, entry: Option<Entry>, proposal: &Proposal<'_>, now: Timestamp) -> Result<Entry, Failed> {
        let transfers = proposal.spending.parts.iter().map(|(to, units)| (to.to_string(), *units)).collect();
        let (subject, currency) = (proposal.subject.clone(), proposal.spending.currency);
        if let Some(entry) = entry {
            return Ok(Entry { subject, currency, transfers, ..entry });
        }
        let id = self.meta("last")? + 1;
        self.set_meta("last", id)?;
        let mut requests = self.transaction.open_table(REQUESTS).map_err(failed)?;
        requests.insert(&proposal.key.0, id).map_err(failed)?;
        let (decision, payment, outcome) = (None, None, None);
        let state = State::AwaitingApproval;
        Ok(Entry { id, state, subject, currency, transfers, created_at: now, decision, payment, outcome })
    }

    fn change(
        &mut self,
        id: u64,
        step: impl FnOnce(State) -> Result<State, Rejection>,
        change: impl FnOnce(&mut Entry),
    ) -> Result<Entry, Failed> {
        let mut entry = self.entry(id)?;
        let state = step(entry.state).map_err(Error::from)?;
        change(&mut entry);
        entry.state = state;
        self.put(&entry)?;
        Ok(entry)
    }

    /// Writes an entry and its rows in the indexes.
    fn put(&mut self, entry: &Entry) -> Result<(), Failed> {
        let bytes = serde_json::to_vec(entry).map_err(failed)?;
        let mut entries = self.transaction.open_table(ENTRIES).map_err(failed)?;
        entries.insert(entry.id, bytes.as_slice()).map_err(failed)?;
        let mut open = self.transaction.open_table(OPEN).map_err(failed)?;
        if entry.state.is_open() {
            open.insert(entry.id, ()).map_err(failed)?;
        } else {
            open.remove(entry.id).map_err(failed)?;
        }
        let Some(payment) = &entry.payment else { return Ok(()) };
        let row = (payment.expires_at.millis(), entry.id);
        let mut counted = self.transaction.open_table(COUNTED).map_err(failed)?;
        if entry.state.counts() {
            counted.insert(row, ()).map_err(failed)?;
        } else {
            counted.remove(row).map_err(failed)?;
        }
        Ok(())
    }
}
