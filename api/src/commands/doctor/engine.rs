//! The engine and its store, as `doctor` sees them: a running one is asked, an idle store is opened as the service would.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use proto::{Engine, Transport, v1};
use storage::{Idle, OpenError};

use super::{Findings, registration};
use crate::{
    commands::{local, master_key},
    config::Config,
};

/// What the service must be able to read and write, where it is there.
const FILES: [&str; 7] = [
    storage::FILE_NAME,
    "hivetill.wal",
    "hivetill.wal2",
    "hivetill.lock",
    master_key::FILE_NAME,
    "grpc-token",
    "engine.sock",
];

/// Asks the engine that has the data directory, or opens its store if none has.
pub(super) async fn look(config: &Config, data: &Path, findings: &mut Findings) {
    let what = "engine";
    if owners(data, findings) {
        return;
    }
    match Idle::take_store(data) {
        Ok(idle) => {
            findings.well(what, "no engine uses this data directory");
            registration(config.text("registration"), config, findings);
            store(&idle, config, data, findings);
        }
        Err(OpenError::Missing(_)) => {
            findings.well(what, "there is no store yet");
            registration(config.text("registration"), config, findings);
        }
        Err(OpenError::Locked(_)) => match local::running(config, data) {
            Ok(Some(transport)) => {
                if let Some(mode) = ask(transport, config, findings).await
                    && mode != config.text("registration")
                {
                    findings.warn(
                        "registration",
                        format!(
                            "the settings say {}, and the running engine was started with {mode}",
                            config.text("registration")
                        ),
                        "restart the engine to apply settings",
                    );
                }
            }
            _ => findings.warn(what, "it is running without a socket", "see its log, or use --engine-url URL"),
        },
        Err(error) => findings.fail(what, error.to_string(), "run doctor as the owner of the data directory"),
    }
}

/// Looks whose the files are; returns whether this process would change that by opening them.
fn owners(data: &Path, findings: &mut Findings) -> bool {
    let Ok(folder) = fs::metadata(data) else { return false };
    let owner = folder.uid();
    let foreign = |name: &&str| {
        let path: PathBuf = data.join(name);
        let file = fs::metadata(&path).ok()?;
        let may = file.uid() == owner && file.mode() & 0o600 == 0o600;
        (!may).then(|| format!("{} (user {}, mode {:o})", path.display(), file.uid(), file.mode() & 0o777))
    };
    let foreign: Vec<String> = FILES.iter().filter_map(foreign).collect();
    if !foreign.is_empty() {
        findings.fail(
            "data directory",
            format!("its owner ({owner}) cannot read and write {}", foreign.join(", ")),
            "chown these files to that user and chmod 600 them: the service cannot open them (exit code 9)",
        );
    }
    let own = rustix::process::geteuid().as_raw();
    if own != owner {
        findings.warn(
            "engine",
            format!("not checked: the data directory belongs to user {owner}, and this is user {own}"),
            "run doctor as the service's user, or use --engine-url URL",
        );
    }
    own != owner || !foreign.is_empty()
}

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
            findings.well(
                what,
                "database, write-ahead log and master key can be opened; `hivetill verify` checks every record",
            );
            sealed(secrets.sealed, secrets.plain, findings);
        }
        Err(error @ OpenError::MasterKey { .. }) => {
            findings.fail(
                what,
                format!("it is encrypted with another master key: {error}"),
                "restore the master key of this store",
            );
        }
        Err(error) => {
            findings.fail(what, error.to_string(), "see docs/reference/exit-codes.md");
        }
    }
}

/// Asks a running engine how it is; returns the mode of registration that is in force there.
pub(super) async fn ask(transport: Transport, config: &Config, findings: &mut Findings) -> Option<String> {
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
        Ok(health) if health.health == i32::from(v1::Health::Ok) => findings
            .well(what, format!("it is healthy, at block {} of {}", health.scanned_block, health.irreversible_block)),
        Ok(health) => findings.fail(
            what,
            format!(
                "it is degraded: ledger reachable {}, at block {} of {}",
                health.ledger_reachable, health.scanned_block, health.irreversible_block
            ),
            "see the nodes below, and its log",
        ),
        Err(error) => {
            findings.fail(what, format!("it is running and does not respond: {}", error.message()), "see its log");
            return None;
        }
    }
    match engine.maintenance().describe_engine(v1::DescribeEngineRequest {}).await.map(tonic::Response::into_inner) {
        Ok(described) => {
            findings.well(what, format!("version {} of commit {}", described.version, described.commit));
            sealed(described.sealed_secrets, described.plain_secrets, findings);
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

/// Reports what the stored rows say of webhook secrets.
fn sealed(sealed: u64, plain: u64, findings: &mut Findings) {
    if plain > 0 {
        findings.warn(
            "secrets",
            format!("the webhook secrets of {plain} merchants are stored unencrypted, also in every backup"),
            "start the engine with a master key, which encrypts them; keep a copy of the key, separate from the backups",
        );
    } else {
        findings.well("secrets", format!("the webhook secrets of {sealed} merchants are encrypted"));
    }
}
