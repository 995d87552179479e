//! Writes a script from a seed: customers of every kind, agents, and what merchants do meanwhile.

mod owners;
mod visits;

use engine::money::Currency;

use crate::{
    options::{Fault, Faults, Setup},
    random::Random,
    script::{Action, Change, Deed, Memo, Script, Step, Trick},
};

/// How the faults of a campaign's runs are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// Each run draws its own.
    Swarm,
    /// Everything at once, at its default rate.
    AllOn,
    /// Every third run has everything on, every eighth strikes a minority of nodes only, every 24th lasts for days, every
    /// twelfth damages rows only; the others draw.
    Both,
    /// Each run draws what goes wrong with a minority of nodes; nothing else does.
    Nodes,
    /// Each run draws its own, and lasts 6 to 40 days.
    Days,
    /// Rows are damaged on disk; nothing else goes wrong.
    Rows,
    /// Nothing goes wrong.
    None,
    /// As [`Mix::Both`], except that no run lasts for days: clients call through the interface that is installed.
    Facade,
}

/// Payers with an account each.
pub const PAYERS: usize = 6;
/// Agents with an account each.
pub const AGENTS: usize = 4;

macro_rules! customers {
    ($($name:ident = $weight:literal, $says:literal;)*) => {
        /// A kind of customer.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Customer { $(#[doc = $says] $name,)* }
        impl Customer {
            const ALL: &'static [Self] = &[$(Self::$name,)*];
            const WEIGHTS: &'static [u32] = &[$($weight,)*];
        }
    };
}

customers! {
    Exact = 24, "Pays exactly, in time.";
    Never = 6, "Never pays.";
    Late = 4, "Pays when the time is over.";
    AtExpiry = 6, "Pays within seconds of the expiry.";
    Partial = 3, "Pays a part and no more.";
    TopUp = 6, "Pays in parts that add up.";
    LateTopUp = 2, "Pays a part in time and the rest too late.";
    Over = 3, "Pays too much.";
    WrongMemo = 4, "Pays with a memo that names no session.";
    NoisyMemo = 3, "Pays with words around the memo.";
    WrongAsset = 3, "Pays in the other currency, then perhaps rightly.";
    Double = 4, "Pays twice.";
    Race = 4, "Two customers pay one session.";
    Dust = 2, "Sends dust, then pays.";
    MerchantPays = 2, "The merchant pays itself.";
    Cancels = 4, "Cancels and does not pay.";
    CancelRace = 8, "Cancels while a payment is on its way.";
    PaysCancelled = 3, "Pays what it has cancelled.";
    Agent = 12, "An agent pays by x402.";
    AgentTwice = 3, "An agent asks twice at once.";
    AgentRace = 4, "Two agents pay one session.";
    AgentReplay = 4, "An agent hands in what it paid another session with.";
    AgentOwn = 3, "An agent broadcasts its payment itself, too.";
    AgentAndWallet = 5, "An agent and a wallet pay one session.";
    AgentPartPaid = 2, "An agent pays a session that is partly paid.";
    AgentWrong = 3, "An agent pays wrongly: too little, without money, nearly expired.";
    AgentNonce = 3, "An agent's memo is its nonce.";
    AgentCancel = 4, "An agent pays while somebody cancels.";
    AgentAtExpiry = 3, "An agent pays at the last moment.";
    Recurrent = 2, "Sets up a recurrent transfer, then perhaps pays.";
    Early = 3, "Pays a session of another engine before it is known here.";
}

