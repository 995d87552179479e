//! `hivetill load`: generates load on a running gateway and reports throughput, latency and errors, like `pgbench`.

use std::{
    io::{IsTerminal as _, Write as _},
    net::SocketAddr,
    num::NonZeroU32,
    time::Duration,
};

use engine::account::AccountName;
use reqwest::Url;
use tokio::time::Instant;

mod prepare;
mod process;
mod report;
mod wire;
mod workers;

use self::{prepare::Prepared, process::Process, report::Report, workers::Measurement};
use super::{failure::Failure, output::print};

/// Maximum number of payments to create before the measurement.
const MAX_SESSIONS: u32 = 1_000_000;
/// Share of responses with status 429 above which the result is invalid, because it measures the rate limits.
const MAX_LIMITED_SHARE: f64 = 0.05;

/// The requests of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Workload {
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
    /// Of ten requests: seven status, one create, one list, one checkout
    Mixed,
}

impl Workload {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Status => "status",
            Self::List => "list",
            Self::Checkout => "checkout",
            Self::X402Verify => "x402-verify",
            Self::X402Settle => "x402-settle",
            Self::Mixed => "mixed",
        }
    }

    const fn needs_signatures(self) -> bool {
        matches!(self, Self::X402Verify | Self::X402Settle)
    }
}

/// Arguments of `hivetill load`.
#[derive(Clone, clap::Args)]
#[command(
    after_help = "The payments are real: they are created on the gateway at --url, and x402-settle really pays. \
                        Exit code 1 if most responses were errors, or if rate limits determined the result."
)]
pub(super) struct Args {
    /// Requests to send
    #[arg(value_enum)]
    workload: Workload,
    /// URL of the gateway, plain http: bypass the reverse proxy
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    url: Url,
    /// API key of a merchant. Prefer the environment variable: other users of the host can see command lines
    #[arg(long, value_name = "KEY", env = "HIVETILL_API_KEY", hide_env_values = true)]
    api_key: String,
    /// Number of connections, each with one request at a time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,
    /// Duration of the measurement, such as 30s
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = super::duration::parse)]
    duration: Duration,
    /// Warm-up without measurement; x402-settle has none, because each payment is settled once
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = super::duration::parse)]
    warmup: Duration,
    /// Requests a second over all connections; latency then counts from the time a request was due. By default as many
    /// as possible
    #[arg(long, value_name = "N")]
    rate: Option<NonZeroU32>,
    /// Payments to create before the measurement, for requests that read or settle them
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SESSIONS)))]
    sessions: u32,
    /// x402: Hive account that pays
    #[arg(long, value_name = "ACCOUNT", default_value = "alice")]
    account: AccountName,
    /// x402: private active key of the payer (WIF)
    #[arg(long, value_name = "WIF", env = "HIVETILL_KEY", hide_env_values = true)]
    key: Option<String>,
    /// x402: ledger node for the transactions
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8091")]
    node: String,
    /// Print the report as one line of JSON
    #[arg(long)]
    json: bool,
    /// Allow a gateway on another host
    #[arg(long)]
    allow_remote: bool,
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

/// Creates the payments, runs the measurement, and prints the report.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let target = target_of(&args.url, args.allow_remote).await?;
    let prepared = Prepared::of(&args, target).await?;
    let process = Process::listening_on(target);
    let measurement = measure(&args, target, prepared, process.as_ref()).await?;
    let report = Report::new(&args, &measurement);
    print(&if args.json { format!("{}\n", report.json()) } else { report.text() })?;
    check_validity(&report)
}

/// Checks that the result is valid.
///
/// # Errors
/// If rate limits determined the result, or most requests failed.
fn check_validity(report: &Report) -> Result<(), Failure> {
    if report.limited_share() > MAX_LIMITED_SHARE {
        let message = "rate limits rejected too many requests: the result measures the limits, not the gateway. Run the \
                       gateway with --set limits.profile=off, or stay below its limits with --rate";
        return Err(Failure::Other(message.to_owned()));
    }
    if report.responses() == 0 || report.failed_share() > 0.5 {
        return Err(Failure::Other("most requests failed".to_owned()));
    }
    Ok(())
}

/// Resolves the URL of the gateway. Other hosts are refused unless `allow_remote` is set.
async fn target_of(url: &Url, allow_remote: bool) -> Result<SocketAddr, Failure> {
    let refuse = |reason: &str| Err(Failure::Other(format!("--url {url}: {reason}")));
    if url.scheme() != "http" {
        return refuse("only plain http is supported: use the gateway's own address, not that of its reverse proxy");
    }
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else { return refuse("has no host") };
    let mut found = match tokio::net::lookup_host((host.trim_matches(['[', ']']), port)).await {
        Ok(found) => found,
        Err(error) => return refuse(&error.to_string()),
    };
    match found.next() {
        Some(address) if address.ip().is_loopback() || allow_remote => Ok(address),
        Some(_) => refuse("is another host; add --allow-remote if you are allowed to load it"),
        None => refuse("unknown host"),
    }
}

/// Runs the workers through warm-up and measurement, and prints the progress every second.
async fn measure(
    args: &Args,
    target: SocketAddr,
    prepared: Prepared,
    process: Option<&Process>,
) -> Result<Measurement, Failure> {
    let workers = workers::start(args, target, prepared);
    let shows_progress = !args.json && std::io::stderr().is_terminal();
    if args.workload != Workload::X402Settle {
        workers.wait(args.warmup).await;
    }
    let before = process.and_then(Process::usage);
    let start = Instant::now();
    workers.start_measurement();
    while start.elapsed() < args.duration && !workers.is_done() {
        workers.wait((args.duration.saturating_sub(start.elapsed())).min(Duration::from_secs(1))).await;
        if shows_progress {
            let (responses, seconds) = (workers.responses(), start.elapsed().as_secs());
            let rate = responses / seconds.max(1);
            let line = format!(
                "\r{seconds:>4} s of {} s  {responses:>9} responses  {rate:>7} a second ",
                args.duration.as_secs()
            );
            // A failed write of the progress does not abort the measurement.
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    }
    let measured = start.elapsed();
    let after = process.and_then(Process::usage);
    if shows_progress {
        let _ = std::io::stderr().write_all(b"\r\n");
    }
    let usage = before.zip(after).map(|(before, after)| after.since(before));
    workers.finish(measured, usage).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn another_host_is_loaded_only_with_allow_remote() {
        let url = |text: &str| Url::parse(text).unwrap();
        assert!(target_of(&url("http://127.0.0.1:8080"), false).await.is_ok());
        assert!(target_of(&url("http://[::1]:8080"), false).await.is_ok());
        let remote = url("http://192.0.2.1:8080");
        assert!(target_of(&remote, false).await.unwrap_err().to_string().contains("--allow-remote"));
        assert!(target_of(&remote, true).await.is_ok());
        assert!(target_of(&url("https://127.0.0.1"), true).await.is_err());
    }
}
