//! The messages between the registry, the actors of payments and their callers.

use std::sync::Arc;

use engine::{
    audit::Entry,
    ids::PaymentId,
    payment::{Command, Payment, Rejection},
    x402::ClaimRecord,
};
use storage::ReadError;
use tokio::sync::{mpsc, oneshot};
use tracing::Span;

use crate::{context::Context, error::EngineError};

/// Why a command on a session failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The session does not exist.
    #[error("no payment {0}")]
    NotFound(PaymentId),
    /// The state machine rejected it; the record is unchanged.
    #[error("{rejection}")]
    Rejected {
        /// The reason.
        rejection: Rejection,
        /// The payment, unchanged.
        payment: Arc<Payment>,
    },
    /// The transaction or nonce is claimed for a session.
    #[error("{} is claimed already", .0.tx_id)]
    Claimed(Box<ClaimRecord>),
    /// A transfer of the transaction was assigned to a session.
    #[error("a transfer of the transaction is assigned to {0}")]
    Assigned(PaymentId),
    /// The store is overloaded.
    #[error("the store is overloaded")]
    Overloaded,
    /// The store is temporarily unreachable. Nothing was changed.
    #[error("the store is unavailable")]
    Unavailable,
    /// Repeated concurrent changes of the payment.
    #[error("the payment kept changing")]
    Contended,
    /// The merchant has used all of its idempotency keys.
    #[error("too many idempotency keys were used in the last 24 hours")]
    KeysFull,
    /// A stored row that the command needs is damaged: nothing is decided about it until it is repaired.
    #[error("the {table} record {key} is damaged")]
    Damaged {
        /// The table.
        table: &'static str,
        /// The row's key.
        key: String,
    },
    /// The store failed, or the actor crashed; whether the command was executed is known from the record.
    #[error("the outcome is unknown")]
    Unknown,
}

/// Receives the result of a command.
pub(crate) type Reply = oneshot::Sender<Result<Arc<Payment>, SessionError>>;
/// The result of a command; closed without one if the actor crashed.
pub(crate) type OrderResult = oneshot::Receiver<Result<Arc<Payment>, SessionError>>;

/// A command to a session.
pub(crate) struct Order {
    pub(crate) command: Command,
    /// The audit event of the same commit; a command that changes nothing has none.
    pub(crate) audit_entry: Option<Box<Entry>>,
    /// Receives the result.
    pub(crate) reply: Option<Reply>,
    /// The span of the request, so that log lines contain its id.
    pub(crate) span: Span,
}

impl Order {
    /// Creates an order for `command` in the caller's span, without a receiver of the result.
    pub(crate) fn new(command: Command) -> Box<Self> {
        Box::new(Self { command, audit_entry: None, reply: None, span: Span::current() })
    }

    /// The same, and the receiver of its result.
    pub(crate) fn awaited(command: Command) -> (Box<Self>, OrderResult) {
        let (reply, response) = oneshot::channel();
        (Box::new(Self { reply: Some(reply), ..*Self::new(command) }), response)
    }
}

/// Messages from the registry to the actor of a payment.
pub(crate) enum PaymentMsg {
    /// Read the snapshot of the payment: the first message of an actor that started without one.
    Load,
    /// Execute a command.
    Order(Box<Order>),
    /// Read the payment again: another engine may have changed it.
    Refresh,
    /// The session has expired by the engine's clock.
    TimeUp,
    /// No further message follows: stop after the previous ones, or report that a transaction is in flight.
    Passivate,
}

/// Messages to the registry of active payments.
pub(crate) enum RegistryMsg {
    /// A session was created: activate it.
    Adopt(Arc<Payment>),
    /// Activate a session that must not wait for its next command.
    Activate(PaymentId),
    /// Activate a session that another engine may have changed, and read it again if it is active.
    Refresh(PaymentId),
    /// Return the sessions that are watched, or whose transactions are followed.
    Followed(oneshot::Sender<Vec<PaymentId>>),
    /// A command to a session.
    Order(PaymentId, Box<Order>),
    /// Send every later snapshot of a session, and confirm that none is missed from now on.
    Watch { id: PaymentId, snapshots: mpsc::Sender<Arc<Payment>>, added: oneshot::Sender<()> },
    /// A session was read or changed.
    Changed { id: PaymentId, snapshot: Option<Arc<Payment>>, stay: Stay },
    /// A session that was asked to stop has a transaction in flight and continues.
    StaysActive(PaymentId),
    /// Return the number of active sessions.
    CountActive(oneshot::Sender<usize>),
}

/// How long a session must stay active after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stay {
    /// It may be passivated.
    MayPassivate,
    /// It has a transaction in flight and must not be passivated.
    Active,
    /// It is final and needs no actor.
    Finished,
}

impl Stay {
    pub(crate) fn of(payment: &Payment) -> Self {
        match (&payment.claim, payment.state.is_terminal()) {
            (Some(_), _) => Self::Active,
            (None, true) => Self::Finished,
            (None, false) => Self::MayPassivate,
        }
    }
}

/// Records a failed read. An unreadable disk stops the engine; a damaged record fails only its caller.
pub(crate) fn read_failed(context: &Context, error: &ReadError) -> SessionError {
    context.read_failed(error);
    match error {
        ReadError::Damaged { table, key, .. } => SessionError::Damaged { table, key: key.clone() },
        ReadError::Unavailable(_) => SessionError::Unavailable,
        ReadError::Failed(_) => SessionError::Unknown,
    }
}

impl From<SessionError> for EngineError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::NotFound(_) => Self::PaymentNotFound,
            SessionError::Rejected { rejection, .. } => Self::Rejected(rejection),
            SessionError::Overloaded => Self::Overloaded,
            SessionError::Unavailable => Self::Unavailable,
            SessionError::Claimed(_) | SessionError::Assigned(_) | SessionError::Contended => Self::Contended,
            SessionError::KeysFull => Self::TooManyIdempotencyKeys,
            SessionError::Damaged { table, key } => Self::Damaged { table, key },
            SessionError::Unknown => Self::StoreFailed,
        }
    }
}
