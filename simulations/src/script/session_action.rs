//! How merchants manage a session, with the keywords of scenario files.

/// How a merchant manages a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionAction {
    /// It resolves the session's exceptions.
    Resolve,
    /// It sends back what is owed.
    Refund,
    /// It has the newest event sent again.
    Redeliver,
    /// It enables its endpoint, and has every event sent again that was not delivered.
    ReplayWebhooks,
    /// Its customer opens a wallet, which the page reports.
    ReportWallet,
    /// It deletes the metadata.
    DeleteMetadata,
    /// It deletes the note of its decision.
    DeleteNote,
    /// A client watches the session.
    Watch,
    /// Another merchant uses the session's ids in every call that takes one.
    AccessByOther,
}

impl SessionAction {
    /// Every kind, with its keyword in scenario files.
    pub const ALL: [(Self, &'static str); 9] = [
        (Self::Resolve, "resolve"),
        (Self::Refund, "refund"),
        (Self::Redeliver, "redeliver"),
        (Self::ReplayWebhooks, "replay"),
        (Self::AccessByOther, "call with another's ids"),
        (Self::ReportWallet, "report a wallet"),
        (Self::DeleteMetadata, "delete its metadata"),
        (Self::DeleteNote, "delete its note"),
        (Self::Watch, "watch its payment"),
    ];
}
