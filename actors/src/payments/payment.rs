//! The actor of one active session: the only writer of its payment in this engine, and the owner of its expiry timer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use engine::{
    audit::Entry,
    ids::{EndpointId, PaymentId},
    merchant::Merchant,
    mutant,
    payment::{self, Command, Credit, Effect, Event, Payment, Rejection, Transition},
    webhook::{self, EventType},
    x402::{ClaimOutcome, ClaimRecord, Purpose},
};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use storage::{Batch, CommitError, EventRecord, Handling, Write};
use tracing::Instrument as _;

use crate::{
    chain::ledger::Ledger,
    context::Context,
    metrics,
    payments::{
        messages::{Order, PaymentMsg, RegistryMsg, SessionError, Stay, read_failed},
        rows::{with_late_rows, with_rows},
        settlement, transfer_log, waiting,
    },
    timer::{Task, Timer},
    webhooks::{announcements::deliveries, notifier::Notifier},
};

/// Maximum number of retries of a command after a concurrent write.
const MAX_CONFLICTS: usize = 5;
/// Delay before a payment is read again after a commit with unknown outcome.
const REFRESH_AFTER: Duration = Duration::from_secs(1);

pub(crate) struct PaymentActor {
    pub(crate) context: Arc<Context>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) notifier: Arc<Notifier>,
    pub(crate) registry: ActorRef<RegistryMsg>,
    pub(crate) subscriptions: Arc<AtomicUsize>,
}

/// The initial state of an actor.
pub(crate) enum Start {
    /// A new payment.
    Snapshot(Arc<Payment>),
    /// A payment in the store, which the actor reads first.
    Stored(PaymentId),
}

impl Start {
    /// Returns how long the actor must stay active; a stored payment until it is read.
    pub(crate) fn stay(&self) -> Stay {
        match self {
            Self::Snapshot(payment) => Stay::of(payment),
            Self::Stored(_) => Stay::Active,
        }
    }
}

pub(crate) struct State {
    id: PaymentId,
    /// The error of commands until the payment is read.
    session: Result<Session, SessionError>,
}

struct Session {
    payment: Arc<Payment>,
    _timer: Option<Timer>,
    /// Reads the payment again after a commit with unknown outcome.
    refresh: Option<Timer>,
    /// Follows the claimed transaction; stops with the claim or the actor.
    settlement: Option<Task>,
}

impl Actor for PaymentActor {
    type Msg = PaymentMsg;
    type State = State;
    type Arguments = Start;

    async fn pre_start(&self, myself: ActorRef<PaymentMsg>, start: Start) -> Result<State, ActorProcessingErr> {
        match start {
            Start::Snapshot(payment) => Ok(State { id: payment.id, session: Ok(self.session(&myself, payment)) }),
            Start::Stored(id) => {
                // No command can precede it: the registry knows this actor only once it has started.
                myself.cast(PaymentMsg::Load)?;
                Ok(State { id, session: Err(SessionError::Unknown) })
            }
        }
    }

    async fn handle(
        &self,
        myself: ActorRef<PaymentMsg>,
        message: PaymentMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match (message, &mut state.session) {
            (PaymentMsg::Load, session) => {
                *session = self.load(state.id).await.map(|payment| self.session(&myself, payment));
                match session {
                    Ok(session) => self.publish(&session.payment),
                    Err(_) => {
                        let (id, stay) = (state.id, Stay::Finished);
                        let _ = self.registry.cast(RegistryMsg::Changed { id, snapshot: None, stay });
                    }
                }
            }
            (PaymentMsg::Refresh, Ok(session)) => {
                if let Err(error) = self.refresh(&myself, session).await {
                    tracing::debug!(payment.id = %state.id, %error, "cannot read payment {} again: {error}", state.id);
                    session.refresh = Some(Timer::send(&myself, REFRESH_AFTER, PaymentMsg::Refresh));
                }
            }
            (PaymentMsg::Refresh, Err(_)) => {}
            (PaymentMsg::Order(order), session) => {
                let Order { command, audit_entry, reply, span } = *order;
                let response = match session {
                    Ok(session) => self.carry_out(&myself, &command, audit_entry, session).instrument(span).await,
                    Err(error) => Err(error.clone()),
                };
                if let Some(reply) = reply {
                    // The caller may have disconnected; the change remains.
                    let _ = reply.send(response);
                }
            }
            (PaymentMsg::TimeUp, Ok(session)) => self.time_up(&myself, session).await,
            (PaymentMsg::TimeUp, Err(_)) => {}
            // A claim that came before: its transaction is followed here.
            (PaymentMsg::Passivate, Ok(session))
                if Stay::of(&session.payment) == Stay::Active && !mutant!("claimed-session-is-passivated") =>
            {
                let _ = self.registry.cast(RegistryMsg::StaysActive(session.payment.id));
            }
            (PaymentMsg::Passivate, _) => myself.stop(None),
        }
        Ok(())
    }
}