/// Writes the script of a seed.
#[must_use]
pub fn of_seed(seed: u64, payments: u32, mix: Mix) -> Script {
    let root = Random::new(seed);
    let mut random = root.fork("setup");
    let facade = mix == Mix::Facade;
    let mix = match mix {
        Mix::Both | Mix::Facade if seed % 8 == 5 => Mix::Nodes,
        Mix::Both if seed % 24 == 11 => Mix::Days,
        Mix::Both if seed % 12 == 7 => Mix::Rows,
        mix => mix,
    };
    let mut faults = match mix {
        Mix::None => Faults::default(),
        Mix::Nodes => Faults::of_nodes(&mut root.fork("faults")),
        Mix::Rows => Faults::of_rows(),
        Mix::AllOn => Faults::all_on(),
        Mix::Both | Mix::Facade if seed.is_multiple_of(3) => Faults::all_on(),
        Mix::Swarm | Mix::Both | Mix::Days | Mix::Facade => Faults::swarm(&mut root.fork("faults")),
    };
    if facade {
        // Of damaged rows clients hear as the interface has it: 500 record_damaged, which nothing here expects; of a restored
        // backup that what they know is not there.
        faults.set(Fault::RowDamaged, 0);
        faults.set(Fault::Restored, 0);
    }
    let mut setup = Setup { facade, ..Setup::swarm(&mut random) };
    setup.seal_secrets = root.fork("vault").chance(500_000);
    if mix == Mix::Nodes {
        setup.spare_a_majority(&mut random);
    }
    if mix == Mix::Rows {
        setup.read_from_disk();
    }
    if mix == Mix::Days {
        setup.last_days(&mut random);
    }
    if payments > 500 {
        // Thousands of sessions through one awake actor only measure the parking.
        setup.max_awake = setup.max_awake.max(50);
        setup.cache_bytes = 16 * 1024 * 1024;
        setup.log_bytes = setup.log_bytes.max(1024 * 1024);
    }
    let mut steps = steps(&setup, &root, payments);
    if facade {
        visits::visits(&mut steps, &setup, &mut root.fork("visits"));
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
        names: Vec::new(),
    }
}

/// Draws what customers and merchants do in a world.
pub(crate) fn steps(setup: &Setup, root: &Random, payments: u32) -> Vec<Step> {
    let span_ms = span_ms(setup, payments);
    let mut plan = Plan { setup, steps: Vec::new(), random: root.fork("customers") };
    for session in 0..payments {
        plan.customer(session, span_ms);
    }
    plan.merchants(span_ms, payments, &mut root.fork("merchants"));
    plan.desks(&mut root.fork("desks"));
    plan.strangers(&mut root.fork("strangers"));
    plan.sellers(span_ms, payments, &mut root.fork("sellers"));
    plan.tricksters(&mut root.fork("tricksters"));
    owners::owners(&mut plan.steps, setup, span_ms, &mut root.fork("owners"));
    plan.steps
}

/// Says whether a memo leaves no doubt about the session, so that its money counts.
pub(crate) const fn is_plain_memo(memo: Memo) -> bool {
    matches!(memo, Memo::Exact | Memo::Noisy | Memo::TwoTransfers)
}

/// One more than the payments for sellers' resources that a world has at most.
fn at_sellers(payments: u32) -> u64 {
    6 + u64::from(payments) / 500
}

