//! Daily reconciliation: compares the ledger entries of an account with its history on the chain.

use std::collections::BTreeMap;

use crate::{
    account::AccountName,
    ids::{MerchantId, PaymentId},
    ledger::{Transfer, TxId},
    money::{Currency, Money},
    time::Timestamp,
};

/// Maximum number of findings stored per day, and of operations stored per finding. Counts are not truncated.
const MAX_KEPT: usize = 50;

/// A ledger entry: an operation of the chain that was recorded for an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The transaction.
    pub tx_id: TxId,
    /// The index of the operation in its transaction.
    pub op_in_tx: u32,
    /// The time of its block.
    pub at: Timestamp,
    /// The amount.
    pub money: Money,
    /// The kind of entry.
    pub kind: EntryKind,
}

/// The kind of a ledger entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A transfer to the account, credited to a payment.
    Credit(PaymentId),
    /// An unmatched transfer to the account. The entry remains when the transfer is assigned to a payment.
    Unmatched,
    /// A refund that the account received.
    RefundReceived(PaymentId),
    /// A refund that the account sent.
    RefundSent(PaymentId),
}

/// The amount transferred by one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Movement {
    /// The transaction.
    pub tx_id: TxId,
    /// The amount.
    pub money: Money,
}

/// The key for matching operations.
type Key = (TxId, Currency, u64);

impl Movement {
    const fn key(self) -> Key {
        (self.tx_id, self.money.currency, self.money.units)
    }

    const fn of((tx_id, currency, units): Key) -> Self {
        Self { tx_id, money: Money::new(units, currency) }
    }
}

/// The difference between ledger entries and the chain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    /// On the chain without a ledger entry.
    pub missing: Vec<Movement>,
    /// Ledger entries without a matching operation on the chain.
    pub extra: Vec<Movement>,
}

impl Difference {
    /// Returns whether there is no difference.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.missing.is_empty() && self.extra.is_empty()
    }
}

/// Compares incoming transfers and refunds of an account with its ledger entries. Of outgoing transfers, only those for
/// which `is_refund` returns true must have an entry.
///
/// Operations are matched by transaction and amount, with multiplicity: nodes number the operations of a transaction
/// differently.
#[must_use]
pub fn compare(
    account: &AccountName,
    chain: &[Transfer],
    recorded: &[LedgerEntry],
    is_refund: impl Fn(&Transfer) -> bool,
) -> Difference {
    let mut difference = Difference::default();
    let mut received: BTreeMap<Key, i64> = BTreeMap::new();
    let mut sent: BTreeMap<Key, i64> = BTreeMap::new();
    for transfer in chain {
        let moved = Movement { tx_id: transfer.tx_id, money: transfer.money }.key();
        if transfer.to == *account {
            *received.entry(moved).or_default() += 1;
        }
        if transfer.from == *account {
            // Every outgoing transfer may match an entry; only refunds must.
            *sent.entry(moved).or_default() += i64::from(is_refund(transfer));
        }
    }
    // A transfer that was unmatched and then assigned has two entries.
    let mut places: BTreeMap<(TxId, u32), (Key, i64, i64)> = BTreeMap::new();
    for entry in recorded {
        let moved = Movement { tx_id: entry.tx_id, money: entry.money }.key();
        if let EntryKind::RefundSent(_) = entry.kind {
            match sent.get_mut(&moved) {
                Some(count) => *count -= 1,
                None => difference.extra.push(Movement::of(moved)),
            }
            continue;
        }
        let place = places.entry((entry.tx_id, entry.op_in_tx)).or_insert((moved, 0, 0));
        if entry.kind == EntryKind::Unmatched {
            place.1 += 1;
        } else {
            place.2 += 1;
        }
    }
    for (moved, unmatched, kept) in places.into_values() {
        *received.entry(moved).or_default() -= unmatched.max(kept);
    }
    for (moved, count) in received {
        let times = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
        let side = if count > 0 { &mut difference.missing } else { &mut difference.extra };
        side.extend(std::iter::repeat_n(Movement::of(moved), times));
    }
    // An entry may exist for a refund without a refund memo: negative counts are not missing.
    difference.missing.extend(sent.into_iter().filter(|(_, count)| *count > 0).map(|(moved, _)| Movement::of(moved)));
    difference
}

