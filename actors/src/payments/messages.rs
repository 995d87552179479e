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

/// Why an order to a session was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// There is no such session.
    #[error("no payment {0}")]
    NotFound(PaymentId),
    /// Its state machine refused; the record as it stands.
    #[error("{rejection}")]
    Rejected {
        /// Why.
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
    /// The store takes no more for the moment.
    #[error("the store is overloaded")]
    Overloaded,
    /// The store cannot be reached for the moment. Nothing was changed.
    #[error("the store is unavailable")]
    Unavailable,
    /// Other writers kept changing the payment.
    #[error("the payment kept changing")]
    Contended,
    /// The merchant has used all of its idempotency keys.
    #[error("too many idempotency keys were used in the last 24 hours")]
    KeysFull,
    /// A stored row that the order needs is damaged: nothing is decided about it until somebody has put it right.
    #[error("the {table} record {key} is damaged")]
    Damaged {
        /// The table.
        table: &'static str,
        /// The row's key.
        key: String,
    },
    /// The store failed, or the actor died with the order; whether it was carried out the record will tell.
    #[error("the outcome is unknown")]
    Unknown,
}

/// Where the answer to an order goes.
pub(crate) type Reply = oneshot::Sender<Result<Arc<Payment>, SessionError>>;
/// The answer to an order; closed without one if the actor died.
pub(crate) type Answer = oneshot::Receiver<Result<Arc<Payment>, SessionError>>;

/// What somebody wants of a session.
pub(crate) struct Order {
    pub(crate) command: Command,
    /// What the audit log is told in the same commit; a command that changes nothing is not told.
    pub(crate) told: Option<Box<Entry>>,
    /// Who waits for the answer.
    pub(crate) reply: Option<Reply>,
    /// What it is carried out in: log lines bear the request's name.
    pub(crate) span: Span,
}

impl Order {
    /// Wants `command` carried out in the span of whoever calls this; nobody waits for it.
    pub(crate) fn new(command: Command) -> Box<Self> {
        Box::new(Self { command, told: None, reply: None, span: Span::current() })
    }

    /// The same, and where its answer will come.
    pub(crate) fn awaited(command: Command) -> (Box<Self>, Answer) {
        let (reply, answer) = oneshot::channel();
        (Box::new(Self { reply: Some(reply), ..*Self::new(command) }), answer)
    }
}

/// What the registry sends to the actor of a payment.
pub(crate) enum PaymentMsg {
    /// Read the snapshot of the payment: the first message of an actor that started without one.
    Load,
    /// Something is wanted of the session.
    Order(Box<Order>),
    /// Read the payment again: another engine may have changed it.
    Refresh,
    /// The session's time is over by our clock.
    TimeUp,
    /// Nothing more will be sent: stop when everything before this is done.
    Passivate,
}

/// What others send to the registry of active payments.
pub(crate) enum RegistryMsg {
    /// A session was created: activate it.
    Adopt(Arc<Payment>),
    /// Activate a session that must not wait for its next order.
    Activate(PaymentId),
    /// Activate a session that another engine may have changed, and read it again if it is active.
    Refresh(PaymentId),
    /// Return the sessions that somebody watches, or whose transactions are followed.
    Followed(oneshot::Sender<Vec<PaymentId>>),
    /// An order to a session.
    Order(PaymentId, Box<Order>),
    /// Send every later snapshot of a session, and confirm that none is missed from now on.
    Watch { id: PaymentId, snapshots: mpsc::Sender<Arc<Payment>>, added: oneshot::Sender<()> },
    /// A session was read or changed.
    Changed { id: PaymentId, snapshot: Option<Arc<Payment>>, stay: Stay },
    /// How many sessions are active.
    CountActive(oneshot::Sender<usize>),
}

/// What a session wants after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stay {
    /// It may be passivated when others need the space.
    MayPassivate,
    /// It has a transaction under way and must not be passivated.
    Active,
    /// Nothing more will happen to it by itself.
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

/// Records a failed read. A disk that cannot be read stops the engine; a single damaged record stops only who needs it.
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
