//! The working set of a group of batches: rows as they are in the database, and as the batches change them.

use std::collections::{BTreeMap, BTreeSet};

use engine::{account::AccountName, audit::Entry, quota::Usage, time::Timestamp};

use crate::{
    batch::CommitError,
    postgres::{
        fault::Fault,
        statement::Statement,
        table::Rows,
        tables::{
            business::{ComplianceRow, IdempotencyRow, InvoiceRow, PeriodRow, ReconciledRow, SingleRow},
            duties::{DutyRow, EngineRow},
            ledger::{ClaimRow, EntryRow, NameRow, UnmatchedRow, UseRow},
            merchants::{AccountRow, KeyRow, MerchantRow},
            payments::{PaymentRow, TransferRow, WordRow},
            webhooks::{AttemptRow, DeliveryRow, EndpointRow, EventRow, Head, ListRow},
        },
    },
};

/// The result of a step: applied, rejected, or failed because of a damaged record.
pub(crate) type Checked<T = ()> = Result<Result<T, CommitError>, Fault>;

pub(crate) fn conflict<T>(what: impl ToString) -> Checked<T> {
    Ok(Err(CommitError::Conflict { what: what.to_string() }))
}

/// The usage of a merchant, and its change by the group.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UsageCount {
    pub(crate) loaded: Counts,
    pub(crate) change: Counts,
    at_start: Counts,
}

/// Open payments, bytes of records and idempotency keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub(crate) open_payments: i64,
    pub(crate) stored_bytes: i64,
    pub(crate) idempotency_keys: i64,
}

impl UsageCount {
    /// Returns the usage before the current batch.
    pub(crate) fn before_batch(&self) -> Usage {
        let sum = |loaded: i64, change: i64| u64::try_from(loaded.saturating_add(change)).unwrap_or(0);
        Usage {
            open_payments: sum(self.loaded.open_payments, self.at_start.open_payments),
            stored_bytes: sum(self.loaded.stored_bytes, self.at_start.stored_bytes),
        }
    }

    /// Returns the number of idempotency keys before the current batch.
    pub(crate) fn keys_before_batch(&self) -> u64 {
        let keys = self.loaded.idempotency_keys.saturating_add(self.at_start.idempotency_keys);
        u64::try_from(keys).unwrap_or(0)
    }
}

/// The beginning of an endpoint's queue in the outbox, as it was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    pub(crate) head: Option<Head>,
    /// The earliest deliveries: when they are due, and which. One more than the group can remove.
    pub(crate) first: Vec<(Timestamp, u128)>,
}

macro_rules! working {
    ($($(#[$doc:meta])* $field:ident: $row:ty;)+) => {
        /// The rows of a group.
        #[derive(Debug, Default)]
        pub(crate) struct Working {
            $($(#[$doc])* pub(crate) $field: Rows<$row>,)+
            /// Usage by merchant.
            pub(crate) usage: BTreeMap<u128, UsageCount>,
            /// Entries of the audit log to append.
            pub(crate) audit: Vec<Entry>,
            audited: usize,
            /// The beginnings of queues that the group removes deliveries from.
            pub(crate) queues: BTreeMap<u128, Queue>,
            /// Merchants that have proven an account.
            pub(crate) provers: BTreeMap<AccountName, Vec<u128>>,
            /// How many merchants have an account.
            pub(crate) owners: BTreeMap<AccountName, u64>,
            /// Slugs that exist.
            pub(crate) slugs: BTreeSet<u128>,
            /// Events that are stored.
            pub(crate) event_ids: BTreeSet<u128>,
            /// Commits whose payments are not indexed yet, by a payment whose words are taken away.
            pub(crate) unindexed: BTreeMap<u128, u128>,
            /// Merchants of whose periods the current batch changes one.
            pub(crate) sold: BTreeSet<u128>,
            /// Whether rows that should be absent were loaded.
            pub(crate) is_careful: bool,
            /// The time by the clock of the database; the start of 1970 where no batch needs it.
            pub(crate) now: Timestamp,
            /// Ids of commits that were applied or forbidden before.
            pub(crate) known_commits: BTreeSet<u128>,
            /// Ids of the batches that are applied.
            pub(crate) applied: Vec<u128>,
        }

        impl Working {
            /// Ends a batch: its changes stay.
            pub(crate) fn accept(&mut self) {
                $(self.$field.accept();)+
                self.usage.values_mut().for_each(|count| count.at_start = count.change);
                self.audited = self.audit.len();
                self.sold.clear();
            }

            /// Ends a rejected batch: its changes are undone.
            pub(crate) fn refuse(&mut self) {
                $(self.$field.refuse();)+
                self.usage.values_mut().for_each(|count| count.change = count.at_start);
                self.audit.truncate(self.audited);
                self.sold.clear();
            }

            /// Returns whether nothing is to be written.
            pub(crate) fn is_unchanged(&self) -> bool {
                self.audit.is_empty() && self.applied.is_empty() $(&& self.$field.is_unchanged())+
            }

            /// Adds the rows that are different to a statement.
            pub(crate) fn write_rows(&self, statement: &mut Statement) {
                $(self.$field.write(statement);)+
            }
        }
    };
}

working! {
    /// Merchants.
    merchants: MerchantRow;
    /// API keys.
    keys: KeyRow;
    /// Watched accounts.
    accounts: AccountRow;
    /// Payments.
    payments: PaymentRow;
    /// Transfers of payments.
    transfers: TransferRow;
    /// Words of payments.
    words: WordRow;
    /// Idempotency keys.
    idempotency: IdempotencyRow;
    /// Events.
    events: EventRow;
    /// Ends of lists of events.
    lists: ListRow;
    /// Deliveries.
    deliveries: DeliveryRow;
    /// Attempts.
    attempts: AttemptRow;
    /// Health of endpoints.
    endpoints: EndpointRow;
    /// Claims.
    claims: ClaimRow;
    /// Nonces and payment identifiers.
    names: NameRow;
    /// Uses of transactions.
    uses: UseRow;
    /// Unmatched transfers.
    unmatched: UnmatchedRow;
    /// Ledger entries.
    entries: EntryRow;
    /// Compliance statuses.
    compliance: ComplianceRow;
    /// Billing periods.
    periods: PeriodRow;
    /// Payments of invoices.
    invoices: InvoiceRow;
    /// Reconciliations of days.
    reconciled: ReconciledRow;
    /// Leases of engines.
    engines: EngineRow;
    /// Holders of duties.
    duties: DutyRow;
    /// Single values.
    singles: SingleRow;
}

impl Working {
    /// Changes what a merchant uses.
    pub(crate) fn count(&mut self, merchant: u128) -> &mut Counts {
        &mut self.usage.entry(merchant).or_default().change
    }
}
