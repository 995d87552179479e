//! The handlers of the REST interface, one file per topic. A handler reads its request, calls the engine once, and
//! writes the response.

pub(crate) mod admin;
pub(crate) mod billing;
pub(crate) mod compliance;
pub(crate) mod events;
pub(crate) mod export;
pub(crate) mod health;
pub(crate) mod keys;
pub(crate) mod merchants;
pub(crate) mod ownership;
pub(crate) mod payments;
pub(crate) mod reconciliation;
pub(crate) mod sales;
pub(crate) mod unmatched;
pub(crate) mod webhooks;
