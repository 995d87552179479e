//! Every table: what it keeps, its key and order, what a write costs, what can be rebuilt from what, what is pruned.
//!
//! | table | key, in order of | value | written by | rebuilt from | pruned |
//! |---|---|---|---|---|---|
//! | [`PAYMENTS`] | payment id: time | record, 250 B and up | every change of a payment | nothing: this is the truth | never |
//! | [`SLUGS`] | slug token: **random** | payment id | creation | payments | never |
//! | [`PAYMENTS_BY_MERCHANT`] | merchant id, facet (state, currency, attention), payment id: time | 36 B summary | a change of a payment that lists show | payments | never |
//! | [`PAYMENT_DAYS`] | merchant id, day a payment was made | how many by facet, what came in, how long it took; 30 B and up | creation, a change that lists show; once per group | payments by merchant | never |
//! | [`PAYMENT_COUNTS`] | merchant id, state (or [`KEYS_COUNT`], [`BYTES_COUNT`]) | how many | every change of a payment, a key kept or forgotten; once per group | payments | never |
//! | [`DEADLINES`] | deadline ms, payment id: time | - | creation, leaving `pending` | payments | when a payment leaves `pending` |
//! | [`IN_FLIGHT`] | payment id: time | - | claim or sighting, its decision | payments | when the chain has decided |
//! | [`TRANSFERS`] | payment id: time, transaction id, operation | record, 100 B to 2.3 kB | a sighting of a transfer that names a payment, its decision | nothing: this is the truth, but for those that a payment's record lists | never |
//! | [`TRANSFER_ORDER`] | payment id: time, place in the order they became known | transaction id, operation | a new transfer | transfers | never |
//! | [`MERCHANTS`] | merchant id: time | record, 300 B | registration, change | nothing: this is the truth | never |
//! | [`API_KEYS`] | digest of the key: **random** | merchant id | registration, new key | merchants | a replaced key |
//! | [`ACCOUNTS`] | account name | since when | every write of a merchant | merchants and retired accounts | 31 days after the last merchant left it |
//! | [`ACCOUNT_MERCHANTS`] | account name, merchant id | - | registration, another account | merchants | when its merchant leaves the account |
//! | [`PROVEN_MERCHANTS`] | account name, merchant id | - | a proof of the account | merchants | when its merchant leaves the account |
//! | [`PENDING_ACCOUNTS`] | due ms, merchant id | - | a pending change of a proven account, its proofs | merchants | when it takes effect, lapses or is cancelled |
//! | [`RETIRED_ACCOUNTS`] | account name | unwatched from, ms | a merchant leaves an account | nothing: this is the truth | when the time has come |
//! | [`IDEMPOTENCY`] | merchant id, digest of the key: **random** | what it stands for, 70 B | a creation with a key | nothing: this is the truth | a day later |
//! | [`IDEMPOTENCY_TIMES`] | time made, merchant id, digest: time | - | a creation with a key | idempotency | with its key |
//! | [`EVENTS`] | merchant id, place in the list: time | record, 1 kB | an announced change | nothing: this is the truth | after the retention |
//! | [`EVENT_IDS`] | event id: time of its payment | whose, place in the list | an announced change | events | with its event |
//! | [`EVENT_TIMES`] | when it happened, event id: time | - | an announced change | events | with its event |
//! | [`EVENT_SEQS`] | merchant id | the last place given, its epoch, the last place before that epoch | an announced change; once per group | events, but for the epoch | never |
//! | [`DELIVERIES`] | merchant id, delivery id: time | record, 100 B | an announced change, an attempt | nothing: this is the truth | never |
//! | [`PAYMENT_DELIVERIES`] | payment id, delivery id: time | - | an announced change, a repeat that was asked for | deliveries | never |
//! | [`EVENT_DELIVERIES`] | event id: time, delivery id: time | - | an announced change, a repeat that was asked for | deliveries | never |
//! | [`UNDELIVERED`] | merchant id, state, delivery id: time | - | an announced change, a change of its state | deliveries | delivered |
//! | [`OUTBOX`] | merchant id, due ms, place of the event, delivery id: time | - | an announced change, an attempt | deliveries | delivered, held or given up |
//! | [`OUTBOX_HEADS`] | merchant id | due ms of its first delivery | a change of its queue; once per group | outbox | when its queue is empty |
//! | [`OUTBOX_DUE`] | due ms, merchant id: time | - | a change of a queue's head; once per group | outbox | when its queue is empty |
//! | [`PENDING_DELIVERIES`] | payment id: time, place of the event, delivery id | - | an announced change | deliveries | delivered, held or given up |
//! | [`ATTEMPTS`] | event id, delivery id, number: time | record, up to 1.5 kB | an attempt | nothing: this is the truth | what the receiver answered, with its event |
//! | [`ENDPOINTS`] | merchant id | how the endpoint is, 40 B | an attempt | attempts | when its merchant enables or moves it |
//! | [`CLAIMS`] | transaction id: **random** | who claimed it | an x402 claim | nothing: this is the truth | days after the transaction expired, where no merchant asked for it; else never: a replay may come years later |
//! | [`FACILITATIONS`] | transaction id: **random** | - | an x402 claim for somebody else's server, its decision | claims | when the chain has decided |
//! | [`NONCES`] | SHA-256 of payee and nonce, or payee and payment identifier: **random** | transaction id | an x402 claim | claims | with its claim |
//! | [`UNMATCHED`] | account, block, transaction, operation: time | record, 100 B | a stray transfer, its handling | the chain, but for what was decided | never, so far |
//! | [`ASSIGNED`] | transaction id: **random** | payment id | the assignment of a stray transfer | unmatched | never |
//! | [`UNMATCHED_BY_PAYMENT`] | payment id, account, block, transaction, operation | - | a stray transfer that names an unknown session, its handling | unmatched | when something is done about it |
//! | [`COMPLIANCE_STATUSES`] | merchant id | where it stands with compliance, up to 6 kB | a completion, a hold, a note; once per group | nothing: this is the truth | hours after 30 days |
//! | [`ON_HOLD`] | merchant id | - | a hold, its end | compliance_statuses | when the hold ends |
//! | [`BILLING`] | month, merchant id | what completed in it and its invoice, 20 B and up | a completion, an invoice and its payment; once per group | payments, but for what was counted late | never |
//! | [`UNSETTLED`] | month, merchant id | - | the first completion of a month, its payment | billing | when it is paid |
//! | [`INVOICE_SESSIONS`] | payment id: time | the month and merchant it is for | an invoice | billing | never |
//! | [`SEARCH`] | merchant id, word, payment id: transactions' ids are **random** | - | the indexer, in sorted batches; a payer and a transaction by the commit of their transfer | payments and transfers | never |
//! | [`LEDGER_ENTRIES`] | account, time of the block, transaction, operation, kind, payment | units, currency | a transfer or refund that is final, a stray transfer | payments, transfers and unmatched | never |
//! | [`RECONCILED_DAYS`] | beginning of a day | what its check said | the check of a day's books | nothing: this is the truth | never: one a day |
//! | [`AUDIT`] | place in the log | record, 300 B | what admins and merchants do, beside creating payments | nothing: this is the truth | never: append only |
//! | [`AUDIT_BY_MERCHANT`] | merchant id, place in the log | - | what an admin or merchant does that concerns it, or that it does | audit | never: append only |
//! | [`META`] | name | schema, cursor, rate, epochs, search cursor, fee tiers, notes, where the log begins | each by its own write | - | never |
//!
//! Creating a payment touches six: payments, slugs, payments by merchant, counts, days, deadlines; the counts and the day once
//! per group (with an idempotency key two
//! more; with compliance limits it reads the merchant's standing, once per group); only the slug's place is
//! random, and random places are what makes a checkpoint slow. Announcing a change touches payments, payments by merchant,
//! counts, deadlines, events, event ids, times and places, deliveries, those of the payment, of the event and those that wait, and the outbox with its heads. Words for search are written later, many payments at once
//! ([`crate::Store::index_search`]); a payment whose id is at or before the search cursor (a clock went back) is
//! indexed by its own commit instead.
//!
//! | read | costs |
//! |---|---|
//! | by id, slug, key, transaction, nonce | one or two point reads, a few microseconds |
//! | a further transfer of a payment, whatever their number | two point reads for the rows, and the payment's record, which lists few |
//! | a page of payments, of any states, currency, attention and time | its records, a seek for each facet, and a day's row for each day; a page by number passes summaries of its first day, a page by cursor none |
//! | ... with words or amounts | the entries of each, up to 64 words merged or up to 2,000 entries sorted, intersected with one another and with the list of the states and currency, each skipping what another does not have; where words have more entries, the list and its records; the records not indexed yet. At most 10,000 rows or 1,100 records: the next page goes on from there |
//! | the sums of some days | their rows |
//! | a page of deliveries by event, by payment, or by states other than delivered | the index's entries and their records |
//! | ... of all, or with delivered ones among the states | the log, at most 2,000 records beside those shown: the next page goes on from there |
//! | a page of the audit log, of all or of one merchant | its records |
//! | merchants by words | all merchants |

