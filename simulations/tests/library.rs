//! The scenario library: every file ends as expected, and together they cover the tables of the interface.

use std::collections::{BTreeMap, BTreeSet};

use simulations::{runner, scenario, script::Script};

/// The rows of the interface's table of states, by their marks, and a scenario that goes through each.
const TRANSITIONS: [(&str, &str, &str); 8] = [
    ("(none) to pending", "a session opens", "exact"),
    ("pending to processing", "a session is processing", "agent-processing"),
    ("processing to completed", "processing ends in completed", "agent-processing"),
    ("processing to failed", "a session fails", "agent-fails"),
    ("pending to user_cancelled", "a session is cancelled", "paid-after-cancel"),
    ("pending to system_cancelled", "a session expires", "never-paid"),
    ("pending to completed by a wallet", "a session completes", "exact"),
    ("pending to completed by x402", "an agent's payment settles", "agent"),
];

/// What customers do with transfers: the case, its scenario, the state it must end in and what must be noted.
const CASES: [(&str, &str, &str, &[&str]); 34] = [
    ("exact, on time", "exact", "completed", &[]),
    ("a part, on time", "part-then-expiry", "system_cancelled", &["underpaid"]),
    ("parts that add up", "parts-that-add-up", "completed", &[]),
    ("a part, then the expiry", "part-then-expiry", "system_cancelled", &["underpaid"]),
    ("too much in one transfer", "too-much", "completed", &["overpaid"]),
    ("two full transfers", "paid-twice", "completed", &["paid_again"]),
    ("two transfers in one transaction", "two-in-one-transaction", "completed", &[]),
    ("late", "late", "system_cancelled", &["paid_late"]),
    ("after a cancellation", "paid-after-cancel", "user_cancelled", &["paid_after_cancel"]),
    ("cancelled while a match is in a reversible block", "seen-refuses-cancel", "completed", &[]),
    ("the other currency", "wrong-currency", "completed", &["wrong_currency"]),
    (
        "many transfers of third parties",
        "flooded-before-and-after",
        "completed",
        &["overpaid", "paid_again", "wrong_currency"],
    ),
    ("no memo, other words, an unknown id", "wrong-memos", "completed", &[]),
    ("words and capitals around the id", "noisy-memo", "completed", &[]),
    ("two ids in one memo", "wrong-memos", "completed", &[]),
    ("an encrypted memo", "wrong-memos", "completed", &[]),
    ("seen again", "cursor-lost", "completed", &[]),
    ("a fork moves it", "fork-moves-it", "completed", &[]),
    ("a fork removes it", "fork-takes-it-back", "user_cancelled", &[]),
    ("the merchant pays itself", "merchant-pays-itself", "completed", &["self_transfer"]),
    ("an agent's transaction is on the chain already", "agent-broadcasts-itself", "completed", &[]),
    ("an agent pays what is partly paid", "agent-on-part-paid", "completed", &["overpaid"]),
    ("the merchant is switched off after creation", "switched-off-meanwhile", "completed", &[]),
    ("the merchant's account changes after creation", "account-changed-meanwhile", "completed", &[]),
    ("assigned by hand", "assigned-by-hand", "completed", &["manual"]),
    ("assigned by hand when it is over", "assigned-too-late", "system_cancelled", &["paid_late", "manual"]),
    ("assigned by hand, and killed meanwhile", "assigned-and-killed", "completed", &["manual"]),
    ("before its session is known here", "before-its-session", "completed", &[]),
    ("before its session, and restarts between", "before-its-session-and-killed", "completed", &[]),
    ("before its session, which is over when it appears", "before-its-session-and-expired", "completed", &[]),
    ("by a recurrent transfer, and once too often", "recurrent-transfer", "completed", &["paid_again", "manual"]),
    ("by a recurrent transfer after the end", "recurrent-transfer", "system_cancelled", &[]),
    ("by a recurrent transfer, and a node is behind", "recurrent-transfer-lagging-node", "completed", &["manual"]),
    ("paid after a failure", "paid-after-failure", "failed", &["paid_after_failure"]),
];

