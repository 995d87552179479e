//! Failures of commands, with their messages and exit codes.

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use actors::StartError;
use proto::ApiError;
use storage::OpenError;

use crate::config::ConfigError;

/// The exit codes, for `--help`.
pub(super) const EXIT_CODES: &str = "Exit codes: 0 success, 1 failure, 2 invalid command line, 3 invalid settings, 4 a listening address is \
     in use, 5 the data directory is in use, or it or the database cannot be opened, 6 the ledger or the data directory is of another chain, 7 \
     the engine shut down after a failure and should be restarted, 8 disk full, 9 permission denied or read-only disk, 10 \
     the store is corrupt, inconsistent or missing, 11 the store is of a newer version, 12 the clock is wrong, 13 the \
     doctor found a failure. `pay` and `simulate` have additional codes.";

/// The failure of a command.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The settings are invalid.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// A listening address cannot be used.
    #[error("cannot listen on {address} ({flag}): {source}{}", address_in_use_hint(.source, .flag))]
    Listen {
        /// The IP address and port.
        address: SocketAddr,
        /// The flag or setting of the address.
        flag: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The data directory cannot be opened.
    #[error("cannot open the data directory {}: {source}", path.display())]
    Store {
        /// The directory.
        path: PathBuf,
        /// The error of the store.
        source: OpenError,
    },
    /// The database of the setting `store.url` cannot be used.
    #[error("cannot use the database of the setting store.url: {source}")]
    Database {
        /// The error of the store.
        source: OpenError,
    },
    /// A store cannot be copied into a store of the other kind.
    #[error("cannot copy the store to {to}: {source}")]
    Copy {
        /// The target.
        to: String,
        /// The error of one of the stores.
        source: OpenError,
    },
    /// A running engine uses the data directory.
    #[error("{} is in use by a running engine; {hint}", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The alternative.
        hint: &'static str,
    },
    /// The store is inconsistent or damaged.
    #[error("{0}")]
    Inconsistent(String),
    /// The engine shut down because the disk is full.
    #[error("disk full: {}. Free space and restart; acknowledged writes are durable", .0.display())]
    Full(PathBuf),
    /// The system clock is behind the head blocks of all ledger nodes.
    #[error("the system clock is wrong: the head block of every node is {} s ahead of it. Set the clock by NTP and restart", behind.as_secs())]
    Clock {
        /// The minimum delay.
        behind: Duration,
    },
    /// Checks of the doctor failed.
    #[error("{0} checks failed")]
    ChecksFailed(usize),
    /// The state file of the development ledger cannot be used.
    #[error("the ledger cannot start: {0}")]
    Ledger(String),
    /// The engine did not start.
    #[error("the engine cannot start: {}{}", .0, chain_hint(.0))]
    Start(#[from] StartError),
    /// The engine shut down after a failure.
    #[error("the engine shut down: {0}")]
    Engine(String),
    /// The engine refused a call.
    #[error("the engine refused the call: {}", with_fields(.0))]
    Refused(ApiError),
    /// A file cannot be read or written.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        reason: String,
    },
    /// The user has no permission to read or write a file, or its file system is read-only.
    #[error("permission denied: {}: {reason}", path.display())]
    PermissionDenied {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        reason: String,
    },
    /// A setting refers to something that cannot be used.
    #[error("{setting}: {reason}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// The error.
        reason: String,
    },
    /// The policy of an agent's wallet, or the routes of a gate, cannot be used.
    #[error("{0}")]
    Policy(String),
    /// A payment failed, or its outcome is unknown.
    #[error(transparent)]
    Pay(#[from] super::payer::failure::Failure),
    /// A simulation failed, with this exit code. Its report has been printed.
    #[error("the simulation found a failure")]
    Simulation(u8),
    /// Any other failure.
    #[error("{0}")]
    Other(String),
}

