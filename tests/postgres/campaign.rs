//! Kills, failovers and partitions of a fleet under load. `HIVETILL_FLEET=200` is the campaign of `.ci/long`: that many kills, and a tenth
//! of it each of failovers and partitions.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::json;

use crate::{
    harness::{Ledger, Opened, Receiver, Shop, Stopwatch, Wire, switch, until},
    reliability::print_progress,
};

use super::{
    cluster::{Cluster, Programs, USER},
    facades::{Load, stored_ids},
    fleet::{FacadeProcess, Fleet, migrated},
    partitions::is_scanner,
};

const ENGINES: usize = 3;
const FACADES: usize = 2;

/// The pause of each client between two payments: a campaign of an hour makes some tens of thousands.
const INTERVAL: Duration = Duration::from_millis(200);

/// Payments that are acknowledged between two failures at each facade.
const BETWEEN: usize = 4;

/// What an engine is cut off from for longer than its lease.
#[derive(Debug, Clone, Copy)]
enum Partition {
    Database,
    Nodes,
    /// From everything: it is stopped, and continued.
    Everything,
}

const PARTITIONS: [(Partition, &str); 3] = [
    (Partition::Database, "engine cut off from the database"),
    (Partition::Nodes, "engine cut off from its node"),
    (Partition::Everything, "engine stopped, then continued"),
];

/// A facade, its load, and a merchant whose payments are paid and reported.
struct Side {
    facade: FacadeProcess,
    busy: Shop,
    load: Load,
    paid: Shop,
    payments: Vec<Opened>,
}

impl Side {
    #[track_caller]
    fn start(fleet: &Fleet, receiver: &Receiver) -> Self {
        let facade = fleet.facade(&["--set=limits.profile=off"]);
        let [busy, paid] = [(); 2].map(|()| Shop::open(&facade.api, &fleet.ledger.ledger));
        paid.set_webhook(receiver);
        let load = Load::with_interval(&busy, INTERVAL);
        load.until_further(BETWEEN);
        Self { facade, busy, load, paid, payments: Vec::new() }
    }

    /// Opens a payment under a key and pays it.
    #[track_caller]
    fn pay(&mut self, ledger: &Ledger) {
        let payment = self.load.create(&self.paid, &format!("paid-{}", self.payments.len()));
        let account = &self.paid.account.name;
        let params = json!({ "from": "alice", "to": account, "amount": "1.500 HBD", "memo": payment.memo });
        ledger.order("transfer", &params);
        self.payments.push(payment);
    }

    /// Checks that every payment is credited once. Returns the numbers of acknowledged payments, of those that are lost, and of
    /// responses 503.
    #[track_caller]
    fn finish(self) -> (usize, usize, usize) {
        for payment in &self.payments {
            let record = self.paid.until_status(&payment.id, "completed");
            assert_eq!(record["transfers"].as_array().map(Vec::len), Some(1), "{record}");
            assert_eq!(record["exceptions"], json!([]), "{record}");
        }
        let (acknowledged, unavailable) = self.load.stop();
        let stored: BTreeSet<String> = stored_ids(&self.busy).into_iter().chain(stored_ids(&self.paid)).collect();
        let lost = acknowledged.values().filter(|id| !stored.contains(*id)).count();
        assert!(stored.len() <= acknowledged.len(), "one payment for each key");
        (acknowledged.len(), lost, unavailable)
    }
}

/// How long after a failure each facade acknowledged a payment, and another engine read the chain.
#[derive(Debug, Clone, Copy)]
struct Takeover {
    acknowledged: Duration,
    reading: Duration,
}

struct Campaign {
    fleet: Fleet,
    sides: Vec<Side>,
    receiver: Receiver,
    /// The wires of each engine to both servers of the database, and to its node.
    wires: Vec<([Wire; 2], Wire)>,
    primary: Cluster,
    standby: Cluster,
    takeovers: BTreeMap<&'static str, Vec<Takeover>>,
}

impl Campaign {
    #[track_caller]
    fn begin(programs: &Programs) -> Self {
        let primary = Cluster::start(programs, &[]);
        let database = migrated(&primary);
        let standby = primary.standby();
        primary.wait_for_standby();
        let lay = |cluster: &Cluster| Wire::to_socket(&cluster.folder().join(".s.PGSQL.5432"));
        let to_databases: Vec<[Wire; 2]> = (0..ENGINES).map(|_| [lay(&primary), lay(&standby)]).collect();
        let store = |wires: &[Wire; 2]| {
            let [first, second] = wires.each_ref().map(|wire| wire.address.replace('/', "%2F"));
            format!("--set=store.url=postgres://{USER}@{first},{second}/{database}")
        };
        let stores: Vec<String> = to_databases.iter().map(store).collect();
        let stores: Vec<&str> = stores.iter().map(String::as_str).collect();
        let mut to_nodes = Vec::new();
        let fleet = Fleet::of(&stores, |ledger| {
            to_nodes.extend((0..ENGINES).map(|_| Wire::to(ledger.rpc.base.trim_start_matches("http://"))));
            let node = |wire: &Wire| Ledger::new(&format!("http://{}", wire.address), &ledger.control.base);
            to_nodes.iter().map(node).collect()
        });
        let receiver = Receiver::start();
        let sides = (0..FACADES).map(|_| Side::start(&fleet, &receiver)).collect();
        let wires = to_databases.into_iter().zip(to_nodes).collect();
        Self { fleet, sides, receiver, wires, primary, standby, takeovers: BTreeMap::new() }
    }