impl PaymentActor {
    /// Starts the timer of the expiry, and follows a claim: the previous actor may have broadcast it.
    fn session(&self, myself: &ActorRef<PaymentMsg>, payment: Arc<Payment>) -> Session {
        let left = payment.due_at().since(self.context.now());
        let timer = (payment.state == payment::State::Pending).then(|| Timer::send(myself, left, PaymentMsg::TimeUp));
        let settlement = self.settlement(&payment, true);
        Session { payment, _timer: timer, refresh: None, settlement }
    }

    async fn time_up(&self, myself: &ActorRef<PaymentMsg>, session: &mut Session) {
        // Irreversible blocks decide the expiry; until then the record has `expired` set.
        self.publish(&session.payment);
        let mut irreversible_time = self.ledger.view.irreversible_time();
        let is_by_our_clock = mutant!("expiry-by-wall-clock");
        if is_by_our_clock {
            irreversible_time = self.context.now() + Duration::from_secs(1);
        }
        let is_over = irreversible_time > session.payment.due_at();
        // A transfer that waits for the payment is credited first; the sweep expires the payment if it is not enough.
        let id = session.payment.id;
        if is_over && waiting::awaited(&self.context, [id].into_iter()).await.is_ok_and(|them| them.is_empty()) {
            let _ = self.carry_out(myself, &Command::Expire { irreversible_time }, None, session).await;
        }
    }

    /// Applies, commits, then acts. After a concurrent change of the payment, a command is rejected or decided again by
    /// the stored payment.
    async fn carry_out(
        &self,
        myself: &ActorRef<PaymentMsg>,
        command: &Command,
        audit_entry: Option<Box<Entry>>,
        session: &mut Session,
    ) -> Result<Arc<Payment>, SessionError> {
        for _ in 0..MAX_CONFLICTS {
            let Some(decision) = self.decide(command, session).await? else {
                self.refresh(myself, session).await?;
                continue;
            };
            let Transition { payment, event, exception, refund, effects, rows } = match decision {
                Ok(transition) => transition,
                Err(_) if !mutant!("stale-rejection") && self.refresh(myself, session).await? => continue,
                Err(rejection) => {
                    return Err(SessionError::Rejected { rejection, payment: Arc::clone(&session.payment) });
                }
            };
            let payment = Arc::new(payment);
            let decided = transfer_log::decided(&rows);
            let is_announced = event.is_some() || exception.is_some() || refund.is_some();
            let merchant = if is_announced { self.merchant_of(&payment).await? } else { None };
            let announce = |kind, event: &Event, body| self.announce(&payment, merchant.as_deref(), kind, event, body);
            let event = event
                .map(|event| announce(EventType::StatusChanged, &event, webhook::status_changed(&payment, &event)));
            let mut batch = self.batch(&payment, rows, event, command, session.payment.version);
            if let Some(exception) = exception {
                let body = webhook::exception(&payment, &exception);
                batch = batch.and(announce(EventType::Exception, &exception.event, body));
            }
            if let Some(refund) = refund {
                let body = webhook::refund_completed(&payment, &refund);
                batch = batch.and(announce(EventType::RefundCompleted, &refund.event, body));
            }
            if let Some(audit_entry) = &audit_entry {
                batch = batch.and(Write::Audit(audit_entry.clone()));
            }
            self.context.env.probe.reach("payment: applied, not committed");
            let acknowledges_early = mutant!("cancel-acknowledged-before-commit")
                && matches!(command, Command::Cancel { .. })
                || mutant!("resolution-acknowledged-before-commit") && matches!(command, Command::Resolve(_));
            if acknowledges_early {
                let store = Arc::clone(&self.context.env.store);
                tokio::spawn(async move { store.commit(batch).await });
                session.payment = Arc::clone(&payment);
                return Ok(payment);
            }
            match self.context.env.store.commit(batch).await {
                Ok(()) => {
                    self.context.env.probe.reach("payment: committed, effects not run");
                    metrics::stepped(&self.context.metrics, &session.payment, &payment);
                    note_cancellation(&session.payment, &payment);
                    decided.iter().for_each(|credit| transfer_log::credited(credit, &payment));
                    session.payment = Arc::clone(&payment);
                    self.act(session, &effects);
                    return Ok(payment);
                }
                Err(CommitError::Conflict { .. }) => {
                    self.refresh(myself, session).await?;
                }
                Err(error) => {
                    if matches!(error, CommitError::Unknown(_)) {
                        session.refresh = Some(Timer::send(myself, REFRESH_AFTER, PaymentMsg::Refresh));
                    }
                    return Err(Self::refused(error));
                }
            }
        }
        Err(SessionError::Contended)
    }

