//! The words of scenario files.

use super::*;

/// Points of the code that can be named.
pub const POINTS: [&str; 9] = [
    "payment: applied, not committed",
    "payment: committed, effects not run",
    "gateway: created, not adopted",
    "scanner: credited, cursor not moved",
    "settlement: claimed, not broadcast",
    "settlement: broadcast, not recorded",
    "webhook: signed, not sent",
    "webhook: sent, not recorded",
    "books: checked, not stored",
];

/// What an agent's payment completes on.
pub(super) const FINALITIES: [(ClaimFinality, &str); 3] = [
    (ClaimFinality::Accepted, "accepted"),
    (ClaimFinality::InBlock, "in_block"),
    (ClaimFinality::Irreversible, "irreversible"),
];

/// How an agent pays otherwise than it should.
pub(super) const TRICKS: [(Trick, &str); 11] = [
    (Trick::Twice, "twice"),
    (Trick::OwnBroadcast, "own broadcast"),
    (Trick::TooLittle, "too little"),
    (Trick::OtherCurrency, "other currency"),
    (Trick::Expiring, "expiring"),
    (Trick::Poor, "poor"),
    (Trick::NonceMemo, "nonce memo"),
    (Trick::Public, "what is public"),
    (Trick::SameNonce, "same nonce"),
    (Trick::OtherFeeMemo, "other fee memo"),
    (Trick::Spends, "spends"),
];

/// Who there is, and what each can do.
pub(super) const WHO_DOES: [(&str, &[&str]); 14] = [
    (
        "merchant",
        &[
            "create",
            "create elsewhere",
            "pay",
            "cancel",
            "assign",
            "resolve",
            "refund",
            "redeliver",
            "replay",
            "meddle",
            "rotate secret",
            "be switched off",
            "be switched on",
            "use its other account",
            "remove its endpoint",
            "set its endpoint",
            "refuse agents",
            "roll its key",
            "prove its account",
            "prove its account and replace its keys",
            "have a stranger prove its account",
            "use another's account",
            "be registered by somebody else",
            "change its account often",
            "ignore unmatched money",
        ],
    ),
    ("other engine", &["hand over"]),
    ("payer", &["pay", "pay again and again"]),
    ("customer", &["cancel"]),
    ("agent", &["settle", "pay elsewhere", "pay a seller"]),
    (
        "node",
        &[
            "go away",
            "lag",
            "freeze",
            "answer late",
            "fork alone",
            "keep what it takes",
            "lie",
            "serve another chain",
            "lack APIs",
            "limit the rate",
            "know no price of HBD",
        ],
    ),
    ("ledger", &["fork", "hold finality", "hold transactions", "hold blocks", "forget what waits"]),
    ("disk", &["power-cut", "fail", "fill up", "be slow", "damage a row", "damage the log", "fail to read"]),
    (
        "process",
        &[
            "be killed",
            "restart",
            "restart with other settings",
            "restart with another master key",
            "freeze",
            "be backed up",
            "be restored",
        ],
    ),
    ("actor", &["panic"]),
    ("market", &["price HBD"]),
    ("receiver", &["fail"]),
    ("clock", &["step"]),
    (
        "client",
        &[
            "lose a reply",
            "read",
            "list",
            "look",
            "send its order again",
            "send another order under its key",
            "send wrong orders",
            "ask for what is another's",
            "forge forms",
            "use the dashboard",
            "ask too often",
            "call by gRPC",
            "watch",
        ],
    ),
];

/// What changes with a merchant.
pub(super) const CHANGES: [(Change, &str); 7] = [
    (Change::SwitchOff, "be switched off"),
    (Change::SwitchOn, "be switched on"),
    (Change::OtherAccount, "use its other account"),
    (Change::NoEndpoint, "remove its endpoint"),
    (Change::Endpoint, "set its endpoint"),
    (Change::NoX402, "refuse agents"),
    (Change::NewKey, "roll its key"),
];
