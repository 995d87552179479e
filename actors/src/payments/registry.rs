//! All sessions: finds the actor of one, wakes and parks them, brings back those that died, and expires what is due.
//!
//! A session is awake (it has an actor) or parked (it is a row in the store). Nobody else knows the difference: an
//! order to a parked session wakes it from its snapshot, the same door that creation and recovery use.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use engine::{
    ids::PaymentId,
    mutant,
    payment::{Command, Payment, Rejection},
    time::Timestamp,
};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::{mpsc, oneshot};
use tracing::Span;

use crate::{
    context::Context,
    payments::{
        payment::{self, Order, PaymentActor, SessionError, read_failed},
        transfers::with_rows,
        unmatched,
    },
};

/// Expiries under way at once: each wakes an actor, and a million due at once must not be a million actors.
const MAX_EXPIRING: usize = 128;
/// Snapshots a slow watcher may fall behind before it is let go.
const WATCH_BUFFER: usize = 16;
/// A session may crash this often within [`CRASH_WINDOW`] before it is left parked until somebody asks for it.
const MAX_CRASHES: u32 = 5;
const CRASH_WINDOW: Duration = Duration::from_secs(60);

pub(crate) enum Msg {
    /// A session was created: wake it.
    Adopt(Arc<Payment>),
    /// An order to a session.
    Order(PaymentId, Box<Order>),
    /// Somebody wants to see a session now and after every change.
    Watch(PaymentId, oneshot::Sender<Result<Watch, SessionError>>),
    /// A session changed.
    Changed { id: PaymentId, snapshot: Option<Arc<Payment>>, stay: Stay },
    /// Every block up to this time has been read and can no longer change.
    Advanced(Timestamp),
    /// An expiry that was under way is over, however it ended.
    Expired,
    /// Everything that must not wait: sessions whose signed transaction is out there.
    Recover(oneshot::Sender<Result<usize, SessionError>>),
    /// How many sessions are awake.
    CountAwake(oneshot::Sender<usize>),
}

/// What a session wants after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stay {
    /// It may be parked when others need the room.
    MayPark,
    /// It has a transaction under way and must not be parked.
    Awake,
    /// Nothing more will happen to it by itself.
    Finished,
}

impl Stay {
    pub(crate) fn of(payment: &Payment) -> Self {
        match (&payment.claim, payment.state.is_terminal()) {
            (Some(_), _) => Self::Awake,
            (None, true) => Self::Finished,
            (None, false) => Self::MayPark,
        }
    }
}

/// Held while an expiry is under way; tells when it is over, even if its actor died.
pub(crate) struct Ticket(ActorRef<Msg>);

impl Drop for Ticket {
    fn drop(&mut self) {
        let _ = self.0.cast(Msg::Expired);
    }
}

/// A session as it is and will be: first the snapshot of now, then one after every change.
#[derive(Debug)]
pub struct Watch {
    /// Ends after a terminal state, or when the watcher fell too far behind.
    pub snapshots: mpsc::Receiver<Arc<Payment>>,
}

pub(crate) struct Sessions {
    pub(crate) context: Arc<Context>,
}

#[derive(Default)]
pub(crate) struct Roster {
    awake: BTreeMap<PaymentId, Session>,
    by_pid: BTreeMap<u64, PaymentId>,
    /// Awake sessions by when they were last spoken to.
    idle_order: BTreeMap<u64, PaymentId>,
    clock: u64,
    watchers: BTreeMap<PaymentId, Vec<mpsc::Sender<Arc<Payment>>>>,
    crashes: BTreeMap<PaymentId, (Timestamp, u32)>,
    expiry: Expiry,
}

struct Session {
    actor: ActorRef<payment::Msg>,
    last_spoken_to: u64,
    stay: Stay,
    /// Orders that came after the session was told to park; they wake it again.
    parking: Option<VecDeque<payment::Msg>>,
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

impl Actor for Sessions {
    type Msg = Msg;
    type State = Roster;
    type Arguments = ();

