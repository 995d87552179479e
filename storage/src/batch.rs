//! What can be written, and how a write is refused.

use std::sync::Arc;

use engine::{
    account::AccountName,
    audit::Entry,
    billing::{Invoice, Period, Schedule},
    compliance,
    event_list::Epoch,
    idempotency::IdempotencyRecord,
    ids::{DeliveryId, EventId, MerchantId, PaymentId},
    ledger::{BlockId, ChainPosition, Transfer, TxId},
    merchant::Merchant,
    payment::{Credit, Payment, Rate},
    quota::{Quota, QuotaExceeded},
    reconciliation,
    time::Timestamp,
    webhook::{Attempt, Delivery, EventType},
    x402::{ClaimOutcome, ClaimRecord},
};

/// Writes that become durable together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// The writes, applied in order.
    pub writes: Vec<Write>,
}

impl Batch {
    /// Returns a batch of one write.
    #[must_use]
    pub fn of(write: Write) -> Self {
        Self { writes: vec![write] }
    }

    /// Adds a write.
    #[must_use]
    pub fn and(mut self, write: Write) -> Self {
        self.writes.push(write);
        self
    }
}

/// One write. Indexes (keys, slugs, lists, filters, counts, deadlines, watched accounts, the outbox) follow by
/// themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// A merchant, new (`expected` none) or replacing the version `expected`. Its account is watched from then on.
    Merchant {
        /// The snapshot to store.
        merchant: Box<Merchant>,
        /// The version it replaces.
        expected: Option<u64>,
    },
    /// A payment, new (`expected` none) or replacing the version `expected`.
    Payment {
        /// The snapshot to store.
        payment: Arc<Payment>,
        /// The version it replaces.
        expected: Option<u64>,
    },
    /// A transfer of a payment, new or changed. The same batch writes its payment before it. The memo of a changed one is
    /// not written: the stored one stays whole.
    Transfer {
        /// The payment it is attached to.
        payment: PaymentId,
        /// Whose payment that is.
        merchant: MerchantId,
        /// The transfer.
        credit: Box<Credit>,
    },
    /// The idempotency key of a request that is done with this batch; refused while the same key stands for another.
    Remember {
        /// The key and what was done under it.
        remembered: IdempotencyRecord,
        /// Keys that are kept of its merchant at most; one more is refused.
        most: u64,
    },
    /// Idempotency keys made before `made_before` are forgotten, so many at once as a commit can take.
    Forget {
        /// Keys made earlier are forgotten.
        made_before: Timestamp,
    },
    /// An event, appended to its merchant's list and put into the outbox, due at once. An event is announced once: its
    /// id and its delivery's are never used for another.
    Event(EventRecord),
    /// The transaction of a claim, its nonce and its identifier; refused if any of them was ever claimed before.
    Claim(ClaimRecord),
    /// The outcome of a claim; refused unless the stored one is `expected`.
    ClaimOutcome {
        /// The claimed transaction.
        tx_id: TxId,
        /// What it replaces.
        expected: ClaimOutcome,
        /// What became of it.
        outcome: ClaimOutcome,
    },
    /// An attempt that was made: the delivery moves to its next due time, or leaves the outbox.
    Attempt {
        /// The delivery as it was read from the outbox.
        delivery: Delivery,
        /// What was tried.
        attempt: Attempt,
    },
    /// A delivery leaves the outbox for good without an attempt: its event is no longer kept.
    Undeliverable(Delivery),
    /// A delivery leaves the outbox without an attempt until it is replayed: its merchant has no endpoint, or one that
    /// is disabled.
    Hold(Delivery),
    /// A further delivery of an event, due when it says.
    Redeliver(Delivery),
    /// A delivery that was held or given up goes back into the outbox, at the beginning of its schedule.
    Replay {
        /// The delivery as it was read.
        delivery: Delivery,
        /// When it is due.
        at: Timestamp,
    },
    /// Whatever was known of a merchant's endpoint is forgotten: events are sent there again.
    EnableEndpoint {
        /// Whose.
        merchant: MerchantId,
    },
    /// An account that nobody has any more is not watched from then on; one that a merchant has stays.
    Unwatch(AccountName),
    /// Events that happened before are forgotten, so many at once as a commit can take; of their deliveries all but
    /// what the receivers answered is kept.
    Prune {
        /// Earlier ones go.
        happened_before: Timestamp,
    },
    /// Claims for other servers that are decided and belong to no merchant are forgotten; refused where one is none of these.
    ForgetClaims(Vec<TxId>),
    /// The scanner's cursor moves on; refused unless the stored one is `expected`.
    Cursor {
        /// The new one.
        cursor: Cursor,
        /// The one it replaces.
        expected: Option<Cursor>,
    },
    /// A transfer to a watched account that names no session. One that is kept already stays as it is.
    Unmatched(Unmatched),
    /// What is done about a transfer that paid no session; refused where there is none or it is assigned already.
    Handle {
        /// The account it went to.
        account: AccountName,
        /// Where it stands.
        place: ChainPosition,
        /// What is done about it.
        handling: Handling,
    },
    /// The invoice of a merchant's month, or another session for it; refused unless the month is as it was read.
    Invoice(Box<Invoicing>),
    /// The fee tiers; refused unless the stored ones have the version `expected`, 0 where there are none.
    FeeTiers {
        /// The new ones.
        schedule: Schedule,
        /// The version they replace.
        expected: u64,
    },
    /// A line of the audit log, appended.
    Audit(Box<Entry>),
    /// A creation that must be within its merchant's limits, judged against everything committed before it.
    Comply(compliance::PaymentCheck),
    /// A creation that must be within its merchant's caps, judged against everything committed before it. The same batch
    /// writes the payment before it.
    Admit {
        /// Which.
        payment: PaymentId,
        /// Whose.
        merchant: MerchantId,
        /// The caps.
        quota: Quota,
    },
    /// A change of where a merchant stands with compliance, if it still starts from there.
    Standing {
        /// Whose.
        merchant: MerchantId,
        /// What changes.
        change: compliance::ComplianceChange,
    },
    /// What the check of a day's books said, in place of what was known of that day.
    Books(Box<reconciliation::Day>),
    /// The newest price of HIVE.
    Rate(Rate),
    /// The epoch that follows a restore; refused unless one is pending.
    BeginEpoch(Epoch),
    /// A small named value: what chain the store belongs to, keys of this installation.
    Note {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: Vec<u8>,
    },
}

