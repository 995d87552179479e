//! What Hivetill keeps: one [`Store`] with one way to write, [`Store::commit`], and snapshot reads.
//!
//! A batch is durable as a whole or not at all. It carries the version of every snapshot it replaces, so that a writer
//! who read something stale is refused instead of obeyed: nothing above this trait may assume it is the only writer.

mod batch;
mod embedded;
mod record;
mod store;

use std::sync::Arc;

use futures_util::future::BoxFuture;

pub use batch::{
    Batch, Claimed, CommitError, Cursor, EventRecord, Facilitation, Fate, Handling, Invoicing, Purpose, Unmatched,
    UnmatchedReason, Write,
};
pub use embedded::commit::committer::CommitMode;
pub use embedded::commit::ledger_entries::BookedPlace;
pub use embedded::maintenance::backup::{Idle, NewStore, Row, Rows, read_file, restore_backend};
pub use embedded::maintenance::directory::{FILE_NAME, OpenError, look_for_store};
pub use embedded::maintenance::export::{record as export_record, record_naming as export_record_naming};
pub use embedded::maintenance::verify::{Report, file as verify_file};
pub use embedded::metrics::{CommitMetrics, Figures};
pub use embedded::options::Options;
pub use embedded::store::RedbStore;
pub use embedded::tables::NAMES as TABLE_NAMES;
use engine::{
    account::AccountName,
    audit::Entry,
    billing::{Account, Month, Period, Schedule},
    books::{Booked, Day},
    compliance::Standing,
    event_list::{Epoch, EventList},
    idempotency::Remembered,
    ids::{DeliveryId, EventId, MerchantId, PaymentId, SlugToken},
    ledger::{Place, TxId},
    merchant::{KeyDigest, Merchant},
    payment::{Credit, Payment, Rate},
    time::Timestamp,
    webhook::{Attempt, Delivery, Endpoint, Logged},
};
pub use record::vault::{MasterKey, Secrets, Vault};
pub use store::query::{
    AuditQuery, DayVolume, DeliveryQuery, Due, DueWork, ListedMerchant, MerchantQuery, Page, PageAt, Passed,
    PaymentQuery, PeriodQuery, StrayKey, Vicinity, Volume, VolumeQuery,
};
pub use store::report::{Books, Line};

/// A read that failed. Nothing can be said of what is stored; the process should stop and reload.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The database file or its disk failed.
    #[error("the store cannot be read: {0}")]
    Failed(String),
    /// A record does not decode.
    #[error("the {table} record {key} is damaged: {why}")]
    Damaged {
        /// The table.
        table: &'static str,
        /// The record's key.
        key: String,
        /// What is wrong with it.
        why: String,
    },
}

/// Returns a row's value in the form of the database, with its checksum: for programs that write a store's file themselves.
#[must_use]
pub fn sealed(table: &str, key: &[u8], value: &[u8]) -> Vec<u8> {
    record::checked::Seed::of(table).seal(key, value)
}

/// The answer of a read: one consistent snapshot, let go of before the answer is given.
pub type Read<'a, T> = BoxFuture<'a, Result<T, ReadError>>;

