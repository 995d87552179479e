//! The store in a database and its log: how it is made so that no power cut can spoil it, how it is opened, and how it answers.

use std::{path::Path, sync::Arc};

use engine::{
    account::AccountName,
    audit::Entry,
    billing::{Account, Month, Period, Schedule},
    books::{Booked, Day},
    compliance::Standing,
    event_list::{self, EventList},
    idempotency::Remembered,
    ids::{DeliveryId, EventId, MerchantId, PaymentId, SlugToken},
    ledger::{Place, TxId},
    merchant::{KeyDigest, Merchant},
    payment::{Credit, Payment, Rate},
    time::Timestamp,
    webhook::{Attempt, Delivery, Endpoint, Logged},
};
use futures_util::future::BoxFuture;
use redb::{Database, StorageBackend};

use super::{
    commit::{
        accounts, billing, claims,
        committer::{CommitMode, Committer},
        compliance, idempotency, ledger_entries,
        prepared::{self, Prepared, Step},
        transfers, unmatched,
        writer::Parts,
    },
    damage::Damages,
    fault::Fault,
    maintenance::{
        backup::{self, Row, Rows},
        directory::{self, DirectoryLock, FILE_NAME, OpenError},
        migration, repair,
        verify::{self, Report},
    },
    options::Options,
    read::{days, deliveries, delivery_list, payments, queries, search},
    tables::{self, Epoch, meta},
    wal::{
        log::Log,
        single,
        snapshot::{Newest, Snapshot},
    },
};
use crate::{
    AuditQuery, Batch, BookedPlace, Claimed, CommitError, CommitMetrics, Cursor, DeliveryQuery, DueWork, EventRecord,
    Figures, ListedMerchant, MerchantQuery, Page, Passed, PaymentQuery, PeriodQuery, Read, ReadError, Store, StrayKey,
    Unmatched, Vicinity, Volume, VolumeQuery,
    record::{
        self,
        vault::{self, Secrets, Vault},
    },
};

/// A [`Store`] in one redb file and the log in front of it.
#[derive(Debug)]
pub struct RedbStore {
    newest: Arc<Newest>,
    committer: Committer,
    vault: Vault,
    damages: Damages,
    /// Let go of last: it keeps other processes out of the directory.
    _lock: Option<DirectoryLock>,
}

impl RedbStore {
    /// Opens the store of a data directory, or creates both where the options allow it, readable by their owner only.
    ///
    /// # Errors
    /// See [`OpenError`]; nothing of an existing store is changed by a failure.
    pub fn open(data: &Path, options: Options) -> Result<Self, OpenError> {
        Self::open_sealed(data, options, Vault::default())
    }

    /// The same with a master key: secrets that are stored otherwise are sealed with it at once, all or none.
    ///
    /// # Errors
    /// See [`OpenError`]; [`OpenError::MasterKey`] where the store is sealed with a key that is not in the vault.
    pub fn open_sealed(data: &Path, options: Options, vault: Vault) -> Result<Self, OpenError> {
        directory::guarded(&data.join(FILE_NAME), || Self::open_directory(data, options, vault))
    }

    fn open_directory(data: &Path, options: Options, vault: Vault) -> Result<Self, OpenError> {
        directory::look_for_store(data, options.may_create)?;
        let lock = DirectoryLock::take(data)?;
        let open = || {
            let database = directory::open_or_create(data, options.cache_bytes)?;
            let log = directory::recover_log(data, options.log_bytes, &database)?;
            Ok::<_, OpenError>((database, log))
        };
        let (mut database, mut log) = open()?;
        if migration::is_due(&database)? {
            drop((database, log));
            migration::migrate(data, &migration::STEPS)?;
            (database, log) = open()?;
        }
        directory::check_schema(&database)?;
        if vault.settle(&database)? {
            // Pages that were freed, and the log, still hold what was in clear.
            drop((database, log));
            let rewritten = backup::rewrite(data);
            (database, log) = open()?;
            match rewritten {
                Ok(()) => vault::forget_sealing(&database)?,
                // The next start tries again.
                Err(error @ OpenError::Unsound(_)) => {
                    tracing::error!(%error, "store is damaged: unencrypted secrets remain in freed pages");
                }
                Err(error) => return Err(error),
            }
        }
        Self::over(database, log, Some(lock), options.mode, vault)
    }

