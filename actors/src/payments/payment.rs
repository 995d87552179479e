//! The actor of one awake session: it alone changes its payment, and it owns the timer of its expiry.

use std::sync::Arc;

use engine::{
    audit::Entry,
    ids::PaymentId,
    mutant,
    payment::{Command, Credit, Effect, Event, ExceptionEvent, Payment, Rejection, State, Transition},
    webhook::{self, EventType},
};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use storage::{Batch, Claimed, CommitError, EventRecord, Fate, Handling, Purpose, ReadError, Write};
use tokio::sync::oneshot;
use tracing::{Instrument as _, Span};

use crate::{
    context::Context,
    metrics,
    payments::{
        registry, settlement, transfer_log,
        transfers::{with_late_rows, with_rows},
        unmatched,
    },
    timer::{Task, Timer},
};

/// How often a command is decided anew when another writer was faster.
const MAX_CONFLICTS: usize = 5;

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
    Claimed(Box<Claimed>),
    /// A transfer of the transaction was assigned to a session.
    #[error("a transfer of the transaction is assigned to {0}")]
    Assigned(PaymentId),
    /// The store takes no more for the moment.
    #[error("the store is overloaded")]
    Overloaded,
    /// Other writers kept changing the payment.
    #[error("the payment kept changing")]
    Contended,
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

/// What somebody wants of a session.
pub(crate) struct Order {
    pub(crate) command: Command,
    /// What the audit log is told in the same commit; a command that changes nothing is not told.
    pub(crate) told: Option<Box<Entry>>,
    /// Who waits for the answer.
    pub(crate) reply: Option<Reply>,
    pub(crate) ticket: Option<registry::Ticket>,
    /// What it is carried out in: log lines bear the request's name.
    pub(crate) span: Span,
}

impl Order {
    /// Wants `command` carried out in the span of whoever calls this; nobody waits for it.
    pub(crate) fn new(command: Command) -> Box<Self> {
        Box::new(Self { command, told: None, reply: None, ticket: None, span: Span::current() })
    }

    /// The same, and where its answer will come.
    pub(crate) fn awaited(command: Command) -> (Box<Self>, oneshot::Receiver<Result<Arc<Payment>, SessionError>>) {
        let (reply, answer) = oneshot::channel();
        (Box::new(Self { reply: Some(reply), ..*Self::new(command) }), answer)
    }
}

pub(crate) enum Msg {
    /// Something is wanted of the session.
    Order(Box<Order>),
    /// The session's time is over by our clock.
    TimeUp,
    /// Nothing more will be sent: stop when everything before this is done.
    Park,
}

pub(crate) struct PaymentActor {
    pub(crate) context: Arc<Context>,
    pub(crate) sessions: ActorRef<registry::Msg>,
}

pub(crate) struct Awake {
    payment: Arc<Payment>,
    _timer: Option<Timer>,
    /// Brings the claimed transaction onto the chain; ends with the claim, or with us.
    settlement: Option<Task>,
}

impl Actor for PaymentActor {
    type Msg = Msg;
    type State = Awake;
    type Arguments = Arc<Payment>;

    async fn pre_start(&self, myself: ActorRef<Msg>, payment: Arc<Payment>) -> Result<Awake, ActorProcessingErr> {
        let left = payment.due_at().since(self.context.now());
        let timer = (payment.state == State::Pending).then(|| Timer::send(&myself, left, Msg::TimeUp));
        // Born from a snapshot with a claim: whoever died before us may have broadcast it.
        let settlement = self.settlement(&payment, true);
        Ok(Awake { payment, _timer: timer, settlement })
    }

    async fn handle(&self, myself: ActorRef<Msg>, message: Msg, awake: &mut Awake) -> Result<(), ActorProcessingErr> {
        match message {
            Msg::Order(order) => {
                let Order { command, told, reply, ticket, span } = *order;
                let answer = self.carry_out(&command, told, awake).instrument(span).await;
                if let Some(reply) = reply {
                    // Who asked may have left; what was done stays done.
                    let _ = reply.send(answer);
                }
                drop(ticket);
            }
            Msg::TimeUp => {
                // Expiry needs the ledger's word; until it comes the record says `expired`.
                self.tell(&awake.payment);
                let irreversible_time = self.context.ledger.irreversible_time();
                if mutant!("expiry-by-our-clock") {
                    let irreversible_time = self.context.now() + std::time::Duration::from_secs(1);
                    let _ = self.carry_out(&Command::Expire { irreversible_time }, None, awake).await;
                }
                let is_over = irreversible_time > awake.payment.due_at();
                // Money that came before the session is put to it first; the sweep expires it then, if it is not enough.
                let id = awake.payment.id;
                if is_over
                    && unmatched::awaited(&self.context, [id].into_iter()).await.is_ok_and(|them| them.is_empty())
                {
                    let _ = self.carry_out(&Command::Expire { irreversible_time }, None, awake).await;
                }
            }
            Msg::Park => myself.stop(None),
        }
        Ok(())
    }
}

