//! The living part of Hivetill.
//!
//! ```text
//! Tree (supervisor)
//! ├── Merchants           registration, changes, API keys
//! ├── Sessions            the registry of payments
//! │   └── Payment         one actor per active payment
//! ├── Facilitator         x402 payments for other servers
//! ├── Scanner             irreversible blocks
//! ├── VirtualTransfers    transfers that no transaction of a block contains
//! ├── Webhooks            the outbox
//! ├── Rates               prices
//! ├── Housekeeper         search index, retention, invoices
//! └── Bookkeeper          daily reconciliation
//! ```
//!
//! [`Gateway`] is the interface of the tree, [`Environment`] its only source of time, randomness, ledger, disk and network.
//! `Sessions` activates, passivates and reactivates payments. The supervisor restarts the scanner, webhooks, rates and the
//! other background actors when they crash. A store that fails ends the whole tree ([`Tree::failed`]): memory must not
//! differ from disk.

pub mod environment;
pub mod system;

mod chain;
mod context;
mod gateway;
mod merchants;
mod metrics;
mod operations;
mod payments;
mod scanner;
mod settings;
mod store_failures;
mod supervisor;
mod timer;
mod webhooks;
mod x402;

pub use chain::{
    hive_rpc,
    ledger_view::LedgerStatus,
    nodes::{Condition, NodeState, nodes_needed},
};
pub use environment::Environment;
pub use gateway::{Gateway, GatewayError, Health, Opened};
pub use merchants::{
    actor::Registered,
    compliance::Report,
    ownership::{Answered, Issued},
};
pub use operations::billing::{BillingOverview, BillingSummary, Invoiced};
pub use payments::{
    registry::Watch,
    sales::{Part, Sale},
    unmatched::Candidate,
};
pub use settings::{BillingSettings, Compliance, HbdPeg, RegistrationMode, Settings, X402Settings};
pub use supervisor::{StartError, Tree};
pub use webhooks::{
    addresses,
    endpoints::{EndpointState, Replayed, Sent},
    events::{After, EventPage, EventWatch},
    http as http_webhooks,
};
pub use x402::{
    requirements::Caller,
    verify::{Settled, Target, X402Error, X402Request},
};
