//! What handlers are made of: a request and its parts, responses and errors, what a route says, and the facade's state.

pub(crate) mod answer;
pub(crate) mod auth;
pub(crate) mod body;
pub(crate) mod call;
pub(crate) mod deadlines;
pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod metrics;
pub(crate) mod nearest;
pub(crate) mod network;
pub(crate) mod query;
pub(crate) mod refusal;
pub(crate) mod route;
pub(crate) mod sessions;
pub(crate) mod state;
pub(crate) mod stream;
pub(crate) mod unique;
pub(crate) mod wire;
