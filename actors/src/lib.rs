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

pub mod addresses;
pub mod environment;
pub mod hive_rpc;
pub mod http_webhooks;
pub mod system;

mod accounts;
mod announcements;
mod astray;
mod attempt;
mod billing;
mod books;
mod clock_watch;
mod compliance;
mod context;
mod endpoints;
mod events;
mod facilitator;
mod figures;
mod gateway;
mod housekeeper;
mod keys;
mod ledger_view;
mod merchants;
mod metrics;
mod nodes;
mod ownership;
mod payment;
mod rates;
mod registration;
mod retention;
mod sales;
mod scanner;
mod sessions;
mod settings;
mod settlement;
mod store_failures;
mod supervisor;
mod timer;
mod transfer_log;
mod transfers;
mod unknown_operations;
mod virtual_transfers;
mod webhook;
mod x402;

pub use astray::Candidate;
pub use billing::{BillingOverview, BillingSummary, Invoiced};
pub use compliance::Report;
pub use endpoints::{EndpointState, Replayed, Sent};
pub use environment::Environment;
pub use events::{After, EventPage, EventWatch};
pub use gateway::{Gateway, GatewayError, Health, Opened};
pub use ledger_view::LedgerStatus;
pub use merchants::Registered;
pub use nodes::{Condition, NodeState, nodes_needed};
pub use ownership::{Answered, Issued};
pub use sales::{Part, Sale};
pub use sessions::Watch;
pub use settings::{BillingSettings, Compliance, HbdPeg, RegistrationMode, Settings, X402Settings};
pub use supervisor::{StartError, Tree};
pub use x402::{Caller, Settled, Target, X402Error, X402Request};