/// The outcome of a day's reconciliation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// No differences.
    Ok,
    /// At least one account differs.
    Mismatch,
    /// The history of at least one account was not available.
    NotChecked,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 3] = [Self::Ok, Self::Mismatch, Self::NotChecked];

    /// Returns the wire name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Mismatch => "mismatch",
            Self::NotChecked => "not_checked",
        }
    }
}

/// The reconciliation of one day (UTC, block time).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Day {
    /// The start of the day, inclusive.
    pub from: Timestamp,
    /// The end of the day, exclusive.
    pub to: Timestamp,
    /// When it was last reconciled.
    pub checked_at: Timestamp,
    /// The number of accounts compared.
    pub accounts: u32,
    /// The number of accounts whose history was not available.
    pub unchecked: u32,
    /// The last error of a node, if accounts are unchecked.
    pub obstacle: Option<String>,
    /// The number of chain operations compared.
    pub operations: u64,
    /// Differences by account, truncated.
    pub findings: Vec<Finding>,
    /// The number of accounts with differences.
    pub mismatches: u32,
}

/// An account with differences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The account.
    pub account: AccountName,
    /// The merchants that use it now.
    pub merchants: Vec<MerchantId>,
    /// Operations without a ledger entry, truncated.
    pub missing: Vec<Movement>,
    /// The number of operations without a ledger entry.
    pub missing_count: u64,
    /// Ledger entries without an operation, truncated.
    pub extra: Vec<Movement>,
    /// The number of ledger entries without an operation.
    pub extra_count: u64,
}

impl Day {
    /// Returns the outcome.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        if self.mismatches > 0 {
            Outcome::Mismatch
        } else if self.unchecked > 0 {
            Outcome::NotChecked
        } else {
            Outcome::Ok
        }
    }

    /// Records the difference of an account and returns the stored finding.
    pub fn record_mismatch(
        &mut self,
        account: AccountName,
        merchants: Vec<MerchantId>,
        difference: Difference,
    ) -> Finding {
        let Difference { mut missing, mut extra } = difference;
        let (missing_count, extra_count) = (missing.len() as u64, extra.len() as u64);
        missing.truncate(MAX_KEPT);
        extra.truncate(MAX_KEPT);
        let finding = Finding { account, merchants, missing, missing_count, extra, extra_count };
        self.mismatches += 1;
        if self.findings.len() < MAX_KEPT {
            self.findings.push(finding.clone());
        }
        finding
    }
}

