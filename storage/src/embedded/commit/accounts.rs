//! Indexes of merchants by account, of pending account changes, and of accounts that no merchant has any more.

use std::time::Duration;

use engine::{account::AccountName, mutant, ownership::FORMER_ACCOUNT_WATCH_PERIOD, time::Timestamp};

use crate::{
    embedded::{
        commit::{group::Group, ledger_entries},
        fault::Fault,
    },
    record::merchant::MerchantFacts,
};

/// Updates the indexes of a merchant that is written at `at`.
pub(crate) fn index(
    group: &mut Group<'_>,
    id: u128,
    before: Option<&MerchantFacts>,
    after: &MerchantFacts,
    at: Timestamp,
) -> Result<(), Fault> {
    let left = before.filter(|before| before.account != after.account);
    if let Some(left) = left {
        group.tables.account_merchants().remove((left.account.as_str(), id))?;
        let watched = if mutant!("former-account-watched-for-a-day") {
            Duration::from_secs(86_400)
        } else {
            FORMER_ACCOUNT_WATCH_PERIOD
        };
        let unwatch_at = at + watched;
        group.tables.retired_accounts().insert(left.account.as_str(), unwatch_at.millis());
    }
    if before.is_none() || left.is_some() {
        group.tables.account_merchants().insert((after.account.as_str(), id), ());
    }
    if let Some(proven) = before.filter(|before| before.is_proven && (left.is_some() || !after.is_proven)) {
        group.tables.proven_merchants().remove((proven.account.as_str(), id))?;
    }
    if after.is_proven && before.is_none_or(|before| !before.is_proven || left.is_some()) {
        group.tables.proven_merchants().insert((after.account.as_str(), id), ());
    }
    let due = |facts: &MerchantFacts| facts.pending_due_at.map(|at| (at.millis(), id));
    let (old, new) = (before.and_then(due), due(after));
    if old != new {
        if let Some(key) = old {
            group.tables.pending_accounts().remove(key)?;
        }
        if let Some(key) = new {
            group.tables.pending_accounts().insert(key, ());
        }
    }
    ledger_entries::watch(group, &after.account, at)
}

/// Stops watching an account that no merchant has.
pub(crate) fn unwatch(group: &mut Group<'_>, account: &AccountName) -> Result<(), Fault> {
    group.tables.retired_accounts().remove(account.as_str())?;
    if !has_merchant(group, account)? {
        group.tables.accounts().remove(account.as_str())?;
    }
    Ok(())
}

fn has_merchant(group: &mut Group<'_>, account: &AccountName) -> Result<bool, Fault> {
    let range = (account.as_str(), 0)..=(account.as_str(), u128::MAX);
    // A damaged row still belongs to a merchant.
    Ok(group.tables.account_merchants().range(range)?.all_keys().next().transpose()?.is_some())
}

/// Returns the merchants that have proven an account.
pub(crate) fn proven_merchants(group: &mut Group<'_>, account: &AccountName) -> Result<Vec<u128>, Fault> {
    let range = (account.as_str(), 0)..=(account.as_str(), u128::MAX);
    let merchants = group.tables.proven_merchants().range(range)?.all_keys();
    merchants.map(|key| Ok(key?.value().1)).collect()
}
