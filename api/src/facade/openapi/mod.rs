//! The OpenAPI 3.1 document, generated from the table of routes; its reference page; and an introduction for agents.

mod about;
mod billing;
mod derived;
mod document;
#[cfg(test)]
mod errors;
mod handlers;
mod merchants;
mod page;
mod payments;
mod schemas;
mod shape;
mod webhooks;
mod words;
mod x402;

#[cfg(test)]
mod tests;

pub(crate) use document::TAGS;
pub(crate) use handlers::{docs, document, llms};
