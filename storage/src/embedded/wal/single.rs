//! Single values, each stored in two rows: if one row is damaged, the other one is read. The engine cannot run without
//! these values.

use redb::{ReadableTable, Table};

use crate::{
    embedded::{
        fault::Fault,
        tables::{CHECKSUM, meta, set_row},
        wal::view::View,
    },
    record::checked::{Checked, Seed, Text},
};

/// Returns the name of a value's second row.
pub(crate) fn second(name: &str) -> String {
    format!("{name} (copy)")
}

/// Returns the name of a value by the name of one of its rows.
pub(crate) fn first(name: &str) -> &str {
    name.strip_suffix(" (copy)").unwrap_or(name)
}

/// Returns a value.
///
/// # Errors
/// [`Fault::Damaged`] if both rows are damaged, or one is damaged and the other is missing.
pub(crate) fn read(singles: &View<'_, Text, &'static [u8]>, name: &str) -> Result<Option<Vec<u8>>, Fault> {
    let of = |name: &str| Ok(singles.get(name)?.map(|found| found.value().to_vec()));
    first_of(of(name), || of(&second(name)))
}

fn first_of(
    first: Result<Option<Vec<u8>>, Fault>,
    second: impl FnOnce() -> Result<Option<Vec<u8>>, Fault>,
) -> Result<Option<Vec<u8>>, Fault> {
    match first {
        Ok(Some(value)) => Ok(Some(value)),
        Ok(None) => second(),
        Err(fault @ Fault::Damaged { .. }) => match second() {
            Ok(Some(value)) => Ok(Some(value)),
            Ok(None) | Err(Fault::Damaged { .. }) => Err(fault),
            Err(other) => Err(other),
        },
        Err(fault) => Err(fault),
    }
}

/// Returns a value from a database, as [`read`] does.
pub(crate) fn stored(
    singles: &impl ReadableTable<Text, Checked<&'static [u8]>>,
    name: &str,
) -> Result<Option<Vec<u8>>, Fault> {
    let of = |name: &str| match singles.get(name)? {
        Some(sealed) => match Seed::of(meta::TABLE).open(name.as_bytes(), sealed.value()) {
            Some(value) => Ok(Some(value.to_vec())),
            None => Err(Fault::inconsistent(meta::TABLE, name, CHECKSUM)),
        },
        None => Ok(None),
    };
    first_of(of(name), || of(&second(name)))
}

/// Sets a value in a database.
pub(crate) fn store(
    singles: &mut Table<'_, Text, Checked<&'static [u8]>>,
    name: &str,
    value: &[u8],
) -> Result<(), Fault> {
    for name in [name, &second(name)] {
        set_row(singles, Seed::of(meta::TABLE), name.as_bytes(), Some(value))?;
    }
    Ok(())
}