impl PaymentActor {
    /// Apply, commit, then act.
    async fn carry_out(
        &self,
        command: &Command,
        told: Option<Box<Entry>>,
        awake: &mut Awake,
    ) -> Result<Arc<Payment>, SessionError> {
        let id = awake.payment.id;
        for _ in 0..MAX_CONFLICTS {
            let now = self.context.now();
            let known = with_rows(&self.context, &awake.payment, command).await?;
            let refused = |rejection| SessionError::Rejected { rejection, payment: Arc::clone(&awake.payment) };
            let mut step = known.apply(command, now).map_err(refused)?;
            if known.overlooks_unlisted(&step.payment) && !mutant!("unlisted-not-judged") {
                step = with_late_rows(&self.context, &known).await?.apply(command, now).map_err(refused)?;
            }
            let Transition { payment, event, exception, effects, rows } = step;
            let payment = Arc::new(payment);
            let decided = transfer_log::decided(&rows);
            let mut batch = self.batch(&payment, rows, event.as_ref(), command, awake.payment.version);
            if let Some(exception) = exception {
                batch = batch.and(self.exception(&payment, &exception).await?);
            }
            if let Some(told) = &told {
                batch = batch.and(Write::Audit(told.clone()));
            }
            self.context.env.probe.reach("payment: applied, not committed");
            let is_told_early = mutant!("cancel-told-before-stored") && matches!(command, Command::Cancel { .. })
                || mutant!("decision-told-before-stored") && matches!(command, Command::Resolve(_));
            if is_told_early {
                let store = Arc::clone(&self.context.env.store);
                tokio::spawn(async move { store.commit(batch).await });
                awake.payment = Arc::clone(&payment);
                return Ok(payment);
            }
            match self.context.env.store.commit(batch).await {
                Ok(()) => {
                    self.context.env.probe.reach("payment: committed, effects not run");
                    metrics::stepped(&self.context.metrics, &awake.payment, &payment);
                    note_cancellation(&awake.payment, &payment);
                    decided.iter().for_each(|credit| transfer_log::credited(credit, &payment));
                    awake.payment = Arc::clone(&payment);
                    self.act(awake, &effects);
                    return Ok(payment);
                }
                // Another writer was faster: what it left is the truth.
                Err(CommitError::Conflict { .. }) => awake.payment = self.reload(id).await?,
                Err(CommitError::Claimed(by)) => return Err(SessionError::Claimed(by)),
                Err(CommitError::Assigned(to)) => return Err(SessionError::Assigned(to)),
                Err(
                    CommitError::Remembered(_)
                    | CommitError::OnHold(_)
                    | CommitError::QuotaReached(_)
                    | CommitError::KeysFull,
                ) => {
                    return Err(SessionError::Contended);
                }
                Err(CommitError::Overloaded) => return Err(SessionError::Overloaded),
                Err(error @ CommitError::Unknown(_)) => {
                    self.context.give_up_on(&error);
                    return Err(SessionError::Unknown);
                }
            }
        }
        Err(SessionError::Contended)
    }

    fn batch(
        &self,
        payment: &Arc<Payment>,
        rows: Vec<Credit>,
        event: Option<&Event>,
        command: &Command,
        expected: u64,
    ) -> Batch {
        let mut batch = Batch::of(Write::Payment { payment: Arc::clone(payment), expected: Some(expected) });
        for row in rows {
            let (id, merchant, credit) = (payment.id, payment.merchant, Box::new(row));
            batch = batch.and(Write::Transfer { payment: id, merchant, credit });
        }
        if let Some(event) = event {
            batch = batch.and(Write::Event(EventRecord {
                id: event.id,
                seq: 0,
                merchant: payment.merchant,
                kind: EventType::StatusChanged,
                payment: payment.id,
                delivery: Some(self.context.env.entropy.delivery_id(event.at)),
                at: event.at,
                body: webhook::status_changed(payment, event),
                is_test: false,
            }));
        }
        match command {
            Command::Claim(claim) => batch.and(Write::Claim(Claimed {
                tx_id: claim.tx_id,
                pay_to: payment.pay_to,
                nonce: claim.nonce.clone(),
                identifier: claim.identifier.clone(),
                proof: claim.proof.clone(),
                purpose: Purpose::Session(payment.id),
                fate: Fate::Open,
                at: claim.claimed_at,
            })),
            Command::Attach(attachment) => batch.and(Write::Handle {
                account: attachment.transfer.to,
                place: attachment.transfer.place,
                handling: Handling::Assigned { payment: payment.id, by: attachment.by.clone(), at: payment.updated_at },
            }),
            Command::Refuse { tx_id, reason, message } => batch.and(Write::Fate {
                tx_id: *tx_id,
                expected: Fate::Open,
                fate: Fate::Refused { reason: *reason, message: message.clone() },
            }),
            _ => batch,
        }
    }

