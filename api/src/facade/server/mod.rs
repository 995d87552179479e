//! The server of the facade: connections, admission, and the one way from a request to its response.

mod admission;
mod listener;
mod respond;

pub(crate) use listener::answer;
pub use listener::{Limits, serve, serve_health};
