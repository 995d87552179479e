//! What merchants do about the ownership of accounts.

use super::*;
use crate::script::Ownership;

/// Draws, for each merchant, how it proves its account and what it tries without a proof.
pub(super) fn owners(steps: &mut Vec<Step>, setup: &Setup, span_ms: u64, random: &mut Random) {
    for merchant in 0..setup.merchants {
        for _ in 0..random.below(5) {
            let (step, _) = *random.pick(&Ownership::ALL);
            let at_ms = 60_000 + random.below(span_ms);
            steps.push(Step { at_ms, action: Action::Own { merchant, step } });
            // What a proof is good for shows when something is decided.
            if random.chance(500_000) {
                let at_ms = at_ms + 60_000 + random.below(600_000);
                steps.push(Step { at_ms, action: Action::Own { merchant, step: Ownership::Ignore } });
            }
        }
    }
}
