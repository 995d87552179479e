//! Totals of transfers that a payment's snapshot does not list, and the rows that a command requires.
//!
//! Any account can send transfers with a public memo, so a payment may have any number of them. Each is a row in the
//! store. The snapshot lists at most [`LISTED_TRANSFERS_MAX`] and keeps totals of the others. A command for an unlisted
//! transfer requires its row: [`Payment::required_rows`] returns its key, [`Payment::load`] adds it.

use super::{Command, Credit, Disposition, Finality, Payment, Route, State};
use crate::{ledger::TxId, mutant};

/// Maximum transfers listed in a snapshot.
pub const LISTED_TRANSFERS_MAX: usize = 20;
/// Maximum characters of a displayed memo; the stored rows contain the whole memo.
pub const SHOWN_MEMO_MAX_CHARS: usize = 256;

/// Truncates a memo for display. A truncated memo ends with an ellipsis.
#[must_use]
pub fn shown_memo(memo: String) -> String {
    if memo.len() <= SHOWN_MEMO_MAX_CHARS || memo.chars().nth(SHOWN_MEMO_MAX_CHARS).is_none() {
        return memo;
    }
    memo.chars().take(SHOWN_MEMO_MAX_CHARS - 1).chain(['…']).collect()
}

/// Totals of transfers of a payment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Totals {
    /// The number of transfers.
    pub transfers: u64,
    /// The number of reversible transfers.
    pub reversible: u64,
    /// The number of manually assigned transfers.
    pub manual: u64,
    /// Totals by disposition, in the order of [`Disposition::ALL`].
    pub by_disposition: [DispositionTotals; Disposition::ALL.len()],
}

/// Totals of the transfers of one disposition, without orphaned ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DispositionTotals {
    /// The number of transfers.
    pub transfers: u64,
    /// The sum, smallest units.
    pub seen_units: u128,
    /// The irreversible part of the sum, smallest units.
    pub irreversible_units: u128,
}

impl Totals {
    /// Returns the totals of transfers.
    pub fn of<'c>(credits: impl IntoIterator<Item = &'c Credit>) -> Self {
        let mut totals = Self::default();
        credits.into_iter().for_each(|credit| totals.add(credit));
        totals
    }

    /// Returns the totals of a disposition.
    #[must_use]
    pub const fn with(&self, disposition: Disposition) -> &DispositionTotals {
        &self.by_disposition[disposition as usize]
    }

    /// Adds a transfer.
    pub fn add(&mut self, credit: &Credit) {
        self.transfers += 1;
        self.reversible += u64::from(credit.finality == Finality::Reversible);
        self.manual += u64::from(credit.route == Route::Manual);
        self.by_disposition[credit.disposition as usize].add(credit);
    }

    /// Subtracts a transfer.
    fn remove(&mut self, credit: &Credit) {
        const EXACT: &str = "totals hold every transfer they are of";
        let less = |count: &mut u64, is_one: bool| *count = count.checked_sub(u64::from(is_one)).expect(EXACT);
        less(&mut self.transfers, true);
        less(&mut self.reversible, credit.finality == Finality::Reversible);
        less(&mut self.manual, credit.route == Route::Manual);
        if credit.finality == Finality::Orphaned {
            return;
        }
        let (seen, irreversible) = units(credit);
        let sum = &mut self.by_disposition[credit.disposition as usize];
        less(&mut sum.transfers, true);
        sum.seen_units = sum.seen_units.checked_sub(seen).expect(EXACT);
        sum.irreversible_units = sum.irreversible_units.checked_sub(irreversible).expect(EXACT);
    }
}

impl DispositionTotals {
    /// Adds a transfer of this disposition.
    pub(super) fn add(&mut self, credit: &Credit) {
        if credit.finality == Finality::Orphaned {
            return;
        }
        let (seen, irreversible) = units(credit);
        self.transfers += 1;
        self.seen_units += seen;
        self.irreversible_units += irreversible;
    }
}

impl Credit {
    /// Returns whether the decision about a cancellation request may change its disposition.
    #[must_use]
    pub fn awaits_cancellation(&self) -> bool {
        match self.disposition {
            Disposition::AfterCancel | Disposition::Late => true,
            Disposition::Counted => self.finality == Finality::Reversible,
            _ => false,
        }
    }
}

/// Returns the amount of a transfer and its irreversible part, smallest units.
fn units(credit: &Credit) -> (u128, u128) {
    let seen = u128::from(credit.money.units);
    (seen, if credit.finality == Finality::Irreversible { seen } else { 0 })
}

