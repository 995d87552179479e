//! Reads of watched accounts and of the merchants of accounts.

use std::ops::Bound;

use engine::{account::AccountName, ids::MerchantId, time::Timestamp};

use crate::embedded::{fault::Fault, wal::snapshot::Snapshot};

/// Returns watched accounts after `after`, in order of name.
pub(crate) fn accounts(
    snapshot: &Snapshot,
    after: Option<&AccountName>,
    limit: usize,
) -> Result<Vec<AccountName>, Fault> {
    let start = after.map_or(Bound::Unbounded, |after| Bound::Excluded(after.as_str()));
    let mut found = Vec::new();
    // A damaged row counts as watched: watching an account too many costs nothing, missing one loses payments.
    for key in snapshot.accounts().range::<&str>((start, Bound::Unbounded))?.all_keys() {
        if found.len() == limit {
            break;
        }
        found.extend(AccountName::parse(key?.value()).ok());
    }
    Ok(found)
}

/// Returns at most `limit` merchants that have proven an account.
pub(crate) fn proven(snapshot: &Snapshot, account: &AccountName, limit: usize) -> Result<Vec<MerchantId>, Fault> {
    let range = (account.as_str(), 0)..=(account.as_str(), u128::MAX);
    let merchants = snapshot.proven_merchants();
    let merchants = merchants.range(range)?.all_keys().take(limit);
    merchants.map(|key| Ok(MerchantId::from_bits(key?.value().1))).collect()
}

/// Returns the merchants whose pending change of account is due at `now`, earliest first.
pub(crate) fn pending(snapshot: &Snapshot, now: Timestamp, limit: usize) -> Result<Vec<MerchantId>, Fault> {
    let due = snapshot.pending_accounts();
    let due = due.range(..(now.millis().saturating_add(1), 0))?.all_keys().take(limit);
    due.map(|key| Ok(MerchantId::from_bits(key?.value().1))).collect()
}

/// Returns accounts that need not be watched any more at `now`.
pub(crate) fn retired(snapshot: &Snapshot, now: Timestamp, limit: usize) -> Result<Vec<AccountName>, Fault> {
    let mut retired = Vec::new();
    for entry in snapshot.retired_accounts().iter()? {
        let (name, unwatch_at) = entry?;
        if unwatch_at.value() <= now.millis() {
            let name = name.value();
            retired.push(AccountName::parse(name).map_err(|why| Fault::inconsistent("retired_accounts", name, why))?);
        }
        if retired.len() >= limit {
            break;
        }
    }
    Ok(retired)
}

/// Returns at most `limit` accounts that were watched for the first time after the position `after`, each with its position.
pub(crate) fn added(snapshot: &Snapshot, after: u64, limit: usize) -> Result<Vec<(u64, AccountName)>, Fault> {
    let mut added = Vec::new();
    for entry in snapshot.accounts_added().range((Bound::Excluded(after), Bound::Unbounded))?.take(limit) {
        let (number, account) = entry?;
        added.extend(AccountName::parse(account.value()).ok().map(|account| (number.value(), account)));
    }
    Ok(added)
}
