//! Engines over one database, and facades that call all of them.

use std::path::PathBuf;

use crate::{
    harness::{Api, Ledger, LedgerProcess, Process, Split, folder, until, until_ready},
    operations::metrics::{LISTEN, metrics_of},
};

use super::{SHORT_LEASE, cluster::Cluster, path};

/// The token of every engine.
pub(super) const TOKEN: &str = "a-token-of-all-engines-of-a-database-of-a-test";

/// Engines over one database.
pub(super) struct Fleet {
    pub(super) ledger: LedgerProcess,
    pub(super) engines: Vec<EngineProcess>,
    folder: PathBuf,
    /// The settings of each engine.
    members: Vec<Member>,
}

/// The settings of an engine: its store and its node.
struct Member {
    store: String,
    node: Ledger,
}

/// An engine, the URL of its gRPC port, and its metrics.
pub(super) struct EngineProcess {
    pub(super) process: Process,
    pub(super) url: String,
    pub(super) metrics: Api,
}

/// A facade of all engines.
pub(super) struct FacadeProcess {
    pub(super) process: Process,
    pub(super) api: Api,
    metrics: Api,
}

/// Returns the name of a new database with the schema.
#[track_caller]
pub(super) fn migrated(cluster: &Cluster) -> String {
    let name = cluster.create_database(None);
    let store = format!("--set=store.url={}", cluster.url(&name));
    assert!(Process::start(&["migrate", &store]).finish().success);
    name
}

/// Returns a new database with the schema, as a setting.
#[track_caller]
pub(super) fn database(cluster: &Cluster) -> String {
    format!("--set=store.url={}", cluster.url(&migrated(cluster)))
}

impl Fleet {
    /// Starts `count` engines. The first one generates the master key.
    #[track_caller]
    pub(super) fn start(store: &str, count: usize) -> Self {
        Self::of(&vec![store; count], |ledger| vec![ledger.clone(); count])
    }

    /// Starts engines that reach the database and the ledger in ways of their own. The first one takes the duties.
    #[track_caller]
    pub(super) fn of(stores: &[&str], nodes: impl FnOnce(&Ledger) -> Vec<Ledger>) -> Self {
        let folder = folder("fleet");
        let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
        let nodes = nodes(&ledger.ledger);
        let members =
            stores.iter().zip(nodes).map(|(store, node)| Member { store: (*store).to_owned(), node }).collect();
        let mut fleet = Self { ledger, engines: Vec::new(), folder, members };
        for number in 0..stores.len() {
            let engine = fleet.engine(number, "127.0.0.1:0");
            fleet.engines.push(engine);
        }
        fleet
    }

    /// Starts an engine.
    #[track_caller]
    fn engine(&self, number: usize, address: &str) -> EngineProcess {
        let member = &self.members[number];
        let token = format!("--set=grpc.token={TOKEN}");
        let key = format!("--set=master_key_file={}", path(&self.folder.join("0").join("master-key")));
        let mut settings = [SHORT_LEASE.as_slice(), &[&member.store, &token, LISTEN]].concat();
        if number > 0 {
            settings.push(&key);
        }
        let data = self.folder.join(number.to_string());
        let (mut process, url) = Split::engine_with(&data, &member.node, address, &settings);
        let metrics = metrics_of(&mut process);
        EngineProcess { process, url, metrics }
    }

    /// Starts an engine again at its address.
    #[track_caller]
    pub(super) fn restart(&mut self, number: usize) {
        let address = self.engines[number].url.trim_start_matches("http://").to_owned();
        self.engines[number] = self.engine(number, &address);
    }

    /// Starts a facade with further arguments, and waits until all engines are ready.
    #[track_caller]
    pub(super) fn facade(&self, more: &[&str]) -> FacadeProcess {
        let urls = self.engines.iter().map(|engine| engine.url.clone());
        FacadeProcess::start(urls, more)
    }
}

impl FacadeProcess {
    /// Starts a facade of engines and waits until they are ready.
    #[track_caller]
    pub(super) fn start(engines: impl IntoIterator<Item = String>, more: &[&str]) -> Self {
        let token = format!("--set=grpc.token={TOKEN}");
        let fixed = ["facade", "--listen=127.0.0.1:0", LISTEN, &token];
        let mut args: Vec<String> = fixed.into_iter().chain(more.iter().copied()).map(str::to_owned).collect();
        let urls: Vec<String> = engines.into_iter().collect();
        args.extend(urls.iter().map(|url| format!("--engine-url={url}")));
        let mut process = Process::start(&args);
        let metrics = metrics_of(&mut process);
        let api = Api::new(&format!("http://{}", process.log_after("listening on ")));
        let facade = Self { process, api, metrics };
        // A facade of one engine has no metric of it.
        for url in urls.iter().filter(|_| urls.len() > 1) {
            facade.until_engine(url, true);
        }
        until_ready(&facade.api);
        facade
    }

    /// Waits until an engine counts as ready, or does not.
    #[track_caller]
    pub(super) fn until_engine(&self, url: &str, is_ready: bool) {
        until(&format!("{url} to be ready: {is_ready}"), || {
            (self.value("hivetill_facade_engine_ready", url) == u64::from(is_ready)).then_some(())
        });
    }

    /// Returns the value of a metric of an engine.
    #[track_caller]
    pub(super) fn value(&self, name: &str, url: &str) -> u64 {
        let page = self.metrics.get("/metrics").send().text();
        let wanted = format!("{name}{{engine=\"{url}\"}} ");
        let found = page.lines().find_map(|line| line.strip_prefix(&wanted));
        found.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {wanted} in {page}"))
    }
}
