//! Merchants, their keys, and which accounts are watched.

use engine::{account::AccountName, merchant::Merchant, ownership::FORMER_ACCOUNT_WATCH_PERIOD, time::Timestamp};

use crate::{
    postgres::{
        commit::{
            business,
            working::{Checked, Working, conflict},
        },
        fault::Fault,
        tables::merchants::{AccountRow, KeyRow, MerchantRow},
    },
    record::{
        merchant::MerchantFacts,
        vault::Vault,
        wire::{Damage, array},
    },
};

/// Writes a merchant that is unchanged since it was read.
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
        working.keys.remove_unread(*gone, KeyRow(id));
    }
    for new in row.facts.digests.difference(&known) {
        working.keys.put(*new, KeyRow(id));
    }
    follow_account(working, before.as_ref(), &row.facts, at)?;
    working.merchants.put(id, row);
    Ok(Ok(()))
}

/// Watches the account of a merchant, and its previous one for a while. Every change of the merchants that have an account or have
/// proven it, changes the account's version.
fn follow_account(
    working: &mut Working,
    before: Option<&MerchantFacts>,
    after: &MerchantFacts,
    at: Timestamp,
) -> Result<(), Fault> {
    let left = before.filter(|before| before.account != after.account);
    if let Some(left) = left {
        let row = match working.accounts.get(&left.account).copied() {
            Some(row) => row.next(),
            None => new(working, at)?,
        };
        let unwatch_at = Some(at + FORMER_ACCOUNT_WATCH_PERIOD);
        working.accounts.put(left.account, AccountRow { unwatch_at, ..row });
    }
    let is_same = before.is_some_and(|before| before.account == after.account && before.is_proven == after.is_proven);
    match working.accounts.get(&after.account).copied() {
        Some(_) if is_same => {}
        Some(row) => working.accounts.put(after.account, row.next()),
        None => {
            let row = new(working, at)?;
            working.accounts.put(after.account, row);
        }
    }
    Ok(())
}

/// Returns the row of an account that is watched for the first time, with the next number. A row that is made again after its
/// removal has another version than any before it: the version begins with the time.
fn new(working: &mut Working, at: Timestamp) -> Result<AccountRow, Fault> {
    let last = business::single(working, ACCOUNT_NUMBER, number)?.unwrap_or(0);
    business::set(working, ACCOUNT_NUMBER, (last + 1).to_be_bytes().to_vec());
    Ok(AccountRow { version: at.millis(), number: last + 1, watched_since: at, unwatch_at: None })
}

/// The single value that holds the number of the account that was added last: 8 bytes, big-endian. Every addition writes
/// it, so that a number is never visible before a smaller one.
pub(crate) const ACCOUNT_NUMBER: &str = "account_number";

fn number(bytes: &[u8]) -> Result<u64, Damage> {
    array("number", bytes).map(u64::from_be_bytes)
}

/// Stops watching an account that no merchant has.
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
