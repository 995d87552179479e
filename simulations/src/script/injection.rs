//! Faults injected at a chosen time, grouped by what they affect.

use engine::payment::ClaimFinality;

/// A fault injected at a chosen time. Durations are virtual milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultInjection {
    /// Of the engine's process.
    Process(ProcessFault),
    /// Of the disk.
    Disk(DiskFault),
    /// Of one node.
    Node {
        /// The node's place in the list.
        node: usize,
        /// The fault.
        fault: NodeFault,
        /// Duration.
        for_ms: u64,
    },
    /// Of the chain that all nodes share.
    Ledger(LedgerFault),
    /// A merchant's webhook receiver fails.
    Outage {
        /// The merchant.
        merchant: usize,
        /// How it fails.
        kind: OutageKind,
        /// Duration.
        for_ms: u64,
    },
    /// The response to the n-th call of a merchant or an agent from now is lost.
    LoseReplyIn(u64),
    /// The wall clock steps.
    ClockStep {
        /// By how much.
        by_ms: i64,
    },
    /// An engine cannot reach a peer. Requests under way may have arrived.
    Partition {
        /// What it cannot reach.
        peer: Peer,
        /// Duration.
        for_ms: u64,
    },
    /// Of the store that several engines share.
    Store(StoreFault),
}

/// What an engine reaches over the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// The store that several engines share.
    Store,
    /// A node, by its place in the list.
    Node(usize),
}

/// A fault of the store that several engines share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreFault {
    /// Its standby takes over: it cannot be reached meanwhile, and commits that were not confirmed are dropped or kept.
    FailOver {
        /// How long it cannot be reached.
        for_ms: u64,
    },
    /// The connection of an engine breaks during its next commit, whose outcome it does not learn.
    BreakCommit(CommitOutcome),
}

/// The outcome of a commit whose connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitOutcome {
    /// It is applied.
    Applied,
    /// It never reaches the store.
    Dropped,
    /// It reaches the store later, and is applied if it is still allowed.
    Late {
        /// How much later.
        after_ms: u64,
    },
    /// The store is executing it, and applies it later.
    Running {
        /// How much later.
        after_ms: u64,
    },
}

impl CommitOutcome {
    /// The keyword of each kind in scenario files.
    pub const KINDS: [&'static str; 4] = ["applied", "dropped", "late", "running"];

    /// Returns its keyword in scenario files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Applied => Self::KINDS[0],
            Self::Dropped => Self::KINDS[1],
            Self::Late { .. } => Self::KINDS[2],
            Self::Running { .. } => Self::KINDS[3],
        }
    }

    /// Returns how much later it is applied, milliseconds.
    #[must_use]
    pub const fn after_ms(self) -> u64 {
        match self {
            Self::Applied | Self::Dropped => 0,
            Self::Late { after_ms } | Self::Running { after_ms } => after_ms,
        }
    }
}

/// A fault or an intervention of the operator that affects the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessFault {
    /// The process is killed now.
    Kill,
    /// The process is killed when it next reaches a named point of the code.
    KillAt(String),
    /// Graceful shutdown and restart.
    Restart,
    /// The actor that next reaches a named point of the code panics.
    PanicAt(String),
    /// The process is paused, as by `SIGSTOP`.
    Pause {
        /// Duration.
        for_ms: u64,
    },
    /// Graceful shutdown, and restart with other settings.
    OtherSettings(ChangeableSettings),
    /// Graceful shutdown, and restart with another master key.
    RotateMasterKey,
    /// The store is backed up.
    BackUp,
    /// Graceful shutdown, and restart from the newest backup.
    Restore,
}

/// A fault of the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiskFault {
    /// Power is lost now.
    PowerCut,
    /// Power is lost at the n-th write or sync from now.
    PowerCutIn(u64),
    /// The n-th disk operation from now fails.
    ErrorIn(u64),
    /// The n-th read from now fails.
    ReadErrorIn(u64),
    /// The disk is full.
    Full {
        /// Duration.
        for_ms: u64,
    },
    /// Commits are slow.
    Slow {
        /// Maximum latency of a commit.
        commit_ms: u64,
        /// Duration.
        for_ms: u64,
    },
    /// One bit of a write-ahead log entry is flipped that is not the last, until a start has failed because of it.
    DamageLog {
        /// Selects the bit.
        pick: u64,
    },
    /// One bit of a stored row is flipped, until faults end.
    DamageRow {
        /// The table; none for any.
        table: Option<&'static str>,
        /// A session that the row names; none for any row.
        session: Option<u32>,
        /// Selects the row and the bit.
        pick: u64,
    },
}

