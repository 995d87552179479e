//! Every table: key, value, when it is written, what it can be rebuilt from, and when rows are deleted.
//!
//! | table | key, in order | value | written by | rebuilt from | deleted |
//! |---|---|---|---|---|---|
//! | [`PAYMENTS`] | payment id: time | record, 250 B and more | every change of a payment | primary data | never |
//! | [`SLUGS`] | slug token: **random** | payment id | creation | payments | never |
//! | [`PAYMENTS_BY_MERCHANT`] | merchant id, facet (state, currency, attention), payment id: time | 36 B summary | a change of the summary | payments | never |
//! | [`PAYMENT_DAYS`] | merchant id, day of creation | count by facet, volume, times to completion; 30 B and more | creation, a change of the summary; once per group | payments by merchant | never |
//! | [`PAYMENT_COUNTS`] | merchant id, state (or [`KEYS_COUNT`], [`BYTES_COUNT`]) | count | every change of a payment, an idempotency key inserted or deleted; once per group | payments, idempotency | never |
//! | [`DEADLINES`] | deadline ms, payment id: time | - | creation, leaving `pending` | payments | when a payment leaves `pending` |
//! | [`IN_FLIGHT`] | payment id: time | - | claim or reversible transfer, its settlement or finality | payments | when the payment waits for no block |
//! | [`TRANSFERS`] | payment id: time, transaction id, operation | record, 100 B to 2.3 kB | a transfer that names a payment, a change of its finality | primary data, except those that a payment's record lists | never |
//! | [`TRANSFER_ORDER`] | payment id: time, sequence number | transaction id, operation | a new transfer | transfers | never |
//! | [`MERCHANTS`] | merchant id: time | record, 300 B | registration, change | primary data | never |
//! | [`API_KEYS`] | digest of the key: **random** | merchant id | registration, new key | merchants | when its key is replaced |
//! | [`ACCOUNTS`] | account name | watched since, ms | every write of a merchant | merchants and retired accounts | 31 days after the last merchant left it |
//! | [`ACCOUNTS_ADDED`] | number, from 1 | account name | the first write of a merchant with an account that is not watched | primary data | never |
//! | [`ACCOUNT_MERCHANTS`] | account name, merchant id | - | registration, change of account | merchants | when its merchant leaves the account |
//! | [`PROVEN_MERCHANTS`] | account name, merchant id | - | a proof of the account | merchants | when its merchant leaves the account |
//! | [`PENDING_ACCOUNTS`] | due ms, merchant id | - | a pending change of a proven account, its proofs | merchants | when it takes effect, lapses or is cancelled |
//! | [`RETIRED_ACCOUNTS`] | account name | watched until, ms | the last merchant leaves an account | primary data | at that time |
//! | [`IDEMPOTENCY`] | merchant id, digest of the key: **random** | record, 70 B | a request with a key | primary data | after a day |
//! | [`IDEMPOTENCY_TIMES`] | creation time, merchant id, digest: time | - | a request with a key | idempotency | with its key |
//! | [`EVENTS`] | merchant id, sequence number: time | record, 1 kB | an event | primary data | after the retention period |
//! | [`EVENT_IDS`] | event id: time of its payment | merchant id, sequence number | an event | events | with its event |
//! | [`EVENT_TIMES`] | time of the event, event id: time | - | an event | events | with its event |
//! | [`EVENT_SEQS`] | merchant id | last sequence number, its epoch, last number before that epoch | an event; once per group | events, except the epoch | never |
//! | [`DELIVERIES`] | merchant id, delivery id: time | record, 100 B | an event, an attempt | primary data | never |
//! | [`PAYMENT_DELIVERIES`] | payment id, delivery id: time | - | an event, a requested redelivery | deliveries | never |
//! | [`EVENT_DELIVERIES`] | event id: time, delivery id: time | - | an event, a requested redelivery | deliveries | never |
//! | [`UNDELIVERED`] | merchant id, state, delivery id: time | - | an event, a change of the delivery's state | deliveries | when delivered |
//! | [`OUTBOX`] | endpoint id, due ms, sequence number of the event, delivery id: time | merchant id | an event, an attempt | deliveries | when delivered, held or failed |
//! | [`OUTBOX_HEADS`] | endpoint id | due ms of its first delivery | a change of its queue; once per group | outbox | when its queue is empty |
//! | [`OUTBOX_DUE`] | due ms, endpoint id: time | - | a change of the head of a queue; once per group | outbox | when its queue is empty |
//! | [`PENDING_DELIVERIES`] | payment id: time, endpoint id, sequence number of the event, delivery id | - | an event | deliveries | when delivered, held or failed |
//! | [`ATTEMPTS`] | event id, delivery id, number: time | record, up to 1.5 kB | an attempt | primary data | the response, with its event |
//! | [`ENDPOINTS`] | endpoint id | health, 40 B | an attempt | attempts | when its merchant enables, changes or deletes the endpoint |
//! | [`CLAIMS`] | transaction id: **random** | record | an x402 claim | primary data | days after the transaction expired if no merchant requested it; otherwise never, because a replay may come years later |
//! | [`FACILITATIONS`] | transaction id: **random** | - | an x402 claim for another server, its settlement | claims | when it is settled |
//! | [`NONCES`] | SHA-256 of payee and nonce, or payee and payment identifier: **random** | transaction id | an x402 claim | claims | with its claim |
//! | [`UNMATCHED`] | account, block, transaction, operation: time | record, 100 B | an unmatched transfer, its handling | the chain, except the handling | never |
//! | [`ASSIGNED`] | transaction id: **random** | payment id | the assignment of an unmatched transfer | unmatched | never |
//! | [`UNMATCHED_BY_PAYMENT`] | payment id, account, block, transaction, operation | - | an unmatched transfer that names an unknown session, its handling | unmatched | when it is handled |
//! | [`COMPLIANCE_STATUSES`] | merchant id | record, up to 6 kB | a completion, a hold, a notice; once per group | primary data | hours after 30 days |
//! | [`ON_HOLD`] | merchant id | - | a hold, its end | compliance_statuses | when the hold ends |
//! | [`BILLING`] | month, merchant id | usage and invoice, 20 B and more | a completion, an invoice and its payment; once per group | payments, except usage counted late | never |
//! | [`UNSETTLED`] | month, merchant id | - | the first completion of a month, its payment | billing | when it is paid |
//! | [`INVOICE_SESSIONS`] | payment id: time | month and merchant of its invoice | an invoice | billing | never |
//! | [`SEARCH`] | merchant id, word, payment id: transaction ids are **random** | - | the indexer, in sorted batches; payer and transaction by the commit of their transfer | payments and transfers | never |
//! | [`LEDGER_ENTRIES`] | account, block time, transaction, operation, kind, payment | units, currency | an irreversible transfer or refund, an unmatched transfer | payments, transfers and unmatched | never |
//! | [`RECONCILED_DAYS`] | start of a day | record | the reconciliation of a day | primary data | never: one row a day |
//! | [`AUDIT`] | sequence number | record, 300 B | actions of admins and merchants except the creation of payments | primary data | never: append only |
//! | [`AUDIT_BY_MERCHANT`] | merchant id, sequence number | - | an action by the merchant, or that concerns it | audit | never: append only |
//! | [`ENGINES`] | engine id: **random** | lease: since, until | an engine that shares the store: start, every few seconds, stop | nothing: leases expire | when its lease ends |
//! | [`DUTIES`] | duty | term, engine id | a change of the holder | primary data | never: 261 rows |
//! | [`META`] | name | schema, cursor, rate, epochs, search cursor, fee tiers, receipt keys, notes, start of the log | each by its own write | - | never |
//!
//! Creating a payment writes to six tables: payments, slugs, payments by merchant, counts, days and deadlines; to the counts
//! and the day once per group. With an idempotency key it writes to two more; with compliance limits it reads the merchant's
//! compliance status once per group. Only the key in slugs is random: random keys make checkpoints slow. An event writes to
//! payments, payments by merchant, counts, deadlines, events with their ids, times and sequence numbers, deliveries with their
//! indexes, and the outbox with its heads. Search words are written later, many payments at once
//! ([`crate::Store::index_search`]); a payment whose id is at or before the search cursor, because a clock ran behind, is
//! indexed by its own commit.
//!
//! | read | cost |
//! |---|---|
//! | by id, slug, key, transaction, nonce | one or two point reads, a few microseconds |
//! | another transfer of a payment | two point reads of rows and one of the payment's record, however many transfers it has |
//! | a page of payments by state, currency, attention and time | its records, a seek for each facet, and the row of each day; a page by number skips summaries of its first day, a page by cursor none |
//! | ... with words or amounts | the entries of each, up to 64 words merged or up to 2,000 entries sorted, intersected with each other and with the list of the states and the currency, each skipping what another lacks; for words with more entries, the list and its records; the records not indexed yet. At most 10,000 rows or 1,100 records, where the next page continues |
//! | daily sums | one row a day |
//! | a page of deliveries by event, by payment, or by states other than delivered | index entries and their records |
//! | ... of all, or with delivered ones among the states | the log, at most 2,000 records beyond the returned ones, where the next page continues |
//! | a page of the audit log, of all or of one merchant | its records |
//! | merchants by text | all merchants |