    /// Opens the store kept by backends, such as the files of a simulated disk; empty ones become a new store. A creation
    /// that was cut short leaves backends that count as empty.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_backends(
        database: impl StorageBackend,
        logs: [impl StorageBackend; 2],
        options: Options,
        vault: Vault,
    ) -> Result<Self, OpenError> {
        let logs = logs.map(|log| -> Box<dyn StorageBackend> { Box::new(log) });
        let database = directory::open_backend(database, &logs, options.cache_bytes)?;
        let log = directory::recover(logs, options.log_bytes, &database, Path::new("the backend"))?;
        Self::over(database, log, None, options.mode, vault)
    }

    fn over(
        database: Database,
        log: Log,
        lock: Option<DirectoryLock>,
        mode: CommitMode,
        vault: Vault,
    ) -> Result<Self, OpenError> {
        directory::check_schema(&database)?;
        vault.settle(&database)?;
        repair::accounts(&database)?;
        let damages = Damages::none_of(&tables::NAMES);
        let snapshot = Snapshot::of(Epoch::begin(&database, &damages)?);
        let search_cursor = search::cursor(&snapshot)?;
        let newest = Arc::new(Newest::of(snapshot));
        let parts = Parts { database, log, newest: Arc::clone(&newest), search_cursor, damages: damages.clone() };
        let committer = Committer::start(parts, mode)?;
        Ok(Self { newest, committer, vault, damages, _lock: lock })
    }

    /// Writes what waits, then closes the file. Later commits are refused with [`CommitError::Overloaded`], later
    /// reads with [`ReadError::Failed`].
    pub async fn close(&self) {
        self.committer.close().await;
        self.newest.close();
    }

    /// Returns how commits go.
    pub fn commit_metrics(&self) -> &CommitMetrics {
        self.committer.metrics()
    }

    /// Returns how much is stored, and how much waits.
    ///
    /// # Errors
    /// [`ReadError::Failed`] when the disk fails or the store is closed.
    pub fn figures(&self) -> Result<Figures, ReadError> {
        Ok(Figures { queue: self.committer.waiting() as u64, ..self.ask(Figures::read)? })
    }

    /// Reads every row of the store as it is now, while others write: what a backup is made of. Until the rows are all
    /// taken, or the receiver is dropped, pages that are replaced are not used again and the file grows.
    ///
    /// # Errors
    /// [`ReadError::Failed`] when the disk fails or the store is closed.
    pub fn rows(&self) -> Result<Rows, ReadError> {
        backup::stream(self.newest.get()?)
    }

    /// Shows every row of the newest snapshot on the caller's thread: for whoever has no other work, and no threads.
    ///
    /// # Errors
    /// [`ReadError::Failed`] when the disk fails or the store is closed.
    pub fn each_row_inline(&self, mut see: impl FnMut(Row)) -> Result<(), ReadError> {
        Ok(backup::each(&self.newest.get()?, &mut see)?)
    }

    /// Verifies the store as it is now, while others write, on a thread of its own.
    ///
    /// # Errors
    /// [`ReadError::Failed`] when the disk fails or the store is closed.
    pub async fn verify(&self) -> Result<Report, ReadError> {
        verify::on_a_thread(self.newest.get()?).await
    }

    /// The same on the caller's thread, until it is done: for whoever has no other work, and no threads.
    ///
    /// # Errors
    /// [`ReadError::Failed`] when the disk fails or the store is closed.
    pub fn verify_inline(&self) -> Result<Report, ReadError> {
        Ok(verify::snapshot(&self.newest.get()?)?)
    }

    /// Returns how the webhook secrets are kept, by their rows.
    ///
    /// # Errors
    /// [`ReadError`] when the disk fails, the store is closed or a row is damaged.
    pub fn secrets(&self) -> Result<Secrets, ReadError> {
        Ok(self.ask(|snapshot| {
            let mut secrets = Secrets::default();
            let merchants = snapshot.merchants();
            for entry in merchants.iter()? {
                let (key, bytes) = entry?;
                let id = MerchantId::from_bits(key.value());
                let is_plain = record::merchant_is_plain(bytes.value()).map_err(Fault::damaged("merchants", id));
                let Some(is_plain) = merchants.pass(is_plain)? else { continue };
                *(if is_plain { &mut secrets.plain } else { &mut secrets.sealed }) += 1;
            }
            Ok(secrets)
        })?)
    }

    /// Says whether nothing can be written any more because the disk has no room left.
    pub fn is_full(&self) -> bool {
        self.committer.health().is_full()
    }

    /// Makes a group of batches durable, each whole or refused, in one transaction where commits run in the caller's
    /// task; answers in its order. Elsewhere they are handed to the writer one after the other.
    pub async fn commit_group(&self, batches: Vec<Batch>) -> Vec<Result<(), CommitError>> {
        let prepared = batches.into_iter().map(|batch| Prepared::from_batch(batch, &self.vault)).collect();
        self.committer.commit_group(prepared).await
    }

    /// Returns why nothing can be written any more, once the disk has failed.
    pub fn failure(&self) -> Option<&str> {
        self.committer.health().failure()
    }

    /// Waits until the disk fails; returns why. The process should stop then: only reopening tells what is stored.
    pub async fn failed(&self) -> String {
        self.committer.health().failed().await
    }

    /// Answers from one snapshot, the newest, before anybody waits for anything.
    fn read<'a, T: Send + 'a>(
        &'a self,
        question: impl FnOnce(&Snapshot) -> Result<T, Fault> + Send + 'a,
    ) -> Read<'a, T> {
        Box::pin(async move { Ok(self.ask(question)?) })
    }

    fn ask<T>(&self, question: impl FnOnce(&Snapshot) -> Result<T, Fault>) -> Result<T, Fault> {
        question(&self.newest.get()?).inspect_err(|fault| self.damages.note_fault(fault))
    }
}

