//! Pages of lists: where a page begins, and what it returns.

/// Where a page starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageAt {
    /// Page `number`, from 1.
    Number(u64),
    /// The items after this one (older than it), so that new items do not shift the page. Lists of payments leave the
    /// total at 0.
    After(u128),
    /// As `After`, but no list counts its items: the total is 0. For reading a whole list page by page.
    Following(u128),
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// The number of items in the whole list.
    pub total: u64,
    /// Whether the list may have more than `total` items, because counting stopped there.
    pub total_is_lower_bound: bool,
    /// The item after which the next page starts, if there may be a next page. A page that has a next one may hold
    /// fewer items than the limit, even none.
    pub next: Option<u128>,
}

impl<T> Page<T> {
    /// Returns a page of a counted list.
    #[must_use]
    pub const fn of(items: Vec<T>, total: u64) -> Self {
        Self { items, total, total_is_lower_bound: false, next: None }
    }
}
