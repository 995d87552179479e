//! The classes and rates of faults, the setup of the engine, and how a seed draws both (swarm testing: leaving fault
//! classes out at random finds more than having them all on).

mod policies;

use std::{fmt, time::Duration};

use actors::Settings;
use engine::{
    account::AccountName,
    hive::ChainId,
    money::FeePercent,
    payment::{ClaimFinality, FeeMode},
    time::Timestamp,
};

pub use self::policies::Policies;
use crate::{random::Random, script::ChangeableSettings};

macro_rules! faults {
    ($($name:ident = $word:literal, $default:literal, $description:literal;)*) => {
        /// A class of faults, each a switch of its own.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault { $(#[doc = $description] $name,)* }

        impl Fault {
            /// Every class, in a fixed order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns its name in scenario files.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// Returns its description.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self { $(Self::$name => $description,)* }
            }

            /// Returns its rate where all faults are on, in parts per million.
            #[must_use]
            pub const fn default_ppm(self) -> u32 {
                match self { $(Self::$name => $default,)* }
            }
        }
    };
}

faults! {
    RpcError = "rpc.error", 20_000, "a node responds to a call with an HTTP or JSON-RPC error, or with garbage";
    RpcTimeout = "rpc.timeout", 10_000, "a call to a node times out";
    RpcLostReply = "rpc.lost_reply", 60_000, "a node executes a call and its response is lost";
    NodeDown = "node.down", 2_000, "per block: a node is unreachable for up to two minutes";
    NodeLag = "node.lag", 3_000, "per block: a node falls up to 30 blocks behind";
    NodeSlow = "node.slow", 2_000, "per block: the latency of a node rises by up to four seconds for up to two minutes";
    NodeStall = "node.stall", 2_000, "per block: the head of a node does not advance for up to two minutes";
    NodeLie = "node.lie", 4_000, "per block: one of three nodes, or any node whose data is evidently wrong, returns wrong data for up to two minutes";
    Fork = "ledger.fork", 8_000, "per block: a microfork above the irreversible block";
    MissedBlock = "ledger.missed_block", 30_000, "per block: a witness misses its slot";
    FinalityHeld = "ledger.finality_held", 1_000, "per block: nothing becomes irreversible for up to three minutes";
    TransactionsHeld = "ledger.transactions_held", 1_500, "per block: blocks stay empty for up to three minutes";
    MempoolLost = "ledger.mempool_lost", 2_000, "per block: nodes lose their pending transactions";
    DiskRead = "disk.read_error", 2, "a disk read fails";
    DiskWrite = "disk.write_error", 16, "a disk write fails";
    DiskSync = "disk.sync_error", 60, "an fsync fails; its bytes may be durable or not";
    DiskFull = "disk.full", 200, "per block: the disk is full for up to a minute";
    PowerCut = "disk.power_cut", 16, "power is lost during a write or an fsync; unsynced sectors are lost or torn";
    StoreBusy = "store.overloaded", 3_000, "the commit queue is full: a commit is refused";
    HookStatus = "webhook.status", 120_000, "a receiver responds with an error, a redirect or 429";
    HookTimeout = "webhook.timeout", 40_000, "a receiver accepts the event and its response times out";
    HookReset = "webhook.reset", 40_000, "the connection to a receiver is reset, before or after it accepted the event";
    HookOutage = "webhook.outage", 1_500, "per block: a receiver is unreachable for up to ten minutes";
    HookGone = "webhook.gone", 3_000, "a receiver responds with 410 Gone";
    ClockStep = "clock.step", 1_000, "per block: the system clock steps by up to 20 seconds, in either direction";
    ProcessKill = "process.kill", 1_200, "per block: the process is killed at a random time";
    KillAtPoint = "process.kill_at_point", 300, "the process is killed at a named point of the code";
    GracefulRestart = "process.restart", 500, "per block: the process is shut down and restarted";
    ActorPanic = "actor.panic", 1_500, "an actor panics at a named point of the code";
    ReplyLost = "client.reply_lost", 10_000, "the response to a call of a merchant or an agent is lost";
    ClockJump = "clock.jump", 400, "per block: the system clock jumps by up to six hours, in either direction, and later back";
    HbdOffPeg = "market.hbd_off_peg", 400, "per block: the market price of HBD is between half a dollar and two dollars, for up to an hour";
    ProcessPause = "process.pause", 800, "per block: the process is paused for up to two minutes, as by SIGSTOP";
    DiskSlow = "disk.slow", 600, "per block: commits take up to 20 seconds, for up to a minute";
    OtherSettings = "process.other_settings", 300, "per block: the process is restarted with other settings";
    NodeBranch = "node.branch", 2_000, "per block: a node has its own fork of the reversible blocks, as long as the others', for up to two minutes";
    NodeKeeps = "node.keeps", 2_000, "per block: a node accepts transactions and does not relay them, for up to two minutes";
    RowDamaged = "disk.damaged_row", 300, "per block: one bit of a stored row is flipped, in any table, until faults end";
    LogDamaged = "disk.damaged_log", 300, "per block: one bit of a write-ahead log entry is flipped that is not the last";
    KeyRotated = "process.other_master_key", 200, "per block: the process is stopped and its secrets are encrypted with another master key";
    Restored = "process.restored", 400, "per block: the store is backed up, or replaced by its newest backup";
    NodeForeign = "node.foreign", 1_500, "per block: a node serves another chain, for up to two minutes";
    NodeLacks = "node.lacks_apis", 1_500, "per block: a node lacks the account history and transaction status APIs, for up to two minutes";
    NodeLimits = "node.limits_rate", 1_500, "per block: a node limits the rate of requests and sends Retry-After, for up to two minutes";
    ClientLeaves = "client.leaves", 20_000, "an agent or a seller disconnects while its request is pending, and perhaps never returns";
    NodeWithoutPrice = "node.without_price", 1_500, "per block: a node has no price of HIVE and HBD, for up to two minutes";
    StoreCut = "engine.without_store", 2_000, "per block: one of several engines loses its connections to the store for up to two minutes";
    NodeCut = "engine.without_node", 3_000, "per block: one of several engines cannot reach a node for up to two minutes";
    StoreFailover = "store.failover", 600, "per block: the store of several engines fails over; it is away for up to half a minute, and unconfirmed commits are dropped or kept";
    AgentKill = "agent.kill", 50_000, "the agent with a wallet is killed before one step of a payment, and runs again";
    CommitBroken = "store.commit_broken", 4_000, "the connection of one of several engines breaks during a commit, which is applied, dropped, or applied later";
}

