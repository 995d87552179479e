//! The customer's page: its handlers, its states and what it shows.

pub(crate) mod handlers;
pub(crate) mod phase;
mod view;