/// Everything that survives a restart.
pub trait Store: Send + Sync + 'static {
    /// Makes a batch durable, or refuses it whole. An `Ok` means it is on disk.
    ///
    /// # Errors
    /// See [`CommitError`]; only [`CommitError::Unknown`] leaves the batch's fate open.
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<(), CommitError>>;

    /// Returns a merchant.
    fn merchant(&self, id: MerchantId) -> Read<'_, Option<Arc<Merchant>>>;

    /// Returns the merchant an API key speaks for.
    fn merchant_by_key(&self, digest: KeyDigest) -> Read<'_, Option<Arc<Merchant>>>;

    /// Lists merchants, newest first.
    fn merchants(&self, query: MerchantQuery) -> Read<'_, Page<ListedMerchant>>;

    /// Returns every account that is watched, after `after` in order of name, at most `limit`.
    fn watched_accounts(&self, after: Option<AccountName>, limit: usize) -> Read<'_, Vec<AccountName>>;

    /// Returns the merchants whose pending change of the account is due at `now`: it takes effect or lapses; at most
    /// `limit`.
    fn pending_accounts(&self, now: Timestamp, limit: usize) -> Read<'_, Vec<MerchantId>>;

    /// Returns the merchants that have proven an account, at most `limit`.
    fn proven_merchants(&self, account: AccountName, limit: usize) -> Read<'_, Vec<MerchantId>>;

    /// Returns accounts whose merchants left them so long before `now` that they need not be watched, at most `limit`.
    fn retired_accounts(&self, now: Timestamp, limit: usize) -> Read<'_, Vec<AccountName>>;

    /// Returns a payment.
    fn payment(&self, id: PaymentId) -> Read<'_, Option<Payment>>;

    /// Returns a transfer of a payment, with its whole memo.
    fn transfer(&self, payment: PaymentId, tx_id: TxId, op_in_tx: u32) -> Read<'_, Option<Credit>>;

    /// Returns the transfers of a payment, newest first, before the place `before` in their order, at most `limit`, with
    /// their whole memos.
    fn transfers(&self, payment: PaymentId, before: Option<u64>, limit: usize) -> Read<'_, Vec<Credit>>;

    /// Returns the payment a checkout address names.
    fn payment_by_slug(&self, slug: SlugToken) -> Read<'_, Option<Payment>>;

    /// Lists a merchant's payments, newest first.
    fn payments(&self, query: PaymentQuery) -> Read<'_, Page<Payment>>;

    /// Adds up a merchant's payments of some days.
    fn volume(&self, query: VolumeQuery) -> Read<'_, Volume>;

    /// Returns pending payments whose deadline (expiry plus grace) is before `before`, earliest first, at most
    /// `limit`, after the entry `after`.
    fn due(
        &self,
        before: Timestamp,
        after: Option<(Timestamp, PaymentId)>,
        limit: usize,
    ) -> Read<'_, Vec<(Timestamp, PaymentId)>>;

    /// Returns the payments of which the chain has something to decide: an open claim on a signed transaction, or a
    /// transfer in a block that can still change.
    fn in_flight(&self) -> Read<'_, Vec<PaymentId>>;

    /// Returns the claims of no session of ours whose fate is open.
    fn open_facilitations(&self) -> Read<'_, Vec<Claimed>>;

    /// Returns claims that may be forgotten and whose transactions expired before `expired_before`, among the `limit` claims
    /// after `after`, and where the walk goes on; none at its end.
    fn forgettable_claims(
        &self,
        expired_before: Timestamp,
        after: Option<TxId>,
        limit: usize,
    ) -> Read<'_, (Vec<Claimed>, Option<TxId>)>;

    /// Returns who claimed a transaction, ever.
    fn claim(&self, tx_id: TxId) -> Read<'_, Option<Claimed>>;

    /// Returns the claim whose payer used a nonce for a payee, ever.
    fn claim_by_nonce(&self, pay_to: AccountName, nonce: String) -> Read<'_, Option<Claimed>>;

    /// Returns the claim whose payer used a payment identifier for a payee, ever.
    fn claim_by_identifier(&self, pay_to: AccountName, identifier: String) -> Read<'_, Option<Claimed>>;

    /// Returns what was done under an idempotency key, if it has not been forgotten yet.
    fn remembered(&self, merchant: MerchantId, key: [u8; 32]) -> Read<'_, Option<Remembered>>;

    /// Returns when the oldest idempotency key was made that has not been forgotten yet.
    fn oldest_key(&self) -> Read<'_, Option<Timestamp>>;

    /// Returns the newest irreversible block whose every effect is durable.
    fn cursor(&self) -> Read<'_, Option<Cursor>>;

    /// Returns the newest price of HIVE that was read.
    fn rate(&self) -> Read<'_, Option<Rate>>;

    /// Returns deliveries due at or before `now`, earliest first, at most `limit`.
    fn due_deliveries(&self, now: Timestamp, limit: usize) -> Read<'_, Vec<Delivery>>;

    /// Returns what is due of several merchants, those first who wait longest: of each at most `per_merchant`
    /// deliveries, of at most `merchants` merchants, and nothing of what is `passed`. One merchant's million deliveries
    /// cost another nothing.
    fn due_work(&self, now: Timestamp, merchants: usize, per_merchant: usize, passed: Passed)
    -> Read<'_, Vec<DueWork>>;

    /// Returns what is known of a merchant's endpoint.
    fn endpoint(&self, merchant: MerchantId) -> Read<'_, Endpoint>;

    /// Returns a merchant's delivery.
    fn delivery(&self, merchant: MerchantId, id: DeliveryId) -> Read<'_, Option<Logged>>;

    /// Lists a merchant's deliveries, newest first; they are not counted.
    fn deliveries(&self, query: DeliveryQuery) -> Read<'_, Page<Logged>>;

    /// Returns a merchant's deliveries after `after` that may be replayed, oldest first, at most `limit`.
    fn replayable(&self, merchant: MerchantId, after: DeliveryId, limit: usize) -> Read<'_, Vec<Delivery>>;

    /// Returns whose an event is, and its place in the list.
    fn event_place(&self, event: EventId) -> Read<'_, Option<(MerchantId, u64)>>;

    /// Returns when the oldest event that is kept happened.
    fn oldest_event(&self) -> Read<'_, Option<Timestamp>>;

    /// Returns when the first delivery that is not due at `now` will be.
    fn next_delivery_after(&self, now: Timestamp) -> Read<'_, Option<Timestamp>>;

    /// Returns an event of a merchant by its place in the merchant's list.
    fn event(&self, merchant: MerchantId, seq: u64) -> Read<'_, Option<EventRecord>>;

    /// Returns a merchant's events after `after`, in order, at most `limit`.
    fn events(&self, merchant: MerchantId, after: u64, limit: usize) -> Read<'_, Vec<EventRecord>>;

    /// Returns what a merchant's cursors are read with, and the end of its list of events.
    fn event_list(&self, merchant: MerchantId) -> Read<'_, EventList>;

    /// Returns the current epoch; [`Epoch::PENDING`] after a restore, until [`Write::BeginEpoch`] names it.
    fn epoch(&self) -> Read<'_, Epoch>;

    /// Returns the attempts made to deliver an event, in order.
    fn attempts(&self, event: EventId) -> Read<'_, Vec<Attempt>>;

    /// Returns the transfers to an account that named no session of ours, newest first, at most `limit`.
    fn unmatched(&self, account: AccountName, limit: usize) -> Read<'_, Vec<Unmatched>>;

    /// Returns a transfer that named no session of ours, by its account and its place on the chain.
    fn unmatched_at(&self, account: AccountName, place: Place) -> Read<'_, Option<Unmatched>>;

    /// Returns the transfers to an account that named no session of ours and are older than `before`, newest first, at
    /// most `limit`.
    fn unmatched_before(&self, account: AccountName, before: Place, limit: usize) -> Read<'_, Vec<Unmatched>>;

    /// Returns the transfers that name a session nobody knew when they came and about which nothing is done, by
    /// session, after the entry `after`, at most `limit`.
    fn waiting_for_sessions(&self, after: Option<StrayKey>, limit: usize) -> Read<'_, Vec<StrayKey>>;

    /// Returns the payments that a stray transfer may have been meant for, newest first.
    fn payments_near(&self, vicinity: Vicinity) -> Read<'_, Vec<Payment>>;

    /// Returns entries of the audit log, newest first.
    fn audit(&self, query: AuditQuery) -> Read<'_, Vec<Entry>>;

    /// Returns every account that is watched, and since when, after `after` in order of name, at
    /// most `limit`.
    fn accounts_since(&self, after: Option<AccountName>, limit: usize) -> Read<'_, Vec<(AccountName, Timestamp)>>;

    /// Returns what was counted for an account in blocks from `span.0` up to but without `span.1`, after a place, at most
    /// `limit`, and where the next page begins if there is one.
    fn booked(
        &self,
        account: AccountName,
        span: (Timestamp, Timestamp),
        after: Option<BookedPlace>,
        limit: usize,
    ) -> Read<'_, (Vec<Booked>, Option<BookedPlace>)>;

    /// Returns what the checks of days that began before `before` said, newest first, at most `limit`.
    fn books(&self, before: Option<Timestamp>, limit: usize) -> Read<'_, Vec<Day>>;

    /// Returns where a merchant stands with compliance; one without a past stands well.
    fn standing(&self, merchant: MerchantId) -> Read<'_, Standing>;

    /// Returns a merchant's month; none before anything completed in it.
    fn period(&self, merchant: MerchantId, month: Month) -> Read<'_, Option<Period>>;

    /// Returns a merchant's months, newest first.
    fn periods_of(&self, merchant: MerchantId) -> Read<'_, Vec<Period>>;

    /// Lists merchants' months, newest first.
    fn periods(&self, query: PeriodQuery) -> Read<'_, Page<Period>>;

    /// Returns months before `before` of which something is still to be billed or paid, oldest first, after the entry
    /// `after`, at most `limit`.
    fn unsettled_periods(
        &self,
        before: Month,
        after: Option<(Month, MerchantId)>,
        limit: usize,
    ) -> Read<'_, Vec<Period>>;

    /// Returns what each merchant's months come to at `now`.
    fn billing_accounts(&self, now: Timestamp) -> Read<'_, Vec<Account>>;

    /// Returns the stored fee tiers.
    fn fee_schedule(&self) -> Read<'_, Option<Schedule>>;

    /// Returns a small named value that was stored with [`Write::Note`].
    fn note(&self, name: &'static str) -> Read<'_, Option<Vec<u8>>>;

    /// Returns payments of all merchants after `after`, oldest first, of at most `limit` records; the next page starts after
    /// the last of them. Damaged ones are passed over.
    fn payments_after(&self, after: PaymentId, limit: usize) -> Read<'_, Page<Payment>>;

    /// Returns how many damaged rows were met since the store was opened. They are served to nobody; a verification names
    /// them all.
    fn damaged_rows(&self) -> u64 {
        0
    }

    /// Indexes the words of at most `max` payments for search, oldest first, and returns of how many. Search finds
    /// the others, too, but has to read them; call this when there is little else to do, and at once again while it
    /// returns `max`. A store that needs no such help does nothing.
    ///
    /// # Errors
    /// As [`Store::commit`].
    fn index_search(&self, now: Timestamp, max: usize) -> BoxFuture<'_, Result<usize, CommitError>> {
        let _ = (now, max);
        Box::pin(std::future::ready(Ok(0)))
    }
}
