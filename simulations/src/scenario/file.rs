//! The structure of a scenario file as TOML has it, before its values are checked.

use std::{cell::Cell, collections::BTreeMap, ops::Deref};

use serde::Deserialize;
use toml::Spanned;

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: String,
    #[serde(default)]
    pub(super) why: String,
    #[serde(default)]
    pub(super) seed: u64,
    #[serde(default)]
    pub(super) payments: Option<Spanned<u32>>,
    #[serde(default)]
    pub(super) heal_at: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) environment: Option<Spanned<RawSetup>>,
    #[serde(default)]
    pub(super) faults: BTreeMap<Spanned<String>, Spanned<toml::Value>>,
    #[serde(default)]
    pub(super) steps: Vec<Spanned<RawStep>>,
    #[serde(default)]
    pub(super) expect: BTreeMap<Spanned<String>, RawExpect>,
}

/// The table `[environment]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSetup {
    pub(super) engines: Option<usize>,
    pub(super) store_delay: Option<String>,
    pub(super) lease: Option<String>,
    pub(super) clock_drift: Option<String>,
    pub(super) nodes: Option<usize>,
    pub(super) merchants: Option<usize>,
    pub(super) block_time: Option<String>,
    pub(super) finality_lag: Option<u32>,
    pub(super) node_delay: Option<String>,
    pub(super) commit_delay: Option<String>,
    pub(super) webhook_delay: Option<String>,
    pub(super) ttl: Option<String>,
    pub(super) grace: Option<String>,
    pub(super) poll: Option<String>,
    pub(super) max_active: Option<usize>,
    pub(super) split_fee: Option<bool>,
    pub(super) x402_finality: Option<String>,
    pub(super) cache_bytes: Option<usize>,
    pub(super) log_bytes: Option<u64>,
    pub(super) signatures: Option<bool>,
    pub(super) heal_without_restart: Option<bool>,
    pub(super) faulty_nodes: Option<Vec<usize>>,
    pub(super) days: Option<u64>,
    pub(super) seal_secrets: Option<bool>,
    pub(super) facade: Option<bool>,
    pub(super) event_retention: Option<String>,
    pub(super) metadata_retention: Option<String>,
    pub(super) note_retention: Option<String>,
    pub(super) account_change_wait: Option<String>,
    pub(super) single_limit_cents: Option<u64>,
    pub(super) daily_limit_cents: Option<u64>,
    pub(super) monthly_limit_cents: Option<u64>,
    pub(super) open_payments: Option<u64>,
    pub(super) idempotency_keys: Option<u64>,
    pub(super) irreversible_from_cents: Option<u64>,
    pub(super) billing: Option<bool>,
    pub(super) key_roll: Option<bool>,
    pub(super) only_registered: Option<bool>,
    pub(super) refuse_off_peg: Option<bool>,
}

/// The value of a key that not every action has. It records whether it was read: a value that nothing reads is a mistake.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Field<T> {
    value: Option<T>,
    #[serde(skip)]
    is_read: Cell<bool>,
}

impl<T> Default for Field<T> {
    fn default() -> Self {
        Self { value: None, is_read: Cell::default() }
    }
}

impl<T> Deref for Field<T> {
    type Target = Option<T>;

    fn deref(&self) -> &Self::Target {
        self.is_read.set(true);
        &self.value
    }
}

impl<T> Field<T> {
    /// Returns whether the file has a value that nothing read.
    const fn is_unread(&self) -> bool {
        self.value.is_some() && !self.is_read.get()
    }
}

/// Declares the keys of a step: those of every step, and those that depend on its action.
macro_rules! step {
    ($($always:ident),+; $($field:ident: $value:ty,)+) => {
        /// A step.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct RawStep {
            $(pub(super) $always: String,)+
            $(#[serde(default)] pub(super) $field: Field<$value>,)+
        }

        impl RawStep {
            /// Returns the keys whose values nothing read.
            pub(super) fn unread(&self) -> impl Iterator<Item = &'static str> {
                let fields = [$((stringify!($field), self.$field.is_unread())),+];
                fields.into_iter().filter(|(_, is_unread)| *is_unread).map(|(name, _)| name.trim_start_matches("r#"))
            }
        }
    };
}

step! {
    at, who, does;
    engine: usize,
    node: usize,
    session: String,
    amount: String,
    lifetime: String,
    every: String,
    times: u16,
    memo: String,
    trick: String,
    of: String,
    resource: u32,
    grace: String,
    r#for: String,
    by: String,
    operation: u64,
    point: String,
    blocks: u32,
    depth: u32,
    forget: bool,
    lie: String,
    manner: String,
    percent: u64,
    ttl: String,
    x402_finality: String,
    max_active: usize,
    table: String,
    shown: u32,
    seller: usize,
    key: u32,
}

/// The expected final state of a session, or the condition of a node.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawExpect {
    #[serde(default)]
    pub(super) state: Vec<String>,
    pub(super) credited: Option<String>,
    pub(super) usd_cents: Option<u64>,
    pub(super) exceptions: Option<Vec<String>>,
    pub(super) webhooks: Option<usize>,
    pub(super) condition: Option<String>,
}
