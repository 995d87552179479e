//! PgBouncer in transaction mode between the gateways and their database.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::{TcpListener, TcpStream},
    process::{Child, Stdio},
};

use serde_json::json;

use super::{
    SHORT_LEASE,
    cluster::{Cluster, Programs, USER},
    path,
};
use crate::harness::{LedgerProcess, Process, Serve, Shop, background, folder, until};

const PROGRAM: &str = "/usr/sbin/pgbouncer";

/// Returns what is missing.
pub(super) fn find() -> Result<(), String> {
    match fs::exists(PROGRAM) {
        Ok(true) => Ok(()),
        _ => Err(format!("no {PROGRAM}: install pgbouncer")),
    }
}

/// A pooler that ends with the test.
struct Pooler {
    child: Child,
    port: u16,
}

impl Pooler {
    /// Starts a pooler in front of a cluster with this many connections to each database.
    fn start(programs: &Programs, cluster: &Cluster, connections: usize) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|bound| bound.local_addr()).expect("a port").port();
        let settings = format!(
            "[databases]\n* = host={host}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = trust\nauth_file = {users}\npool_mode = transaction\n\
             default_pool_size = {connections}\nmax_client_conn = 200\n",
            host = cluster.folder().display(),
            users = cluster.folder().join("users.txt").display(),
        );
        let file = cluster.folder().join("pgbouncer.ini");
        fs::write(&file, settings).expect("a file");
        fs::write(cluster.folder().join("users.txt"), format!("\"{USER}\" \"\"\n")).expect("a file");
        let mut command = programs.confined(PROGRAM);
        let mut child = command.arg(&file).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().expect("it starts");
        let log = BufReader::new(child.stderr.take().expect("piped"));
        background(move || log.lines().map_while(Result::ok).for_each(drop));
        until("the pooler to listen", || TcpStream::connect(("127.0.0.1", port)).ok());
        Self { child, port }
    }

    fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two gateways share three connections of a database, and each transaction runs on another of them.
pub(super) fn gateways_share_the_connections_of_a_pooler(programs: &Programs) {
    let cluster = Cluster::start(programs, &[]);
    let name = cluster.create_database(None);
    let pooler = Pooler::start(programs, &cluster, 3);
    let store = format!("--set=store.url={}", pooler.url(&name));
    assert!(Process::start(&["migrate", &store]).finish().success);
    let folder = folder("pooler");
    let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let (data, other) = (folder.join("data"), folder.join("other"));
    let settings = [SHORT_LEASE.as_slice(), &[&store]].concat();
    let serve = Serve::with(&data, &ledger.ledger, &settings);
    let key = format!("--set=master_key_file={}", path(&data.join("master-key")));
    let second = Serve::with(&other, &ledger.ledger, &[settings.as_slice(), &[&key]].concat());
    let shop = Shop::open(&serve.api, &ledger.ledger);
    let elsewhere = Shop { api: second.api.clone(), ..shop.clone() };
    let payments: Vec<String> = [&shop, &elsewhere]
        .into_iter()
        .cycle()
        .take(20)
        .map(|shop| {
            let payment = shop.open_payment();
            let params = json!({
                "from": "alice", "to": shop.account.name, "amount": "1.500 HBD", "memo": payment.memo,
            });
            ledger.ledger.order("transfer", &params);
            payment.id
        })
        .collect();
    for id in &payments {
        shop.until_status(id, "completed");
        elsewhere.until_status(id, "completed");
    }
    let sessions = cluster.sql(&name, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()");
    assert!(sessions.parse::<usize>().expect("a number") <= 4, "{sessions} sessions, one of them of this query");
    assert_eq!(cluster.sql(&name, "SELECT count(*) FROM payments WHERE state = 'completed'"), "20");
    let verified = Process::start(&["verify", &store]).finish();
    assert!(verified.success && verified.stdout.contains("has no findings"), "{verified:?}");
}