    /// Returns the event of new exceptions; the endpoint is sent it where its merchant wants that.
    async fn exception(&self, payment: &Payment, exception: &ExceptionEvent) -> Result<Write, SessionError> {
        let merchant = self.context.sound(self.context.env.store.merchant(payment.merchant).await);
        let merchant = merchant.map_err(|error| read_failed(&self.context, &error))?.flatten();
        let is_sent = merchant.is_some_and(|merchant| merchant.webhook_events.has(EventType::Exception));
        let at = exception.event.at;
        Ok(Write::Event(EventRecord {
            id: exception.event.id,
            seq: 0,
            merchant: payment.merchant,
            kind: EventType::Exception,
            payment: payment.id,
            delivery: is_sent.then(|| self.context.env.entropy.delivery_id(at)),
            at,
            body: webhook::exception(payment, exception),
            is_test: false,
        }))
    }

    fn act(&self, awake: &mut Awake, effects: &[Effect]) {
        let payment = Arc::clone(&awake.payment);
        for effect in effects {
            match effect {
                Effect::Notify(_) => {
                    transfer_log::moved(&payment);
                    self.context.announced(payment.merchant);
                }
                Effect::Broadcast(tx_id) => {
                    tracing::info!(payment.id = %payment.id, %tx_id, "payment {} claims {tx_id}", payment.id);
                    awake.settlement = self.settlement(&payment, false);
                }
            }
        }
        if payment.claim.is_none() {
            awake.settlement = None;
        }
        self.tell(&payment);
    }

    fn settlement(&self, payment: &Payment, may_be_out: bool) -> Option<Task> {
        let claim = payment.claim.clone()?;
        let (context, sessions, id) = (Arc::clone(&self.context), self.sessions.clone(), payment.id);
        Some(Task::persistent(move |begun| {
            // A crash may have come after the broadcast.
            let may_be_out = may_be_out || begun > 0;
            settlement::settle(Arc::clone(&context), sessions.clone(), id, Arc::clone(&claim), may_be_out)
        }))
    }

    /// Tells the sessions that this one changed; those who watch it get the snapshot.
    fn tell(&self, payment: &Arc<Payment>) {
        let watched = self.context.subscriptions.load(std::sync::atomic::Ordering::Relaxed) > 0;
        let stay = registry::Stay::of(payment);
        let snapshot = watched.then(|| Arc::clone(payment));
        let _ = self.sessions.cast(registry::Msg::Changed { id: payment.id, snapshot, stay });
    }

    async fn reload(&self, id: PaymentId) -> Result<Arc<Payment>, SessionError> {
        match self.context.env.store.payment(id).await {
            Ok(Some(payment)) => Ok(Arc::new(payment)),
            Ok(None) => Err(SessionError::NotFound(id)),
            Err(error) => Err(read_failed(&self.context, &error)),
        }
    }
}

/// Logs what became of a request to cancel where no new state tells it.
fn note_cancellation(before: &Payment, after: &Payment) {
    let id = after.id;
    if let Some(request) = after.cancellation.filter(|_| before.cancellation.is_none()) {
        let (by, cutoff) = (request.by.word(), request.cutoff);
        tracing::info!(payment.id = %id, by, %cutoff, "cancellation of payment {id} requested, decided by the first block after {cutoff}");
    }
    if before.standing_cancellation().is_some() && after.standing_cancellation().is_none() {
        tracing::info!(payment.id = %id, "cancellation of payment {id} dropped: a transfer arrived before the cutoff");
    }
}

/// Notes a failed read. A disk that cannot be read stops the engine; a single damaged record stops only who needs it.
pub(crate) fn read_failed(context: &Context, error: &ReadError) -> SessionError {
    context.read_failed(error);
    match error {
        ReadError::Damaged { table, key, .. } => SessionError::Damaged { table, key: key.clone() },
        ReadError::Failed(_) => SessionError::Unknown,
    }
}
