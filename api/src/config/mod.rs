//! Settings in layers: defaults, a TOML file, variables, flags. The later wins; what does not exist is refused.

mod kind;
mod merchant_limits;
mod table;
#[cfg(test)]
mod tests;
mod together;

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

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Nobody said anything.
    Default,
    /// The command's own default.
    Command(&'static str),
    /// A TOML file.
    File(PathBuf),
    /// A variable.
    Variable(String),
    /// A flag.
    Flag,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Command(name) => write!(f, "default of {name}"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Variable(name) => write!(f, "variable {name}"),
            Self::Flag => f.write_str("flag"),
        }
    }
}

/// Why settings cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the settings file {path}: {why}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system said.
        why: String,
    },
    /// The file is no TOML.
    #[error("the settings file {path} is not valid TOML: {why}")]
    NotToml {
        /// The file.
        path: String,
        /// Where and why.
        why: String,
    },
    /// There is no such setting.
    #[error("there is no setting `{key}` ({source_name}){}", hint(.key))]
    Unknown {
        /// What was written.
        key: String,
        /// Where.
        source_name: String,
    },
    /// A value breaks its rule.
    #[error("setting `{key}` {why} ({source_name})")]
    Invalid {
        /// The setting.
        key: &'static str,
        /// What it must be.
        why: String,
        /// Where it was written.
        source_name: String,
    },
    /// A `--set` without `=`.
    #[error("`--set {0}` must be key=value")]
    NotAPair(String),
    /// Two settings do not fit each other.
    #[error("{0}")]
    Together(&'static str),
}

/// Names the setting that was probably meant.
fn hint(key: &str) -> String {
    let last = key.rsplit('.').next().unwrap_or(key);
    let near = TABLE.iter().find(|known| known.name.rsplit('.').next() == Some(last) || known.name.starts_with(key));
    near.map(|near| format!("; did you mean `{}`?", near.name)).unwrap_or_default()
}

/// What is in force.
#[derive(Clone)]
pub struct Config {
    values: BTreeMap<&'static str, (String, Source)>,
}

/// Does not show secrets.
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

/// The layers above the defaults, lowest first.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    /// The command's own defaults.
    pub command: Vec<(&'static str, String)>,
    /// The name of that command.
    pub command_name: &'static str,
    /// The TOML file.
    pub file: Option<PathBuf>,
    /// Variables, of which only `HIVETILL_…` count.
    pub variables: Vec<(String, String)>,
    /// `key=value` from the command line.
    pub pairs: Vec<String>,
    /// Settings that have flags of their own.
    pub flags: Vec<(&'static str, String)>,
}

/// Environment variables that are no settings: commands read the first two, the documentation has shops and sellers set the
/// others. They may be set in the shell that starts us.
const NO_SETTINGS: [&str; 7] = [
    "HIVETILL_KEY",
    "HIVETILL_API_KEY",
    "HIVETILL_API",
    "HIVETILL_WEBHOOK_SECRET",
    "HIVETILL_MODE",
    "HIVETILL_CONTROL",
    "HIVETILL_ACCOUNT",
];

/// Returns the process's variables. This is the only place that reads them.
#[must_use]
pub fn process_variables() -> Vec<(String, String)> {
    let text = |text: std::ffi::OsString| text.into_string().ok();
    std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?))).collect()
}

