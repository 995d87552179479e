//! What is to happen in a world: the setup, the faults, and who does what when. A seed writes one; so does a scenario
//! file; the shrinker takes things out of one.

mod deed;
mod ownership;
mod visit;
mod whole;

use engine::{money::Currency, payment::ClaimFinality};

use crate::options::{Faults, Setup};

pub use self::whole::Expect;
pub use self::{deed::Deed, ownership::Ownership, visit::Visit};

/// A whole run, decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// What it is called.
    pub name: String,
    /// Why it is worth telling.
    pub why: String,
    /// What every random stream is forked from.
    pub seed: u64,
    /// How the world is made.
    pub setup: Setup,
    /// What goes wrong at random.
    pub faults: Faults,
    /// What happens, in order of time.
    pub steps: Vec<Step>,
    /// When faults end and everything has to come right, milliseconds; none for soon after the last step.
    pub heal_at_ms: Option<u64>,
    /// What must be so at the end, beside the invariants.
    pub expect: Vec<Expect>,
    /// What its file calls the sessions, by their number; nothing for a drawn script.
    pub names: Vec<String>,
}

/// Something that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// When, in virtual milliseconds since the world began.
    pub at_ms: u64,
    /// What.
    pub action: Action,
}

impl Step {
    /// Returns when it is over: at once, unless it is trouble that lasts.
    #[must_use]
    pub const fn ends_ms(&self) -> u64 {
        let lasts_ms = match &self.action {
            Action::Trouble(trouble) => trouble.lasts_ms(),
            _ => 0,
        };
        self.at_ms + lasts_ms
    }
}

/// What can happen. Sessions, merchants, payers, agents and nodes go by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A merchant creates a session.
    Create {
        /// The session's number.
        session: u32,
        /// Whose.
        merchant: usize,
        /// How much, in 1/1000.
        units: u64,
        /// Of what.
        currency: Currency,
        /// How long it lives, seconds; none for the setup's.
        lifetime_seconds: Option<u64>,
    },
    /// A payer's wallet sends a transfer to the session's account.
    Pay {
        /// The session it is meant for.
        session: u32,
        /// Who pays; the merchant's own account for `None`.
        payer: Option<usize>,
        /// How much, in 1/1000.
        units: u64,
        /// Of what.
        currency: Currency,
        /// What the memo says.
        memo: Memo,
    },
    /// A payer sets up a recurrent transfer that names the session. It is not what a session is paid with.
    PayAgain {
        /// The session it is meant for.
        session: u32,
        /// Who pays.
        payer: usize,
        /// How much each time, in 1/1000.
        units: u64,
        /// Of what.
        currency: Currency,
        /// Hours between two payments, at least 24; the first comes at once.
        every_hours: u16,
        /// How many payments, at least 2.
        times: u16,
    },
    /// Another engine on the same records opens a session, which nobody here knows yet.
    OpenElsewhere {
        /// The session's number.
        session: u32,
        /// Whose.
        merchant: usize,
        /// How much, in 1/1000 HBD.
        units: u64,
        /// How long it lives, seconds; none for the setup's.
        lifetime_seconds: Option<u64>,
    },
    /// What another engine opened gets into the store here.
    HandOver {
        /// The session.
        session: u32,
    },
    /// Customer or merchant cancels.
    Cancel {
        /// The session.
        session: u32,
        /// Whether the merchant does.
        by_merchant: bool,
    },
    /// The merchant puts its oldest unmatched transfer to a session.
    Assign {
        /// The session.
        session: u32,
    },
    /// A merchant, or another one, does something about a session at its desk.
    Desk {
        /// The session.
        session: u32,
        /// What.
        deed: Deed,
    },
    /// An agent pays by x402, and keeps asking until it has an answer.
    Settle {
        /// The session it pays.
        session: u32,
        /// Which agent; the same agent and session are the same signed transaction.
        agent: usize,
        /// What it does differently.
        trick: Trick,
    },
    /// An agent has a payment for another server settled.
    Facilitate {
        /// Which agent.
        agent: usize,
        /// A number that makes its resource and nonce.
        resource: u32,
        /// How much, in 1/1000.
        units: u64,
    },
    /// Somebody does something to a merchant's record.
    Merchant {
        /// Which merchant.
        merchant: usize,
        /// What.
        change: Change,
    },
    /// A merchant does something about the ownership of an account.
    Own {
        /// Which merchant.
        merchant: usize,
        /// What.
        step: Ownership,
    },
    /// Something goes wrong now.
    Trouble(Trouble),
    /// A client calls the interface about a session, rightly or wrongly. Without an interface nothing happens.
    Visit {
        /// The session.
        session: u32,
        /// What the client does.
        visit: Visit,
    },
    /// An agent shows a payment at a resource of a seller, who has it settled.
    Purchase {
        /// Which agent.
        agent: usize,
        /// The resource.
        resource: u32,
        /// The resource for which the payment was made.
        shown: u32,
        /// The merchant whose server it is; none for a server that nobody here knows.
        seller: Option<usize>,
        /// The seller's idempotency key.
        key: Option<u32>,
        /// How much, in 1/1000 HBD.
        units: u64,
    },
}

