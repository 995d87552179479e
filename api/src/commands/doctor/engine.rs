//! Checks of the engine and its store: a running engine is called, an idle store is opened.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use proto::{Engine, Transport, v1};
use storage::{Idle, OpenError};

use super::{Findings, registration};
use crate::{
    commands::{master_key, socket},
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

/// Checks the engine that uses the data directory, or the store if no engine uses it.
pub(super) async fn check(config: &Config, data: &Path, findings: &mut Findings) {
    let what = "engine";
    if !check_owners(data, findings) {
        return;
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
            Some(mode.to_owned())
        }
        Err(error) => {
            findings.fail("store", error.message(), "see the engine's log");
            None
        }
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
