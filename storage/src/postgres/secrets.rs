//! The master key of a database: every engine must have the same one, and secrets that were stored unencrypted are encrypted when an
//! engine opens the database with a key.

use std::sync::Arc;

use engine::ids::MerchantId;

use crate::{
    embedded::tables::meta,
    postgres::{
        connection::Connection,
        fault::Fault,
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
    let rows = connection.query("SELECT value FROM single_values WHERE name = $1", &[&meta::MASTER_KEY]).await?;
    let stored: Option<Vec<u8>> = rows.first().map(|row| column(row, 0)).transpose()?;
    if stored != wanted {
        return Err(OpenError::MasterKey { is_given: wanted.is_some() });
    }
    if wanted.is_some() {
        seal_plain(connection, vault).await?;
    }
    Ok(())
}

/// Encrypts the secrets that are stored unencrypted. A merchant that changes meanwhile is written by its writer, with the key.
async fn seal_plain(connection: &Connection, vault: &Vault) -> Result<(), OpenError> {
    let mut sealed = 0;
    for row in connection.query("SELECT id, record FROM merchants", &[]).await? {
        let (Id(id), record) = (column(&row, 0)?, column::<&[u8]>(&row, 1)?);
        if !matches!(record::merchant_is_plain(record), Ok(true)) {
            continue;
        }
        let id = MerchantId::from_bits(id);
        match record::merchant_from_bytes(id, record, vault) {
            Ok(merchant) => {
                let after = record::merchant_to_bytes(Arc::unwrap_or_clone(merchant), vault);
                let sql = "UPDATE merchants SET record = $2 WHERE id = $1 AND record = $3";
                connection.query(sql, &[&Id(id.bits()), &after, &record]).await?;
                sealed += 1;
            }
            // A damaged merchant is never returned by reads, and must not prevent the start.
            Err(damage) => {
                tracing::error!(merchant.id = %id, %damage, "merchant {id} is damaged: secrets not encrypted");
            }
        }
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
