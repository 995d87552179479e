//! The master key: where it is read from, and `rotate-master-key`, which puts another in its place.

use std::path::{Path, PathBuf};

use storage::{EmbeddedStore, MasterKey, OpenError, Options, Vault, look_for_store};
use tracing::{info, warn};

use super::{
    failure::Failure,
    files, logs,
    output::say,
    settings::{EngineFlags, SettingsArgs},
};
use crate::config::Config;

/// The file of the master key in the data directory, where no setting names another.
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

/// Opens the store with the master key of the settings, or with the one in the data directory; where there is none and
/// the settings do not say otherwise, one is made. Makes a store where there is none, if it `may_create` one. The key is
/// on disk before anything is sealed with it, and gets its name once the store has taken it: a key that fits nothing is
/// never left under the name of one that does.
pub(super) fn open_store(config: &Config, data: &Path, may_create: bool) -> Result<EmbeddedStore, Failure> {
    let open = |key: Option<MasterKey>| {
        let options = Options { may_create, ..config.store() };
        let store = EmbeddedStore::open_sealed(data, options, Vault::new(key, None));
        store.map_err(|source| Failure::Store { path: data.to_owned(), source })
    };
    if let Some(key) = in_force(config, data)? {
        return open(Some(key));
    }
    if !config.flag("seal_secrets") {
        warn!("seal_secrets is off and there is no master key: webhook secrets are stored unencrypted");
        return open(None);
    }
    // No key is made beside a store that is refused.
    look_for_store(data, may_create).map_err(|source| Failure::Store { path: data.to_owned(), source })?;
    let path = data.join(FILE_NAME);
    let unconfirmed = path.with_extension("new");
    let is_ours = !unconfirmed.exists();
    let had_directory = data.exists();
    files::make_directory(data)?;
    let key = files::kept_secret(&unconfirmed)?;
    files::give_to_owner(data, &unconfirmed)?;
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
            // Another engine that is starting may have made it, or be about to use it.
            let is_locked = matches!(&failure, Failure::Store { source: OpenError::Locked(_), .. });
            if is_ours && !is_locked {
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

/// Returns what secrets are sealed with, by the settings or in the data directory. Nothing is made.
pub(super) fn vault(config: &Config, data: &Path) -> Result<Vault, Failure> {
    Ok(Vault::new(in_force(config, data)?, None))
}

/// Returns the file the key in force is read from; none where the settings hold the key itself, or there is none.
pub(super) fn file_in_force(config: &Config, data: &Path) -> Option<PathBuf> {
    match (config.optional("master_key"), config.optional("master_key_file")) {
        (Some(_), _) => None,
        (None, Some(path)) => Some(PathBuf::from(path)),
        (None, None) => Some(data.join(FILE_NAME)).filter(|path| path.exists()),
    }
}

fn in_force(config: &Config, data: &Path) -> Result<Option<MasterKey>, Failure> {
    match config.optional("master_key") {
        Some(text) => Ok(Some(of_setting(text, "master_key", "it")?)),
        None => file_in_force(config, data).map(|path| read(&path)).transpose(),
    }
}

fn read(path: &Path) -> Result<MasterKey, Failure> {
    let text = files::read(path)?;
    let why = || format!("file not found: {}", path.display());
    let missing = || Failure::Setting { setting: "master_key_file", why: why() };
    of_setting(text.ok_or_else(missing)?.trim(), "master_key_file", &path.display().to_string())
}

fn of_setting(text: &str, setting: &'static str, place: &str) -> Result<MasterKey, Failure> {
    parse(text, place).map_err(|failure| Failure::Setting { setting, why: failure.to_string() })
}

fn parse(text: &str, place: &str) -> Result<MasterKey, Failure> {
    let bytes = hex::decode(text).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    bytes.map(MasterKey::new).ok_or_else(|| Failure::Other(format!("{place}: a master key is 64 hex characters")))
}

/// Seals every secret with a new key. Killed at any moment and run again, it goes on where it was.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let color = args.settings.color();
    let config = args.settings.load(args.engine.into_settings())?;
    logs::start(&config, color);
    let data = PathBuf::from(config.text("data_dir"));
    let old_file = file_in_force(&config, &data);
    let new_file = match (&args.new_key_file, &old_file) {
        (Some(path), _) => path.clone(),
        (None, Some(path)) => path.with_extension("new"),
        (None, None) => return Err(Failure::Other("set the file of the new key: --new-key-file FILE".to_owned())),
    };
    let previous = in_force(&config, &data)?;
    let current = Some(parse(&files::kept_secret(&new_file)?, &new_file.display().to_string())?);
    let options = Options { may_create: false, ..config.store() };
    let store = EmbeddedStore::open_sealed(&data, options, Vault::new(current, previous));
    let store = store.map_err(|source| Failure::Store { path: data.clone(), source })?;
    store.close().await;
    let kept = match (args.new_key_file, old_file) {
        (None, Some(old)) => {
            files::replace(&new_file, &old)?;
            old
        }
        _ => new_file,
    };
    say(&format!("All secrets are encrypted with the new key in {}\n", kept.display()))
}
