//! The merchant's dashboard: pages rendered on the server, without script, with the same calls as the REST interface.
//!
//! A visitor logs in with an API key; from then on a cookie identifies a session, which every facade knows. Every form contains
//! its session's token and must originate from this host.

mod account;
mod audit;
mod endpoints;
mod entry;
mod ledger;
mod login;
mod merchant;
mod merchants;
mod nodes;
mod overview;
mod payment;
mod payments;
mod refusal;
mod routes;
mod settings;
mod unmatched;
mod visit;
mod webhooks;

pub(crate) use refusal::refusal;
pub(crate) use routes::{ROUTES, UNKNOWN};