/// What a memo says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memo {
    /// Exactly `pos-<id>`.
    Exact,
    /// The id in other case, with words around it.
    Noisy,
    /// Nothing.
    Empty,
    /// Words that name no session.
    Words,
    /// An encrypted memo around the id.
    Encrypted,
    /// The id and another session's.
    Two,
    /// A well-formed id that no session has.
    Unknown,
    /// Exactly `pos-<id>`, on two transfers of one transaction that add up.
    TwoTransfers,
    /// `pos-<id>` and a long text, on many transfers of one transaction that add up: what somebody sends who wants to fill
    /// a session.
    Flood,
    /// What names the session as paid back, sent to a payer by another shop.
    Refund,
}

impl Memo {
    /// Every kind, with its word.
    pub const ALL: [(Self, &'static str); 10] = [
        (Self::Exact, "exact"),
        (Self::Noisy, "noisy"),
        (Self::Empty, "empty"),
        (Self::Words, "words"),
        (Self::Encrypted, "encrypted"),
        (Self::Two, "two sessions"),
        (Self::Unknown, "unknown session"),
        (Self::TwoTransfers, "in two transfers"),
        (Self::Flood, "in many transfers"),
        (Self::Refund, "another's refund"),
    ];

    /// Says whether it names its session.
    #[must_use]
    pub const fn names_session(self) -> bool {
        matches!(self, Self::Exact | Self::Noisy | Self::TwoTransfers | Self::Flood)
    }
}

/// What an agent does differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trick {
    /// Nothing.
    None,
    /// It asks twice at the same moment.
    Twice,
    /// It broadcasts its transaction itself, too.
    OwnBroadcast,
    /// It hands in a transaction it made for another session.
    Replay {
        /// That session.
        of: u32,
    },
    /// It pays less than it should.
    TooLittle,
    /// It pays in the other currency.
    OtherCurrency,
    /// Its transaction expires in a moment.
    Expiring,
    /// It does not have the money.
    Poor,
    /// Its memo is `x402:<nonce>` and names no session.
    NonceMemo,
    /// It pays nothing: it takes what paid the session from the chain, where everybody can read it, and shows it without
    /// its signatures, at this session and at another one.
    Public,
    /// It signs a second transaction under the nonce of its first.
    SameNonce,
    /// The memo of the fee's transfer names another session.
    OtherFeeMemo,
    /// It sends its money away just before it pays.
    Spends,
}

/// What happens to a merchant's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A new webhook secret; the old one signs beside it for so many seconds.
    RotateSecret {
        /// The grace.
        grace_seconds: u64,
    },
    /// Switched off by an admin.
    SwitchOff,
    /// Switched on again.
    SwitchOn,
    /// Its money goes to its other account from now on.
    OtherAccount,
    /// No webhook endpoint any more.
    NoEndpoint,
    /// The endpoint again.
    Endpoint,
    /// Agents may not pay it.
    NoX402,
    /// A new API key.
    NewKey,
}

