//! A model of the expected responses: the content of lists, and the outcomes of payments that nothing may refuse.

use std::collections::BTreeSet;

use engine::payment::Payment;
use storage::{PageAt, PaymentQuery, ReadError, prelude::*};

use super::*;
use crate::{
    observer::EngineSetup,
    plan::is_unambiguous,
    script::{AgentBehavior, MerchantChange, Step},
};

/// Block intervals in which a wallet's payment completes once its money is irreversible.
const PROMPT_BLOCKS: u64 = 10;

/// How long before a session's expiry a payment or a cancellation is certainly in time, milliseconds.
const IN_TIME_MS: u64 = 15_000;

/// What is expected of a payment that only one honest party touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequiredOutcome {
    /// A wallet pays the whole amount in time: it completes.
    Paid,
    /// An agent pays it: it settles.
    Settled,
    /// It is cancelled and not paid: it is cancelled.
    Cancelled,
    /// Nothing else happens: it expires.
    Expired,
}

/// Returns whether a majority of nodes, the disk and the process work throughout without delays.
pub(super) fn is_sound(script: &Script) -> bool {
    let (setup, faults) = (&script.setup, &script.faults);
    let has_majority = setup.faulty_nodes.len() * 2 < setup.nodes;
    let spares_majority = faults.spare_nodes() || (!setup.faulty_nodes.is_empty() && has_majority);
    let is_quick = setup.rpc_ms <= 1_000 && setup.commit_ms <= 200 && setup.poll_ms <= 3_000;
    // A damaged row excuses the sessions that it concerns, which are known only when it is chosen.
    let disturbs = |action: &Action| {
        let Action::Inject(injection) = action else { return false };
        !matches!(injection, FaultInjection::Disk(DiskFault::DamageRow { .. }))
    };
    let has_injections = script.steps.iter().any(|step| disturbs(&step.action));
    faults.are_of_nodes() && spares_majority && is_quick && !has_injections
}

/// Returns how several engines are set up.
pub(super) fn engine_setup(script: &Script) -> EngineSetup {
    let setup = &script.setup;
    if setup.engines < 2 {
        return EngineSetup::default();
    }
    let lease_ms = setup.lease_seconds * 1_000;
    let single_failure_ms = single_failure_ms(script, lease_ms);
    let webhook_timeout_ms = u64::try_from(setup.settings().webhook_timeout.as_millis()).unwrap_or(u64::MAX);
    let engines = setup.engines as u64;
    EngineSetup { engines, lease_ms, webhook_timeout_ms, poll_ms: setup.poll_ms, single_failure_ms }
}

/// Returns the longest wait if only engines and their store fail, one failure after the other: the duration of a
/// takeover, and of the outage of the store. An engine that shuts down gracefully releases its leases.
fn single_failure_ms(script: &Script, lease_ms: u64) -> Option<u64> {
    let restarts = |step: &Step| {
        !matches!(step.action, Action::Inject(FaultInjection::Process(ref fault)) if *fault != ProcessFault::Restart)
            && !matches!(step.action, Action::Inject(FaultInjection::Partition { .. } | FaultInjection::Store(_)))
    };
    let lease_ms = if script.steps.iter().all(restarts) { 0 } else { lease_ms };
    let takeover_ms = lease_ms + PROMPT_BLOCKS * script.setup.block_seconds * 1_000;
    let (mut free_from_ms, mut longest_ms, mut failures, mut last_cut) = (0, 0, 0, None);
    for step in &script.steps {
        let Action::Inject(injection) = &step.action else { continue };
        let (lasts_ms, away_ms) = match injection {
            FaultInjection::Process(ProcessFault::Pause { for_ms }) | FaultInjection::Partition { for_ms, .. } => {
                (*for_ms, 0)
            }
            FaultInjection::Store(StoreFault::FailOver { for_ms }) => (*for_ms, *for_ms),
            FaultInjection::Store(StoreFault::BreakCommit(outcome)) => (outcome.after_ms(), 0),
            FaultInjection::Process(ProcessFault::Kill | ProcessFault::KillAt(_) | ProcessFault::Restart) => (0, 0),
            _ => return None,
        };
        // An engine that loses several nodes at once has one failure.
        let is_same = matches!(injection, FaultInjection::Partition { peer: Peer::Node(_), .. })
            && last_cut.replace((step.at_ms, step.engine)) == Some((step.at_ms, step.engine));
        if step.at_ms < free_from_ms && !is_same {
            return None;
        }
        free_from_ms = step.at_ms + lasts_ms + takeover_ms;
        longest_ms = longest_ms.max(away_ms);
        failures += 1;
    }
    let is_quick = script.setup.rpc_ms <= 1_000 && script.setup.commit_ms <= 200 && script.setup.poll_ms <= 3_000;
    let is_single = failures > 0 && script.faults.on().next().is_none() && is_quick;
    is_single.then_some(takeover_ms + longest_ms)
}

