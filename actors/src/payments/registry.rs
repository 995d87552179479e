//! The registry of active payments: activates, passivates and reactivates their actors, and forwards commands to them.
//!
//! A payment is active (it has an actor) or passive (it is a row in the store). Callers do not see the difference: a
//! command to a passive payment activates it from its snapshot, in the same way as creation and recovery do.
//!
//! The registry never reads the store, because every command passes through its mailbox. An actor that starts without a
//! snapshot reads it as its first message; commands wait in its own mailbox meanwhile.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use engine::{ids::PaymentId, mutant, payment::Payment, time::Timestamp};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::watch;

use crate::{
    chain::ledger::Ledger,
    context::Context,
    payments::{
        changes, expiry,
        messages::{PaymentMsg, RegistryMsg, Stay},
        payment::{PaymentActor, Start},
        watchers::Watchers,
    },
    timer::Task,
    webhooks::notifier::Notifier,
};

/// Time after which a crashed session is activated again, unless a command to it comes before.
const AFTER_CRASH: Duration = Duration::from_secs(1);

pub(crate) struct Registry {
    context: Arc<Context>,
    ledger: Arc<Ledger>,
    notifier: Arc<Notifier>,
    /// The block time up to which payments may expire.
    irreversible: watch::Receiver<Timestamp>,
    /// Streams of snapshots.
    subscriptions: Arc<AtomicUsize>,
}

impl Registry {
    pub(crate) fn new(
        context: Arc<Context>,
        ledger: Arc<Ledger>,
        notifier: Arc<Notifier>,
        irreversible: watch::Receiver<Timestamp>,
    ) -> Self {
        Self { context, ledger, notifier, irreversible, subscriptions: Arc::default() }
    }
}

pub(crate) struct State {
    active: BTreeMap<PaymentId, Session>,
    by_pid: BTreeMap<u64, PaymentId>,
    /// Active sessions by their last command.
    idle_order: BTreeMap<u64, PaymentId>,
    clock: u64,
    watchers: Watchers<Arc<Payment>>,
    _expiry: Task,
    /// Finds changes of other engines; `None` for an exclusive engine.
    _changes: Option<Task>,
}

struct Session {
    actor: ActorRef<PaymentMsg>,
    last_order_at: u64,
    stay: Stay,
    /// Commands that arrived after the session was asked to stop; they reactivate it.
    passivating: Option<VecDeque<PaymentMsg>>,
}

impl Actor for Registry {
    type Msg = RegistryMsg;
    type State = State;
    type Arguments = ();

