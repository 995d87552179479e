//! Files that only their owner can read: access tokens, keys, credentials.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::Write as _,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, chown},
    path::{Path, PathBuf},
};

use actors::{environment::Entropy, system::SystemEntropy};

use super::failure::Failure;
use crate::config::Kind;

/// The file with the access token of the gRPC port, in the data directory. The setting `grpc.token` overrides it.
const TOKEN_FILE: &str = "grpc-token";

/// Creates a directory and its parents with mode 0700.
pub(super) fn create_directory(path: &Path) -> Result<(), Failure> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| failed(path, &error))
}

/// Writes a file atomically with mode 0600.
pub(super) fn write_private(path: &Path, text: &str) -> Result<(), Failure> {
    let temporary = path.with_extension("tmp");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let write = || -> std::io::Result<()> {
        let mut file = options.open(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    write().map_err(|error| failed(path, &error))
}

/// Replaces the file `old` by the file `new`.
pub(super) fn replace(new: &Path, old: &Path) -> Result<(), Failure> {
    fs::rename(new, old).map_err(|error| failed(old, &error))
}

/// Changes the owner of a file to the owner of its data directory, so that the service can read a file created by root.
pub(super) fn set_owner(data: &Path, path: &Path) -> Result<(), Failure> {
    let owner = |path: &Path| fs::metadata(path).map(|file| (file.uid(), file.gid()));
    let set_owner = || -> std::io::Result<()> {
        let ((uid, gid), (own_uid, _)) = (owner(data)?, owner(path)?);
        if own_uid == 0 && uid != 0 {
            chown(path, Some(uid), Some(gid))?;
        }
        Ok(())
    };
    set_owner().map_err(|error| failed(path, &error))
}

/// Reads a file; `None` if it does not exist.
pub(super) fn read(path: &Path) -> Result<Option<String>, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path, &error)),
    }
}

/// Returns the access token stored in a data directory; `None` if there is none.
pub(super) fn stored_token(data: &Path) -> Result<Option<String>, Failure> {
    let path = data.join(TOKEN_FILE);
    let token = read(&path)?.map(|token| token.trim().to_owned()).filter(|token| !token.is_empty());
    if let Some(Err(requirement)) = token.as_deref().map(|token| Kind::Token.check(token)) {
        return Err(Failure::Setting { setting: "grpc.token", reason: format!("{} {requirement}", path.display()) });
    }
    Ok(token)
}

/// Returns the access token stored in a data directory; generates and stores one if there is none.
pub(super) fn token(data: &Path) -> Result<String, Failure> {
    if let Some(token) = stored_token(data)? {
        return Ok(token);
    }
    let token = hex::encode(random::<32>());
    write_private(&data.join(TOKEN_FILE), &format!("{token}\n"))?;
    Ok(token)
}

/// Returns the secret stored in a file, 64 hex characters; generates and stores one if the file does not exist.
pub(super) fn secret(path: &Path) -> Result<String, Failure> {
    if let Some(secret) = read(path)? {
        return Ok(secret.trim().to_owned());
    }
    let secret = hex::encode(random::<32>());
    write_private(path, &format!("{secret}\n"))?;
    Ok(secret)
}

/// Returns cryptographically secure random bytes.
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemEntropy.fill(&mut bytes);
    bytes
}

/// A temporary directory that is deleted on drop.
#[derive(Debug)]
pub(super) struct TemporaryDirectory(pub(super) PathBuf);

impl TemporaryDirectory {
    pub(super) fn create() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("hivetill-dev-{}", hex::encode(random::<8>())));
        create_directory(&path)?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // Files that cannot be removed remain in the system's directory for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::of_file(path, error)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_is_generated_once_and_readable_only_by_its_owner() {
        let folder = TemporaryDirectory::create().expect("a directory");
        let data = folder.0.join("data");
        create_directory(&data).expect("created");
        assert_eq!(stored_token(&data).expect("read"), None);
        let generated = token(&data).expect("generated");
        assert_eq!(token(&data).expect("stored"), generated);
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&data), mode(&data.join(TOKEN_FILE))), (0o700, 0o600));
    }
}
