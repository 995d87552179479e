//! The arguments of a load test, and its workloads.

use std::{num::NonZeroU32, time::Duration};

use engine::account::AccountName;
use reqwest::Url;

use crate::commands::duration;

/// Maximum number of payments to create before the measurement.
const MAX_SESSIONS: u32 = 1_000_000;
/// The requests of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::commands) enum Workload {
    /// Create payments
    Create,
    /// Read the status of random payments
    Status,
    /// List payments, pages 1 to 5 of 20
    List,
    /// Request checkout pages
    Checkout,
    /// Verify signed payments
    X402Verify,
    /// Settle signed payments, each once
    X402Settle,
    /// Pay for requests through a gate, each with a payment of its own, and compare them with unpaid requests to its upstream
    Gate,
    /// The comparison of `gate`
    #[value(skip)]
    Upstream,
    /// Of ten requests: seven status, one create, one list, one checkout
    Mixed,
}

impl Workload {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Status => "status",
            Self::List => "list",
            Self::Checkout => "checkout",
            Self::X402Verify => "x402-verify",
            Self::X402Settle => "x402-settle",
            Self::Gate => "gate",
            Self::Upstream => "upstream",
            Self::Mixed => "mixed",
        }
    }

    pub(super) const fn needs_signatures(self) -> bool {
        matches!(self, Self::X402Verify | Self::X402Settle)
    }

    /// Returns whether each request is sent once, so that a warm-up would use them up.
    pub(super) const fn is_single_use(self) -> bool {
        matches!(self, Self::X402Settle | Self::Gate)
    }

    /// Returns whether the requests are those of a merchant, with an API key.
    pub(super) const fn needs_api_key(self) -> bool {
        !matches!(self, Self::Gate | Self::Upstream)
    }
}

/// Arguments of `hivetill load`.
#[derive(Clone, clap::Args)]
#[command(
    after_help = "The payments are real: they are created on the gateway at --url, and x402-settle and gate really pay. \
                        Exit code 1 if most responses were errors, or if rate limits determined the result."
)]
pub(in crate::commands) struct Args {
    /// Requests to send
    #[arg(value_enum)]
    pub(super) workload: Workload,
    /// URL of the gateway, plain http: bypass the reverse proxy. For gate, the URL of a route with a price at the gate
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub(super) url: Url,
    /// API key of a merchant. Prefer the environment variable: other users of the host can see command lines
    #[arg(
        long,
        value_name = "KEY",
        env = "HIVETILL_API_KEY",
        hide_env_values = true,
        required_unless_present = "upstream"
    )]
    pub(super) api_key: Option<String>,
    /// gate: URL of the same route at the upstream, or at a bare proxy in front of it
    #[arg(long, value_name = "URL", required_if_eq("workload", "gate"))]
    pub(super) upstream: Option<Url>,
    /// Number of connections, each with one request at a time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) connections: u32,
    /// Duration of the measurement, such as 30s
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration::parse)]
    pub(super) duration: Duration,
    /// Warm-up without measurement; x402-settle and gate have none, because each payment is settled once
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration::parse)]
    pub(super) warmup: Duration,
    /// Requests a second over all connections; latency then counts from the time a request was due. By default as many
    /// as possible
    #[arg(long, value_name = "N")]
    pub(super) rate: Option<NonZeroU32>,
    /// Payments to create before the measurement, for requests that read or settle them; for gate, payments to sign
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SESSIONS)))]
    pub(super) sessions: u32,
    /// x402 and gate: Hive account that pays
    #[arg(long, value_name = "ACCOUNT", default_value = "alice")]
    pub(super) account: AccountName,
    /// x402 and gate: private active key of the payer (WIF)
    #[arg(long, value_name = "WIF", env = "HIVETILL_KEY", hide_env_values = true)]
    pub(super) key: Option<String>,
    /// x402 and gate: ledger node for the transactions
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8091")]
    pub(super) node: String,
    /// Print the report as one line of JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Allow a gateway on another host
    #[arg(long)]
    pub(super) allow_remote: bool,
}

impl Args {
    /// Returns the API key to send; nothing for requests that are not those of a merchant.
    pub(super) fn sent_api_key(&self) -> &str {
        self.api_key.as_deref().filter(|_| self.workload.needs_api_key()).unwrap_or_default()
    }
}

/// Hides the keys.
impl std::fmt::Debug for Args {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Args")
            .field("workload", &self.workload)
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}
