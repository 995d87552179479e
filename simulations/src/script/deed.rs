//! What merchants do at their desks, with the words of scenario files.

/// What is done about a session at a desk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// Its merchant decides about its exceptions.
    Resolve,
    /// Its merchant sends back what is owed.
    Refund,
    /// Its merchant has its newest event sent again.
    Redeliver,
    /// Its merchant has the endpoint enabled, and everything sent again that was not taken.
    Reconnect,
    /// Another merchant uses its ids wherever a call takes one.
    Meddle,
}

impl Deed {
    /// Every kind, with its word.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Resolve, "resolve"),
        (Self::Refund, "refund"),
        (Self::Redeliver, "redeliver"),
        (Self::Reconnect, "replay"),
        (Self::Meddle, "meddle"),
    ];
}