    /// Decides a command with all transfers that it concerns, also those that the snapshot does not list; `None` if
    /// another engine has changed the payment since.
    async fn decide(
        &self,
        command: &Command,
        session: &Session,
    ) -> Result<Option<Result<Transition, Rejection>>, SessionError> {
        let now = self.context.now();
        let Some(known) = with_rows(&self.context, &session.payment, command).await? else { return Ok(None) };
        match known.apply(command, now) {
            Ok(step) if known.needs_unlisted_rows(&step.payment) && !mutant!("unlisted-not-reclassified") => {
                let late = with_late_rows(&self.context, &known).await?;
                Ok(late.map(|known| known.apply(command, now)))
            }
            decided => Ok(Some(decided)),
        }
    }

    /// Reads the payment again, and adopts it if another writer changed it; returns whether one did.
    async fn refresh(&self, myself: &ActorRef<PaymentMsg>, session: &mut Session) -> Result<bool, SessionError> {
        let stored = self.load(session.payment.id).await?;
        if stored.version == session.payment.version {
            return Ok(false);
        }
        *session = self.session(myself, stored);
        self.publish(&session.payment);
        Ok(true)
    }

    fn refused(error: CommitError) -> SessionError {
        match error {
            CommitError::Claimed(by) => SessionError::Claimed(by),
            CommitError::Assigned(to) => SessionError::Assigned(to),
            CommitError::Overloaded => SessionError::Overloaded,
            CommitError::Conflict { .. }
            | CommitError::Remembered(_)
            | CommitError::Deposed(_)
            | CommitError::OnHold(_)
            | CommitError::QuotaReached(_)
            | CommitError::KeysFull => SessionError::Contended,
            CommitError::Unavailable(_) => SessionError::Unavailable,
            CommitError::Unknown(_) => SessionError::Unknown,
        }
    }

    fn batch(
        &self,
        payment: &Arc<Payment>,
        rows: Vec<Credit>,
        event: Option<Write>,
        command: &Command,
        expected: u64,
    ) -> Batch {
        let mut batch = Batch::of(Write::Payment { payment: Arc::clone(payment), expected: Some(expected) });
        for row in rows {
            let (id, merchant, credit) = (payment.id, payment.merchant, Box::new(row));
            batch = batch.and(Write::Transfer { payment: id, merchant, credit });
        }
        batch.writes.extend(event);
        match command {
            Command::Claim(claim) => batch.and(Write::Claim(ClaimRecord {
                tx_id: claim.tx_id,
                pay_to: payment.pay_to,
                nonce: claim.nonce.clone(),
                identifier: claim.identifier.clone(),
                proof: claim.proof.clone(),
                purpose: Purpose::Session(payment.id),
                outcome: ClaimOutcome::Open,
                at: claim.claimed_at,
            })),
            Command::Assign(attachment) => batch.and(Write::Handle {
                account: attachment.transfer.to,
                place: attachment.transfer.position,
                handling: Handling::Assigned { payment: payment.id, by: attachment.by.clone(), at: payment.updated_at },
            }),
            Command::Refuse { tx_id, reason, message } => batch.and(Write::ClaimOutcome {
                tx_id: *tx_id,
                expected: ClaimOutcome::Open,
                outcome: ClaimOutcome::Refused { reason: *reason, message: message.clone() },
            }),
            _ => batch,
        }
    }