/// Returns whether there are no faults, and no node is slow.
pub(super) fn is_calm(script: &Script) -> bool {
    is_sound(script) && script.faults.on().next().is_none() && script.setup.rpc_ms == 0
}

/// Returns the payments that must not be refused in a simulation where a majority of nodes, the disk and the process work; none in a
/// simulation where they do not.
pub(super) fn required_outcomes(script: &Script) -> BTreeMap<u32, RequiredOutcome> {
    let setup = &script.setup;
    if !is_sound(script) {
        return BTreeMap::new();
    }
    // A merchant that may be deactivated, or refuse agents, may refuse.
    let closes = |change| matches!(change, MerchantChange::SwitchOff | MerchantChange::NoX402);
    let closed: BTreeSet<usize> = script
        .steps
        .iter()
        .filter_map(|step| match step.action {
            Action::ChangeMerchant { merchant, change } if closes(change) => Some(merchant),
            _ => None,
        })
        .collect();
    let (mut required, mut late) = (BTreeMap::new(), BTreeSet::new());
    let mut touched = BTreeMap::<u32, Vec<&Action>>::new();
    let mut ends_ms = BTreeMap::new();
    for step in &script.steps {
        // Management calls, and payments that are presented without success, change no state.
        let has_no_effect = matches!(
            step.action,
            Action::ActOnSession { .. }
                | Action::CallFacade { .. }
                | Action::Settle { behavior: AgentBehavior::ShowPublicTransaction | AgentBehavior::SameIdentifier, .. }
                | Action::Pay { memo: crate::script::Memo::Refund, .. }
        );
        if let Some(session) = step.action.session().filter(|_| !has_no_effect) {
            touched.entry(session).or_default().push(&step.action);
            if let Action::Create { lifetime_seconds, .. } = step.action {
                ends_ms.insert(session, step.at_ms + lifetime_seconds.unwrap_or(setup.lifetime_seconds) * 1_000);
            } else if ends_ms.get(&session).is_none_or(|end_ms| step.at_ms + IN_TIME_MS > *end_ms) {
                late.insert(session);
            }
        }
        if let Action::Settle { behavior: AgentBehavior::Replay { of }, .. } = &step.action {
            touched.entry(*of).or_default().push(&step.action);
        }
    }
    for (session, actions) in touched {
        let [Action::Create { merchant, units, currency, .. }, rest @ ..] = &actions[..] else { continue };
        let wanted = match rest {
            _ if closed.contains(merchant) || late.contains(&session) => continue,
            [] => RequiredOutcome::Expired,
            [Action::Pay { payer: Some(_), units: paid, currency: of, memo, .. }]
                if paid >= units && of == currency && is_unambiguous(*memo) =>
            {
                RequiredOutcome::Paid
            }
            [Action::Settle { behavior: AgentBehavior::Honest, .. }] => RequiredOutcome::Settled,
            [Action::Cancel { .. }] => RequiredOutcome::Cancelled,
            _ => continue,
        };
        required.insert(session, wanted);
    }
    required
}

