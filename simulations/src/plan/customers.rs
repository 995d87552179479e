//! Customers and agents: how each kind pays a session, or does not.

use super::*;

macro_rules! customers {
    ($($name:ident = $weight:literal, $doc:literal;)*) => {
        /// A kind of customer.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Customer { $(#[doc = $doc] $name,)* }
        impl Customer {
            const ALL: &'static [Self] = &[$(Self::$name,)*];
            const WEIGHTS: &'static [u32] = &[$($weight,)*];
        }
    };
}

customers! {
    Exact = 24, "Pays exactly, in time.";
    Never = 6, "Never pays.";
    Late = 4, "Pays after the expiry.";
    AtExpiry = 6, "Pays within seconds of the expiry.";
    Partial = 3, "Pays a part and no more.";
    TopUp = 6, "Pays in parts that add up.";
    LateTopUp = 2, "Pays a part in time and the rest too late.";
    Over = 3, "Pays too much.";
    WrongMemo = 4, "Pays with a memo that names no session.";
    NoisyMemo = 3, "Pays with a memo that has words around the id.";
    WrongAsset = 3, "Pays in the other currency, and then in the right one in some cases.";
    Double = 4, "Pays twice.";
    Race = 4, "Two customers pay one session.";
    Dust = 2, "Sends dust, then pays.";
    MerchantPays = 2, "The merchant pays its own session.";
    Cancels = 4, "Cancels and does not pay.";
    CancelRace = 8, "Cancels while a payment is in flight.";
    PaysCancelled = 3, "Pays a session that it has cancelled.";
    Agent = 12, "An agent pays by x402.";
    AgentTwice = 3, "An agent sends two settlement requests at once.";
    AgentRace = 4, "Two agents pay one session.";
    AgentReplay = 4, "An agent presents what it paid another session with.";
    AgentOwn = 3, "An agent also broadcasts its payment itself.";
    AgentAndWallet = 5, "An agent and a wallet pay one session.";
    AgentPartPaid = 2, "An agent pays a session that is partly paid.";
    AgentWrong = 3, "An agent's payment is invalid: too little, without money, or about to expire.";
    AgentNonce = 3, "An agent's memo is its nonce.";
    AgentCancel = 4, "An agent pays while its session is cancelled.";
    AgentAtExpiry = 3, "An agent pays at the last moment.";
    Recurrent = 2, "Sets up a recurrent transfer, and pays in some cases.";
    Early = 3, "Pays a session of another engine before this engine knows it.";
}

/// A session and the customer who pays it. Times are virtual milliseconds.
struct CustomerSession {
    session: u32,
    /// When it is created.
    start: u64,
    /// Its lifetime.
    lives_ms: u64,
    /// A time in the first half of its lifetime.
    soon: u64,
    /// When it expires, the grace period included.
    end: u64,
    units: u64,
    currency: Currency,
    payer: usize,
    agent: usize,
}

