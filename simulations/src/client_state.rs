//! What the clients of a simulation know: their sessions, credentials, payments and pending calls; and their accounts.

use std::collections::BTreeMap;

use engine::{
    account::AccountName,
    hive::Transaction,
    ids::{MerchantId, PaymentId, SlugToken},
    ledger::TxId,
    money::Money,
    payment::{FeeMode, Payment},
    x402::PaymentPayload,
};

use crate::{
    options::FEE_ACCOUNT,
    plan::{AGENTS, PAYERS},
    script::{Action, AgentBehavior},
};

/// The account of agents without money.
pub(crate) const POOR: &str = "poor.agent";
/// The account of agents that spend their money before they pay with it.
pub(crate) const SPENDER: &str = "spender.agent";
/// The account that is paid through other servers.
pub(crate) const ELSEWHERE: &str = "elsewhere.shop";

/// An account that nobody pays and no merchant has.
pub(crate) const SOMEBODY: &str = "somebody.else";

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
    pub(crate) calls: BTreeMap<u64, (Action, u32)>,
    pub(crate) next_call: u64,
    pub(crate) settled: u64,
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
    /// Removes the sessions that the engine does not know any more.
    pub(crate) fn forget_all_but(&mut self, known: &[PaymentId]) {
        self.sessions.retain(|_, session| known.contains(&session.id));
    }

    /// Takes the calls that the process did not respond to before its exit.
    pub(crate) fn take_unanswered(&mut self) -> Vec<(Action, u32)> {
        std::mem::take(&mut self.calls).into_values().collect()
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
        ("mallory".to_owned(), RICH),
        (SOMEBODY.to_owned(), RICH),
    ];
    for number in 0..merchants {
        accounts.push((account(number, false), RICH));
        accounts.push((account(number, true), RICH));
    }
    accounts.extend((0..PAYERS).map(|number| (payer(number), RICH)));
    accounts.extend((0..AGENTS).map(|number| (agent(number), RICH)));
    accounts
}
