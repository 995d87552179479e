//! Writes, and the errors with which the store rejects them.

use std::{sync::Arc, time::Duration};

use engine::{
    account::AccountName,
    audit::Entry,
    billing::{Invoice, Period, Schedule},
    compliance,
    event_list::Epoch,
    idempotency::IdempotencyRecord,
    ids::{DeliveryId, EndpointId, EventId, MerchantId, PaymentId},
    ledger::{BlockId, ChainPosition, Transfer, TxId},
    merchant::Merchant,
    payment::{Credit, Payment, Rate},
    quota::{Quota, QuotaExceeded},
    reconciliation,
    time::Timestamp,
    webhook::{Attempt, Delivery, EventType},
    x402::{ClaimOutcome, ClaimRecord, ReceiptKeys},
};

use crate::duty::{Duty, EngineId};

/// The id of a commit, by which an unknown outcome is resolved. Unique across engines and restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(u128);

impl CommitId {
    /// Returns the id of 128 bits.
    #[must_use]
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// Returns the id's 128 bits.
    #[must_use]
    pub const fn bits(self) -> u128 {
        self.0
    }
}

impl std::fmt::Display for CommitId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The outcome of a commit whose outcome was unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// The batch is durable.
    Applied,
    /// Nothing was written. The store rejects the id from now on.
    Forbidden,
}

/// Writes that become durable together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// The id of the commit; none if an unknown outcome is never resolved.
    pub id: Option<CommitId>,
    /// The writes, applied in order.
    pub writes: Vec<Write>,
}

impl From<Vec<Write>> for Batch {
    fn from(writes: Vec<Write>) -> Self {
        Self { id: None, writes }
    }
}

impl FromIterator<Write> for Batch {
    fn from_iter<T: IntoIterator<Item = Write>>(writes: T) -> Self {
        Self::from(writes.into_iter().collect::<Vec<_>>())
    }
}

impl Batch {
    /// Returns a batch of one write.
    #[must_use]
    pub fn of(write: Write) -> Self {
        Self::from(vec![write])
    }

    /// Adds a write.
    #[must_use]
    pub fn and(mut self, write: Write) -> Self {
        self.writes.push(write);
        self
    }
}

