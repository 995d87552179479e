//! `doctor`: looks at everything a gateway stands on, says what is wrong with it and what to do.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use ::engine::webhook::Outcome;
use actors::{
    environment::{Clock as _, WebhookRequest, WebhookTransport as _},
    http_webhooks::HttpWebhooks,
    system::SystemClock,
};
use serde_json::json;

use super::{
    facade,
    failure::Failure,
    logs, master_key,
    output::say,
    settings::{SettingsArgs, push},
};
use crate::{config::Config, metrics::disk_free_bytes};

mod engine;
mod nodes;

/// Free disk space below which a finding is a failure, and below which it is a warning.
const DISK_FAILS_BYTES: u64 = 256 << 20;
const DISK_WARNS_BYTES: u64 = 2 << 30;

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

/// How much something matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Grade {
    /// As it should be.
    Well,
    /// It works, and somebody should look.
    Warning,
    /// Payments fail, or will soon.
    Failing,
}

impl Grade {
    const fn word(self) -> &'static str {
        match self {
            Self::Well => "ok",
            Self::Warning => "warning",
            Self::Failing => "failing",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug)]
struct Finding {
    what: String,
    grade: Grade,
    seen: String,
    /// What to do about it.
    remedy: Option<String>,
}

/// Everything that was looked at.
#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn well(&mut self, what: &str, seen: impl Into<String>) {
        self.0.push(Finding { what: what.to_owned(), grade: Grade::Well, seen: seen.into(), remedy: None });
    }

    fn warn(&mut self, what: &str, seen: impl Into<String>, remedy: &str) {
        self.add(Grade::Warning, what, seen, remedy);
    }

    fn fail(&mut self, what: &str, seen: impl Into<String>, remedy: &str) {
        self.add(Grade::Failing, what, seen, remedy);
    }

    fn add(&mut self, grade: Grade, what: &str, seen: impl Into<String>, remedy: &str) {
        let (what, remedy) = (what.to_owned(), Some(remedy.to_owned()));
        self.0.push(Finding { what, grade, seen: seen.into(), remedy });
    }

    fn worst(&self) -> Grade {
        self.0.iter().map(|finding| finding.grade).max().unwrap_or(Grade::Well)
    }
}

/// Looks at everything and tells. Warnings are no failure.
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
    match facade::remote(&config) {
        Err(failure) => {
            findings.fail("engine", failure.to_string(), "set engine_url and grpc.token to those of the engine");
        }
        Ok(Some(transport)) => {
            engine::ask(transport, &config, &mut findings).await;
        }
        Ok(None) => {
            master_key_file(&config, &data, &mut findings);
            directory(&data, &mut findings);
            engine::look(&config, &data, &mut findings).await;
        }
    }
    nodes::look(&config, &mut findings).await;
    webhooks(&config, args.webhook.as_deref(), &mut findings).await;
    tell(&findings, args.json)?;
    if findings.worst() == Grade::Failing {
        let count = findings.0.iter().filter(|finding| finding.grade == Grade::Failing).count();
        return Err(Failure::Unwell(count));
    }
    Ok(())
}

fn tell(findings: &Findings, as_json: bool) -> Result<(), Failure> {
    if as_json {
        let list = findings.0.iter().map(|finding| {
            json!({"what": finding.what, "grade": finding.grade.word(), "seen": finding.seen, "remedy": finding.remedy})
        });
        return say(&format!("{}\n", json!({"grade": findings.worst().word(), "findings": list.collect::<Vec<_>>()})));
    }
    let mut text = String::new();
    for Finding { what, grade, seen, remedy } in &findings.0 {
        text.push_str(&format!("{:<8} {what}: {seen}\n", grade.word()));
        if let Some(remedy) = remedy {
            text.push_str(&format!("         -> {remedy}\n"));
        }
    }
    say(&text)
}

fn settings(config: &Config, findings: &mut Findings) {
    let is_real = config.text("network") == "mainnet";
    let what = "settings";
    match config.optional("base_url") {
        None => findings.warn(
            what,
            "base_url is not set: checkout links use the listening address",
            "set base_url to the public https URL",
        ),
        Some(url) if is_real && !url.starts_with("https://") => {
            findings.warn(
                what,
                format!("base_url is {url}"),
                "put a reverse proxy with TLS in front and use its https URL",
            );
        }
        Some(url) => findings.well(what, format!("the public URL is {url}")),
    }
    let is_behind_proxy = config.optional("base_url").is_some_and(|url| url.starts_with("https://"));
    if is_behind_proxy && config.list("trusted_proxies").is_empty() {
        findings.warn(
            what,
            "trusted_proxies is empty: rate limits count the proxy instead of its clients",
            "set trusted_proxies to the proxy's network, such as 127.0.0.1/32",
        );
    }
    if is_real && config.text("limits.profile") == "off" {
        findings.warn(what, "limits.profile is off", "set limits.profile to production");
    }
    if is_real && config.flag("webhooks.allow_insecure") {
        findings.warn(
            what,
            "webhooks.allow_insecure is on: webhooks can reach this host",
            "set webhooks.allow_insecure to false",
        );
    }
    nodes::majority(config, findings);
}

