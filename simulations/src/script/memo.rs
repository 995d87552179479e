//! The memos that payers write, with their keywords in scenario files.

/// The memo of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memo {
    /// Exactly `pos-<id>`.
    Exact,
    /// The id in upper case, with words around it.
    Noisy,
    /// No text.
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
    /// `pos-<id>` and a long text, on many transfers of one transaction that add up: an attempt to fill the session's
    /// record.
    Flood,
    /// The memo of a refund of the session, in a transfer that another shop sends to the payer.
    Refund,
    /// The memo of the fee, in a transfer of the session's fee to the account that collects it.
    Fee,
}

impl Memo {
    /// Every kind, with its keyword in scenario files.
    pub const ALL: [(Self, &'static str); 11] = [
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
        (Self::Fee, "the fee"),
    ];

    /// Returns whether it names its session.
    #[must_use]
    pub const fn names_session(self) -> bool {
        matches!(self, Self::Exact | Self::Noisy | Self::TwoTransfers | Self::Flood)
    }
}