use engine::{
    ids::{DeliveryId, EventId, MerchantId, PaymentId},
    mutant,
};
use redb::{
    Database, Key, ReadTransaction, ReadableTable, Table, TableDefinition, TableError, Value, WriteTransaction,
};

use crate::{
    embedded::fault::Fault,
    record::{
        checked::{Checked, Seed, Text},
        summary::SUMMARY_LEN,
    },
};

/// The version of everything on this page. A store of a newer version is refused; one of an older version is migrated
/// (there is none yet).
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// The key of a delivery: merchant, delivery.
pub(crate) type DeliveryKey = (u128, u128);

/// The key of a payment in its merchant's list: merchant, facet, payment.
pub(crate) type ListKey = (u128, u8, u128);

/// The key of a delivery in the outbox: merchant, due in milliseconds, place of its event, delivery.
pub(crate) type OutboxKey = (u128, u64, u64, u128);

/// Begins a change of the database.
///
/// What is committed says which pages of the file are free: after a crash the file opens at once, and its pages are not
/// read to find out. That would refuse the whole store for a single damaged row. It costs a second sync, but seldom.
pub(crate) fn begin_write(database: &Database) -> Result<WriteTransaction, Fault> {
    let mut transaction = database.begin_write()?;
    transaction.set_quick_repair(!mutant!("repair-reads-every-page"));
    Ok(transaction)
}

