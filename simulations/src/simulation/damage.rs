//! Rows that are damaged on disk: one bit of one row, in any table, while the engine runs. The row stays as it is until an
//! operator repairs it, when faults end: until then its content is served to no caller, and no other row is affected.

use engine::ids::MerchantId;
use storage::{ReadError, Row, prelude::*};

use super::*;

/// A row that was damaged.
pub(super) struct DamagedRow {
    row: Row,
    /// The damaged bytes.
    value: Vec<u8>,
}

/// An entry of the log that was damaged.
pub(super) struct DamagedEntry {
    file: usize,
    sound: Vec<u8>,
    damaged: Vec<u8>,
}

/// The disk's file of the database, and those of its log.
const DATABASE: usize = 0;
const LOGS: [usize; 2] = [1, 2];
/// How much later a commit is certainly another entry of the log: longer than a commit takes, or a process is paused.
const APART: Duration = Duration::from_secs(180);

/// Rows that are damaged at once, at most; those of the table of single values one at a time, as each is stored twice.
const MOST: usize = 8;
/// The table from which the heads of queues are derived: they are rewritten without a damaged row, and would contradict
/// a repaired one. An operator restores a backup instead.
const QUEUES: &str = "outbox";
/// The table of single values.
const SINGLE_VALUES: &str = "meta";

impl Simulation {
    /// Returns whether a row on disk is not as it was written.
    pub(crate) fn is_damaged(&self) -> bool {
        !lock(&self.damaged).is_empty()
    }

    /// Damages a row of the database, of a table and a session where they are given; returns whether there is one.
    pub(super) fn damage_row(&self, table: Option<&str>, session: Option<u32>, pick: u64) -> bool {
        let Some(store) = self.running_store() else { return false };
        let id = match session {
            Some(session) => match self.clients().sessions.get(&session).map(|known| known.id) {
                Some(id) => Some(id),
                None => return false,
            },
            None => None,
        };
        self.disk.set_quiet(true);
        let found = self.rows_of_table(&store, table, id, pick);
        self.disk.set_quiet(false);
        let Some(row) = found else { return false };
        let mut value = row.value.clone();
        let bit = usize::try_from(pick >> 32).unwrap_or(0) % (value.len() * 8);
        value[bit / 8] ^= 1 << (bit % 8);
        self.disk.replace(DATABASE, &row.value, &value);
        self.mark("a row is damaged");
        self.event(Source::Disk, "damaged", session, 0, || format!("the damaged row is of {}", row.table));
        self.mark_affected(&row);
        lock(&self.damaged).push(DamagedRow { row, value });
        true
    }

    /// Damages an entry of the log that a later one follows; returns whether there is one. A process that starts with it must
    /// refuse to, and an operator repairs it.
    pub(super) fn damage_log(&self, pick: u64) -> bool {
        let Some(store) = self.running_store() else { return false };
        if lock(&self.damaged_log).is_some() {
            return false;
        }
        let mut rows = Vec::new();
        self.disk.set_quiet(true);
        let read = store.rows.each_row_inline(&mut |row: Row| {
            if row.table == "payments" {
                rows.push(row);
            }
        });
        self.disk.set_quiet(false);
        if read.is_err() {
            return false;
        }
        // The log holds values without the checksums that rows have in the database.
        let timed = self.observe(|observer| {
            let of = |row: &Row| {
                let known = observer.payments.values().find(|known| names(row, known.payment.id.bits()))?;
                let value = row.value[..row.value.len() - 4].to_vec();
                Some((known.payment.updated_at, value))
            };
            rows.iter().filter_map(of).collect::<Vec<_>>()
        });
        for file in LOGS {
            let mut there: Vec<_> = timed.iter().filter(|(_, value)| self.disk.has(file, value)).collect();
            there.sort_unstable();
            let [first, .., last] = &there[..] else { continue };
            if last.0.since(first.0) < APART {
                continue;
            }
            let sound = first.1.clone();
            let mut damaged = sound.clone();
            let bit = usize::try_from(pick >> 32).unwrap_or(0) % (damaged.len() * 8);
            damaged[bit / 8] ^= 1 << (bit % 8);
            self.disk.replace(file, &sound, &damaged);
            *lock(&self.damaged_log) = Some(DamagedEntry { file, sound, damaged });
            return true;
        }
        false
    }

