//! What a campaign must reach, or its result says too little: rare places, the rows of the interface's tables, the reasons
//! that agents are told, and each fault of a node at each place in the list of nodes.

use std::collections::BTreeMap;

use crate::{options::Fault, script::LieKind};

/// Faults of nodes, by what they are and the node's place in the list.
pub type Places = BTreeMap<(&'static str, usize), u64>;

/// How many places of the list of nodes every fault must strike.
const PLACES: usize = 3;

/// Rare places, rows of the table of states, what becomes of claims, and reasons that agents are told.
pub const REQUIRED_MARKS: [&str; 72] = [
    "HBD is read at another price",
    "a backup is restored",
    "a broadcast is taken and its answer lost",
    "a caller is left without an answer",
    "a cancel loses the race",
    "a cancellation is requested",
    "a claim is buried",
    "a claim is refused",
    "a claim is settled",
    "a damaged log is refused",
    "a damaged row is met",
    "a day's books are checked",
    "a delivery is given up",
    "a delivery is held",
    "a delivery to a disabled endpoint is held",
    "a lost payment is found",
    "a merchant assigns a transfer",
    "a node of another chain is refused",
    "a merchant ignores a transfer",
    "a merchant proves its account by a transfer",
    "a merchant decides about an exception",
    "a merchant sends money back",
    "a merchant tries what is another's",
    "a payment for another server settles",
    "a payment that came in time drops a request to cancel",
    "a process stands still and goes on",
    "a read of the store fails",
    "a reorg removes a sighted transfer",
    "a row is damaged",
    "a second settlement is refused",
    "a secret is rotated between two attempts",
    "a sector is torn",
    "a session appears after its money",
    "a session completes",
    "a session expires",
    "a session fails",
    "a session is cancelled",
    "a session is processing",
    "a session opens",
    "a stale proof gives no right",
    "a stranger sends a merchant's proof",
    "a stranger shows a public transaction",
    "a transfer matches no session",
    "a webhook is processed and its answer lost",
    "an account is changed too often",
    "an agent's payment settles",
    "an event is sent again by hand",
    "an idempotency key is used again",
    "an unknown commit was committed",
    "an unknown commit was not",
    "another master key is in force",
    "somebody registers with another's account",
    "duplicate_settlement",
    "events that were not taken are sent again",
    "insufficient_funds",
    "invalid_exact_hive_payload_amount",
    "invalid_exact_hive_payload_asset_mismatch",
    "invalid_exact_hive_payload_memo_mismatch",
    "invalid_exact_hive_payload_operations",
    "invalid_exact_hive_payload_recipient_mismatch",
    "invalid_transaction_state",
    "merchant_inactive",
    "other settings are in force",
    "payment_expired",
    "processing ends in completed",
    "session_cancelling",
    "session_expired",
    "session_not_pending",
    "settlement_pending",
    "the engine gives up on its store",
    "the power goes inside a disk operation",
    "unexpected_settle_error",
];

/// Returns every fault of one node, as it is counted by place.
pub fn faults_of_a_node() -> impl Iterator<Item = &'static str> {
    let kinds = [
        "node.call_fails",
        "node.reply_lost",
        Fault::NodeDown.word(),
        Fault::NodeLag.word(),
        Fault::NodeSlow.word(),
        Fault::NodeFreeze.word(),
        Fault::NodeBranch.word(),
        Fault::NodeKeeps.word(),
        Fault::NodeForeign.word(),
        Fault::NodeLacks.word(),
        Fault::NodeLimits.word(),
        Fault::NodeWithoutPrice.word(),
    ];
    kinds.into_iter().chain(LieKind::ALL.iter().map(|(_, word)| *word))
}

/// Returns what was never reached.
#[must_use]
pub fn missed(marks: &BTreeMap<&'static str, u64>, places: &Places) -> Vec<String> {
    required(|mark| !marks.contains_key(mark), |place| !places.contains_key(place))
}

/// Returns the required places that were reached.
#[must_use]
pub fn reached(marks: &BTreeMap<&'static str, u64>, places: &Places) -> Vec<String> {
    required(|mark| marks.contains_key(mark), |place| places.contains_key(place))
}

/// Returns some of the required places, in words.
fn required(
    wants_mark: impl Fn(&'static str) -> bool,
    wants_place: impl Fn(&(&'static str, usize)) -> bool,
) -> Vec<String> {
    let marks = REQUIRED_MARKS.into_iter().filter(|mark| wants_mark(mark)).map(str::to_owned);
    let of_nodes = faults_of_a_node().flat_map(|fault| (0..PLACES).map(move |place| (fault, place)));
    let of_nodes = of_nodes.filter(wants_place);
    marks.chain(of_nodes.map(|(fault, place)| format!("{fault} of the node at place {place}"))).collect()
}
