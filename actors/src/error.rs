//! The errors of the engine's interface.

use engine::{
    account::AccountName,
    fields::Violation,
    ids::PaymentId,
    merchant::KeyRejection,
    ownership,
    payment::{Rejection, RestartRejection},
    time::Timestamp,
    webhook::{EndpointRejection, TooManySecrets},
};

/// Why an operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The API key is missing or unknown.
    #[error("the API key is missing or invalid")]
    Unauthenticated,
    /// The key is valid but lacks the permission.
    #[error("the API key may not do this")]
    Forbidden,
    /// The operation requires an admin's key.
    #[error("this needs an admin's API key")]
    AdminOnly,
    /// The merchant is inactive.
    #[error("the merchant account is inactive")]
    InactiveMerchant,
    /// The merchant is on hold until the operator has reviewed it.
    #[error("the merchant account is on hold")]
    OnHold {
        /// The contact of the operator.
        contact: String,
    },
    /// The merchant has reached its storage quota.
    #[error("{0}")]
    Quota(engine::quota::QuotaExceeded),
    /// Fields are invalid.
    #[error("{} is invalid", .0.first().map_or("the request", |v| v.field.as_str()))]
    Invalid(Vec<Violation>),
    /// The account does not exist.
    #[error("the ledger has no account {0}")]
    UnknownAccount(AccountName),
    /// The payment does not exist, or belongs to another merchant.
    #[error("no such payment")]
    PaymentNotFound,
    /// The delivery does not exist, or belongs to another merchant.
    #[error("no such delivery")]
    DeliveryNotFound,
    /// The event is older than the retention.
    #[error("the event is older than the retention")]
    EventForgotten,
    /// The cursor is invalid.
    #[error("{0}")]
    Misplaced(engine::event_list::CursorError),
    /// The webhook endpoint has no URL: the merchant has no `webhookUrl`.
    #[error("the merchant has no webhook endpoint")]
    NoEndpoint,
    /// The webhook endpoint does not exist, or belongs to another merchant.
    #[error("no such webhook endpoint")]
    EndpointNotFound,
    /// The merchant has the maximum number of webhook endpoints.
    #[error("{}", EndpointRejection::TooMany)]
    TooManyEndpoints,
    /// The merchant does not exist.
    #[error("no such merchant")]
    MerchantNotFound,
    /// The merchant has not proven ownership of the account, or the proof is stale.
    #[error("the merchant has not proven that it owns @{account}: it is {}", .status.as_str())]
    NotProven {
        /// The account.
        account: AccountName,
        /// The verification status.
        status: ownership::VerificationStatus,
    },
    /// The rules of account ownership reject the operation.
    #[error("{0}")]
    Ownership(ownership::Rejection),
    /// Registration is closed.
    #[error("registration is closed")]
    RegistrationClosed,
    /// No merchant is configured to receive invoice payments.
    #[error("no merchant is set up to be paid by invoices")]
    NoOperator,
    /// The unmatched transfer does not exist.
    #[error("no such unmatched transfer")]
    TransferNotFound,
    /// The transfer is already assigned to a payment.
    #[error("the transfer is assigned to payment {0}")]
    TransferAssigned(PaymentId),
    /// The transfer was settled by x402 for a resource: it is a sale.
    #[error("the transfer was settled by x402 for {0}")]
    TransferSettled(String),
    /// The state of the payment rejects the operation.
    #[error("{0}")]
    Rejected(Rejection),
    /// The payment cannot be started again.
    #[error("{0}")]
    Restart(RestartRejection),
    /// The rules of API keys reject the operation.
    #[error("{0}")]
    Key(KeyRejection),
    /// The maximum number of webhook secrets is valid.
    #[error("{}", TooManySecrets { possible_at: *possible_at })]
    TooManySecrets {
        /// When the first of them expires.
        possible_at: Timestamp,
    },
    /// This installation permits the operator only to roll keys.
    #[error("API keys are reissued by the operator")]
    NoKeyRoll,
    /// The merchant used the maximum number of idempotency keys in a day.
    #[error("too many idempotency keys were used in the last 24 hours")]
    TooManyIdempotencyKeys,
    /// The idempotency key was used for another request.
    #[error("the idempotency key was used for another request")]
    KeyReused,
    /// The payer's `payment-identifier` names another payment.
    #[error("the payment-identifier names another payment")]
    IdentifierReused,
    /// Too few ledger nodes respond, or the scanner has read no block yet.
    #[error("no ledger node responds, or the engine has read no block yet")]
    LedgerUnavailable,
    /// No price of HIVE has been read yet.
    #[error("no price of HIVE is known yet")]
    NoRate,
    /// HBD is off its peg, and the settings refuse payments in HBD meanwhile.
    #[error("HBD is off its peg")]
    HbdOffPeg,
    /// The merchant has the maximum number of event streams.
    #[error("too many streams of events are open")]
    TooManyStreams,
    /// Too many calls are waiting; retry later.
    #[error("the engine is overloaded")]
    Overloaded,
    /// Concurrent changes of the same record; retry later.
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
    /// The store is temporarily unreachable. Nothing was changed; retry later.
    #[error("the store is unavailable")]
    Unavailable,
    /// The store failed. Whether the change was stored is known after a restart.
    #[error("the store failed")]
    StoreFailed,
}