impl Plan<'_> {
    /// Draws a session and what its customer does.
    pub(super) fn customer(&mut self, session: u32, span_ms: u64) {
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
        let created = match kind {
            Customer::Early => Action::CreateElsewhere { session, merchant, units, lifetime_seconds },
            _ => Action::Create { session, merchant, units, currency, lifetime_seconds },
        };
        self.push(start, created);
        let payer = self.random.index(PAYERS);
        let soon = start + 500 + self.random.below(lives_ms / 2);
        let end = start + lives_ms + self.setup.grace_seconds * 1_000;
        let agent = self.random.index(AGENTS);
        let mut one = CustomerSession { session, start, lives_ms, soon, end, units, currency, payer, agent };
        match kind {
            Customer::Exact
            | Customer::Never
            | Customer::Late
            | Customer::AtExpiry
            | Customer::Partial
            | Customer::TopUp
            | Customer::LateTopUp
            | Customer::Over
            | Customer::Double
            | Customer::Race
            | Customer::Cancels
            | Customer::CancelRace
            | Customer::PaysCancelled => self.pay_with_wallet(kind, &mut one),
            Customer::WrongMemo
            | Customer::NoisyMemo
            | Customer::WrongAsset
            | Customer::Dust
            | Customer::MerchantPays
            | Customer::Recurrent
            | Customer::Early => self.pay_unusually(kind, &mut one),
            _ => self.pay_by_agent(kind, &one),
        }
    }

    /// Draws the steps of customers who pay with a wallet: amounts, times and number of transfers.
    fn pay_with_wallet(&mut self, kind: Customer, one: &mut CustomerSession) {
        let (soon, units) = (one.soon, one.units);
        match kind {
            Customer::Exact => self.pay(soon, one, units),
            Customer::Late => {
                let at = one.end + self.random.between(1, 120_000);
                self.pay(at, one, units);
            }
            Customer::AtExpiry => {
                let at = near(&mut self.random, one.end, 9_000);
                self.pay(at, one, units);
            }
            Customer::Partial => self.pay(soon, one, (units / 2).max(1)),
            Customer::TopUp => self.pay_in_parts(one, soon),
            Customer::LateTopUp => self.pay_in_parts(one, one.end),
            Customer::Over => {
                let more = self.random.between(1, units);
                self.pay(soon, one, units + more);
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
            _ => {}
        }
    }

    /// Pays a part soon and the rest in further parts after `rest_at`.
    fn pay_in_parts(&mut self, one: &CustomerSession, rest_at: u64) {
        let part = self.random.between(1, one.units);
        self.pay(one.soon, one, part);
        let mut left = one.units - part;
        let mut at = rest_at;
        while left > 0 {
            at += self.random.below(one.lives_ms / 3 + 1);
            let part = if self.random.chance(600_000) { left } else { self.random.between(1, left) };
            self.pay(at, one, part);
            left -= part;
        }
    }

    /// Draws the steps of customers whose transfers are unusual: memo, currency, sender, or a session that is not known yet.
    fn pay_unusually(&mut self, kind: Customer, one: &mut CustomerSession) {
        let (session, soon, units) = (one.session, one.soon, one.units);
        match kind {
            Customer::WrongMemo => {
                let memos = [Memo::Empty, Memo::Words, Memo::Encrypted, Memo::Two, Memo::Unknown];
                let memo = *self.random.pick(&memos);
                self.pay_with(soon, one, units, memo);
                self.pay_or_assign(one, 30_000);
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
            Customer::Dust => {
                self.send_dust(one);
                self.pay(soon, one, units);
            }
            Customer::MerchantPays => {
                let (currency, memo) = (one.currency, Memo::Exact);
                self.push(soon, Action::Pay { session, payer: None, units, currency, memo });
            }
            Customer::Recurrent => {
                let (payer, currency) = (one.payer, one.currency);
                self.push(soon, Action::PayAgain { session, payer, units, currency, every_hours: 24, times: 2 });
                self.pay_or_assign(one, 60_000);
            }
            Customer::Early => self.pay_before_hand_over(one),
            _ => {}
        }
    }

    /// After an unmatched transfer, the customer pays within `within_ms`, or the merchant assigns the transfer, or
    /// nothing happens.
    fn pay_or_assign(&mut self, one: &CustomerSession, within_ms: u64) {
        if self.random.chance(300_000) {
            let at = one.soon + self.random.below(within_ms);
            self.pay(at, one, one.units);
        } else if self.random.chance(500_000) {
            let at = one.soon + 60_000 + self.random.below(120_000);
            self.push(at, Action::Assign { session: one.session });
        }
    }

    /// Sends transfers of the smallest amount.
    fn send_dust(&mut self, one: &CustomerSession) {
        let session = one.session;
        for number in 0..self.random.between(1, 8) {
            let at = one.start + 500 + self.random.below(one.lives_ms / 2);
            if number > 0 {
                self.pay(at, one, 1);
                continue;
            }
            // Another payer sends many at once; in every second session in the other currency.
            let is_hbd = (one.currency == Currency::Hbd) == (session % 4 < 2);
            let currency = if is_hbd { Currency::Hbd } else { Currency::Hive };
            let (payer, memo) = (Some((one.payer + 1) % PAYERS), Memo::Flood);
            self.push(at, Action::Pay { session, payer, units: 25, currency, memo });
        }
    }

    /// Pays a session of another engine before this engine knows it.
    fn pay_before_hand_over(&mut self, one: &CustomerSession) {
        let first = self.random.between(1, one.units);
        self.pay(one.soon, one, first);
        if first < one.units {
            let at = one.soon + self.random.below(one.lives_ms);
            self.pay(at, one, one.units - first);
        }
        // The record is copied within seconds, or after the session has expired.
        let latest = *self.random.pick(&[2_000, 30_000, one.lives_ms, 2 * one.lives_ms]);
        let at = one.soon + self.random.below(latest);
        self.push(at, Action::HandOver { session: one.session });
    }

    /// Draws the steps of agents.
    fn pay_by_agent(&mut self, kind: Customer, one: &CustomerSession) {
        let CustomerSession { session, soon, units, agent, .. } = *one;
        match kind {
            Customer::Agent => self.settle(soon, session, agent, AgentBehavior::Honest),
            Customer::AgentTwice => self.settle(soon, session, agent, AgentBehavior::Twice),
            Customer::AgentOwn => self.settle(soon, session, agent, AgentBehavior::OwnBroadcast),
            Customer::AgentNonce => self.settle(soon, session, agent, AgentBehavior::NonceMemo),
            Customer::AgentRace => {
                self.settle(soon, session, agent, AgentBehavior::Honest);
                let at = soon + self.random.below(6_000);
                self.settle(at, session, (agent + 1) % AGENTS, AgentBehavior::Honest);
            }
            Customer::AgentReplay => {
                let earlier = if session == 0 { 0 } else { self.random.below(u64::from(session)) };
                let of = u32::try_from(earlier).unwrap_or(0);
                self.settle(soon, session, agent, AgentBehavior::Replay { of });
                if self.random.chance(500_000) {
                    let at = soon + self.random.below(20_000);
                    self.settle(at, session, agent, AgentBehavior::Honest);
                }
            }
            Customer::AgentAndWallet => {
                self.settle(soon, session, agent, AgentBehavior::Honest);
                let at = near(&mut self.random, soon, 6_000);
                self.pay(at.max(one.start + 200), one, units);
            }
            Customer::AgentPartPaid => {
                self.pay(soon, one, (units / 2).max(1));
                let at = soon + self.random.below(one.lives_ms / 3 + 1);
                self.settle(at, session, agent, AgentBehavior::Honest);
            }
            Customer::AgentWrong => {
                let behaviors = [AgentBehavior::TooLittle, AgentBehavior::Expiring, AgentBehavior::NoMoney];
                let behavior = *self.random.pick(&behaviors);
                self.settle(soon, session, agent, behavior);
            }
            Customer::AgentCancel => {
                self.settle(soon, session, agent, AgentBehavior::Honest);
                let at = near(&mut self.random, soon, 3_000);
                self.cancel(at.max(one.start + 200), one);
            }
            Customer::AgentAtExpiry => {
                let at = near(&mut self.random, one.end, 5_000);
                self.settle(at, session, agent, AgentBehavior::Honest);
            }
            _ => {}
        }
    }

    fn pay(&mut self, at_ms: u64, one: &CustomerSession, units: u64) {
        self.pay_with(at_ms, one, units, Memo::Exact);
    }

    fn pay_with(&mut self, at_ms: u64, one: &CustomerSession, units: u64, memo: Memo) {
        let CustomerSession { session, currency, payer, .. } = *one;
        self.push(at_ms, Action::Pay { session, payer: Some(payer), units, currency, memo });
    }

    fn cancel(&mut self, at_ms: u64, one: &CustomerSession) {
        let by_merchant = self.random.chance(500_000);
        self.push(at_ms, Action::Cancel { session: one.session, by_merchant });
    }
}

/// Draws a time at most `by` before or after another.
fn near(random: &mut Random, at: u64, by: u64) -> u64 {
    at.saturating_sub(by) + random.below(2 * by + 1)
}
