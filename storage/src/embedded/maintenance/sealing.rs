//! Change of a store's master key.

use std::sync::Arc;

use engine::{ids::MerchantId, mutant};
use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable, Table};

use crate::{
    embedded::{
        fault::Fault,
        tables::{MERCHANTS, META, begin_write, meta, set_row},
        wal::single,
    },
    record::{
        self,
        checked::{Checked, Seed, Text},
        vault::{Secrets, Vault},
    },
    store::error::OpenError,
};

/// The value of the row that marks a pending rewrite of the file.
pub(crate) const YES: &[u8] = b"yes";

/// Counts merchants with sealed and unsealed secrets. The secrets stay sealed.
pub(crate) fn count(snapshot: &ReadTransaction) -> Result<Secrets, Fault> {
    let mut secrets = Secrets::default();
    let seed = Seed::of("merchants");
    for entry in snapshot.open_table(MERCHANTS)?.iter()? {
        let (key, sealed) = entry?;
        let bytes = seed.open(&key.value().to_le_bytes(), sealed.value());
        // A damaged row counts as neither; reads report it.
        let Some(Ok(is_plain)) = bytes.map(record::merchant_is_plain) else { continue };
        *(if is_plain { &mut secrets.plain } else { &mut secrets.sealed }) += 1;
    }
    Ok(secrets)
}

/// Returns whether the key that signs receipts is stored unencrypted. A damaged one counts as encrypted; reads report it.
fn has_plain_receipt_key(snapshot: &ReadTransaction) -> Result<bool, Fault> {
    match single::stored(&snapshot.open_table(META)?, meta::RECEIPT_KEYS) {
        Ok(stored) => Ok(stored.is_some_and(|bytes| record::receipt_keys_are_plain(&bytes) == Ok(true))),
        Err(Fault::Damaged { .. }) => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// Records that the store contains no unencrypted secrets any more.
pub(crate) fn clear_reseal_pending(database: &Database) -> Result<(), Fault> {
    let transaction = begin_write(database)?;
    single::store(&mut transaction.open_table(META)?, meta::REWRITE_PENDING, b"no")?;
    transaction.commit()?;
    Ok(())
}

impl Vault {
    /// Seals all secrets of a store with the current master key, in one transaction. Returns whether pages and log may
    /// still contain unencrypted secrets.
    ///
    /// # Errors
    /// [`OpenError::MasterKey`] if the store is sealed with a key that the vault does not have.
    pub(crate) fn seal_secrets(&self, database: &Database) -> Result<bool, OpenError> {
        let snapshot = database.begin_read().map_err(Fault::from)?;
        let names = snapshot.open_table(META).map_err(Fault::from)?;
        let stored = single::stored(&names, meta::MASTER_KEY)?;
        let was_sealed_lately = single::stored(&names, meta::REWRITE_PENDING)?.is_some_and(|value| value == YES);
        drop(names);
        let wanted = self.current.as_ref().map(|key| key.id().to_vec());
        let plain = if wanted.is_some() { count(&snapshot)?.plain } else { 0 };
        let is_plain = plain > 0 || (wanted.is_some() && has_plain_receipt_key(&snapshot)?);
        drop(snapshot);
        if stored == wanted && !is_plain {
            return Ok(was_sealed_lately);
        }
        let is_known = stored == wanted
            || stored.as_ref().is_none_or(|stored| {
                self.previous.as_ref().is_some_and(|previous| previous.id().as_slice() == stored.as_slice())
            });
        match wanted {
            Some(id) if is_known => {
                self.seal_all(database, &id, is_plain)?;
                if plain > 0 {
                    tracing::info!(merchants = plain, "webhook secrets of {plain} merchants encrypted");
                }
                Ok(is_plain || was_sealed_lately)
            }
            wanted => Err(OpenError::MasterKey { is_given: wanted.is_some() }),
        }
    }

    /// Checks that a store is sealed with the current key, or not sealed.
    ///
    /// # Errors
    /// [`OpenError::MasterKey`].
    pub(crate) fn fits(&self, snapshot: &ReadTransaction) -> Result<(), OpenError> {
        let names = snapshot.open_table(META).map_err(Fault::from)?;
        let stored = single::stored(&names, meta::MASTER_KEY)?;
        let keys = [&self.current, &self.previous].into_iter().flatten();
        let fits = stored.is_none_or(|stored| keys.into_iter().any(|key| key.id().as_slice() == stored.as_slice()));
        if fits { Ok(()) } else { Err(OpenError::MasterKey { is_given: self.current.is_some() }) }
    }

    fn seal_receipt_keys(&self, names: &mut Table<'_, Text, Checked<&'static [u8]>>) -> Result<(), Fault> {
        let stored = match single::stored(&*names, meta::RECEIPT_KEYS) {
            Err(fault @ Fault::Damaged { .. }) => {
                tracing::error!(%fault, "the receipt keys are damaged: not encrypted");
                None
            }
            stored => stored?,
        };
        match stored.map(|bytes| record::receipt_keys_from_bytes(&bytes, self)) {
            Some(Ok(keys)) => single::store(names, meta::RECEIPT_KEYS, &record::receipt_keys_to_bytes(&keys, self)),
            Some(Err(damage)) => {
                tracing::error!(%damage, "the receipt keys are damaged: not encrypted");
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn seal_all(&self, database: &Database, id: &[u8], were_plain: bool) -> Result<(), Fault> {
        let transaction = begin_write(database)?;
        {
            let mut merchants = transaction.open_table(MERCHANTS)?;
            let mut records = Vec::new();
            let seed = Seed::of("merchants");
            for entry in merchants.iter()? {
                let (key, sealed) = entry?;
                let (key, id) = (key.value().to_le_bytes(), MerchantId::from_bits(key.value()));
                let read = seed.open(&key, sealed.value()).map(|bytes| record::merchant_from_bytes(id, bytes, self));
                match read {
                    Some(Ok(merchant)) => {
                        records.push((key, record::merchant_to_bytes(Arc::unwrap_or_clone(merchant), self)));
                    }
                    // A damaged merchant is never returned by reads, and must not prevent the start.
                    damaged => {
                        tracing::error!(merchant.id = %id, ?damaged, "merchant {id} is damaged: secrets not encrypted");
                    }
                }
            }
            let forgotten = usize::from(mutant!("rotation-skips-a-merchant"));
            for (key, record) in records.into_iter().skip(forgotten) {
                set_row(&mut merchants, seed, &key, Some(&record))?;
            }
            let mut names = transaction.open_table(META)?;
            single::store(&mut names, meta::MASTER_KEY, id)?;
            self.seal_receipt_keys(&mut names)?;
            if were_plain {
                single::store(&mut names, meta::REWRITE_PENDING, YES)?;
            }
        }
        transaction.commit()?;
        Ok(())
    }
}
