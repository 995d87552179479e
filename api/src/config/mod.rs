//! Settings in layers: defaults, a TOML file, environment variables, flags. Later layers override earlier ones; unknown
//! settings are errors.

mod consistency;
mod kind;
mod merchant_limits;
mod table;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt, fs, net::SocketAddr, path::Path, path::PathBuf, time::Duration};

use actors::addresses::AllowedAddresses;
use engine::{
    account::AccountName,
    hive::ChainId,
    money::FeePercent,
    payment::{ClaimFinality, FeeMode},
};

use crate::facade::limits::{Edge, Limits, Now, Rate, StreamLimits};

pub use kind::Kind;
pub use table::{Key, TABLE, find, reference};

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The default.
    Default,
    /// The default of a command.
    Command(&'static str),
    /// A TOML file.
    File(PathBuf),
    /// An environment variable.
    Environment(String),
    /// A command line flag.
    Flag,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Command(name) => write!(f, "default of {name}"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::Flag => f.write_str("flag"),
        }
    }
}

/// An error of the settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the settings file {path}: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// The error of the system.
        reason: String,
    },
    /// The file is not valid TOML.
    #[error("the settings file {path} is not valid TOML: {reason}")]
    NotToml {
        /// The file.
        path: String,
        /// The position and the error.
        reason: String,
    },
    /// The setting does not exist.
    #[error("there is no setting `{key}` ({source_name}){}", suggestion(.key))]
    Unknown {
        /// The unknown key.
        key: String,
        /// The source of the value.
        source_name: String,
    },
    /// A value is invalid.
    #[error("setting `{key}` {requirement} ({source_name})")]
    Invalid {
        /// The setting.
        key: &'static str,
        /// The requirement for its value.
        requirement: String,
        /// The source of the value.
        source_name: String,
    },
    /// A `--set` without `=`.
    #[error("`--set {0}` must be key=value")]
    NotAPair(String),
    /// Settings contradict each other.
    #[error("{0}")]
    Inconsistent(&'static str),
}

/// Returns the question whether a similar setting was meant; empty if there is none.
fn suggestion(key: &str) -> String {
    let last = key.rsplit('.').next().unwrap_or(key);
    let near = TABLE.iter().find(|known| known.name.rsplit('.').next() == Some(last) || known.name.starts_with(key));
    near.map(|near| format!("; did you mean `{}`?", near.name)).unwrap_or_default()
}

/// The settings in force.
#[derive(Clone)]
pub struct Config {
    values: BTreeMap<&'static str, (String, Source)>,
}

/// Hides secrets.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.show())
    }
}

impl Default for Config {
    fn default() -> Self {
        let default = |key: &Key| (key.name, (key.default.to_owned(), Source::Default));
        Self { values: TABLE.iter().map(default).collect() }
    }
}

/// The layers above the defaults; later fields override earlier ones.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    /// The defaults of the command.
    pub command: Vec<(&'static str, String)>,
    /// The name of the command.
    pub command_name: &'static str,
    /// The TOML file.
    pub file: Option<PathBuf>,
    /// Environment variables; only `HIVETILL_…` are used.
    pub environment: Vec<(String, String)>,
    /// `key=value` pairs of `--set`.
    pub pairs: Vec<String>,
    /// Settings with dedicated flags.
    pub flags: Vec<(&'static str, String)>,
}

/// Environment variables `HIVETILL_…` that are not settings. Commands read the first five; the examples in the documentation
/// read the others, which may be set in the same shell.
const OTHER_VARIABLES: [&str; 10] = [
    "HIVETILL_KEY",
    "HIVETILL_WALLET",
    "HIVETILL_MCP_TOKEN",
    "HIVETILL_FAILPOINT",
    "HIVETILL_API_KEY",
    "HIVETILL_API",
    "HIVETILL_WEBHOOK_SECRET",
    "HIVETILL_MODE",
    "HIVETILL_CONTROL",
    "HIVETILL_ACCOUNT",
];

/// Returns the environment variables of the process.
#[must_use]
pub fn environment_variables() -> Vec<(String, String)> {
    let text = |text: std::ffi::OsString| text.into_string().ok();
    std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?))).collect()
}

