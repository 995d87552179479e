//! `doctor`: checks settings, engine, store, nodes, clock and webhooks, and suggests fixes.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use ::engine::webhook::Outcome;
use actors::{
    environment::{Clock as _, WebhookRequest, WebhookTransport as _},
    http_webhooks::HttpWebhooks,
    system::SystemClock,
};
use proto::Transport;
use serde_json::json;

use super::{
    facade,
    failure::Failure,
    logs, master_key,
    output::print,
    settings::{SettingsArgs, push},
};
use crate::{config::Config, metrics::disk_free_bytes};

mod engine;
mod findings;
mod nodes;

use findings::{Finding, Findings, Severity};

/// Free disk space below which the check fails.
const DISK_FAIL_BYTES: u64 = 256 << 20;
/// Free disk space below which the check is a warning.
const DISK_WARN_BYTES: u64 = 2 << 30;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    settings: SettingsArgs,
    /// The data directory (setting data_dir)
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// A ledger node; may be repeated (setting ledger.nodes)
    #[arg(long = "node", value_name = "URL")]
    nodes: Vec<String>,
    /// mainnet or dev (setting network)
    #[arg(long)]
    network: Option<String>,
    /// URL of the gRPC port of an engine on another host (setting engine_url)
    #[arg(long, value_name = "URL")]
    engine_url: Option<String>,
    /// Send a test request to this webhook URL, under the rules for webhooks
    #[arg(long, value_name = "URL")]
    webhook: Option<String>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// Runs all checks and prints the findings.
///
/// # Errors
/// If a check fails; warnings are not failures.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let mut flags = Vec::new();
    push(&mut flags, "data_dir", args.data.map(|path| path.display().to_string()));
    push(&mut flags, "ledger.nodes", Some(args.nodes.join(",")).filter(|nodes| !nodes.is_empty()));
    push(&mut flags, "network", args.network);
    push(&mut flags, "engine_url", args.engine_url);
    let color = args.settings.color();
    let config = args.settings.load(flags)?;
    logs::start(&config, color);
    let data = PathBuf::from(config.text("data_dir"));
    let mut findings = Findings::default();
    settings(&config, &mut findings);
    match facade::each(&config) {
        Err(failure) => {
            findings.fail("engine", failure.to_string(), "set engine_url and grpc.token to those of the engine");
        }
        Ok(engines) if !engines.is_empty() => check_engines(engines, &config, &mut findings).await,
        Ok(_) => {
            master_key_file(&config, &data, &mut findings);
            directory(&data, &mut findings);
            engine::check(&config, &data, &mut findings).await;
        }
    }
    nodes::check(&config, &mut findings).await;
    webhooks(&config, args.webhook.as_deref(), &mut findings).await;
    print_findings(&findings, args.json)?;
    if findings.worst() == Severity::Failing {
        let count = findings.0.iter().filter(|finding| finding.severity == Severity::Failing).count();
        return Err(Failure::ChecksFailed(count));
    }
    Ok(())
}

/// Checks each running engine. Of several, the findings name the URL.
async fn check_engines(engines: Vec<(String, Transport)>, config: &Config, findings: &mut Findings) {
    let are_several = engines.len() > 1;
    for (url, transport) in engines {
        let before = findings.0.len();
        engine::check_running(transport, config, findings).await;
        for finding in findings.0.iter_mut().skip(before).filter(|_| are_several) {
            finding.message = format!("{url}: {}", finding.message);
        }
    }
}

fn print_findings(findings: &Findings, as_json: bool) -> Result<(), Failure> {
    if as_json {
        let list = findings.0.iter().map(|Finding { check, severity, message, remedy }| {
            json!({"check": check, "severity": severity.as_str(), "message": message, "remedy": remedy})
        });
        let list = list.collect::<Vec<_>>();
        return print(&format!("{}\n", json!({"severity": findings.worst().as_str(), "findings": list})));
    }
    let mut text = String::new();
    for Finding { check, severity, message, remedy } in &findings.0 {
        text.push_str(&format!("{:<8} {check}: {message}\n", severity.as_str()));
        if let Some(remedy) = remedy {
            text.push_str(&format!("         -> {remedy}\n"));
        }
    }
    print(&text)
}

/// Checks the settings.
fn settings(config: &Config, findings: &mut Findings) {
    let is_mainnet = config.text("network") == "mainnet";
    let what = "settings";
    match config.optional("base_url") {
        None => findings.warn(
            what,
            "base_url is not set: checkout links use the listening address",
            "set base_url to the public https URL",
        ),
        Some(url) if is_mainnet && !url.starts_with("https://") => {
            findings.warn(
                what,
                format!("base_url is {url}"),
                "put a reverse proxy with TLS in front and use its https URL",
            );
        }
        Some(url) => findings.ok(what, format!("the public URL is {url}")),
    }
    let is_behind_proxy = config.optional("base_url").is_some_and(|url| url.starts_with("https://"));
    if is_behind_proxy && config.list("trusted_proxies").is_empty() {
        findings.warn(
            what,
            "trusted_proxies is empty: rate limits apply to the proxy instead of its clients",
            "set trusted_proxies to the proxy's network, such as 127.0.0.1/32",
        );
    }
    if is_mainnet && config.text("limits.profile") == "off" {
        findings.warn(what, "limits.profile is off", "set limits.profile to production");
    }
    if is_mainnet && config.flag("webhooks.allow_insecure") {
        findings.warn(
            what,
            "webhooks.allow_insecure is on: webhooks can reach this host",
            "set webhooks.allow_insecure to false",
        );
    }
    nodes::majority(config, findings);
}

