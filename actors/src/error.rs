//! Why the engine did not do what it was asked for.

use engine::{
    account::AccountName, fields::Violation, ids::PaymentId, merchant::KeyRejection, ownership, payment::Rejection,
    time::Timestamp, webhook::TooManySecrets,
};

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// No key, or none of ours.
    #[error("the API key is missing or invalid")]
    Unauthenticated,
    /// The key is good and may not do this.
    #[error("the API key may not do this")]
    Forbidden,
    /// The operation needs an admin's key.
    #[error("this needs an admin's API key")]
    AdminOnly,
    /// The merchant is switched off.
    #[error("the merchant account is inactive")]
    InactiveMerchant,
    /// The merchant is on hold until somebody has looked at it.
    #[error("the merchant account is on hold")]
    OnHold {
        /// Whom to talk to.
        contact: String,
    },
    /// The merchant takes as much of the store as it may.
    #[error("{0}")]
    Quota(engine::quota::QuotaExceeded),
    /// Fields break their rules.
    #[error("{} is invalid", .0.first().map_or("the request", |v| v.field.as_str()))]
    Invalid(Vec<Violation>),
    /// The ledger has no such account.
    #[error("the ledger has no account {0}")]
    UnknownAccount(AccountName),
    /// There is no such payment, or it is not the caller's.
    #[error("no such payment")]
    PaymentNotFound,
    /// There is no such delivery, or it is not the caller's.
    #[error("no such delivery")]
    DeliveryNotFound,
    /// The event is older than what is kept.
    #[error("the event is older than the retention")]
    EventForgotten,
    /// The cursor names no place in the list of events.
    #[error("{0}")]
    Misplaced(engine::event_list::CursorError),
    /// The merchant has no webhook endpoint.
    #[error("the merchant has no webhook endpoint")]
    NoEndpoint,
    /// There is no such merchant.
    #[error("no such merchant")]
    MerchantNotFound,
    /// The merchant has not proven the account, or the account has changed since.
    #[error("the merchant has not proven that it owns @{account}: it is {}", .standing.as_str())]
    NotProven {
        /// The account.
        account: AccountName,
        /// Where the proof stands.
        standing: ownership::VerificationStatus,
    },
    /// What is known of the merchant's account refuses.
    #[error("{0}")]
    Ownership(ownership::Rejection),
    /// Nobody may register.
    #[error("registration is closed")]
    RegistrationClosed,
    /// No merchant is set up to be paid by invoices.
    #[error("no merchant is set up to be paid by invoices")]
    NoOperator,
    /// No such transfer to an account of the caller's is unmatched.
    #[error("no such unmatched transfer")]
    TransferNotFound,
    /// The transfer was put to a session before.
    #[error("the transfer is assigned to payment {0}")]
    TransferAssigned(PaymentId),
    /// The transfer was settled by x402 for somebody's resource: it is a sale.
    #[error("the transfer was settled by x402 for {0}")]
    TransferSettled(String),
    /// The payment's state refuses.
    #[error("{0}")]
    Rejected(Rejection),
    /// The merchant's keys do not allow it.
    #[error("{0}")]
    Key(KeyRejection),
    /// As many webhook secrets sign as may.
    #[error("{}", TooManySecrets { possible_at: *possible_at })]
    TooManySecrets {
        /// When the first of them ends.
        possible_at: Timestamp,
    },
    /// Keys are rolled by support only, in this installation.
    #[error("API keys are reissued by the operator")]
    NoKeyRoll,
    /// The merchant used more idempotency keys in a day than are remembered.
    #[error("too many idempotency keys were used in the last 24 hours")]
    TooManyIdempotencyKeys,
    /// The idempotency key stands for another request.
    #[error("the idempotency key was used for another request")]
    KeyReused,
    /// The payer's `payment-identifier` names another payment.
    #[error("the payment-identifier names another payment")]
    IdentifierReused,
    /// Too few ledger nodes respond, or the scanner has read no block yet.
    #[error("no ledger node responds, or the engine has read no block yet")]
    LedgerUnavailable,
    /// No price of HIVE was ever read.
    #[error("no price of HIVE is known yet")]
    NoRate,
    /// HBD is off its peg, and the settings refuse payments in it until it is back.
    #[error("HBD is off its peg")]
    HbdOffPeg,
    /// The merchant watches its events as often as it may.
    #[error("too many streams of events are open")]
    TooManyStreams,
    /// Too much is waiting; come back later.
    #[error("the engine is overloaded")]
    Overloaded,
    /// Somebody else kept changing the same record; come back later.
    #[error("the record changed during each attempt")]
    Contended,
    /// A stored row that is needed is damaged.
    #[error("the {table} record {key} is damaged")]
    Damaged {
        /// The table.
        table: &'static str,
        /// The row's key.
        key: String,
    },
    /// The store cannot be reached for the moment. Nothing was changed; try again later.
    #[error("the store is unavailable")]
    Unavailable,
    /// The store failed. Whether the change was made only the record will tell, after a restart.
    #[error("the store failed")]
    StoreFailed,
}
