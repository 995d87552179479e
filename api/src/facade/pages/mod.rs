//! Pages rendered on the server: the checkout and the merchant's dashboard.

pub(crate) mod checkout;
pub(crate) mod dashboard;
pub(crate) mod html;
pub(crate) mod locale;
mod wallets;
pub(crate) mod words;
