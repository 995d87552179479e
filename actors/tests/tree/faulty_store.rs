//! A store that fails as it is told to: commits whose outcome is unknown, and a merchant whose record is damaged.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use engine::{
    account::AccountName,
    billing::{Month, Period},
    ids::*,
    ledger::TxId,
    merchant::*,
    payment::*,
    time::Timestamp,
    webhook::*,
};
use futures_util::future::BoxFuture;
use storage::*;

/// A store behind which everything is well.
pub(crate) struct FaultyStore {
    inner: Arc<dyn Store>,
    fails: AtomicBool,
    fails_to_read: AtomicBool,
    damaged: Mutex<Option<MerchantId>>,
}

impl FaultyStore {
    pub(crate) fn over(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            fails: AtomicBool::new(false),
            fails_to_read: AtomicBool::new(false),
            damaged: Mutex::new(None),
        })
    }

    /// Fails every commit from now on.
    pub(crate) fn fail(&self) {
        self.fails.store(true, Ordering::SeqCst);
    }

    /// Fails every read of the watched accounts from now on.
    pub(crate) fn fail_to_read(&self) {
        self.fails_to_read.store(true, Ordering::SeqCst);
    }

    /// Finds the record of a merchant damaged from now on.
    pub(crate) fn damage(&self, merchant: MerchantId) {
        *self.damaged.lock().unwrap() = Some(merchant);
    }
}

macro_rules! forward {
    ($($name:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {$(
        fn $name(&self, $($arg: $type),*) -> storage::Read<'_, $answer> { self.inner.$name($($arg),*) }
    )*};
}

impl Store for FaultyStore {
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<(), CommitError>> {
        if self.fails.load(Ordering::SeqCst) {
            return Box::pin(async { Err(CommitError::Unknown("the disk is gone".to_owned())) });
        }
        self.inner.commit(batch)
    }
    fn merchant(&self, id: MerchantId) -> Read<'_, Option<Arc<Merchant>>> {
        if *self.damaged.lock().unwrap() == Some(id) {
            let (key, why) = (id.to_string(), "a bit is wrong".to_owned());
            return Box::pin(async { Err(ReadError::Damaged { table: "merchants", key, why }) });
        }
        self.inner.merchant(id)
    }

    fn watched_accounts(&self, after: Option<AccountName>, limit: usize) -> Read<'_, Vec<AccountName>> {
        if self.fails_to_read.load(Ordering::SeqCst) {
            return Box::pin(async { Err(ReadError::Failed("the disk is gone".to_owned())) });
        }
        self.inner.watched_accounts(after, limit)
    }

    forward! {
        merchant_by_key(digest: KeyDigest) -> Option<Arc<Merchant>>;
        merchants(query: MerchantQuery) -> Page<ListedMerchant>;
        pending_accounts(now: Timestamp, limit: usize) -> Vec<MerchantId>;
        proven_merchants(account: AccountName, limit: usize) -> Vec<MerchantId>;
        retired_accounts(now: Timestamp, limit: usize) -> Vec<AccountName>;
        forgettable_claims(expired_before: Timestamp, after: Option<TxId>, limit: usize) -> (Vec<Claimed>, Option<TxId>);
        payment(id: PaymentId) -> Option<Payment>;
        transfer(payment: PaymentId, tx_id: TxId, op_in_tx: u32) -> Option<Credit>;
        transfers(payment: PaymentId, before: Option<u64>, limit: usize) -> Vec<Credit>;
        payment_by_slug(slug: SlugToken) -> Option<Payment>;
        payments(query: PaymentQuery) -> Page<Payment>;
        volume(query: VolumeQuery) -> Volume;
        due(before: Timestamp, after: Option<(Timestamp, PaymentId)>, limit: usize) -> Vec<(Timestamp, PaymentId)>;
        in_flight() -> Vec<PaymentId>;
        open_facilitations() -> Vec<Claimed>;
        claim(tx_id: TxId) -> Option<Claimed>;
        claim_by_nonce(pay_to: AccountName, nonce: String) -> Option<Claimed>;
        claim_by_identifier(pay_to: AccountName, identifier: String) -> Option<Claimed>;
        remembered(merchant: MerchantId, key: [u8; 32]) -> Option<engine::idempotency::Remembered>;
        cursor() -> Option<Cursor>;
        rate() -> Option<Rate>;
        due_deliveries(now: Timestamp, limit: usize) -> Vec<Delivery>;
        due_work(now: Timestamp, merchants: usize, per_merchant: usize, passed: Passed) -> Vec<DueWork>;
        endpoint(merchant: MerchantId) -> Endpoint;
        delivery(merchant: MerchantId, id: DeliveryId) -> Option<Logged>;
        deliveries(query: DeliveryQuery) -> Page<Logged>;
        payments_after(after: PaymentId, limit: usize) -> Page<Payment>;
        replayable(merchant: MerchantId, after: DeliveryId, limit: usize) -> Vec<Delivery>;
        event_place(event: EventId) -> Option<(MerchantId, u64)>;
        oldest_event() -> Option<Timestamp>;
        oldest_key() -> Option<Timestamp>;
        next_delivery_after(now: Timestamp) -> Option<Timestamp>;
        event(merchant: MerchantId, seq: u64) -> Option<EventRecord>;
        events(merchant: MerchantId, after: u64, limit: usize) -> Vec<EventRecord>;
        event_list(merchant: MerchantId) -> engine::event_list::EventList;
        epoch() -> engine::event_list::Epoch;
        attempts(event: EventId) -> Vec<Attempt>;
        standing(merchant: MerchantId) -> engine::compliance::Standing;
        unmatched(account: AccountName, limit: usize) -> Vec<Unmatched>;
        unmatched_at(account: AccountName, place: engine::ledger::Place) -> Option<Unmatched>;
        unmatched_before(account: AccountName, before: engine::ledger::Place, limit: usize) -> Vec<Unmatched>;
        waiting_for_sessions(after: Option<StrayKey>, limit: usize) -> Vec<StrayKey>;
        payments_near(vicinity: Vicinity) -> Vec<Payment>;
        accounts_since(after: Option<AccountName>, limit: usize) -> Vec<(AccountName, Timestamp)>;
        booked(account: AccountName, span: (Timestamp, Timestamp), after: Option<BookedPlace>, limit: usize) -> (Vec<engine::books::Booked>, Option<BookedPlace>);
        books(before: Option<Timestamp>, limit: usize) -> Vec<engine::books::Day>;
        audit(query: AuditQuery) -> Vec<engine::audit::Entry>;
        period(merchant: MerchantId, month: Month) -> Option<Period>;
        periods_of(merchant: MerchantId) -> Vec<Period>;
        periods(query: PeriodQuery) -> Page<Period>;
        unsettled_periods(before: Month, after: Option<(Month, MerchantId)>, limit: usize) -> Vec<Period>;
        billing_accounts(now: Timestamp) -> Vec<engine::billing::Account>;
        fee_schedule() -> Option<engine::billing::Schedule>;
        note(name: &'static str) -> Option<Vec<u8>>;
    }
}