    async fn pre_start(&self, myself: ActorRef<RegistryMsg>, (): ()) -> Result<State, ActorProcessingErr> {
        let (context, irreversible) = (Arc::clone(&self.context), self.irreversible.clone());
        let changes = self.context.env.store.is_shared().then(|| {
            let (context, registry) = (Arc::clone(&self.context), myself.clone());
            Task::persistent(move |_| changes::find(Arc::clone(&context), registry.clone()))
        });
        Ok(State {
            _changes: changes,
            active: BTreeMap::new(),
            by_pid: BTreeMap::new(),
            idle_order: BTreeMap::new(),
            clock: 0,
            watchers: Watchers::counted_in(Arc::clone(&self.subscriptions)),
            _expiry: Task::persistent(move |_| {
                expiry::sweep(Arc::clone(&context), myself.clone(), irreversible.clone())
            }),
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
                // A full registry would passivate another one: it stays passive until its next command.
                if !state.active.contains_key(&id) && state.idle_order.len() < self.context.settings.max_active {
                    self.activate(&myself, state, id, Start::Snapshot(payment)).await?;
                }
            }
            RegistryMsg::Activate(id) => self.ensure_active(&myself, state, id).await?,
            RegistryMsg::Refresh(id) => {
                if state.active.contains_key(&id) {
                    state.forward(id, PaymentMsg::Refresh);
                } else {
                    self.ensure_active(&myself, state, id).await?;
                }
            }
            RegistryMsg::Followed(reply) => {
                let claimed = state.active.iter().filter(|(_, session)| session.stay == Stay::Active);
                let ids: BTreeSet<_> = claimed.map(|(id, _)| *id).chain(state.watchers.watched()).collect();
                let _ = reply.send(ids.into_iter().collect());
            }
            RegistryMsg::Order(id, order) => {
                self.ensure_active(&myself, state, id).await?;
                state.forward(id, PaymentMsg::Order(order));
            }
            RegistryMsg::Watch { id, snapshots, added } => {
                state.watchers.add(id, snapshots);
                let _ = added.send(());
            }
            RegistryMsg::Changed { id, snapshot, stay } => {
                if let Some(payment) = snapshot {
                    state.watchers.publish(payment.id, &payment, payment.state.is_terminal());
                }
                match stay {
                    Stay::Finished => state.passivate(id),
                    stay => {
                        state.set_stay(id, stay);
                        self.passivate_idlest(state);
                    }
                }
            }
            RegistryMsg::StaysActive(id) => state.keep_active(id),
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
        if let Some(error) = crash {
            self.context.metrics.crashed("session");
            tracing::error!(payment.id = %id, %error, "session of payment {id} crashed");
            // A claim must be followed.
            drop(myself.send_after(AFTER_CRASH, move || RegistryMsg::Activate(id)));
        }
        let mut waiting = session.passivating.unwrap_or_default();
        if mutant!("orders-to-passivated-forgotten") {
            waiting.clear();
        }
        if !waiting.is_empty() {
            self.ensure_active(&myself, state, id).await?;
            for message in waiting {
                state.forward(id, message);
            }
        }
        Ok(())
    }
}

impl Registry {
    /// Ensures that the session has an actor.
    async fn ensure_active(
        &self,
        myself: &ActorRef<RegistryMsg>,
        state: &mut State,
        id: PaymentId,
    ) -> Result<(), ActorProcessingErr> {
        if state.active.contains_key(&id) {
            return Ok(());
        }
        self.activate(myself, state, id, Start::Stored(id)).await
    }

    async fn activate(
        &self,
        myself: &ActorRef<RegistryMsg>,
        state: &mut State,
        id: PaymentId,
        start: Start,
    ) -> Result<(), ActorProcessingErr> {
        let stay = start.stay();
        let handler = PaymentActor {
            context: Arc::clone(&self.context),
            ledger: Arc::clone(&self.ledger),
            notifier: Arc::clone(&self.notifier),
            registry: myself.clone(),
            subscriptions: Arc::clone(&self.subscriptions),
        };
        let (actor, _) = Actor::spawn_linked(None, handler, start, myself.get_cell()).await?;
        state.by_pid.insert(actor.get_id().pid(), id);
        state.clock += 1;
        state.active.insert(id, Session { actor, last_order_at: state.clock, stay, passivating: None });
        self.context.metrics.active.inc();
        state.set_stay(id, stay);
        Ok(())
    }

    /// Passivates the sessions with the oldest last command, until no more are active than the settings allow.
    fn passivate_idlest(&self, state: &mut State) {
        while state.idle_order.len() > self.context.settings.max_active && !mutant!("idle-sessions-stay") {
            let Some((_, idlest)) = state.idle_order.first_key_value() else { break };
            state.passivate(*idlest);
        }
    }
}

impl State {
    /// Sends a message to an active session, or queues it while the session is being passivated.
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
        // An actor that has just crashed drops the message; its sender detects that and may retry.
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

    /// Makes a session stop after all earlier messages.
    fn passivate(&mut self, id: PaymentId) {
        let Some(session) = self.active.get_mut(&id) else { return };
        if session.passivating.is_none() {
            session.passivating = Some(VecDeque::new());
            self.idle_order.remove(&session.last_order_at);
            let _ = session.actor.cast(PaymentMsg::Passivate);
        }
    }

    /// Continues with a session that was asked to stop.
    fn keep_active(&mut self, id: PaymentId) {
        self.set_stay(id, Stay::Active);
        let waiting = self.active.get_mut(&id).and_then(|session| session.passivating.take());
        waiting.into_iter().flatten().for_each(|message| self.forward(id, message));
    }

    fn forget(&mut self, id: PaymentId) -> Option<Session> {
        let session = self.active.remove(&id)?;
        self.idle_order.remove(&session.last_order_at);
        Some(session)
    }
}
