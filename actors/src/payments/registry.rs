//! The registry of active payments: activates, passivates and reactivates their actors, and expires what is due.
//!
//! A payment is active (it has an actor) or passive (it is a row in the store). Callers do not see the difference: an
//! order to a passive payment activates it from its snapshot, in the same way as creation and recovery do.
//!
//! The registry reads inside its mailbox: the snapshot of a passive payment, by its key, and for the sweep the next due
//! payments, a few at a time. The actor that is then spawned must start from the newest snapshot, a watcher must miss no
//! change after its first snapshot, and the orders of a payment must stay in order. With a read beside the mailbox all
//! three would need a state of their own for payments that are being read. Commits are left to the actors of the payments.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use engine::{
    ids::PaymentId,
    mutant,
    payment::{Command, Payment, Rejection},
    time::Timestamp,
};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::mpsc;
use tracing::Span;

use crate::{
    chain::ledger::Ledger,
    context::Context,
    payments::{
        messages::{Order, PaymentMsg, RegistryMsg, SessionError, Stay, Ticket, Watch, read_failed},
        payment::PaymentActor,
        rows::with_rows,
        waiting,
        watchers::Watchers,
    },
    webhooks::notifier::Notifier,
};

/// Expiries under way at once: each activates an actor, and a million due at once must not be a million actors.
const MAX_EXPIRING: usize = 128;
/// Snapshots a slow watcher may fall behind before it is let go.
const WATCH_BUFFER: usize = 16;
/// A session may crash this often within [`CRASH_WINDOW`] before it stays passive until the next order to it.
const MAX_CRASHES: u32 = 5;
const CRASH_WINDOW: Duration = Duration::from_secs(60);

pub(crate) struct Registry {
    context: Arc<Context>,
    ledger: Arc<Ledger>,
    notifier: Arc<Notifier>,
    /// Streams of snapshots.
    subscriptions: Arc<AtomicUsize>,
}

impl Registry {
    pub(crate) fn new(context: Arc<Context>, ledger: Arc<Ledger>, notifier: Arc<Notifier>) -> Self {
        Self { context, ledger, notifier, subscriptions: Arc::default() }
    }
}

pub(crate) struct State {
    active: BTreeMap<PaymentId, Session>,
    by_pid: BTreeMap<u64, PaymentId>,
    /// Active sessions by their last order.
    idle_order: BTreeMap<u64, PaymentId>,
    clock: u64,
    watchers: Watchers<Arc<Payment>>,
    crashes: BTreeMap<PaymentId, (Timestamp, u32)>,
    expiry: Expiry,
}

struct Session {
    actor: ActorRef<PaymentMsg>,
    last_order_at: u64,
    stay: Stay,
    /// Orders that came after the session was told to stop; they reactivate it.
    passivating: Option<VecDeque<PaymentMsg>>,
}

/// The sweep over due sessions.
#[derive(Default)]
struct Expiry {
    /// What the running sweep expires up to.
    sweeping_to: Option<Timestamp>,
    /// How far the ledger has come meanwhile.
    advanced_to: Timestamp,
    after: Option<(Timestamp, PaymentId)>,
    under_way: usize,
}

impl Actor for Registry {
    type Msg = RegistryMsg;
    type State = State;
    type Arguments = ();