impl Failure {
    /// Returns the exit code.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Other(_) | Self::Refused(_) | Self::File { .. } => 1,
            Self::PermissionDenied { .. } => 9,
            Self::Clock { .. } => 12,
            Self::ChecksFailed(_) => 13,
            Self::Config(_) | Self::Policy(_) | Self::Setting { .. } => 3,
            Self::Simulation(code) => *code,
            Self::Pay(failure) => failure.exit_code(),
            Self::Listen { .. } => 4,
            Self::Full(_) => 8,
            Self::Inconsistent(_) | Self::Start(StartError::Read(storage::ReadError::Damaged { .. })) => 10,
            Self::Copy { source: OpenError::NotEmpty { .. } | OpenError::Exists(_), .. } => 1,
            Self::Store { source, .. } | Self::Database { source } | Self::Copy { source, .. } => exit_code_of(source),
            Self::InUse { .. } | Self::Ledger(_) | Self::Start(StartError::Read(_) | StartError::Write(_)) => 5,
            Self::Start(StartError::WrongNode(_) | StartError::WrongStore { .. }) => 6,
            Self::Start(StartError::Actor(_)) | Self::Engine(_) => 7,
        }
    }
}

impl Failure {
    /// Returns the failure of reading or writing a file.
    pub(super) fn of_file(path: &Path, error: &io::Error) -> Self {
        let (path, reason) = (path.to_owned(), error.to_string());
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::PermissionDenied { path, reason }
            }
            _ => Self::File { path, reason },
        }
    }
}

impl From<tonic::Status> for Failure {
    fn from(status: tonic::Status) -> Self {
        Self::Refused(status.into())
    }
}

/// Returns the exit code of a store that cannot be opened.
const fn exit_code_of(error: &OpenError) -> u8 {
    match error {
        OpenError::MasterKey { .. } | OpenError::Address(_) => 3,
        OpenError::Full(_) => 8,
        OpenError::Permission(_) | OpenError::Privilege(_) | OpenError::ReadOnly(_) => 9,
        OpenError::Corrupt(_)
        | OpenError::Foreign
        | OpenError::Unsound(_)
        | OpenError::NotMade(_)
        | OpenError::LogOnly(_)
        | OpenError::SchemaOlder { .. } => 10,
        OpenError::SchemaNewer { .. } => 11,
        _ => 5,
    }
}

/// Converts the start error of a development ledger.
pub(super) fn of_ledger(error: simulations::devnet::StartError) -> Failure {
    match error {
        simulations::devnet::StartError::Listen { address, source } => {
            Failure::Listen { address, flag: "--ledger-listen or --listen, --control-listen", source }
        }
        simulations::devnet::StartError::Journal(error) => Failure::Ledger(error.to_string()),
    }
}

fn chain_hint(error: &StartError) -> &'static str {
    match error {
        StartError::WrongNode(_) => "; the settings network and chain_id select the chain",
        _ => "",
    }
}

fn address_in_use_hint(source: &io::Error, flag: &str) -> String {
    if source.kind() == io::ErrorKind::AddrInUse {
        format!("; another process uses it: choose another address with {flag}, or port 0 for a free port")
    } else {
        String::new()
    }
}

/// Formats an error with its invalid fields.
fn with_fields(error: &ApiError) -> String {
    let mut text = error.message.to_string();
    for field in &error.fields {
        text.push_str(&format!(" ({}: {})", field.field, field.message));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_with_different_remedies_have_different_exit_codes() {
        let of = |source| Failure::Store { path: PathBuf::from("data"), source }.exit_code();
        let path = || PathBuf::from("data");
        assert_eq!(of(OpenError::Locked(path())), 5);
        assert_eq!(of(OpenError::Full(path())), 8);
        assert_eq!(of(OpenError::Permission(path())), 9);
        assert_eq!(of(OpenError::Corrupt(String::new())), 10);
        assert_eq!(of(OpenError::Foreign), 10);
        assert_eq!((of(OpenError::NotMade(path())), of(OpenError::LogOnly(path()))), (10, 10));
        assert_eq!(of(OpenError::MasterKey { is_given: true }), 3);
        assert_eq!(of(OpenError::SchemaNewer { found: 2, known: 1 }), 11);
        assert_eq!(Failure::Full(path()).exit_code(), 8);
        assert_eq!(Failure::Engine(String::new()).exit_code(), 7);
        assert_eq!(Failure::Clock { behind: Duration::from_secs(31) }.exit_code(), 12);
        for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem] {
            assert_eq!(Failure::of_file(Path::new("key"), &kind.into()).exit_code(), 9);
        }
        let page = include_str!("../../../docs/reference/exit-codes.md");
        let (page, _) = page.split_once("## hivetill pay").expect("a section for pay");
        for code in 0..=13 {
            assert!(EXIT_CODES.contains(&format!(" {code} ")), "{code} is not explained");
            assert!(page.contains(&format!("\n| {code} | ")), "{code} is not in docs/reference/exit-codes.md");
        }
    }
}
