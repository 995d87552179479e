//! Pages of lists: where one starts and what it holds.

/// Where a page starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageAt {
    /// Page `number`, from 1.
    Number(u64),
    /// Right after this item (older than it): steady while new items arrive. Payments are not counted, their total is left
    /// at 0.
    After(u128),
    /// The same, and nothing is counted: the total is left at 0. What reads a whole list page by page.
    Following(u128),
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// Its items.
    pub items: Vec<T>,
    /// How many items the whole list has.
    pub total: u64,
    /// Whether it has more than `total`: they were not all counted.
    pub total_is_lower_bound: bool,
    /// After which item the next page starts, where there may be one. A page may be shorter than was asked for, even empty,
    /// and have a next one.
    pub next: Option<u128>,
}

impl<T> Page<T> {
    /// Returns a page of a list that was counted.
    #[must_use]
    pub const fn of(items: Vec<T>, total: u64) -> Self {
        Self { items, total, total_is_lower_bound: false, next: None }
    }
}
