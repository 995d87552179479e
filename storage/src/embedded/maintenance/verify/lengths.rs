//! Compares the length of an index with its records.

use redb::{Key, Value};

use crate::{
    embedded::{fault::Fault, wal::view::View},
    store::report::Report,
};

/// Compares the length of an index with the expected number of rows.
pub(super) fn compare_length(
    report: &mut Report,
    table: &'static str,
    index: &View<'_, impl Key + 'static, impl Value + 'static>,
    expected: u64,
) -> Result<(), Fault> {
    let rows = index.len()?;
    report.hold(rows == expected, table, rows, &format!("expected {expected} rows"));
    Ok(())
}