impl Config {
    /// Applies the layers to the defaults.
    ///
    /// # Errors
    /// The first error, with its key and its source.
    pub fn load(layers: Layers) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        for (key, value) in layers.command {
            config.set(key, value, Source::Command(layers.command_name))?;
        }
        if let Some(path) = layers.file {
            config.read_file(&path)?;
        }
        for (name, value) in layers.environment {
            if name.starts_with("HIVETILL_") && !OTHER_VARIABLES.contains(&name.as_str()) {
                let source = Source::Environment(name.clone());
                let key = TABLE.iter().find(|key| key.variable() == name);
                let unknown = || ConfigError::Unknown { key: name, source_name: "environment variable".to_owned() };
                let key = key.ok_or_else(unknown)?;
                config.set(key.name, value, source)?;
            }
        }
        for pair in layers.pairs {
            let (key, value) = pair.split_once('=').ok_or_else(|| ConfigError::NotAPair(pair.clone()))?;
            config.set(key.trim(), value.trim().to_owned(), Source::Flag)?;
        }
        for (key, value) in layers.flags {
            config.set(key, value, Source::Flag)?;
        }
        config.check_consistency()?;
        Ok(config)
    }

    fn set(&mut self, name: &str, value: String, source: Source) -> Result<(), ConfigError> {
        let Some(key) = find(name) else {
            return Err(ConfigError::Unknown { key: name.to_owned(), source_name: source.to_string() });
        };
        key.check(&value).map_err(|requirement| ConfigError::Invalid {
            key: key.name,
            requirement,
            source_name: source.to_string(),
        })?;
        self.values.insert(key.name, (value, source));
        Ok(())
    }

    fn read_file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let name = path.display().to_string();
        let text = fs::read_to_string(path)
            .map_err(|error| ConfigError::Unreadable { path: name.clone(), reason: error.to_string() })?;
        let table: toml::Table = text
            .parse()
            .map_err(|error: toml::de::Error| ConfigError::NotToml { path: name, reason: error.to_string() })?;
        self.read_table("", &table, path)
    }

    fn read_table(&mut self, prefix: &str, table: &toml::Table, path: &Path) -> Result<(), ConfigError> {
        for (name, value) in table {
            let name = format!("{prefix}{name}");
            let source = Source::File(path.to_owned());
            match (value, find(&name)) {
                (toml::Value::Table(inner), None)
                    if TABLE.iter().any(|key| key.name.starts_with(&format!("{name}."))) =>
                {
                    self.read_table(&format!("{name}."), inner, path)?;
                }
                (value, Some(key)) => match toml_text(key.kind, value) {
                    Some(text) => self.set(key.name, text, source)?,
                    None => {
                        let requirement = format!("must be {}, not {}", key.kind, value.type_str());
                        let source_name = source.to_string();
                        return Err(ConfigError::Invalid { key: key.name, requirement, source_name });
                    }
                },
                (_, None) => return Err(ConfigError::Unknown { key: name, source_name: source.to_string() }),
            }
        }
        Ok(())
    }

    /// Formats the settings in force as TOML, with the source of each value and without secrets.
    #[must_use]
    pub fn show(&self) -> String {
        let mut out = String::new();
        for key in TABLE {
            let (text, source) = &self.values[key.name];
            let name = key.name;
            let line = match key.kind {
                Kind::Secret | Kind::Token | Kind::Database if text.is_empty() => {
                    format!("# {name} is not set  ({source})\n")
                }
                Kind::Secret | Kind::Token | Kind::Database => format!("# {name} is set and not shown  ({source})\n"),
                Kind::Integer(..) | Kind::Flag => format!("{name} = {text}  # {source}\n"),
                Kind::OptionalUrls if !text.contains(',') => format!("{name} = {}  # {source}\n", quoted(text)),
                Kind::Urls | Kind::OptionalUrls | Kind::Networks | Kind::Origins => {
                    let urls: Vec<String> = self.list(name).iter().map(|url| quoted(url)).collect();
                    format!("{name} = [{}]  # {source}\n", urls.join(", "))
                }
                _ => format!("{name} = {}  # {source}\n", quoted(text)),
            };
            out.push_str(&line);
        }
        out
    }

    /// Returns the value of a setting as text.
    ///
    /// # Panics
    /// If the setting does not exist.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        let value = self.values.get(name);
        &value.unwrap_or_else(|| panic!("`{name}` is not in the table of settings")).0
    }

    /// Returns the value of a setting; `None` if it is empty.
    #[must_use]
    pub fn optional(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    /// Returns the value of an integer setting.
    #[must_use]
    pub fn integer(&self, name: &str) -> u64 {
        self.text(name).parse().expect("validated when it was set")
    }

    /// Returns the value of an integer setting as `usize`.
    #[must_use]
    pub fn count(&self, name: &str) -> usize {
        usize::try_from(self.integer(name)).unwrap_or(usize::MAX)
    }

    /// Returns the value of a setting in milliseconds.
    #[must_use]
    pub fn millis(&self, name: &str) -> Duration {
        Duration::from_millis(self.integer(name))
    }

    /// Returns the value of a setting in seconds.
    #[must_use]
    pub fn seconds(&self, name: &str) -> Duration {
        Duration::from_secs(self.integer(name))
    }

    /// Returns the value of a setting in days.
    #[must_use]
    pub fn days(&self, name: &str) -> Duration {
        Duration::from_secs(self.integer(name) * 86_400)
    }

    /// Returns the value of a retention setting in days; `None` if it is 0, which means unlimited.
    fn retention(&self, name: &str) -> Option<Duration> {
        Some(self.days(name)).filter(|days| !days.is_zero())
    }

    /// Returns the value of a boolean setting.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        self.text(name) == "true"
    }

    /// Returns the items of a list setting.
    #[must_use]
    pub fn list(&self, name: &str) -> Vec<String> {
        self.text(name).split(',').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
    }

    /// Returns the value of a rate limit; `None` if there is no limit.
    #[must_use]
    pub fn rate(&self, name: &str) -> Option<Rate> {
        self.optional(name).map(|text| text.parse().expect("validated when it was set"))
    }

    /// Returns the trusted proxies, the CORS origins and the limits of the facade.
    #[must_use]
    pub fn edge(&self, now: Now) -> Edge {
        let streams = StreamLimits { per_ip: self.count("limits.streams_per_ip"), total: self.count("limits.streams") };
        let limits = (self.text("limits.profile") == "production")
            .then(|| Limits::new(now, |name| self.rate(name), self.seconds("limits.lockout_seconds"), streams));
        let trusted_proxies = self.list("trusted_proxies").iter().filter_map(|network| network.parse().ok()).collect();
        Edge { trusted_proxies, key_origins: self.list("cors.key_origins"), limits }
    }

    /// Returns the value of a listening address; `None` if it is empty.
    #[must_use]
    pub fn address(&self, name: &str) -> Option<SocketAddr> {
        self.optional(name).map(|text| text.parse().expect("validated when it was set"))
    }

    /// Returns the settings of the engine.
    #[must_use]
    pub fn engine(&self) -> actors::Settings {
        let chain_id = ChainId::parse(self.text("chain_id")).expect("validated when it was set");
        let development = self.text("network") == "dev";
        let fee_mode = match self.optional("fees.account").map(AccountName::parse) {
            Some(Ok(account)) if self.text("fees.mode") == "split" => FeeMode::Split { account },
            _ => FeeMode::Invoice,
        };
        let defaults = actors::Settings::of(chain_id);
        actors::Settings {
            development,
            fee_percent: FeePercent::parse(self.text("fees.percent")).unwrap_or_default(),
            fee_mode,
            session_lifetime: self.seconds("session.lifetime_seconds"),
            session_grace: self.seconds("session.grace_seconds"),
            max_active: self.count("session.max_active"),
            block_interval: self.millis("ledger.block_interval_ms"),
            poll_interval: self.millis("ledger.poll_interval_ms"),
            min_agreeing_nodes: self.count("ledger.min_agreeing_nodes"),
            rate_interval: self.seconds("ledger.rate_interval_seconds"),
            hbd_peg: actors::HbdPeg {
                percent: self.integer("ledger.hbd_peg_percent"),
                refuses: self.text("ledger.hbd_off_peg") == "refuse",
            },
            webhook_header_prefix: self.text("webhooks.header_prefix").to_owned(),
            webhook_timeout: self.millis("webhooks.timeout_ms"),
            event_retention: self.days("events.retention_days"),
            metadata_retention: self.retention("retention.metadata_days"),
            note_retention: self.retention("retention.notes_days"),
            allow_insecure_webhooks: self.flag("webhooks.allow_insecure"),
            x402: self.x402(),
            key_roll: self.flag("keys.roll"),
            compliance: self.compliance(),
            quota: self.quota(),
            idempotency_keys: self.integer("limits.idempotency_keys"),
            registration: actors::RegistrationMode::parse(self.text("registration"))
                .expect("validated when it was set"),
            server: self.server(),
            account_change_wait: Duration::from_secs(self.integer("merchants.account_change_hours") * 3_600),
            billing: actors::BillingSettings {
                merchant: self.optional("billing.merchant_id").and_then(|id| id.parse().ok()),
                due: self.days("billing.due_days"),
            },
            lease: self.seconds("store.lease_seconds"),
            store_timeout: self.millis("store.timeout_ms"),
            max_waiting_calls: self.count("limits.waiting_calls"),
            ..defaults
        }
    }

    /// Returns the name of this installation in challenges: the host of `base_url`, or the listening address.
    fn server(&self) -> String {
        let listen = self.text("listen");
        let url = self.optional("base_url").and_then(|url| url::Url::parse(url).ok());
        let Some((url, host)) = url.as_ref().and_then(|url| Some((url, url.host_str()?))) else {
            return listen.to_owned();
        };
        url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    fn x402(&self) -> actors::X402Settings {
        actors::X402Settings {
            max_expiration: self.seconds("x402.max_expiration_seconds"),
            finality: match self.text("x402.finality") {
                "accepted" => ClaimFinality::Accepted,
                "irreversible" => ClaimFinality::Irreversible,
                _ => ClaimFinality::InBlock,
            },
            irreversible_from_cents: self.integer("x402.irreversible_from_cents"),
            only_registered: self.flag("x402.only_registered"),
            signs: self.flag("x402.sign"),
        }
    }

    /// Returns the IP addresses that webhooks may be sent to. `webhooks.allow_insecure` also allows loopback addresses, for
    /// receivers in development.
    #[must_use]
    pub fn webhook_addresses(&self) -> AllowedAddresses {
        let loopback = self.flag("webhooks.allow_insecure").then_some(["127.0.0.0/8", "::1/128"]);
        let own = self.list("webhooks.allowed_networks");
        let all = loopback.into_iter().flatten().map(str::to_owned).chain(own);
        AllowedAddresses::public_and(all.filter_map(|network| network.parse().ok()).collect())
    }

    /// Returns the settings of the store.
    #[must_use]
    pub fn store(&self) -> storage::Options {
        storage::Options {
            cache_bytes: self.count("store.cache_bytes"),
            mode: storage::CommitMode::Thread { queue: self.count("store.queue") },
            ..storage::Options::default()
        }
    }
}

/// Returns a TOML value as text; `None` if its type does not match.
fn toml_text(kind: Kind, value: &toml::Value) -> Option<String> {
    match (kind, value) {
        (Kind::Integer(..), toml::Value::Integer(number)) => Some(number.to_string()),
        (Kind::Flag, toml::Value::Boolean(flag)) => Some(flag.to_string()),
        (Kind::Percent, toml::Value::Integer(number)) => Some(number.to_string()),
        (Kind::Percent, toml::Value::Float(number)) => Some(number.to_string()),
        (Kind::Urls | Kind::OptionalUrls | Kind::Networks | Kind::Origins, toml::Value::Array(items)) => {
            let texts: Option<Vec<&str>> = items.iter().map(toml::Value::as_str).collect();
            // Items are stored comma-separated.
            texts.filter(|texts| texts.iter().all(|text| !text.contains(','))).map(|texts| texts.join(","))
        }
        (Kind::Integer(..) | Kind::Flag | Kind::Urls | Kind::Networks | Kind::Origins, _) => None,
        (_, toml::Value::String(text)) => Some(text.clone()),
        _ => None,
    }
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}
