//! How merchants manage their keys, events and accounts, and what the operator decides.

use super::*;
use crate::script::ManagementAction;

/// What merchants do, each as often as it is listed.
const OF_MERCHANTS: [ManagementAction; 22] = [
    ManagementAction::SendTest,
    ManagementAction::SendTest,
    ManagementAction::Subscribe,
    ManagementAction::Subscribe,
    ManagementAction::Read,
    ManagementAction::Read,
    ManagementAction::Read,
    ManagementAction::Read,
    ManagementAction::WatchEvents,
    ManagementAction::WatchEvents,
    ManagementAction::CreateKey,
    ManagementAction::CreateKey,
    ManagementAction::RevokeKey,
    ManagementAction::RollKey,
    ManagementAction::UseKeys,
    ManagementAction::UseKeys,
    ManagementAction::ProveBySignature,
    ManagementAction::ProveBySignature,
    ManagementAction::CancelAccountChange,
    ManagementAction::ClearHold,
    ManagementAction::SetLimits,
    ManagementAction::SetFeeTiers,
];

/// Draws what merchants and the operator do, and the management of single sessions.
pub(super) fn draw(steps: &mut Vec<Step>, setup: &Setup, span_ms: u64, random: &mut Random) {
    sessions(steps, setup, random);
    let mut push =
        |at_ms, merchant, action| steps.push(Step { at_ms, action: Action::Manage { merchant, action }, engine: None });
    for merchant in 0..setup.merchants {
        if random.chance(600_000) {
            push(45_000 + random.below(120_000), merchant, ManagementAction::CreateKey);
        }
        for _ in 0..random.between(2, 9) {
            let at_ms = 45_000 + random.below(span_ms + 900_000);
            push(at_ms, merchant, *random.pick(&OF_MERCHANTS));
        }
        // Everything is read once near the end.
        push(span_ms + random.below(900_000), merchant, ManagementAction::Read);
        push(span_ms + random.below(900_000), merchant, ManagementAction::UseKeys);
        if setup.policies.bills {
            for _ in 0..2 {
                push(span_ms / 2 + random.below(span_ms), merchant, ManagementAction::PayInvoice);
            }
        }
        if setup.policies.limits().is_some() {
            for _ in 0..3 {
                push(60_000 + random.below(span_ms), merchant, ManagementAction::ClearHold);
            }
        }
    }
    // Drawn apart, so that it changes no other choice.
    let mut of_endpoints = random.fork("endpoints");
    for merchant in 0..setup.merchants {
        if of_endpoints.chance(400_000) {
            push(40_000 + of_endpoints.below(60_000), merchant, ManagementAction::ManageEndpoint);
            for _ in 0..of_endpoints.between(1, 6) {
                push(100_000 + of_endpoints.below(span_ms + 600_000), merchant, ManagementAction::ManageEndpoint);
            }
        }
    }
    if setup.policies.bills && random.chance(500_000) {
        push(60_000 + random.below(span_ms), 0, ManagementAction::SetFeeTiers);
        push(span_ms / 2 + random.below(span_ms), 0, ManagementAction::MakeInvoices);
    }
}

/// Draws reports of opened wallets, deletions and watches of sessions.
fn sessions(steps: &mut Vec<Step>, setup: &Setup, random: &mut Random) {
    let opened = steps.iter().filter_map(|step| match step.action {
        Action::Create { session, lifetime_seconds, .. } => {
            Some((session, step.at_ms, lifetime_seconds.unwrap_or(setup.lifetime_seconds) * 1_000))
        }
        _ => None,
    });
    for (session, start, lives_ms) in opened.collect::<Vec<_>>() {
        if random.chance(50_000) {
            // Just after its expiry, before an irreversible block proves it.
            let at_ms = start + lives_ms + setup.grace_seconds * 1_000 + random.below(15_000);
            let by_merchant = random.chance(500_000);
            steps.push(Step { at_ms, action: Action::Cancel { session, by_merchant }, engine: None });
        }
        let mut push =
            |at_ms, action| steps.push(Step { at_ms, action: Action::ActOnSession { session, action }, engine: None });
        if random.chance(150_000) {
            let at_ms = start + 1_500 + random.below(lives_ms);
            push(at_ms, SessionAction::ReportWallet);
            push(at_ms + random.below(lives_ms / 2), SessionAction::ReportWallet);
        }
        if random.chance(80_000) {
            push(start + 1_000 + random.below(lives_ms), SessionAction::Watch);
        }
        if random.chance(60_000) {
            let deletion = *random.pick(&[SessionAction::DeleteMetadata, SessionAction::DeleteNote]);
            push(start + lives_ms + random.below(2_000_000), deletion);
        }
    }
}
