//! The states of one payment of a wallet, and an operator's approval.

use std::time::Duration;

use super::Spending;
use crate::{mutant, time::Timestamp};

/// How long an approval or a denial stays valid.
pub const APPROVAL_VALIDITY: Duration = Duration::from_secs(24 * 3_600);

/// Where one payment stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Above the approval threshold; an operator must decide.
    AwaitingApproval,
    /// An operator permitted it; nothing is reserved yet.
    Approved,
    /// An operator refused it.
    Denied,
    /// Its transaction is stored and counts in the budgets; no signature exists.
    Reserved,
    /// Its signature is stored and may be anywhere.
    Signed,
    /// The server confirmed it.
    Paid,
    /// Its transaction is in a block, and the server has not confirmed it.
    Spent,
    /// Its transaction is in no block and never will be.
    Released,
}

/// What happens to a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// An operator permits it.
    Approve,
    /// An operator refuses it.
    Deny,
    /// Its unsigned transaction is stored.
    Reserve,
    /// Its signature is stored.
    Sign,
    /// The server confirms it.
    Confirm,
    /// The ledger has its transaction in a block.
    FindInBlock,
    /// The ledger proves that its transaction is in no block and has expired in an irreversible one.
    ProveAbsent,
}

/// A step that a state does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a payment that is {} cannot {}", .state.as_str(), .step.as_str())]
pub struct Rejection {
    /// The state.
    pub state: State,
    /// The step.
    pub step: Step,
}

impl Step {
    /// Every step.
    pub const ALL: [Self; 7] =
        [Self::Approve, Self::Deny, Self::Reserve, Self::Sign, Self::Confirm, Self::FindInBlock, Self::ProveAbsent];

    /// Returns the step as a verb phrase.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "be approved",
            Self::Deny => "be denied",
            Self::Reserve => "be reserved",
            Self::Sign => "be signed",
            Self::Confirm => "be confirmed",
            Self::FindInBlock => "be found in a block",
            Self::ProveAbsent => "be released",
        }
    }
}

impl State {
    /// Every state.
    pub const ALL: [Self; 8] = [
        Self::AwaitingApproval,
        Self::Approved,
        Self::Denied,
        Self::Reserved,
        Self::Signed,
        Self::Paid,
        Self::Spent,
        Self::Released,
    ];

    /// Returns the word that reports use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AwaitingApproval => "awaiting_approval",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Reserved => "reserved",
            Self::Signed => "signed",
            Self::Paid => "paid",
            Self::Spent => "spent",
            Self::Released => "released",
        }
    }

    /// Parses the word of a state.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Returns the state after a step.
    ///
    /// # Errors
    /// [`Rejection`] if the state does not allow the step.
    pub const fn apply(self, step: Step) -> Result<Self, Rejection> {
        match (self, step) {
            (Self::AwaitingApproval | Self::Approved, Step::Approve) => Ok(Self::Approved),
            (Self::AwaitingApproval | Self::Approved | Self::Denied, Step::Deny) => Ok(Self::Denied),
            (Self::AwaitingApproval | Self::Approved, Step::Reserve) => Ok(Self::Reserved),
            // Two runs of one request may both sign: they sign the same bytes.
            (Self::Reserved | Self::Signed, Step::Sign) => Ok(Self::Signed),
            (Self::Signed | Self::Spent | Self::Paid, Step::Confirm) | (Self::Paid, Step::FindInBlock) => {
                Ok(Self::Paid)
            }
            // A block outweighs a proof of absence: the nodes that gave the proof were wrong.
            (Self::Reserved | Self::Signed | Self::Spent | Self::Released, Step::FindInBlock) => Ok(Self::Spent),
            (Self::Reserved | Self::Signed | Self::Released, Step::ProveAbsent) => Ok(Self::Released),
            (state, step) => Err(Rejection { state, step }),
        }
    }

    /// Returns the state after a report of the server or the ledger. A confirmation outweighs a proof of absence: the nodes that
    /// gave the proof were wrong, and the transaction counts again.
    ///
    /// # Errors
    /// [`Rejection`] if the state does not allow the step.
    pub const fn conclude(self, step: Step) -> Result<Self, Rejection> {
        match (self, step) {
            (Self::Released, Step::Confirm) => Ok(Self::Paid),
            _ => self.apply(step),
        }
    }

    /// Returns whether the payment counts in budgets: its transaction is or may be in a block.
    #[must_use]
    pub const fn counts(self) -> bool {
        matches!(self, Self::Reserved | Self::Signed | Self::Paid | Self::Spent)
    }

    /// Returns whether its outcome is open: its transaction may still come into a block.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Reserved | Self::Signed)
    }
}

/// An operator's decision on a payment above the approval threshold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// What the operator decided on.
    pub spending: Spending,
    /// Permitted, or refused.
    pub is_granted: bool,
    /// When.
    pub decided_at: Timestamp,
}

impl Approval {
    /// Returns whether the decision is still valid at a time.
    #[must_use]
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.decided_at + APPROVAL_VALIDITY > now
    }

    /// Returns whether the decision permits a spending now: the same currency, no other recipient, and no more to each.
    #[must_use]
    pub fn permits(&self, spending: &Spending, now: Timestamp) -> bool {
        let is_within = |(account, _): &(_, u64)| {
            spending.to(*account) <= self.spending.to(*account) || mutant!("approval-covers-any-amount")
        };
        self.is_granted
            && self.is_valid(now)
            && self.spending.currency == spending.currency
            && spending.parts.iter().all(is_within)
    }
}
