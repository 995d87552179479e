//! The root of the tree: starts the actors in order, restarts those that may crash alone, and shuts the engine down.

use std::{collections::BTreeMap, error::Error, sync::Arc, time::Duration};

use engine::{event_list::Epoch, hive::ChainId, mutant, time::Timestamp};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use storage::{Batch, CommitError, ReadError, Write};
use tokio::sync::{Notify, oneshot, watch};

use crate::{
    access::Access,
    chain::{handle::Chain, ledger::Ledger, rates::Rates},
    child::Child,
    context::Context,
    duty_keeper::Keeper,
    environment::{Environment, NodeError},
    facades::handle::Facades,
    handles::Engine,
    merchants::{actor::MerchantActor, handle::Merchants},
    operations::{handle::Operations, housekeeping::Housekeeper, reconciliation::Reconciler},
    payments::{handle::Payments, messages::RegistryMsg, registry::Registry, transfer_log::OtherAccountLog},
    scanner::{blocks::Scanner, virtual_transfers::VirtualTransfers},
    settings::Settings,
    timer::{Task, Timer},
    webhooks::{dispatcher::Dispatcher, handle::Webhooks, notifier::Notifier},
    x402::{claims::FacilitatorMsg, facilitator::Facilitator, handle::X402, orphans},
};

/// Maximum number of crashes of a restarted actor within the window; more are a fault that a restart does not fix.
const MAX_CRASHES: usize = 10;
const CRASH_WINDOW: Duration = Duration::from_secs(60);
/// Delay before a child is restarted after the store was unreachable.
const RESTART_AFTER: Duration = Duration::from_secs(1);
/// The stored chain id.
const CHAIN_NOTE: &str = "chain";

/// Why an engine did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error("the store cannot be written: {0}")]
    Write(String),
    /// A node serves another chain than the configured one.
    #[error("{0}")]
    WrongNode(NodeError),
    /// The store holds the payments of another chain.
    #[error("the data directory belongs to chain {stored}, and the settings select chain {wanted}")]
    WrongStore {
        /// The chain of the stored payments.
        stored: String,
        /// The chain of the settings.
        wanted: String,
    },
    /// An actor did not start.
    #[error("an actor did not start: {0}")]
    Actor(String),
}

/// A running engine. Dropping it leaves the actors running; stop it with [`Tree::stop`].
pub struct Tree {
    root: ActorRef<Msg>,
    context: Arc<Context>,
    engine: Engine,
}

impl Tree {
    /// Starts an engine: checks the store's chain, activates sessions with a transaction in flight, and only then scans
    /// the ledger, processes the outbox, and returns the [`Engine`].
    ///
    /// # Errors
    /// [`StartError`]; nothing is left running.
    pub async fn start(env: Environment, settings: Settings) -> Result<Self, StartError> {
        let context = Context::new(env, settings);
        check_store(&context.env, &context.settings).await?;
        begin_epoch(&context.env).await?;
        let ledger = Ledger::new(Arc::clone(&context));
        ledger.nodes.check_chain().await.map_err(StartError::WrongNode)?;
        let (started, engine) = oneshot::channel();
        let root =
            Root { context: Arc::clone(&context), ledger, notifier: Arc::default(), other_accounts: Arc::default() };
        let (root, _) = Actor::spawn(None, root, started).await.map_err(|e| StartError::Actor(e.to_string()))?;
        let engine = engine.await.map_err(|_| StartError::Actor("the root died".to_owned()))?;
        Ok(Self { root, context, engine })
    }

    /// Returns the handles of the engine.
    #[must_use]
    pub fn engine(&self) -> Engine {
        self.engine.clone()
    }

    /// Waits until the engine must stop, and returns the reason: the process should exit and restart.
    pub async fn failed(&self) -> String {
        self.context.fatal.raised().await
    }

    /// Kills the actors at once, as the death of the process would: nothing is released.
    pub fn kill(&self) {
        self.root.kill();
    }

    /// Stops the actors, children first, each after its current message; then other engines take over the duties.
    pub async fn stop(self) {
        // An actor that has already stopped needs no wait.
        let _ = self.root.stop_and_wait(None, None).await;
    }
}

