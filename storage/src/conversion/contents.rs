//! Compares the contents of an embedded store and a database: for each table, the number of rows and a sum of their digests that
//! does not depend on their order.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use super::{from_embedded, from_postgres::OWN_SINGLES};
use crate::{
    embedded::wal::snapshot::Snapshot,
    postgres::{
        connection::Connection,
        table::Table,
        tables::{
            business::{AuditRow, ComplianceRow, IdempotencyRow, InvoiceRow, PeriodRow, ReconciledRow, SingleRow},
            duties::DutyRow,
            ledger::{ClaimRow, EntryRow, NameRow, UnmatchedRow, UseRow},
            merchants::{AccountRow, KeyRow, MerchantRow},
            payments::{PaymentRow, TransferRow},
            webhooks::{AttemptRow, DeliveryRow, EndpointRow, EventRow, ListRow},
        },
        values::Cell,
        whole::{Pages, Shape, Whole},
    },
    store::{error::OpenError, report::Report},
};

/// The contents of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Contents {
    /// Rows and the sum of their digests, by table.
    tables: BTreeMap<&'static str, (u64, u128)>,
}

/// The columns that the two kinds of stores number differently.
const UNCOMPARED: [(&str, &str); 2] = [("audit_log", "seq"), ("accounts", "number")];

/// Tables that follow from others, which a verification compares.
const DERIVED: [&str; 5] = ["merchant_usage", "payment_days", "payment_waits", "payment_words", "outbox_heads"];

impl Contents {
    /// Adds a row. The versions of rows count writes, and are not part of their contents.
    fn add(&mut self, shape: Shape, cells: &[Cell]) {
        if DERIVED.contains(&shape.table) {
            return;
        }
        let mut digest = Sha256::new();
        for ((name, _), cell) in shape.columns().zip(cells) {
            if *name != "version" && !UNCOMPARED.contains(&(shape.table, *name)) {
                update(&mut digest, cell);
            }
        }
        let digest: [u8; 32] = digest.finalize().into();
        let (rows, sum) = self.tables.entry(shape.table).or_default();
        *rows += 1;
        *sum = sum.wrapping_add(u128::from_be_bytes(*digest.first_chunk().expect("a digest has 32 bytes")));
    }

    /// Reads an embedded store.
    pub(crate) fn of_embedded(snapshot: &Snapshot) -> Result<Self, OpenError> {
        let mut contents = Self::default();
        from_embedded::each_row(snapshot, &mut |shape, cells| {
            let is_own = shape.table == SingleRow::NAME && is_own_single(&cells);
            if !is_own {
                contents.add(shape, &cells);
            }
            Ok(())
        })?;
        Ok(contents)
    }

    /// Reads a database.
    pub(crate) async fn of_postgres(connection: &Connection) -> Result<Self, OpenError> {
        macro_rules! tables {
            ($contents:ident: $($row:ty),+ $(,)?) => { $($contents.read::<$row>(connection).await?;)+ };
        }
        let mut contents = Self::default();
        tables!(contents:
            MerchantRow, KeyRow, AccountRow, PaymentRow, TransferRow, IdempotencyRow, EventRow, ListRow, DeliveryRow,
            AttemptRow, EndpointRow, ClaimRow, NameRow, UseRow, UnmatchedRow, EntryRow, ReconciledRow, ComplianceRow,
            PeriodRow, InvoiceRow, AuditRow, DutyRow, SingleRow,
        );
        Ok(contents)
    }

    async fn read<T: Whole>(&mut self, connection: &Connection) -> Result<(), OpenError> {
        let mut pages = Pages::<T>::of(connection);
        loop {
            let page = pages.next().await?;
            if page.is_empty() {
                return Ok(());
            }
            for row in &page {
                let (key, row) = T::whole(row)?;
                let cells: Vec<Cell> = T::key_cells(&key).into_iter().chain(row.cells()).collect();
                if T::NAME != SingleRow::NAME || !is_own_single(&cells) {
                    self.add(Shape::of::<T>(), &cells);
                }
            }
        }
    }

    /// Adds a finding for each table that has other rows in a copy.
    pub(crate) fn compare(&self, copy: &Self, report: &mut Report) {
        let tables = self.tables.keys().chain(copy.tables.keys().filter(|table| !self.tables.contains_key(*table)));
        for table in tables {
            let of = |contents: &Self| contents.tables.get(table).copied().unwrap_or_default();
            let ((rows, sum), (copied, copied_sum)) = (of(self), of(copy));
            report.hold(rows == copied, table, copied, &format!("{rows} rows in the source"));
            report.hold(rows != copied || sum == copied_sum, table, rows, "some rows differ from the source");
        }
    }
}

fn is_own_single(cells: &[Cell]) -> bool {
    matches!(cells.first(), Some(Cell::Text(name)) if OWN_SINGLES.contains(&name.as_str()))
}

/// Adds a value with its length, so that none can pass for the end of another.
fn update(digest: &mut Sha256, cell: &Cell) {
    let mut with = |bytes: &[u8]| {
        digest.update((bytes.len() as u64).to_be_bytes());
        digest.update(bytes);
    };
    match cell {
        Cell::Uuid(bits) => with(bits.map(u128::to_be_bytes).as_ref().map_or([].as_slice(), |bytes| bytes.as_slice())),
        Cell::Integer(count) => {
            with(count.map(i64::to_be_bytes).as_ref().map_or([].as_slice(), |bytes| bytes.as_slice()));
        }
        Cell::Small(count) => with(&count.to_be_bytes()),
        Cell::Whole(count) => with(&count.to_be_bytes()),
        Cell::Flag(flag) => with(&[u8::from(*flag)]),
        Cell::Text(text) => with(text.as_bytes()),
        Cell::Bytes(bytes) => with(bytes),
        Cell::Time(time) => {
            let millis = time.map(|time| time.millis().to_be_bytes());
            with(millis.as_ref().map_or([].as_slice(), |bytes| bytes.as_slice()));
        }
    }
}