/// The races of agents, each with its scenario.
const RACES: [(&str, &str); 13] = [
    ("two agents, one session", "two-agents"),
    ("one request twice at once", "agent-settles-twice"),
    ("one request twice, a node apart", "agent-settles-twice-on-slow-nodes"),
    ("a transaction that paid another session", "agent-replays"),
    ("an agent and a wallet", "agent-and-wallet"),
    ("an agent and a cancellation", "agent-beats-cancel"),
    ("an agent and the expiry", "claim-over-the-expiry"),
    ("an agent and its own broadcast", "agent-broadcasts-itself"),
    ("a transaction about to expire", "agent-nearly-expired"),
    ("killed after the claim, before the broadcast", "agent-killed-after-claim"),
    ("killed after the broadcast", "agent-killed-after-broadcast"),
    ("settled, and then gone from the chain", "agent-reversed"),
    ("another server's payment, asked again after a kill", "agent-pays-elsewhere"),
];

/// The mark of a scenario whose final state alone does not show that it happened.
const REACHED: [(&str, &str); 24] = [
    ("wrong-memos", "a transfer matches no session"),
    ("recurrent-transfer", "a recurrent transfer is executed"),
    ("recurrent-transfer-lagging-node", "a recurrent transfer is executed"),
    ("recurrent-transfer-only-node-falls-back", "a recurrent transfer is executed"),
    ("recurrent-transfer-without-an-api", "a recurrent transfer is executed"),
    ("a-day-ends", "a day is reconciled"),
    ("a-day-without-account-histories", "a day cannot be reconciled"),
    ("before-its-session", "a session appears after its transfer"),
    ("before-its-session-and-killed", "a session appears after its transfer"),
    ("before-its-session-and-expired", "a session appears after its transfer"),
    ("sent-back", "a merchant sends a refund"),
    ("sent-back", "a merchant decides about an exception"),
    ("sent-back", "a merchant calls with another's ids"),
    ("sent-back", "an event is redelivered on request"),
    ("reads-fail", "a read of the store fails"),
    ("accounts-of-others", "a third party sends a merchant's proof"),
    ("restored-from-a-backup", "a backup is restored"),
    ("restored-without-a-claim", "a backup is restored"),
    ("restored-while-an-agent-waits", "a backup is restored"),
    ("sent-back-before-the-price-is-final", "a merchant sends a refund"),
    ("unusual-nodes", "a node of another chain is refused"),
    ("accounts-of-others", "a stale proof is refused"),
    ("accounts-of-others", "a merchant ignores a transfer"),
    ("accounts-of-others", "an account is changed too often"),
];

fn library() -> BTreeMap<String, Script> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut library = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let script = scenario::read(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(scenario::read(&scenario::write(&script)).unwrap(), script, "{} reads back", path.display());
        library.insert(path.file_stem().unwrap().to_string_lossy().into_owned(), script);
    }
    library
}

#[test]
fn every_scenario_ends_as_expected_and_together_they_take_every_transition() {
    let library = library();
    assert!(library.len() >= 20, "{} scenarios", library.len());
    let mut wrong = Vec::new();
    let mut marks = BTreeMap::new();
    for (name, script) in &library {
        let outcome = runner::run(script, false);
        if let Some(violation) = outcome.violation {
            wrong.push(format!("{name}: {violation:?}"));
        }
        marks.insert(name.as_str(), outcome.marks.into_keys().collect::<BTreeSet<_>>());
    }
    for (row, mark, name) in TRANSITIONS {
        if !marks.get(name).is_some_and(|reached| reached.contains(mark)) {
            wrong.push(format!("{name} does not go from {row}"));
        }
    }
    for (name, mark) in REACHED {
        if !marks.get(name).is_some_and(|reached| reached.contains(mark)) {
            wrong.push(format!("{name}: {mark:?} does not happen"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_case_of_a_transfer_and_every_race_of_agents_has_a_scenario_that_expects_its_end() {
    let library = library();
    for (case, name, state, exceptions) in CASES {
        let script = library.get(name).unwrap_or_else(|| panic!("{case}: there is no {name}"));
        let expected = script.expect.iter().any(|expect| {
            let noted = expect.exceptions.as_ref().is_some_and(|noted| noted.iter().eq(exceptions.iter()));
            expect.states == [state] && noted
        });
        assert!(expected, "{case}: {name} does not expect {state} with {exceptions:?}");
    }
    for (race, name) in RACES {
        assert!(library.contains_key(name), "{race}: there is no {name}");
    }
}
