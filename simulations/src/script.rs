//! The script of a run: the setup, the random faults, and who does what at which time. A seed or a scenario file makes one;
//! [`shrink`](crate::shrink) removes steps from one.

mod agent_behavior;
mod facade_call;
mod injection;
mod management_action;
mod memo;
mod merchant_change;
mod ownership_action;
mod session_action;
mod whole;

use actors::Condition;
use engine::money::Currency;

use crate::options::{Faults, Setup};

pub use self::{
    agent_behavior::AgentBehavior,
    facade_call::FacadeCall,
    injection::{
        ChangeableSettings, CommitOutcome, DiskFault, FaultInjection, LedgerFault, LieKind, NodeFault, OutageKind,
        Peer, ProcessFault, StoreFault,
    },
    management_action::ManagementAction,
    memo::Memo,
    merchant_change::MerchantChange,
    ownership_action::OwnershipAction,
    session_action::SessionAction,
    whole::Expect,
};

/// Everything that decides a run. Two runs of one script give the same trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The title.
    pub name: String,
    /// The expected result, in words.
    pub why: String,
    /// The seed of all random streams.
    pub seed: u64,
    /// The simulated environment and the engine's settings.
    pub setup: Setup,
    /// The rates of random faults.
    pub faults: Faults,
    /// The steps, ordered by time.
    pub steps: Vec<Step>,
    /// When faults end, virtual milliseconds; none for soon after the last step.
    pub heal_at_ms: Option<u64>,
    /// The expected final state of sessions, in addition to the invariants.
    pub expect: Vec<Expect>,
    /// What operators see of nodes at the end, by the node's place in the list.
    pub expect_nodes: Vec<(usize, Condition)>,
    /// The names of the sessions in the scenario file, by number; empty for a generated script.
    pub names: Vec<String>,
}

/// An action at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Virtual milliseconds since the start of the run.
    pub at_ms: u64,
    /// The action.
    pub action: Action,
    /// The engine that is called, or whose process a fault affects; none for any that runs, and for the first.
    pub engine: Option<usize>,
}

impl Step {
    /// Returns a step that names no engine.
    #[must_use]
    pub const fn new(at_ms: u64, action: Action) -> Self {
        Self { at_ms, action, engine: None }
    }

    /// Returns when it ends, virtual milliseconds: later than it starts only for a fault that lasts.
    #[must_use]
    pub const fn ends_ms(&self) -> u64 {
        let lasts_ms = match &self.action {
            Action::Inject(injection) => injection.lasts_ms(),
            _ => 0,
        };
        self.at_ms + lasts_ms
    }
}

/// An action of a client or a fault. Sessions, merchants, payers, agents and nodes are identified by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A merchant creates a session.
    Create {
        /// The session's number.
        session: u32,
        /// The merchant.
        merchant: usize,
        /// The amount, in 1/1000.
        units: u64,
        /// Its currency.
        currency: Currency,
        /// The lifetime, seconds; none for the default of the setup.
        lifetime_seconds: Option<u64>,
    },
    /// A payer's wallet sends a transfer to the session's account.
    Pay {
        /// The session that it pays.
        session: u32,
        /// The payer; none for the merchant's own account.
        payer: Option<usize>,
        /// The amount, in 1/1000.
        units: u64,
        /// Its currency.
        currency: Currency,
        /// The memo of the transfer.
        memo: Memo,
    },
    /// A payer sets up a recurrent transfer whose memo names the session. Recurrent transfers pay no session.
    PayAgain {
        /// The session that the memo names.
        session: u32,
        /// The payer.
        payer: usize,
        /// The amount of each execution, in 1/1000.
        units: u64,
        /// Its currency.
        currency: Currency,
        /// Hours between two executions, at least 24; the first is immediate.
        every_hours: u16,
        /// The number of executions, at least 2.
        times: u16,
    },
    /// Another engine on the same records creates a session that this engine does not know yet.
    CreateElsewhere {
        /// The session's number.
        session: u32,
        /// The merchant.
        merchant: usize,
        /// The amount, in 1/1000 HBD.
        units: u64,
        /// The lifetime, seconds; none for the default of the setup.
        lifetime_seconds: Option<u64>,
    },
    /// A session that another engine created is written to this engine's store.
    HandOver {
        /// The session.
        session: u32,
    },
    /// The customer or the merchant cancels a session.
    Cancel {
        /// The session.
        session: u32,
        /// Whether the merchant does.
        by_merchant: bool,
    },
    /// The merchant assigns its oldest unmatched transfer to a session.
    Assign {
        /// The session.
        session: u32,
    },
    /// The merchant manages a session, or another merchant tries to.
    ActOnSession {
        /// The session.
        session: u32,
        /// The action.
        action: SessionAction,
    },
    /// An agent pays by x402 and repeats its request until it has a final response.
    Settle {
        /// The session that it pays.
        session: u32,
        /// The agent. The same agent and session always give the same signed transaction.
        agent: usize,
        /// How it deviates from an honest payment.
        behavior: AgentBehavior,
    },
    /// An agent has a payment for another server settled.
    Facilitate {
        /// The agent.
        agent: usize,
        /// A number that decides the resource and the nonce.
        resource: u32,
        /// The amount, in 1/1000.
        units: u64,
    },
    /// The agent with a wallet pays for a resource of another server. A repeated request is one purchase.
    PayWithWallet {
        /// The request.
        request: u32,
        /// Its price, in 1/1000 HBD.
        units: u64,
    },
    /// A merchant's record is changed.
    ChangeMerchant {
        /// The merchant.
        merchant: usize,
        /// The change.
        change: MerchantChange,
    },
    /// A merchant proves that it owns a ledger account, or uses one that it does not own.
    Ownership {
        /// The merchant.
        merchant: usize,
        /// The action.
        action: OwnershipAction,
    },
    /// A merchant manages its keys, events and accounts, or the operator decides.
    Manage {
        /// The merchant.
        merchant: usize,
        /// The action.
        action: ManagementAction,
    },
    /// A fault is injected.
    Inject(FaultInjection),
    /// A client calls the facade about a session, with a valid or an invalid request. Ignored if no facade is installed.
    CallFacade {
        /// The session.
        session: u32,
        /// The call.
        call: FacadeCall,
    },
    /// An agent presents a payment at a seller's resource, and the seller has it settled.
    Purchase {
        /// The agent.
        agent: usize,
        /// The resource.
        resource: u32,
        /// The resource that the payment was made for.
        shown: u32,
        /// The merchant whose server it is; none for a server without a merchant's account.
        seller: Option<usize>,
        /// The number in the seller's idempotency key.
        key: Option<u32>,
        /// The amount, in 1/1000 HBD.
        units: u64,
    },
}

impl Action {
    /// Returns the session that it creates.
    #[must_use]
    pub const fn opens(&self) -> Option<u32> {
        match self {
            Self::Create { session, .. } | Self::CreateElsewhere { session, .. } => Some(*session),
            _ => None,
        }
    }

    /// Returns the session that it concerns.
    #[must_use]
    pub const fn session(&self) -> Option<u32> {
        match self {
            Self::Create { session, .. }
            | Self::Pay { session, .. }
            | Self::PayAgain { session, .. }
            | Self::CreateElsewhere { session, .. }
            | Self::HandOver { session }
            | Self::Cancel { session, .. }
            | Self::Assign { session }
            | Self::ActOnSession { session, .. }
            | Self::Settle { session, .. }
            | Self::CallFacade { session, .. } => Some(*session),
            _ => None,
        }
    }
}
