//! What clients do at the interface, with the words of scenario files.

/// What a client does at the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visit {
    /// Its merchant reads it, whole and its state alone; so does its customer.
    Read,
    /// Its merchant reads the lists of payments and of events.
    List,
    /// A browser and a program look at its checkout.
    Look,
    /// Its merchant sends the same order again under its idempotency key.
    OrderAgain,
    /// Its merchant sends another order under its idempotency key.
    OrderOther,
    /// Its merchant sends orders that are wrong.
    Blunder,
    /// Another merchant asks for it, and for one that nobody has.
    Intrude,
    /// A stranger sends forms with a token that is not theirs.
    Forge,
    /// Its merchant logs in to the dashboard.
    Dashboard,
    /// Somebody asks for more than the limits allow.
    Rush,
    /// Its merchant calls by gRPC.
    Grpc,
    /// Its merchant follows it by gRPC.
    Watch,
}

impl Visit {
    /// Every kind, with its word.
    pub const ALL: [(Self, &'static str); 12] = [
        (Self::Read, "read"),
        (Self::List, "list"),
        (Self::Look, "look"),
        (Self::OrderAgain, "send its order again"),
        (Self::OrderOther, "send another order under its key"),
        (Self::Blunder, "send wrong orders"),
        (Self::Intrude, "ask for what is another's"),
        (Self::Forge, "forge forms"),
        (Self::Dashboard, "use the dashboard"),
        (Self::Rush, "ask too often"),
        (Self::Grpc, "call by gRPC"),
        (Self::Watch, "watch"),
    ];
}
