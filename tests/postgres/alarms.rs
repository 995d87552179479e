//! The alarms of docs/deploy/scale-out/alarms.yml: each is raised by the failure that it detects.

use crate::{
    harness::{Shop, promql, until},
    operations::alarms::Watch,
};

use super::{
    cluster::{Cluster, Programs},
    facades::Load,
    fleet::{Fleet, migrated},
};

const BREAK_CONNECTIONS: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                                 WHERE datname = current_database() AND pid <> pg_backend_pid()";

/// Breaks connections, kills an engine, and stops the database.
pub(super) fn each_failure_of_a_fleet_raises_its_alarm(programs: &Programs) {
    let mut cluster = Cluster::start(programs, &[]);
    let name = migrated(&cluster);
    let mut fleet = Fleet::start(&format!("--set=store.url={}", cluster.url(&name)), 2);
    let mut facade = fleet.facade(&["--set=limits.profile=off"]);
    let of_facade = Watch::of(&mut facade.process);
    let of_engine = Watch::of(&mut fleet.engines[0].process);
    until("both engines", || (!of_engine.fires("HivetillEngineMissing")).then_some(()));
    of_facade.is_quiet(&["HivetillEngineNotReady"]);
    of_engine.is_quiet(&["HivetillChainUnread", "HivetillDatabaseUnreachable", "HivetillCommitsResolved"]);

    let load = Load::start(&Shop::open(&facade.api, &fleet.ledger.ledger));
    let breaks = |is_over: &dyn Fn() -> bool| {
        until("a commit of unknown outcome", || {
            cluster.sql(&name, BREAK_CONNECTIONS);
            is_over().then_some(())
        });
    };
    breaks(&|| of_engine.text().contains("\nhivetill_commits_resolved_total{"));
    // A series has an increase from its second value on.
    let since = Watch::of(&mut fleet.engines[0].process);
    breaks(&|| since.fires("HivetillCommitsResolved"));
    load.until_further(8);
    load.stop();

    // The first engine reads the chain. When it is gone, the other one does not, until the lease ends.
    let of_other = Watch::of(&mut fleet.engines[1].process);
    fleet.engines[0].process.kill();
    of_other.until_fires("HivetillChainUnread");
    of_facade.until_fires("HivetillEngineNotReady");
    of_other.until_fires("HivetillEngineMissing");
    until("the other engine to read the chain", || (!of_other.fires("HivetillChainUnread")).then_some(()));
    cluster.stop();
    of_other.until_fires("HivetillDatabaseUnreachable");

    let raised = [
        "HivetillChainUnread",
        "HivetillDatabaseUnreachable",
        "HivetillEngineNotReady",
        "HivetillEngineMissing",
        "HivetillCommitsResolved",
    ];
    let rules = promql::scale_out_rules();
    assert_eq!(rules.iter().map(|(alarm, _)| alarm.as_str()).collect::<Vec<_>>(), raised);
}