/// One write. The store maintains its indexes (keys, slugs, lists, filters, counts, deadlines, watched accounts, the
/// outbox).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Inserts a merchant (`expected` is `None`) or replaces the version `expected`. Its account is watched from then
    /// on.
    Merchant {
        /// The snapshot to store.
        merchant: Box<Merchant>,
        /// The version that is replaced.
        expected: Option<u64>,
    },
    /// Inserts a payment (`expected` is `None`) or replaces the version `expected`.
    Payment {
        /// The snapshot to store.
        payment: Arc<Payment>,
        /// The version that is replaced.
        expected: Option<u64>,
    },
    /// Inserts or updates a transfer of a payment. The payment must be written earlier in the same batch. An update
    /// does not change the stored memo.
    Transfer {
        /// The payment.
        payment: PaymentId,
        /// The payment's merchant.
        merchant: MerchantId,
        /// The transfer.
        credit: Box<Credit>,
    },
    /// Stores the idempotency key of the request that this batch completes. Rejected if the key belongs to another
    /// request.
    Remember {
        /// The key and its result.
        remembered: IdempotencyRecord,
        /// The maximum number of keys of a merchant; a further one is rejected.
        most: u64,
    },
    /// Deletes idempotency keys created before `made_before`, as many as one commit can hold.
    Forget {
        /// Older keys are deleted.
        made_before: Timestamp,
    },
    /// Appends an event to its merchant's list and inserts its deliveries into the outbox, due at once. The ids of event
    /// and deliveries must be unique.
    Event(EventRecord),
    /// Inserts a claim: its transaction, its nonce and its identifier. Rejected if one of them was claimed before.
    Claim(ClaimRecord),
    /// Sets the outcome of a claim. Rejected unless the stored outcome is `expected`.
    ClaimOutcome {
        /// The claimed transaction.
        tx_id: TxId,
        /// The outcome that is replaced.
        expected: ClaimOutcome,
        /// The new outcome.
        outcome: ClaimOutcome,
    },
    /// Records an attempt: the delivery gets its next due time or leaves the outbox.
    Attempt {
        /// The delivery as it was read from the outbox.
        delivery: Delivery,
        /// The attempt.
        attempt: Attempt,
    },
    /// Removes a delivery from the outbox permanently because its event was pruned or its endpoint was deleted.
    Undeliverable(Delivery),
    /// Holds a delivery: removes it from the outbox until it is replayed, because its endpoint is missing or disabled.
    /// Rejected if the reason no longer applies.
    Hold {
        /// The delivery.
        delivery: Delivery,
        /// The reason.
        reason: HoldReason,
    },
    /// Inserts another delivery of an event, due at its `due_at`.
    Redeliver(Delivery),
    /// Returns a held or failed delivery to the outbox, at the start of its schedule.
    Replay {
        /// The delivery as it was read.
        delivery: Delivery,
        /// When it is due.
        at: Timestamp,
    },
    /// Resets the health of an endpoint: webhooks are sent to it again.
    EnableEndpoint {
        /// The merchant.
        merchant: MerchantId,
        /// The endpoint.
        endpoint: EndpointId,
    },
    /// Stops watching an account, unless a merchant still has it.
    Unwatch(AccountName),
    /// Deletes events that happened before `happened_before`, as many as one commit can hold. Of their deliveries, only
    /// the responses of the receivers are kept.
    Prune {
        /// Older events are deleted.
        happened_before: Timestamp,
    },
    /// Deletes settled claims made for other servers that belong to no merchant. Rejected if one of them is anything
    /// else.
    ForgetClaims(Vec<TxId>),
    /// Advances the scanner's cursor. Rejected unless the stored cursor is `expected`.
    Cursor {
        /// The new cursor.
        cursor: Cursor,
        /// The cursor that is replaced.
        expected: Option<Cursor>,
    },
    /// Inserts an unmatched transfer: one to a watched account that pays no session. An existing one is not changed.
    Unmatched(Unmatched),
    /// Sets the handling of an unmatched transfer. Rejected if there is none, or if it is assigned already.
    Handle {
        /// The account that received it.
        account: AccountName,
        /// Its position on the chain.
        place: ChainPosition,
        /// The new handling.
        handling: Handling,
    },
    /// Stores the invoice of a merchant's month, or a new session for it. Rejected unless the month is unchanged since
    /// it was read.
    Invoice(Box<Invoicing>),
    /// Replaces the fee tiers. Rejected unless the stored ones have the version `expected`, 0 if there are none.
    FeeTiers {
        /// The new fee tiers.
        schedule: Schedule,
        /// The version that is replaced.
        expected: u64,
    },
    /// Stores the keys that sign offers and receipts, encrypted with the master key if there is one. Rejected unless the stored
    /// ones have the version `expected`, 0 if there are none.
    ReceiptKeys {
        /// The new keys.
        keys: Box<ReceiptKeys>,
        /// The version that is replaced.
        expected: u64,
    },
    /// Appends an entry to the audit log.
    Audit(Box<Entry>),
    /// Checks a new payment against its merchant's compliance limits, including everything committed before.
    CheckCompliance(compliance::PaymentCheck),
    /// Checks a new payment against its merchant's quota, including everything committed before. The payment must be
    /// written earlier in the same batch.
    Admit {
        /// The payment.
        payment: PaymentId,
        /// The merchant.
        merchant: MerchantId,
        /// The quota.
        quota: Quota,
    },
    /// Changes the compliance status of a merchant. Rejected if the change does not start from the stored status.
    Compliance {
        /// The merchant.
        merchant: MerchantId,
        /// The change.
        change: compliance::ComplianceChange,
    },
    /// Replaces the reconciliation of a day. Rejected unless the stored one was made at `expected`.
    Reconciliation {
        /// The reconciliation.
        day: Box<reconciliation::Day>,
        /// When the one it replaces was made; none if there is none.
        expected: Option<Timestamp>,
    },
    /// Stores the latest price of HIVE. Rejected unless the stored one was read at `expected`.
    Rate {
        /// The price.
        rate: Rate,
        /// When the price it replaces was read; none if there is none.
        expected: Option<Timestamp>,
    },
    /// Begins the epoch that follows a restore. Rejected unless one is pending.
    BeginEpoch(Epoch),
    /// Stores a small named value, such as the chain of the store or a key of this installation. Rejected unless the
    /// stored value is `expected`.
    Note {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: Vec<u8>,
        /// The value it replaces; none if there is none.
        expected: Option<Vec<u8>>,
    },
    /// Begins or renews the lease of an engine. Rejected if the engine has a lease already, or has none to renew.
    Lease {
        /// The engine.
        engine: EngineId,
        /// Whether the lease begins.
        is_new: bool,
        /// The engine's time. A store with a clock of its own ignores it.
        now: Timestamp,
        /// The duration of the lease from now on.
        duration: Duration,
    },
    /// Ends the lease of an engine, whose duties are free then. Rejected unless the lease has expired or the engine itself
    /// ends it.
    EndLease {
        /// The engine.
        engine: EngineId,
        /// The engine that ends the lease.
        by: EngineId,
        /// The engine's time. A store with a clock of its own ignores it.
        now: Timestamp,
    },
    /// Takes or releases a duty, which increments its term. Rejected unless the duty has the term `expected`, and while
    /// another engine with a lease holds it.
    Duty {
        /// The duty.
        duty: Duty,
        /// The engine that takes or releases it.
        engine: EngineId,
        /// Whether it takes the duty.
        is_taken: bool,
        /// The term that it replaces, 0 if there is none.
        expected: u64,
    },
    /// Writes nothing. The batch is rejected with [`CommitError::Deposed`] unless the duty has this term.
    OnDuty {
        /// The duty.
        duty: Duty,
        /// The term.
        term: u64,
    },
}

