//! The REST facade and the pages. The routes are rows of `routes/table.rs`.
//!
//! Each folder imports the ones before it: `limits`, `record`, `http`, `rest`, `x402`, `pages`, `openapi`, `routes`,
//! `server`. The engine is known through the client of `proto` alone; whether it runs in this process makes no difference.

mod http;
pub mod limits;
mod openapi;
mod pages;
mod record;
mod rest;
mod routes;
pub mod server;
mod x402;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

pub use self::http::{sessions::Desk, state::Facade};
pub(crate) use record::{currency, status_word, timeline};
#[cfg(test)]
pub(crate) use x402::request as x402_request;