/// Calls a macro with the list of all tables: constant, name, key and value.
macro_rules! with_tables {
    ($callback:ident) => {
        $callback! {
            /// Payments.
            PAYMENTS, payments: u128 => &'static [u8];
            /// Checkout addresses.
            SLUGS, slugs: u128 => u128;
            /// What a merchant's list filters by.
            PAYMENTS_BY_MERCHANT, payments_by_merchant: ListKey => &'static [u8; SUMMARY_LEN];
            /// The sums of a merchant's days.
            PAYMENT_DAYS, payment_days: DayKey => &'static [u8];
            /// How many payments of a merchant stand in a state (its code).
            PAYMENT_COUNTS, payment_counts: (u128, u32) => u64;
            /// Pending payments by deadline.
            DEADLINES, deadlines: (u64, u128) => ();
            /// Payments with an open claim, or with a transfer in a block that can still change.
            IN_FLIGHT, in_flight: u128 => ();
            /// Transfers of payments.
            TRANSFERS, transfers: (u128, &'static [u8; 20], u32) => &'static [u8];
            /// Transfers of payments in the order they became known: the transaction and the operation.
            TRANSFER_ORDER, transfer_order: (u128, u64) => (&'static [u8; 20], u32);
            /// Merchants.
            MERCHANTS, merchants: u128 => &'static [u8];
            /// Whose an API key is.
            API_KEYS, api_keys: &'static [u8; 32] => u128;
            /// Watched accounts.
            ACCOUNTS, accounts: Text => u64;
            /// Merchants by account.
            ACCOUNT_MERCHANTS, account_merchants: (Text, u128) => ();
            /// Merchants that have proven their account, by account.
            PROVEN_MERCHANTS, proven_merchants: (Text, u128) => ();
            /// Merchants with a pending change of their account, by when something is to be done about it.
            PENDING_ACCOUNTS, pending_accounts: (u64, u128) => ();
            /// Accounts that a merchant left, and when they are watched no more.
            RETIRED_ACCOUNTS, retired_accounts: Text => u64;
            /// Idempotency keys.
            IDEMPOTENCY, idempotency: (u128, &'static [u8; 32]) => &'static [u8];
            /// Idempotency keys by the time they were made.
            IDEMPOTENCY_TIMES, idempotency_times: (u64, u128, &'static [u8; 32]) => ();
            /// Events.
            EVENTS, events: (u128, u64) => &'static [u8];
            /// The last place in a merchant's list of events, the epoch it was given in, and the last place before that epoch.
            EVENT_SEQS, event_seqs: u128 => (u64, u64, u64);
            /// Where an event stands.
            EVENT_IDS, event_ids: u128 => (u128, u64);
            /// Events by the time they happened at.
            EVENT_TIMES, event_times: (u64, u128) => ();
            /// Deliveries, whatever became of them.
            DELIVERIES, deliveries: DeliveryKey => &'static [u8];
            /// Deliveries of a payment's events.
            PAYMENT_DELIVERIES, payment_deliveries: (u128, u128) => ();
            /// Deliveries of an event.
            EVENT_DELIVERIES, event_deliveries: (u128, u128) => ();
            /// Deliveries that wait, are held or have failed: merchant, state, delivery.
            UNDELIVERED, undelivered: (u128, u32, u128) => ();
            /// Deliveries still to make.
            OUTBOX, outbox: OutboxKey => ();
            /// When a merchant's first delivery is due.
            OUTBOX_HEADS, outbox_heads: u128 => u64;
            /// Merchants by when their first delivery is due.
            OUTBOX_DUE, outbox_due: (u64, u128) => ();
            /// Deliveries of a payment's events that wait.
            PENDING_DELIVERIES, pending_deliveries: (u128, u64, u128) => ();
            /// How endpoints are.
            ENDPOINTS, endpoints: u128 => &'static [u8];
            /// Attempts made.
            ATTEMPTS, attempts: (u128, u128, u32) => &'static [u8];
            /// ClaimRecord transactions.
            CLAIMS, claims: &'static [u8; 20] => &'static [u8];
            /// Claims of no session whose outcome is open.
            FACILITATIONS, facilitations: &'static [u8; 20] => ();
            /// Used nonces and payment identifiers of each payee.
            NONCES, nonces: &'static [u8; 32] => &'static [u8; 20];
            /// Transfers that pay no session.
            UNMATCHED, unmatched: (Text, u32, u32, u32) => &'static [u8];
            /// Transactions of which a transfer was assigned to a session.
            ASSIGNED, assigned: &'static [u8; 20] => u128;
            /// Stray transfers by the unknown session they name.
            UNMATCHED_BY_PAYMENT, unmatched_by_payment: (u128, Text, u32, u32, u32) => ();
            /// Where merchants stand with compliance.
            COMPLIANCE_STATUSES, compliance_statuses: u128 => &'static [u8];
            /// Merchants on hold.
            ON_HOLD, on_hold: u128 => ();
            /// Merchants' months.
            BILLING, billing: (u32, u128) => &'static [u8];
            /// Months that are not paid yet.
            UNSETTLED, unsettled: (u32, u128) => ();
            /// Which month a session is the invoice of.
            INVOICE_SESSIONS, invoice_sessions: u128 => (u32, u128);
            /// What was counted for accounts: the account, its block's time, transaction, operation, kind and payment; units and
            /// currency.
            LEDGER_ENTRIES, ledger_entries: (Text, u64, &'static [u8; 20], u32, u32, u128) => (u64, u32);
            /// What the checks of days said, by the day's beginning.
            RECONCILED_DAYS, reconciled_days: u64 => &'static [u8];
            /// Words of payments.
            SEARCH, search: (u128, Text, u128) => ();
            /// The audit log.
            AUDIT, audit: u64 => &'static [u8];
            /// Lines of the audit log by the merchants they concern.
            AUDIT_BY_MERCHANT, audit_by_merchant: (u128, u64) => ();
            /// Single values.
            META, meta: Text => &'static [u8];
        }
    };
}
pub(crate) use with_tables;

macro_rules! define {
    ($($(#[$doc:meta])* $constant:ident, $field:ident: $key:ty => $value:ty;)+) => {
        $(
            $(#[$doc])*
            pub(crate) const $constant: TableDefinition<'static, $key, Checked<$value>> =
                TableDefinition::new(stringify!($field));
        )+

        /// The names of all tables.
        pub const NAMES: [&str; [$(stringify!($field)),+].len()] = [$(stringify!($field)),+];

        /// The tables of the database that a write transaction has opened so far: a table that is not needed costs
        /// nothing.
        pub(crate) struct Tables<'t> {
            transaction: &'t WriteTransaction,
            $($field: Option<Table<'t, $key, Checked<$value>>>,)+
        }

        impl<'t> Tables<'t> {
            /// Returns the tables of a transaction, none of them open.
            pub(crate) fn of(transaction: &'t WriteTransaction) -> Self {
                Self { transaction, $($field: None,)+ }
            }

            $(
                /// Opens the table of this name, once.
                pub(crate) fn $field(&mut self) -> Result<&mut Table<'t, $key, Checked<$value>>, TableError> {
                    if self.$field.is_none() {
                        self.$field = Some(self.transaction.open_table($constant)?);
                    }
                    Ok(self.$field.as_mut().expect("it was opened two lines above"))
                }
            )+

            /// Puts a row into the table of this name, in the form of the database and with the checksum it has; says
            /// whether there is such a table, and such a key in it.
            pub(crate) fn put_row(&mut self, table: &str, key: &[u8], value: &[u8]) -> Result<bool, Fault> {
                match table {
                    $(stringify!($field) if fits::<$key>(key) && fits::<Checked<$value>>(value) => {
                        self.$field()?.insert(<$key as Value>::from_bytes(key), value)?;
                        Ok(true)
                    })+
                    _ => Ok(false),
                }
            }

            /// Creates every table, so that reads need not ask whether there is one.
            pub(crate) fn create_all(&mut self) -> Result<(), TableError> {
                $(self.$field()?;)+
                Ok(())
            }
        }

        /// Shows every row of a database in its form, table by table, in the order of their keys.
        pub(crate) fn each_row(
            snapshot: &ReadTransaction,
            see: &mut impl FnMut(&'static str, &[u8], &[u8]) -> Result<(), Fault>,
        ) -> Result<(), Fault> {
            $(rows_of(snapshot, $constant, stringify!($field), see)?;)+
            Ok(())
        }

        /// Returns the tables that a store lacks.
        pub(crate) fn missing(snapshot: &ReadTransaction) -> Result<Vec<&'static str>, Fault> {
            let mut missing = Vec::new();
            $(if existing(snapshot.open_table($constant))?.is_none() {
                missing.push(stringify!($field));
            })+
            Ok(missing)
        }

        /// Returns the value of a row of the table of this name; none where there is no such table.
        ///
        /// # Errors
        /// [`Fault::Damaged`] where the row is not as it was written.
        pub(crate) fn open_row<'b>(table: &str, key: &[u8], sealed: &'b [u8]) -> Result<Option<&'b [u8]>, Fault> {
            match table {
                $(stringify!($field) => match Seed::of(stringify!($field)).open(key, sealed) {
                    Some(value) => Ok(Some(value)),
                    None => Err(Fault::inconsistent(stringify!($field), name_of::<$key>(table, key), CHECKSUM)),
                })+
                _ => Ok(None),
            }
        }
    };
}

/// What is said of a row whose checksum does not agree.
pub(crate) const CHECKSUM: &str = "its checksum does not match";

/// Sets a row of a table of the database to a value, with its checksum, or removes it.
pub(crate) fn set_row<K: Key + 'static, V: Value + 'static>(
    table: &mut Table<'_, K, Checked<V>>,
    seed: Seed,
    key: &[u8],
    value: Option<&[u8]>,
) -> Result<(), Fault> {
    match value {
        Some(value) => drop(table.insert(K::from_bytes(key), seed.seal(key, value).as_slice())?),
        None => drop(table.remove(K::from_bytes(key))?),
    }
    Ok(())
}

/// Says whether bytes may be a value of a type: those of one length have it.
pub(crate) fn fits<T: Value>(bytes: &[u8]) -> bool {
    T::fixed_width().is_none_or(|width| width == bytes.len())
}

/// Returns a table, unless it came to the schema after the store.
pub(crate) fn existing<T>(opened: Result<T, TableError>) -> Result<Option<T>, Fault> {
    match opened {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn rows_of<K: Key + 'static, V: Value + 'static>(
    snapshot: &ReadTransaction,
    definition: TableDefinition<'static, K, Checked<V>>,
    name: &'static str,
    see: &mut impl FnMut(&'static str, &[u8], &[u8]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let Some(table) = existing(snapshot.open_table(definition))? else { return Ok(()) };
    for entry in table.iter()? {
        let (key, value) = entry?;
        see(name, K::as_bytes(&key.value()).as_ref(), value.value())?;
    }
    Ok(())
}

/// Names a row for people. A secret checkout address is told by its beginning only.
pub(crate) fn name_of<K: Key + 'static>(table: &str, key: &[u8]) -> String {
    let number = || key.first_chunk().map(|bytes| u128::from_le_bytes(*bytes)).unwrap_or_default();
    match table {
        "payments" | "in_flight" | "invoice_sessions" => PaymentId::from_bits(number()).to_string(),
        "merchants" | "event_seqs" | "outbox_heads" | "endpoints" | "compliance_statuses" | "on_hold" => {
            MerchantId::from_bits(number()).to_string()
        }
        "event_ids" => EventId::from_bits(number()).to_string(),
        "slugs" => format!("{:04x}…", number() >> 112),
        "payments_by_merchant" | "deliveries" => {
            let second = key.last_chunk().map(|bytes| u128::from_le_bytes(*bytes)).unwrap_or_default();
            let row = if table == "deliveries" {
                DeliveryId::from_bits(second).to_string()
            } else {
                PaymentId::from_bits(second).to_string()
            };
            format!("{row} of {}", MerchantId::from_bits(number()))
        }
        "claims" | "facilitations" | "nonces" | "api_keys" => {
            key.iter().take(20).map(|byte| format!("{byte:02x}")).collect()
        }
        _ => format!("{:?}", K::from_bytes(key)),
    }
}

with_tables!(define);

/// The code under which [`PAYMENT_COUNTS`] counts a merchant's idempotency keys; no state has it.
pub(crate) const KEYS_COUNT: u32 = u32::MAX;
/// The code under which [`PAYMENT_COUNTS`] counts the bytes of the records of a merchant's payments.
pub(crate) const BYTES_COUNT: u32 = u32::MAX - 1;

/// The names in [`META`].
pub(crate) mod meta {
    /// The table's name.
    pub(crate) const TABLE: &str = "meta";
    /// The schema's version: 4 bytes, big endian.
    pub(crate) const SCHEMA: &str = "schema";
    /// The scanner's cursor.
    pub(crate) const CURSOR: &str = "cursor";
    /// The price of HIVE.
    pub(crate) const RATE: &str = "rate";
    /// What names the master key that secrets are sealed with.
    pub(crate) const MASTER_KEY: &str = "master key";
    /// There while pages and log may still hold secrets in clear that have been sealed: the store is written anew.
    pub(crate) const SEALED_LATELY: &str = "sealed lately";
    /// The fee tiers.
    pub(crate) const FEE_TIERS: &str = "fee tiers";
    /// Where the log begins: 16 bytes that tell it from those of copies, and the number of its first entry, 8 bytes.
    pub(crate) const LOG: &str = "log";
    /// The epochs of the store after the first, oldest first: 8 bytes each, big endian.
    pub(crate) const EPOCHS: &str = "epochs";
    /// The last payment the indexer has read: 16 bytes, big endian.
    pub(crate) const SEARCH_CURSOR: &str = "search cursor";

    /// Returns the name of a note.
    pub(crate) fn note(name: &str) -> String {
        format!("note {name}")
    }
}

/// The key of a day: merchant, whole days of UTC since 1970.
pub(crate) type DayKey = (u128, u64);

/// The key of a period: its month, its merchant.
pub(crate) type PeriodKey = (u32, u128);
