//! A base backup and an archive of the log, as docs/how-to/postgresql.md describes: restored into a new cluster after the first is lost.

use std::fs;

use serde_json::json;

use super::{
    SHORT_LEASE,
    cluster::{Cluster, Programs},
    fleet::migrated,
};
use crate::harness::{LedgerProcess, Opened, Process, Serve, Shop, folder, until};

/// Archives each segment of the log beside the server's files.
const ARCHIVING: [&str; 2] =
    ["archive_mode=on", "archive_command=mkdir -p ../archive && test ! -f ../archive/%f && cp %p ../archive/%f"];

/// Restores a database from a base backup and the log after it. Every payment is there, and the gateway continues with it.
pub(super) fn a_restored_backup_has_every_archived_payment(programs: &Programs) {
    let mut cluster = Cluster::start(programs, &ARCHIVING);
    let name = migrated(&cluster);
    let folder = folder("backups");
    let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let data = folder.join("data");
    let serve = |cluster: &Cluster| {
        let store = format!("--set=store.url={}", cluster.url(&name));
        Serve::with(&data, &ledger.ledger, &[SHORT_LEASE.as_slice(), &[&store]].concat())
    };
    let pay = |shop: &Shop, payment: &Opened| {
        let params = json!({ "from": "alice", "to": shop.account.name, "amount": "1.500 HBD", "memo": payment.memo });
        ledger.ledger.order("transfer", &params);
    };
    let mut first = serve(&cluster);
    let shop = Shop::open(&first.api, &ledger.ledger);
    let before = shop.open_payment();
    pay(&shop, &before);
    shop.until_status(&before.id, "completed");
    let backup = cluster.folder().join("backup");
    cluster.back_up(&backup, &[]);
    let after = shop.open_payment();
    pay(&shop, &after);
    shop.until_status(&after.id, "completed");
    let open = shop.open_payment();
    archive(&cluster);
    first.process.kill();
    cluster.stop();
    // Paid while neither the gateway nor its database exists.
    pay(&shop, &open);

    let restored = Cluster::restore(programs, &backup, |new| {
        new.add_file("recovery.signal", b"");
        let archive = cluster.folder().join("archive");
        let command = format!("restore_command = 'cp {}/%f %p'\n", archive.display());
        fs::write(new.data().join("postgresql.auto.conf"), command).expect("a file of the backup");
    });
    until("the end of the recovery", || (restored.sql("postgres", "SELECT pg_is_in_recovery()") == "f").then_some(()));
    let store = format!("--set=store.url={}", restored.url(&name));
    let verified = Process::start(&["verify", &store]).finish();
    assert!(verified.success && verified.stdout.contains("has no findings"), "{verified:?}");
    let second = serve(&restored);
    let shop = Shop { api: second.api.clone(), ..shop };
    for payment in [&before, &after, &open] {
        let record = shop.until_status(&payment.id, "completed");
        assert_eq!(record["transfers"].as_array().map(Vec::len), Some(1), "{record}");
    }
    let next = shop.open_payment();
    pay(&shop, &next);
    shop.until_status(&next.id, "completed");
}

/// Waits until everything that is committed has been archived.
#[track_caller]
fn archive(cluster: &Cluster) {
    let segment = cluster.sql("postgres", "SELECT pg_walfile_name(pg_switch_wal())");
    until("the archive of the log", || {
        let done = format!("SELECT coalesce(last_archived_wal >= '{segment}', false) FROM pg_stat_archiver");
        (cluster.sql("postgres", &done) == "t").then_some(())
    });
}
