//! How merchants prove that they own ledger accounts.

use super::*;
use crate::script::OwnershipAction;

/// Draws, for each merchant, how it proves its account and what it tries without a proof.
pub(super) fn draw(steps: &mut Vec<Step>, setup: &Setup, span_ms: u64, random: &mut Random) {
    for merchant in 0..setup.merchants {
        for _ in 0..random.below(5) {
            let (action, _) = *random.pick(&OwnershipAction::ALL);
            let at_ms = 60_000 + random.below(span_ms);
            steps.push(Step::new(at_ms, Action::Ownership { merchant, action }));
            // Only a decision about an unmatched transfer shows whether a proof is effective.
            if random.chance(500_000) {
                let at_ms = at_ms + 60_000 + random.below(600_000);
                steps.push(Step::new(at_ms, Action::Ownership { merchant, action: OwnershipAction::Ignore }));
            }
        }
    }
}
