//! Writes a script from a seed: customers of every kind, agents, and what merchants do meanwhile.

mod customers;
mod facade_calls;
mod management;
mod ownership;

use engine::money::Currency;

pub use self::customers::Customer;
use crate::{
    options::{Fault, Faults, Policies, Setup},
    random::Random,
    script::{Action, AgentBehavior, Memo, MerchantChange, Script, SessionAction, Step},
};

/// How the faults of a campaign's runs are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// Each run draws its own.
    Swarm,
    /// All faults at their default rates.
    AllOn,
    /// Every third run has all faults, every eighth those of a minority of nodes only, every 24th lasts for days, every
    /// twelfth damages rows only; the others draw.
    Both,
    /// Each run draws faults of a minority of nodes only.
    Nodes,
    /// Each run draws its own, and lasts 6 to 40 days.
    Days,
    /// Damaged rows only.
    Rows,
    /// No faults.
    None,
    /// As [`Mix::Both`], except that no run lasts for days: clients call through the installed facade.
    Facade,
    /// Every third run has all faults, every eighth those of a minority of nodes only; the others draw. Every run has
    /// several engines.
    Engines,
}

/// Payers with an account each.
pub const PAYERS: usize = 6;
/// Agents with an account each.
pub const AGENTS: usize = 4;

/// Writes the script of a seed.
#[must_use]
pub fn of_seed(seed: u64, payments: u32, mix: Mix) -> Script {
    of_seed_with(seed, payments, mix, None)
}

/// Writes the script of a seed with a number of engines, 1 to 5; none if the mix draws the number.
#[must_use]
pub fn of_seed_with(seed: u64, payments: u32, mix: Mix, engines: Option<usize>) -> Script {
    let root = Random::new(seed);
    let has_several_engines = engines.map_or(mix == Mix::Engines, |engines| engines > 1);
    let mut random = root.fork("setup");
    let facade = mix == Mix::Facade;
    let mix = match mix {
        Mix::Both | Mix::Facade | Mix::Engines if seed % 8 == 5 => Mix::Nodes,
        Mix::Both if seed % 24 == 11 => Mix::Days,
        Mix::Both if seed % 12 == 7 => Mix::Rows,
        mix => mix,
    };
    let mut faults = faults_of(mix, seed, &root);
    if has_several_engines {
        faults.leave_out_disk();
    } else {
        faults.leave_out_shared_store();
    }
    if facade {
        // Through the facade, damaged rows return 500 record_damaged, which clients here do not expect; after a restored
        // backup, what clients know is not there.
        faults.set(Fault::RowDamaged, 0);
        faults.set(Fault::Restored, 0);
    }
    let mut setup = Setup { facade, ..Setup::swarm(&mut random) };
    setup.seal_secrets = root.fork("vault").chance(500_000);
    setup.policies = Policies::swarm(&mut root.fork("policies"), mix == Mix::Days);
    if mix == Mix::Nodes {
        setup.spare_a_majority(&mut random);
    }
    if mix == Mix::Rows {
        setup.read_from_disk();
    }
    if mix == Mix::Days {
        setup.last_days(&mut random);
    }
    if has_several_engines {
        // Limits and billing are checked with one engine only.
        setup.policies = Policies::default();
        setup.share_a_store(&mut root.fork("engines"), engines);
    }
    if facade {
        // Limits are checked where clients call the engine directly.
        let Policies { bills, event_retention_seconds, .. } = setup.policies;
        setup.policies = Policies { bills, event_retention_seconds, ..Policies::default() };
    }
    if payments > 500 {
        // Thousands of sessions through one active actor only measure passivation.
        setup.max_active = setup.max_active.max(50);
        setup.cache_bytes = 16 * 1024 * 1024;
        setup.log_bytes = setup.log_bytes.max(1024 * 1024);
    }
    let mut steps = steps(&setup, &root, payments);
    if facade {
        facade_calls::draw(&mut steps, &setup, &mut root.fork("visits"));
    }
    steps.sort_by_key(|step| step.at_ms);
    Script {
        name: format!("seed {seed}"),
        why: String::new(),
        seed,
        setup,
        faults,
        steps,
        heal_at_ms: None,
        expect: Vec::new(),
        expect_nodes: Vec::new(),
        names: Vec::new(),
    }
}