/// Returns the end of the UTC day that contains `time`.
#[must_use]
pub const fn end_of_day(time: Timestamp) -> Timestamp {
    const DAY_MS: u64 = 86_400_000;
    Timestamp::from_millis((time.millis() / DAY_MS + 1) * DAY_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ledger::ChainPosition, money::Currency};

    fn name(name: &str) -> AccountName {
        AccountName::parse(name).unwrap()
    }

    fn tx(number: u8) -> TxId {
        TxId([number; 20])
    }

    fn transfer(number: u8, from: &str, to: &str, units: u64) -> Transfer {
        Transfer {
            tx_id: tx(number),
            position: ChainPosition { block_num: 1, tx_in_block: 0, op_in_tx: 0 },
            block_time: Timestamp::EPOCH,
            from: name(from),
            to: name(to),
            money: Money::new(units, Currency::Hbd),
            memo: String::new(),
        }
    }

    fn recorded(number: u8, op_in_tx: u32, units: u64, kind: EntryKind) -> LedgerEntry {
        LedgerEntry { tx_id: tx(number), op_in_tx, at: Timestamp::EPOCH, money: Money::new(units, Currency::Hbd), kind }
    }

    /// Transaction numbers with their amounts in smallest units.
    type Numbers = Vec<(u8, u64)>;

    fn numbers(moved: &[Movement]) -> Numbers {
        moved.iter().map(|moved| (moved.tx_id.0[0], moved.money.units)).collect()
    }

    fn differ(chain: &[Transfer], ledger: &[LedgerEntry]) -> (Numbers, Numbers) {
        let difference = compare(&name("shop"), chain, ledger, |transfer| transfer.memo == "refund");
        (numbers(&difference.missing), numbers(&difference.extra))
    }

    const PAID: EntryKind = EntryKind::Credit(PaymentId::from_bits(1));

    #[test]
    fn ledger_entries_that_match_the_chain_have_no_difference() {
        let chain = [
            transfer(1, "alice", "shop", 5),
            transfer(1, "alice", "shop", 5),
            transfer(2, "bob", "shop", 7),
            transfer(3, "shop", "bob", 7),
            transfer(4, "shop", "shop", 1),
        ];
        let other = EntryKind::Credit(PaymentId::from_bits(2));
        let ledger = [
            recorded(1, 0, 5, PAID),
            recorded(1, 1, 5, other),
            recorded(2, 9, 7, EntryKind::Unmatched),
            recorded(4, 0, 1, PAID),
        ];
        assert_eq!(differ(&chain, &ledger), (vec![], vec![]));
        let assigned = [&ledger[..], &[recorded(2, 9, 7, other)]].concat();
        assert_eq!(differ(&chain, &assigned), (vec![], vec![]), "an assignment does not count twice");
        assert_eq!(differ(&[], &[]), (vec![], vec![]));
    }

    #[test]
    fn operations_without_entries_are_missing_and_entries_without_operations_are_extra() {
        let chain = [transfer(1, "alice", "shop", 5), transfer(2, "bob", "shop", 7)];
        assert_eq!(differ(&chain, &[recorded(2, 0, 7, PAID)]), (vec![(1, 5)], vec![]));
        assert_eq!(differ(&chain[..1], &[recorded(1, 0, 5, PAID), recorded(9, 0, 3, PAID)]), (vec![], vec![(9, 3)]));
        assert_eq!(differ(&chain[..1], &[recorded(1, 0, 50, PAID)]), (vec![(1, 5)], vec![(1, 50)]), "another amount");
        let twice = [recorded(1, 0, 5, PAID), recorded(1, 0, 5, EntryKind::Credit(PaymentId::from_bits(2)))];
        assert_eq!(differ(&chain[..1], &twice), (vec![], vec![(1, 5)]), "one transfer pays one session");
    }

    #[test]
    fn refunds_require_entries_of_both_accounts_and_other_outgoing_transfers_do_not() {
        let refund = Transfer { memo: "refund".to_owned(), ..transfer(3, "shop", "bob", 7) };
        let sent = recorded(3, 0, 7, EntryKind::RefundSent(PaymentId::from_bits(1)));
        assert_eq!(differ(std::slice::from_ref(&refund), std::slice::from_ref(&sent)), (vec![], vec![]));
        assert_eq!(differ(std::slice::from_ref(&refund), &[]), (vec![(3, 7)], vec![]));
        assert_eq!(differ(&[], std::slice::from_ref(&sent)), (vec![], vec![(3, 7)]));
        assert_eq!(differ(&[transfer(4, "shop", "bob", 7)], &[]), (vec![], vec![]));
        let back = transfer(5, "bob", "shop", 7);
        let received = recorded(5, 0, 7, EntryKind::RefundReceived(PaymentId::from_bits(1)));
        assert_eq!(differ(&[back], &[received]), (vec![], vec![]));
    }

    #[test]
    fn a_day_reports_its_outcome_and_truncates_findings() {
        let mut day = Day::default();
        assert_eq!(day.outcome(), Outcome::Ok);
        day.unchecked = 1;
        assert_eq!(day.outcome(), Outcome::NotChecked, "unknown is not sound");
        let moved = Movement { tx_id: tx(1), money: Money::new(1, Currency::Hbd) };
        let much = Difference { missing: vec![moved; 70], extra: vec![] };
        let finding = day.record_mismatch(name("shop"), vec![], much);
        assert_eq!((finding.missing.len(), finding.missing_count, day.outcome()), (50, 70, Outcome::Mismatch));
        assert_eq!(end_of_day(Timestamp::from_seconds(86_399)), Timestamp::from_seconds(86_400));
        assert_eq!(end_of_day(Timestamp::from_seconds(86_400)), Timestamp::from_seconds(172_800));
    }
}
