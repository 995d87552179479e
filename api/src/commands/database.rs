//! The store that the settings select: the embedded one in the data directory, or the database of the setting `store.url`.

use std::{path::Path, sync::Arc};

use storage::{Address, Connections, PostgresStore};

use super::{failure::Failure, master_key};
use crate::{config::Config, store::OpenStore};

/// Returns the database of the setting `store.url`; none if it is empty.
pub(super) fn address(config: &Config) -> Result<Option<Address>, Failure> {
    let parse = |text: &str| {
        text.parse::<Address>().map_err(|error| Failure::Setting { setting: "store.url", reason: error.to_string() })
    };
    config.optional("store.url").map(parse).transpose()
}

/// Opens the store. Creates a missing embedded store if `may_create` is set; a database is created by `hivetill migrate`.
pub(super) async fn open_store(config: &Config, data: &Path, may_create: bool) -> Result<OpenStore, Failure> {
    let Some(address) = address(config)? else {
        return Ok(Arc::new(master_key::open_store(config, data, may_create)?).into());
    };
    // Checked first, so that no key is generated for a database that cannot be opened.
    PostgresStore::check(&address).await.map_err(|source| Failure::Database { source })?;
    let vault = master_key::database_vault(config, data)?;
    let connections = Connections::default();
    let store = PostgresStore::open(&address, connections, vault).await;
    let store = store.map_err(|source| Failure::Database { source })?;
    tracing::info!("the store is {address}");
    Ok(Arc::new(store).into())
}

/// Refuses a command that works only on an embedded store.
pub(super) fn refuse(config: &Config, alternative: &str) -> Result<(), Failure> {
    match address(config)? {
        Some(address) => Err(Failure::Other(format!("the store is {address}: {alternative}"))),
        None => Ok(()),
    }
}
