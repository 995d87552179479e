//! The accounts that the engine watches: those of merchants, and for a month their former ones.

use std::{collections::BTreeMap, time::Duration};

use engine::{account::AccountName, ownership::FORMER_ACCOUNT_WATCH_PERIOD, time::Timestamp};

/// How far the wall clock may be ahead of the true time, so that a month seems over too early.
const CLOCK_AHEAD: Duration = Duration::from_secs(7 * 3_600);

/// The watched accounts.
#[derive(Debug, Clone, Default)]
pub struct Watched(BTreeMap<AccountName, Account>);

#[derive(Debug, Clone, Default)]
struct Account {
    /// Since when it is a merchant's, or was again.
    since: Timestamp,
    /// When a merchant left it last, virtual milliseconds.
    left_ms: Option<u64>,
    /// Ranges of blocks, after the first and up to the second of each pair, in which it may or may not be watched.
    gaps: Vec<(u32, Option<u32>)>,
}

impl Watched {
    /// Records that a merchant has an account.
    pub fn has(&mut self, account: AccountName, since: Timestamp, scanned: u32) {
        let known = self.0.entry(account).or_insert_with(|| Account { since, ..Account::default() });
        if let Some((_, until @ None)) = known.gaps.last_mut() {
            *until = Some(scanned);
            known.since = since;
        }
    }

    /// Records that a merchant left an account.
    pub fn left(&mut self, account: AccountName, now_ms: u64) {
        self.0.entry(account).or_default().left_ms = Some(now_ms);
    }

    /// Records that no merchant has had an account for long enough; returns whether it was watched.
    pub fn ends(&mut self, account: AccountName, now_ms: u64, scanned: u32) -> bool {
        let Some(known) = self.0.get_mut(&account) else { return false };
        known.gaps.push((scanned, None));
        let month_ms = (FORMER_ACCOUNT_WATCH_PERIOD - CLOCK_AHEAD).as_millis();
        known.left_ms.is_some_and(|left_ms| u128::from(now_ms - left_ms) >= month_ms)
    }

    /// Returns whether a transfer to it in this block must be stored; none where both are right.
    #[must_use]
    pub fn is_kept(&self, account: &AccountName, block_num: u32) -> Option<bool> {
        let Some(known) = self.0.get(account) else { return Some(false) };
        let is_between = |(from, to): &(u32, Option<u32>)| *from < block_num && to.is_none_or(|to| block_num <= to);
        if known.gaps.iter().any(is_between) { None } else { Some(true) }
    }

    /// Returns those that are watched now, and since when.
    pub fn now(&self) -> impl Iterator<Item = (&AccountName, Timestamp)> {
        let is_open = |known: &Account| known.gaps.last().is_none_or(|(_, until)| until.is_some());
        self.0.iter().filter(move |(_, known)| is_open(known)).map(|(account, known)| (account, known.since))
    }

    /// Returns all accounts that have ever been watched.
    pub fn ever(&self) -> impl Iterator<Item = AccountName> {
        self.0.keys().copied()
    }
}
