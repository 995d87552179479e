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
    Failure, facade, logs, master_key, say,
    settings::{SettingsArgs, push},
};
use crate::{config::Config, metrics::disk_free_bytes};

mod engine;
mod nodes;

/// Room on the disk below which a store is about to fail, and below which somebody should look.
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
    /// The running engine's gRPC port, where it is not on this machine (setting engine_url)
    #[arg(long, value_name = "URL")]
    engine_url: Option<String>,
    /// Posts a harmless test to a webhook endpoint, by the rules that webhooks go by
    #[arg(long, value_name = "URL")]
    webhook: Option<String>,
    /// Prints one line of JSON
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
        Err(failure) => findings.fail("engine", failure.to_string(), "say where the engine is and what its token is"),
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
            "base_url is not set: checkout links name the listening address",
            "set base_url to the https address that customers use",
        ),
        Some(url) if is_real && !url.starts_with("https://") => {
            findings.warn(
                what,
                format!("base_url is {url}"),
                "put a proxy with TLS in front and use its https address",
            );
        }
        Some(url) => findings.well(what, format!("customers come to {url}")),
    }
    let is_behind_proxy = config.optional("base_url").is_some_and(|url| url.starts_with("https://"));
    if is_behind_proxy && config.list("trusted_proxies").is_empty() {
        findings.warn(
            what,
            "trusted_proxies is empty: limits count the proxy and not the customers",
            "set trusted_proxies to the proxy's network, such as 127.0.0.1/32",
        );
    }
    if is_real && config.text("limits.profile") == "off" {
        findings.warn(what, "limits.profile is off", "set limits.profile to production");
    }
    if is_real && config.flag("webhooks.allow_insecure") {
        findings.warn(
            what,
            "webhooks.allow_insecure is on: merchants can make us call this machine",
            "switch webhooks.allow_insecure off",
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
            "set registration to approval, or to closed, unless strangers shall use this installation",
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
                "seal_secrets is off: webhook secrets are stored in clear, and are in every backup",
                "remove that setting; the next start makes a master key and seals them",
            );
        }
        return;
    };
    match fs::metadata(&path) {
        Err(error) => findings.fail(
            "settings",
            format!("master_key_file {}: {error}", path.display()),
            "put the key where the setting says; without it the store does not open",
        ),
        Ok(file) if file.permissions().mode() & 0o077 != 0 => findings.fail(
            "settings",
            format!("others may read the master key {}", path.display()),
            "chmod 600 that file, then change the key: hivetill rotate-master-key",
        ),
        Ok(_) => findings.well("settings", format!("the master key is {}", path.display())),
    }
}

fn directory(data: &Path, findings: &mut Findings) {
    let what = "data directory";
    let shown = data.display();
    match fs::metadata(data) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            findings.warn(what, format!("{shown} is not there"), "check the path; `hivetill admin` makes a new store");
        }
        Err(error) => findings.fail(what, format!("{shown}: {error}"), "run as the user it belongs to"),
        Ok(folder) if !folder.is_dir() => findings.fail(what, format!("{shown} is a file"), "name a directory"),
        Ok(folder) if folder.permissions().mode() & 0o077 != 0 => findings.warn(
            what,
            format!("others may look into {shown} (mode {:o}, user {})", folder.mode() & 0o777, folder.uid()),
            "chmod 700 it",
        ),
        Ok(_) => findings.well(what, shown.to_string()),
    }
    let place = data.ancestors().find(|place| place.exists()).unwrap_or(Path::new("."));
    let mebibytes = |bytes: u64| bytes >> 20;
    match disk_free_bytes(place) {
        None => findings.warn("disk", "its room is not known", "look at it with df"),
        Some(free) if free < DISK_FAILS_BYTES => findings.fail(
            "disk",
            format!("{} MiB are free", mebibytes(free)),
            "make room now: a full disk stops the engine (exit code 8)",
        ),
        Some(free) if free < DISK_WARNS_BYTES => {
            findings.warn(
                "disk",
                format!("{} MiB are free", mebibytes(free)),
                "free space; docs/reference/limits.md says how much is needed",
            );
        }
        Some(free) => findings.well("disk", format!("{} MiB are free", mebibytes(free))),
    }
}

async fn webhooks(config: &Config, url: Option<&str>, findings: &mut Findings) {
    let what = "webhooks";
    let Some(url) = url else {
        return findings.well(what, "not tried; --webhook URL posts a harmless test to one endpoint");
    };
    let allows_plain = config.flag("webhooks.allow_insecure");
    if !allows_plain && !url.starts_with("https://") {
        return findings.fail(what, format!("{url} is not https"), "webhooks go to https only");
    }
    let transport = match HttpWebhooks::new(config.webhook_addresses()) {
        Ok(transport) => transport,
        Err(error) => return findings.fail(what, error.to_string(), "this machine's TLS cannot be set up"),
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
            findings.well(what, format!("{url} can be reached and answered {status} to an unsigned test"));
        }
        Outcome::Refused { status, .. } => {
            findings.fail(what, format!("{url} answered {status}"), "look at the receiver's own log");
        }
        Outcome::Blocked => findings.fail(
            what,
            format!("{url} leads to a private or reserved address"),
            "if it is meant, add its network to webhooks.allowed_networks",
        ),
        Outcome::Dns => findings.fail(what, format!("{url} has no address"), "check its name and this machine's DNS"),
        Outcome::Tls => findings.fail(
            what,
            format!("{url}: its certificate is not accepted"),
            "renew the receiver's certificate; check that this machine has CA certificates",
        ),
        Outcome::ConnectionRefused => {
            findings.fail(what, format!("{url} refuses the connection"), "start the receiver, and check its port");
        }
        Outcome::ConnectionReset | Outcome::Connect | Outcome::Timeout => findings.fail(
            what,
            format!("{url} does not answer ({})", outcome.word()),
            "check the receiver, and that this machine may call out",
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