/// An invoice to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invoicing {
    /// The month as it was read.
    pub period: Period,
    /// Its invoice.
    pub invoice: Invoice,
    /// What the next open month takes over, thousandths of a US cent.
    pub carried_millicents: i64,
    /// When.
    pub at: Timestamp,
}

/// An event as its merchant's list keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord {
    /// The event.
    pub id: EventId,
    /// Its place in its merchant's list, from 1 without gaps; 0 until it is stored.
    pub seq: u64,
    /// Whose it is.
    pub merchant: MerchantId,
    /// What it tells of.
    pub kind: EventType,
    /// The payment it tells of; where it tells of none, the event's own number, so that it waits for no other.
    pub payment: PaymentId,
    /// The delivery that carries it; none where its merchant's endpoint is not sent such events.
    pub delivery: Option<DeliveryId>,
    /// When it happened.
    pub at: Timestamp,
    /// The webhook's body, sent as these bytes for ever.
    pub body: Vec<u8>,
    /// Whether its merchant tries its endpoint out: no payment has its id.
    pub is_test: bool,
}

/// How far the chain has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The block.
    pub block_id: BlockId,
    /// Its time.
    pub time: Timestamp,
}

/// A transfer to a watched account that pays no session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmatched {
    /// The transfer.
    pub transfer: Transfer,
    /// Why it pays none.
    pub reason: UnmatchedReason,
    /// What is done about it.
    pub handling: Handling,
}

/// What is done about a transfer that paid no session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handling {
    /// Nothing yet.
    Open,
    /// It was put to a session; that is for good.
    Assigned {
        /// The session.
        payment: PaymentId,
        /// Who did it: the id of an API key, or `memo` where the transfer itself said so.
        by: String,
        /// When.
        at: Timestamp,
    },
    /// Nothing is to be done. It may be assigned all the same.
    Ignored {
        /// Who decided.
        by: String,
        /// When.
        at: Timestamp,
        /// Why.
        note: String,
    },
}

/// Why a transfer pays no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnmatchedReason {
    /// The memo names none.
    NoSession,
    /// The memo names several.
    AmbiguousMemo,
    /// The memo is encrypted.
    EncryptedMemo,
    /// The memo names a session we do not know.
    UnknownSession,
    /// The session it names is paid to another account.
    OtherAccount,
    /// It came out of savings or escrow, or by a recurrent transfer: that pays no session, whatever its memo.
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

    /// Returns the word on the wire.
    #[must_use]
    pub const fn word(self) -> &'static str {
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
    /// A snapshot it replaces has been replaced by somebody else. Nothing was written; read again and decide anew.
    #[error("{what} has been changed by another writer")]
    Conflict {
        /// What.
        what: String,
    },
    /// The transaction, nonce or identifier of a claim is taken. Nothing was written.
    #[error("{} is claimed already", .0.tx_id)]
    Claimed(Box<ClaimRecord>),
    /// A transfer of a claim's transaction was assigned to a session. Nothing was written.
    #[error("a transfer of the transaction is assigned to {0}")]
    Assigned(PaymentId),
    /// The idempotency key stands for a request that was done before. Nothing was written.
    #[error("done before: {:?}", .0.resource)]
    Remembered(Box<IdempotencyRecord>),
    /// The merchant has as many idempotency keys as are remembered. Nothing was written.
    #[error("the merchant has too many idempotency keys")]
    KeysFull,
    /// The merchant's limits refuse the creation. Nothing was written.
    #[error("the merchant's limits refuse")]
    OnHold(compliance::Refusal),
    /// The merchant's caps refuse the creation. Nothing was written.
    #[error("{0}")]
    QuotaReached(QuotaExceeded),
    /// The writer's queue is full. Nothing was written; come back later.
    #[error("the store is overloaded")]
    Overloaded,
    /// The disk failed. It may have been written or not: only a restart can tell. The process must stop.
    #[error("the outcome of a write is unknown: {0}")]
    Unknown(String),
}

impl Unmatched {
    /// Returns the watched account.
    #[must_use]
    pub fn account(&self) -> &AccountName {
        &self.transfer.to
    }

    /// Returns a transfer about which nothing is done yet.
    #[must_use]
    pub const fn open(transfer: Transfer, reason: UnmatchedReason) -> Self {
        Self { transfer, reason, handling: Handling::Open }
    }
}