impl Fault {
    /// Faults of a single node.
    pub const OF_NODES: [Self; 14] = [
        Self::RpcError,
        Self::RpcTimeout,
        Self::RpcLostReply,
        Self::NodeDown,
        Self::NodeLag,
        Self::NodeSlow,
        Self::NodeStall,
        Self::NodeLie,
        Self::NodeBranch,
        Self::NodeKeeps,
        Self::NodeForeign,
        Self::NodeLacks,
        Self::NodeLimits,
        Self::NodeWithoutPrice,
    ];
}

impl Fault {
    /// Faults of several engines over one store only.
    pub const OF_SHARED_STORES: [Self; 4] = [Self::StoreCut, Self::NodeCut, Self::StoreFailover, Self::CommitBroken];

    /// Faults of a process with its own disk only.
    pub const OF_DISKS: [Self; 9] = [
        Self::DiskRead,
        Self::DiskWrite,
        Self::DiskSync,
        Self::DiskFull,
        Self::PowerCut,
        Self::RowDamaged,
        Self::LogDamaged,
        Self::KeyRotated,
        Self::Restored,
    ];
}

/// How often each fault happens, in parts per million.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Faults([u32; Fault::ALL.len()]);

impl Default for Faults {
    fn default() -> Self {
        Self([0; Fault::ALL.len()])
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.on().map(|(fault, ppm)| (fault.as_str(), ppm))).finish()
    }
}

impl Faults {
    /// Returns every fault at its default rate.
    #[must_use]
    pub fn all_on() -> Self {
        let mut faults = Self::default();
        for fault in Fault::ALL {
            faults.set(*fault, fault.default_ppm());
        }
        faults
    }

