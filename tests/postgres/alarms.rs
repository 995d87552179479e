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

/// Kills an engine, and stops the database. `HivetillCommitsResolved` needs a commit of unknown outcome, which these failures rarely
/// cause.
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

    let raised =
        ["HivetillChainUnread", "HivetillDatabaseUnreachable", "HivetillEngineNotReady", "HivetillEngineMissing"];
    let rules = promql::scale_out_rules();
    let named = rules.iter().map(|(alarm, _)| alarm.as_str()).filter(|alarm| *alarm != "HivetillCommitsResolved");
    assert_eq!(named.collect::<Vec<_>>(), raised);
}
