//! Merchants and their API keys.

use std::sync::Arc;

use engine::{
    ids::MerchantId,
    merchant::{KeyDigest, Merchant},
};

use crate::store::{
    error::Read,
    page::{Page, PageAt},
    topic::topic,
    wrapped::{Call, Wrapped},
};

/// A list of merchants, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MerchantQuery {
    /// Where the page starts.
    pub at: PageAt,
    /// Items on a page, 1 to 100.
    pub limit: usize,
    /// Text that the id, the name or the account contains, whatever the case.
    pub query: Option<String>,
    /// Only active (or inactive) ones.
    pub active: Option<bool>,
    /// Only those on hold for compliance (or not).
    pub on_hold: Option<bool>,
}

impl MerchantQuery {
    /// The first merchants of all.
    #[must_use]
    pub const fn all(limit: usize) -> Self {
        Self { at: PageAt::Number(1), limit, query: None, active: None, on_hold: None }
    }
}

/// A merchant in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedMerchant {
    /// The merchant.
    pub merchant: Arc<Merchant>,
    /// Whether it is on hold for compliance.
    pub is_on_hold: bool,
}

topic! {
    /// Merchants and their API keys.
    Merchants {
        /// Returns a merchant.
        merchant(id: MerchantId) -> Option<Arc<Merchant>>;

        /// Returns the merchant an API key speaks for.
        merchant_by_key(digest: KeyDigest) -> Option<Arc<Merchant>>;

        /// Lists merchants, newest first.
        merchants(query: MerchantQuery) -> Page<ListedMerchant>;
    }
}
