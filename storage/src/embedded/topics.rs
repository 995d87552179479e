//! The reads of every topic, each from the current snapshot.

use std::sync::Arc;

use engine::{
    account::AccountName,
    audit::Entry,
    billing::{BillingTotals, Month, Period, Schedule},
    compliance::ComplianceStatus,
    event_list::{self, EventList},
    idempotency::IdempotencyRecord,
    ids::{DeliveryId, EndpointId, EventId, MerchantId, PaymentId, SlugToken},
    ledger::{ChainPosition, TxId},
    merchant::{KeyDigest, Merchant},
    payment::{Credit, Payment, Rate},
    reconciliation::{Day, LedgerEntry},
    time::Timestamp,
    webhook::{Attempt, Delivery, DeliveryRecord, EndpointHealth},
    x402::{ClaimRecord, ReceiptKeys},
};

use crate::{
    batch::{Cursor, EventRecord, Unmatched},
    embedded::{
        commit::prepared,
        fault::Fault,
        read::{
            accounts, audit, billing, claims, compliance, days, deadlines, deliveries, delivery_list, duties,
            idempotency, ledger_entries, merchants, payments, transfers, unmatched,
        },
        store::EmbeddedStore,
        tables::meta,
        wal::{single, snapshot::Snapshot},
    },
    record::{self, wire},
    store::{
        accounts::Accounts,
        audit::{AuditLog, AuditQuery},
        billing::{Billing, PeriodQuery},
        chain::Chain,
        claims::Claims,
        compliance::Compliance,
        duties::{Duties, EngineLease, Membership},
        error::Read,
        events::Events,
        idempotency::IdempotencyKeys,
        ledger_entries::{LedgerEntries, LedgerEntryKey},
        merchants::{ListedMerchant, MerchantQuery, Merchants},
        notes::Notes,
        outbox::{DeliveryQuery, DueWork, Outbox, Passed},
        page::Page,
        payments::{PaymentQuery, Payments, Vicinity, Volume, VolumeQuery},
        unmatched::{UnmatchedTransfers, WaitingTransferKey},
    },
};

impl Merchants for EmbeddedStore {
    fn merchant(&self, id: MerchantId) -> Read<'_, Option<Arc<Merchant>>> {
        self.read(move |snapshot| merchants::merchant(snapshot, id, &self.vault))
    }

    fn merchant_by_key(&self, digest: KeyDigest) -> Read<'_, Option<Arc<Merchant>>> {
        self.read(move |snapshot| match snapshot.api_keys().get(&digest.0)? {
            Some(id) => merchants::merchant(snapshot, MerchantId::from_bits(id.value()), &self.vault),
            None => Ok(None),
        })
    }

    fn merchants(&self, query: MerchantQuery) -> Read<'_, Page<ListedMerchant>> {
        self.read(move |snapshot| merchants::merchants(snapshot, &query, &self.vault))
    }
}

impl Accounts for EmbeddedStore {
    fn watched_accounts(&self, after: Option<AccountName>, limit: usize) -> Read<'_, Vec<AccountName>> {
        self.read(move |snapshot| accounts::accounts(snapshot, after.as_ref(), limit))
    }

    fn accounts_added(&self, after: u64, limit: usize) -> Read<'_, Vec<(u64, AccountName)>> {
        self.read(move |snapshot| accounts::added(snapshot, after, limit))
    }

    fn accounts_since(&self, after: Option<AccountName>, limit: usize) -> Read<'_, Vec<(AccountName, Timestamp)>> {
        self.read(move |snapshot| ledger_entries::accounts(snapshot, after.as_ref(), limit))
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
}

impl Payments for EmbeddedStore {
    fn payment(&self, id: PaymentId) -> Read<'_, Option<Payment>> {
        self.read(move |snapshot| payment(snapshot, id))
    }

    fn versions(&self, ids: Vec<PaymentId>) -> Read<'_, Vec<(PaymentId, u64)>> {
        self.read(move |snapshot| payments::versions(snapshot, &ids))
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

    fn payments_near(&self, vicinity: Vicinity) -> Read<'_, Vec<Payment>> {
        self.read(move |snapshot| {
            let near = unmatched::payments_near(snapshot, &vicinity)?;
            let payments = snapshot.payments();
            let read = |id| Ok(payments.skip_damaged(payment(snapshot, id))?.flatten());
            near.into_iter().filter_map(|id| read(id).transpose()).collect()
        })
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
        self.read(move |snapshot| deadlines::due(snapshot, before, after, limit))
    }

    fn in_flight(&self) -> Read<'_, Vec<PaymentId>> {
        self.read(move |snapshot| {
            let in_flight = snapshot.in_flight();
            in_flight.iter()?.map(|entry| Ok(PaymentId::from_bits(entry?.0.value()))).collect()
        })
    }

    fn transfer(&self, payment: PaymentId, tx_id: TxId, op_in_tx: u32) -> Read<'_, Option<Credit>> {
        self.read(move |snapshot| transfers::one(snapshot, payment, tx_id, op_in_tx))
    }

    fn transfers(&self, payment: PaymentId, before: Option<u64>, limit: usize) -> Read<'_, Vec<Credit>> {
        self.read(move |snapshot| transfers::page(snapshot, payment, before, limit))
    }
}

