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
    /// Text that the id, the name or the account contains, ignoring case.
    pub query: Option<String>,
    /// Only active (or only inactive) merchants.
    pub active: Option<bool>,
    /// Only merchants on compliance hold (or only those that are not).
    pub on_hold: Option<bool>,
}

impl MerchantQuery {
    /// Returns the first page of all merchants.
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
    /// Whether it is on compliance hold.
    pub is_on_hold: bool,
}

topic! {
    /// Merchants and their API keys.
    Merchants {
        /// Returns a merchant.
        merchant(id: MerchantId) -> Option<Arc<Merchant>>;

        /// Returns the merchant of an API key.
        merchant_by_key(digest: KeyDigest) -> Option<Arc<Merchant>>;

        /// Lists merchants, newest first.
        merchants(query: MerchantQuery) -> Page<ListedMerchant>;
    }
}
