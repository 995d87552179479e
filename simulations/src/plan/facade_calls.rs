//! Calls of clients to the facade.

use super::*;
use crate::script::FacadeCall;

/// Draws up to three calls for each session, while it is open and after.
pub(super) fn draw(steps: &mut Vec<Step>, setup: &Setup, random: &mut Random) {
    let opened = steps.iter().filter_map(|step| match step.action {
        Action::Create { session, lifetime_seconds, .. } => {
            Some((session, step.at_ms, lifetime_seconds.unwrap_or(setup.lifetime_seconds) * 1_000))
        }
        _ => None,
    });
    for (session, start, lives_ms) in opened.collect::<Vec<_>>() {
        for _ in 0..random.below(4) {
            let (call, _) = *random.pick(&FacadeCall::ALL);
            let at_ms = start + 500 + random.below(2 * lives_ms);
            steps.push(Step::new(at_ms, Action::CallFacade { session, call }));
        }
    }
}
