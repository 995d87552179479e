//! What the clients of a simulation know: their sessions, credentials, payments and pending calls; and their accounts.

use std::collections::{BTreeMap, BTreeSet};

use engine::{
    account::AccountName,
    hive::Transaction,
    ids::{KeyId, MerchantId, PaymentId, SlugToken},
    ledger::TxId,
    money::Money,
    payment::{FeeMode, Payment},
    x402::PaymentPayload,
};

use tokio::task::AbortHandle;

use crate::{
    agent_wallet::{AgentWallet, WALLET},
    options::FEE_ACCOUNT,
    plan::{AGENTS, PAYERS},
    script::{Action, AgentBehavior},
};

/// The account of agents without money.
pub(crate) const POOR: &str = "poor.agent";
/// The account of agents that spend their money before they pay with it.
pub(crate) const SPENDER: &str = "spender.agent";
/// The account of agents whose keys are replaced while they pay.
pub(crate) const KEYED: &str = "keyed.agent";
/// The account that is paid through other servers.
pub(crate) const ELSEWHERE: &str = "elsewhere.shop";

/// An account that nobody pays and no merchant has.
pub(crate) const THIRD_PARTY: &str = "third.party";

/// What merchants, customers and agents know.
#[derive(Default)]
pub(crate) struct ClientState {
    pub(crate) sessions: BTreeMap<u32, Session>,
    pub(crate) merchants: BTreeMap<usize, Shop>,
    pub(crate) payloads: BTreeMap<(u32, usize), Payload>,
    pub(crate) facilitated: BTreeMap<u32, PaymentPayload>,
    /// Payments for sellers' resources: the payer and the transaction.
    pub(crate) visits: BTreeMap<u32, (String, Transaction)>,
    /// Sessions of another engine that are not in this engine's store.
    pub(crate) other_engine: BTreeMap<u32, Payment>,
    /// Calls without a response so far.
    pub(crate) calls: BTreeMap<u64, Call>,
    pub(crate) next_call: u64,
    pub(crate) settled: u64,
    /// Sessions whose creation a limit delayed: the steps that were planned for them happen at the wrong time.
    pub(crate) delayed: BTreeSet<u32>,
    /// The ledger of the agent with a wallet.
    pub(crate) wallet: AgentWallet,
    /// Issued API keys, except the first of each merchant.
    pub(crate) keys: Vec<GivenKey>,
}

/// A pending call.
pub(crate) struct Call {
    /// What is repeated if no response arrives.
    pub(crate) repeated: Repeated,
    /// The number of the engine that is called.
    pub(crate) engine: usize,
    /// Its task, where one of several engines is called.
    pub(crate) task: Option<AbortHandle>,
    /// Whether it is repeated already.
    pub(crate) is_repeated: bool,
}

/// What a client repeats if it gets no response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Repeated {
    /// A step, and how often it was tried.
    Action(Action, u32),
    /// The registration of a merchant.
    Registration(usize),
}

/// A session as its customer knows it.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) id: PaymentId,
    pub(crate) merchant: MerchantId,
    pub(crate) slug: SlugToken,
    pub(crate) pay_to: AccountName,
    pub(crate) amount: Money,
    pub(crate) fee: Option<(String, u64)>,
}

/// A merchant's credentials.
#[derive(Clone)]
pub(crate) struct Shop {
    pub(crate) id: MerchantId,
    pub(crate) api_key: String,
    pub(crate) uses_other_account: bool,
}

/// An API key that a merchant was given.
#[derive(Clone)]
pub(crate) struct GivenKey {
    pub(crate) merchant: MerchantId,
    pub(crate) id: KeyId,
    pub(crate) text: String,
    /// The names of its scopes.
    pub(crate) scopes: Vec<String>,
}

/// An agent's payment for one session.
#[derive(Clone)]
pub(crate) struct Payload {
    pub(crate) payload: PaymentPayload,
    pub(crate) tx_id: TxId,
    pub(crate) from: String,
    pub(crate) behavior: AgentBehavior,
    /// Whether it pays less than required.
    pub(crate) owes: bool,
}

/// Returns the account of a payer.
pub(crate) fn payer(number: usize) -> String {
    format!("payer-{}", char::from(b'a' + u8::try_from(number % 26).unwrap_or(0)))
}