async fn check_store(env: &Environment, settings: &Settings) -> Result<(), StartError> {
    let wanted = chain_label(settings.chain_id, settings.development);
    // Otherwise the first block to scan would be unknown.
    env.store.cursor().await?;
    match env.store.note(CHAIN_NOTE).await? {
        Some(stored) if stored == wanted.as_bytes() => Ok(()),
        Some(stored) => Err(StartError::WrongStore { stored: String::from_utf8_lossy(&stored).into_owned(), wanted }),
        None => {
            let note = Write::Note { name: CHAIN_NOTE, value: wanted.clone().into_bytes(), expected: None };
            match env.store.commit(Batch::of(note)).await {
                // Another engine that starts for the first time was first.
                Err(CommitError::Conflict { .. })
                    if env.store.note(CHAIN_NOTE).await?.as_deref() == Some(wanted.as_bytes()) =>
                {
                    Ok(())
                }
                committed => committed.map_err(|error| StartError::Write(error.to_string())),
            }
        }
    }
}

/// Starts a new epoch of the events after a restore of the store, before any event is sent and any cursor is returned.
async fn begin_epoch(env: &Environment) -> Result<(), StartError> {
    if env.store.epoch().await? != Epoch::PENDING {
        return Ok(());
    }
    let epoch = Epoch::random(u64::from_be_bytes(env.entropy.bytes()));
    match env.store.commit(Batch::of(Write::BeginEpoch(epoch))).await {
        // Another engine that starts was first.
        Err(CommitError::Conflict { .. }) if env.store.epoch().await? != Epoch::PENDING => return Ok(()),
        begun => begun.map_err(|error| StartError::Write(error.to_string()))?,
    }
    tracing::warn!("store was restored from a backup: event cursors from before the restore are refused");
    Ok(())
}

fn chain_label(chain_id: ChainId, development: bool) -> String {
    format!("{chain_id}{}", if development { " (development)" } else { "" })
}

struct Root {
    context: Arc<Context>,
    ledger: Arc<Ledger>,
    notifier: Arc<Notifier>,
    other_accounts: Arc<OtherAccountLog>,
}

#[derive(Debug)]
enum Msg {
    /// Start a child that stopped because the store was unreachable.
    Restart(Child),
}

struct Children {
    by_pid: BTreeMap<u64, Child>,
    /// In start order.
    cells: BTreeMap<Child, ractor::ActorCell>,
    payments: Payments,
    merchants: Merchants,
    crashes: Vec<Timestamp>,
    restarts: BTreeMap<Child, Timer>,
    keeper: Option<(Arc<Keeper>, Task)>,
    _orphans: Option<Task>,
}

impl Children {
    fn add(&mut self, child: Child, cell: ractor::ActorCell) {
        self.by_pid.insert(cell.get_id().pid(), child);
        self.cells.insert(child, cell);
    }
}

/// Starts the task that adopts claims of engines that have exited.
fn adopt_orphans(
    context: &Arc<Context>,
    orphans: &Arc<Notify>,
    registry: &ActorRef<RegistryMsg>,
    facilitator: &ActorRef<FacilitatorMsg>,
) -> Task {
    let (context, orphans) = (Arc::clone(context), Arc::clone(orphans));
    let (registry, facilitator) = (registry.clone(), facilitator.clone());
    Task::persistent(move |_| {
        let (context, orphans) = (Arc::clone(&context), Arc::clone(&orphans));
        orphans::adopt(context, registry.clone(), facilitator.clone(), orphans)
    })
}

impl Actor for Root {
    type Msg = Msg;
    type State = Children;
    type Arguments = oneshot::Sender<Engine>;

