//! `hivetill load`: generates load on a running gateway and reports throughput, latency and errors, like `pgbench`.

use std::{
    io::{IsTerminal as _, Write as _},
    net::SocketAddr,
    time::Duration,
};

use reqwest::Url;
use tokio::time::Instant;

mod args;
mod prepare;
mod process;
mod report;
mod wire;
mod workers;

pub(super) use self::args::Args;
use self::{args::Workload, prepare::Prepared, process::Process, report::Report, workers::Measurement};
use super::{failure::Failure, output::print};

/// Share of responses with status 429 above which the result is invalid, because it measures the rate limits.
const MAX_LIMITED_SHARE: f64 = 0.05;

/// Creates the payments, runs the measurement, and prints the report.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    if args.upstream.is_some() && args.workload != Workload::Gate {
        return Err(Failure::Other("--upstream is for the workload gate".to_owned()));
    }
    let run = Run::prepare(&args).await?;
    let upstream = match &args.upstream {
        Some(url) => {
            let args = Args { workload: Workload::Upstream, url: url.clone(), ..args.clone() };
            Some(Run::prepare(&args).await?.measure(&args).await?)
        }
        None => None,
    };
    let report = run.measure(&args).await?.compared_with(upstream);
    print(&if args.json { format!("{}\n", report.json()) } else { report.text() })?;
    check_validity(&report)
}

/// A prepared run of one workload.
struct Run {
    target: SocketAddr,
    prepared: Prepared,
}

impl Run {
    async fn prepare(args: &Args) -> Result<Self, Failure> {
        let target = target_of(&args.url, args.allow_remote).await?;
        let prepared = Prepared::of(args, target).await?;
        Ok(Self { target, prepared })
    }

    async fn measure(self, args: &Args) -> Result<Report, Failure> {
        let process = Process::listening_on(self.target);
        let measurement = measure(args, self.target, self.prepared, process.as_ref()).await?;
        Ok(Report::new(args, &measurement))
    }
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
    if !args.workload.is_single_use() {
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
