//! The methods of the control API, as `control.help` lists them: one table of methods, parameters and effects.

use serde_json::{Value, json};

use super::failure::Failure;

/// The methods: name, parameters (a default is in parentheses, `?` is optional), and effect.
pub(super) const METHODS: [(&str, &str, &str); 21] = [
    ("control.help", "", "Lists the methods."),
    (
        "control.status",
        "",
        "Returns `head {number, id, time}`, `irreversible`, `mempool` (ids), `autoProduce`, `blockIntervalMs`, `aheadSeconds`, `irreversibilityHeld`, `transactionsHeld`, `nodes`.",
    ),
    (
        "control.accounts",
        "",
        "Returns every account with `balance`, `hbdBalance` and, where the keys are derived from the seed, `keys {owner, active, posting, memo}` (WIF).",
    ),
    ("control.produce", "count (1)", "Produces blocks now. Returns the status."),
    (
        "control.advance_time",
        "seconds, blocks (1)",
        "Moves the chain's clock ahead of the wall clock permanently, and produces blocks at the new time. A pending transfer expires if the clock passes its expiration, 60 seconds after `control.transfer` signed it: produce a block first.",
    ),
    ("control.auto_produce", "on, intervalMs?", "Produces blocks automatically, or only by `control.produce`."),
    (
        "control.hold_irreversibility",
        "held",
        "Holds the last irreversible block; when released, it catches up immediately.",
    ),
    ("control.set_irreversibility_lag", "blocks", "Sets how far the last irreversible block lags behind the head."),
    ("control.hold_transactions", "held", "Accepts what is broadcast and keeps it out of blocks until released."),
    ("control.forget_mempool", "", "Drops the pending transactions. Returns their number as `forgotten`."),
    (
        "control.fork",
        "depth, transactions (\"keep\"; \"drop\" or {\"drop\": [ids]}), blocks (depth + 1)",
        "Replaces `depth` reversible blocks by `blocks` others. Returns `orphanedBlocks`, `dropped`, `status`.",
    ),
    (
        "control.node",
        "node (0), and any of lagBlocks, stalled, disconnected, dropBroadcastReplies (count), delayMs, httpStatus (or null), retryAfterSeconds (or null), garbage, lacksApis (names), lie (or null)",
        "Changes the faults of a node. Returns all of them. A lie is {\"kind\": \"inventTransfer\", \"block\", \"from\", \"to\", \"amount\", \"memo\"}, or has the kind omitTransfers, inflateTransfers (ten times), everythingIsFinal, headAhead (\"blocks\"), keys (\"key\": every active authority is this key), swallowBroadcasts, refuseBroadcasts (as expired), balances (\"units\": every balance, in 1/1000), skipBlocks (ranges lack their first block), unlinkBlocks (no block refers to the one before it) or price (\"base\", \"quote\"). Block ids stay true.",
    ),
    ("control.heal", "node?", "Removes the faults of this node, or of all."),
    (
        "control.create_account",
        "name, balances ([\"1.000 HBD\", …])?, owner?, active?, posting? (a key STM… or an authority), memoKey?",
        "Creates an account immediately; omitted keys are derived from the seed. Returns `name` and `keys`.",
    ),
    (
        "control.set_authority",
        "name, role (owner, active, posting), authority (a key or an authority)",
        "Changes an authority of an account.",
    ),
    ("control.grant", "name, amount (\"5.000 HBD\", \"-5.000 HBD\")", "Mints or burns money of an account."),
    (
        "control.set_rc",
        "name, hasRc",
        "Gives or takes resource credits; without them broadcasts of the account are refused.",
    ),
    (
        "control.foreign_operations",
        "operations (JSON; [] ends it), virtualOperations ([]), place (\"before\", \"after\", \"alone\"; \"alone\"), extensions ([])",
        "Adds operations and extensions of a later hard fork to the next blocks: in every transaction before or after its own, or in a separate transaction; and virtual operations.",
    ),
    ("control.set_price", "base (\"0.258 HBD\"), quote (\"1.000 HIVE\")", "Sets the witnesses' price."),
    (
        "control.set_market",
        "base (\"0.322 HBD\"), quote (\"1.000 HIVE\"); neither: as the witnesses' price",
        "Sets the internal market's best bid and ask. HBD is off its peg if this differs from the witnesses' price.",
    ),
    (
        "control.transfer",
        "from, to, amount, memo (\"\"), pack (\"legacy\"; \"hf26\")",
        "Signs with the derived active key and broadcasts. Returns `id`.",
    ),
];

/// Lists the methods.
pub(super) fn help() -> Value {
    let methods = METHODS.map(|(method, parameters, description)| {
        json!({ "method": method, "parameters": parameters, "description": description })
    });
    json!({
        "usage": "POST {\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"control.produce\", \"params\": {\"count\": 1}}; `params` is an object and optional",
        "methods": methods,
    })
}

/// Refuses a method that does not exist, and names those that do.
pub(super) fn unknown(method: &str) -> Failure {
    let known = METHODS.map(|(name, _, _)| name).join(", ");
    Failure::method("", &format!("Could not find control method {method}; the methods are {known}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_lists_what_is_dispatched_and_nothing_else() {
        let source = include_str!("control.rs");
        let arms = source.lines().filter_map(|line| line.trim_start().strip_prefix('"')?.split_once("\" => "));
        let dispatched: Vec<&str> = arms.map(|(name, _)| name).filter(|name| name.starts_with("control.")).collect();
        let mut listed = METHODS.map(|(name, _, _)| name).to_vec();
        listed.sort_unstable();
        let mut sorted = dispatched.clone();
        sorted.sort_unstable();
        assert_eq!(listed, sorted);
        assert!(METHODS.iter().all(|(_, _, description)| description.ends_with('.')));
        assert!(unknown("control.helpp").to_string().contains("control.help, control.status"));
    }
}
