//! Sources of a private key: a file, an environment variable or a file descriptor; never the command line.

use std::{
    fmt, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use engine::hive::{KeyError, PrivateKey};

use crate::config::environment_variables;

/// The environment variable of the key, by default.
pub(in crate::commands) const VARIABLE: &str = "HIVETILL_KEY";

/// The source of a private key.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::commands) enum KeySource {
    /// A file that only its owner may read.
    File(PathBuf),
    /// An environment variable.
    Variable(String),
    /// An inherited file descriptor, read to its end.
    Descriptor(u32),
}

impl Default for KeySource {
    fn default() -> Self {
        Self::Variable(VARIABLE.to_owned())
    }
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "the key file {}", path.display()),
            Self::Variable(name) => write!(f, "the environment variable {name}"),
            Self::Descriptor(number) => write!(f, "the file descriptor {number}"),
        }
    }
}

/// Why no key is available.
#[derive(Debug, thiserror::Error)]
pub enum NoKey {
    /// The variable is not set.
    #[error("no key to sign with: set {VARIABLE}, or name a key file or a file descriptor")]
    Missing,
    /// The source cannot be read.
    #[error("{0} cannot be read: {1}")]
    Unreadable(String, io::Error),
    /// The file is readable by others.
    #[error("{} can be read by other users (mode {mode:o}): run `chmod 600 {}`", path.display(), path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Not a private key.
    #[error("{0} {1}")]
    Invalid(String, KeyError),
}

impl NoKey {
    /// Returns the reason for scripts.
    pub(in crate::commands) const fn as_str(&self) -> &'static str {
        match self {
            Self::Missing => "no_key",
            Self::Unreadable(..) | Self::Invalid(..) => "bad_key",
            Self::Exposed { .. } => "exposed_key_file",
        }
    }
}

impl KeySource {
    /// Reads the key.
    pub(in crate::commands) fn read(&self) -> Result<PrivateKey, NoKey> {
        let unreadable = |error| NoKey::Unreadable(self.to_string(), error);
        let text = match self {
            Self::Variable(name) => {
                let found = environment_variables().into_iter().find(|(known, _)| known == name);
                found.map(|(_, value)| value).filter(|value| !value.is_empty()).ok_or(NoKey::Missing)?
            }
            Self::File(path) => {
                check_mode(path)?;
                std::fs::read_to_string(path).map_err(unreadable)?
            }
            Self::Descriptor(number) => std::fs::read_to_string(format!("/dev/fd/{number}")).map_err(unreadable)?,
        };
        PrivateKey::from_wif(text.trim()).map_err(|error| NoKey::Invalid(self.to_string(), error))
    }
}

/// Rejects a file that another user may read or replace.
fn check_mode(path: &Path) -> Result<(), NoKey> {
    let file = std::fs::metadata(path)
        .map_err(|error| NoKey::Unreadable(format!("the key file {}", path.display()), error))?;
    let mode = file.mode() & 0o777;
    if mode & 0o077 == 0 { Ok(()) } else { Err(NoKey::Exposed { path: path.to_owned(), mode }) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::commands::files::TemporaryDirectory;

    #[test]
    fn a_key_file_that_others_may_read_is_refused() {
        let folder = TemporaryDirectory::create().unwrap();
        let path = folder.0.join("key");
        let wif = PrivateKey::from_login("alice", "active", "test").unwrap().to_wif();
        std::fs::write(&path, format!("{}\n", &*wif)).unwrap();
        let with_mode = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            KeySource::File(path.clone()).read()
        };
        assert!(with_mode(0o600).is_ok() && with_mode(0o400).is_ok());
        for mode in [0o640, 0o604, 0o620, 0o644] {
            let refused = with_mode(mode).err().unwrap();
            assert_eq!(refused.as_str(), "exposed_key_file", "{mode:o}");
        }
        std::fs::write(&path, "nonsense").unwrap();
        assert_eq!(with_mode(0o600).err().unwrap().as_str(), "bad_key");
        assert_eq!(KeySource::File(folder.0.join("none")).read().err().unwrap().as_str(), "bad_key");
    }
}