impl Config {
    /// Puts the layers over the defaults.
    ///
    /// # Errors
    /// The first thing wrong, with its key and where it was written.
    pub fn load(layers: Layers) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        for (key, value) in layers.command {
            config.set(key, value, Source::Command(layers.command_name))?;
        }
        if let Some(path) = layers.file {
            config.read_file(&path)?;
        }
        for (name, value) in layers.variables {
            if name.starts_with("HIVETILL_") && !NO_SETTINGS.contains(&name.as_str()) {
                let source = Source::Variable(name.clone());
                let key = TABLE.iter().find(|key| key.variable() == name);
                let key = key.ok_or(ConfigError::Unknown { key: name, source_name: "variable".to_owned() })?;
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
        config.check_together()?;
        Ok(config)
    }

    fn set(&mut self, name: &str, value: String, source: Source) -> Result<(), ConfigError> {
        let Some(key) = find(name) else {
            return Err(ConfigError::Unknown { key: name.to_owned(), source_name: source.to_string() });
        };
        key.check(&value).map_err(|why| ConfigError::Invalid {
            key: key.name,
            why,
            source_name: source.to_string(),
        })?;
        self.values.insert(key.name, (value, source));
        Ok(())
    }

    fn read_file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let shown = path.display().to_string();
        let text = fs::read_to_string(path)
            .map_err(|error| ConfigError::Unreadable { path: shown.clone(), why: error.to_string() })?;
        let table: toml::Table = text
            .parse()
            .map_err(|error: toml::de::Error| ConfigError::NotToml { path: shown, why: error.to_string() })?;
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
                        let why = format!("must be {}, not {}", key.kind, value.type_str());
                        return Err(ConfigError::Invalid { key: key.name, why, source_name: source.to_string() });
                    }
                },
                (_, None) => return Err(ConfigError::Unknown { key: name, source_name: source.to_string() }),
            }
        }
        Ok(())
    }

    /// Writes what is in force as TOML, with the source of each value and without secrets.
    #[must_use]
    pub fn show(&self) -> String {
        let mut out = String::new();
        for key in TABLE {
            let (text, source) = &self.values[key.name];
            let name = key.name;
            let line = match key.kind {
                Kind::Secret | Kind::Token if text.is_empty() => format!("# {name} is not set  ({source})\n"),
                Kind::Secret | Kind::Token => format!("# {name} is set and not shown  ({source})\n"),
                Kind::Integer(..) | Kind::Flag => format!("{name} = {text}  # {source}\n"),
                Kind::Urls | Kind::Networks | Kind::Origins => {
                    let urls: Vec<String> = self.list(name).iter().map(|url| quoted(url)).collect();
                    format!("{name} = [{}]  # {source}\n", urls.join(", "))
                }
                _ => format!("{name} = {}  # {source}\n", quoted(text)),
            };
            out.push_str(&line);
        }
        out
    }

    /// Returns a value as it was written.
    ///
    /// # Panics
    /// If there is no such setting: only names of the table are asked for.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        let value = self.values.get(name);
        &value.unwrap_or_else(|| panic!("`{name}` is not in the table of settings")).0
    }

    /// Returns a value, or nothing for an empty one.
    #[must_use]
    pub fn optional(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    /// Returns a whole number.
    #[must_use]
    pub fn integer(&self, name: &str) -> u64 {
        self.text(name).parse().expect("integers were checked when they were set")
    }

    /// Returns a whole number that counts things in memory.
    #[must_use]
    pub fn count(&self, name: &str) -> usize {
        usize::try_from(self.integer(name)).unwrap_or(usize::MAX)
    }

    /// Returns a time written in milliseconds.
    #[must_use]
    pub fn millis(&self, name: &str) -> Duration {
        Duration::from_millis(self.integer(name))
    }

    /// Returns a time written in seconds.
    #[must_use]
    pub fn seconds(&self, name: &str) -> Duration {
        Duration::from_secs(self.integer(name))
    }

    /// Returns a time written in days.
    #[must_use]
    pub fn days(&self, name: &str) -> Duration {
        Duration::from_secs(self.integer(name) * 86_400)
    }

    /// Returns how long something is kept; none where it is 0, which means until somebody deletes it.
    fn retention(&self, name: &str) -> Option<Duration> {
        Some(self.days(name)).filter(|days| !days.is_zero())
    }

    /// Returns a truth value.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        self.text(name) == "true"
    }

    /// Returns the parts of a list.
    #[must_use]
    pub fn list(&self, name: &str) -> Vec<String> {
        self.text(name).split(',').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
    }

    /// Returns how often something may happen, if there is a limit.
    #[must_use]
    pub fn rate(&self, name: &str) -> Option<Rate> {
        self.optional(name).map(|text| text.parse().expect("rates were checked when they were set"))
    }

    /// Returns what stands between the facade and the world.
    #[must_use]
    pub fn edge(&self, now: Now) -> Edge {
        let streams =
            StreamLimits { per_address: self.count("limits.streams_per_address"), total: self.count("limits.streams") };
        let limits = (self.text("limits.profile") == "production")
            .then(|| Limits::new(now, |name| self.rate(name), self.seconds("limits.lockout_seconds"), streams));
        let trusted_proxies = self.list("trusted_proxies").iter().filter_map(|network| network.parse().ok()).collect();
        Edge { trusted_proxies, key_origins: self.list("cors.key_origins"), limits }
    }

    /// Returns an address to listen on, if there is one.
    #[must_use]
    pub fn address(&self, name: &str) -> Option<SocketAddr> {
        self.optional(name).map(|text| text.parse().expect("addresses were checked when they were set"))
    }

    /// Returns the engine's part of the settings.
    #[must_use]
    pub fn engine(&self) -> actors::Settings {
        let chain_id = ChainId::parse(self.text("chain_id")).expect("the chain id was checked when it was set");
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
            max_awake: self.count("session.max_awake"),
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
            registration: actors::RegistrationMode::parse(self.text("registration")).expect("a word of the table"),
            server: self.server(),
            account_change_wait: Duration::from_secs(self.integer("merchants.account_change_hours") * 3_600),
            billing: actors::BillingSettings {
                merchant: self.optional("billing.merchant_id").and_then(|id| id.parse().ok()),
                due: self.days("billing.due_days"),
            },
            store_timeout: self.millis("store.timeout_ms"),
            max_waiting_calls: self.count("limits.waiting_calls"),
            ..defaults
        }
    }

    /// Returns how this installation is named in challenges: by the host of `base_url`, or by where it listens.
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
        }
    }

    /// Returns where webhooks may go. Where plain http may be used, a shop on this machine is under development.
    #[must_use]
    pub fn webhook_addresses(&self) -> AllowedAddresses {
        let loopback = self.flag("webhooks.allow_insecure").then_some(["127.0.0.0/8", "::1/128"]);
        let own = self.list("webhooks.allowed_networks");
        let all = loopback.into_iter().flatten().map(str::to_owned).chain(own);
        AllowedAddresses::public_and(all.filter_map(|network| network.parse().ok()).collect())
    }

    /// Returns the store's part of the settings.
    #[must_use]
    pub fn store(&self) -> storage::Options {
        storage::Options {
            cache_bytes: self.count("store.cache_bytes"),
            mode: storage::CommitMode::Thread { queue: self.count("store.queue") },
            ..storage::Options::default()
        }
    }
}

/// Returns a TOML value as text, if its type fits.
fn toml_text(kind: Kind, value: &toml::Value) -> Option<String> {
    match (kind, value) {
        (Kind::Integer(..), toml::Value::Integer(number)) => Some(number.to_string()),
        (Kind::Flag, toml::Value::Boolean(flag)) => Some(flag.to_string()),
        (Kind::Percent, toml::Value::Integer(number)) => Some(number.to_string()),
        (Kind::Percent, toml::Value::Float(number)) => Some(number.to_string()),
        (Kind::Urls | Kind::Networks | Kind::Origins, toml::Value::Array(items)) => {
            let texts: Option<Vec<&str>> = items.iter().map(toml::Value::as_str).collect();
            // A comma would split what was one item.
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