    async fn pre_start(
        &self,
        myself: ActorRef<Msg>,
        started: oneshot::Sender<Engine>,
    ) -> Result<Children, ActorProcessingErr> {
        let (context, ledger, notifier) = (&self.context, &self.ledger, &self.notifier);
        let actor =
            MerchantActor { context: Arc::clone(context), ledger: Arc::clone(ledger), notifier: Arc::clone(notifier) };
        let (actor, _) = Actor::spawn_linked(None, actor, (), myself.get_cell()).await?;
        let (irreversible, swept) = watch::channel(Timestamp::EPOCH);
        let registry = Registry::new(Arc::clone(context), Arc::clone(ledger), Arc::clone(notifier), swept);
        let (registry, _) = Actor::spawn_linked(None, registry, (), myself.get_cell()).await?;
        let access = Access::new(Arc::clone(context));
        let merchants = Merchants::new(access.clone(), Arc::clone(ledger), actor.clone());
        let payments =
            Payments::new(access.clone(), Arc::clone(ledger), merchants.clone(), registry.clone(), irreversible);
        let mut children = Children {
            by_pid: BTreeMap::new(),
            cells: BTreeMap::new(),
            payments: payments.clone(),
            merchants: merchants.clone(),
            crashes: Vec::new(),
            restarts: BTreeMap::new(),
            keeper: None,
            _orphans: None,
        };
        children.add(Child::Merchants, actor.get_cell());
        children.add(Child::Sessions, registry.get_cell());
        let orphans = Arc::new(Notify::new());
        if let Some(keeper) = Keeper::new(context, notifier, &orphans) {
            keeper.begin().await?;
            let kept = Arc::clone(&keeper);
            children.keeper = Some((keeper, Task::persistent(move |_| Arc::clone(&kept).keep())));
        } else {
            self.recover(&registry).await?;
        }
        for child in [
            Child::Scanner,
            Child::Webhooks,
            Child::Rates,
            Child::Housekeeper,
            Child::VirtualTransfers,
            Child::Reconciler,
        ] {
            self.spawn(&myself, &mut children, child).await?;
        }
        let facilitator =
            Facilitator { context: Arc::clone(context), ledger: Arc::clone(ledger), notifier: Arc::clone(notifier) };
        let (facilitator, _) = Actor::spawn_linked(None, facilitator, (), myself.get_cell()).await?;
        children.add(Child::Facilitator, facilitator.get_cell());
        if context.env.store.is_shared() {
            children._orphans = Some(adopt_orphans(context, &orphans, &registry, &facilitator));
        }
        let x402 = X402::new(access.clone(), Arc::clone(ledger), payments.clone(), facilitator);
        let facades = Facades::new(access.clone());
        let engine = Engine {
            x402,
            facades,
            webhooks: Webhooks::new(access.clone(), Arc::clone(notifier)),
            chain: Chain::new(Arc::clone(ledger)),
            operations: Operations::new(access, Arc::clone(ledger), payments.clone()),
            payments,
            merchants,
            context: Arc::clone(context),
        };
        let _ = started.send(engine);
        Ok(children)
    }

    async fn handle(
        &self,
        myself: ActorRef<Msg>,
        Msg::Restart(child): Msg,
        children: &mut Children,
    ) -> Result<(), ActorProcessingErr> {
        children.restarts.remove(&child);
        self.restart(&myself, children, child).await;
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<Msg>,
        event: SupervisionEvent,
        children: &mut Children,
    ) -> Result<(), ActorProcessingErr> {
        let (cell, error, is_unavailable) = match event {
            SupervisionEvent::ActorFailed(cell, error) => {
                if let Some(error) = error.downcast_ref::<ReadError>() {
                    self.context.read_failed(error);
                }
                (cell, error.to_string(), is_unavailable(&error))
            }
            SupervisionEvent::ActorTerminated(cell, ..) => (cell, "it stopped".to_owned(), false),
            _ => return Ok(()),
        };
        let Some(child) = children.by_pid.remove(&cell.get_id().pid()) else { return Ok(()) };
        if is_unavailable && child.is_restarted() {
            restart_later(&myself, children, child);
            return Ok(());
        }
        self.context.metrics.crashed(child.as_str());
        tracing::error!(?child, %error, "{child:?} crashed: {error}");
        let now = self.context.env.clock.now();
        children.crashes.retain(|at| now.since(*at) < CRASH_WINDOW);
        children.crashes.push(now);
        match child {
            // Other actors hold their address: without them the engine cannot work.
            _ if !child.is_restarted() => {
                self.context.fatal.raise(format!("{child:?} crashed: {error}"));
            }
            _ if children.crashes.len() > MAX_CRASHES => {
                self.context.fatal.raise(format!("{child:?} keeps crashing: {error}"));
            }
            _ => self.restart(&myself, children, child).await,
        }
        Ok(())
    }

