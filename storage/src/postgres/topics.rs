//! The reads of every topic.

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
    embedded::{commit::prepared, tables::meta},
    postgres::{
        read::{accounts, business, duties, ledger, lists, outbox, payments},
        store::PostgresStore,
    },
    record,
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

impl Merchants for PostgresStore {
    fn merchant(&self, id: MerchantId) -> Read<'_, Option<Arc<Merchant>>> {
        self.read(accounts::merchant(&self.readers, id, self.vault()))
    }

    fn merchant_by_key(&self, digest: KeyDigest) -> Read<'_, Option<Arc<Merchant>>> {
        self.read(accounts::merchant_by_key(&self.readers, digest, self.vault()))
    }

    fn merchants(&self, query: MerchantQuery) -> Read<'_, Page<ListedMerchant>> {
        self.read(async move { accounts::merchants(&self.readers, &query, self.vault()).await })
    }
}

impl Accounts for PostgresStore {
    fn watched_accounts(&self, after: Option<AccountName>, limit: usize) -> Read<'_, Vec<AccountName>> {
        self.read(async move { accounts::watched(&self.readers, after.as_ref(), limit).await })
    }

    fn accounts_added(&self, after: u64, limit: usize) -> Read<'_, Vec<(u64, AccountName)>> {
        self.read(accounts::added(&self.readers, after, limit))
    }

    fn accounts_since(&self, after: Option<AccountName>, limit: usize) -> Read<'_, Vec<(AccountName, Timestamp)>> {
        self.read(async move { accounts::since(&self.readers, after.as_ref(), limit).await })
    }

    fn pending_accounts(&self, now: Timestamp, limit: usize) -> Read<'_, Vec<MerchantId>> {
        self.read(accounts::pending(&self.readers, now, limit))
    }

    fn proven_merchants(&self, account: AccountName, limit: usize) -> Read<'_, Vec<MerchantId>> {
        self.read(async move { accounts::proven(&self.readers, &account, limit).await })
    }

    fn retired_accounts(&self, now: Timestamp, limit: usize) -> Read<'_, Vec<AccountName>> {
        self.read(accounts::retired(&self.readers, now, limit))
    }
}

impl Payments for PostgresStore {
    fn payment(&self, id: PaymentId) -> Read<'_, Option<Payment>> {
        self.read(payments::payment(&self.readers, id))
    }

    fn versions(&self, ids: Vec<PaymentId>) -> Read<'_, Vec<(PaymentId, u64)>> {
        self.read(async move { payments::versions(&self.readers, &ids).await })
    }

    fn payment_by_slug(&self, slug: SlugToken) -> Read<'_, Option<Payment>> {
        self.read(payments::by_slug(&self.readers, slug))
    }

    fn payments(&self, query: PaymentQuery) -> Read<'_, Page<Payment>> {
        self.read(async move { lists::payments(&self.readers, &query).await })
    }

    fn payments_after(&self, after: PaymentId, limit: usize) -> Read<'_, Page<Payment>> {
        self.read(payments::after(&self.readers, after, limit))
    }

    fn payments_near(&self, vicinity: Vicinity) -> Read<'_, Vec<Payment>> {
        self.read(async move { payments::near(&self.readers, &vicinity).await })
    }

    fn volume(&self, query: VolumeQuery) -> Read<'_, Volume> {
        self.read(async move { lists::volume(&self.readers, &query).await })
    }

    fn due(
        &self,
        before: Timestamp,
        after: Option<(Timestamp, PaymentId)>,
        limit: usize,
    ) -> Read<'_, Vec<(Timestamp, PaymentId)>> {
        self.read(payments::due(&self.readers, before, after, limit))
    }

    fn in_flight(&self) -> Read<'_, Vec<PaymentId>> {
        self.read(payments::in_flight(&self.readers))
    }

    fn transfer(&self, payment: PaymentId, tx_id: TxId, op_in_tx: u32) -> Read<'_, Option<Credit>> {
        self.read(payments::transfer(&self.readers, payment, tx_id, op_in_tx))
    }

    fn transfers(&self, payment: PaymentId, before: Option<u64>, limit: usize) -> Read<'_, Vec<Credit>> {
        self.read(payments::transfers(&self.readers, payment, before, limit))
    }
}

