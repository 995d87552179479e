//! The rows of a log that is replayed into the database.

use std::collections::BTreeMap;

use redb::WriteTransaction;

use crate::{
    embedded::{
        fault::Fault,
        tables::{self, DayKey, DeliveryKey, ListKey, OutboxKey, fits, set_row, with_tables},
        wal::memtable::RowKey,
    },
    record::{
        checked::{Seed, Text},
        summary::SUMMARY_LEN,
    },
};

/// The last word about each row of a table: its value, or none where it is gone.
type Words<'l, K> = BTreeMap<RowKey<K>, Option<&'l [u8]>>;

macro_rules! replay {
    ($($(#[$doc:meta])* $constant:ident, $field:ident: $key:ty => $value:ty;)+) => {
        /// What a log does to the rows of every table, in the order of their keys: the last word about each.
        #[derive(Default)]
        pub(crate) struct Replay<'l> {
            $($field: Words<'l, $key>,)+
        }

        impl<'l> Replay<'l> {
            /// Notes that a row of the table of this name has a value, or is gone; says whether there is such a table, and
            /// can be such a row in it.
            pub(crate) fn note(&mut self, table: &str, key: &[u8], value: Option<&'l [u8]>) -> bool {
                match table {
                    $(stringify!($field) if fits::<$key>(key) && value.is_none_or(fits::<$value>) => {
                        self.$field.insert(RowKey::of(key), value);
                        true
                    })+
                    _ => false,
                }
            }

            /// Writes it into the database.
            pub(crate) fn write(&self, transaction: &WriteTransaction) -> Result<(), Fault> {
                $(if !self.$field.is_empty() {
                    let mut table = transaction.open_table(tables::$constant)?;
                    let seed = Seed::of(stringify!($field));
                    self.$field.iter().try_for_each(|(key, value)| set_row(&mut table, seed, key.bytes(), *value))?;
                })+
                Ok(())
            }
        }
    };
}

with_tables!(replay);
