//! The customer's page: its handlers, its states and what it shows.

pub(crate) mod handlers;
mod phase;
mod view;