    /// Returns the merchant of a payment; none if its record is damaged.
    async fn merchant_of(&self, payment: &Payment) -> Result<Option<Arc<Merchant>>, SessionError> {
        let merchant = self.context.sound(self.context.env.store.merchant(payment.merchant).await);
        Ok(merchant.map_err(|error| read_failed(&self.context, &error))?.flatten())
    }

    /// Returns an event that is delivered to the endpoints that subscribe to it.
    fn announce(
        &self,
        payment: &Payment,
        merchant: Option<&Merchant>,
        kind: EventType,
        event: &Event,
        body: Vec<u8>,
    ) -> Write {
        let at = event.at;
        let deliveries = match merchant {
            Some(merchant) => deliveries(&self.context, merchant, kind, at),
            // Every default endpoint subscribes to changes of the status, also one whose merchant cannot be read.
            None if kind == EventType::StatusChanged => {
                vec![(EndpointId::default_of(payment.merchant), self.context.env.entropy.delivery_id(at))]
            }
            None => Vec::new(),
        };
        Write::Event(EventRecord {
            id: event.id,
            seq: 0,
            merchant: payment.merchant,
            kind,
            payment: payment.id,
            deliveries,
            at,
            body,
            is_test: false,
        })
    }

    fn act(&self, session: &mut Session, effects: &[Effect]) {
        let payment = Arc::clone(&session.payment);
        for effect in effects {
            match effect {
                Effect::Notify(_) => {
                    transfer_log::state_changed(&payment);
                    self.notifier.announced(payment.merchant);
                }
                Effect::Broadcast(tx_id) => {
                    tracing::info!(payment.id = %payment.id, %tx_id, "payment {} claims {tx_id}", payment.id);
                    session.settlement = self.settlement(&payment, false);
                }
            }
        }
        if payment.claim.is_none() {
            session.settlement = None;
        }
        self.publish(&payment);
    }

    /// Returns the task that follows the claim. An adopted claim was made by another engine, or before a crash, and may
    /// have been broadcast.
    fn settlement(&self, payment: &Payment, is_adopted: bool) -> Option<Task> {
        let claim = payment.claim.clone()?;
        let (context, ledger) = (Arc::clone(&self.context), Arc::clone(&self.ledger));
        let (registry, id) = (self.registry.clone(), payment.id);
        Some(Task::persistent(move |begun| {
            // A crash may have happened after the broadcast.
            let is_adopted = is_adopted || begun > 0;
            let (context, ledger) = (Arc::clone(&context), Arc::clone(&ledger));
            settlement::settle(context, ledger, registry.clone(), id, Arc::clone(&claim), is_adopted)
        }))
    }

    /// Reports a change to the registry; watchers receive the snapshot.
    fn publish(&self, payment: &Arc<Payment>) {
        let watched = self.subscriptions.load(Ordering::SeqCst) > 0;
        let stay = Stay::of(payment);
        let snapshot = watched.then(|| Arc::clone(payment));
        let _ = self.registry.cast(RegistryMsg::Changed { id: payment.id, snapshot, stay });
    }

    async fn load(&self, id: PaymentId) -> Result<Arc<Payment>, SessionError> {
        match self.context.env.store.payment(id).await {
            Ok(Some(payment)) => Ok(Arc::new(payment)),
            Ok(None) => Err(SessionError::NotFound(id)),
            Err(error) => Err(read_failed(&self.context, &error)),
        }
    }
}

/// Logs the outcome of a cancellation request that does not change the state.
fn note_cancellation(before: &Payment, after: &Payment) {
    let id = after.id;
    if let Some(request) = after.cancellation.filter(|_| before.cancellation.is_none()) {
        let (by, cutoff) = (request.by.as_str(), request.cutoff);
        tracing::info!(payment.id = %id, by, %cutoff, "cancellation of payment {id} requested, decided by the first block after {cutoff}");
    }
    if before.active_cancellation().is_some() && after.active_cancellation().is_none() {
        tracing::info!(payment.id = %id, "cancellation of payment {id} dropped: a transfer arrived before the cutoff");
    }
}