use engine::{
    ids::{DeliveryId, EndpointId, EventId, MerchantId, PaymentId},
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

/// The version of the tables on this page. A store with a newer version is rejected; one with an older version is
/// migrated (there is none yet).
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// The key of a delivery: merchant, delivery.
pub(crate) type DeliveryKey = (u128, u128);

/// The key of a payment in its merchant's list: merchant, facet, payment.
pub(crate) type ListKey = (u128, u8, u128);

/// The key of a delivery in the outbox: endpoint, due time in Unix milliseconds, sequence number of its event,
/// delivery.
pub(crate) type OutboxKey = (u128, u64, u64, u128);

/// The key of a pending delivery of a payment's event: payment, endpoint, sequence number of the event, delivery.
pub(crate) type PendingKey = (u128, u128, u64, u128);

/// Begins a write transaction of the database.
///
/// Each commit stores the list of free pages, so that after a crash the file opens at once. Without the list redb would
/// read all pages, and one damaged page would prevent opening. The list costs a second sync, but checkpoints are rare.
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
            /// Slugs of checkout URLs.
            SLUGS, slugs: u128 => u128;
            /// Summaries of a merchant's payments, for lists and filters.
            PAYMENTS_BY_MERCHANT, payments_by_merchant: ListKey => &'static [u8; SUMMARY_LEN];
            /// Daily sums of a merchant's payments.
            PAYMENT_DAYS, payment_days: DayKey => &'static [u8];
            /// Number of a merchant's payments by state (its code).
            PAYMENT_COUNTS, payment_counts: (u128, u32) => u64;
            /// Pending payments by deadline.
            DEADLINES, deadlines: (u64, u128) => ();
            /// Payments that wait for a block: with an open claim, or with a transfer in a reversible block.
            IN_FLIGHT, in_flight: u128 => ();
            /// Transfers of payments.
            TRANSFERS, transfers: (u128, &'static [u8; 20], u32) => &'static [u8];
            /// Transfers of payments in the order in which they were first seen: transaction and operation.
            TRANSFER_ORDER, transfer_order: (u128, u64) => (&'static [u8; 20], u32);
            /// Merchants.
            MERCHANTS, merchants: u128 => &'static [u8];
            /// The merchants of API keys.
            API_KEYS, api_keys: &'static [u8; 32] => u128;
            /// Watched accounts.
            ACCOUNTS, accounts: Text => u64;
            /// Accounts in the order in which they were first watched.
            ACCOUNTS_ADDED, accounts_added: u64 => Text;
            /// Merchants by account.
            ACCOUNT_MERCHANTS, account_merchants: (Text, u128) => ();
            /// Merchants that have proven their account, by account.
            PROVEN_MERCHANTS, proven_merchants: (Text, u128) => ();
            /// Merchants with a pending change of their account, by the time at which it takes effect or lapses.
            PENDING_ACCOUNTS, pending_accounts: (u64, u128) => ();
            /// Accounts that no merchant has any more, and when they stop being watched.
            RETIRED_ACCOUNTS, retired_accounts: Text => u64;
            /// Idempotency keys.
            IDEMPOTENCY, idempotency: (u128, &'static [u8; 32]) => &'static [u8];
            /// Idempotency keys by creation time.
            IDEMPOTENCY_TIMES, idempotency_times: (u64, u128, &'static [u8; 32]) => ();
            /// Events.
            EVENTS, events: (u128, u64) => &'static [u8];
            /// The end of a merchant's list of events: the last sequence number, its epoch, and the last number before
            /// that epoch.
            EVENT_SEQS, event_seqs: u128 => (u64, u64, u64);
            /// The merchant and the sequence number of an event.
            EVENT_IDS, event_ids: u128 => (u128, u64);
            /// Events by time.
            EVENT_TIMES, event_times: (u64, u128) => ();
            /// Deliveries in every state.
            DELIVERIES, deliveries: DeliveryKey => &'static [u8];
            /// Deliveries of a payment's events.
            PAYMENT_DELIVERIES, payment_deliveries: (u128, u128) => ();
            /// Deliveries of an event.
            EVENT_DELIVERIES, event_deliveries: (u128, u128) => ();
            /// Deliveries that are pending, held or failed: merchant, state, delivery.
            UNDELIVERED, undelivered: (u128, u32, u128) => ();
            /// The merchants of pending deliveries, by due time.
            OUTBOX, outbox: OutboxKey => u128;
            /// The earliest due time of an endpoint's pending deliveries.
            OUTBOX_HEADS, outbox_heads: u128 => u64;
            /// Endpoints by the earliest due time of their pending deliveries.
            OUTBOX_DUE, outbox_due: (u64, u128) => ();
            /// Pending deliveries of a payment's events.
            PENDING_DELIVERIES, pending_deliveries: PendingKey => ();
            /// The health of endpoints.
            ENDPOINTS, endpoints: u128 => &'static [u8];
            /// Attempts of deliveries.
            ATTEMPTS, attempts: (u128, u128, u32) => &'static [u8];
            /// Claimed x402 transactions.
            CLAIMS, claims: &'static [u8; 20] => &'static [u8];
            /// Open claims that belong to no session.
            FACILITATIONS, facilitations: &'static [u8; 20] => ();
            /// Used nonces and payment identifiers of each payee.
            NONCES, nonces: &'static [u8; 32] => &'static [u8; 20];
            /// Unmatched transfers.
            UNMATCHED, unmatched: (Text, u32, u32, u32) => &'static [u8];
            /// Transactions of which a transfer was assigned to a session.
            ASSIGNED, assigned: &'static [u8; 20] => u128;
            /// Unmatched transfers by the unknown session that they name.
            UNMATCHED_BY_PAYMENT, unmatched_by_payment: (u128, Text, u32, u32, u32) => ();
            /// The compliance statuses of merchants.
            COMPLIANCE_STATUSES, compliance_statuses: u128 => &'static [u8];
            /// Merchants on compliance hold.
            ON_HOLD, on_hold: u128 => ();
            /// Billing periods: merchants' months.
            BILLING, billing: (u32, u128) => &'static [u8];
            /// Billing periods that are not paid.
            UNSETTLED, unsettled: (u32, u128) => ();
            /// The billing period of an invoice's session.
            INVOICE_SESSIONS, invoice_sessions: u128 => (u32, u128);
            /// Ledger entries: account, block time, transaction, operation, kind and payment; units and currency.
            LEDGER_ENTRIES, ledger_entries: (Text, u64, &'static [u8; 20], u32, u32, u128) => (u64, u32);
            /// Results of the daily reconciliation, by the start of the day.
            RECONCILED_DAYS, reconciled_days: u64 => &'static [u8];
            /// Search words of payments.
            SEARCH, search: (u128, Text, u128) => ();
            /// The audit log.
            AUDIT, audit: u64 => &'static [u8];
            /// Entries of the audit log by the merchants they concern.
            AUDIT_BY_MERCHANT, audit_by_merchant: (u128, u64) => ();
            /// Engines: the beginning and the end of their leases, Unix milliseconds.
            ENGINES, engines: u64 => (u64, u64);
            /// Duties by name: term, and the engine that holds the duty or 0.
            DUTIES, duties: Text => (u64, u64);
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

        /// The tables that a write transaction of the database has opened so far. A table is opened on first use.
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
                /// Opens the table of this name on first use.
                pub(crate) fn $field(&mut self) -> Result<&mut Table<'t, $key, Checked<$value>>, TableError> {
                    if self.$field.is_none() {
                        self.$field = Some(self.transaction.open_table($constant)?);
                    }
                    Ok(self.$field.as_mut().expect("it was opened two lines above"))
                }
            )+

            /// Inserts a row, in its stored form with its checksum, into the table of this name. Returns whether the
            /// table exists and can hold the key.
            pub(crate) fn put_row(&mut self, table: &str, key: &[u8], value: &[u8]) -> Result<bool, Fault> {
                match table {
                    $(stringify!($field) if fits::<$key>(key) && fits::<Checked<$value>>(value) => {
                        self.$field()?.insert(<$key as Value>::from_bytes(key), value)?;
                        Ok(true)
                    })+
                    _ => Ok(false),
                }
            }

            /// Creates every table, so that reads need not check whether it exists.
            pub(crate) fn create_all(&mut self) -> Result<(), TableError> {
                $(self.$field()?;)+
                Ok(())
            }
        }

        /// Passes every stored row of a database to `visit`, table by table, in key order.
        pub(crate) fn each_row(
            snapshot: &ReadTransaction,
            visit: &mut impl FnMut(&'static str, &[u8], &[u8]) -> Result<(), Fault>,
        ) -> Result<(), Fault> {
            $(rows_of(snapshot, $constant, stringify!($field), visit)?;)+
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

        /// Returns the value of a stored row of the table of this name; none if there is no such table.
        ///
        /// # Errors
        /// [`Fault::Damaged`] if the checksum does not match.
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

/// The description of a row whose checksum does not match.
pub(crate) const CHECKSUM: &str = "its checksum does not match";

/// Sets or removes a row of a database table. The stored value has a checksum.
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

/// Returns whether bytes may be a value of a type: values of fixed-width types must have that width.
pub(crate) fn fits<T: Value>(bytes: &[u8]) -> bool {
    T::fixed_width().is_none_or(|width| width == bytes.len())
}

/// Returns a table; none if the store is older than the table.
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
    visit: &mut impl FnMut(&'static str, &[u8], &[u8]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let Some(table) = existing(snapshot.open_table(definition))? else { return Ok(()) };
    for entry in table.iter()? {
        let (key, value) = entry?;
        visit(name, K::as_bytes(&key.value()).as_ref(), value.value())?;
    }
    Ok(())
}

/// Returns the readable name of a row. Of a slug it shows only the beginning, because slugs are secret.
pub(crate) fn name_of<K: Key + 'static>(table: &str, key: &[u8]) -> String {
    let number = || key.first_chunk().map(|bytes| u128::from_le_bytes(*bytes)).unwrap_or_default();
    match table {
        "payments" | "in_flight" | "invoice_sessions" => PaymentId::from_bits(number()).to_string(),
        "merchants" | "event_seqs" | "compliance_statuses" | "on_hold" => MerchantId::from_bits(number()).to_string(),
        "outbox_heads" | "endpoints" => EndpointId::from_bits(number()).to_string(),
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
/// The code under which [`PAYMENT_COUNTS`] counts the bytes of a merchant's payment records.
pub(crate) const BYTES_COUNT: u32 = u32::MAX - 1;

/// The names of the rows in [`META`].
pub(crate) mod meta {
    /// The table's name.
    pub(crate) const TABLE: &str = "meta";
    /// The schema version: 4 bytes, big endian.
    pub(crate) const SCHEMA: &str = "schema";
    /// The scanner's cursor.
    pub(crate) const CURSOR: &str = "cursor";
    /// The price of HIVE.
    pub(crate) const RATE: &str = "rate";
    /// The id of the master key that seals the secrets.
    pub(crate) const MASTER_KEY: &str = "master key";
    /// Present while freed pages and the log may still contain unencrypted secrets: the file must be rewritten.
    pub(crate) const REWRITE_PENDING: &str = "rewrite pending";
    /// The fee tiers.
    pub(crate) const FEE_TIERS: &str = "fee tiers";
    /// The keys that sign offers and receipts.
    pub(crate) const RECEIPT_KEYS: &str = "receipt keys";
    /// The LSN at which the log begins: 16 bytes that identify the log, and the number of its first entry, 8 bytes.
    pub(crate) const LOG: &str = "log";
    /// The epochs of the store after the first, oldest first: 8 bytes each, big endian.
    pub(crate) const EPOCHS: &str = "epochs";
    /// The last payment in the search index: 16 bytes, big endian.
    pub(crate) const SEARCH_CURSOR: &str = "search cursor";

    const NOTE: &str = "note ";

    /// Returns the row name of a note.
    pub(crate) fn note(name: &str) -> String {
        format!("{NOTE}{name}")
    }

    /// Returns whether a row is a note.
    pub(crate) fn is_note(name: &str) -> bool {
        name.starts_with(NOTE)
    }
}

/// The key of a day: merchant, days since 1970-01-01 UTC.
pub(crate) type DayKey = (u128, u64);

/// The key of a billing period: month, merchant.
pub(crate) type PeriodKey = (u32, u128);
