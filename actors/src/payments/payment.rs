//! The actor of one active session: it alone changes its payment, and it owns the timer of its expiry.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use engine::{
    audit::Entry,
    ids::PaymentId,
    mutant,
    payment::{self, Command, Credit, Effect, Event, ExceptionEvent, Payment, Transition},
    webhook::{self, EventType},
};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use storage::{Batch, Claimed, CommitError, EventRecord, Fate, Handling, Purpose, Write};
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
    webhooks::notifier::Notifier,
};

/// How often a command is decided anew when another writer was faster.
const MAX_CONFLICTS: usize = 5;

pub(crate) struct PaymentActor {
    pub(crate) context: Arc<Context>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) notifier: Arc<Notifier>,
    pub(crate) registry: ActorRef<RegistryMsg>,
    pub(crate) subscriptions: Arc<AtomicUsize>,
}

pub(crate) struct State {
    payment: Arc<Payment>,
    _timer: Option<Timer>,
    /// Brings the claimed transaction onto the chain; ends with the claim, or with us.
    settlement: Option<Task>,
}

impl Actor for PaymentActor {
    type Msg = PaymentMsg;
    type State = State;
    type Arguments = Arc<Payment>;

    async fn pre_start(
        &self,
        myself: ActorRef<PaymentMsg>,
        payment: Arc<Payment>,
    ) -> Result<State, ActorProcessingErr> {
        let left = payment.due_at().since(self.context.now());
        let timer = (payment.state == payment::State::Pending).then(|| Timer::send(&myself, left, PaymentMsg::TimeUp));
        // Born from a snapshot with a claim: whoever died before us may have broadcast it.
        let settlement = self.settlement(&payment, true);
        Ok(State { payment, _timer: timer, settlement })
    }

    async fn handle(
        &self,
        myself: ActorRef<PaymentMsg>,
        message: PaymentMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            PaymentMsg::Order(order) => {
                let Order { command, told, reply, ticket, span } = *order;
                let answer = self.carry_out(&command, told, state).instrument(span).await;
                if let Some(reply) = reply {
                    // Who asked may have left; what was done stays done.
                    let _ = reply.send(answer);
                }
                drop(ticket);
            }
            PaymentMsg::TimeUp => {
                // Expiry needs the ledger's word; until it comes the record says `expired`.
                self.tell(&state.payment);
                let irreversible_time = self.ledger.view.irreversible_time();
                if mutant!("expiry-by-our-clock") {
                    let irreversible_time = self.context.now() + std::time::Duration::from_secs(1);
                    let _ = self.carry_out(&Command::Expire { irreversible_time }, None, state).await;
                }
                let is_over = irreversible_time > state.payment.due_at();
                // Money that came before the session is put to it first; the sweep expires it then, if it is not enough.
                let id = state.payment.id;
                if is_over && waiting::awaited(&self.context, [id].into_iter()).await.is_ok_and(|them| them.is_empty())
                {
                    let _ = self.carry_out(&Command::Expire { irreversible_time }, None, state).await;
                }
            }
            PaymentMsg::Passivate => myself.stop(None),
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
        state: &mut State,
    ) -> Result<Arc<Payment>, SessionError> {
        let id = state.payment.id;
        for _ in 0..MAX_CONFLICTS {
            let now = self.context.now();
            let known = with_rows(&self.context, &state.payment, command).await?;
            let refused = |rejection| SessionError::Rejected { rejection, payment: Arc::clone(&state.payment) };
            let mut step = known.apply(command, now).map_err(refused)?;
            if known.overlooks_unlisted(&step.payment) && !mutant!("unlisted-not-judged") {
                step = with_late_rows(&self.context, &known).await?.apply(command, now).map_err(refused)?;
            }
            let Transition { payment, event, exception, effects, rows } = step;
            let payment = Arc::new(payment);
            let decided = transfer_log::decided(&rows);
            let mut batch = self.batch(&payment, rows, event.as_ref(), command, state.payment.version);
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
                state.payment = Arc::clone(&payment);
                return Ok(payment);
            }
            match self.context.env.store.commit(batch).await {
                Ok(()) => {
                    self.context.env.probe.reach("payment: committed, effects not run");
                    metrics::stepped(&self.context.metrics, &state.payment, &payment);
                    note_cancellation(&state.payment, &payment);
                    decided.iter().for_each(|credit| transfer_log::credited(credit, &payment));
                    state.payment = Arc::clone(&payment);
                    self.act(state, &effects);
                    return Ok(payment);
                }
                // Another writer was faster: what it left is the truth.
                Err(CommitError::Conflict { .. }) => state.payment = self.reload(id).await?,
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

    fn act(&self, state: &mut State, effects: &[Effect]) {
        let payment = Arc::clone(&state.payment);
        for effect in effects {
            match effect {
                Effect::Notify(_) => {
                    transfer_log::moved(&payment);
                    self.notifier.announced(payment.merchant);
                }
                Effect::Broadcast(tx_id) => {
                    tracing::info!(payment.id = %payment.id, %tx_id, "payment {} claims {tx_id}", payment.id);
                    state.settlement = self.settlement(&payment, false);
                }
            }
        }
        if payment.claim.is_none() {
            state.settlement = None;
        }
        self.tell(&payment);
    }

    fn settlement(&self, payment: &Payment, may_be_out: bool) -> Option<Task> {
        let claim = payment.claim.clone()?;
        let (context, ledger) = (Arc::clone(&self.context), Arc::clone(&self.ledger));
        let (registry, id) = (self.registry.clone(), payment.id);
        Some(Task::persistent(move |begun| {
            // A crash may have come after the broadcast.
            let may_be_out = may_be_out || begun > 0;
            let (context, ledger) = (Arc::clone(&context), Arc::clone(&ledger));
            settlement::settle(context, ledger, registry.clone(), id, Arc::clone(&claim), may_be_out)
        }))
    }

    /// Tells the sessions that this one changed; those who watch it get the snapshot.
    fn tell(&self, payment: &Arc<Payment>) {
        let watched = self.subscriptions.load(Ordering::Relaxed) > 0;
        let stay = Stay::of(payment);
        let snapshot = watched.then(|| Arc::clone(payment));
        let _ = self.registry.cast(RegistryMsg::Changed { id: payment.id, snapshot, stay });
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