/// Returns whether no block is ever replaced, and every node has the same ones.
pub(super) fn has_one_chain(script: &Script) -> bool {
    let others = [Fault::Fork, Fault::NodeBranch, Fault::NodeLie];
    let is_other = |injection: &FaultInjection| match injection {
        FaultInjection::Ledger(LedgerFault::Fork { .. }) => true,
        FaultInjection::Node { fault, .. } => matches!(fault, NodeFault::OwnFork { .. } | NodeFault::Lies(_)),
        _ => false,
    };
    others.iter().all(|fault| script.faults.ppm(*fault) == 0)
        && !script.steps.iter().any(|step| matches!(&step.action, Action::Inject(injection) if is_other(injection)))
}

impl Simulation {
    /// Returns how soon payments complete without an excuse.
    pub(super) fn prompt_ms(script: &Script) -> Option<u64> {
        is_sound(script).then_some(PROMPT_BLOCKS * script.setup.block_seconds * 1_000)
    }

    /// Returns whether no fault explains a refusal.
    pub(crate) fn is_sound(&self) -> bool {
        self.is_sound && self.are_faults_on()
    }

    /// Returns whether no other step concerns a session.
    pub(crate) fn requires_outcome(&self, session: u32, wanted: RequiredOutcome) -> bool {
        self.required.get(&session) == Some(&wanted) && !self.clients().delayed.contains(&session)
    }

    /// Records that something valid was refused.
    pub(crate) fn refuse(&self, text: String, payment: Option<PaymentId>) {
        let is_damaged = self.is_damaged();
        self.observe(|observer| {
            // Calls that a damaged row concerns are refused until it is repaired; a caller without a payment has a merchant.
            let known = payment.and_then(|id| observer.payments.get(&id)).map(|known| &*known.payment);
            if !is_damaged || known.is_some_and(|payment| !observer.is_affected_by_damage(payment)) {
                observer.violate("nothing-valid-is-refused", text, payment);
            }
        });
    }

    /// Checks the final states of sessions that only one honest party touched.
    pub(super) fn check_required_outcomes(&self) {
        for (session, wanted) in &self.required {
            let Some(id) = self.clients().sessions.get(session).map(|known| known.id) else { continue };
            if self.clients().delayed.contains(session) {
                continue;
            }
            self.observe(|observer| {
                let Some(payment) = observer.payments.get(&id).map(|known| &known.payment) else { return };
                if observer.is_affected_by_damage(payment) {
                    return;
                }
                let state = payment.state;
                let is_right = match wanted {
                    RequiredOutcome::Paid | RequiredOutcome::Settled => state == State::Completed,
                    RequiredOutcome::Cancelled => state == State::UserCancelled,
                    RequiredOutcome::Expired => state == State::SystemCancelled,
                };
                if is_right {
                    observer.passes("nothing-valid-is-refused");
                } else {
                    let text = format!("session {session} is {state} and should be {wanted:?}");
                    observer.violate("nothing-valid-is-refused", text, Some(id));
                }
            });
        }
    }

    /// Compares a random list with the expected one.
    pub(super) async fn compare_a_list(&self, store: &EmbeddedStore) -> Result<(), ReadError> {
        let drawn = {
            let observer = lock(&self.observer);
            let random = &mut lock(&self.streams).queries;
            // A long list costs as many comparisons as it has rows.
            let rare = 1_000_000 / (1 + observer.payments.len() / 200);
            if observer.merchants.is_empty() || !random.chance(u32::try_from(rare).unwrap_or(1)) {
                return Ok(());
            }
            let merchant =
                *observer.merchants.keys().nth(random.index(observer.merchants.len())).expect("below its length");
            draw(merchant, &observer.payments, random)
        };
        self.compare_list(store, drawn).await
    }