impl Store for RedbStore {
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<(), CommitError>> {
        Box::pin(async move { self.committer.commit(Prepared::from_batch(batch, &self.vault)).await })
    }

    fn merchant(&self, id: MerchantId) -> Read<'_, Option<Arc<Merchant>>> {
        self.read(move |snapshot| merchant(snapshot, id, &self.vault))
    }

    fn merchant_by_key(&self, digest: KeyDigest) -> Read<'_, Option<Arc<Merchant>>> {
        self.read(move |snapshot| match snapshot.api_keys().get(&digest.0)? {
            Some(id) => merchant(snapshot, MerchantId::from_bits(id.value()), &self.vault),
            None => Ok(None),
        })
    }

    fn merchants(&self, query: MerchantQuery) -> Read<'_, Page<ListedMerchant>> {
        self.read(move |snapshot| queries::merchants(snapshot, &query, &self.vault))
    }

    fn watched_accounts(&self, after: Option<AccountName>, limit: usize) -> Read<'_, Vec<AccountName>> {
        self.read(move |snapshot| queries::accounts(snapshot, after.as_ref(), limit))
    }

    fn pending_accounts(&self, now: Timestamp, limit: usize) -> Read<'_, Vec<MerchantId>> {
        self.read(move |snapshot| accounts::pending(snapshot, now, limit))
    }

    fn proven_merchants(&self, account: AccountName, limit: usize) -> Read<'_, Vec<MerchantId>> {
        self.read(move |snapshot| accounts::proven(snapshot, &account, limit))
    }

    fn retired_accounts(&self, now: Timestamp, limit: usize) -> Read<'_, Vec<AccountName>> {
        self.read(move |snapshot| accounts::retired(snapshot, now, limit))
    }

    fn payment(&self, id: PaymentId) -> Read<'_, Option<Payment>> {
        self.read(move |snapshot| payment(snapshot, id))
    }

    fn transfer(&self, payment: PaymentId, tx_id: TxId, op_in_tx: u32) -> Read<'_, Option<Credit>> {
        self.read(move |snapshot| transfers::one(snapshot, payment, tx_id, op_in_tx))
    }

    fn transfers(&self, payment: PaymentId, before: Option<u64>, limit: usize) -> Read<'_, Vec<Credit>> {
        self.read(move |snapshot| transfers::page(snapshot, payment, before, limit))
    }

    fn payment_by_slug(&self, slug: SlugToken) -> Read<'_, Option<Payment>> {
        self.read(move |snapshot| match snapshot.slugs().get(slug.bits())? {
            Some(id) => payment(snapshot, PaymentId::from_bits(id.value())),
            None => Ok(None),
        })
    }

    fn payments(&self, query: PaymentQuery) -> Read<'_, Page<Payment>> {
        self.read(move |snapshot| payments::payments(snapshot, &query))
    }

    fn payments_after(&self, after: PaymentId, limit: usize) -> Read<'_, Page<Payment>> {
        self.read(move |snapshot| payments::after(snapshot, after, limit))
    }

    fn volume(&self, query: VolumeQuery) -> Read<'_, Volume> {
        self.read(move |snapshot| days::volume(snapshot, &query))
    }

    fn due(
        &self,
        before: Timestamp,
        after: Option<(Timestamp, PaymentId)>,
        limit: usize,
    ) -> Read<'_, Vec<(Timestamp, PaymentId)>> {
        self.read(move |snapshot| queries::due(snapshot, before, after, limit))
    }

    fn in_flight(&self) -> Read<'_, Vec<PaymentId>> {
        self.read(move |snapshot| {
            let in_flight = snapshot.in_flight();
            in_flight.iter()?.map(|entry| Ok(PaymentId::from_bits(entry?.0.value()))).collect()
        })
    }

    fn open_facilitations(&self) -> Read<'_, Vec<Claimed>> {
        self.read(|snapshot| {
            let mut open = Vec::new();
            for entry in snapshot.facilitations().iter()? {
                let claims = snapshot.claims();
                open.extend(claims.pass(claims::find(snapshot, TxId(*entry?.0.value())))?.flatten());
            }
            Ok(open)
        })
    }

    fn forgettable_claims(
        &self,
        expired_before: Timestamp,
        after: Option<TxId>,
        limit: usize,
    ) -> Read<'_, (Vec<Claimed>, Option<TxId>)> {
        self.read(move |snapshot| claims::forgettable(snapshot, expired_before, after, limit))
    }

    fn claim(&self, tx_id: TxId) -> Read<'_, Option<Claimed>> {
        self.read(move |snapshot| claims::find(snapshot, tx_id))
    }

    fn claim_by_nonce(&self, pay_to: AccountName, nonce: String) -> Read<'_, Option<Claimed>> {
        self.read(move |snapshot| claims::named(snapshot, &prepared::nonce_digest(&pay_to, &nonce)))
    }

    fn claim_by_identifier(&self, pay_to: AccountName, identifier: String) -> Read<'_, Option<Claimed>> {
        self.read(move |snapshot| claims::named(snapshot, &prepared::identifier_digest(&pay_to, &identifier)))
    }

    fn remembered(&self, merchant: MerchantId, key: [u8; 32]) -> Read<'_, Option<Remembered>> {
        self.read(move |snapshot| idempotency::find(snapshot, merchant, key))
    }

    fn oldest_key(&self) -> Read<'_, Option<Timestamp>> {
        self.read(idempotency::oldest)
    }

    fn cursor(&self) -> Read<'_, Option<Cursor>> {
        self.read(|snapshot| single(snapshot, meta::CURSOR, record::cursor_from_bytes))
    }

    fn rate(&self) -> Read<'_, Option<Rate>> {
        self.read(|snapshot| single(snapshot, meta::RATE, record::rate_from_bytes))
    }

    fn due_deliveries(&self, now: Timestamp, limit: usize) -> Read<'_, Vec<Delivery>> {
        self.read(move |snapshot| deliveries::due(snapshot, now, limit))
    }

    fn due_work(
        &self,
        now: Timestamp,
        merchants: usize,
        per_merchant: usize,
        passed: Passed,
    ) -> Read<'_, Vec<DueWork>> {
        self.read(move |snapshot| deliveries::due_work(snapshot, now, merchants, per_merchant, &passed))
    }

    fn endpoint(&self, merchant: MerchantId) -> Read<'_, Endpoint> {
        self.read(move |snapshot| deliveries::endpoint(snapshot, merchant))
    }

    fn delivery(&self, merchant: MerchantId, id: DeliveryId) -> Read<'_, Option<Logged>> {
        self.read(move |snapshot| deliveries::delivery(snapshot, merchant, id))
    }

    fn deliveries(&self, query: DeliveryQuery) -> Read<'_, Page<Logged>> {
        self.read(move |snapshot| delivery_list::deliveries(snapshot, &query))
    }

    fn replayable(&self, merchant: MerchantId, after: DeliveryId, limit: usize) -> Read<'_, Vec<Delivery>> {
        self.read(move |snapshot| delivery_list::replayable(snapshot, merchant, after, limit))
    }

    fn event_place(&self, event: EventId) -> Read<'_, Option<(MerchantId, u64)>> {
        self.read(move |snapshot| deliveries::event_place(snapshot, event))
    }

    fn oldest_event(&self) -> Read<'_, Option<Timestamp>> {
        self.read(deliveries::oldest_event)
    }

    fn next_delivery_after(&self, now: Timestamp) -> Read<'_, Option<Timestamp>> {
        self.read(move |snapshot| deliveries::next_due(snapshot, now))
    }

    fn event(&self, merchant: MerchantId, seq: u64) -> Read<'_, Option<EventRecord>> {
        self.read(move |snapshot| deliveries::event(snapshot, merchant, seq))
    }

    fn events(&self, merchant: MerchantId, after: u64, limit: usize) -> Read<'_, Vec<EventRecord>> {
        self.read(move |snapshot| deliveries::events(snapshot, merchant, after, limit))
    }

    fn event_list(&self, merchant: MerchantId) -> Read<'_, EventList> {
        self.read(move |snapshot| deliveries::event_list(snapshot, merchant.bits()))
    }

    fn epoch(&self) -> Read<'_, event_list::Epoch> {
        self.read(|snapshot| deliveries::epoch(&snapshot.meta()))
    }

    fn attempts(&self, event: EventId) -> Read<'_, Vec<Attempt>> {
        self.read(move |snapshot| deliveries::attempts(snapshot, event))
    }

    fn unmatched(&self, account: AccountName, limit: usize) -> Read<'_, Vec<Unmatched>> {
        let newest = Place { block_num: u32::MAX, tx_in_block: u32::MAX, op_in_tx: u32::MAX };
        self.read(move |snapshot| unmatched::before(snapshot, &account, newest, limit))
    }

    fn unmatched_at(&self, account: AccountName, place: Place) -> Read<'_, Option<Unmatched>> {
        self.read(move |snapshot| unmatched::at(snapshot, &account, place))
    }

    fn unmatched_before(&self, account: AccountName, before: Place, limit: usize) -> Read<'_, Vec<Unmatched>> {
        self.read(move |snapshot| unmatched::before(snapshot, &account, before, limit))
    }

    fn waiting_for_sessions(&self, after: Option<StrayKey>, limit: usize) -> Read<'_, Vec<StrayKey>> {
        self.read(move |snapshot| unmatched::waiting(snapshot, after.as_ref(), limit))
    }

    fn accounts_since(&self, after: Option<AccountName>, limit: usize) -> Read<'_, Vec<(AccountName, Timestamp)>> {
        self.read(move |snapshot| ledger_entries::accounts(snapshot, after.as_ref(), limit))
    }

    fn booked(
        &self,
        account: AccountName,
        span: (Timestamp, Timestamp),
        after: Option<BookedPlace>,
        limit: usize,
    ) -> Read<'_, (Vec<Booked>, Option<BookedPlace>)> {
        self.read(move |snapshot| ledger_entries::booked(snapshot, &account, span, after, limit))
    }

    fn books(&self, before: Option<Timestamp>, limit: usize) -> Read<'_, Vec<Day>> {
        self.read(move |snapshot| ledger_entries::days(snapshot, before, limit))
    }

    fn standing(&self, merchant: MerchantId) -> Read<'_, Standing> {
        self.read(move |snapshot| compliance::standing(snapshot, merchant))
    }

    fn payments_near(&self, vicinity: Vicinity) -> Read<'_, Vec<Payment>> {
        self.read(move |snapshot| {
            let near = unmatched::payments_near(snapshot, &vicinity)?;
            let payments = snapshot.payments();
            let read = |id| Ok(payments.pass(payment(snapshot, id))?.flatten());
            near.into_iter().filter_map(|id| read(id).transpose()).collect()
        })
    }

    fn audit(&self, query: AuditQuery) -> Read<'_, Vec<Entry>> {
        self.read(move |snapshot| queries::audit(snapshot, &query))
    }

    fn period(&self, merchant: MerchantId, month: Month) -> Read<'_, Option<Period>> {
        self.read(move |snapshot| billing::period(snapshot, merchant, month))
    }

    fn periods_of(&self, merchant: MerchantId) -> Read<'_, Vec<Period>> {
        self.read(move |snapshot| billing::periods_of(snapshot, merchant))
    }

    fn periods(&self, query: PeriodQuery) -> Read<'_, Page<Period>> {
        self.read(move |snapshot| billing::periods(snapshot, &query))
    }

    fn unsettled_periods(
        &self,
        before: Month,
        after: Option<(Month, MerchantId)>,
        limit: usize,
    ) -> Read<'_, Vec<Period>> {
        self.read(move |snapshot| billing::unsettled(snapshot, before, after, limit))
    }

    fn billing_accounts(&self, now: Timestamp) -> Read<'_, Vec<Account>> {
        self.read(move |snapshot| billing::accounts(snapshot, now))
    }

    fn fee_schedule(&self) -> Read<'_, Option<Schedule>> {
        self.read(billing::schedule)
    }

    fn note(&self, name: &'static str) -> Read<'_, Option<Vec<u8>>> {
        self.read(move |snapshot| single::read(&snapshot.meta(), &meta::note(name)))
    }

    fn damaged_rows(&self) -> u64 {
        self.damages.count()
    }

    fn index_search(&self, now: Timestamp, max: usize) -> BoxFuture<'_, Result<usize, CommitError>> {
        Box::pin(async move {
            let Some(indexed) = self.ask(|snapshot| search::gather(snapshot, now, max))? else {
                return Ok(0);
            };
            let payments = usize::try_from(indexed.payments).unwrap_or(max);
            match self.committer.commit(Prepared { steps: vec![Step::Index(indexed)] }).await {
                Ok(()) => Ok(payments),
                // A payment came in between, or another indexer was faster: the next call sees it.
                Err(CommitError::Conflict { .. }) => Ok(0),
                Err(error) => Err(error),
            }
        })
    }
}

fn payment(snapshot: &Snapshot, id: PaymentId) -> Result<Option<Payment>, Fault> {
    match snapshot.payments().get(id.bits())? {
        Some(bytes) => record::payment_from_bytes(id, bytes.value()).map(Some).map_err(Fault::damaged("payments", id)),
        None => Ok(None),
    }
}

fn merchant(snapshot: &Snapshot, id: MerchantId, vault: &Vault) -> Result<Option<Arc<Merchant>>, Fault> {
    match snapshot.merchants().get(id.bits())? {
        Some(bytes) => {
            record::merchant_from_bytes(id, bytes.value(), vault).map(Some).map_err(Fault::damaged("merchants", id))
        }
        None => Ok(None),
    }
}

fn single<T>(
    snapshot: &Snapshot,
    name: &'static str,
    decode: impl FnOnce(&[u8]) -> Result<T, record::Damage>,
) -> Result<Option<T>, Fault> {
    match single::read(&snapshot.meta(), name)? {
        Some(bytes) => decode(&bytes).map(Some).map_err(Fault::damaged("meta", name)),
        None => Ok(None),
    }
}