/// Draws the faults of a seed.
fn faults_of(mix: Mix, seed: u64, root: &Random) -> Faults {
    match mix {
        Mix::None => Faults::default(),
        Mix::Nodes => Faults::of_nodes(&mut root.fork("faults")),
        Mix::Rows => Faults::of_rows(),
        Mix::AllOn => Faults::all_on(),
        Mix::Both | Mix::Facade | Mix::Engines if seed.is_multiple_of(3) => Faults::all_on(),
        Mix::Swarm | Mix::Both | Mix::Days | Mix::Facade | Mix::Engines => Faults::swarm(&mut root.fork("faults")),
    }
}

/// Draws what customers and merchants do in a simulation.
pub(crate) fn steps(setup: &Setup, root: &Random, payments: u32) -> Vec<Step> {
    let span_ms = span_ms(setup, payments);
    let mut plan = Plan { setup, steps: Vec::new(), random: root.fork("customers") };
    for session in 0..payments {
        plan.customer(session, span_ms);
    }
    plan.merchants(span_ms, payments, &mut root.fork("merchants"));
    plan.session_actions(&mut root.fork("desks"));
    plan.public_transactions(&mut root.fork("strangers"));
    plan.sellers(span_ms, payments, &mut root.fork("sellers"));
    plan.wallet_requests(span_ms, &mut root.fork("wallets"));
    plan.dishonest_agents(&mut root.fork("tricksters"));
    ownership::draw(&mut plan.steps, setup, span_ms, &mut root.fork("owners"));
    if setup.engines < 2 {
        management::draw(&mut plan.steps, setup, span_ms, &mut root.fork("managers"));
    }
    plan.steps
}

/// Returns whether a memo names exactly one session, so that its transfer is credited.
pub(crate) const fn is_unambiguous(memo: Memo) -> bool {
    matches!(memo, Memo::Exact | Memo::Noisy | Memo::TwoTransfers)
}

/// One more than the payments for sellers' resources that a simulation has at most.
fn at_sellers(payments: u32) -> u64 {
    6 + u64::from(payments) / 500
}

/// How long customers arrive: an hour and a half, and longer for more than ten thousand; or the days of the setup.
const fn span_ms(setup: &Setup, payments: u32) -> u64 {
    let hour = 3_600_000u64;
    if setup.days > 0 {
        return setup.days * 24 * hour;
    }
    let by_rate = payments as u64 * hour / 10_000;
    let least = hour * 3 / 2;
    if by_rate > least { by_rate } else { least }
}

struct Plan<'a> {
    setup: &'a Setup,
    steps: Vec<Step>,
    random: Random,
}

