//! Repair when a store is opened: accounts with a damaged row in the list of watched accounts.

use engine::ids::MerchantId;
use redb::{Database, ReadableDatabase, ReadableTable};

use crate::{
    embedded::{
        fault::Fault,
        tables::{ACCOUNTS, MERCHANTS, begin_write, set_row},
    },
    record::{self, checked::Seed},
};

/// Watches the accounts of all merchants if the list of watched accounts has a damaged row, which may have been any of
/// theirs.
pub(crate) fn accounts(database: &Database) -> Result<(), Fault> {
    let (accounts, merchants) = (Seed::of("accounts"), Seed::of("merchants"));
    let snapshot = database.begin_read()?;
    let stored = snapshot.open_table(ACCOUNTS)?;
    let mut is_damaged = false;
    for row in stored.iter()? {
        let (key, sealed) = row?;
        is_damaged |= accounts.open(key.value().as_bytes(), sealed.value()).is_none();
    }
    if !is_damaged {
        return Ok(());
    }
    let transaction = begin_write(database)?;
    {
        let mut table = transaction.open_table(ACCOUNTS)?;
        for row in snapshot.open_table(MERCHANTS)?.iter()? {
            let (key, sealed) = row?;
            let id = MerchantId::from_bits(key.value());
            let bytes = merchants.open(&key.value().to_le_bytes(), sealed.value());
            let Some(Ok(facts)) = bytes.map(|bytes| record::merchant_to_json(id, bytes)) else { continue };
            let account = facts["hiveAccount"].as_str().unwrap_or_default();
            let is_sound = |sealed: &[u8]| accounts.open(account.as_bytes(), sealed).is_some();
            let is_watched = table.get(account)?.is_some_and(|sealed| is_sound(sealed.value()));
            if !is_watched && !account.is_empty() {
                // From the earliest time: the original time is lost.
                set_row(&mut table, accounts, account.as_bytes(), Some(&id.created_at().millis().to_le_bytes()))?;
                tracing::warn!(account, "watching the account {account} again: its row is damaged");
            }
        }
    }
    transaction.commit()?;
    Ok(())
}
