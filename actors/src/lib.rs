//! The actors of Hivetill: the running engine.
//!
//! ```text
//! Tree (supervisor)
//! ├── MerchantActor       registration, changes, API keys
//! ├── Registry            the registry of active payments
//! │   └── PaymentActor    one actor per active payment
//! ├── Facilitator         x402 payments for other servers
//! ├── Scanner             irreversible blocks
//! ├── VirtualTransfers    transfers that no transaction of a block contains
//! ├── Dispatcher          the outbox of webhooks
//! ├── Rates               prices
//! ├── Housekeeper         search index, retention, invoices
//! └── Reconciler          daily reconciliation
//! ```
//!
//! [`Engine`] is the interface of the tree, with one handle for each domain; [`Environment`] is its only source of time,
//! randomness, ledger, disk and network. A domain imports the environment, the settings, the metrics and the handles of
//! domains below it; only the supervisor knows all of them. From the lowest to the highest: `chain`, `webhooks`,
//! `merchants`, `payments`, `x402`, `scanner`, `operations`, `facades`.
//!
//! `Registry` activates, passivates and reactivates payments. The supervisor restarts the scanner, the dispatcher, the
//! rates and the other background actors when they crash. A store that fails ends the whole tree ([`Tree::failed`]):
//! memory must not differ from disk.

pub mod environment;
pub mod system;

mod access;
mod chain;
mod child;
mod clock;
mod context;
mod duties;
mod duty_keeper;
mod error;
mod facades;
mod fatal;
mod handles;
mod merchants;
mod metrics;
mod operations;
mod payments;
mod scanner;
mod settings;
mod store_client;
mod supervisor;
mod timer;
mod webhooks;
mod x402;

pub use chain::{
    handle::Chain,
    hive_rpc,
    ledger_view::LedgerStatus,
    nodes::{
        health::{Condition, NodeState},
        pool::nodes_needed,
        presence::Presence,
    },
};
pub use environment::Environment;
pub use error::EngineError;
pub use facades::{
    handle::Facades,
    lockouts::LockoutPolicy,
    sessions::{DashboardSession, MAX_SEALED_BYTES, SessionId},
};
pub use handles::Engine;
pub use merchants::{
    compliance::Report,
    handle::Merchants,
    messages::Registered,
    ownership::{Issued, SubmittedSignatures},
};
pub use operations::{
    billing::{BillingOverview, BillingSummary, Invoiced},
    handle::{Health, Operations},
};
pub use payments::{
    handle::{Opened, Payments},
    sales::{Part, Sale},
    unmatched::Candidate,
    watchers::Watch,
};
pub use settings::{BillingSettings, Compliance, HbdPeg, RegistrationMode, Settings, X402Settings};
pub use supervisor::{StartError, Tree};
pub use webhooks::{
    addresses,
    endpoints::{EndpointState, Replayed, Sent},
    events::{After, EventPage, EventWatch},
    handle::Webhooks,
    http as http_webhooks,
};
pub use x402::handle::{Caller, Settled, Target, X402, X402Error, X402Request};
