//! The structure of a scenario file as TOML has it, before its values are checked.

use std::collections::BTreeMap;

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

/// A step.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawStep {
    pub(super) at: String,
    pub(super) who: String,
    pub(super) does: String,
    pub(super) engine: Option<usize>,
    pub(super) node: Option<usize>,
    pub(super) session: Option<String>,
    pub(super) amount: Option<String>,
    pub(super) lifetime: Option<String>,
    pub(super) every: Option<String>,
    pub(super) times: Option<u16>,
    pub(super) memo: Option<String>,
    pub(super) trick: Option<String>,
    pub(super) of: Option<String>,
    pub(super) resource: Option<u32>,
    pub(super) grace: Option<String>,
    pub(super) r#for: Option<String>,
    pub(super) by: Option<String>,
    pub(super) operation: Option<u64>,
    pub(super) point: Option<String>,
    pub(super) blocks: Option<u32>,
    pub(super) depth: Option<u32>,
    pub(super) forget: Option<bool>,
    pub(super) lie: Option<String>,
    pub(super) manner: Option<String>,
    pub(super) percent: Option<u64>,
    pub(super) ttl: Option<String>,
    pub(super) x402_finality: Option<String>,
    pub(super) max_active: Option<usize>,
    pub(super) table: Option<String>,
    pub(super) shown: Option<u32>,
    pub(super) seller: Option<usize>,
    pub(super) key: Option<u32>,
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