    async fn post_stop(&self, _myself: ActorRef<Msg>, children: &mut Children) -> Result<(), ActorProcessingErr> {
        children.by_pid.clear();
        // Senders stop before the sessions, one by one, in a fixed order.
        for (_, cell) in std::mem::take(&mut children.cells).into_iter().rev() {
            let _ = cell.stop_and_wait(None, None).await;
        }
        if let Some((keeper, task)) = children.keeper.take() {
            drop(task);
            keeper.end().await;
        }
        Ok(())
    }
}

/// Returns whether an actor stopped because the store was unreachable.
fn is_unavailable(error: &ActorProcessingErr) -> bool {
    let error: &(dyn Error + 'static) = error.as_ref();
    let mut causes = std::iter::successors(Some(error), |&error| error.source());
    causes.any(|cause| matches!(cause.downcast_ref(), Some(ReadError::Unavailable(_))))
}

fn restart_later(myself: &ActorRef<Msg>, children: &mut Children, child: Child) {
    children.restarts.insert(child, Timer::send(myself, RESTART_AFTER, Msg::Restart(child)));
}

impl Root {
    /// Activates the sessions whose transactions may be in flight, because no other engine follows them.
    async fn recover(&self, registry: &ActorRef<RegistryMsg>) -> Result<(), ActorProcessingErr> {
        let in_flight = self.context.env.store.in_flight().await?;
        for id in in_flight.iter().filter(|_| !mutant!("claims-not-recovered")) {
            registry.cast(RegistryMsg::Activate(*id))?;
        }
        if !in_flight.is_empty() {
            tracing::info!(in_flight = in_flight.len(), "{} sessions have a transaction in flight", in_flight.len());
        }
        Ok(())
    }

    async fn restart(&self, myself: &ActorRef<Msg>, children: &mut Children, child: Child) {
        match self.spawn(myself, children, child).await {
            Ok(()) => {}
            Err(error) if is_unavailable(&error) => restart_later(myself, children, child),
            Err(error) => {
                self.context.fatal.raise(format!("{child:?} crashed and cannot be started again: {error}"));
            }
        }
    }

    async fn spawn(
        &self,
        myself: &ActorRef<Msg>,
        children: &mut Children,
        child: Child,
    ) -> Result<(), ActorProcessingErr> {
        let me = myself.get_cell();
        let (context, ledger) = (Arc::clone(&self.context), Arc::clone(&self.ledger));
        let (payments, merchants) = (children.payments.clone(), children.merchants.clone());
        let cell = match child {
            Child::Scanner => {
                let other_accounts = Arc::clone(&self.other_accounts);
                let notifier = Arc::clone(&self.notifier);
                let scanner = Scanner { context, ledger, payments, merchants, notifier, other_accounts };
                Actor::spawn_linked(None, scanner, (), me).await?.0.get_cell()
            }
            Child::Webhooks => {
                let dispatcher = Dispatcher { context, notifier: Arc::clone(&self.notifier) };
                Actor::spawn_linked(None, dispatcher, (), me).await?.0.get_cell()
            }
            Child::Rates => Actor::spawn_linked(None, Rates { context, ledger }, (), me).await?.0.get_cell(),
            Child::Housekeeper => {
                let housekeeper = Housekeeper { context, ledger, payments, merchants };
                Actor::spawn_linked(None, housekeeper, (), me).await?.0.get_cell()
            }
            Child::VirtualTransfers => {
                let reader = VirtualTransfers { context, ledger, notifier: Arc::clone(&self.notifier) };
                Actor::spawn_linked(None, reader, (), me).await?.0.get_cell()
            }
            Child::Reconciler => Actor::spawn_linked(None, Reconciler { context, ledger }, (), me).await?.0.get_cell(),
            Child::Merchants | Child::Sessions | Child::Facilitator => return Err("these are not restarted".into()),
        };
        children.add(child, cell);
        Ok(())
    }
}