    /// Draws the faults and their rates.
    #[must_use]
    pub fn swarm(random: &mut Random) -> Self {
        let mut faults = Self::default();
        // Some runs have few faults: a third fault can hide a bug that needs two.
        let share = *random.pick(&[200_000, 500_000, 500_000, 800_000]);
        for fault in Fault::ALL {
            if random.chance(share) {
                let scaled = u64::from(fault.default_ppm()) * random.pick(&[1, 2, 4, 8, 16]) / 4;
                faults.set(*fault, u32::try_from(scaled.clamp(1, 400_000)).unwrap_or(1));
            }
        }
        faults
    }

    /// Draws frequent faults of a minority of nodes, in any combination, and no others.
    #[must_use]
    pub fn of_nodes(random: &mut Random) -> Self {
        let mut faults = Self::default();
        for fault in Fault::OF_NODES {
            if random.chance(600_000) {
                faults.set(fault, (fault.default_ppm() * *random.pick(&[2, 8, 20])).min(300_000));
            }
        }
        faults
    }

    /// Returns frequent damage of rows, and no other faults.
    #[must_use]
    pub fn of_rows() -> Self {
        let mut faults = Self::default();
        faults.set(Fault::RowDamaged, 5_000);
        faults
    }

    /// Removes the faults of shared stores.
    pub fn leave_out_shared_store(&mut self) {
        Fault::OF_SHARED_STORES.iter().for_each(|fault| self.set(*fault, 0));
    }

    /// Removes the faults of a process with its own disk.
    pub fn leave_out_disk(&mut self) {
        Fault::OF_DISKS.iter().for_each(|fault| self.set(*fault, 0));
    }

    /// Returns whether only nodes and single rows have faults.
    #[must_use]
    pub fn are_of_nodes(&self) -> bool {
        self.on().all(|(fault, _)| Fault::OF_NODES.contains(&fault) || fault == Fault::RowDamaged)
    }

    /// Returns whether nodes have no faults.
    #[must_use]
    pub fn spare_nodes(&self) -> bool {
        self.on().all(|(fault, _)| !Fault::OF_NODES.contains(&fault))
    }

    /// Returns its rate.
    #[must_use]
    pub const fn ppm(&self, fault: Fault) -> u32 {
        self.0[fault as usize]
    }

    /// Sets its rate.
    pub const fn set(&mut self, fault: Fault, ppm: u32) {
        self.0[fault as usize] = ppm;
    }

    /// Returns the faults with a rate above 0.
    pub fn on(&self) -> impl Iterator<Item = (Fault, u32)> + '_ {
        Fault::ALL.iter().map(|fault| (*fault, self.ppm(*fault))).filter(|(_, ppm)| *ppm > 0)
    }
}

/// When every simulation begins, seconds since 1970: an hour before the end of a month (UTC), so that most simulations
/// see the end of a day and of a month.
pub const EPOCH_SECONDS: u64 = 1_801_436_400;

/// Converts a time to virtual milliseconds.
#[must_use]
pub const fn since_epoch(time: Timestamp) -> u64 {
    time.millis().saturating_sub(EPOCH_SECONDS * 1_000)
}