/// How long customers keep coming: an hour and a half, and longer for more than ten thousand; or the days of the setup.
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
    fn customer(&mut self, session: u32, span_ms: u64) {
        let kind = Customer::ALL[self.random.weighted(Customer::WEIGHTS)];
        let start = 20_000 + self.random.below(span_ms);
        let merchant = self.random.index(self.setup.merchants);
        let units = match self.random.below(6) {
            0 => 1,
            1 => self.random.between(2, 99),
            2 => 2_000_000,
            _ => self.random.between(100, 50_000),
        };
        let is_hive = self.random.chance(300_000) && kind != Customer::Early;
        let currency = if is_hive { Currency::Hive } else { Currency::Hbd };
        let lifetime_seconds = self.random.chance(200_000).then(|| self.random.between(60, 600));
        let lives_ms = lifetime_seconds.unwrap_or(self.setup.lifetime_seconds) * 1_000;
        let opened = match kind {
            Customer::Early => Action::OpenElsewhere { session, merchant, units, lifetime_seconds },
            _ => Action::Create { session, merchant, units, currency, lifetime_seconds },
        };
        self.push(start, opened);
        let mut customer = One { session, start, lives_ms, units, currency, payer: self.random.index(PAYERS) };
        let soon = start + 500 + self.random.below(lives_ms / 2);
        let end = start + lives_ms + self.setup.grace_seconds * 1_000;
        self.steps_of(kind, &mut customer, soon, end);
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each kind of customer; a table reads best whole")]
    fn steps_of(&mut self, kind: Customer, one: &mut One, soon: u64, end: u64) {
        let (session, units) = (one.session, one.units);
        let agent = self.random.index(AGENTS);
        let near = |random: &mut Random, at: u64, by: u64| at.saturating_sub(by) + random.below(2 * by + 1);
        match kind {
            Customer::Exact => self.pay(soon, one, units),
            Customer::Never => {}
            Customer::Late => {
                let at = end + self.random.between(1, 120_000);
                self.pay(at, one, units);
            }
            Customer::AtExpiry => {
                let at = near(&mut self.random, end, 9_000);
                self.pay(at, one, units);
            }
            Customer::Partial => self.pay(soon, one, (units / 2).max(1)),
            Customer::TopUp | Customer::LateTopUp => {
                let part = self.random.between(1, units);
                self.pay(soon, one, part);
                let mut left = units - part;
                let mut at = if kind == Customer::TopUp { soon } else { end };
                while left > 0 {
                    at += self.random.below(one.lives_ms / 3 + 1);
                    let part = if self.random.chance(600_000) { left } else { self.random.between(1, left) };
                    self.pay(at, one, part);
                    left -= part;
                }
            }
            Customer::Over => {
                let more = self.random.between(1, units);
                self.pay(soon, one, units + more);
            }
            Customer::WrongMemo => {
                let memos = [Memo::Empty, Memo::Words, Memo::Encrypted, Memo::Two, Memo::Unknown];
                let memo = *self.random.pick(&memos);
                self.pay_with(soon, one, units, memo);
                if self.random.chance(300_000) {
                    let at = soon + self.random.below(30_000);
                    self.pay(at, one, units);
                } else if self.random.chance(500_000) {
                    let at = soon + 60_000 + self.random.below(120_000);
                    self.push(at, Action::Assign { session });
                }
            }
            Customer::NoisyMemo => self.pay_with(soon, one, units, Memo::Noisy),
            Customer::WrongAsset => {
                let right = one.currency;
                one.currency = if right == Currency::Hbd { Currency::Hive } else { Currency::Hbd };
                self.pay(soon, one, units);
                one.currency = right;
                if self.random.chance(500_000) {
                    let at = soon + self.random.below(60_000);
                    self.pay(at, one, units);
                }
            }
            Customer::Double => {
                self.pay(soon, one, units);
                let at = soon + self.random.pick(&[0, 1_000, 20_000, 600_000]);
                self.pay(at, one, units);
            }
            Customer::Race => {
                self.pay(soon, one, units);
                one.payer = (one.payer + 1) % PAYERS;
                let at = soon + self.random.below(4_000);
                self.pay(at, one, units);
            }
            Customer::Dust => {
                for number in 0..self.random.between(1, 8) {
                    let at = one.start + 500 + self.random.below(one.lives_ms / 2);
                    match number {
                        // Somebody else sends a flood of it, every second one in the other currency.
                        0 => {
                            let is_hbd = (one.currency == Currency::Hbd) == (session % 4 < 2);
                            let currency = if is_hbd { Currency::Hbd } else { Currency::Hive };
                            let (payer, memo) = (Some((one.payer + 1) % PAYERS), Memo::Flood);
                            self.push(at, Action::Pay { session, payer, units: 25, currency, memo });
                        }
                        _ => self.pay(at, one, 1),
                    }
                }
                self.pay(soon, one, units);
            }
            Customer::MerchantPays => {
                let (currency, memo) = (one.currency, Memo::Exact);
                self.push(soon, Action::Pay { session, payer: None, units, currency, memo });
            }
            Customer::Cancels => self.cancel(soon, one),
            Customer::CancelRace => {
                self.pay(soon, one, units);
                let at = near(&mut self.random, soon, 8_000);
                self.cancel(at.max(one.start + 200), one);
            }
            Customer::PaysCancelled => {
                self.cancel(soon, one);
                let at = soon + self.random.below(60_000);
                self.pay(at, one, units);
            }
            Customer::Agent => self.settle(soon, session, agent, Trick::None),
            Customer::AgentTwice => self.settle(soon, session, agent, Trick::Twice),
            Customer::AgentRace => {
                self.settle(soon, session, agent, Trick::None);
                let at = soon + self.random.below(6_000);
                self.settle(at, session, (agent + 1) % AGENTS, Trick::None);
            }
            Customer::AgentReplay => {
                let of =
                    if session == 0 { 0 } else { u32::try_from(self.random.below(u64::from(session))).unwrap_or(0) };
                self.settle(soon, session, agent, Trick::Replay { of });
                if self.random.chance(500_000) {
                    let at = soon + self.random.below(20_000);
                    self.settle(at, session, agent, Trick::None);
                }
            }
            Customer::AgentOwn => self.settle(soon, session, agent, Trick::OwnBroadcast),
            Customer::AgentAndWallet => {
                self.settle(soon, session, agent, Trick::None);
                let at = near(&mut self.random, soon, 6_000);
                self.pay(at.max(one.start + 200), one, units);
            }
            Customer::AgentPartPaid => {
                self.pay(soon, one, (units / 2).max(1));
                let at = soon + self.random.below(one.lives_ms / 3 + 1);
                self.settle(at, session, agent, Trick::None);
            }
            Customer::AgentWrong => {
                let trick = *self.random.pick(&[Trick::TooLittle, Trick::Expiring, Trick::Poor]);
                self.settle(soon, session, agent, trick);
            }
            Customer::AgentNonce => self.settle(soon, session, agent, Trick::NonceMemo),
            Customer::AgentCancel => {
                self.settle(soon, session, agent, Trick::None);
                let at = near(&mut self.random, soon, 3_000);
                self.cancel(at.max(one.start + 200), one);
            }
            Customer::AgentAtExpiry => {
                let at = near(&mut self.random, end, 5_000);
                self.settle(at, session, agent, Trick::None);
            }
            Customer::Recurrent => {
                let (payer, currency) = (one.payer, one.currency);
                self.push(soon, Action::PayAgain { session, payer, units, currency, every_hours: 24, times: 2 });
                if self.random.chance(300_000) {
                    let at = soon + self.random.below(60_000);
                    self.pay(at, one, units);
                } else if self.random.chance(500_000) {
                    let at = soon + 60_000 + self.random.below(120_000);
                    self.push(at, Action::Assign { session });
                }
            }
            Customer::Early => {
                let first = self.random.between(1, units);
                self.pay(soon, one, first);
                if first < units {
                    let at = soon + self.random.below(one.lives_ms);
                    self.pay(at, one, units - first);
                }
                // Records get here in a moment, in a while, or when the session's time is over.
                let late = *self.random.pick(&[2_000, 30_000, one.lives_ms, 2 * one.lives_ms]);
                let at = soon + self.random.below(late);
                self.push(at, Action::HandOver { session });
            }
        }
    }

    fn merchants(&mut self, span_ms: u64, payments: u32, random: &mut Random) {
        for merchant in 0..self.setup.merchants {
            for _ in 0..random.below(5) {
                let at = 30_000 + random.below(span_ms);
                let grace_seconds = *random.pick(&[0, 0, 60, 3_600]);
                let change = match random.below(7) {
                    0..3 => Change::RotateSecret { grace_seconds },
                    3 => Change::OtherAccount,
                    4 => Change::NewKey,
                    5 => {
                        let back = at + random.between(1_000, 300_000);
                        self.push(back, Action::Merchant { merchant, change: Change::SwitchOn });
                        Change::SwitchOff
                    }
                    _ => {
                        let back = at + random.between(1_000, 300_000);
                        self.push(back, Action::Merchant { merchant, change: Change::Endpoint });
                        Change::NoEndpoint
                    }
                };
                self.push(at, Action::Merchant { merchant, change });
            }
        }
        for resource in 0..u32::try_from(random.below(at_sellers(payments))).unwrap_or(0) {
            let agent = random.index(AGENTS);
            let units = random.between(1, 5_000);
            self.push(30_000 + random.below(span_ms), Action::Facilitate { agent, resource, units });
        }
    }

    /// What merchants do about their sessions, most of it when these are over; and what agents try in vain.
    fn desks(&mut self, random: &mut Random) {
        let opened = self.steps.iter().filter_map(|step| match step.action {
            Action::Create { session, lifetime_seconds, .. } => {
                Some((session, step.at_ms, lifetime_seconds.unwrap_or(self.setup.lifetime_seconds) * 1_000))
            }
            _ => None,
        });
        for (session, start, lives_ms) in opened.collect::<Vec<_>>() {
            if random.chance(40_000) {
                let (agent, trick) = (random.index(AGENTS), Trick::OtherCurrency);
                self.settle(start + 2_000 + random.below(lives_ms / 2), session, agent, trick);
            }
            if !random.chance(200_000) {
                continue;
            }
            let deed = *random.pick(&[Deed::Resolve, Deed::Refund, Deed::Refund, Deed::Redeliver, Deed::Meddle]);
            let at = match deed {
                Deed::Resolve | Deed::Refund => start + lives_ms + random.below(900_000),
                _ => start + 5_000 + random.below(2 * lives_ms),
            };
            self.push(at, Action::Desk { session, deed });
            if deed == Deed::Refund && random.chance(300_000) {
                self.push(at + 60_000 + random.below(300_000), Action::Desk { session, deed });
            }
            if random.chance(100_000) {
                let at = start + lives_ms + random.below(1_800_000);
                self.push(at, Action::Desk { session, deed: Deed::Reconnect });
            }
        }
    }

    /// Agents who try to buy with what others paid.
    fn strangers(&mut self, random: &mut Random) {
        let opened = self.steps.iter().filter_map(|step| match step.action {
            Action::Create { session, .. } => Some((session, step.at_ms)),
            _ => None,
        });
        for (session, start) in opened.collect::<Vec<_>>() {
            if random.chance(60_000) {
                let (agent, at) = (random.index(AGENTS), start + 60_000 + random.below(1_800_000));
                self.settle(at, session, agent, Trick::Public);
            }
        }
    }

    /// Agents who pay sellers, and show one payment at several resources and to several sellers.
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

    /// Agents who pay twice under one nonce, who name another session in the memo of the fee, and who spend their money.
    fn tricksters(&mut self, random: &mut Random) {
        let settled = self.steps.iter().filter_map(|step| match step.action {
            Action::Settle { session, agent, trick: Trick::OwnBroadcast | Trick::Twice } => {
                Some((session, agent, step.at_ms))
            }
            _ => None,
        });
        for (session, agent, at) in settled.collect::<Vec<_>>() {
            if random.chance(500_000) {
                self.settle(at + random.below(30_000), session, agent, Trick::SameNonce);
            }
        }
        let opened = self.steps.iter().filter_map(|step| match step.action {
            Action::Create { session, .. } => Some((session, step.at_ms)),
            _ => None,
        });
        for (session, start) in opened.collect::<Vec<_>>() {
            if random.chance(30_000) {
                let (payer, units) = (Some(random.index(PAYERS)), random.between(1, 500));
                let (at, currency, memo) = (start + 2_000 + random.below(600_000), Currency::Hbd, Memo::Refund);
                self.push(at, Action::Pay { session, payer, units, currency, memo });
            }
            if random.chance(40_000) {
                let tricks = [Trick::OtherFeeMemo, Trick::Spends];
                let trick = if self.setup.split_fee { *random.pick(&tricks) } else { Trick::Spends };
                let at = start + 2_000 + random.below(30_000);
                self.settle(at, session, random.index(AGENTS), trick);
            }
        }
    }

    fn push(&mut self, at_ms: u64, action: Action) {
        self.steps.push(Step { at_ms, action });
    }

    fn pay(&mut self, at_ms: u64, one: &One, units: u64) {
        self.pay_with(at_ms, one, units, Memo::Exact);
    }

    fn pay_with(&mut self, at_ms: u64, one: &One, units: u64, memo: Memo) {
        let One { session, currency, payer, .. } = *one;
        self.push(at_ms, Action::Pay { session, payer: Some(payer), units, currency, memo });
    }

    fn cancel(&mut self, at_ms: u64, one: &One) {
        let by_merchant = self.random.chance(500_000);
        self.push(at_ms, Action::Cancel { session: one.session, by_merchant });
    }

    fn settle(&mut self, at_ms: u64, session: u32, agent: usize, trick: Trick) {
        self.push(at_ms, Action::Settle { session, agent, trick });
    }
}

/// One customer's affair.
struct One {
    session: u32,
    start: u64,
    lives_ms: u64,
    units: u64,
    currency: Currency,
    payer: usize,
}
