//! Access to a store's file below the store.

use std::{cmp::Ordering, path::Path};

use redb::{Database, Key, TableDefinition, TypeName, Value};

/// A value that ends with a checksum.
#[derive(Debug)]
struct Checked;

/// A text in a key.
#[derive(Debug)]
struct Text;

impl Value for Checked {
    type SelfType<'a> = &'a [u8];
    type AsBytes<'a> = &'a [u8];

    fn fixed_width() -> Option<usize> {
        None
    }

    fn from_bytes<'a>(data: &'a [u8]) -> &'a [u8]
    where
        Self: 'a,
    {
        data
    }

    fn as_bytes<'a, 'b: 'a>(value: &'a Self::SelfType<'b>) -> &'a [u8] {
        value
    }

    fn type_name() -> TypeName {
        TypeName::new("checked &[u8]")
    }
}

impl Value for Text {
    type SelfType<'a> = &'a [u8];
    type AsBytes<'a> = &'a [u8];

    fn fixed_width() -> Option<usize> {
        None
    }

    fn from_bytes<'a>(data: &'a [u8]) -> &'a [u8]
    where
        Self: 'a,
    {
        data
    }

    fn as_bytes<'a, 'b: 'a>(value: &'a Self::SelfType<'b>) -> &'a [u8] {
        value
    }

    fn type_name() -> TypeName {
        TypeName::new("text")
    }
}

impl Key for Text {
    fn compare(one: &[u8], other: &[u8]) -> Ordering {
        one.cmp(other)
    }
}

/// Sets a single value with a valid checksum, or removes it.
pub(crate) fn set_single(file: &Path, name: &str, value: Option<&[u8]>) {
    let database = Database::open(file).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let mut singles = transaction.open_table(TableDefinition::<Text, Checked>::new("meta")).unwrap();
        for name in [name.to_owned(), format!("{name} (copy)")] {
            let key = name.as_bytes();
            match value {
                Some(value) => drop(singles.insert(key, storage::sealed("meta", key, value).as_slice()).unwrap()),
                None => drop(singles.remove(key).unwrap()),
            }
        }
    }
    transaction.commit().unwrap();
}

/// Sets a payment's record with a valid checksum.
pub(crate) fn set_payment(file: &Path, id: u128, record: &[u8]) {
    let database = Database::open(file).unwrap();
    let transaction = database.begin_write().unwrap();
    let sealed = storage::sealed("payments", &id.to_le_bytes(), record);
    let payments = TableDefinition::<u128, Checked>::new("payments");
    transaction.open_table(payments).unwrap().insert(id, sealed.as_slice()).unwrap();
    transaction.commit().unwrap();
}
