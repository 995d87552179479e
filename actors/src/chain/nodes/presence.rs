//! Whether a transaction that has expired is in a block, from the reports of several nodes.

use engine::mutant;

use super::pool::nodes_needed;
use crate::environment::TxStatus;

/// What the nodes report about a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// A node has it in a block.
    InBlock,
    /// A majority of the configured nodes reports that it expired in an irreversible block without being included.
    Absent,
    /// Neither.
    Unknown,
}

impl Presence {
    /// Decides from the reports of those of the `configured` nodes that responded.
    pub fn of(reports: impl IntoIterator<Item = TxStatus>, configured: usize) -> Self {
        let mut absent = 0;
        for report in reports {
            match report {
                TxStatus::InReversibleBlock(_) | TxStatus::InIrreversibleBlock(_) => return Self::InBlock,
                TxStatus::ExpiredIrreversible => absent += 1,
                _ if mutant!("wallet-releases-at-expiration") => absent += 1,
                _ => {}
            }
        }
        if absent >= nodes_needed(configured, 0) { Self::Absent } else { Self::Unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_node_shows_a_block_and_a_majority_shows_absence() {
        let absent = TxStatus::ExpiredIrreversible;
        let of = |reports: &[TxStatus]| Presence::of(reports.iter().copied(), 3);
        assert_eq!(of(&[absent, absent, TxStatus::InReversibleBlock(7)]), Presence::InBlock);
        assert_eq!(of(&[absent, absent]), Presence::Absent);
        assert_eq!(of(&[absent, TxStatus::ExpiredReversible, TxStatus::Unknown]), Presence::Unknown);
        assert_eq!(of(&[absent]), Presence::Unknown);
        assert_eq!(of(&[]), Presence::Unknown);
    }
}
