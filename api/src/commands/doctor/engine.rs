//! Checks of the engine and its store: a running engine is called, an idle store is opened.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use actors::{environment::Clock as _, system::SystemClock};
use engine::time::Timestamp;
use proto::{Engine, Transport, v1};
use storage::{Address, DatabaseReport, Duty, Idle, OpenError, PostgresStore};

use super::findings::Findings;
use crate::{
    commands::{database, master_key, socket},
    config::Config,
};

/// Files of the data directory that the service must be able to read and write if they exist.
const FILES: [&str; 7] = [
    storage::FILE_NAME,
    "hivetill.wal",
    "hivetill.wal2",
    "hivetill.lock",
    master_key::FILE_NAME,
    "grpc-token",
    "engine.sock",
];

/// Latency of a statement from which a database counts as slow.
const SLOW_DATABASE: Duration = Duration::from_millis(20);

/// Difference between the clocks of this host and the database from which it is reported.
const CLOCK_DIFFERENCE: Duration = Duration::from_secs(2);

/// The buckets that the webhooks of merchants are divided into.
const WEBHOOK_BUCKETS: u32 = 256;

/// Checks the engine that uses the data directory, or the store if no engine uses it.
pub(super) async fn check(config: &Config, data: &Path, findings: &mut Findings) {
    let what = "engine";
    if !check_owners(data, findings) {
        return;
    }
    match database::address(config) {
        Ok(None) => {}
        Ok(Some(address)) => return check_database(&address, config, findings).await,
        Err(failure) => return findings.fail("store", failure.to_string(), "correct the setting store.url"),
    }
    match Idle::take_store(data) {
        Ok(idle) => {
            findings.ok(what, "no engine uses this data directory");
            registration(config.text("registration"), config, findings);
            store(&idle, config, data, findings);
        }
        Err(OpenError::Missing(_)) => {
            findings.ok(what, "there is no store yet");
            registration(config.text("registration"), config, findings);
        }
        Err(OpenError::Locked(_)) => match socket::transport(config, data) {
            Ok(Some(transport)) => {
                if let Some(mode) = check_running(transport, config, findings).await
                    && mode != config.text("registration")
                {
                    findings.warn(
                        "registration",
                        format!(
                            "the setting is {}, but the running engine was started with {mode}",
                            config.text("registration")
                        ),
                        "restart the engine to apply settings",
                    );
                }
            }
            _ => findings.warn(what, "running without a socket", "see its log, or use --engine-url URL"),
        },
        Err(error) => findings.fail(what, error.to_string(), "run doctor as the owner of the data directory"),
    }
}

/// Checks that the database of the setting `store.url` can be opened.
async fn check_database(address: &Address, config: &Config, findings: &mut Findings) {
    match PostgresStore::inspect(address).await {
        Ok(report) => {
            findings.ok("store", format!("{address} can be opened and has the schema of this version"));
            check_server(&report, config.flag("store.allow_asynchronous_standby"), SystemClock.now(), findings);
            registration(config.text("registration"), config, findings);
        }
        Err(error) => findings.fail("store", error.to_string(), "see docs/how-to/postgresql.md"),
    }
}

/// Checks the state of the database server.
fn check_server(report: &DatabaseReport, may_be_asynchronous: bool, now: Timestamp, findings: &mut Findings) {
    let what = "database";
    let DatabaseReport { version, standbys, is_synchronous, has_fsync, time, latency } = report;
    findings.ok(what, format!("PostgreSQL {version} executes a statement in {} us", latency.as_micros()));
    if *latency > SLOW_DATABASE {
        let message = "a statement takes long: every creation and every settlement waits for the database";
        findings.warn(what, message, "run the engines in the same data centre as the database");
    }
    if !has_fsync {
        findings.fail(what, "fsync is off: a crash of its host corrupts the database", "set fsync = on");
    }
    let difference = time.since(now).max(now.since(*time));
    if difference > CLOCK_DIFFERENCE {
        let message = format!("its clock differs from this host's by {:.1} s", difference.as_secs_f64());
        findings.warn(what, message, "synchronize both clocks (NTP)");
    }
    match (*standbys, is_synchronous) {
        (0, false) => findings.ok(what, "no standby is connected"),
        (0, true) => {
            let message = "commits wait for a standby and none is connected: no payment can be created";
            findings.fail(what, message, "start the standby, or change synchronous_standby_names");
        }
        (count, true) => findings.ok(what, format!("connected standbys: {count}; commits wait for one")),
        (count, false) if may_be_asynchronous => {
            let message = format!("connected standbys: {count}; commits do not wait for one");
            findings.warn(what, message, "a failover loses payments whose creation or settlement was acknowledged");
        }
        (count, false) => {
            let message = format!(
                "connected standbys: {count}; commits do not wait for one: a failover loses acknowledged payments"
            );
            let remedy = "set synchronous_standby_names, or accept the loss with store.allow_asynchronous_standby";
            findings.fail(what, message, remedy);
        }
    }
}

