//! Merchants, their keys, and which accounts are watched.

use engine::{
    account::AccountName, merchant::Merchant, mutant, ownership::FORMER_ACCOUNT_WATCH_PERIOD, time::Timestamp,
};

use crate::{
    postgres::{
        commit::working::{Checked, Working, conflict},
        tables::merchants::{AccountRow, KeyRow, MerchantRow},
    },
    record::{merchant::MerchantFacts, vault::Vault},
};

/// Writes a merchant that is as its writer read it.
pub(crate) fn merchant(working: &mut Working, merchant: &Merchant, expected: Option<u64>, vault: &Vault) -> Checked {
    let (name, id, at) = (merchant.id, merchant.id.bits(), merchant.updated_at);
    assert!(expected.is_none_or(|expected| merchant.version > expected), "a snapshot's version grows with every write");
    let row = MerchantRow::of(merchant.clone(), vault);
    let before = working.merchants.get(&id).map(|row| row.facts.clone());
    if before.as_ref().map(|facts| facts.version) != expected {
        return conflict(format_args!("merchant {name}"));
    }
    let is_taken = |digest| working.keys.get(digest).is_some_and(|holder| holder.0 != id);
    if row.facts.digests.iter().any(is_taken) {
        return conflict(format_args!("an API key of merchant {name}"));
    }
    let known = before.as_ref().map(|facts| facts.digests.clone()).unwrap_or_default();
    for gone in known.difference(&row.facts.digests) {
        working.keys.set(*gone, None);
    }
    for new in row.facts.digests.difference(&known) {
        working.keys.put(*new, KeyRow(id));
    }
    follow_account(working, before.as_ref(), &row.facts, at);
    working.merchants.put(id, row);
    Ok(Ok(()))
}

/// Watches the account of a merchant, and goes on watching the one that it left. Whatever changes whose an account is, or who has
/// proven it, changes the account's version.
fn follow_account(working: &mut Working, before: Option<&MerchantFacts>, after: &MerchantFacts, at: Timestamp) {
    let left = before.filter(|before| before.account != after.account);
    if let Some(left) = left {
        let watched = if mutant!("left-for-a-day") {
            std::time::Duration::from_secs(86_400)
        } else {
            FORMER_ACCOUNT_WATCH_PERIOD
        };
        let row = working.accounts.get(&left.account).copied().unwrap_or_else(|| new(at));
        working.accounts.put(left.account, AccountRow { unwatch_at: Some(at + watched), ..row.next() });
    }
    let is_same = before.is_some_and(|before| before.account == after.account && before.is_proven == after.is_proven);
    match working.accounts.get(&after.account).copied() {
        Some(_) if is_same => {}
        Some(row) => working.accounts.put(after.account, row.next()),
        None => working.accounts.put(after.account, new(at)),
    }
}

/// A row that is made again after its removal has another version than any before it: the version begins with the time.
const fn new(at: Timestamp) -> AccountRow {
    AccountRow { version: at.millis(), watched_since: at, unwatch_at: None }
}

/// Stops watching an account that nobody has any more.
pub(crate) fn unwatch(working: &mut Working, account: AccountName) {
    let Some(row) = working.accounts.get(&account).copied() else { return };
    let mut owners = working.owners.get(&account).copied().unwrap_or(0);
    for (_, before, now) in working.merchants.changes() {
        let has = |row: Option<&MerchantRow>| row.is_some_and(|row| row.facts.account == account);
        owners = owners.saturating_sub(u64::from(has(before))) + u64::from(has(now));
    }
    let next = (owners > 0).then(|| AccountRow { unwatch_at: None, ..row.next() });
    working.accounts.set(account, next);
}

/// Returns the merchants that have proven an account, as the group leaves it.
pub(crate) fn provers(working: &Working, account: &AccountName) -> Vec<u128> {
    let mut provers = working.provers.get(account).cloned().unwrap_or_default();
    for (id, _, now) in working.merchants.changes() {
        let has_proven = now.is_some_and(|row| row.facts.is_proven && row.facts.account == *account);
        provers.retain(|prover| prover != id);
        provers.extend(Some(*id).filter(|_| has_proven));
    }
    provers.sort_unstable();
    provers
}