/// The simulated environment, and the settings of the engine in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// Engines, 1 to 5. A single one has a store of its own; several share one.
    pub engines: usize,
    /// Maximum round trip to the store that several engines share, milliseconds.
    pub store_ms: u64,
    /// The duration of a lease of several engines, seconds.
    pub lease_seconds: u64,
    /// How far the clocks by which several engines count their leases drift apart at most, parts per million.
    pub drift_ppm: u32,
    /// Hive nodes, 1 to 5. A majority must agree; from three on, one may lie.
    pub nodes: usize,
    /// Merchants, 1 to 4.
    pub merchants: usize,
    /// Seconds between blocks.
    pub block_seconds: u64,
    /// How far finality lags behind the head, blocks.
    pub finality_lag: u32,
    /// Maximum latency of a node, milliseconds.
    pub rpc_ms: u64,
    /// Maximum latency of a commit, milliseconds.
    pub commit_ms: u64,
    /// Maximum latency of a receiver, milliseconds.
    pub webhook_ms: u64,
    /// The lifetime of a session, seconds.
    pub lifetime_seconds: u64,
    /// The grace period after the expiry of a session, seconds.
    pub grace_seconds: u64,
    /// The poll interval of the scanner, milliseconds.
    pub poll_ms: u64,
    /// Maximum active sessions.
    pub max_active: usize,
    /// Whether the fee is collected with the payment.
    pub split_fee: bool,
    /// When an agent's payment completes.
    pub x402_finality: ClaimFinality,
    /// Memory for redb's pages, bytes.
    pub cache_bytes: usize,
    /// The size of the write-ahead log that triggers a checkpoint, bytes.
    pub log_bytes: u64,
    /// Whether payers sign and the chain checks signatures; otherwise their accounts require none.
    pub signatures: bool,
    /// Whether faults end without a restart of the process.
    pub heal_without_restart: bool,
    /// The nodes that faults affect; empty for all.
    pub faulty_nodes: Vec<usize>,
    /// The number of days during which random customers arrive and receivers may be unreachable for long; 0 for an hour or two, and for ten
    /// minutes.
    pub days: u64,
    /// Whether webhook secrets are sealed with a master key from the first start on.
    pub seal_secrets: bool,
    /// Whether clients call through the installed facade ([`crate::front`]) and not the engine's handle.
    pub facade: bool,
    /// Retention, limits and billing.
    pub policies: Policies,
}

impl ChangeableSettings {
    /// Draws settings.
    #[must_use]
    pub fn draw(random: &mut Random) -> Self {
        let Setup { lifetime_seconds, grace_seconds, x402_finality, max_active, .. } = Setup::swarm(random);
        Self { lifetime_seconds, grace_seconds, x402_finality, max_active }
    }
}

impl fmt::Display for ChangeableSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lifetime_seconds, grace_seconds, x402_finality, max_active } = self;
        write!(f, "sessions of {lifetime_seconds} s with {grace_seconds} s of grace, at most {max_active} active, ")?;
        write!(f, "and payments of agents that complete {x402_finality:?}")
    }
}

/// The account that collects fees.
pub const FEE_ACCOUNT: &str = "hivetill.fees";

impl Default for Setup {
    fn default() -> Self {
        Self {
            engines: 1,
            store_ms: 0,
            lease_seconds: 30,
            drift_ppm: 0,
            nodes: 3,
            merchants: 2,
            block_seconds: 3,
            finality_lag: 2,
            rpc_ms: 0,
            commit_ms: 0,
            webhook_ms: 100,
            lifetime_seconds: 900,
            grace_seconds: 0,
            poll_ms: 1_000,
            max_active: 5_000,
            split_fee: false,
            x402_finality: ClaimFinality::InBlock,
            cache_bytes: 4 * 1024 * 1024,
            log_bytes: 64 * 1024,
            signatures: false,
            heal_without_restart: true,
            faulty_nodes: Vec::new(),
            days: 0,
            seal_secrets: false,
            facade: false,
            policies: Policies::default(),
        }
    }
}

impl Setup {
    /// Draws a setup.
    #[must_use]
    pub fn swarm(random: &mut Random) -> Self {
        Self {
            engines: 1,
            store_ms: 0,
            lease_seconds: 30,
            drift_ppm: 0,
            nodes: *random.pick(&[1, 2, 3, 3, 3, 4]),
            merchants: *random.pick(&[1, 2, 3]),
            block_seconds: 3,
            finality_lag: *random.pick(&[1, 2, 2, 4, 20]),
            rpc_ms: *random.pick(&[0, 0, 50, 1_000, 8_000]),
            commit_ms: *random.pick(&[0, 0, 5, 200, 2_000]),
            webhook_ms: *random.pick(&[0, 80, 80, 3_000]),
            lifetime_seconds: *random.pick(&[60, 120, 300, 900, 1_800]),
            grace_seconds: *random.pick(&[0, 0, 0, 9, 60]),
            poll_ms: *random.pick(&[1_000, 3_000, 3_000, 10_000]),
            max_active: *random.pick(&[1, 4, 20, 5_000, 5_000]),
            split_fee: random.chance(250_000),
            x402_finality: *random.pick(&[
                ClaimFinality::Accepted,
                ClaimFinality::InBlock,
                ClaimFinality::InBlock,
                ClaimFinality::Irreversible,
            ]),
            cache_bytes: *random.pick(&[64 * 1024, 1024 * 1024, 8 * 1024 * 1024]),
            signatures: random.chance(60_000),
            heal_without_restart: random.chance(700_000),
            log_bytes: *random.pick(&[4 * 1024, 64 * 1024, 256 * 1024, 256 * 1024]),
            faulty_nodes: Vec::new(),
            days: 0,
            seal_secrets: false,
            facade: false,
            policies: Policies::default(),
        }
    }

