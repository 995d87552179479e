//! A limit on what a search may read.

/// The remaining budget, in index rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget(u64);

impl Budget {
    /// The cost of a seek, in rows.
    const SEEK: u64 = 3;

    /// Returns a budget of this many rows.
    pub(crate) const fn of(rows: u64) -> Self {
        Self(rows)
    }

    /// Subtracts the cost of this many rows.
    pub(crate) const fn spend(&mut self, rows: u64) {
        self.0 = self.0.saturating_sub(rows);
    }

    /// Subtracts the cost of a seek.
    pub(crate) const fn spend_seek(&mut self) {
        self.spend(Self::SEEK);
    }

    /// Returns whether the budget is spent.
    pub(crate) const fn is_spent(self) -> bool {
        self.0 == 0
    }
}
