//! Replay of the log into the database.

use std::collections::BTreeMap;

use redb::WriteTransaction;

use crate::{
    embedded::{
        fault::Fault,
        tables::{self, DayKey, DeliveryKey, ListKey, OutboxKey, PendingKey, fits, set_row, with_tables},
        wal::memtable::RowKey,
    },
    record::{
        checked::{Seed, Text},
        summary::SUMMARY_LEN,
    },
};

/// The last value of each row of a table; `None` if the row is removed.
type LastValues<'l, K> = BTreeMap<RowKey<K>, Option<&'l [u8]>>;

macro_rules! replay {
    ($($(#[$doc:meta])* $constant:ident, $field:ident: $key:ty => $value:ty;)+) => {
        /// The rows that a log changes, by table in key order, each with its last value.
        #[derive(Default)]
        pub(crate) struct Replay<'l> {
            $($field: LastValues<'l, $key>,)+
        }

        impl<'l> Replay<'l> {
            /// Adds a set or removed row. Returns `false` if the table does not exist or cannot hold the row.
            pub(crate) fn add(&mut self, table: &str, key: &[u8], value: Option<&'l [u8]>) -> bool {
                match table {
                    $(stringify!($field) if fits::<$key>(key) && value.is_none_or(fits::<$value>) => {
                        self.$field.insert(RowKey::of(key), value);
                        true
                    })+
                    _ => false,
                }
            }

            /// Writes the rows into the database.
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
