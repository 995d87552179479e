//! Transfers beyond those that a payment's snapshot lists: their totals, and which of them a command needs.
//!
//! Anybody can send money with a public memo, so a payment may have any number of transfers. Each is a row in the store.
//! The snapshot lists at most [`LISTED_TRANSFERS_MAX`] of them and keeps the totals of the others. A command that
//! concerns a transfer that is not listed needs its row: [`Payment::required_rows`] names it, [`Payment::load`] adds it.

use super::{Command, Credit, Disposition, Finality, Payment, Route, State};
use crate::{ledger::TxId, mutant};

/// Transfers that a snapshot lists at most.
pub const LISTED_TRANSFERS_MAX: usize = 20;
/// Characters of a memo that are shown; the rows of the store keep the whole of it.
pub const SHOWN_MEMO_MAX_CHARS: usize = 256;

/// Cuts a memo to what is shown of it. A memo that was cut ends with an ellipsis.
#[must_use]
pub fn shown_memo(memo: String) -> String {
    if memo.len() <= SHOWN_MEMO_MAX_CHARS || memo.chars().nth(SHOWN_MEMO_MAX_CHARS).is_none() {
        return memo;
    }
    memo.chars().take(SHOWN_MEMO_MAX_CHARS - 1).chain(['…']).collect()
}

/// What some transfers of a payment come to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Totals {
    /// How many there are.
    pub transfers: u64,
    /// How many are in a block that can still change, or on their way into one.
    pub reversible: u64,
    /// How many were assigned by hand.
    pub manual: u64,
    /// What those of each disposition come to, in the order of [`Disposition::ALL`].
    pub by_disposition: [DispositionTotals; Disposition::ALL.len()],
}

/// What the transfers of one disposition come to; those that a fork removed are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DispositionTotals {
    /// How many there are.
    pub transfers: u64,
    /// Their money, smallest units.
    pub seen_units: u128,
    /// The part of it that is irreversible, smallest units.
    pub irreversible_units: u128,
}

impl Totals {
    /// Returns what some transfers come to.
    pub fn of<'c>(credits: impl IntoIterator<Item = &'c Credit>) -> Self {
        let mut totals = Self::default();
        credits.into_iter().for_each(|credit| totals.add(credit));
        totals
    }

    /// Returns what those of a disposition come to.
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

    /// Takes a transfer out again.
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
    /// Returns whether the decision about a request to cancel may judge it anew.
    #[must_use]
    pub fn awaits_cancellation(&self) -> bool {
        match self.disposition {
            Disposition::AfterCancel | Disposition::Late => true,
            Disposition::Counted => self.finality == Finality::Reversible,
            _ => false,
        }
    }
}

/// Returns a transfer's money, and the part of it that is irreversible: all or nothing.
fn units(credit: &Credit) -> (u128, u128) {
    let seen = u128::from(credit.money.units);
    (seen, if credit.finality == Finality::Irreversible { seen } else { 0 })
}

impl Payment {
    /// Returns how many transfers the payment has, listed or not.
    #[must_use]
    pub fn transfer_count(&self) -> u64 {
        self.transfers.len() as u64 + self.unlisted.as_ref().map_or(0, |unlisted| unlisted.transfers)
    }

    /// Returns what all transfers of the payment come to, listed or not.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = self.unlisted.as_deref().cloned().unwrap_or_default();
        self.transfers.iter().for_each(|credit| totals.add(credit));
        totals
    }

    /// Returns the transfers that a command concerns and the snapshot does not list: where the payment has such a
    /// transfer, its row must be [loaded](Self::load) before the command is applied.
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
            // What is claimed is listed.
            _ => Vec::new(),
        };
        wanted.retain(|(tx_id, op_in_tx)| self.listed(*tx_id, *op_in_tx).is_none());
        wanted
    }

    /// Returns whether a step from this to `next` decided a request to cancel and left out transfers that the decision
    /// is about, because they are not listed: each that [waits for it](Credit::awaits_cancellation) must be
    /// [loaded](Self::load) and the step taken again.
    #[must_use]
    pub fn needs_unlisted_rows(&self, next: &Self) -> bool {
        let Some(unlisted) = &self.unlisted else { return false };
        let is_decided = next.state == State::UserCancelled || next.active_cancellation().is_none();
        let missed = [Disposition::AfterCancel, Disposition::Late].map(|missed| unlisted.with(missed).transfers);
        self.pending_cancellation().is_some() && is_decided && (missed != [0, 0] || unlisted.reversible > 0)
    }

    /// Lists a transfer that the totals of the unlisted ones hold, in the order of the others. The next step decides
    /// whether it stays listed.
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

    /// Returns the transfers of `next`, a step after this, that are new or changed.
    pub(super) fn changed_rows(&self, next: &Self) -> Vec<Credit> {
        // A step changes transfers in place and appends new ones.
        let before = self.transfers.iter().map(Some).chain(std::iter::repeat(None));
        next.transfers
            .iter()
            .zip(before)
            .filter(|(now, before)| *before != Some(*now))
            .map(|(c, _)| c.clone())
            .collect()
    }

    /// Keeps few transfers listed: those of the claimed transaction, then those that completed the payment, then what
    /// agents paid, then the newest.
    pub(super) fn trim_listed(&mut self) {
        for credit in &mut self.transfers {
            credit.memo = shown_memo(std::mem::take(&mut credit.memo));
        }
        while self.transfers.len() > LISTED_TRANSFERS_MAX {
            let rank = |credit: &Credit| {
                if self.claim.as_ref().is_some_and(|claim| claim.tx_id == credit.tx_id) {
                    3
                } else if self.paid_by == Some(credit.tx_id) {
                    2
                } else {
                    u8::from(credit.route == Route::X402)
                }
            };
            // Of equals the first is taken: the oldest.
            let least = self.transfers.iter().enumerate().min_by_key(|(_, credit)| rank(credit));
            let Some(at) = least.map(|(at, _)| at) else { return };
            let credit = self.transfers.remove(at);
            if !mutant!("unlisted-not-summed") {
                self.unlisted.get_or_insert_default().add(&credit);
            }
        }
    }
}