/// A fault of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeFault {
    /// It is unreachable.
    Down,
    /// It is behind the chain.
    Lag {
        /// By how many blocks.
        blocks: u32,
    },
    /// Its responses are late.
    Slow {
        /// The additional latency.
        delay_ms: u64,
    },
    /// Its head does not advance.
    Stalled,
    /// It has its own fork of the reversible blocks.
    OwnFork {
        /// How many of the newest blocks differ at once.
        depth: u32,
    },
    /// It accepts transactions and does not relay them.
    KeepsTransactions,
    /// It serves another chain.
    OtherChain,
    /// It lacks the account history and transaction status APIs.
    LacksApis,
    /// It limits the rate of requests and sends `Retry-After`.
    LimitsRate,
    /// It has no price of HBD.
    NoPrice,
    /// It returns wrong data.
    Lies(LieKind),
}

/// A fault of the chain, or of the market on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LedgerFault {
    /// The newest blocks are replaced by others.
    Fork {
        /// How many blocks.
        depth: u32,
        /// Whether their transactions are dropped; otherwise they are pending again.
        forget: bool,
    },
    /// Nothing becomes irreversible.
    HoldFinality {
        /// Duration.
        for_ms: u64,
    },
    /// Blocks stay empty.
    HoldTransactions {
        /// Duration.
        for_ms: u64,
    },
    /// No block is produced.
    HoldBlocks {
        /// Duration.
        for_ms: u64,
    },
    /// Nodes lose their pending transactions.
    ForgetMempool,
    /// The internal market pays another price for HBD.
    HbdOffPeg {
        /// Percent of a dollar.
        percent: u64,
        /// Duration.
        for_ms: u64,
    },
}

/// The settings that an operator may change between two starts of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeableSettings {
    /// Lifetime of a new session, seconds.
    pub lifetime_seconds: u64,
    /// Grace period after the expiry of a new session, seconds.
    pub grace_seconds: u64,
    /// When an agent's payment completes.
    pub x402_finality: ClaimFinality,
    /// Maximum active sessions.
    pub max_active: usize,
}

/// What a node that lies returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LieKind {
    /// Transfers that do not exist.
    Invents,
    /// Blocks without their transfers.
    Omits,
    /// Ten times the amount of each transfer.
    Inflates,
    /// Every block as irreversible.
    Finalizes,
    /// A head block that does not exist yet.
    Ahead,
    /// It accepts broadcasts and drops them.
    Swallows,
    /// It rejects valid broadcasts.
    Refuses,
    /// Another key for every account.
    Keys,
    /// Another price of HIVE.
    Prices,
    /// A balance for every account that nobody can spend.
    Balances,
    /// Ranges of blocks without the first one.
    Skips,
    /// Blocks that do not refer to the ones before them.
    Unlinks,
}

impl LieKind {
    /// Every kind, with its keyword in scenario files.
    pub const ALL: [(Self, &'static str); 12] = [
        (Self::Invents, "invents"),
        (Self::Omits, "omits"),
        (Self::Inflates, "inflates"),
        (Self::Finalizes, "finalizes"),
        (Self::Ahead, "ahead"),
        (Self::Swallows, "swallows"),
        (Self::Refuses, "refuses"),
        (Self::Keys, "gives other keys"),
        (Self::Prices, "gives another price"),
        (Self::Balances, "gives other balances"),
        (Self::Skips, "skips blocks"),
        (Self::Unlinks, "unlinks blocks"),
    ];

    /// Returns whether it shows without another node's responses.
    #[must_use]
    pub const fn is_evident(self) -> bool {
        matches!(self, Self::Skips | Self::Unlinks)
    }
}

/// How a webhook receiver fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutageKind {
    /// It responds with this HTTP status.
    Status(u16),
    /// It accepts the event, and its response times out.
    Timeout,
    /// The connection is refused.
    Refused,
    /// Its host name does not resolve.
    Dns,
}

impl FaultInjection {
    /// Returns its duration, milliseconds; 0 for what happens at once.
    #[must_use]
    pub const fn lasts_ms(&self) -> u64 {
        match self {
            Self::Process(ProcessFault::Pause { for_ms })
            | Self::Disk(DiskFault::Full { for_ms } | DiskFault::Slow { for_ms, .. })
            | Self::Ledger(
                LedgerFault::HoldFinality { for_ms }
                | LedgerFault::HoldTransactions { for_ms }
                | LedgerFault::HoldBlocks { for_ms }
                | LedgerFault::HbdOffPeg { for_ms, .. },
            )
            | Self::Node { for_ms, .. }
            | Self::Partition { for_ms, .. }
            | Self::Store(StoreFault::FailOver { for_ms })
            | Self::Outage { for_ms, .. } => *for_ms,
            _ => 0,
        }
    }
}
