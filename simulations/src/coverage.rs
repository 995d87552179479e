//! What a campaign must reach to be conclusive: rare states, the rows of the state table, the reasons
//! that agents receive, and each fault of a node at each position in the list of nodes.

use std::collections::BTreeMap;

use crate::{options::Fault, script::LieKind};

/// Faults of nodes, by name and the node's position in the list.
pub type Places = BTreeMap<(&'static str, usize), u64>;

/// How many positions of the list of nodes every fault must affect.
const PLACES: usize = 3;

/// Rare states, rows of the state table, outcomes of claims, and reasons that agents receive.
pub const REQUIRED_MARKS: [&str; 75] = [
    "HBD is read at another price",
    "a backup is restored",
    "a broadcast is accepted and its response lost",
    "a caller gets no response",
    "a cancel loses the race",
    "a cancellation is requested",
    "a claim expires",
    "a claim is refused",
    "a claim is settled",
    "a damaged log is refused",
    "a damaged row is read",
    "a day is reconciled",
    "a delivery is given up",
    "a delivery is held",
    "a delivery to a disabled endpoint is held",
    "a payment that was lost by a restore is found again",
    "a merchant assigns a transfer",
    "a node of another chain is refused",
    "a merchant ignores a transfer",
    "a merchant proves its account by a transfer",
    "a merchant decides about an exception",
    "a merchant sends a refund",
    "a merchant calls with another's ids",
    "a payment for another server settles",
    "a timely payment drops a cancellation request",
    "a process is paused and resumes",
    "a read of the store fails",
    "a reorg removes a sighted transfer",
    "a row is damaged",
    "a second settlement is refused",
    "a secret is rotated between two attempts",
    "a sector is torn",
    "a session appears after its transfer",
    "a session completes",
    "a session expires",
    "a session fails",
    "a session is cancelled",
    "a session is processing",
    "a session opens",
    "a stale proof is refused",
    "a third party sends a merchant's proof",
    "a third party presents a public transaction",
    "a transfer matches no session",
    "a wallet pays",
    "a wallet's policy refuses a payment",
    "a webhook is processed and its response lost",
    "an account is changed too often",
    "an agent's payment settles",
    "an event is redelivered on request",
    "an idempotency key is reused",
    "an unmatched transfer is announced",
    "a commit of unknown outcome was applied",
    "a commit of unknown outcome was dropped",
    "another master key is in force",
    "a third party registers with a merchant's account",
    "duplicate_settlement",
    "undelivered events are replayed",
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
    "the engine exits because of its store",
    "power is lost during a disk operation",
    "unexpected_settle_error",
];

/// Returns every fault of one node that is counted by position.
pub fn faults_of_a_node() -> impl Iterator<Item = &'static str> {
    let kinds = [
        "node.call_fails",
        "node.reply_lost",
        Fault::NodeDown.as_str(),
        Fault::NodeLag.as_str(),
        Fault::NodeSlow.as_str(),
        Fault::NodeStall.as_str(),
        Fault::NodeBranch.as_str(),
        Fault::NodeKeeps.as_str(),
        Fault::NodeForeign.as_str(),
        Fault::NodeLacks.as_str(),
        Fault::NodeLimits.as_str(),
        Fault::NodeWithoutPrice.as_str(),
    ];
    kinds.into_iter().chain(LieKind::ALL.iter().map(|(_, word)| *word))
}

/// Returns what was never reached.
#[must_use]
pub fn missed(marks: &BTreeMap<&'static str, u64>, places: &Places) -> Vec<String> {
    required(|mark| !marks.contains_key(mark), |place| !places.contains_key(place))
}

/// Returns the required states that were reached.
#[must_use]
pub fn reached(marks: &BTreeMap<&'static str, u64>, places: &Places) -> Vec<String> {
    required(|mark| marks.contains_key(mark), |place| places.contains_key(place))
}

/// Returns the descriptions of some of the required states.
fn required(
    wants_mark: impl Fn(&'static str) -> bool,
    wants_place: impl Fn(&(&'static str, usize)) -> bool,
) -> Vec<String> {
    let marks = REQUIRED_MARKS.into_iter().filter(|mark| wants_mark(mark)).map(str::to_owned);
    let of_nodes = faults_of_a_node().flat_map(|fault| (0..PLACES).map(move |place| (fault, place)));
    let of_nodes = of_nodes.filter(wants_place);
    marks.chain(of_nodes.map(|(fault, place)| format!("{fault} of the node at place {place}"))).collect()
}
