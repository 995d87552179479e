//! The durable ledger of an agent's wallet, and what the chain must show of it. The rules are those of [`engine::wallet`].

use std::{collections::BTreeMap, time::Duration};

use engine::{
    account::AccountName,
    ledger::TxId,
    money::Currency,
    time::Timestamp,
    wallet::{
        Approval, Counted, Limits, Period, Policy, Refusal, Rejection, Spending, State, Step, Verdict, wallet_time,
    },
    x402::PaymentPayload,
};

use crate::ledger::Chain;

/// The account of the agent with a wallet.
pub(crate) const WALLET: &str = "wallet.agent";
/// Maximum amount of one payment, in 1/1000 HBD.
const PAYMENT_LIMIT: u64 = 4_000;
/// Maximum sum of any 60 minutes.
const HOUR_LIMIT: u64 = 9_000;
/// Amounts above need an operator's approval.
const APPROVAL_ABOVE: u64 = 3_000;
const HOUR: Duration = Duration::from_secs(3_600);

/// The ledger: it survives every kill of the agent.
#[derive(Debug, Default)]
pub(crate) struct AgentWallet {
    entries: Vec<Entry>,
    /// The wallet's time, which never runs backwards.
    clock: Timestamp,
    /// The highest amount that an operator has approved for each request.
    approved: BTreeMap<u32, u64>,
}

/// One payment.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    request: u32,
    pub(crate) state: State,
    spending: Spending,
    decision: Option<Approval>,
    pub(crate) payment: Option<Payment>,
}

/// The transaction of a payment.
#[derive(Debug, Clone)]
pub(crate) struct Payment {
    pub(crate) tx_id: TxId,
    pub(crate) expires_at: Timestamp,
    pub(crate) payload: PaymentPayload,
}

/// The result of a reservation.
pub(crate) enum Reservation {
    /// A payment to submit.
    Submit(usize),
    /// An operator must decide on the entry.
    AwaitApproval(usize),
    /// The policy refuses it.
    Refused(Refusal),
}

fn policy() -> Policy {
    let limits = [(Period::Payment, PAYMENT_LIMIT), (Period::Hour, HOUR_LIMIT)];
    let limits: Limits = limits.into_iter().map(|(period, units)| ((period, Currency::Hbd), units)).collect();
    Policy { limits, approval_above: BTreeMap::from([(Currency::Hbd, APPROVAL_ABOVE)]), ..Policy::default() }
}

impl AgentWallet {
    /// Returns the number of a request's latest entry.
    pub(crate) fn latest(&self, request: u32) -> Option<usize> {
        self.entries.iter().rposition(|entry| entry.request == request)
    }

    pub(crate) fn entry(&self, number: usize) -> Option<&Entry> {
        self.entries.get(number)
    }

    /// Reserves a payment, or returns the one that the request has. `make` makes the transaction.
    pub(crate) fn reserve(
        &mut self,
        request: u32,
        spending: &Spending,
        (clock, head): (Timestamp, Timestamp),
        make: impl FnOnce() -> Payment,
    ) -> Result<Reservation, Rejection> {
        let now = wallet_time(self.clock, clock, head);
        self.clock = now;
        let past: Vec<Counted> = self.entries.iter().filter_map(Entry::counted).collect();
        let latest = self.latest(request);
        let known = latest.and_then(|number| self.entries.get(number));
        let verdict = policy().decide(spending, known.map(|entry| (entry.state, entry.decision.as_ref())), &past, now);
        let is_undecided = |entry: &&Entry| matches!(entry.state, State::AwaitingApproval | State::Approved);
        let undecided = latest.filter(|_| known.as_ref().is_some_and(is_undecided));
        match (verdict, latest) {
            (Verdict::Repeat, Some(number)) => Ok(Reservation::Submit(number)),
            (Verdict::Refuse(refusal), _) => Ok(Reservation::Refused(refusal)),
            (Verdict::AwaitApproval(_), _) => {
                let number = self.begin(undecided, request, spending);
                let entry = &mut self.entries[number];
                (entry.state, entry.decision) = (State::AwaitingApproval, None);
                Ok(Reservation::AwaitApproval(number))
            }
            (Verdict::Reserve | Verdict::Repeat, _) => {
                let number = self.begin(undecided, request, spending);
                let entry = &mut self.entries[number];
                entry.state = entry.state.apply(Step::Reserve)?;
                entry.payment = Some(make());
                Ok(Reservation::Submit(number))
            }
        }
    }

