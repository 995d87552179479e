//! The checkout page: handlers, states and view.

pub(crate) mod handlers;
pub(crate) mod phase;
mod view;
