//! The master key: where it is read from, and `rotate-master-key`, which puts another in its place.

use std::path::{Path, PathBuf};

use storage::{MasterKey, Options, RedbStore, Vault};

use super::{
    Failure, files, logs, say,
    settings::{EngineFlags, SettingsArgs},
};
use crate::config::Config;

/// The file `dev` keeps its master key in, in the data directory.
pub(super) const FILE_NAME: &str = "master-key";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    engine: EngineFlags,
    /// Where the new key is kept; made if it is not there. Without it, the new key takes the place of the old one in
    /// master_key_file
    #[arg(long, value_name = "FILE")]
    new_key_file: Option<PathBuf>,
}

/// Returns what secrets are sealed with, by the settings.
pub(super) fn vault(config: &Config) -> Result<Vault, Failure> {
    Ok(Vault::new(in_force(config)?, None))
}

fn in_force(config: &Config) -> Result<Option<MasterKey>, Failure> {
    match (config.optional("master_key"), config.optional("master_key_file")) {
        (Some(text), _) => Ok(Some(of_setting(text, "master_key", "it")?)),
        (None, Some(path)) => Ok(Some(read(Path::new(path))?)),
        (None, None) => Ok(None),
    }
}

fn read(path: &Path) -> Result<MasterKey, Failure> {
    let text = files::read(path)?;
    let why = || format!("there is no file {}", path.display());
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
    // With `master_key` set, the file of the settings is not the one in force.
    let old_file =
        config.optional("master_key_file").map(PathBuf::from).filter(|_| config.text("master_key").is_empty());
    let new_file = match (&args.new_key_file, &old_file) {
        (Some(path), _) => path.clone(),
        (None, Some(path)) => path.with_extension("new"),
        (None, None) => return Err(Failure::Other("say where the new key is kept: --new-key-file FILE".to_owned())),
    };
    let previous = in_force(&config)?;
    let current = Some(parse(&files::kept_secret(&new_file)?, &new_file.display().to_string())?);
    let options = Options { may_create: false, ..config.store() };
    let store = RedbStore::open_sealed(&data, options, Vault::new(current, previous));
    let store = store.map_err(|source| Failure::Store { path: data.clone(), source })?;
    store.close().await;
    let kept = match (args.new_key_file, old_file) {
        (None, Some(old)) => {
            files::replace(&new_file, &old)?;
            old
        }
        _ => new_file,
    };
    say(&format!("Every secret is sealed with the new key, which is kept in {}\n", kept.display()))
}