    /// Repairs the log; returns whether a damaged entry is why a process does not start.
    pub(super) fn repair_log(&self) -> bool {
        let Some(DamagedEntry { file, sound, damaged }) = lock(&self.damaged_log).take() else { return false };
        let was_there = self.disk.has(file, &damaged);
        self.disk.replace(file, &damaged, &sound);
        was_there
    }

    /// Returns a row that is in the database itself, not only in its log.
    fn rows_of_table(
        &self,
        store: &RunningStore,
        table: Option<&str>,
        id: Option<PaymentId>,
        pick: u64,
    ) -> Option<Row> {
        let mut tables: BTreeMap<String, Vec<Row>> = BTreeMap::new();
        let has_single = lock(&self.damaged).iter().any(|damaged| damaged.row.table == SINGLE_VALUES);
        if lock(&self.damaged).len() >= MOST {
            return None;
        }
        let read = store.rows.each_row_inline(&mut |row: Row| {
            let is_wanted = table.is_none_or(|table| row.table == table) && id.is_none_or(|id| names(&row, id.bits()));
            // The same bit twice would repair the row.
            let is_damaged = lock(&self.damaged)
                .iter()
                .any(|damaged| (&damaged.row.table, &damaged.row.key) == (&row.table, &row.key));
            let is_left_out =
                is_damaged || has_single && row.table == SINGLE_VALUES || table.is_none() && row.table == QUEUES;
            if is_wanted && !is_left_out {
                tables.entry(row.table.clone()).or_default().push(row);
            }
        });
        if read.is_err() {
            return None;
        }
        let at = |len: usize, by: u64| usize::try_from(by % len.max(1) as u64).unwrap_or(0);
        let first = at(tables.len(), pick & 0xffff);
        let mut tables: Vec<Vec<Row>> = tables.into_values().collect();
        // What the database does not have yet is in its log, which has its own checksums.
        let is_there = |row: &Row| self.disk.has(DATABASE, &row.value);
        let count = tables.len();
        (0..count).find_map(|step| {
            let rows = &mut tables[(first + step) % count];
            let begin = at(rows.len(), (pick >> 16) & 0xffff);
            rows.rotate_left(begin);
            rows.iter().find(|row| is_there(row)).cloned()
        })
    }

    /// Records which sessions and merchants a damaged row concerns: they need not recover before it is repaired.
    fn mark_affected(&self, row: &Row) {
        self.observe(|observer| {
            observer.was_damaged = true;
            let merchants: Vec<MerchantId> = observer
                .merchants
                .values()
                .filter(|merchant| {
                    let account = merchant.hive_account.as_str().as_bytes();
                    let is_named = |bytes: &[u8]| bytes.windows(account.len()).any(|window| window == account);
                    // Each payment and transfer contains the account: it determines the merchant only of rows without another owner.
                    names(row, merchant.id.bits()) && row.table != "payments" || is_named(&row.key)
                })
                .map(|merchant| merchant.id)
                .collect();
            let payments = observer.payments.values().map(|known| &known.payment);
            let named = payments.filter(|payment| names(row, payment.id.bits()) || names_text(row, payment));
            let named: Vec<PaymentId> = named.map(|payment| payment.id).collect();
            // A row that names a payment concerns it alone.
            if named.is_empty() {
                observer.damaged_merchants.extend(merchants);
            }
            observer.damaged_payments.extend(named);
        });
    }

