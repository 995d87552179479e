//! Failures of commands: the message and the exit code of each.

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
     in use, 5 the data directory is in use or cannot be opened, 6 the ledger or the data directory is of another chain, 7 \
     the engine shut down after a failure and should be restarted, 8 disk full, 9 permission denied or read-only disk, 10 \
     the store is corrupt, inconsistent or missing, 11 the store is of a newer version, 12 the clock is wrong, 13 the \
     doctor found a failure. `pay` and `simulate` have additional codes.";

/// Why a command ended without doing its work.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Settings cannot be used.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// An address cannot be listened on.
    #[error("cannot listen on {address} ({flag}): {source}{}", taken(.source, .flag))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The flag or setting that chose it.
        flag: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The data directory cannot be opened.
    #[error("cannot open the data directory {}: {source}", path.display())]
    Store {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: OpenError,
    },
    /// A running engine has the data directory.
    #[error("{} is in use by a running engine; {hint}", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
        /// What to do instead.
        hint: &'static str,
    },
    /// A store contradicts itself.
    #[error("{0}")]
    Unsound(String),
    /// The engine had to stop for want of room.
    #[error("disk full: {}. Free space and restart; acknowledged writes are durable", .0.display())]
    Full(PathBuf),
    /// The clock is behind what every ledger node says.
    #[error("the system clock is wrong: the head block of every node is {} s ahead of it. Set the clock by NTP and restart", behind.as_secs())]
    Clock {
        /// By how much at least.
        behind: Duration,
    },
    /// The doctor found what makes payments fail.
    #[error("{0} checks failed")]
    Unwell(usize),
    /// The dev ledger's own file cannot be used.
    #[error("the ledger cannot start: {0}")]
    Ledger(String),
    /// The engine did not start.
    #[error("the engine cannot start: {}{}", .0, chain_hint(.0))]
    Start(#[from] StartError),
    /// The engine had to stop.
    #[error("the engine shut down: {0}")]
    Engine(String),
    /// The engine refused.
    #[error("the engine refused the call: {}", refusal(.0))]
    Refused(ApiError),
    /// A file of ours cannot be read or written.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// A file may not be read or written by this user, or is on a read-only file system.
    #[error("permission denied: {}: {why}", path.display())]
    Denied {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// A setting names something that cannot be used.
    #[error("{setting}: {why}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// Why not.
        why: String,
    },
    /// A payment was not made, or is not known to be.
    #[error(transparent)]
    Pay(#[from] super::pay::Failure),
    /// A simulation broke a rule; its report is out already. The exit code says which kind.
    #[error("the simulation found a failure")]
    Simulation(u8),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl Failure {
    /// Returns the exit code.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Other(_) | Self::Refused(_) | Self::File { .. } => 1,
            Self::Denied { .. } => 9,
            Self::Clock { .. } => 12,
            Self::Unwell(_) => 13,
            Self::Config(_) | Self::Setting { .. } | Self::Store { source: OpenError::MasterKey { .. }, .. } => 3,
            Self::Simulation(code) => *code,
            Self::Pay(failure) => failure.exit_code(),
            Self::Listen { .. } => 4,
            Self::Store { source: OpenError::Full(_), .. } | Self::Full(_) => 8,
            Self::Store { source: OpenError::Permission(_), .. } => 9,
            Self::Store {
                source:
                    OpenError::Corrupt(_)
                    | OpenError::Foreign
                    | OpenError::Unsound(_)
                    | OpenError::NotMade(_)
                    | OpenError::LogOnly(_),
                ..
            }
            | Self::Unsound(_)
            | Self::Start(StartError::Read(storage::ReadError::Damaged { .. })) => 10,
            Self::Store { source: OpenError::SchemaNewer { .. }, .. } => 11,
            Self::Store { .. }
            | Self::InUse { .. }
            | Self::Ledger(_)
            | Self::Start(StartError::Read(_) | StartError::Write(_)) => 5,
            Self::Start(StartError::WrongNode(_) | StartError::WrongStore { .. }) => 6,
            Self::Start(StartError::Actor(_)) | Self::Engine(_) => 7,
        }
    }
}

impl Failure {
    /// Returns why a file cannot be read or written.
    pub(super) fn of_file(path: &Path, error: &io::Error) -> Self {
        let (path, why) = (path.to_owned(), error.to_string());
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::Denied { path, why },
            _ => Self::File { path, why },
        }
    }
}

impl From<tonic::Status> for Failure {
    fn from(status: tonic::Status) -> Self {
        Self::Refused(status.into())
    }
}

/// Tells why a dev ledger did not start.
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

fn taken(source: &io::Error, flag: &str) -> String {
    if source.kind() == io::ErrorKind::AddrInUse {
        format!("; another process uses it: choose another address with {flag}, or port 0 for a free port")
    } else {
        String::new()
    }
}

fn refusal(error: &ApiError) -> String {
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
    fn every_reason_that_asks_for_another_remedy_has_a_code_of_its_own() {
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
        let (page, _) = page.split_once("## hivetill pay").expect("tables of others");
        for code in 0..=13 {
            assert!(EXIT_CODES.contains(&format!(" {code} ")), "{code} is not explained");
            assert!(page.contains(&format!("\n| {code} | ")), "{code} is not in docs/reference/exit-codes.md");
        }
    }
}
