//! Settings of an engine, with the documented defaults.

use std::time::Duration;

use engine::{
    compliance::Limits,
    hive::{ChainId, Network},
    ids::MerchantId,
    money::FeePercent,
    mutant,
    payment::{ClaimFinality, FeeMode},
    quota::Quota,
};

/// Settings of an engine.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The chain it serves.
    pub chain_id: ChainId,
    /// Whether the ledger is a development ledger.
    pub development: bool,
    /// The service's fee.
    pub fee_percent: FeePercent,
    /// How the fee is taken.
    pub fee_mode: FeeMode,
    /// How long a session lives where its creator does not say.
    pub session_lifetime: Duration,
    /// How much later than its expiry a session's block may be.
    pub session_grace: Duration,
    /// Maximum active sessions; the others are passivated, and reactivated by their next command.
    pub max_awake: usize,
    /// The ledger's time from one block to the next.
    pub block_interval: Duration,
    /// How often the nodes are asked for their head.
    pub poll_interval: Duration,
    /// How many nodes must agree at least; a majority of the configured ones always must.
    pub min_agreeing_nodes: usize,
    /// How often the prices of HIVE and HBD are read.
    pub rate_interval: Duration,
    /// How far HBD may be off its peg, and what happens beyond.
    pub hbd_peg: HbdPeg,
    /// What the webhook headers start with, such as `X-Hivetill`.
    pub webhook_header_prefix: String,
    /// How long one attempt may take.
    pub webhook_timeout: Duration,
    /// How long events and what receivers answered are kept.
    pub event_retention: Duration,
    /// How long the metadata of a payment is kept after its last change, once it has ended; none until somebody deletes it.
    pub metadata_retention: Option<Duration>,
    /// How long the note of a decision is kept; none until somebody deletes it.
    pub note_retention: Option<Duration>,
    /// Whether webhooks may go to plain http.
    pub allow_insecure_webhooks: bool,
    /// How agents' payments are taken.
    pub x402: X402Settings,
    /// Whether merchants may roll their own API keys; otherwise support re-issues them.
    pub key_roll: bool,
    /// Compliance limits; `None` disables them.
    pub compliance: Option<Compliance>,
    /// Storage quota per merchant; `None` disables it.
    pub quota: Option<Quota>,
    /// Idempotency keys kept of one merchant at once.
    pub idempotency_keys: u64,
    /// Who may register.
    pub registration: RegistrationMode,
    /// How this installation is named in challenges: the host that merchants reach it by.
    pub server: String,
    /// How long a change of a proven account waits at least.
    pub account_change_wait: Duration,
    /// How merchants are billed.
    pub billing: BillingSettings,
    /// How long an engine holds its duties without renewing its lease.
    pub lease: Duration,
    /// How long reads and commits are retried, and unknown outcomes resolved, while the store cannot be reached.
    pub store_timeout: Duration,
    /// Maximum calls queued at the handle; further ones fail with `overloaded`.
    pub max_waiting_calls: usize,
}

/// Poll intervals per run of a background task.
const POLLS_PER_BACKGROUND_CHECK: u32 = 10;
/// Maximum interval of background tasks.
const MAX_BACKGROUND_INTERVAL: Duration = Duration::from_secs(30);

impl Settings {
    /// Returns the network it serves.
    #[must_use]
    pub fn network(&self) -> Network {
        Network::of(self.chain_id, self.development)
    }

    /// Returns how long a lease lasts: long enough for a webhook to be sent between two renewals.
    pub(crate) fn lease(&self) -> Duration {
        self.lease.max(self.webhook_timeout * 2)
    }

    /// Returns the interval of background tasks. They share it, so that an idle engine wakes rarely.
    pub(crate) fn background_interval(&self) -> Duration {
        (self.poll_interval * POLLS_PER_BACKGROUND_CHECK).min(MAX_BACKGROUND_INTERVAL)
    }

