//! The master key of a database: every engine must have the same one, and secrets that were stored unencrypted are encrypted when an
//! engine opens the database with a key.

use std::sync::Arc;

use engine::{ids::MerchantId, merchant::Merchant, x402::ReceiptKeys};

use crate::{
    embedded::tables::meta,
    postgres::{
        address::Address,
        connection::Connection,
        fault::Fault,
        inspection::refuse_running,
        values::{Id, column},
    },
    record::{
        self,
        vault::{Secrets, Vault},
    },
    store::error::OpenError,
};

/// Checks that a database is encrypted with the vault's master key, and encrypts what is not encrypted yet. The first engine that
/// opens the database with a key determines the key.
///
/// # Errors
/// [`OpenError::MasterKey`] if it is encrypted with another key.
pub(crate) async fn seal(connection: &Connection, vault: &Vault) -> Result<(), OpenError> {
    let wanted = vault.current.as_ref().map(|key| key.id().to_vec());
    if let Some(id) = &wanted {
        let sql = "INSERT INTO single_values (name, version, value) VALUES ($1, 1, $2) ON CONFLICT DO NOTHING";
        connection.query(sql, &[&meta::MASTER_KEY, id]).await?;
    }
    if stored_key(connection).await? != wanted {
        return Err(OpenError::MasterKey { is_given: wanted.is_some() });
    }
    if wanted.is_some() {
        seal_plain(connection, vault).await?;
    }
    Ok(())
}

/// Encrypts every secret with the vault's current key, in one transaction. A database that has this key already is not changed.
///
/// # Errors
/// [`OpenError::EnginesRunning`]; [`OpenError::MasterKey`] if the database is encrypted with a key that is not in the vault.
pub(crate) async fn rotate(address: &Address, vault: &Vault) -> Result<(), OpenError> {
    let (mut connection, _) = Connection::open_checked(address, None).await?;
    connection.begin_maintenance("READ COMMITTED").await?;
    // An engine that starts meanwhile finds the new key.
    connection.lock_tables().await?;
    refuse_running(&connection, address).await?;
    let stored = stored_key(&connection).await?;
    let wanted = vault.current.as_ref().map(|key| key.id().to_vec());
    let previous = vault.previous.as_ref().map(|key| key.id().to_vec());
    if stored.is_some() && stored != wanted && stored != previous {
        return Err(OpenError::MasterKey { is_given: wanted.is_some() });
    }
    if let Some(id) = wanted.filter(|wanted| stored.as_ref() != Some(wanted)) {
        for (id, record, merchant) in merchants(&connection, vault).await? {
            let after = record::merchant_to_bytes(Arc::unwrap_or_clone(merchant), vault);
            replace(&connection, id, &record, &after).await?;
        }
        if let Some((record, keys)) = receipt_keys(&connection, vault).await? {
            replace_receipt_keys(&connection, &record, &record::receipt_keys_to_bytes(&keys, vault)).await?;
        }
        let sql = "INSERT INTO single_values AS t (name, version, value) VALUES ($1, 1, $2) \
                   ON CONFLICT (name) DO UPDATE SET version = t.version + 1, value = excluded.value";
        connection.query(sql, &[&meta::MASTER_KEY, &id]).await?;
    }
    Ok(connection.run("COMMIT").await?)
}

/// Returns the id of the database's key.
async fn stored_key(connection: &Connection) -> Result<Option<Vec<u8>>, Fault> {
    let rows = connection.query("SELECT value FROM single_values WHERE name = $1", &[&meta::MASTER_KEY]).await?;
    rows.first().map(|row| column(row, 0)).transpose()
}

async fn replace(connection: &Connection, id: MerchantId, before: &[u8], after: &[u8]) -> Result<(), Fault> {
    let sql = "UPDATE merchants SET record = $2 WHERE id = $1 AND record = $3";
    connection.query(sql, &[&Id(id.bits()), &after, &before]).await.map(drop)
}

async fn replace_receipt_keys(connection: &Connection, before: &[u8], after: &[u8]) -> Result<(), Fault> {
    let sql = "UPDATE single_values SET version = version + 1, value = $2 WHERE name = $1 AND value = $3";
    connection.query(sql, &[&meta::RECEIPT_KEYS, &after, &before]).await.map(drop)
}

/// Reads the keys that sign receipts, with their record. Damaged ones, which reads never return, are skipped.
async fn receipt_keys(connection: &Connection, vault: &Vault) -> Result<Option<(Vec<u8>, ReceiptKeys)>, Fault> {
    let rows = connection.query("SELECT value FROM single_values WHERE name = $1", &[&meta::RECEIPT_KEYS]).await?;
    let Some(record) = rows.first().map(|row| column::<Vec<u8>>(row, 0)).transpose()? else { return Ok(None) };
    match record::receipt_keys_from_bytes(&record, vault) {
        Ok(keys) => Ok(Some((record, keys))),
        Err(damage) => {
            tracing::error!(%damage, "the receipt keys are damaged: not encrypted");
            Ok(None)
        }
    }
}

/// Reads every merchant with its record. A damaged merchant, which reads never return, is skipped: it must not prevent the start.
async fn merchants(connection: &Connection, vault: &Vault) -> Result<Vec<(MerchantId, Vec<u8>, Arc<Merchant>)>, Fault> {
    let mut merchants = Vec::new();
    for row in connection.query("SELECT id, record FROM merchants", &[]).await? {
        let (Id(id), record) = (column(&row, 0)?, column::<Vec<u8>>(&row, 1)?);
        let id = MerchantId::from_bits(id);
        match record::merchant_from_bytes(id, &record, vault) {
            Ok(merchant) => merchants.push((id, record, merchant)),
            Err(damage) => {
                tracing::error!(merchant.id = %id, %damage, "merchant {id} is damaged: secrets not encrypted");
            }
        }
    }
    Ok(merchants)
}

/// Encrypts the secrets that are stored unencrypted. A merchant that changes meanwhile is written by its writer, with the key.
async fn seal_plain(connection: &Connection, vault: &Vault) -> Result<(), OpenError> {
    let mut sealed = 0;
    for (id, record, merchant) in merchants(connection, vault).await? {
        if matches!(record::merchant_is_plain(&record), Ok(true)) {
            let after = record::merchant_to_bytes(Arc::unwrap_or_clone(merchant), vault);
            replace(connection, id, &record, &after).await?;
            sealed += 1;
        }
    }
    if let Some((record, keys)) = receipt_keys(connection, vault).await?
        && record::receipt_keys_are_plain(&record) == Ok(true)
    {
        replace_receipt_keys(connection, &record, &record::receipt_keys_to_bytes(&keys, vault)).await?;
    }
    if sealed > 0 {
        tracing::info!(merchants = sealed, "webhook secrets of {sealed} merchants encrypted");
    }
    Ok(())
}

/// Counts merchants with encrypted and unencrypted secrets. A damaged record counts as neither.
pub(crate) async fn count(connection: &Connection) -> Result<Secrets, Fault> {
    let mut secrets = Secrets::default();
    for row in connection.query("SELECT record FROM merchants", &[]).await? {
        let Ok(is_plain) = record::merchant_is_plain(column(&row, 0)?) else { continue };
        *(if is_plain { &mut secrets.plain } else { &mut secrets.sealed }) += 1;
    }
    Ok(secrets)
}