/// Returns the account of an agent.
pub(crate) fn agent(number: usize) -> String {
    format!("agent-{}", char::from(b'a' + u8::try_from(number % 26).unwrap_or(0)))
}

/// Returns an account of a merchant.
pub(crate) fn account(merchant: usize, other: bool) -> String {
    format!("{}-{}", if other { "else" } else { "shop" }, char::from(b'a' + u8::try_from(merchant % 26).unwrap_or(0)))
}

impl Session {
    pub(crate) fn of(payment: &Payment) -> Self {
        let fee = match &payment.quote.fee_mode {
            FeeMode::Invoice => None,
            FeeMode::Split { account } => Some((account.to_string(), payment.quote.fee_units)),
        };
        let Payment { id, merchant, slug, pay_to, amount, .. } = *payment;
        Self { id, merchant, slug, pay_to, amount, fee }
    }
}

impl ClientState {
    /// Removes the sessions that a restored store no longer has.
    pub(crate) fn forget_all_but(&mut self, known: &[PaymentId]) {
        self.sessions.retain(|_, session| known.contains(&session.id));
    }

    /// Returns the calls that the process did not respond to before its exit.
    pub(crate) fn take_unanswered(&mut self) -> Vec<(Action, u32)> {
        let of = |call: Call| match call.repeated {
            Repeated::Action(action, tries) => Some((action, tries)),
            Repeated::Registration(_) => None,
        };
        std::mem::take(&mut self.calls).into_values().filter_map(of).collect()
    }

    /// Begins a call of an engine, by its number; returns the number of the call.
    pub(crate) fn begin_call(&mut self, repeated: Repeated, engine: usize) -> u64 {
        self.next_call += 1;
        let call = Call { repeated, engine, task: None, is_repeated: false };
        self.calls.insert(self.next_call, call);
        self.next_call
    }

    /// Records the task of a call that still runs.
    pub(crate) fn has_task(&mut self, number: Option<u64>, task: Option<AbortHandle>) {
        if let Some(call) = number.and_then(|number| self.calls.get_mut(&number)) {
            call.task = task;
        }
    }

    /// Ends a call; returns whether it has not been repeated meanwhile.
    pub(crate) fn end_call(&mut self, number: Option<u64>) -> bool {
        let call = number.and_then(|number| self.calls.remove(&number));
        !call.is_some_and(|call| call.is_repeated)
    }

    /// Returns the calls that one of several engines has not responded to, with their numbers: each once.
    pub(crate) fn calls_at(&mut self, engine: usize) -> Vec<(u64, Repeated)> {
        let open = self.calls.iter_mut().filter(|(_, call)| call.engine == engine && !call.is_repeated);
        let repeated = open.map(|(number, call)| {
            call.is_repeated = true;
            (*number, call.repeated.clone())
        });
        repeated.collect()
    }

    /// Ends a call without its response.
    pub(crate) fn hang_up(&mut self, number: u64) {
        if let Some(task) = self.calls.remove(&number).and_then(|call| call.task) {
            task.abort();
        }
    }

    /// Ends the calls of an engine that exited.
    pub(crate) fn hang_up_all(&mut self, engine: usize) {
        let open = self.calls.iter().filter(|(_, call)| call.engine == engine).map(|(number, _)| *number);
        for number in open.collect::<Vec<_>>() {
            self.hang_up(number);
        }
    }
}

/// Returns the accounts of the chain, and the balance of each in each currency, in 1/1000.
pub(crate) fn accounts(merchants: usize) -> Vec<(String, u64)> {
    const RICH: u64 = 1_000_000_000_000;
    let mut accounts = vec![
        (FEE_ACCOUNT.to_owned(), 0),
        (ELSEWHERE.to_owned(), 0),
        (POOR.to_owned(), 0),
        (SPENDER.to_owned(), 0),
        (KEYED.to_owned(), RICH),
        (WALLET.to_owned(), RICH),
        ("mallory".to_owned(), RICH),
        (THIRD_PARTY.to_owned(), RICH),
    ];
    for number in 0..merchants {
        accounts.push((account(number, false), RICH));
        accounts.push((account(number, true), RICH));
    }
    accounts.extend((0..PAYERS).map(|number| (payer(number), RICH)));
    accounts.extend((0..AGENTS).map(|number| (agent(number), RICH)));
    accounts
}
