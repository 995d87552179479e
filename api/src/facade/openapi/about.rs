//! Schemas of health, nodes and the gateway's own documents.

use serde_json::{Value, json};

use super::shape::{array, boolean, count, list, nullable, object, open, reference, text, time, words};

/// Adds every schema of the gateway itself.
pub(super) fn add(add: &mut impl FnMut(&str, Value)) {
    add(
        "Health",
        object(&[
            ("status", words(&["ok", "degraded"])),
            ("version", text()),
            ("commit", text()),
            ("livemode", boolean()),
            ("network", words(&["mainnet", "testnet", "development"])),
        ]),
    );
    add("Alive", object(&[("status", words(&["ok"]))]));
    add("Ready", ready(&["ok"]));
    // If the engine is unreachable, the response is an error as everywhere.
    add("NotReady", json!({ "anyOf": [ready(&["degraded", "unavailable"]), reference("Error")] }));
    let node = object(&[
        ("name", text()),
        ("condition", condition()),
        ("headBlock", nullable(count())),
        ("failures", count()),
        ("answeredAt", nullable(time())),
        ("restsUntil", nullable(time())),
    ]);
    add("Node", node);
    add("Nodes", object(&[("data", list("Node")), ("needed", count())]));
    add("ReadyNode", object(&[("name", text()), ("condition", condition()), ("headBlock", nullable(count()))]));
    let anything = || open(object(&[]));
    let description = object(&[
        ("openapi", json!({ "type": "string", "const": "3.1.0" })),
        ("info", anything()),
        ("servers", array(anything())),
        ("tags", array(anything())),
        ("paths", anything()),
        ("webhooks", anything()),
        ("components", anything()),
    ]);
    add("Description", description);
}

/// The condition of a ledger node, from best to worst.
fn condition() -> Value {
    words(&["ok", "unknown", "slow", "stale", "disagreeing", "failing", "rate_limited"])
}

fn ready(status: &[&str]) -> Value {
    object(&[
        ("status", words(status)),
        ("ledgerReachable", boolean()),
        ("ledgerFollowed", boolean()),
        ("headBlock", count()),
        ("irreversibleBlock", count()),
        ("scannedBlock", count()),
        ("damagedRows", count()),
        ("headAgeSeconds", nullable(count())),
        ("nodesNeeded", count()),
        ("nodes", list("ReadyNode")),
    ])
}
