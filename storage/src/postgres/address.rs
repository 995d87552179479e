//! The URL of a database: hosts, database, user, and how connections are encrypted.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use tokio_postgres::config::{Config, Host, SslMode, TargetSessionAttrs};
use url::form_urlencoded;

use crate::store::error::OpenError;

/// Longest time to establish one connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time that sent bytes stay unacknowledged before a connection counts as broken.
const USER_TIMEOUT: Duration = Duration::from_secs(10);
/// Idle time before a keepalive probe, and time between probes.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(3);
const KEEPALIVE_RETRIES: u32 = 3;

/// How a connection is encrypted and what of the server's certificate is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encryption {
    /// Never encrypted.
    Disable,
    /// Encrypted where the server offers it; the certificate is not verified.
    Prefer,
    /// Encrypted; the certificate is verified only against a given file of authorities.
    Require,
    /// Encrypted; the certificate's authority is verified.
    VerifyAuthority,
    /// Encrypted; the certificate's authority and host name are verified.
    VerifyFull,
}

/// The URL of a PostgreSQL database, with its password.
#[derive(Clone)]
pub struct Address {
    config: Config,
    encryption: Encryption,
    authorities: Option<PathBuf>,
    identity: Option<(PathBuf, PathBuf)>,
}

impl Address {
    /// Returns whether a setting names a PostgreSQL database.
    #[must_use]
    pub fn is_address(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }

    /// Sets the password unless the URL has one.
    #[must_use]
    pub fn with_default_password(mut self, password: &str) -> Self {
        if self.config.get_password().is_none() {
            self.config.password(password);
        }
        self
    }

    pub(crate) const fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) const fn encryption(&self) -> Encryption {
        self.encryption
    }

    /// Returns the file of certificate authorities to trust in place of the system's.
    pub(crate) const fn authorities(&self) -> Option<&PathBuf> {
        self.authorities.as_ref()
    }

    /// Returns the files of the client's certificate and key.
    pub(crate) const fn identity(&self) -> Option<&(PathBuf, PathBuf)> {
        self.identity.as_ref()
    }

    /// Returns whether every host is local.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.config.get_hosts().iter().all(is_local)
    }
}

/// Writes hosts, user and database; never the password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports = self.config.get_ports();
        let hosts: Vec<String> = (self.config.get_hosts().iter().enumerate())
            .map(|(at, host)| {
                let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
                match host {
                    Host::Tcp(name) => format!("{name}:{port}"),
                    #[cfg(unix)]
                    Host::Unix(path) => format!("{}:{port}", path.display()),
                }
            })
            .collect();
        let user = self.config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
        write!(f, "postgres://{user}{}/{}", hosts.join(","), self.config.get_dbname().unwrap_or_default())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

impl FromStr for Address {
    type Err = OpenError;

    fn from_str(text: &str) -> Result<Self, OpenError> {
        if !Self::is_address(text) {
            return Err(invalid("it must begin with postgres://"));
        }
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        let mut rest = form_urlencoded::Serializer::new(String::new());
        let (mut mode, mut authorities, mut certificate, mut key) = (None, None, None, None);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "sslmode" => mode = Some(encryption(&value)?),
                "sslrootcert" => authorities = Some(PathBuf::from(&*value)),
                "sslcert" => certificate = Some(PathBuf::from(&*value)),
                "sslkey" => key = Some(PathBuf::from(&*value)),
                // Ignored: every connection is to the primary.
                "target_session_attrs" => {}
                _ => drop(rest.append_pair(&name, &value)),
            }
        }
        let rest = rest.finish();
        let separator = if rest.is_empty() { "" } else { "?" };
        let mut config = Config::from_str(&format!("{base}{separator}{rest}")).map_err(|error| {
            // The parser's error repeats no part of the URL but the names of options.
            invalid(&std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string))
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(invalid("it names no host"));
        }
        let Some(user) = config.get_user().map(str::to_owned) else { return Err(invalid("it names no user")) };
        if config.get_dbname().is_none() {
            config.dbname(user);
        }
        let is_local = config.get_hosts().iter().all(is_local);
        let is_unix = config.get_hosts().iter().all(|host| !matches!(host, Host::Tcp(_)));
        let encryption = match mode {
            // Connections over a Unix socket are never encrypted, even if the URL requires it.
            _ if is_unix => Encryption::Disable,
            Some(mode) => mode,
            None if is_local => Encryption::Prefer,
            None => Encryption::VerifyFull,
        };
        let identity = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => return Err(invalid("sslcert and sslkey go together")),
        };
        config
            .ssl_mode(match encryption {
                Encryption::Disable => SslMode::Disable,
                Encryption::Prefer => SslMode::Prefer,
                Encryption::Require | Encryption::VerifyAuthority | Encryption::VerifyFull => SslMode::Require,
            })
            .target_session_attrs(TargetSessionAttrs::ReadWrite)
            .tcp_user_timeout(USER_TIMEOUT)
            .keepalives_idle(KEEPALIVE_IDLE)
            .keepalives_interval(KEEPALIVE_INTERVAL)
            .keepalives_retries(KEEPALIVE_RETRIES);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("hivetill");
        }
        Ok(Self { config, encryption, authorities, identity })
    }
}

fn invalid(why: &str) -> OpenError {
    OpenError::Address(why.to_owned())
}

fn encryption(mode: &str) -> Result<Encryption, OpenError> {
    Ok(match mode {
        "disable" => Encryption::Disable,
        "prefer" => Encryption::Prefer,
        "require" => Encryption::Require,
        "verify-ca" => Encryption::VerifyAuthority,
        "verify-full" => Encryption::VerifyFull,
        _ => return Err(invalid("sslmode must be disable, prefer, require, verify-ca or verify-full")),
    })
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        text.parse().unwrap()
    }

    #[test]
    fn remote_hosts_are_verified_unless_the_url_states_otherwise() {
        let encryption = |text: &str| address(text).encryption();
        assert_eq!(encryption("postgres://till@db.example/till"), Encryption::VerifyFull);
        assert_eq!(encryption("postgres://till@10.0.0.1,localhost/till"), Encryption::VerifyFull);
        assert_eq!(encryption("postgres://till@127.0.0.1/till"), Encryption::Prefer);
        assert_eq!(encryption("postgres://till@%2Fvar%2Frun%2Fpostgresql/till?sslmode=require"), Encryption::Disable);
        assert_eq!(encryption("postgres://till@db.example/till?sslmode=disable"), Encryption::Disable);
        let full = address("postgresql://till@a.example,b.example:5433/till?sslmode=verify-ca&sslrootcert=%2Fca.pem");
        assert_eq!((full.encryption(), full.authorities()), (Encryption::VerifyAuthority, Some(&"/ca.pem".into())));
    }

    #[test]
    fn the_password_is_never_shown() {
        let address = address("postgres://till:hunter2@a.example,b.example:5433/shop");
        let shown = format!("{address} {address:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("postgres://till@a.example:5432,b.example:5433/shop"), "{shown}");
    }

    #[test]
    fn an_invalid_url_is_refused_with_its_reason() {
        for (text, reason) in [
            ("redis://localhost", "it must begin with postgres://"),
            ("postgres:///till", "it names no host"),
            ("postgres://localhost/till", "it names no user"),
            ("postgres://till@localhost:port/till", "invalid"),
            ("postgres://till@localhost/till?sslmode=maybe", "sslmode must be"),
            ("postgres://till@localhost/till?sslcert=a.pem", "go together"),
            ("postgres://till@localhost/till?nonsense=1", "nonsense"),
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