impl Plan<'_> {
    fn merchants(&mut self, span_ms: u64, payments: u32, random: &mut Random) {
        for merchant in 0..self.setup.merchants {
            for _ in 0..random.below(5) {
                let at = 30_000 + random.below(span_ms);
                let grace_seconds = *random.pick(&[0, 0, 60, 3_600]);
                let change = match random.below(7) {
                    0..3 => MerchantChange::RotateSecret { grace_seconds },
                    3 => MerchantChange::OtherAccount,
                    4 => MerchantChange::NewKey,
                    5 => {
                        let back = at + random.between(1_000, 300_000);
                        self.push(back, Action::ChangeMerchant { merchant, change: MerchantChange::SwitchOn });
                        MerchantChange::SwitchOff
                    }
                    _ => {
                        let back = at + random.between(1_000, 300_000);
                        self.push(back, Action::ChangeMerchant { merchant, change: MerchantChange::Endpoint });
                        MerchantChange::NoEndpoint
                    }
                };
                self.push(at, Action::ChangeMerchant { merchant, change });
            }
        }
        for resource in 0..u32::try_from(random.below(at_sellers(payments))).unwrap_or(0) {
            let agent = random.index(AGENTS);
            let units = random.between(1, 5_000);
            self.push(30_000 + random.below(span_ms), Action::Facilitate { agent, resource, units });
        }
    }

    /// Draws what merchants do with their sessions, mostly after these have ended, and what agents try without success.
    fn session_actions(&mut self, random: &mut Random) {
        let opened = self.steps.iter().filter_map(|step| match step.action {
            Action::Create { session, lifetime_seconds, .. } => {
                Some((session, step.at_ms, lifetime_seconds.unwrap_or(self.setup.lifetime_seconds) * 1_000))
            }
            _ => None,
        });
        for (session, start, lives_ms) in opened.collect::<Vec<_>>() {
            if random.chance(40_000) {
                let (agent, behavior) = (random.index(AGENTS), AgentBehavior::OtherCurrency);
                self.settle(start + 2_000 + random.below(lives_ms / 2), session, agent, behavior);
            }
            if !random.chance(200_000) {
                continue;
            }
            let action = *random.pick(&[
                SessionAction::Resolve,
                SessionAction::Refund,
                SessionAction::Refund,
                SessionAction::Redeliver,
                SessionAction::AccessByOther,
            ]);
            let at = match action {
                SessionAction::Resolve | SessionAction::Refund => start + lives_ms + random.below(900_000),
                _ => start + 5_000 + random.below(2 * lives_ms),
            };
            self.push(at, Action::ActOnSession { session, action });
            if matches!(action, SessionAction::Refund | SessionAction::Resolve) && random.chance(400_000) {
                self.push(at + 60_000 + random.below(300_000), Action::ActOnSession { session, action });
                self.push(at + 360_000 + random.below(300_000), Action::ActOnSession { session, action });
            }
            if random.chance(100_000) {
                let at = start + lives_ms + random.below(1_800_000);
                self.push(at, Action::ActOnSession { session, action: SessionAction::ReplayWebhooks });
            }
        }
    }

    /// Draws agents that present the payments of others.
    fn public_transactions(&mut self, random: &mut Random) {
        let opened = self.steps.iter().filter_map(|step| match step.action {
            Action::Create { session, .. } => Some((session, step.at_ms)),
            _ => None,
        });
        for (session, start) in opened.collect::<Vec<_>>() {
            if random.chance(60_000) {
                let (agent, at) = (random.index(AGENTS), start + 60_000 + random.below(1_800_000));
                self.settle(at, session, agent, AgentBehavior::ShowPublicTransaction);
            }
        }
    }

    /// Draws agents that pay sellers, and present one payment for several resources and to several sellers.
    fn sellers(&mut self, span_ms: u64, payments: u32, random: &mut Random) {
        for number in 0..u32::try_from(random.below(at_sellers(payments))).unwrap_or(0) {
            let (agent, units) = (random.index(AGENTS), random.between(1, 5_000));
            let mut at = 30_000 + random.below(span_ms);
            for _ in 0..random.between(1, 5) {
                let resource = if random.chance(250_000) { number + 1 } else { number };
                let seller = random.chance(600_000).then(|| random.index(self.setup.merchants));
                let key = random.chance(500_000).then_some(number);
                self.push(at, Action::Purchase { agent, resource, shown: number, seller, key, units });
                let most = *random.pick(&[2, 3_000, 30_000]);
                at += random.below(most);
            }
        }
    }

    /// Draws requests of the agent with a wallet: some are repeated, some at another price, and some runs request more within an hour
    /// than the wallet's policy permits.
    fn wallet_requests(&mut self, span_ms: u64, random: &mut Random) {
        let within = *random.pick(&[span_ms, span_ms.min(1_800_000)]);
        let start = 30_000 + random.below(span_ms - within + 1);
        for request in 0..u32::try_from(random.below(8)).unwrap_or(0) {
            let (mut at, mut units) = (start + random.below(within), random.between(1, 4_500));
            for _ in 0..random.between(1, 3) {
                self.push(at, Action::PayWithWallet { request, units });
                at += *random.pick(&[1, 4_000, 150_000, 900_000]);
                units = if random.chance(200_000) { random.between(1, 4_500) } else { units };
            }
        }
    }

    /// Draws agents that pay twice under one nonce, name another session in the memo of the fee, or spend their balance.
    fn dishonest_agents(&mut self, random: &mut Random) {
        let settled = self.steps.iter().filter_map(|step| match step.action {
            Action::Settle { session, agent, behavior: AgentBehavior::OwnBroadcast | AgentBehavior::Twice } => {
                Some((session, agent, step.at_ms))
            }
            _ => None,
        });
        for (session, agent, at) in settled.collect::<Vec<_>>() {
            if random.chance(500_000) {
                self.settle(at + random.below(30_000), session, agent, AgentBehavior::SameNonce);
            }
        }
        self.used_identifiers(random);
        let opened = self.steps.iter().filter_map(|step| match step.action {
            Action::Create { session, .. } => Some((session, step.at_ms)),
            _ => None,
        });
        for (session, start) in opened.collect::<Vec<_>>() {
            if self.setup.split_fee && random.chance(200_000) {
                let (payer, currency, memo) = (Some(random.index(PAYERS)), Currency::Hbd, Memo::Fee);
                let at = start + 2_000 + random.below(3_600_000);
                self.push(at, Action::Pay { session, payer, units: 1, currency, memo });
            }
            if random.chance(30_000) {
                let (payer, units) = (Some(random.index(PAYERS)), random.between(1, 500));
                let (at, currency, memo) = (start + 2_000 + random.below(600_000), Currency::Hbd, Memo::Refund);
                self.push(at, Action::Pay { session, payer, units, currency, memo });
            }
            if random.chance(if self.setup.split_fee { 160_000 } else { 80_000 }) {
                const TRICKS: [AgentBehavior; 7] = [
                    AgentBehavior::ReplaceKeys,
                    AgentBehavior::SpendFirst,
                    AgentBehavior::FarExpiration,
                    AgentBehavior::FurtherTransfer,
                    AgentBehavior::OtherFeeMemo,
                    AgentBehavior::OtherFeeCurrency,
                    AgentBehavior::SmallFee,
                ];
                // The last three are about the fee.
                let tricks = if self.setup.split_fee { &TRICKS[..] } else { &TRICKS[..4] };
                let behavior = *random.pick(tricks);
                let at = start + 2_000 + random.below(30_000);
                self.settle(at, session, random.index(AGENTS), behavior);
            }
        }
    }

    /// Draws agents that pay under the identifier of another agent's payment.
    fn used_identifiers(&mut self, random: &mut Random) {
        let settled = self.steps.iter().filter_map(|step| match step.action {
            Action::Settle { session, agent, behavior: AgentBehavior::Honest | AgentBehavior::Twice } => {
                Some((session, agent, step.at_ms))
            }
            _ => None,
        });
        for (session, agent, at) in settled.collect::<Vec<_>>() {
            if random.chance(250_000) {
                self.settle(at + 1_000 + random.below(60_000), session, agent, AgentBehavior::SameIdentifier);
            }
        }
    }

    fn push(&mut self, at_ms: u64, action: Action) {
        self.steps.push(Step::new(at_ms, action));
    }

    fn settle(&mut self, at_ms: u64, session: u32, agent: usize, behavior: AgentBehavior) {
        self.push(at_ms, Action::Settle { session, agent, behavior });
    }
}
