//! The decision on a request to pay: repeat its payment, reserve a new one, ask an operator, or refuse.

use super::{Approval, Counted, Policy, Refusal, Spending, State};
use crate::{mutant, time::Timestamp};

/// What a wallet does with a request to pay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The request has a payment that counts; that one is submitted again.
    Repeat,
    /// The payment may be reserved.
    Reserve,
    /// An operator must decide first.
    AwaitApproval(Refusal),
    /// The policy refuses it.
    Refuse(Refusal),
}

impl Policy {
    /// Decides on a request to pay. `latest` is the request's latest payment, with the operator's decision on it; for `past` and
    /// `now` see [`Policy::check`].
    #[must_use]
    pub fn decide(
        &self,
        spending: &Spending,
        latest: Option<(State, Option<&Approval>)>,
        past: &[Counted],
        now: Timestamp,
    ) -> Verdict {
        if latest.is_some_and(|(state, _)| state.counts()) && !mutant!("wallet-pays-a-request-again") {
            return Verdict::Repeat;
        }
        match self.check(spending, latest.and_then(|(_, approval)| approval), past, now) {
            Ok(()) => Verdict::Reserve,
            Err(refusal @ Refusal::ApprovalNeeded { .. }) => Verdict::AwaitApproval(refusal),
            Err(refusal) => Verdict::Refuse(refusal),
        }
    }
}
