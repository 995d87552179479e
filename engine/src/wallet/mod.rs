//! The rules of an agent's wallet: what its policy permits, what its budgets allow, and the states of one payment.
//!
//! Pure functions over entries that the caller read from the wallet's ledger. Two promises depend on them:
//!
//! * **Never over budget.** A payment counts in every window that can contain its transaction: from its reservation until
//!   the window's length after the transaction's expiration. No interval of that length, measured by block times, holds
//!   more than the limit.
//! * **One charge per request.** A request has one entry until the ledger proves that its transaction can never be in a
//!   block; only then a new transaction may be signed for it.

mod budget;
mod entry;
mod host;
mod policy;
mod request;
mod reservation;
#[cfg(test)]
mod tests;

pub use budget::{Counted, Period, Usage};
pub use entry::{APPROVAL_VALIDITY, Approval, Rejection, State, Step};
pub use host::{Host, HostPattern, PatternError};
pub use policy::{Limits, Lists, Policy, Refusal};
pub use request::RequestKey;
pub use reservation::Verdict;

use crate::{
    account::AccountName,
    money::{Currency, Money},
    mutant,
    time::Timestamp,
};

/// Returns the wallet's time, by which budgets are measured: the earlier of the system clock and the ledger's head, and
/// never earlier than before. A clock or a node that runs ahead alone frees no budget; one that falls back spends none twice.
#[must_use]
pub fn wallet_time(last: Timestamp, clock: Timestamp, head: Timestamp) -> Timestamp {
    last.max(if mutant!("wallet-trusts-its-clock") { clock } else { clock.min(head) })
}

/// What one payment spends: one currency, and what each account receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spending {
    /// The currency of every part.
    pub currency: Currency,
    /// Each recipient with its smallest units; the payee first, then the fee account.
    pub parts: Vec<(AccountName, u64)>,
}

impl Spending {
    /// Returns what leaves the account, or `None` if the sum does not fit 64 bits.
    #[must_use]
    pub fn total(&self) -> Option<Money> {
        let sum = self.parts.iter().try_fold(0_u64, |sum, (_, units)| sum.checked_add(*units));
        sum.map(|units| Money::new(units, self.currency))
    }

    /// Returns the smallest units that an account receives.
    #[must_use]
    pub fn to(&self, account: AccountName) -> u64 {
        let parts = self.parts.iter().filter(|(to, _)| *to == account);
        parts.fold(0, |sum, (_, units)| sum.saturating_add(*units))
    }
}
