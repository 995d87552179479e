//! Invariants of the daily reconciliation.

use core::time::Duration;

use engine::{account::AccountName, reconciliation::end_of_day, time::Timestamp};

use super::*;

/// How long after a day's end its reconciliation may begin: an account's history may arrive later than the blocks.
const SETTLES: Duration = Duration::from_secs(600);
/// How long after an account was first a merchant's the ledger must have its transfers.
const WATCHED_AFTER: Duration = Duration::from_secs(60);

pub(super) fn reconciliation_matches_the_ledger(write: &ReconciliationWrite<'_>) -> Verdict {
    let (day, observer) = (write.day, write.observer);
    hold(observer.final_time >= day.to + SETTLES, || {
        format!("the day to {} is checked, and the newest irreversible block is of {}", day.to, observer.final_time)
    })?;
    if observer.was_damaged {
        // An unreadable row is a difference and must be reported.
        return Ok(());
    }
    // Every transfer of the chain is credited or unmatched, as the cursor has shown: ledger and chain cannot differ.
    hold(day.mismatches == 0, || format!("{} accounts are reported as different: {:?}", day.mismatches, day.findings))?;
    let accounts = || compared(observer, day.from, day.to);
    let (reported, wanted) = (day.accounts + day.unchecked, accounts().count());
    hold(reported as usize == wanted, || {
        format!("{reported} accounts were reconciled, and {wanted} were watched that day")
    })?;
    let on_chain: usize = accounts().map(|(account, from)| operations(observer, account, (from, day.to))).sum();
    let compared = usize::try_from(day.operations).unwrap_or(usize::MAX);
    // A day without a record was not compared.
    let fits = if day.unchecked == 0 { compared == on_chain } else { compared <= on_chain };
    hold(fits, || format!("{compared} operations were compared, and the chain holds {on_chain}"))
}

/// Returns the accounts that were a merchant's on a day, each with the time from which the ledger must have all of its entries.
fn compared(
    observer: &Observer,
    from: Timestamp,
    to: Timestamp,
) -> impl Iterator<Item = (&AccountName, Timestamp)> + '_ {
    let begins = observer.accounts.now().map(move |(account, since)| (account, from.max(since + WATCHED_AFTER)));
    begins.filter(move |(_, begin)| *begin < to)
}

/// Counts the operations of an account in irreversible blocks of a time span. Operations outside of transactions have no ledger entries.
fn operations(observer: &Observer, account: &AccountName, (from, to): (Timestamp, Timestamp)) -> usize {
    let within =
        observer.final_transfers.values().filter(|transfer| from <= transfer.block_time && transfer.block_time < to);
    let in_blocks = within.filter(|transfer| transfer.position.tx_in_block != u32::MAX);
    in_blocks.filter(|transfer| transfer.to == *account || transfer.from == *account).count()
}

pub(super) fn days_are_consecutive(write: &ReconciliationWrite<'_>) -> Verdict {
    let (day, observer) = (write.day, write.observer);
    hold(day.to == end_of_day(day.from), || format!("a day from {} to {}", day.from, day.to))?;
    let follows = |from: Timestamp| hold(day.from == from, || format!("a day from {}, not from {from}", day.from));
    match observer.reconciled.last_key_value() {
        Some((to, earlier)) if *to == day.to => {
            follows(earlier.from)?;
            hold(earlier.unchecked > 0, || format!("the day to {to} was checked and is checked again"))
        }
        Some((to, _)) => follows(*to),
        None => follows(begin(observer)),
    }
}

/// Returns the time from which the ledger has entries: the second after the first block that was read.
fn begin(observer: &Observer) -> Timestamp {
    observer.first_cursor.map_or(Timestamp::MAX, |first| first.time + Duration::from_secs(1))
}

pub(super) fn every_day_is_reconciled(end: &End<'_>) -> FinalVerdict {
    let observer = end.observer;
    if observer.first_cursor.is_none() {
        return Ok(());
    }
    let next = observer.reconciled.last_key_value().map_or_else(|| begin(observer), |(to, _)| *to);
    // It is checked every few seconds, and there have been no faults for longer than this.
    let due = end_of_day(next) + SETTLES + Duration::from_secs(180);
    if observer.final_time > due {
        return Err((
            format!("there is no reconciliation of the day from {next}, and it is {}", observer.final_time),
            None,
        ));
    }
    Ok(())
}
