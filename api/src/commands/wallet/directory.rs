//! The directory of a wallet: its policy, its key and its ledger.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use engine::{account::AccountName, hive::PrivateKey, wallet::Policy};
use reqwest::Url;

use super::{
    error::Error,
    policy_file::PolicyFile,
    store::{self, Store},
};
use crate::commands::payer::{
    failure::Failure,
    key::{KeySource, NoKey},
    ledger::Ledger,
};

/// An open wallet directory.
#[derive(Clone)]
pub(in crate::commands) struct Wallet {
    pub(super) directory: PathBuf,
    pub(super) file: PolicyFile,
    pub(in crate::commands) store: Store,
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
    pub(in crate::commands) fn open(directory: &Path) -> Result<Self, Error> {
        let file = PolicyFile::read(directory)?;
        Ok(Self { directory: directory.to_owned(), file, store: Store::new(directory), kept_key: None })
    }

    /// Returns the wallet with the current policy, and with the key that was read in advance.
    ///
    /// # Errors
    /// [`Error`] if the policy cannot be used.
    pub(in crate::commands) fn reopen(&self) -> Result<Self, Error> {
        Ok(Self { kept_key: self.kept_key.clone(), ..Self::open(&self.directory)? })
    }

    /// Reads the key in advance if its source can be read only once.
    ///
    /// # Errors
    /// [`NoKey`].
    pub(in crate::commands) fn keep_key(&mut self) -> Result<(), NoKey> {
        if matches!(self.file.key, KeySource::Descriptor(_)) {
            self.kept_key = Some(Arc::new(self.file.key.read()?));
        }
        Ok(())
    }

    /// Returns the paying account.
    pub(in crate::commands) const fn account(&self) -> AccountName {
        self.file.account
    }

    /// Returns the policy.
    pub(in crate::commands) const fn policy(&self) -> &Policy {
        &self.file.policy
    }

    pub(super) fn key(&self) -> Result<Arc<PrivateKey>, NoKey> {
        self.kept_key.clone().map_or_else(|| self.file.key.read().map(Arc::new), Ok)
    }

    /// Returns the ledger nodes: the given ones, those of the policy, or those of the settings.
    pub(in crate::commands) fn ledger(&self, named: &[String], url: Option<&Url>) -> Result<Ledger, Failure> {
        Ledger::new(if named.is_empty() { &self.file.nodes } else { named }, url)
    }

    pub(super) fn damaged(&self) -> Error {
        Error::ledger(&self.directory.join(store::FILE), "an entry is damaged")
    }
}