/// The reason for holding a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldReason {
    /// The endpoint is disabled because of its health.
    Disabled,
    /// The merchant's record has no such endpoint, or one without a URL, or the merchant disabled it.
    NoEndpoint {
        /// The version of that record; none if there is no such merchant.
        merchant_version: Option<u64>,
    },
}

/// An invoice to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invoicing {
    /// The month as it was read.
    pub period: Period,
    /// The invoice.
    pub invoice: Invoice,
    /// The amount carried over to the next open month, thousandths of a US cent.
    pub carried_millicents: i64,
    /// When the invoice was created.
    pub at: Timestamp,
}

/// An event in its merchant's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord {
    /// The id.
    pub id: EventId,
    /// Its position in its merchant's list, from 1 without gaps; 0 until it is stored.
    pub seq: u64,
    /// The merchant.
    pub merchant: MerchantId,
    /// The type.
    pub kind: EventType,
    /// The payment of the event. An event without a payment has its own id here, so that it waits for no other event.
    pub payment: PaymentId,
    /// Its deliveries: one to each endpoint that subscribes to this event type.
    pub deliveries: Vec<(EndpointId, DeliveryId)>,
    /// When it happened.
    pub at: Timestamp,
    /// The webhook's body. Every delivery sends exactly these bytes.
    pub body: Vec<u8>,
    /// Whether the merchant sent it to test its endpoint; a test event belongs to no payment.
    pub is_test: bool,
}

impl EventRecord {
    /// Returns its delivery to the merchant's default endpoint.
    #[must_use]
    pub fn delivery(&self) -> Option<DeliveryId> {
        self.delivery_to(EndpointId::default_of(self.merchant))
    }

    /// Returns its delivery to an endpoint.
    #[must_use]
    pub fn delivery_to(&self, endpoint: EndpointId) -> Option<DeliveryId> {
        self.deliveries.iter().find(|(to, _)| *to == endpoint).map(|(_, delivery)| *delivery)
    }
}

/// The last block whose effects are durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The block's id.
    pub block_id: BlockId,
    /// The block's time.
    pub time: Timestamp,
}

