//! The ids of the last commits, by which an unknown outcome is resolved.
//!
//! They are kept in memory: the engines of an embedded store end with it, and so does what they would resolve. A store that
//! outlives its engines keeps them in a table.

use std::collections::{BTreeMap, VecDeque};

use crate::batch::{CommitId, Resolution};

/// Ids kept; the oldest go first. An engine resolves an outcome within seconds.
const KEPT: usize = 16_384;

/// The ids of the last commits.
#[derive(Debug, Default)]
pub(crate) struct CommitIds {
    known: BTreeMap<CommitId, Resolution>,
    /// In the order they became known.
    order: VecDeque<CommitId>,
}

impl CommitIds {
    /// Returns whether a commit was applied or is forbidden.
    pub(crate) fn is_known(&self, id: CommitId) -> bool {
        self.known.contains_key(&id)
    }

    /// Notes that a commit is applied.
    pub(crate) fn applied(&mut self, id: CommitId) {
        self.note(id, Resolution::Applied);
    }

    /// Returns whether a commit was applied; forbids it if it was not.
    pub(crate) fn resolve(&mut self, id: CommitId) -> Resolution {
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        self.note(id, Resolution::Forbidden);
        Resolution::Forbidden
    }

    fn note(&mut self, id: CommitId, resolution: Resolution) {
        if self.known.insert(id, resolution).is_none() {
            self.order.push_back(id);
        }
        while self.order.len() > KEPT {
            let oldest = self.order.pop_front();
            oldest.and_then(|oldest| self.known.remove(&oldest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_known_until_so_many_others_came() {
        let id = |number| CommitId::from_bits(number);
        let mut ids = CommitIds::default();
        ids.applied(id(1));
        assert_eq!((ids.resolve(id(2)), ids.resolve(id(1))), (Resolution::Forbidden, Resolution::Applied));
        for number in 3..=KEPT as u128 {
            ids.applied(id(number));
        }
        assert!(ids.is_known(id(1)) && ids.is_known(id(2)));
        ids.applied(id(KEPT as u128 + 1));
        assert!(!ids.is_known(id(1)) && ids.is_known(id(2)) && ids.order.len() == KEPT && ids.known.len() == KEPT);
    }
}