    /// Returns the number of the undecided entry with the current amounts, or of a new one.
    fn begin(&mut self, undecided: Option<usize>, request: u32, spending: &Spending) -> usize {
        if let Some(number) = undecided {
            self.entries[number].spending = spending.clone();
            return number;
        }
        let spending = spending.clone();
        self.entries.push(Entry { request, state: State::AwaitingApproval, spending, decision: None, payment: None });
        self.entries.len() - 1
    }

    /// Applies a step of the agent, its operator, a server or the ledger.
    pub(crate) fn conclude(&mut self, number: usize, step: Step) -> Result<(), Rejection> {
        let entry = &mut self.entries[number];
        entry.state = entry.state.conclude(step)?;
        Ok(())
    }

    /// Stores an operator's decision.
    pub(crate) fn decide(&mut self, number: usize, is_granted: bool, decided_at: Timestamp) -> Result<(), Rejection> {
        self.conclude(number, if is_granted { Step::Approve } else { Step::Deny })?;
        let entry = &mut self.entries[number];
        if is_granted {
            let approved = self.approved.entry(entry.request).or_default();
            *approved = entry.units().max(*approved);
        }
        entry.decision = Some(Approval { spending: entry.spending.clone(), is_granted, decided_at });
        Ok(())
    }

    /// Returns an invariant that the chain contradicts, and how.
    pub(crate) fn contradicted_by(&self, chain: &Chain) -> Option<(&'static str, String)> {
        let mut paid = Vec::new();
        for entry in &self.entries {
            let Some(payment) = &entry.payment else { continue };
            let time = chain.find(payment.tx_id).and_then(|(block, _)| Some(chain.block(block)?.time()));
            let Some(time) = time else { continue };
            if entry.state == State::Released {
                let text = format!("{} is in a block, and its amount is released", payment.tx_id);
                return Some(("released-is-not-spent", text));
            }
            if paid.iter().any(|(_, other): &(Timestamp, &Entry)| other.request == entry.request) {
                return Some(("one-charge-per-request", format!("request {} is paid twice", entry.request)));
            }
            paid.push((time, entry));
        }
        paid.iter().find_map(|(_, entry)| self.exceeded_by(entry)).or_else(|| exceeded_hour(&paid))
    }

    /// Returns how one payment exceeds what the policy permits.
    fn exceeded_by(&self, entry: &Entry) -> Option<(&'static str, String)> {
        let (units, request) = (entry.units(), entry.request);
        let approved = self.approved.get(&request).copied().unwrap_or_default();
        let is_approved = units <= APPROVAL_ABOVE || units <= approved;
        let text = if units > PAYMENT_LIMIT {
            format!("request {request} is paid with {units} units, more than one payment may cost")
        } else if !is_approved {
            format!("request {request} is paid with {units} units, and {approved} were approved")
        } else {
            return None;
        };
        Some(("never-over-budget", text))
    }
}

/// Returns an hour whose payments exceed its limit.
fn exceeded_hour(paid: &[(Timestamp, &Entry)]) -> Option<(&'static str, String)> {
    paid.iter().find_map(|(from, _)| {
        let within = paid.iter().filter(|(time, _)| time >= from && *time < *from + HOUR);
        let units: u64 = within.map(|(_, entry)| entry.units()).sum();
        let text = || format!("{units} units are spent within an hour from {from}, and {HOUR_LIMIT} are permitted");
        (units > HOUR_LIMIT).then(|| ("never-over-budget", text()))
    })
}

impl Entry {
    fn units(&self) -> u64 {
        self.spending.total().map_or(u64::MAX, |money| money.units)
    }

    fn counted(&self) -> Option<Counted> {
        let payment = self.payment.as_ref().filter(|_| self.state.counts())?;
        Some(Counted { spending: self.spending.clone(), until: payment.expires_at })
    }
}

/// Returns what a payment to one account spends.
pub(crate) fn spending(to: AccountName, units: u64) -> Spending {
    Spending { currency: Currency::Hbd, parts: vec![(to, units)] }
}