impl Claims for EmbeddedStore {
    fn open_facilitations(&self) -> Read<'_, Vec<ClaimRecord>> {
        self.read(|snapshot| {
            let mut open = Vec::new();
            for entry in snapshot.facilitations().iter()? {
                let claims = snapshot.claims();
                open.extend(claims.skip_damaged(claims::find(snapshot, TxId(*entry?.0.value())))?.flatten());
            }
            Ok(open)
        })
    }

    fn forgettable_claims(
        &self,
        expired_before: Timestamp,
        after: Option<TxId>,
        limit: usize,
    ) -> Read<'_, (Vec<ClaimRecord>, Option<TxId>)> {
        self.read(move |snapshot| claims::forgettable(snapshot, expired_before, after, limit))
    }

    fn claim(&self, tx_id: TxId) -> Read<'_, Option<ClaimRecord>> {
        self.read(move |snapshot| claims::find(snapshot, tx_id))
    }

    fn claims(&self, tx_ids: Vec<TxId>) -> Read<'_, Vec<ClaimRecord>> {
        self.read(move |snapshot| claims::of(snapshot, &tx_ids))
    }

    fn overlapping_claim(
        &self,
        pay_to: AccountName,
        tx_ids: Vec<TxId>,
        identifier: Option<String>,
        nonce: String,
    ) -> Read<'_, Option<ClaimRecord>> {
        self.read(move |snapshot| {
            let identifier = identifier.map(|identifier| prepared::identifier_digest(&pay_to, &identifier));
            let keys = identifier.into_iter().chain([prepared::nonce_digest(&pay_to, &nonce)]);
            claims::overlapping(snapshot, &tx_ids, keys)
        })
    }
}

impl IdempotencyKeys for EmbeddedStore {
    fn remembered(&self, merchant: MerchantId, key: [u8; 32]) -> Read<'_, Option<IdempotencyRecord>> {
        self.read(move |snapshot| idempotency::find(snapshot, merchant, key))
    }

    fn oldest_key(&self) -> Read<'_, Option<Timestamp>> {
        self.read(idempotency::oldest)
    }
}

impl Chain for EmbeddedStore {
    fn cursor(&self) -> Read<'_, Option<Cursor>> {
        self.read(|snapshot| single(snapshot, meta::CURSOR, record::cursor_from_bytes))
    }

    fn rate(&self) -> Read<'_, Option<Rate>> {
        self.read(|snapshot| single(snapshot, meta::RATE, record::rate_from_bytes))
    }
}

impl UnmatchedTransfers for EmbeddedStore {
    fn unmatched(&self, account: AccountName, limit: usize) -> Read<'_, Vec<Unmatched>> {
        let newest = ChainPosition { block_num: u32::MAX, tx_in_block: u32::MAX, op_in_tx: u32::MAX };
        self.read(move |snapshot| unmatched::before(snapshot, &account, newest, limit))
    }

    fn unmatched_at(&self, account: AccountName, place: ChainPosition) -> Read<'_, Option<Unmatched>> {
        self.read(move |snapshot| unmatched::at(snapshot, &account, place))
    }

    fn unmatched_before(&self, account: AccountName, before: ChainPosition, limit: usize) -> Read<'_, Vec<Unmatched>> {
        self.read(move |snapshot| unmatched::before(snapshot, &account, before, limit))
    }

    fn waiting_for_sessions(
        &self,
        after: Option<WaitingTransferKey>,
        limit: usize,
    ) -> Read<'_, Vec<WaitingTransferKey>> {
        self.read(move |snapshot| unmatched::waiting(snapshot, after.as_ref(), limit))
    }
}

impl Outbox for EmbeddedStore {
    fn due_deliveries(&self, now: Timestamp, limit: usize) -> Read<'_, Vec<Delivery>> {
        self.read(move |snapshot| deliveries::due(snapshot, now, limit))
    }

    fn due_work(
        &self,
        now: Timestamp,
        endpoints: usize,
        per_endpoint: usize,
        passed: Passed,
    ) -> Read<'_, Vec<DueWork>> {
        self.read(move |snapshot| deliveries::due_work(snapshot, now, endpoints, per_endpoint, &passed, &self.vault))
    }

    fn webhook_content(
        &self,
        merchant: MerchantId,
        event_seq: u64,
    ) -> Read<'_, (Option<Arc<Merchant>>, Option<EventRecord>)> {
        self.read(move |snapshot| {
            let event = deliveries::event(snapshot, merchant, event_seq);
            let event = snapshot.events().skip_damaged(event)?.flatten();
            Ok((merchants::merchant(snapshot, merchant, &self.vault)?, event))
        })
    }

    fn next_delivery_after(&self, now: Timestamp) -> Read<'_, Option<Timestamp>> {
        self.read(move |snapshot| deliveries::next_due(snapshot, now))
    }

    fn endpoint(&self, id: EndpointId) -> Read<'_, EndpointHealth> {
        self.read(move |snapshot| deliveries::health(snapshot, id))
    }

    fn delivery(&self, merchant: MerchantId, id: DeliveryId) -> Read<'_, Option<DeliveryRecord>> {
        self.read(move |snapshot| deliveries::delivery(snapshot, merchant, id))
    }

    fn deliveries(&self, query: DeliveryQuery) -> Read<'_, Page<DeliveryRecord>> {
        self.read(move |snapshot| delivery_list::deliveries(snapshot, &query))
    }

    fn replayable(&self, merchant: MerchantId, after: DeliveryId, limit: usize) -> Read<'_, Vec<Delivery>> {
        self.read(move |snapshot| delivery_list::replayable(snapshot, merchant, after, limit))
    }

    fn attempts(&self, event: EventId) -> Read<'_, Vec<Attempt>> {
        self.read(move |snapshot| deliveries::attempts(snapshot, event))
    }
}

