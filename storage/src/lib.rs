//! Durable state of Hivetill: one [`Store`] trait with a single write method, [`Store::commit`], and snapshot reads.
//!
//! A batch is durable as a whole or not at all. It carries the expected version of every row it replaces, so that a
//! writer with stale data gets a conflict. Code above this trait must not assume that it is the only writer.

mod batch;
mod conversion;
mod duty;
mod embedded;
mod postgres;
mod record;
mod store;

pub use batch::{
    Batch, CommitError, CommitId, Cursor, EventRecord, Handling, HoldReason, Invoicing, Resolution, Unmatched,
    UnmatchedReason, Write,
};
pub use conversion::{
    Copied, Progress, Watcher,
    to_embedded::{copy_to_embedded, read_database},
    to_postgres::copy_to_postgres,
};
pub use duty::{Buckets, Duty, EngineId};
pub use embedded::{
    commit::committer::CommitMode,
    maintenance::{
        backup::{Idle, NewStore, Row, Rows, read_file, restore_backend},
        directory::look_for_store,
        export::{record as export_record, record_naming as export_record_naming},
        verify::file as verify_file,
    },
    metrics::CommitMetrics,
    options::Options,
    store::EmbeddedStore,
    tables::NAMES as TABLE_NAMES,
};
pub use postgres::{
    address::Address,
    inspection::DatabaseReport,
    store::{Connections, PostgresStore},
    table::TABLE_NAMES as DATABASE_TABLE_NAMES,
};
pub use record::vault::{MasterKey, Secrets, Vault};
pub use store::{
    Store,
    accounts::Accounts,
    audit::{AuditLog, AuditQuery},
    billing::{Billing, PeriodQuery},
    chain::Chain,
    claims::Claims,
    compliance::Compliance,
    duties::{Duties, DutyRecord, EngineLease, Membership},
    error::{FILE_NAME, OpenError, Read, ReadError},
    events::Events,
    idempotency::IdempotencyKeys,
    ledger_entries::{LedgerEntries, LedgerEntryKey},
    merchants::{ListedMerchant, MerchantQuery, Merchants},
    notes::Notes,
    outbox::{DeliveryQuery, Due, DueWork, Outbox, Passed},
    page::{Page, PageAt},
    payments::{DayVolume, PaymentQuery, Payments, Vicinity, Volume, VolumeQuery},
    prelude,
    report::{Figures, Line, Report, Totals},
    unmatched::{UnmatchedTransfers, WaitingTransferKey},
    wrapped::{Call, Wrapped},
};

/// Returns a row's value in its stored form, with its checksum, for programs that write a store's file themselves.
#[must_use]
pub fn sealed(table: &str, key: &[u8], value: &[u8]) -> Vec<u8> {
    record::checked::Seed::of(table).seal(key, value)
}
