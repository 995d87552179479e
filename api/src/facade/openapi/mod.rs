//! The description of the interface: OpenAPI 3.1 made from the table of routes, a page over it, and a text for agents.

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