/// Checks the file of the master key. Whether the stored secrets are encrypted is checked with the store.
fn master_key_file(config: &Config, data: &Path, findings: &mut Findings) {
    let Some(path) = master_key::key_file(config, data) else {
        if config.optional("master_key").is_none() && !config.flag("encrypt_secrets") {
            findings.warn(
                "settings",
                "encrypt_secrets is off: webhook secrets are stored unencrypted, also in every backup",
                "remove that setting; the next start generates a master key and encrypts them",
            );
        }
        return;
    };
    match fs::metadata(&path) {
        Err(error) => findings.fail(
            "settings",
            format!("master_key_file {}: {error}", path.display()),
            "copy the key to the configured file; the store cannot be opened without it",
        ),
        Ok(file) if file.permissions().mode() & 0o077 != 0 => findings.fail(
            "settings",
            format!("other users can read the master key {}", path.display()),
            "chmod 600 the file, then rotate the key: hivetill rotate-master-key",
        ),
        Ok(_) => findings.ok("settings", format!("the master key is {}", path.display())),
    }
}

/// Checks the data directory and the free space of its disk.
fn directory(data: &Path, findings: &mut Findings) {
    let what = "data directory";
    let path = data.display();
    match fs::metadata(data) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            findings.warn(
                what,
                format!("{path} does not exist"),
                "check the path; `hivetill admin` creates a new store",
            );
        }
        Err(error) => findings.fail(what, format!("{path}: {error}"), "run doctor as the owner of the directory"),
        Ok(folder) if !folder.is_dir() => {
            findings.fail(what, format!("{path} is a file"), "set data_dir to a directory");
        }
        Ok(folder) if folder.permissions().mode() & 0o077 != 0 => findings.warn(
            what,
            format!("other users can read {path} (mode {:o}, user {})", folder.mode() & 0o777, folder.uid()),
            "chmod 700 the directory",
        ),
        Ok(_) => findings.ok(what, path.to_string()),
    }
    let existing = data.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(Path::new("."));
    let mebibytes = |bytes: u64| bytes >> 20;
    match disk_free_bytes(existing) {
        None => findings.warn("disk", "free space is unknown", "check it with df"),
        Some(free) if free < DISK_FAIL_BYTES => findings.fail(
            "disk",
            format!("{} MiB free", mebibytes(free)),
            "free space now: a full disk shuts the engine down (exit code 8)",
        ),
        Some(free) if free < DISK_WARN_BYTES => {
            findings.warn(
                "disk",
                format!("{} MiB free", mebibytes(free)),
                "free space; docs/reference/limits.md lists the disk usage",
            );
        }
        Some(free) => findings.ok("disk", format!("{} MiB free", mebibytes(free))),
    }
}

/// Sends a test request to a webhook URL.
async fn webhooks(config: &Config, url: Option<&str>, findings: &mut Findings) {
    let what = "webhooks";
    let Some(url) = url else {
        return findings.ok(what, "not tested; --webhook URL sends a test request to an endpoint");
    };
    let allows_plain = config.flag("webhooks.allow_insecure");
    if !allows_plain && !url.starts_with("https://") {
        return findings.fail(what, format!("{url} is not https"), "use an https URL");
    }
    let transport = match HttpWebhooks::new(config.webhook_addresses()) {
        Ok(transport) => transport,
        Err(error) => return findings.fail(what, error.to_string(), "check the TLS installation of this host"),
    };
    let request = WebhookRequest {
        url: url.to_owned(),
        headers: vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("user-agent".to_owned(), "Hivetill-Doctor/1".to_owned()),
        ],
        body: json!({"type": "test", "from": "hivetill doctor"}).to_string().into_bytes(),
        timeout: config.millis("webhooks.timeout_ms"),
    };
    let started = SystemClock.now();
    let outcome = transport.post(request).await.outcome;
    let latency = SystemClock.now().since(started);
    match outcome {
        Outcome::Accepted { status } => findings.ok(what, format!("{url} responded with {status} in {latency:.0?}")),
        // The request is unsigned: an endpoint that verifies signatures rejects it, which proves that it is reachable.
        Outcome::Refused { status, .. } if status < 500 => {
            findings.ok(what, format!("{url} responded with {status} to an unsigned test"));
        }
        Outcome::Refused { status, .. } => {
            findings.fail(what, format!("{url} responded with {status}"), "see the receiver's log");
        }
        Outcome::Blocked => findings.fail(
            what,
            format!("{url} resolves to a private or reserved IP address"),
            "if this is intended, add its network to webhooks.allowed_networks",
        ),
        Outcome::Dns => {
            findings.fail(what, format!("{url} does not resolve"), "check the host name and the DNS of this host");
        }
        Outcome::Tls => findings.fail(
            what,
            format!("{url}: invalid TLS certificate"),
            "renew the receiver's certificate; check the CA certificates of this host",
        ),
        Outcome::ConnectionRefused => {
            findings.fail(what, format!("{url} refuses the connection"), "start the receiver, or correct the port");
        }
        Outcome::ConnectionReset | Outcome::Connect | Outcome::Timeout => findings.fail(
            what,
            format!("{url} does not respond ({})", outcome.as_str()),
            "check the receiver, and the firewall for outgoing connections",
        ),
    }
}
