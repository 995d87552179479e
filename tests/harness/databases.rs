//! The databases of gateways under test when `HIVETILL_TEST_STORE` is `postgres`: one cluster for the whole run, and in it one
//! database for each data directory, or for each gateway without one. A gateway that starts again in its directory finds its database.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{
    cluster::{Cluster, Programs},
    settings::{StoreKind, store_kind},
};

/// Commands that create their store if there is none.
const CREATING: [&str; 3] = ["dev", "serve", "engine"];

/// Commands that use the store of a data directory in which a gateway has run.
const USING: [&str; 5] = ["admin", "doctor", "verify", "export", "rotate-master-key"];

/// A gateway that starts again after a kill waits for the end of its own lease. The lease must be at least twice the timeout of webhooks.
const SHORT_LEASE: [&str; 2] = ["--set=store.lease_seconds=5", "--set=webhooks.timeout_ms=2000"];

/// Tests that do not run on PostgreSQL, by the beginning of their names, and why.
const EMBEDDED_ONLY: [(&str, &str); 19] = [
    ("postgres::", "has databases of its own, whatever the store of the run"),
    ("operations::backups::", "backs up, damages, exports and compacts the embedded store's file"),
    ("operations::exits::a_missing_store_is_never_replaced", "moves the embedded store's file away"),
    ("operations::exits::a_file_size_limit_stops", "limits the size of the embedded store's files"),
    ("operations::exits::a_full_file_system_stops", "fills the disk of the embedded store"),
    ("operations::exits::missing_permissions_have", "changes the mode of the embedded store's file"),
    ("operations::alarms::an_unwritable_disk_raises", "makes the embedded store's disk unwritable"),
    ("operations::alarms::damaged_rows_raise", "damages a backup of the embedded store"),
    ("operations::doctor::a_remote_engine_is_checked", "overwrites the embedded store's file and log"),
    ("reliability::disk::", "fills the disk of the embedded store and makes it fail"),
    ("recovery::a_second_process_on_the_same_data", "locks the embedded store; engines share a database"),
    ("recovery::dev_with_a_data_directory", "locks the embedded store, and reads the modes of its files"),
    ("recovery::an_admin_key_is_created", "creates an embedded store before the gateway, and locks it"),
    ("keys::sealed_secrets_sign_the_same", "searches the embedded store's files for secrets"),
    ("keys::serve_creates_a_master_key", "searches a backup of the embedded store for the key"),
    ("keys::unencrypted_secrets_are_reported", "searches the embedded store's files for secrets"),
    ("interop::grpc::the_python_watch_survives", "restores a backup of the embedded store"),
    ("interop::grpc::the_node_watch_survives", "restores a backup of the embedded store"),
    ("interop::shops::", "restores a backup of the embedded store"),
];

/// Returns why a test does not run on the store of this run.
pub(crate) fn reason_to_skip(test: &str) -> Option<&'static str> {
    match store_kind() {
        StoreKind::Embedded => None,
        StoreKind::Postgres => EMBEDDED_ONLY.iter().find(|(name, _)| test.starts_with(name)).map(|(_, why)| *why),
    }
}

/// The cluster, the database that others are copied from, and the databases by their data directories.
struct Databases {
    cluster: Cluster,
    template: String,
    of_directories: BTreeMap<PathBuf, String>,
}

static DATABASES: Mutex<Option<Databases>> = Mutex::new(None);

fn locked() -> MutexGuard<'static, Option<Databases>> {
    DATABASES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the settings that put the store of a command into its database; none for an embedded store, for a command without a
/// store, and for one whose store the test itself chose. `migrate` applies the schema to the database of a URL.
pub(super) fn settings_of(args: &[&str], folder: &Path, migrate: impl Fn(&str)) -> Vec<String> {
    let (Some(command), StoreKind::Postgres) = (args.first(), store_kind()) else { return Vec::new() };
    let sets = |setting: &str| args.iter().any(|arg| arg.contains(&format!("{setting}=")));
    let (creates, uses) = (CREATING.contains(command), USING.contains(command));
    if !(creates || uses) || sets("store.url") {
        return Vec::new();
    }
    let directory = directory(args).map(|path| folder.join(path));
    let mut kept = locked();
    let known = directory.as_ref().and_then(|directory| kept.as_ref()?.of_directories.get(directory).cloned());
    if known.is_none() && !creates {
        return Vec::new();
    }
    let databases = kept.get_or_insert_with(|| Databases::start(migrate));
    let name = known.unwrap_or_else(|| databases.cluster.create_database(Some(&databases.template)));
    let mut settings = vec![format!("--set=store.url={}", databases.cluster.url(&name))];
    if creates && !sets("store.lease_seconds") && !sets("webhooks.timeout_ms") {
        settings.extend(SHORT_LEASE.map(str::to_owned));
    }
    if let Some(directory) = directory {
        databases.of_directories.insert(directory, name);
    }
    settings
}

/// Returns the value of `--data`.
fn directory<'a>(args: &[&'a str]) -> Option<&'a str> {
    let place = args.iter().position(|arg| *arg == "--data" || arg.starts_with("--data="))?;
    args[place].strip_prefix("--data=").or_else(|| args.get(place + 1).copied())
}

impl Databases {
    fn start(migrate: impl Fn(&str)) -> Self {
        let programs = Programs::find().unwrap_or_else(|why| panic!("HIVETILL_TEST_STORE=postgres: {why}"));
        // Each gateway has six connections, and several tests run at once.
        let cluster = Cluster::start(&programs, &["max_connections=400"]);
        let template = cluster.create_database(None);
        migrate(&cluster.url(&template));
        Self { cluster, template, of_directories: BTreeMap::new() }
    }
}

/// Stops the cluster and removes its folder, after the last test.
pub(super) fn end() {
    drop(locked().take());
}
