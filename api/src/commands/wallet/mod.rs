//! `hivetill wallet`: an agent's wallet with a policy and a durable ledger.
//!
//! The rules are `engine::wallet`. The wallet is a directory: `wallet.toml` (policy) and `wallet.redb` (ledger).

mod cli;
mod entry;
mod error;
mod failpoint;
mod policy_file;
mod purchase;
mod store;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use engine::{account::AccountName, hive::PrivateKey, wallet::Policy};
use reqwest::Url;

pub(super) use cli::{Args, describe, run};
pub(super) use error::Error;
pub(super) use purchase::Purchase;

use super::pay::{
    Failure,
    key::{KeySource, NoKey},
    ledger::Ledger,
};
use policy_file::PolicyFile;
use store::Store;

/// An open wallet directory.
#[derive(Clone)]
pub(super) struct Wallet {
    directory: PathBuf,
    file: PolicyFile,
    pub(super) store: Store,
    /// The key, if it was read in advance.
    kept_key: Option<Arc<PrivateKey>>,
}

/// Hides the key.
impl fmt::Debug for Wallet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wallet").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl Wallet {
    /// Reads the policy of a wallet's directory.
    ///
    /// # Errors
    /// [`Error`] if there is none, or if it cannot be used.
    pub(super) fn open(directory: &Path) -> Result<Self, Error> {
        let file = PolicyFile::read(directory)?;
        Ok(Self { directory: directory.to_owned(), file, store: Store::new(directory), kept_key: None })
    }

    /// Returns the wallet with the current policy, and with the key that was read in advance.
    ///
    /// # Errors
    /// [`Error`] if the policy cannot be used.
    pub(super) fn reopen(&self) -> Result<Self, Error> {
        Ok(Self { kept_key: self.kept_key.clone(), ..Self::open(&self.directory)? })
    }

    /// Reads the key in advance if its source can be read only once.
    ///
    /// # Errors
    /// [`NoKey`].
    pub(super) fn keep_key(&mut self) -> Result<(), NoKey> {
        if matches!(self.file.key, KeySource::Descriptor(_)) {
            self.kept_key = Some(Arc::new(self.file.key.read()?));
        }
        Ok(())
    }

    /// Returns the paying account.
    pub(super) const fn account(&self) -> AccountName {
        self.file.account
    }

    /// Returns the policy.
    pub(super) const fn policy(&self) -> &Policy {
        &self.file.policy
    }

    fn key(&self) -> Result<Arc<PrivateKey>, NoKey> {
        self.kept_key.clone().map_or_else(|| self.file.key.read().map(Arc::new), Ok)
    }

    /// Returns the ledger nodes: the given ones, those of the policy, or those of the settings.
    pub(super) fn ledger(&self, named: &[String], url: Option<&Url>) -> Result<Ledger, Failure> {
        Ledger::new(if named.is_empty() { &self.file.nodes } else { named }, url)
    }

    fn damaged(&self) -> Error {
        Error::ledger(&self.directory.join(store::FILE), "an entry is damaged")
    }
}