    /// Checks that a damaged row alone, with an intact log and a working disk, does not make a process exit.
    pub(super) fn damage_stops_nothing(&self, why: &str) {
        if why.contains("log") && self.repair_log() {
            self.mark("a damaged log is refused");
            return;
        }
        if why.contains("serves another chain") {
            self.mark("a node of another chain is refused");
            return;
        }
        if self.is_damaged() && !self.disk_failed.load(Ordering::Relaxed) {
            let text = format!("a damaged row ends the engine: {why}");
            self.observe(|observer| observer.violate("damage-stays-in-its-row", text, None));
        }
    }

    /// Repairs every row that is still damaged; returns whether there was one.
    pub(super) fn repair_rows(&self) -> bool {
        let damaged = std::mem::take(&mut *lock(&self.damaged));
        // A row that was damaged twice is repaired in reverse order.
        for DamagedRow { row, value } in damaged.iter().rev() {
            self.disk.replace(DATABASE, value, &row.value);
        }
        !damaged.is_empty()
    }

    /// Checks that a verification names every damaged row, and that no read returns its content.
    pub(super) async fn compare_damaged(&self, store: &EmbeddedStore) -> Result<(), String> {
        let failed = |error: ReadError| error.to_string();
        let report = store.verify_inline().map_err(failed)?;
        let mut damaged_tables = Vec::new();
        store
            .each_row_inline(|row| {
                let is_it = |damaged: &DamagedRow| {
                    damaged.row.table == row.table && damaged.row.key == row.key && damaged.value == row.value
                };
                if lock(&self.damaged).iter().any(is_it) {
                    damaged_tables.push(row.table);
                }
            })
            .map_err(failed)?;
        for table in damaged_tables {
            let named = |finding: &String| finding.starts_with(&format!("{table} ")) && finding.contains("checksum");
            // A long list of findings is truncated.
            if report.findings.iter().any(named) || report.finding_count > report.findings.len() as u64 {
                self.observe(|observer| observer.passes("damage-stays-in-its-row"));
            } else {
                let text = format!("a row of {table} is damaged and the verification does not report it");
                self.observe(|observer| observer.violate("damage-stays-in-its-row", text, None));
            }
        }
        let ids: Vec<PaymentId> = self.observe(|observer| observer.payments.keys().copied().collect());
        for id in ids {
            let read = store.payment(id).await;
            let reported = self.observe(|observer| {
                let known = observer.payments.get(&id).map(|known| &*known.payment);
                match &read {
                    Ok(stored) => {
                        stored.as_ref() == known || stored.is_none() && observer.damaged_payments.contains(&id)
                    }
                    Err(ReadError::Damaged { .. }) => observer.damaged_payments.contains(&id),
                    Err(ReadError::Failed(_) | ReadError::Unavailable(_)) => true,
                }
            });
            if !reported {
                let text = format!("{id} reads as {read:?} while another row is damaged");
                self.observe(|observer| observer.violate("damage-stays-in-its-row", text, Some(id)));
            }
        }
        let merchants: Vec<_> = self.observe(|observer| observer.merchants.values().cloned().collect());
        for merchant in merchants {
            if let Ok(Some(stored)) = store.merchant(merchant.id).await
                && *stored != merchant
            {
                let text =
                    format!("{} reads differently than it was written, while another row is damaged", merchant.id);
                self.observe(|observer| observer.violate("damage-stays-in-its-row", text, None));
            }
        }
        Ok(())
    }
}

/// Returns whether a row's key or value holds an id.
fn names(row: &Row, bits: u128) -> bool {
    let holds =
        |bytes: &[u8]| bytes.windows(16).any(|window| window == bits.to_be_bytes() || window == bits.to_le_bytes());
    holds(&row.key) || holds(&row.value)
}

/// Returns whether a row belongs to a payment without containing its id: rows of its public id and of its transfers.
fn names_text(row: &Row, payment: &engine::payment::Payment) -> bool {
    let holds = |needle: &[u8]| {
        row.key.windows(needle.len()).chain(row.value.windows(needle.len())).any(|window| window == needle)
    };
    payment.transfers.iter().any(|credit| holds(&credit.tx_id.0))
        || payment.claim.as_ref().is_some_and(|claim| holds(&claim.tx_id.0))
}
