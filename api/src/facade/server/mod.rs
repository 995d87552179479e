//! The HTTP server: connections, admission, and the processing of a request up to its response.

mod admission;
mod listener;
mod respond;

pub(crate) use listener::handle;
pub use listener::{Limits, serve, serve_health};