impl Claims for PostgresStore {
    fn open_facilitations(&self) -> Read<'_, Vec<ClaimRecord>> {
        self.read(ledger::open_facilitations(&self.readers))
    }

    fn forgettable_claims(
        &self,
        expired_before: Timestamp,
        after: Option<TxId>,
        limit: usize,
    ) -> Read<'_, (Vec<ClaimRecord>, Option<TxId>)> {
        self.read(ledger::forgettable_claims(&self.readers, expired_before, after, limit))
    }

    fn claim(&self, tx_id: TxId) -> Read<'_, Option<ClaimRecord>> {
        self.read(ledger::claim(&self.readers, tx_id))
    }

    fn claims(&self, tx_ids: Vec<TxId>) -> Read<'_, Vec<ClaimRecord>> {
        self.read(async move { ledger::claims(&self.readers, &tx_ids).await })
    }

    fn overlapping_claim(
        &self,
        pay_to: AccountName,
        tx_ids: Vec<TxId>,
        identifier: Option<String>,
        nonce: String,
    ) -> Read<'_, Option<ClaimRecord>> {
        let identifier = identifier.map(|identifier| prepared::identifier_digest(&pay_to, &identifier));
        let nonce = prepared::nonce_digest(&pay_to, &nonce);
        let digests: Vec<_> = identifier.into_iter().chain([nonce]).collect();
        self.read(async move { ledger::overlapping(&self.readers, &tx_ids, &digests).await })
    }
}

impl IdempotencyKeys for PostgresStore {
    fn remembered(&self, merchant: MerchantId, key: [u8; 32]) -> Read<'_, Option<IdempotencyRecord>> {
        self.read(ledger::remembered(&self.readers, merchant, key))
    }

    fn oldest_key(&self) -> Read<'_, Option<Timestamp>> {
        self.read(ledger::oldest_key(&self.readers))
    }
}

impl Chain for PostgresStore {
    fn cursor(&self) -> Read<'_, Option<Cursor>> {
        self.read(business::single(&self.readers, meta::CURSOR, record::cursor_from_bytes))
    }

    fn rate(&self) -> Read<'_, Option<Rate>> {
        self.read(business::single(&self.readers, meta::RATE, record::rate_from_bytes))
    }
}

impl UnmatchedTransfers for PostgresStore {
    fn unmatched(&self, account: AccountName, limit: usize) -> Read<'_, Vec<Unmatched>> {
        let newest = ChainPosition { block_num: u32::MAX, tx_in_block: u32::MAX, op_in_tx: u32::MAX };
        self.unmatched_before(account, newest, limit)
    }

    fn unmatched_at(&self, account: AccountName, place: ChainPosition) -> Read<'_, Option<Unmatched>> {
        self.read(async move { ledger::unmatched_at(&self.readers, &account, place).await })
    }

    fn unmatched_before(&self, account: AccountName, before: ChainPosition, limit: usize) -> Read<'_, Vec<Unmatched>> {
        self.read(async move { ledger::unmatched_before(&self.readers, &account, before, limit).await })
    }

    fn waiting_for_sessions(
        &self,
        after: Option<WaitingTransferKey>,
        limit: usize,
    ) -> Read<'_, Vec<WaitingTransferKey>> {
        self.read(async move { ledger::waiting(&self.readers, after.as_ref(), limit).await })
    }
}

impl Outbox for PostgresStore {
    fn due_deliveries(&self, now: Timestamp, limit: usize) -> Read<'_, Vec<Delivery>> {
        self.read(outbox::due(&self.readers, now, limit))
    }

    fn due_work(
        &self,
        now: Timestamp,
        endpoints: usize,
        per_endpoint: usize,
        passed: Passed,
    ) -> Read<'_, Vec<DueWork>> {
        self.read(
            async move { outbox::due_work(&self.readers, now, endpoints, per_endpoint, &passed, self.vault()).await },
        )
    }

    fn webhook_content(
        &self,
        merchant: MerchantId,
        event_seq: u64,
    ) -> Read<'_, (Option<Arc<Merchant>>, Option<EventRecord>)> {
        self.read(outbox::webhook_content(&self.readers, merchant, event_seq, self.vault()))
    }

    fn next_delivery_after(&self, now: Timestamp) -> Read<'_, Option<Timestamp>> {
        self.read(outbox::next_due(&self.readers, now))
    }

    fn endpoint(&self, id: EndpointId) -> Read<'_, EndpointHealth> {
        self.read(outbox::endpoint(&self.readers, id))
    }

    fn delivery(&self, merchant: MerchantId, id: DeliveryId) -> Read<'_, Option<DeliveryRecord>> {
        self.read(outbox::delivery(&self.readers, merchant, id))
    }

    fn deliveries(&self, query: DeliveryQuery) -> Read<'_, Page<DeliveryRecord>> {
        self.read(async move { outbox::deliveries(&self.readers, &query).await })
    }

    fn replayable(&self, merchant: MerchantId, after: DeliveryId, limit: usize) -> Read<'_, Vec<Delivery>> {
        self.read(outbox::replayable(&self.readers, merchant, after, limit))
    }

    fn attempts(&self, event: EventId) -> Read<'_, Vec<Attempt>> {
        self.read(outbox::attempts(&self.readers, event))
    }
}