/// What goes wrong at a chosen time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The power goes now.
    PowerCut,
    /// The power goes at the n-th write or sync from now.
    PowerCutIn(u64),
    /// The n-th disk operation from now fails.
    DiskErrorIn(u64),
    /// The n-th read of the disk from now fails.
    ReadErrorIn(u64),
    /// The disk may not grow.
    DiskFull {
        /// For how long.
        for_ms: u64,
    },
    /// The process is killed now.
    Kill,
    /// The process is killed when it next reaches a point of the code.
    KillAt(String),
    /// The process is stopped in order and started again.
    Restart,
    /// The actor that next reaches a point of the code panics.
    PanicAt(String),
    /// A node goes away.
    NodeDown {
        /// Which.
        node: usize,
        /// For how long.
        for_ms: u64,
    },
    /// A node falls behind.
    NodeLag {
        /// Which.
        node: usize,
        /// By how many blocks.
        blocks: u32,
        /// For how long.
        for_ms: u64,
    },
    /// A node answers late.
    NodeSlow {
        /// Which.
        node: usize,
        /// By how much.
        delay_ms: u64,
        /// For how long.
        for_ms: u64,
    },
    /// A node stays at the block where it is.
    NodeFreeze {
        /// Which.
        node: usize,
        /// For how long.
        for_ms: u64,
    },
    /// A node has reversible blocks of its own.
    NodeBranch {
        /// Which.
        node: usize,
        /// How many of the newest blocks it has otherwise at once.
        depth: u32,
        /// For how long.
        for_ms: u64,
    },
    /// A node passes on no transaction that it takes.
    NodeKeeps {
        /// Which.
        node: usize,
        /// For how long.
        for_ms: u64,
    },
    /// A node serves another chain.
    NodeForeign {
        /// Which.
        node: usize,
        /// For how long.
        for_ms: u64,
    },
    /// A node keeps neither histories nor the state of transactions.
    NodeLacks {
        /// Which.
        node: usize,
        /// For how long.
        for_ms: u64,
    },
    /// A node limits the rate of requests, and says for how long.
    NodeLimits {
        /// Which.
        node: usize,
        /// For how long.
        for_ms: u64,
    },
    /// A node knows no price of HBD.
    NodeWithoutPrice {
        /// Which.
        node: usize,
        /// For how long.
        for_ms: u64,
    },
    /// A node lies.
    NodeLie {
        /// Which.
        node: usize,
        /// How.
        lie: Lying,
        /// For how long.
        for_ms: u64,
    },
    /// The newest blocks are replaced by others.
    Fork {
        /// How many.
        depth: u32,
        /// Whether their transactions are forgotten; otherwise they wait again.
        forget: bool,
    },
    /// Nothing becomes irreversible.
    HoldFinality {
        /// For how long.
        for_ms: u64,
    },
    /// Blocks stay empty.
    HoldTransactions {
        /// For how long.
        for_ms: u64,
    },
    /// No block is made.
    HoldBlocks {
        /// For how long.
        for_ms: u64,
    },
    /// Nodes forget what waits for a block.
    ForgetMempool,
    /// A merchant's receiver is away.
    Outage {
        /// Whose.
        merchant: usize,
        /// How it shows.
        manner: Manner,
        /// For how long.
        for_ms: u64,
    },
    /// The answer to the n-th call of a merchant or an agent from now is lost.
    LoseReplyIn(u64),
    /// The wall clock steps.
    ClockStep {
        /// By how much.
        by_ms: i64,
    },
    /// The internal market pays another price for HBD.
    HbdOffPeg {
        /// How much of a dollar.
        percent: u64,
        /// For how long.
        for_ms: u64,
    },
    /// The process stands still, and goes on where it was.
    Freeze {
        /// For how long.
        for_ms: u64,
    },
    /// Commits take their time.
    DiskSlow {
        /// How long at most.
        commit_ms: u64,
        /// For how long.
        for_ms: u64,
    },
    /// The process is stopped in order and started with other settings.
    OtherSettings(Changeable),
    /// The process is stopped in order, and the secrets are sealed with another master key before it starts.
    RotateMasterKey,
    /// The store is copied as it is.
    BackUp,
    /// The process is stopped in order, and the store is replaced by the newest copy before it starts.
    Restore,
    /// One bit of an entry of the log changes that others follow, until a start has failed for it.
    DamageLog {
        /// Chooses the bit.
        pick: u64,
    },
    /// One bit of a row on disk changes, until faults end.
    DamageRow {
        /// Of which table; any where none is named.
        table: Option<&'static str>,
        /// Which session it names; any where none is named.
        session: Option<u32>,
        /// Chooses the row and the bit.
        pick: u64,
    },
}

/// The settings that an operator may change from one start to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changeable {
    /// How long a new session lives, seconds.
    pub lifetime_seconds: u64,
    /// How much later than a new session's expiry a block may be, seconds.
    pub grace_seconds: u64,
    /// What an agent's payment completes on.
    pub x402_finality: ClaimFinality,
    /// Sessions kept awake.
    pub max_awake: usize,
}

/// How a node lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lying {
    /// It tells of transfers that never were.
    Invents,
    /// It leaves out every transfer.
    Omits,
    /// It says each was ten times as much.
    Inflates,
    /// It calls everything final.
    Finalizes,
    /// It is ahead of the chain.
    Ahead,
    /// It takes broadcasts and throws them away.
    Swallows,
    /// It refuses broadcasts that the chain would take.
    Refuses,
    /// It gives every account another key.
    Keys,
    /// It gives another price of HIVE.
    Prices,
}

impl Lying {
    /// Every kind, with its word.
    pub const ALL: [(Self, &'static str); 9] = [
        (Self::Invents, "invents"),
        (Self::Omits, "omits"),
        (Self::Inflates, "inflates"),
        (Self::Finalizes, "finalizes"),
        (Self::Ahead, "ahead"),
        (Self::Swallows, "swallows"),
        (Self::Refuses, "refuses"),
        (Self::Keys, "gives other keys"),
        (Self::Prices, "gives another price"),
    ];
}

/// How a receiver fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// 500.
    Status(u16),
    /// It takes the event and does not answer.
    Timeout,
    /// No connection.
    Refused,
    /// The name does not resolve.
    Dns,
}

impl Action {
    /// Returns the session that it opens.
    #[must_use]
    pub const fn opens(&self) -> Option<u32> {
        match self {
            Self::Create { session, .. } | Self::OpenElsewhere { session, .. } => Some(*session),
            _ => None,
        }
    }

    /// Returns the session it is about.
    #[must_use]
    pub const fn session(&self) -> Option<u32> {
        match self {
            Self::Create { session, .. }
            | Self::Pay { session, .. }
            | Self::PayAgain { session, .. }
            | Self::OpenElsewhere { session, .. }
            | Self::HandOver { session }
            | Self::Cancel { session, .. }
            | Self::Assign { session }
            | Self::Desk { session, .. }
            | Self::Settle { session, .. }
            | Self::Visit { session, .. } => Some(*session),
            _ => None,
        }
    }
}
