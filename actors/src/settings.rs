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
    /// The chain id.
    pub chain_id: ChainId,
    /// Whether the ledger is a development ledger.
    pub development: bool,
    /// The service's fee.
    pub fee_percent: FeePercent,
    /// How the fee is collected.
    pub fee_mode: FeeMode,
    /// Default lifetime of a session.
    pub session_lifetime: Duration,
    /// Grace period for blocks after a session's expiry.
    pub session_grace: Duration,
    /// Maximum active sessions; the others are passivated, and reactivated by their next command.
    pub max_active: usize,
    /// Block interval of the ledger.
    pub block_interval: Duration,
    /// Interval of polls for the head block.
    pub poll_interval: Duration,
    /// Minimum number of nodes that must agree; a majority of the configured ones always must.
    pub min_agreeing_nodes: usize,
    /// Interval of reading the prices of HIVE and HBD.
    pub rate_interval: Duration,
    /// The bounds of HBD's peg, and the policy beyond them.
    pub hbd_peg: HbdPeg,
    /// The prefix of the webhook headers, such as `X-Hivetill`.
    pub webhook_header_prefix: String,
    /// Timeout of one webhook attempt.
    pub webhook_timeout: Duration,
    /// Retention of events and delivery attempts.
    pub event_retention: Duration,
    /// Retention of a payment's metadata after its last change in a final state; `None` until it is deleted on request.
    pub metadata_retention: Option<Duration>,
    /// Retention of the note of a decision; `None` until it is deleted on request.
    pub note_retention: Option<Duration>,
    /// Whether webhooks may use plain http.
    pub allow_insecure_webhooks: bool,
    /// Settings of x402 payments.
    pub x402: X402Settings,
    /// Whether merchants may roll their own API keys; otherwise the operator reissues them.
    pub key_roll: bool,
    /// Compliance limits; `None` disables them.
    pub compliance: Option<Compliance>,
    /// Storage quota per merchant; `None` disables it.
    pub quota: Option<Quota>,
    /// Maximum number of stored idempotency keys per merchant.
    pub idempotency_keys: u64,
    /// The registration mode.
    pub registration: RegistrationMode,
    /// The host name in challenges: that of the public URL.
    pub server: String,
    /// Minimum delay of a change of a proven account.
    pub account_change_wait: Duration,
    /// Settings of billing.
    pub billing: BillingSettings,
    /// Duration of a lease.
    pub lease: Duration,
    /// How long reads and commits are retried, and unknown outcomes resolved, while the store is unreachable.
    pub store_timeout: Duration,
    /// Maximum calls queued at the handle; further ones fail with `overloaded`.
    pub max_waiting_calls: usize,
}

/// Poll intervals per run of a background task.
const POLLS_PER_BACKGROUND_CHECK: u32 = 10;
/// Maximum interval of background tasks.
const MAX_BACKGROUND_INTERVAL: Duration = Duration::from_secs(30);

impl Settings {
    /// Returns the network of the chain.
    #[must_use]
    pub fn network(&self) -> Network {
        Network::of(self.chain_id, self.development)
    }

    /// Returns the duration of a lease: a webhook must fit between two renewals.
    pub(crate) fn lease(&self) -> Duration {
        self.lease.max(self.webhook_timeout * 2)
    }

    /// Returns the interval of background tasks. They share it, so that an idle engine wakes rarely.
    pub(crate) fn background_interval(&self) -> Duration {
        (self.poll_interval * POLLS_PER_BACKGROUND_CHECK).min(MAX_BACKGROUND_INTERVAL)
    }

    /// Returns the default settings for a chain.
    #[must_use]
    pub fn of(chain_id: ChainId) -> Self {
        Self {
            chain_id,
            development: false,
            fee_percent: FeePercent::ZERO,
            fee_mode: FeeMode::Invoice,
            session_lifetime: Duration::from_secs(1_800),
            session_grace: Duration::ZERO,
            max_active: 5_000,
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

/// The bounds of HBD's peg of one US dollar, and the policy beyond them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HbdPeg {
    /// Maximum deviation of its price on the internal market, in percent.
    pub percent: u64,
    /// Whether payments in HBD are refused beyond it; otherwise the market price applies.
    pub refuses: bool,
}

impl Default for HbdPeg {
    fn default() -> Self {
        Self { percent: 5, refuses: false }
    }
}

/// The registration mode.
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
    /// Parses the value of the setting.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Open, Self::Approval, Self::Closed].into_iter().find(|mode| mode.as_str() == text)
    }

    /// Returns the value of the setting.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Approval => "approval",
            Self::Closed => "closed",
        }
    }
}

/// Compliance limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compliance {
    /// The limits of a merchant without its own.
    pub limits: Limits,
    /// The contact for merchants on hold.
    pub contact: String,
}

/// Settings of billing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BillingSettings {
    /// The merchant that receives invoice payments; `None` if merchants are not billed.
    pub merchant: Option<MerchantId>,
    /// Time until an invoice is overdue.
    pub due: Duration,
}

impl Default for BillingSettings {
    fn default() -> Self {
        Self { merchant: None, due: Duration::from_secs(14 * 86_400) }
    }
}

/// Settings of x402 payments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct X402Settings {
    /// Maximum time until a transaction's expiration, during which its outcome may be unknown.
    pub max_expiration: Duration,
    /// The finality at which an ordinary payment completes.
    pub finality: ClaimFinality,
    /// Value from which a payment completes only in an irreversible block, US cents.
    pub irreversible_from_cents: u64,
    /// Whether requirements of other servers are accepted only for accounts of registered merchants.
    pub only_registered: bool,
    /// Whether offers and receipts of checkout URLs are signed.
    pub signs: bool,
}

impl Default for X402Settings {
    fn default() -> Self {
        Self {
            max_expiration: Duration::from_secs(3_600),
            finality: ClaimFinality::InBlock,
            irreversible_from_cents: 100_000,
            only_registered: false,
            signs: true,
        }
    }
}

impl X402Settings {
    /// Returns the finality at which a payment of this value completes.
    pub(crate) fn finality_of(&self, usd_cents: u64) -> ClaimFinality {
        if usd_cents >= self.irreversible_from_cents && !mutant!("finality-by-the-usual") {
            ClaimFinality::Irreversible
        } else {
            self.finality
        }
    }
}