impl Events for PostgresStore {
    fn event(&self, merchant: MerchantId, seq: u64) -> Read<'_, Option<EventRecord>> {
        self.read(outbox::event(&self.readers, merchant, seq))
    }

    fn event_place(&self, event: EventId) -> Read<'_, Option<(MerchantId, u64)>> {
        self.read(outbox::event_place(&self.readers, event))
    }

    fn events(&self, merchant: MerchantId, after: u64, limit: usize) -> Read<'_, Vec<EventRecord>> {
        self.read(outbox::events(&self.readers, merchant, after, limit))
    }

    fn event_list(&self, merchant: MerchantId) -> Read<'_, EventList> {
        self.read(outbox::event_list(&self.readers, merchant))
    }

    fn oldest_event(&self) -> Read<'_, Option<Timestamp>> {
        self.read(outbox::oldest_event(&self.readers))
    }

    fn epoch(&self) -> Read<'_, event_list::Epoch> {
        self.read(business::epoch(&self.readers))
    }
}

impl LedgerEntries for PostgresStore {
    fn ledger_entries(
        &self,
        account: AccountName,
        span: (Timestamp, Timestamp),
        after: Option<LedgerEntryKey>,
        limit: usize,
    ) -> Read<'_, (Vec<LedgerEntry>, Option<LedgerEntryKey>)> {
        self.read(async move { ledger::entries(&self.readers, &account, span, after, limit).await })
    }

    fn reconciled_days(&self, before: Option<Timestamp>, limit: usize) -> Read<'_, Vec<Day>> {
        self.read(ledger::days(&self.readers, before, limit))
    }
}

impl Compliance for PostgresStore {
    fn compliance_status(&self, merchant: MerchantId) -> Read<'_, ComplianceStatus> {
        self.read(business::compliance_status(&self.readers, merchant))
    }
}

impl Billing for PostgresStore {
    fn period(&self, merchant: MerchantId, month: Month) -> Read<'_, Option<Period>> {
        self.read(business::period(&self.readers, merchant, month))
    }

    fn periods_of(&self, merchant: MerchantId) -> Read<'_, Vec<Period>> {
        self.read(business::periods_of(&self.readers, merchant))
    }

    fn periods(&self, query: PeriodQuery) -> Read<'_, Page<Period>> {
        self.read(async move { business::periods(&self.readers, &query).await })
    }

    fn unsettled_periods(
        &self,
        before: Month,
        after: Option<(Month, MerchantId)>,
        limit: usize,
    ) -> Read<'_, Vec<Period>> {
        self.read(business::unsettled(&self.readers, before, after, limit))
    }

    fn billing_accounts(&self, now: Timestamp) -> Read<'_, Vec<BillingTotals>> {
        self.read(business::billing_accounts(&self.readers, now))
    }

    fn fee_schedule(&self) -> Read<'_, Option<Schedule>> {
        self.read(business::schedule(&self.readers))
    }
}

impl AuditLog for PostgresStore {
    fn audit(&self, query: AuditQuery) -> Read<'_, Vec<Entry>> {
        self.read(async move { business::audit(&self.readers, &query).await })
    }
}

impl Notes for PostgresStore {
    fn note(&self, name: &'static str) -> Read<'_, Option<Vec<u8>>> {
        self.read(async move { business::value(&self.readers, &meta::note(name)).await })
    }

    fn receipt_keys(&self) -> Read<'_, Option<ReceiptKeys>> {
        self.read(business::receipt_keys(&self.readers, self.vault()))
    }
}

impl Duties for PostgresStore {
    fn leases(&self) -> Read<'_, Vec<EngineLease>> {
        self.read(duties::leases(&self.readers))
    }

    fn membership(&self) -> Read<'_, Membership> {
        self.read(duties::membership(&self.readers))
    }
}