    /// Compares every list of a merchant by state, page by page, and without a filter.
    pub(super) async fn compare_every_list(&self, store: &EmbeddedStore) -> Result<(), ReadError> {
        let merchants: Vec<_> = self.observe(|observer| observer.merchants.keys().copied().collect());
        for merchant in merchants {
            for states in [Vec::new()].into_iter().chain(State::ALL.map(|state| vec![state])) {
                for number in 1..=3 {
                    let query = PaymentQuery {
                        at: PageAt::Number(number),
                        states: states.clone(),
                        ..PaymentQuery::all(merchant, 40)
                    };
                    self.compare_list(store, query).await?;
                }
            }
        }
        Ok(())
    }

    async fn compare_list(&self, store: &EmbeddedStore, query: PaymentQuery) -> Result<(), ReadError> {
        let page = store.payments(query.clone()).await?;
        self.observe(|observer| {
            let mut wanted: Vec<_> = observer
                .payments
                .values()
                .map(|known| &*known.payment)
                .filter(|payment| is_listed(payment, &query))
                .collect();
            wanted.sort_unstable_by_key(|payment| core::cmp::Reverse(payment.id.bits()));
            let total = wanted.len();
            let skipped = match query.at {
                PageAt::Number(number) => usize::try_from(number - 1).unwrap_or(usize::MAX).saturating_mul(query.limit),
                PageAt::After(bits) | PageAt::Following(bits) => {
                    wanted.iter().position(|payment| payment.id.bits() < bits).unwrap_or(total)
                }
            };
            let wanted: Vec<_> = wanted.into_iter().skip(skipped).take(query.limit).collect();
            let is_counted = matches!(query.at, PageAt::Number(_)) && !page.total_is_lower_bound;
            if page.items.iter().eq(wanted.iter().copied()) && (!is_counted || page.total == total as u64) {
                observer.passes("lists-match-the-payments");
                return;
            }
            let text = format!(
                "{query:?} has {} of {} and should have {} of {total}",
                page.items.len(),
                page.total,
                wanted.len()
            );
            observer.violate("lists-match-the-payments", text, None);
        });
        Ok(())
    }
}

fn is_listed(payment: &Payment, query: &PaymentQuery) -> bool {
    payment.merchant == query.merchant
        && (query.states.is_empty() || query.states.contains(&payment.state))
        && query.from.is_none_or(|from| from <= payment.created_at)
        && query.to.is_none_or(|to| payment.created_at < to)
        && query.currency.is_none_or(|currency| currency == payment.amount.currency)
        && query.min_units.is_none_or(|least| least <= payment.amount.units)
        && query.max_units.is_none_or(|most| payment.amount.units <= most)
        && query.unusual.is_none_or(|unusual| unusual == payment.needs_attention())
        && (query.ids.is_empty() || query.ids.contains(&payment.id))
}

fn draw(
    merchant: engine::ids::MerchantId,
    payments: &crate::index::Index<PaymentId, crate::observer::Known>,
    random: &mut Random,
) -> PaymentQuery {
    let mut query = PaymentQuery::all(merchant, 1 + random.index(20));
    let some = |random: &mut Random| {
        let at = random.index(payments.len().max(1));
        payments.get_index(at).map(|(_, known)| Arc::clone(&known.payment))
    };
    if random.chance(500_000) {
        query.states = State::ALL.into_iter().filter(|_| random.chance(300_000)).collect();
    }
    if random.chance(250_000) {
        query.currency = Some(*random.pick(&engine::money::Currency::ALL));
    }
    if random.chance(250_000) {
        query.unusual = Some(random.chance(500_000));
    }
    if let Some(payment) = some(random).filter(|_| random.chance(250_000)) {
        query.min_units = Some(payment.amount.units);
    }
    if let Some(payment) = some(random).filter(|_| random.chance(250_000)) {
        query.from = Some(payment.created_at);
    }
    if let Some(payment) = some(random).filter(|_| random.chance(250_000)) {
        query.to = Some(payment.created_at);
    }
    query.at = match (random.below(4), some(random)) {
        (0, Some(payment)) => PageAt::After(payment.id.bits()),
        (1, Some(payment)) => PageAt::Following(payment.id.bits()),
        _ => PageAt::Number(random.between(1, 3)),
    };
    query
}
