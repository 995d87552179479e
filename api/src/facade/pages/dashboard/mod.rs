//! The merchant's dashboard: pages written on the server, without script, over the same calls as the REST interface.
//!
//! A visitor shows the API key once; from then on a cookie names a session of this process. Every form carries its
//! session's token and must come from a page of ours.

mod account;
mod audit;
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
