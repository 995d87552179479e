//! The REST facade, the checkout and the dashboard. `routes/table.rs` lists the routes.
//!
//! Each module imports only modules listed before it: `limits`, `record`, `http`, `rest`, `x402`, `pages`, `openapi`,
//! `routes`, `server`. The facade calls the engine only through the `proto` client, in this process or in another one.

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
mod fake_engine;
#[cfg(test)]
mod tests;

pub(crate) use self::http::nearest::nearest;
pub use self::http::{sessions::DashboardState, state::Facade};
pub(crate) use record::{currency, currency_to_wire, status_word, timeline};
#[cfg(test)]
pub(crate) use x402::request as x402_request;