    async fn pre_start(&self, _myself: ActorRef<RegistryMsg>, (): ()) -> Result<State, ActorProcessingErr> {
        Ok(State {
            active: BTreeMap::new(),
            by_pid: BTreeMap::new(),
            idle_order: BTreeMap::new(),
            clock: 0,
            watchers: Watchers::counted_in(Arc::clone(&self.subscriptions)),
            crashes: BTreeMap::new(),
            expiry: Expiry::default(),
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<RegistryMsg>,
        message: RegistryMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            RegistryMsg::Adopt(payment) => {
                let id = payment.id;
                // A full registry would passivate another for it: it stays passive until the next order to it.
                if !state.active.contains_key(&id) && state.idle_order.len() < self.context.settings.max_awake {
                    self.activate(&myself, state, payment).await?;
                }
            }
            RegistryMsg::Order(id, order) => self.order(&myself, state, id, order).await?,
            RegistryMsg::Watch(id, reply) => {
                let _ = reply.send(self.watch(state, id).await);
            }
            RegistryMsg::Changed { id, snapshot, stay } => {
                if let Some(payment) = snapshot {
                    state.watchers.publish(payment.id, &payment, payment.state.is_terminal());
                }
                match stay {
                    Stay::Finished => state.passivate(id),
                    stay => state.set_stay(id, stay),
                }
            }
            RegistryMsg::Advanced(_) if mutant!("expiry-not-swept") => {}
            RegistryMsg::Advanced(time) => {
                state.expiry.advanced_to = state.expiry.advanced_to.max(time);
                self.sweep(&myself, state).await?;
            }
            RegistryMsg::Expired => {
                state.expiry.under_way -= 1;
                // A sweep that has seen all waits for the ledger to advance: who cannot expire yet is still due.
                if state.expiry.sweeping_to.is_some() && state.expiry.under_way <= MAX_EXPIRING / 2 {
                    self.sweep(&myself, state).await?;
                }
            }
            RegistryMsg::Recover(reply) => {
                let _ = reply.send(self.recover(&myself, state).await);
            }
            RegistryMsg::CountActive(reply) => {
                let _ = reply.send(state.active.len());
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<RegistryMsg>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let (cell, crash) = match event {
            SupervisionEvent::ActorTerminated(cell, ..) => (cell, None),
            SupervisionEvent::ActorFailed(cell, error) => (cell, Some(error)),
            _ => return Ok(()),
        };
        let Some(id) = state.by_pid.remove(&cell.get_id().pid()) else { return Ok(()) };
        let Some(session) = state.forget(id) else { return Ok(()) };
        self.context.metrics.active.dec();
        let waiting = session.passivating.unwrap_or_default();
        let is_reactivated = match crash {
            None => !waiting.is_empty(),
            Some(error) => {
                let calm = state.crashed(id, self.context.now());
                self.context.metrics.crashed("session");
                tracing::error!(payment.id = %id, %error, "session of payment {id} crashed");
                calm || !waiting.is_empty()
            }
        };
        if is_reactivated && self.ensure_active(&myself, state, id).await?.is_ok() {
            for message in waiting {
                state.forward(id, message);
            }
        }
        Ok(())
    }
}

impl Registry {
    async fn order(
        &self,
        myself: &ActorRef<RegistryMsg>,
        state: &mut State,
        id: PaymentId,
        order: Box<Order>,
    ) -> Result<(), ActorProcessingErr> {
        if !state.active.contains_key(&id) {
            let activated = match self.passive(id).await {
                Ok(payment) => match self.refusal(&payment, &order.command).await {
                    Ok(Some(rejection)) => Err(SessionError::Rejected { rejection, payment }),
                    Ok(None) => Ok(self.activate(myself, state, payment).await?),
                    Err(error) => Err(error),
                },
                Err(error) => Err(error),
            };
            if let Err(error) = activated {
                if let Some(reply) = order.reply {
                    let _ = reply.send(Err(error));
                }
                return Ok(());
            }
        }
        state.forward(id, PaymentMsg::Order(order));
        Ok(())
    }

    /// Returns why a finished session would refuse: it is not activated for that. What an agent's payment completed is seen
    /// once more in a block that may still change, and knows it already.
    async fn refusal(&self, payment: &Arc<Payment>, command: &Command) -> Result<Option<Rejection>, SessionError> {
        if Stay::of(payment) != Stay::Finished {
            return Ok(None);
        }
        let known = with_rows(&self.context, payment, command).await?;
        Ok(known.apply(command, self.context.now()).err())
    }

    /// Reads a session that has no actor.
    async fn passive(&self, id: PaymentId) -> Result<Arc<Payment>, SessionError> {
        match self.context.env.store.payment(id).await {
            Ok(Some(payment)) => Ok(Arc::new(payment)),
            Ok(None) => Err(SessionError::NotFound(id)),
            Err(error) => Err(read_failed(&self.context, &error)),
        }
    }

    /// Makes sure the session has an actor, from its snapshot if need be.
    async fn ensure_active(
        &self,
        myself: &ActorRef<RegistryMsg>,
        state: &mut State,
        id: PaymentId,
    ) -> Result<Result<(), SessionError>, ActorProcessingErr> {
        if state.active.contains_key(&id) {
            return Ok(Ok(()));
        }
        match self.passive(id).await {
            Ok(payment) => self.activate(myself, state, payment).await.map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }

    async fn activate(
        &self,
        myself: &ActorRef<RegistryMsg>,
        state: &mut State,
        payment: Arc<Payment>,
    ) -> Result<(), ActorProcessingErr> {
        let id = payment.id;
        let stay = Stay::of(&payment);
        let handler = PaymentActor {
            context: Arc::clone(&self.context),
            ledger: Arc::clone(&self.ledger),
            notifier: Arc::clone(&self.notifier),
            registry: myself.clone(),
            subscriptions: Arc::clone(&self.subscriptions),
        };
        let (actor, _) = Actor::spawn_linked(None, handler, payment, myself.get_cell()).await?;
        state.by_pid.insert(actor.get_id().pid(), id);
        state.clock += 1;
        state.active.insert(id, Session { actor, last_order_at: state.clock, stay, passivating: None });
        self.context.metrics.active.inc();
        match stay {
            Stay::MayPassivate => drop(state.idle_order.insert(state.clock, id)),
            Stay::Active => {}
            // A late transfer is credited like any other; then the session is passivated again.
            Stay::Finished => myself.cast(RegistryMsg::Changed { id, snapshot: None, stay })?,
        }
        while state.idle_order.len() > self.context.settings.max_awake {
            let Some((_, idlest)) = state.idle_order.first_key_value() else { break };
            state.passivate(*idlest);
        }
        Ok(())
    }

    async fn watch(&self, state: &mut State, id: PaymentId) -> Result<Watch, SessionError> {
        let payment = self.passive(id).await?;
        let (sender, snapshots) = mpsc::channel(WATCH_BUFFER);
        let is_finished = payment.state.is_terminal();
        sender.try_send(payment).expect("an empty channel takes one");
        if !is_finished {
            state.watchers.add(id, sender);
        }
        Ok(Watch { snapshots })
    }

    /// Activates due sessions, a few at a time, until none is left.
    async fn sweep(&self, myself: &ActorRef<RegistryMsg>, state: &mut State) -> Result<(), ActorProcessingErr> {
        let to = match state.expiry.sweeping_to {
            Some(to) => to,
            None => state.expiry.advanced_to,
        };
        state.expiry.sweeping_to = Some(to);
        while state.expiry.under_way < MAX_EXPIRING {
            let room = MAX_EXPIRING - state.expiry.under_way;
            let due = match self.context.env.store.due(to, state.expiry.after, room).await {
                Ok(due) => due,
                Err(error) => {
                    read_failed(&self.context, &error);
                    return Ok(());
                }
            };
            if due.is_empty() {
                // The next advance sweeps from the start again: what was refused today may be due tomorrow.
                let again = state.expiry.advanced_to > to;
                state.expiry.sweeping_to = None;
                state.expiry.after = None;
                if again {
                    let _ = myself.cast(RegistryMsg::Advanced(state.expiry.advanced_to));
                }
                return Ok(());
            }
            state.expiry.after = due.last().copied();
            let awaited = match waiting::awaited(&self.context, due.iter().map(|(_, id)| *id)).await {
                Ok(awaited) => awaited,
                Err(error) => {
                    read_failed(&self.context, &error);
                    return Ok(());
                }
            };
            // What its money came before takes that first; a later sweep sees what became of it.
            for (_, id) in due.into_iter().filter(|(_, id)| !awaited.contains(id)) {
                state.expiry.under_way += 1;
                let ticket = Ticket(myself.clone());
                let command = Command::Expire { irreversible_time: to };
                let order = Order { command, told: None, reply: None, ticket: Some(ticket), span: Span::none() };
                self.order(myself, state, id, Box::new(order)).await?;
            }
        }
        Ok(())
    }

    async fn recover(&self, myself: &ActorRef<RegistryMsg>, state: &mut State) -> Result<usize, SessionError> {
        let in_flight = self.context.env.store.in_flight().await.map_err(|error| read_failed(&self.context, &error))?;
        for id in in_flight.iter().filter(|_| !mutant!("claims-not-recovered")) {
            let activated = self.ensure_active(myself, state, *id).await;
            match activated.unwrap_or(Err(SessionError::Unknown)) {
                // The others go on without one that cannot be read.
                Ok(()) | Err(SessionError::Damaged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(in_flight.len())
    }
}

impl State {
    /// Sends a message to an active session, or keeps it while the session is being passivated.
    fn forward(&mut self, id: PaymentId, message: PaymentMsg) {
        let Some(session) = self.active.get_mut(&id) else { return };
        if let Some(waiting) = &mut session.passivating {
            waiting.push_back(message);
            return;
        }
        self.idle_order.remove(&session.last_order_at);
        self.clock += 1;
        session.last_order_at = self.clock;
        if session.stay == Stay::MayPassivate {
            self.idle_order.insert(self.clock, id);
        }
        // An actor that died a moment ago drops the message; its sender sees that and may ask again.
        let _ = session.actor.cast(message);
    }

    fn set_stay(&mut self, id: PaymentId, stay: Stay) {
        let Some(session) = self.active.get_mut(&id) else { return };
        session.stay = stay;
        match stay {
            Stay::MayPassivate if session.passivating.is_none() => {
                self.idle_order.insert(session.last_order_at, id);
            }
            _ => {
                self.idle_order.remove(&session.last_order_at);
            }
        }
    }

    /// Tells a session to stop once it has done everything it was told before.
    fn passivate(&mut self, id: PaymentId) {
        let Some(session) = self.active.get_mut(&id) else { return };
        if session.passivating.is_none() {
            session.passivating = Some(VecDeque::new());
            self.idle_order.remove(&session.last_order_at);
            let _ = session.actor.cast(PaymentMsg::Passivate);
        }
    }

    fn forget(&mut self, id: PaymentId) -> Option<Session> {
        let session = self.active.remove(&id)?;
        self.idle_order.remove(&session.last_order_at);
        Some(session)
    }

    /// Counts a crash; says whether the session may be brought back at once.
    fn crashed(&mut self, id: PaymentId, now: Timestamp) -> bool {
        self.crashes.retain(|_, (since, _)| now.since(*since) < CRASH_WINDOW);
        let (_, count) = self.crashes.entry(id).or_insert((now, 0));
        *count += 1;
        *count <= MAX_CRASHES
    }
}
