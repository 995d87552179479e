//! The JSON records of the interface, built from messages of the engine. REST, the pages and the commands share them.

pub(crate) mod cancellation;
mod merchant;
mod names;
mod page;
mod payment;
mod schema;
pub(crate) mod timeline;
mod value;

pub(crate) use merchant::Merchant;
pub(crate) use names::*;
pub(crate) use page::{Page, token};
pub(crate) use payment::{
    Amount, Created, CreatedShort, Metadata, Payment, Transfer, checkout_url, metadata_text, slug_url,
};
pub(crate) use schema::{StatusName, Text, Time, Units};
pub(crate) use value::{Sum, currency, currency_to_wire, instant, instant_to_wire, money, percent, price};