impl Payment {
    /// Returns the number of transfers, listed or not.
    #[must_use]
    pub fn transfer_count(&self) -> u64 {
        self.transfers.len() as u64 + self.unlisted.as_ref().map_or(0, |unlisted| unlisted.transfers)
    }

    /// Returns the totals of all transfers, listed or not.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = self.unlisted.as_deref().cloned().unwrap_or_default();
        self.transfers.iter().for_each(|credit| totals.add(credit));
        totals
    }

    /// Returns the keys of unlisted transfers that a command concerns. Their rows, if the payment has them, must be
    /// [loaded](Self::load) before the command is applied.
    #[must_use]
    pub fn required_rows(&self, command: &Command) -> Vec<(TxId, u32)> {
        if self.unlisted.is_none() {
            return Vec::new();
        }
        let mut wanted = match command {
            Command::Credit { transfer, .. } => vec![(transfer.tx_id, transfer.position.op_in_tx)],
            Command::Assign(assignment) => vec![(assignment.transfer.tx_id, assignment.transfer.position.op_in_tx)],
            Command::Orphan { tx_id, op_in_tx } => vec![(*tx_id, *op_in_tx)],
            Command::Claim(claim) => claim.transfers.iter().map(|transfer| (claim.tx_id, transfer.op_in_tx)).collect(),
            // Claimed transfers are always listed.
            _ => Vec::new(),
        };
        wanted.retain(|(tx_id, op_in_tx)| self.listed(*tx_id, *op_in_tx).is_none());
        wanted
    }

    /// Returns whether the transition from this to `next` decided a cancellation request without unlisted transfers
    /// that the decision concerns: each row that [awaits it](Credit::awaits_cancellation) must be [loaded](Self::load)
    /// and the command applied again.
    #[must_use]
    pub fn needs_unlisted_rows(&self, next: &Self) -> bool {
        let Some(unlisted) = &self.unlisted else { return false };
        let is_decided = next.state == State::UserCancelled || next.active_cancellation().is_none();
        let missed = [Disposition::AfterCancel, Disposition::Late].map(|missed| unlisted.with(missed).transfers);
        self.pending_cancellation().is_some() && is_decided && (missed != [0, 0] || unlisted.reversible > 0)
    }

    /// Moves a transfer from the unlisted totals to the list, in order. The next transition decides whether it stays
    /// listed.
    pub fn load(&mut self, row: Credit) {
        debug_assert!(self.listed(row.tx_id, row.op_in_tx).is_none(), "it is listed");
        let unlisted = self.unlisted.as_mut().expect("a transfer that is not listed is in the totals");
        unlisted.remove(&row);
        if unlisted.transfers == 0 {
            self.unlisted = None;
        }
        let at = self.transfers.partition_point(|credit| credit.seq < row.seq);
        self.transfers.insert(at, row);
    }

    /// Returns a listed transfer.
    #[must_use]
    pub fn listed(&self, tx_id: TxId, op_in_tx: u32) -> Option<&Credit> {
        self.transfers.iter().find(|credit| credit.tx_id == tx_id && credit.op_in_tx == op_in_tx)
    }

    /// Returns the transfers of `next` that are new or changed.
    pub(super) fn changed_rows(&self, next: &Self) -> Vec<Credit> {
        // A transition changes transfers in place and appends new ones.
        let before = self.transfers.iter().map(Some).chain(std::iter::repeat(None));
        next.transfers
            .iter()
            .zip(before)
            .filter(|(now, before)| *before != Some(*now))
            .map(|(c, _)| c.clone())
            .collect()
    }

    /// Limits the listed transfers. Priority: those of the claimed transaction, those that completed the payment, x402
    /// transfers, the newest.
    pub(super) fn trim_listed(&mut self) {
        for credit in &mut self.transfers {
            credit.memo = shown_memo(std::mem::take(&mut credit.memo));
        }
        while self.transfers.len() > LISTED_TRANSFERS_MAX {
            let rank = |credit: &Credit| {
                if mutant!("oldest-unlisted-first") {
                    0
                } else if self.claim.as_ref().is_some_and(|claim| claim.tx_id == credit.tx_id) {
                    3
                } else if self.paid_by == Some(credit.tx_id) {
                    2
                } else {
                    u8::from(credit.route == Route::X402)
                }
            };
            // `min_by_key` returns the first of equals: the oldest.
            let least = self.transfers.iter().enumerate().min_by_key(|(_, credit)| rank(credit));
            let Some(at) = least.map(|(at, _)| at) else { return };
            let credit = self.transfers.remove(at);
            if !mutant!("unlisted-not-summed") {
                self.unlisted.get_or_insert_default().add(&credit);
            }
        }
    }
}
