//! The master key: its sources, generation at the first start, and rotation (`rotate-master-key`).

use std::path::{Path, PathBuf};

use storage::{EmbeddedStore, MasterKey, OpenError, Options, PostgresStore, Vault, look_for_store};
use tracing::{info, warn};

use super::{
    database,
    failure::Failure,
    files, logs,
    output::print,
    settings::{EngineFlags, SettingsArgs},
};
use crate::config::Config;

/// The default file of the master key, in the data directory.
pub(super) const FILE_NAME: &str = "master-key";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    engine: EngineFlags,
    /// File of the new key; generated if it does not exist. By default the new key replaces the old one in
    /// master_key_file
    #[arg(long, value_name = "FILE")]
    new_key_file: Option<PathBuf>,
}

/// Opens the store with the master key of the settings or of the data directory. If there is none, generates one, unless the
/// setting `encrypt_secrets` is off. Creates a missing store if `may_create` is set. A new key is synced to disk before it
/// encrypts anything, and renamed to its final name after the store was opened with it: the final name never holds a key
/// that does not fit the store.
pub(super) fn open_store(config: &Config, data: &Path, may_create: bool) -> Result<EmbeddedStore, Failure> {
    let open = |key: Option<MasterKey>| {
        let options = Options { may_create, ..config.store() };
        let store = EmbeddedStore::open_sealed(data, options, Vault::new(key, None));
        store.map_err(|source| Failure::Store { path: data.to_owned(), source })
    };
    if let Some(key) = configured_key(config, data)? {
        return open(Some(key));
    }
    if !config.flag("encrypt_secrets") {
        warn!("encrypt_secrets is off and there is no master key: webhook secrets are stored unencrypted");
        return open(None);
    }
    // Checked first, so that no key is generated next to a store that cannot be opened.
    look_for_store(data, may_create).map_err(|source| Failure::Store { path: data.to_owned(), source })?;
    let path = data.join(FILE_NAME);
    let unconfirmed = path.with_extension("new");
    let is_new = !unconfirmed.exists();
    let had_directory = data.exists();
    files::create_directory(data)?;
    let key = files::secret(&unconfirmed)?;
    files::set_owner(data, &unconfirmed)?;
    let key = of_setting(&key, "master_key_file", &unconfirmed.display().to_string())?;
    match open(Some(key)) {
        Ok(store) => {
            files::replace(&unconfirmed, &path)?;
            info!(
                "master key generated in {}: keep a copy, separate from the backups, which never contain it",
                path.display()
            );
            Ok(store)
        }
        Err(failure) => {
            // If the store is locked, another engine is starting and may use the new key.
            let is_locked = matches!(&failure, Failure::Store { source: OpenError::Locked(_), .. });
            if is_new && !is_locked {
                let _ = std::fs::remove_file(&unconfirmed);
                if !had_directory {
                    let _ = std::fs::remove_dir(data);
                }
            }
            Err(match failure {
                Failure::Store { path, source: OpenError::MasterKey { .. } } => {
                    Failure::Store { path, source: OpenError::MasterKey { is_given: false } }
                }
                other => other,
            })
        }
    }
}

/// Returns the vault for a database: with the master key of the settings or of the data directory. If there is none, generates one in
/// the data directory, unless the setting `encrypt_secrets` is off. Every engine of a database needs the same key.
pub(super) fn database_vault(config: &Config, data: &Path) -> Result<Vault, Failure> {
    let configured = configured_key(config, data)?;
    if configured.is_some() || !config.flag("encrypt_secrets") {
        return Ok(Vault::new(configured, None));
    }
    files::create_directory(data)?;
    let path = data.join(FILE_NAME);
    let key = files::secret(&path)?;
    info!("master key generated in {}: keep a copy, and give it to every other engine of the database", path.display());
    Ok(Vault::new(Some(of_setting(&key, "master_key_file", &path.display().to_string())?), None))
}

/// Returns the vault with the master key of the settings or of the data directory, without generating a key.
pub(super) fn vault(config: &Config, data: &Path) -> Result<Vault, Failure> {
    Ok(Vault::new(configured_key(config, data)?, None))
}

/// Returns the file of the master key; `None` if the setting `master_key` contains the key, or there is no key.
pub(super) fn key_file(config: &Config, data: &Path) -> Option<PathBuf> {
    match (config.optional("master_key"), config.optional("master_key_file")) {
        (Some(_), _) => None,
        (None, Some(path)) => Some(PathBuf::from(path)),
        (None, None) => Some(data.join(FILE_NAME)).filter(|path| path.exists()),
    }
}

/// Returns the master key of the settings or of the data directory; `None` if there is none.
fn configured_key(config: &Config, data: &Path) -> Result<Option<MasterKey>, Failure> {
    match config.optional("master_key") {
        Some(text) => Ok(Some(of_setting(text, "master_key", "its value")?)),
        None => key_file(config, data).map(|path| read(&path)).transpose(),
    }
}

fn read(path: &Path) -> Result<MasterKey, Failure> {
    let text = files::read(path)?;
    let reason = || format!("file not found: {}", path.display());
    let missing = || Failure::Setting { setting: "master_key_file", reason: reason() };
    of_setting(text.ok_or_else(missing)?.trim(), "master_key_file", &path.display().to_string())
}

fn of_setting(text: &str, setting: &'static str, source: &str) -> Result<MasterKey, Failure> {
    parse(text, source).map_err(|failure| Failure::Setting { setting, reason: failure.to_string() })
}

fn parse(text: &str, source: &str) -> Result<MasterKey, Failure> {
    let bytes = hex::decode(text).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    let invalid = || Failure::Other(format!("{source}: a master key must be 64 hex characters"));
    bytes.map(MasterKey::new).ok_or_else(invalid)
}

/// Encrypts every secret with a new key. If the command is killed, it can be run again and continues.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let color = args.settings.color();
    let config = args.settings.load(args.engine.into_settings())?;
    logs::start(&config, color);
    let data = PathBuf::from(config.text("data_dir"));
    let old_file = key_file(&config, &data);
    let new_file = match (&args.new_key_file, &old_file) {
        (Some(path), _) => path.clone(),
        (None, Some(path)) => path.with_extension("new"),
        (None, None) => return Err(Failure::Other("set the file of the new key: --new-key-file FILE".to_owned())),
    };
    let previous = configured_key(&config, &data)?;
    let current = Some(parse(&files::secret(&new_file)?, &new_file.display().to_string())?);
    let vault = Vault::new(current, previous);
    match database::address(&config)? {
        Some(address) => {
            let rotated = PostgresStore::rotate_master_key(&address, &vault).await;
            rotated.map_err(|source| Failure::Database { source })?;
        }
        None => {
            let options = Options { may_create: false, ..config.store() };
            let store = EmbeddedStore::open_sealed(&data, options, vault);
            let store = store.map_err(|source| Failure::Store { path: data.clone(), source })?;
            store.close().await;
        }
    }
    let file = match (args.new_key_file, old_file) {
        (None, Some(old)) => {
            files::replace(&new_file, &old)?;
            old
        }
        _ => new_file,
    };
    print(&format!("All secrets are encrypted with the new key in {}\n", file.display()))
}
