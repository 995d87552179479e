//! Events and their delivery: the list of events, the outbox and the endpoints.

pub mod addresses;
pub mod http;

pub(crate) mod announcements;
pub(crate) mod attempt;
pub(crate) mod dispatcher;
pub(crate) mod endpoints;
pub(crate) mod events;
pub(crate) mod handle;
pub(crate) mod notifier;
