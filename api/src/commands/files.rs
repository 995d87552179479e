//! Small files that only their owner may read: tokens, the dev gateway's credentials.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::Write as _,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, chown},
    path::{Path, PathBuf},
};

use actors::{environment::Entropy, system::SystemEntropy};

use super::failure::Failure;
use crate::config::Kind;

/// The file that holds the gRPC port's token when no setting does.
const TOKEN_FILE: &str = "grpc-token";

/// Makes a directory and those above it, for its owner only.
pub(super) fn make_directory(path: &Path) -> Result<(), Failure> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| failed(path, &error))
}

/// Writes a file for its owner only, whole or not at all.
pub(super) fn write_private(path: &Path, text: &str) -> Result<(), Failure> {
    let unfinished = path.with_extension("tmp");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let write = || -> std::io::Result<()> {
        let mut file = options.open(&unfinished)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&unfinished, path)
    };
    write().map_err(|error| failed(path, &error))
}

/// Puts one file in the place of another.
pub(super) fn replace(new: &Path, old: &Path) -> Result<(), Failure> {
    fs::rename(new, old).map_err(|error| failed(old, &error))
}

/// Gives a file in a data directory to whom the directory belongs: made by root, it is still for the service to read.
pub(super) fn give_to_owner(data: &Path, path: &Path) -> Result<(), Failure> {
    let owner = |path: &Path| fs::metadata(path).map(|file| (file.uid(), file.gid()));
    let give = || -> std::io::Result<()> {
        let ((uid, gid), (own_uid, _)) = (owner(data)?, owner(path)?);
        if own_uid == 0 && uid != 0 {
            chown(path, Some(uid), Some(gid))?;
        }
        Ok(())
    };
    give().map_err(|error| failed(path, &error))
}

/// Reads a file, or nothing if there is none.
pub(super) fn read(path: &Path) -> Result<Option<String>, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path, &error)),
    }
}

/// Returns the token kept in a data directory, if there is one.
pub(super) fn kept_token(data: &Path) -> Result<Option<String>, Failure> {
    let path = data.join(TOKEN_FILE);
    let token = read(&path)?.map(|token| token.trim().to_owned()).filter(|token| !token.is_empty());
    if let Some(Err(why)) = token.as_deref().map(|token| Kind::Token.check(token)) {
        return Err(Failure::Setting { setting: "grpc.token", why: format!("{} {why}", path.display()) });
    }
    Ok(token)
}

/// Returns the token kept in a data directory; the first time it is made.
pub(super) fn token(data: &Path) -> Result<String, Failure> {
    if let Some(token) = kept_token(data)? {
        return Ok(token);
    }
    let token = hex::encode(random::<32>());
    write_private(&data.join(TOKEN_FILE), &format!("{token}\n"))?;
    Ok(token)
}

/// Returns the secret kept in a file, 64 hex characters; the first time it is made.
pub(super) fn kept_secret(path: &Path) -> Result<String, Failure> {
    if let Some(secret) = read(path)? {
        return Ok(secret.trim().to_owned());
    }
    let secret = hex::encode(random::<32>());
    write_private(path, &format!("{secret}\n"))?;
    Ok(secret)
}

/// Returns random bytes fit for keys.
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemEntropy.fill(&mut bytes);
    bytes
}

/// A directory that goes away with its value.
#[derive(Debug)]
pub(super) struct TemporaryDirectory(pub(super) PathBuf);

impl TemporaryDirectory {
    pub(super) fn make() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("hivetill-dev-{}", hex::encode(random::<8>())));
        make_directory(&path)?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // What cannot be removed is a temporary folder all the same.
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
    fn a_token_is_made_once_and_only_its_owner_may_read_it() {
        let folder = TemporaryDirectory::make().expect("a folder");
        let data = folder.0.join("data");
        make_directory(&data).expect("made");
        assert_eq!(kept_token(&data).expect("read"), None);
        let made = token(&data).expect("made");
        assert_eq!(token(&data).expect("kept"), made);
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&data), mode(&data.join(TOKEN_FILE))), (0o700, 0o600));
    }
}