impl Events for EmbeddedStore {
    fn event(&self, merchant: MerchantId, seq: u64) -> Read<'_, Option<EventRecord>> {
        self.read(move |snapshot| deliveries::event(snapshot, merchant, seq))
    }

    fn event_place(&self, event: EventId) -> Read<'_, Option<(MerchantId, u64)>> {
        self.read(move |snapshot| deliveries::event_place(snapshot, event))
    }

    fn events(&self, merchant: MerchantId, after: u64, limit: usize) -> Read<'_, Vec<EventRecord>> {
        self.read(move |snapshot| deliveries::events(snapshot, merchant, after, limit))
    }

    fn event_list(&self, merchant: MerchantId) -> Read<'_, EventList> {
        self.read(move |snapshot| deliveries::event_list(snapshot, merchant.bits()))
    }

    fn oldest_event(&self) -> Read<'_, Option<Timestamp>> {
        self.read(deliveries::oldest_event)
    }

    fn epoch(&self) -> Read<'_, event_list::Epoch> {
        self.read(|snapshot| deliveries::epoch(&snapshot.meta()))
    }
}

impl LedgerEntries for EmbeddedStore {
    fn ledger_entries(
        &self,
        account: AccountName,
        span: (Timestamp, Timestamp),
        after: Option<LedgerEntryKey>,
        limit: usize,
    ) -> Read<'_, (Vec<LedgerEntry>, Option<LedgerEntryKey>)> {
        self.read(move |snapshot| ledger_entries::ledger_entries(snapshot, &account, span, after, limit))
    }

    fn reconciled_days(&self, before: Option<Timestamp>, limit: usize) -> Read<'_, Vec<Day>> {
        self.read(move |snapshot| ledger_entries::days(snapshot, before, limit))
    }
}

impl Compliance for EmbeddedStore {
    fn compliance_status(&self, merchant: MerchantId) -> Read<'_, ComplianceStatus> {
        self.read(move |snapshot| compliance::compliance_status(snapshot, merchant))
    }
}

impl Billing for EmbeddedStore {
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

    fn billing_accounts(&self, now: Timestamp) -> Read<'_, Vec<BillingTotals>> {
        self.read(move |snapshot| billing::accounts(snapshot, now))
    }

    fn fee_schedule(&self) -> Read<'_, Option<Schedule>> {
        self.read(billing::schedule)
    }
}

impl AuditLog for EmbeddedStore {
    fn audit(&self, query: AuditQuery) -> Read<'_, Vec<Entry>> {
        self.read(move |snapshot| audit::audit(snapshot, &query))
    }
}

impl Duties for EmbeddedStore {
    fn membership(&self) -> Read<'_, Membership> {
        self.read(duties::membership)
    }

    fn leases(&self) -> Read<'_, Vec<EngineLease>> {
        self.read(duties::leases)
    }
}

impl Notes for EmbeddedStore {
    fn note(&self, name: &'static str) -> Read<'_, Option<Vec<u8>>> {
        self.read(move |snapshot| single::read(&snapshot.meta(), &meta::note(name)))
    }

    fn receipt_keys(&self) -> Read<'_, Option<ReceiptKeys>> {
        let decode = |bytes: &[u8]| record::receipt_keys_from_bytes(bytes, &self.vault);
        self.read(move |snapshot| single(snapshot, meta::RECEIPT_KEYS, decode))
    }
}

fn payment(snapshot: &Snapshot, id: PaymentId) -> Result<Option<Payment>, Fault> {
    match snapshot.payments().get(id.bits())? {
        Some(bytes) => record::payment_from_bytes(id, bytes.value()).map(Some).map_err(Fault::damaged("payments", id)),
        None => Ok(None),
    }
}

fn single<T>(
    snapshot: &Snapshot,
    name: &'static str,
    decode: impl FnOnce(&[u8]) -> Result<T, wire::Damage>,
) -> Result<Option<T>, Fault> {
    match single::read(&snapshot.meta(), name)? {
        Some(bytes) => decode(&bytes).map(Some).map_err(Fault::damaged("meta", name)),
        None => Ok(None),
    }
}
