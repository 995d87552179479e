//! Building blocks of handlers: requests, responses, errors, route descriptions, and the facade's state.

pub(crate) mod auth;
pub(crate) mod body;
pub(crate) mod call;
pub(crate) mod compression;
pub(crate) mod error;
pub(crate) mod error_bodies;
pub(crate) mod file;
pub(crate) mod metrics;
pub(crate) mod nearest;
pub(crate) mod network;
pub(crate) mod query;
pub(crate) mod refusal;
pub(crate) mod response;
pub(crate) mod route;
pub(crate) mod sessions;
pub(crate) mod state;
pub(crate) mod stream;
pub(crate) mod strict_json;
pub(crate) mod timeouts;