    /// Returns the settings of a chain, everything else as documented.
    #[must_use]
    pub fn of(chain_id: ChainId) -> Self {
        Self {
            chain_id,
            development: false,
            fee_percent: FeePercent::ZERO,
            fee_mode: FeeMode::Invoice,
            session_lifetime: Duration::from_secs(1_800),
            session_grace: Duration::ZERO,
            max_awake: 5_000,
            block_interval: Duration::from_secs(3),
            poll_interval: Duration::from_secs(1),
            min_agreeing_nodes: 0,
            rate_interval: Duration::from_secs(600),
            hbd_peg: HbdPeg::default(),
            webhook_header_prefix: "X-Hivetill".to_owned(),
            webhook_timeout: Duration::from_secs(10),
            event_retention: Duration::from_secs(60 * 86_400),
            metadata_retention: None,
            note_retention: None,
            allow_insecure_webhooks: false,
            x402: X402Settings::default(),
            key_roll: false,
            compliance: None,
            quota: None,
            idempotency_keys: 1_000_000,
            registration: RegistrationMode::Open,
            server: "localhost".to_owned(),
            account_change_wait: Duration::from_secs(86_400),
            billing: BillingSettings::default(),
            lease: Duration::from_secs(30),
            store_timeout: Duration::from_secs(5),
            max_waiting_calls: 4_096,
        }
    }
}

/// How far HBD may be off its peg of one US dollar, and what happens beyond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HbdPeg {
    /// How far its price on the internal market may be off, in percent.
    pub percent: u64,
    /// Whether payments in HBD are refused beyond that; otherwise the market values them.
    pub refuses: bool,
}

impl Default for HbdPeg {
    fn default() -> Self {
        Self { percent: 5, refuses: false }
    }
}

/// Who may register as a merchant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegistrationMode {
    /// Anyone.
    Open,
    /// Anyone; a merchant is inactive until an admin activates it.
    Approval,
    /// Only the operator creates merchants.
    Closed,
}

impl RegistrationMode {
    /// Reads a mode as the setting spells it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Open, Self::Approval, Self::Closed].into_iter().find(|mode| mode.as_str() == text)
    }

    /// Returns the mode as the setting spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Approval => "approval",
            Self::Closed => "closed",
        }
    }
}

/// How much a merchant may take before somebody has to look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compliance {
    /// The limits of a merchant without its own.
    pub limits: Limits,
    /// Whom a merchant on hold talks to.
    pub contact: String,
}

/// How merchants are billed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BillingSettings {
    /// The merchant that invoices are paid to; none where nobody is billed.
    pub merchant: Option<MerchantId>,
    /// How long an invoice may wait before it is overdue.
    pub due: Duration,
}

impl Default for BillingSettings {
    fn default() -> Self {
        Self { merchant: None, due: Duration::from_secs(14 * 86_400) }
    }
}

/// How agents' payments are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct X402Settings {
    /// How far ahead a transaction's expiration may be: as long as that, its outcome may be open.
    pub max_expiration: Duration,
    /// What a payment of ordinary size completes on.
    pub finality: ClaimFinality,
    /// From this worth on, in US cents, a payment completes only on an irreversible block.
    pub irreversible_from_cents: u64,
    /// Whether requirements of other servers are taken only for accounts of merchants here.
    pub only_registered: bool,
}

impl Default for X402Settings {
    fn default() -> Self {
        Self {
            max_expiration: Duration::from_secs(3_600),
            finality: ClaimFinality::InBlock,
            irreversible_from_cents: 100_000,
            only_registered: false,
        }
    }
}

impl X402Settings {
    /// Returns what a payment of this worth completes on.
    pub(crate) fn finality_of(&self, usd_cents: u64) -> ClaimFinality {
        if usd_cents >= self.irreversible_from_cents && !mutant!("finality-by-the-usual") {
            ClaimFinality::Irreversible
        } else {
            self.finality
        }
    }
}