/// Says who may register, by the mode in force.
fn registration(mode: &str, config: &Config, findings: &mut Findings) {
    let what = "registration";
    match mode {
        "open" if config.text("network") == "mainnet" => findings.warn(
            what,
            "registration is open: everybody can register as a merchant",
            "set registration to approval or closed, unless this service is open to the public",
        ),
        mode => findings.well(what, format!("registration is {mode}")),
    }
}

/// Looks at the file of the master key. Whether secrets are sealed with it is asked of the store itself.
fn master_key_file(config: &Config, data: &Path, findings: &mut Findings) {
    let Some(path) = master_key::file_in_force(config, data) else {
        if config.optional("master_key").is_none() && !config.flag("seal_secrets") {
            findings.warn(
                "settings",
                "seal_secrets is off: webhook secrets are stored unencrypted, also in every backup",
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
        Ok(_) => findings.well("settings", format!("the master key is {}", path.display())),
    }
}

fn directory(data: &Path, findings: &mut Findings) {
    let what = "data directory";
    let shown = data.display();
    match fs::metadata(data) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            findings.warn(
                what,
                format!("{shown} does not exist"),
                "check the path; `hivetill admin` creates a new store",
            );
        }
        Err(error) => findings.fail(what, format!("{shown}: {error}"), "run as its owner"),
        Ok(folder) if !folder.is_dir() => findings.fail(what, format!("{shown} is a file"), "set a directory"),
        Ok(folder) if folder.permissions().mode() & 0o077 != 0 => findings.warn(
            what,
            format!("other users can read {shown} (mode {:o}, user {})", folder.mode() & 0o777, folder.uid()),
            "chmod 700 it",
        ),
        Ok(_) => findings.well(what, shown.to_string()),
    }
    let place = data.ancestors().find(|place| place.exists()).unwrap_or(Path::new("."));
    let mebibytes = |bytes: u64| bytes >> 20;
    match disk_free_bytes(place) {
        None => findings.warn("disk", "free space is unknown", "check it with df"),
        Some(free) if free < DISK_FAILS_BYTES => findings.fail(
            "disk",
            format!("{} MiB free", mebibytes(free)),
            "free space now: a full disk shuts the engine down (exit code 8)",
        ),
        Some(free) if free < DISK_WARNS_BYTES => {
            findings.warn(
                "disk",
                format!("{} MiB free", mebibytes(free)),
                "free space; docs/reference/limits.md lists the disk usage",
            );
        }
        Some(free) => findings.well("disk", format!("{} MiB free", mebibytes(free))),
    }
}

async fn webhooks(config: &Config, url: Option<&str>, findings: &mut Findings) {
    let what = "webhooks";
    let Some(url) = url else {
        return findings.well(what, "not tested; --webhook URL sends a test request to an endpoint");
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
    let begun = SystemClock.now();
    let outcome = transport.post(request).await.outcome;
    let took = SystemClock.now().since(begun);
    match outcome {
        Outcome::Accepted { status } => findings.well(what, format!("{url} answered {status} in {took:.0?}")),
        // It is unsigned: an endpoint that checks signatures turns it away, and shows that it can be reached.
        Outcome::Refused { status, .. } if status < 500 => {
            findings.well(what, format!("{url} responded with {status} to an unsigned test"));
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

/// How far the clock may be off: blocks are three seconds apart, signatures of webhooks live five minutes.
const CLOCK_WARNS: Duration = Duration::from_secs(3);

/// Returns an address as logs may show it: a URL may carry a key in its path or query.
fn host(url: &str) -> String {
    match url::Url::parse(url) {
        Ok(url) => {
            let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
            format!("{}{port}", url.host_str().unwrap_or_default())
        }
        Err(_) => url.parse::<SocketAddr>().map_or_else(|_| "node".to_owned(), |address| address.to_string()),
    }
}