/// Checks the owners of the files. Returns whether the store can be opened without changing them: opening it as another user
/// would create files that the service cannot read.
fn check_owners(data: &Path, findings: &mut Findings) -> bool {
    let Ok(folder) = fs::metadata(data) else { return true };
    let owner = folder.uid();
    let inaccessible = |name: &&str| {
        let path: PathBuf = data.join(name);
        let file = fs::metadata(&path).ok()?;
        let is_accessible = file.uid() == owner && file.mode() & 0o600 == 0o600;
        (!is_accessible).then(|| format!("{} (user {}, mode {:o})", path.display(), file.uid(), file.mode() & 0o777))
    };
    let inaccessible: Vec<String> = FILES.iter().filter_map(inaccessible).collect();
    if !inaccessible.is_empty() {
        findings.fail(
            "data directory",
            format!("its owner ({owner}) cannot read and write {}", inaccessible.join(", ")),
            "chown these files to that user and chmod 600 them: the service cannot open them (exit code 9)",
        );
    }
    let user = rustix::process::geteuid().as_raw();
    if user != owner {
        findings.warn(
            "engine",
            format!("not checked: the data directory belongs to user {owner}, and doctor runs as user {user}"),
            "run doctor as the service's user, or use --engine-url URL",
        );
    }
    user == owner && inaccessible.is_empty()
}

/// Checks an idle store and its master key.
fn store(idle: &Idle, config: &Config, data: &Path, findings: &mut Findings) {
    let what = "store";
    let vault = match master_key::vault(config, data) {
        Ok(vault) => vault,
        Err(failure) => {
            return findings.fail(what, failure.to_string(), "the store cannot be opened without its master key");
        }
    };
    match idle.secrets(&vault) {
        Ok(secrets) => {
            findings.ok(
                what,
                "database, write-ahead log and master key can be opened; `hivetill verify` checks every record",
            );
            check_secrets(secrets.sealed, secrets.plain, findings);
        }
        Err(error @ OpenError::MasterKey { .. }) => {
            findings.fail(
                what,
                format!("encrypted with another master key: {error}"),
                "restore the master key of this store",
            );
        }
        Err(error) => {
            findings.fail(what, error.to_string(), "see docs/reference/exit-codes.md");
        }
    }
}

/// Checks a running engine. Returns its registration mode; `None` if the engine does not respond.
pub(super) async fn check_running(transport: Transport, config: &Config, findings: &mut Findings) -> Option<String> {
    let what = "engine";
    let engine = Engine::new(transport);
    let health = engine.system().get_health(v1::GetHealthRequest {}).await.map(tonic::Response::into_inner);
    if let Some(rows) = health.as_ref().ok().map(|health| health.damaged_rows).filter(|rows| *rows > 0) {
        findings.fail(
            "store",
            format!("{rows} stored rows are damaged and are not served"),
            "run hivetill verify to list them; see docs/how-to/back-up.md for repairs",
        );
    }
    match health {
        Ok(health) if health.health == i32::from(v1::Health::Ok) => {
            findings.ok(what, format!("healthy, at block {} of {}", health.scanned_block, health.irreversible_block));
        }
        Ok(health) => findings.fail(
            what,
            format!(
                "degraded: ledger reachable {}, at block {} of {}",
                health.ledger_reachable, health.scanned_block, health.irreversible_block
            ),
            "see the nodes below, and its log",
        ),
        Err(error) => {
            findings.fail(what, format!("running, but does not respond: {}", error.message()), "see its log");
            return None;
        }
    }
    match engine.maintenance().describe_engine(v1::DescribeEngineRequest {}).await.map(tonic::Response::into_inner) {
        Ok(described) => {
            findings.ok(what, format!("version {} of commit {}", described.version, described.commit));
            check_secrets(described.encrypted_secrets, described.plaintext_secrets, findings);
            let mode = described.registration().rest_name().unwrap_or("unknown");
            registration(mode, config, findings);
            duties(&described.engines, findings);
            Some(mode.to_owned())
        }
        Err(error) => {
            findings.fail("store", error.message(), "see the engine's log");
            None
        }
    }
}

/// Checks who holds which duty.
fn duties(engines: &[v1::EngineDuties], findings: &mut Findings) {
    let what = "duties";
    if engines.is_empty() {
        return findings.ok(what, "the engine does not share its store and holds every duty");
    }
    for engine in engines {
        let mut held = engine.duties.clone();
        if engine.webhook_buckets > 0 {
            held.push(format!("{} of {WEBHOOK_BUCKETS} webhook buckets", engine.webhook_buckets));
        }
        let held = if held.is_empty() { "no duty".to_owned() } else { held.join(", ") };
        let which = if engine.is_responding { " (this one)" } else { "" };
        findings.ok(what, format!("engine {}{which} holds {held}", engine.engine_id));
    }
    let is_held = |duty: &str| engines.iter().any(|engine| engine.duties.iter().any(|held| held == duty));
    let mut free: Vec<String> = Duty::SINGLE.iter().map(ToString::to_string).filter(|duty| !is_held(duty)).collect();
    let buckets: u32 = engines.iter().map(|engine| engine.webhook_buckets).sum();
    if buckets < WEBHOOK_BUCKETS {
        free.push(format!("{} of {WEBHOOK_BUCKETS} webhook buckets", WEBHOOK_BUCKETS - buckets));
    }
    if !free.is_empty() {
        findings.warn(
            what,
            format!("no engine holds {}", free.join(", ")),
            "run doctor again after store.lease_seconds; if it remains, see the engines' logs",
        );
    }
}