    async fn pre_start(&self, _myself: ActorRef<Msg>, (): ()) -> Result<Roster, ActorProcessingErr> {
        Ok(Roster::default())
    }

    async fn handle(&self, myself: ActorRef<Msg>, message: Msg, roster: &mut Roster) -> Result<(), ActorProcessingErr> {
        match message {
            Msg::Adopt(payment) => {
                let id = payment.id;
                // A full roster would park another for it: it sleeps until somebody speaks to it, as it would anyway.
                if !roster.awake.contains_key(&id) && roster.idle_order.len() < self.context.settings.max_awake {
                    self.wake(&myself, roster, payment).await?;
                }
            }
            Msg::Order(id, order) => self.order(&myself, roster, id, order).await?,
            Msg::Watch(id, reply) => {
                let _ = reply.send(self.watch(roster, id).await);
            }
            Msg::Changed { id, snapshot, stay } => {
                if let Some(payment) = snapshot {
                    roster.publish(&payment, &self.context);
                }
                match stay {
                    Stay::Finished => roster.park(id),
                    stay => roster.set_stay(id, stay),
                }
            }
            Msg::Advanced(_) if mutant!("expiry-not-swept") => {}
            Msg::Advanced(time) => {
                roster.expiry.advanced_to = roster.expiry.advanced_to.max(time);
                self.sweep(&myself, roster).await?;
            }
            Msg::Expired => {
                roster.expiry.under_way -= 1;
                // A sweep that has seen all waits for the ledger to advance: who cannot expire yet is still due.
                if roster.expiry.sweeping_to.is_some() && roster.expiry.under_way <= MAX_EXPIRING / 2 {
                    self.sweep(&myself, roster).await?;
                }
            }
            Msg::Recover(reply) => {
                let _ = reply.send(self.recover(&myself, roster).await);
            }
            Msg::CountAwake(reply) => {
                let _ = reply.send(roster.awake.len());
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<Msg>,
        event: SupervisionEvent,
        roster: &mut Roster,
    ) -> Result<(), ActorProcessingErr> {
        let (cell, crash) = match event {
            SupervisionEvent::ActorTerminated(cell, ..) => (cell, None),
            SupervisionEvent::ActorFailed(cell, error) => (cell, Some(error)),
            _ => return Ok(()),
        };
        let Some(id) = roster.by_pid.remove(&cell.get_id().pid()) else { return Ok(()) };
        let Some(session) = roster.forget(id) else { return Ok(()) };
        self.context.metrics.awake.dec();
        let waiting = session.parking.unwrap_or_default();
        let reborn = match crash {
            None => !waiting.is_empty(),
            Some(error) => {
                let calm = roster.crashed(id, self.context.now());
                self.context.metrics.crashed("session");
                tracing::error!(payment.id = %id, %error, "session of payment {id} crashed");
                calm || !waiting.is_empty()
            }
        };
        if reborn && self.ensure_awake(&myself, roster, id).await?.is_ok() {
            for message in waiting {
                roster.forward(id, message);
            }
        }
        Ok(())
    }
}

impl Sessions {
    async fn order(
        &self,
        myself: &ActorRef<Msg>,
        roster: &mut Roster,
        id: PaymentId,
        order: Box<Order>,
    ) -> Result<(), ActorProcessingErr> {
        if !roster.awake.contains_key(&id) {
            let woken = match self.asleep(id).await {
                Ok(payment) => match self.refusal(&payment, &order.command).await {
                    Ok(Some(rejection)) => Err(SessionError::Rejected { rejection, payment }),
                    Ok(None) => Ok(self.wake(myself, roster, payment).await?),
                    Err(error) => Err(error),
                },
                Err(error) => Err(error),
            };
            if let Err(error) = woken {
                if let Some(reply) = order.reply {
                    let _ = reply.send(Err(error));
                }
                return Ok(());
            }
        }
        roster.forward(id, payment::Msg::Order(order));
        Ok(())
    }

    /// Returns why a finished session would refuse: it need not wake for that. What an agent's payment completed is seen
    /// once more in a block that may still change, and knows it already.
    async fn refusal(&self, payment: &Arc<Payment>, command: &Command) -> Result<Option<Rejection>, SessionError> {
        if Stay::of(payment) != Stay::Finished {
            return Ok(None);
        }
        let known = with_rows(&self.context, payment, command).await?;
        Ok(known.apply(command, self.context.now()).err())
    }

    /// Reads a session that has no actor.
    async fn asleep(&self, id: PaymentId) -> Result<Arc<Payment>, SessionError> {
        match self.context.env.store.payment(id).await {
            Ok(Some(payment)) => Ok(Arc::new(payment)),
            Ok(None) => Err(SessionError::NotFound(id)),
            Err(error) => Err(read_failed(&self.context, &error)),
        }
    }

    /// Makes sure the session has an actor, from its snapshot if need be.
    async fn ensure_awake(
        &self,
        myself: &ActorRef<Msg>,
        roster: &mut Roster,
        id: PaymentId,
    ) -> Result<Result<(), SessionError>, ActorProcessingErr> {
        if roster.awake.contains_key(&id) {
            return Ok(Ok(()));
        }
        match self.asleep(id).await {
            Ok(payment) => self.wake(myself, roster, payment).await.map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }

    async fn wake(
        &self,
        myself: &ActorRef<Msg>,
        roster: &mut Roster,
        payment: Arc<Payment>,
    ) -> Result<(), ActorProcessingErr> {
        let id = payment.id;
        let stay = Stay::of(&payment);
        let handler = PaymentActor { context: Arc::clone(&self.context), sessions: myself.clone() };
        let (actor, _) = Actor::spawn_linked(None, handler, payment, myself.get_cell()).await?;
        roster.by_pid.insert(actor.get_id().pid(), id);
        roster.clock += 1;
        roster.awake.insert(id, Session { actor, last_spoken_to: roster.clock, stay, parking: None });
        self.context.metrics.awake.inc();
        match stay {
            Stay::MayPark => drop(roster.idle_order.insert(roster.clock, id)),
            Stay::Awake => {}
            // Money that came late is told to the session like any other; then it sleeps again.
            Stay::Finished => myself.cast(Msg::Changed { id, snapshot: None, stay })?,
        }
        while roster.idle_order.len() > self.context.settings.max_awake {
            let Some((_, idlest)) = roster.idle_order.first_key_value() else { break };
            roster.park(*idlest);
        }
        Ok(())
    }

    async fn watch(&self, roster: &mut Roster, id: PaymentId) -> Result<Watch, SessionError> {
        let payment = self.asleep(id).await?;
        let (sender, snapshots) = mpsc::channel(WATCH_BUFFER);
        let is_finished = payment.state.is_terminal();
        sender.try_send(payment).expect("an empty channel takes one");
        if !is_finished {
            roster.watchers.entry(id).or_default().push(sender);
            self.context.subscriptions.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Watch { snapshots })
    }

    /// Wakes due sessions, a few at a time, until none is left.
    async fn sweep(&self, myself: &ActorRef<Msg>, roster: &mut Roster) -> Result<(), ActorProcessingErr> {
        let to = match roster.expiry.sweeping_to {
            Some(to) => to,
            None => roster.expiry.advanced_to,
        };
        roster.expiry.sweeping_to = Some(to);
        while roster.expiry.under_way < MAX_EXPIRING {
            let room = MAX_EXPIRING - roster.expiry.under_way;
            let due = match self.context.env.store.due(to, roster.expiry.after, room).await {
                Ok(due) => due,
                Err(error) => {
                    read_failed(&self.context, &error);
                    return Ok(());
                }
            };
            if due.is_empty() {
                // The next advance sweeps from the start again: what was refused today may be due tomorrow.
                let again = roster.expiry.advanced_to > to;
                roster.expiry.sweeping_to = None;
                roster.expiry.after = None;
                if again {
                    let _ = myself.cast(Msg::Advanced(roster.expiry.advanced_to));
                }
                return Ok(());
            }
            roster.expiry.after = due.last().copied();
            let awaited = match unmatched::awaited(&self.context, due.iter().map(|(_, id)| *id)).await {
                Ok(awaited) => awaited,
                Err(error) => {
                    read_failed(&self.context, &error);
                    return Ok(());
                }
            };
            // What its money came before takes that first; a later sweep sees what became of it.
            for (_, id) in due.into_iter().filter(|(_, id)| !awaited.contains(id)) {
                roster.expiry.under_way += 1;
                let ticket = Ticket(myself.clone());
                let command = Command::Expire { irreversible_time: to };
                let order = Order { command, told: None, reply: None, ticket: Some(ticket), span: Span::none() };
                self.order(myself, roster, id, Box::new(order)).await?;
            }
        }
        Ok(())
    }

    async fn recover(&self, myself: &ActorRef<Msg>, roster: &mut Roster) -> Result<usize, SessionError> {
        let in_flight = self.context.env.store.in_flight().await.map_err(|error| read_failed(&self.context, &error))?;
        for id in in_flight.iter().filter(|_| !mutant!("claims-not-recovered")) {
            let woken = self.ensure_awake(myself, roster, *id).await;
            match woken.unwrap_or(Err(SessionError::Unknown)) {
                // The others go on without one that cannot be read.
                Ok(()) | Err(SessionError::Damaged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(in_flight.len())
    }
}

impl Roster {
    /// Hands a message to a session that is awake, or keeps it if the session is on its way to sleep.
    fn forward(&mut self, id: PaymentId, message: payment::Msg) {
        let Some(session) = self.awake.get_mut(&id) else { return };
        if let Some(waiting) = &mut session.parking {
            waiting.push_back(message);
            return;
        }
        self.idle_order.remove(&session.last_spoken_to);
        self.clock += 1;
        session.last_spoken_to = self.clock;
        if session.stay == Stay::MayPark {
            self.idle_order.insert(self.clock, id);
        }
        // An actor that died a moment ago drops the message; its sender sees that and may ask again.
        let _ = session.actor.cast(message);
    }

    fn set_stay(&mut self, id: PaymentId, stay: Stay) {
        let Some(session) = self.awake.get_mut(&id) else { return };
        session.stay = stay;
        match stay {
            Stay::MayPark if session.parking.is_none() => drop(self.idle_order.insert(session.last_spoken_to, id)),
            _ => drop(self.idle_order.remove(&session.last_spoken_to)),
        }
    }

    /// Tells a session to stop once it has done everything it was told before.
    fn park(&mut self, id: PaymentId) {
        let Some(session) = self.awake.get_mut(&id) else { return };
        if session.parking.is_none() {
            session.parking = Some(VecDeque::new());
            self.idle_order.remove(&session.last_spoken_to);
            let _ = session.actor.cast(payment::Msg::Park);
        }
    }

    fn forget(&mut self, id: PaymentId) -> Option<Session> {
        let session = self.awake.remove(&id)?;
        self.idle_order.remove(&session.last_spoken_to);
        Some(session)
    }

    /// Counts a crash; says whether the session may be brought back at once.
    fn crashed(&mut self, id: PaymentId, now: Timestamp) -> bool {
        self.crashes.retain(|_, (since, _)| now.since(*since) < CRASH_WINDOW);
        let (_, count) = self.crashes.entry(id).or_insert((now, 0));
        *count += 1;
        *count <= MAX_CRASHES
    }

    fn publish(&mut self, payment: &Arc<Payment>, context: &Context) {
        let Some(watchers) = self.watchers.get_mut(&payment.id) else { return };
        let before = watchers.len();
        watchers.retain(|watcher| watcher.try_send(Arc::clone(payment)).is_ok());
        if payment.state.is_terminal() {
            watchers.clear();
        }
        context.subscriptions.fetch_sub(before - watchers.len(), Ordering::Relaxed);
        if watchers.is_empty() {
            self.watchers.remove(&payment.id);
        }
    }
}