    /// Sets up several engines over one store.
    pub fn share_a_store(&mut self, random: &mut Random, engines: Option<usize>) {
        let drawn = *random.pick(&[2, 2, 3, 3, 4, 5]);
        self.engines = engines.unwrap_or(drawn);
        self.store_ms = *random.pick(&[0, 2, 5, 20, 200]);
        self.lease_seconds = *random.pick(&[10, 30, 30]);
        self.drift_ppm = *random.pick(&[0, 100, 10_000]);
    }

    /// Extends it to days, with a block a minute.
    pub fn last_days(&mut self, random: &mut Random) {
        self.days = *random.pick(&[6, 6, 8, 10, 18, 40]);
        (self.block_seconds, self.poll_ms) = (60, 60_000);
        self.finality_lag = self.finality_lag.min(4);
        self.rpc_ms = self.rpc_ms.min(1_000);
        self.lifetime_seconds = *random.pick(&[600, 1_800, 7_200, 86_400]);
    }

    /// Changes what an operator may change from one start to the next.
    pub const fn change(&mut self, settings: &ChangeableSettings) {
        let ChangeableSettings { lifetime_seconds, grace_seconds, x402_finality, max_active } = *settings;
        (self.lifetime_seconds, self.grace_seconds) = (lifetime_seconds, grace_seconds);
        (self.x402_finality, self.max_active) = (x402_finality, max_active);
    }

    /// Evicts rows from memory early, so that they are read from the disk again, and removes latencies.
    pub fn read_from_disk(&mut self) {
        (self.cache_bytes, self.log_bytes, self.max_active) = (0, 4 * 1024, self.max_active.min(4));
        self.rpc_ms = self.rpc_ms.min(1_000);
        self.commit_ms = self.commit_ms.min(200);
        self.poll_ms = self.poll_ms.min(3_000);
    }

    /// Keeps a majority of the nodes, the disk and the network without faults: only a minority of nodes, at drawn
    /// positions, has faults.
    pub fn spare_a_majority(&mut self, random: &mut Random) {
        self.nodes = *random.pick(&[3, 3, 4, 5, 5]);
        let mut others: Vec<usize> = (0..self.nodes).collect();
        for _ in 0..(self.nodes - 1) / 2 {
            self.faulty_nodes.push(others.swap_remove(random.index(others.len())));
        }
        self.faulty_nodes.sort_unstable();
        self.rpc_ms = self.rpc_ms.min(1_000);
        self.commit_ms = self.commit_ms.min(200);
        self.poll_ms = self.poll_ms.min(3_000);
    }

    /// Returns the engine's settings.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let fee_mode = if self.split_fee {
            FeeMode::Split { account: AccountName::parse(FEE_ACCOUNT).expect("a name of ours") }
        } else {
            FeeMode::Invoice
        };
        let mut settings = Settings {
            fee_percent: FeePercent::parse("1.5").expect("a decimal"),
            fee_mode,
            session_lifetime: Duration::from_secs(self.lifetime_seconds),
            session_grace: Duration::from_secs(self.grace_seconds),
            max_active: self.max_active,
            block_interval: Duration::from_secs(self.block_seconds),
            poll_interval: Duration::from_millis(self.poll_ms),
            development: false,
            lease: Duration::from_secs(self.lease_seconds),
            ..Settings::of(ChainId::MAINNET)
        };
        // A lease is at least twice as long as an attempt to deliver a webhook.
        settings.webhook_timeout = settings.webhook_timeout.min(settings.lease / 2);
        settings.x402.finality = self.x402_finality;
        self.policies.apply(&mut settings);
        settings
    }
}