/// An unmatched transfer: one to a watched account that pays no session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmatched {
    /// The transfer.
    pub transfer: Transfer,
    /// Why it pays no session.
    pub reason: UnmatchedReason,
    /// Its handling.
    pub handling: Handling,
}

/// How an unmatched transfer was handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handling {
    /// Not handled.
    Open,
    /// Assigned to a session, permanently.
    Assigned {
        /// The session.
        payment: PaymentId,
        /// The actor: the id of an API key, or `memo` if the transfer's memo named the session.
        by: String,
        /// When it was assigned.
        at: Timestamp,
    },
    /// Ignored. It can still be assigned.
    Ignored {
        /// The actor: the id of an API key.
        by: String,
        /// When it was ignored.
        at: Timestamp,
        /// The reason that the actor gave.
        note: String,
    },
}

/// Why a transfer pays no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnmatchedReason {
    /// The memo names no session.
    NoSession,
    /// The memo names several sessions.
    AmbiguousMemo,
    /// The memo is encrypted.
    EncryptedMemo,
    /// The memo names an unknown session.
    UnknownSession,
    /// The memo names a session that is paid to another account.
    OtherAccount,
    /// The transfer comes from savings, escrow or a recurrent transfer. These operations never pay a session.
    UnsupportedOperation,
}

impl UnmatchedReason {
    /// Every reason, in a fixed order.
    pub const ALL: [Self; 6] = [
        Self::NoSession,
        Self::AmbiguousMemo,
        Self::EncryptedMemo,
        Self::UnknownSession,
        Self::OtherAccount,
        Self::UnsupportedOperation,
    ];

    /// Returns the value on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSession => "no_session",
            Self::AmbiguousMemo => "ambiguous_memo",
            Self::EncryptedMemo => "encrypted_memo",
            Self::UnknownSession => "unknown_session",
            Self::OtherAccount => "other_account",
            Self::UnsupportedOperation => "unsupported_operation",
        }
    }
}

/// Why a batch was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// Another writer replaced a snapshot that the batch replaces. Nothing was written. Read again and retry.
    #[error("{what} has been changed by another writer")]
    Conflict {
        /// The row.
        what: String,
    },
    /// The transaction, nonce or identifier of a claim was claimed before. Nothing was written.
    #[error("{} is claimed already", .0.tx_id)]
    Claimed(Box<ClaimRecord>),
    /// A transfer of the claimed transaction is assigned to a session. Nothing was written.
    #[error("a transfer of the transaction is assigned to {0}")]
    Assigned(PaymentId),
    /// The idempotency key belongs to a request that completed before. Nothing was written.
    #[error("done before: {:?}", .0.resource)]
    Remembered(Box<IdempotencyRecord>),
    /// The merchant has the maximum number of idempotency keys. Nothing was written.
    #[error("the merchant has too many idempotency keys")]
    KeysFull,
    /// The merchant's compliance limits reject the payment. Nothing was written.
    #[error("the merchant's limits refuse")]
    OnHold(compliance::Refusal),
    /// The merchant's quota rejects the payment. Nothing was written.
    #[error("{0}")]
    QuotaReached(QuotaExceeded),
    /// Another engine took the duty that the batch is written on. Nothing was written.
    #[error("the duty {0} is held by another engine")]
    Deposed(Duty),
    /// The write queue is full. Nothing was written. Retry later.
    #[error("the store is overloaded")]
    Overloaded,
    /// The store is unreachable. Nothing was written. Retry later.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The batch may or may not be written. [`Store::resolve`](crate::Store::resolve) determines which; if it fails with this error,
    /// too, the store has failed permanently and the process must exit.
    #[error("the outcome of a write is unknown: {0}")]
    Unknown(String),
}

impl Unmatched {
    /// Returns the account that received it.
    #[must_use]
    pub fn account(&self) -> &AccountName {
        &self.transfer.to
    }

    /// Returns an unmatched transfer that is not handled.
    #[must_use]
    pub const fn open(transfer: Transfer, reason: UnmatchedReason) -> Self {
        Self { transfer, reason, handling: Handling::Open }
    }
}
