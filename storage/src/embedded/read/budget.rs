//! What a search may read.

/// What reads may still cost, in rows of an index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget(u64);

impl Budget {
    /// What a seek costs.
    const SEEK: u64 = 3;

    /// Returns a budget of so many rows.
    pub(crate) const fn of(rows: u64) -> Self {
        Self(rows)
    }

    /// Takes the cost of so many rows.
    pub(crate) const fn spend(&mut self, rows: u64) {
        self.0 = self.0.saturating_sub(rows);
    }

    /// Takes the cost of a seek.
    pub(crate) const fn spend_seek(&mut self) {
        self.spend(Self::SEEK);
    }

    /// Says whether nothing is left.
    pub(crate) const fn is_spent(self) -> bool {
        self.0 == 0
    }
}