/// Checks whether stored webhook secrets are encrypted, by the numbers of merchants.
fn check_secrets(encrypted: u64, plaintext: u64, findings: &mut Findings) {
    if plaintext > 0 {
        findings.warn(
            "secrets",
            format!("the webhook secrets of {plaintext} merchants are stored unencrypted, also in every backup"),
            "start the engine with a master key, which encrypts them; keep a copy of the key, separate from the backups",
        );
    } else {
        findings.ok("secrets", format!("the webhook secrets of {encrypted} merchants are encrypted"));
    }
}

/// Checks the registration mode in force.
fn registration(mode: &str, config: &Config, findings: &mut Findings) {
    let what = "registration";
    match mode {
        "open" if config.text("network") == "mainnet" => findings.warn(
            what,
            "registration is open: anyone can register as a merchant",
            "set registration to approval or closed, unless this service is open to the public",
        ),
        mode => findings.ok(what, format!("registration is {mode}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::Severity;

    fn lines(engines: &[v1::EngineDuties]) -> Vec<(Severity, String)> {
        let mut findings = Findings::default();
        duties(engines, &mut findings);
        assert!(findings.0.iter().all(|finding| finding.check == "duties"));
        findings.0.into_iter().map(|finding| (finding.severity, finding.message)).collect()
    }

    #[test]
    fn a_database_that_may_lose_acknowledged_payments_fails_unless_that_is_allowed() {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let report = |standbys, is_synchronous| DatabaseReport {
            version: "15.8".to_owned(),
            standbys,
            is_synchronous,
            has_fsync: true,
            time: now,
            latency: Duration::from_micros(700),
        };
        let check = |report: &DatabaseReport, is_allowed| {
            let mut findings = Findings::default();
            check_server(report, is_allowed, now, &mut findings);
            (findings.worst(), findings.0.last().map(|finding| finding.message.clone()).unwrap_or_default())
        };
        let asynchronous = "connected standbys: 1; commits do not wait for one";
        assert_eq!(check(&report(0, false), false), (Severity::Ok, "no standby is connected".to_owned()));
        assert_eq!(check(&report(1, true), false).0, Severity::Ok);
        let (severity, message) = check(&report(1, false), false);
        assert!(severity == Severity::Failing && message.starts_with(asynchronous), "{message}");
        assert_eq!(check(&report(1, false), true), (Severity::Warning, asynchronous.to_owned()));
        assert_eq!(check(&report(0, true), false).0, Severity::Failing);
        let without_fsync = DatabaseReport { has_fsync: false, ..report(0, false) };
        assert_eq!(check(&without_fsync, false).0, Severity::Failing);
        let ahead = DatabaseReport { time: now + Duration::from_secs(3), ..report(0, false) };
        let slow = DatabaseReport { latency: Duration::from_millis(21), ..report(0, false) };
        assert_eq!((check(&ahead, false).0, check(&slow, false).0), (Severity::Warning, Severity::Warning));
    }

    #[test]
    fn the_holder_of_each_duty_is_shown_and_duties_without_one_are_a_warning() {
        let alone = "the engine does not share its store and holds every duty";
        assert_eq!(lines(&[]), [(Severity::Ok, alone.to_owned())]);
        let engine = |id: &str, is_responding, duties: &[&str], webhook_buckets| v1::EngineDuties {
            engine_id: id.to_owned(),
            is_responding,
            lease_expires_at: None,
            duties: duties.iter().map(|duty| (*duty).to_owned()).collect(),
            webhook_buckets,
        };
        let all = ["scanner", "virtual_transfers", "reconciliation", "rates", "housekeeping"];
        let [one, two] = [engine("0a", true, &all[..4], 128), engine("0b", false, &all[4..], 128)];
        let held = [
            (Severity::Ok, format!("engine 0a (this one) holds {}, 128 of 256 webhook buckets", all[..4].join(", "))),
            (Severity::Ok, "engine 0b holds housekeeping, 128 of 256 webhook buckets".to_owned()),
        ];
        assert_eq!(lines(&[one.clone(), two]), held);
        let new = engine("0c", false, &[], 0);
        let free = "no engine holds housekeeping, 128 of 256 webhook buckets".to_owned();
        let without =
            [held[0].clone(), (Severity::Ok, "engine 0c holds no duty".to_owned()), (Severity::Warning, free)];
        assert_eq!(lines(&[one, new]), without);
    }
}
