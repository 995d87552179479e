//! What clients do at the interface, beside what the script has for them.

use super::*;
use crate::script::Visit;

/// Draws visits of sessions: of most one or two, while they are open and after.
pub(super) fn visits(steps: &mut Vec<Step>, setup: &Setup, random: &mut Random) {
    let opened = steps.iter().filter_map(|step| match step.action {
        Action::Create { session, lifetime_seconds, .. } => {
            Some((session, step.at_ms, lifetime_seconds.unwrap_or(setup.lifetime_seconds) * 1_000))
        }
        _ => None,
    });
    for (session, start, lives_ms) in opened.collect::<Vec<_>>() {
        for _ in 0..random.below(4) {
            let (visit, _) = *random.pick(&Visit::ALL);
            let at_ms = start + 500 + random.below(2 * lives_ms);
            steps.push(Step { at_ms, action: Action::Visit { session, visit } });
        }
    }
}