    /// Waits until an engine, other than one, reads the chain, and returns its number.
    #[track_caller]
    fn scanner(&self, without: Option<usize>) -> usize {
        let mut others = (0..ENGINES).filter(|number| Some(*number) != without).cycle();
        until("an engine that reads the chain", || {
            let number = others.next()?;
            is_scanner(&self.fleet, number).then_some(number)
        })
    }

    /// Pays a payment at each facade after a failure, and notes when things went on.
    #[track_caller]
    fn observe(&mut self, failure: &'static str, since: Stopwatch, failed: Option<usize>) {
        for side in &mut self.sides {
            side.pay(&self.fleet.ledger.ledger);
        }
        let acknowledged = since.elapsed();
        self.scanner(failed);
        let takeover = Takeover { acknowledged, reading: since.elapsed() };
        self.takeovers.entry(failure).or_default().push(takeover);
    }

    /// Waits until an engine is ready again and payments are acknowledged at both facades.
    #[track_caller]
    fn until_whole(&self, engine: usize) {
        for side in &self.sides {
            side.facade.until_engine(&self.fleet.engines[engine].url, true);
            side.load.until_further(BETWEEN);
        }
    }

    /// Kills an engine, each second time the one that reads the chain.
    #[track_caller]
    fn kill(&mut self, number: usize) {
        let scanner = self.scanner(None);
        let killed = if number.is_multiple_of(2) { scanner } else { number % ENGINES };
        let name = if killed == scanner { "engine killed that read the chain" } else { "other engine killed" };
        let since = Stopwatch::start();
        self.fleet.engines[killed].process.kill();
        self.observe(name, since, Some(killed));
        self.fleet.restart(killed);
        self.until_whole(killed);
    }

    /// Crashes the primary and promotes its synchronous standby; the crashed server returns as the standby.
    #[track_caller]
    fn fail_over(&mut self) {
        let since = Stopwatch::start();
        self.primary.stop();
        self.standby.promote();
        self.observe("failover of the database", since, None);
        std::mem::swap(&mut self.primary, &mut self.standby);
        self.standby.follow(&self.primary);
        self.primary.wait_for_standby();
        until("a synchronous standby", || {
            let synchronous = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
            (self.primary.sql("postgres", synchronous) == "1").then_some(())
        });
        (0..ENGINES).for_each(|engine| self.until_whole(engine));
    }

    /// Cuts the engine that reads the chain off until another one does, which is after its lease.
    #[track_caller]
    fn partition(&mut self, number: usize) {
        let (partition, name) = PARTITIONS[number % PARTITIONS.len()];
        let engine = self.scanner(None);
        let since = Stopwatch::start();
        self.set(engine, partition, true);
        self.observe(name, since, Some(engine));
        self.set(engine, partition, false);
        self.until_whole(engine);
    }

    fn set(&self, engine: usize, partition: Partition, is_cut: bool) {
        let (databases, node) = &self.wires[engine];
        let set = |wire: &Wire| if is_cut { wire.cut() } else { wire.mend() };
        match partition {
            Partition::Database => databases.iter().for_each(set),
            Partition::Nodes => set(node),
            Partition::Everything => self.fleet.engines[engine].process.signal(if is_cut { "STOP" } else { "CONT" }),
        }
    }

    /// Checks that every payment was reported once and that nothing acknowledged is lost, and prints the figures.
    #[track_caller]
    fn finish(self) {
        let paid: usize = self.sides.iter().map(|side| side.payments.len()).sum();
        let (mut acknowledged, mut lost, mut unavailable) = (0, 0, 0);
        for side in self.sides {
            let (all, gone, refused) = side.finish();
            (acknowledged, lost, unavailable) = (acknowledged + all, lost + gone, unavailable + refused);
        }
        until("a webhook for each payment", || {
            let hooks = self.receiver.hooks();
            let completed = hooks.iter().filter(|hook| hook.json()["data"]["status"] == "completed");
            let ids: BTreeSet<_> = completed.map(|hook| hook.header("webhook-id").to_owned()).collect();
            assert!(ids.len() <= paid, "an event for each completion: {ids:?}");
            (ids.len() == paid).then_some(())
        });
        for (failure, takeovers) in &self.takeovers {
            let [acknowledged, reading] = [
                takeovers.iter().map(|takeover| takeover.acknowledged).collect(),
                takeovers.iter().map(|takeover| takeover.reading).collect(),
            ]
            .map(median_and_max);
            print_progress(&format!(
                "fleet: {} x {failure}: payments acknowledged again after {acknowledged}, chain read by another engine after {reading}",
                takeovers.len()
            ));
        }
        print_progress(&format!(
            "fleet: {acknowledged} payments acknowledged, {lost} of them lost; {paid} paid; {unavailable} responses 503"
        ));
        assert_eq!(lost, 0, "nothing acknowledged is lost");
    }
}

fn median_and_max(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let longest = times.last().copied().unwrap_or_default();
    format!("p50 {:.1?}, max {longest:.1?}", times.get(times.len() / 2).copied().unwrap_or_default())
}

/// Three engines and two facades on a database with a synchronous standby.
pub(super) fn campaign_of_kills_failovers_and_partitions(programs: &Programs) {
    let kills = usize::try_from(switch("HIVETILL_FLEET", 1)).expect("a number of kills");
    let others = (kills / 10).max(1);
    print_progress(&format!("fleet: {kills} kills, {others} failovers, {others} partitions; HIVETILL_FLEET={kills}"));
    let mut campaign = Campaign::begin(programs);
    for number in 0..kills {
        campaign.kill(number);
        // The other failures are spread over the campaign.
        if number.is_multiple_of(10) && number / 10 < others {
            campaign.fail_over();
            campaign.partition(number / 10);
            print_progress(&format!("fleet: {} of {kills} kills", number + 1));
        }
    }
    campaign.finish();
}
