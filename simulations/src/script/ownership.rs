//! What merchants do about the ownership of ledger accounts, with the words of scenario files.

/// What a merchant does about the ownership of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// Proves the account whose answer is missing, by a transfer of the account to itself.
    Prove,
    /// As [`Ownership::Prove`], and the account's keys are replaced right after the transfer.
    ProveAndReplaceKeys,
    /// Requests a challenge, and a stranger answers it.
    ProveByStranger,
    /// Changes its account to another merchant's, and tries to read and decide about money of it.
    TakeAnothers,
    /// Somebody registers with its account, and tries to read and decide about money of it.
    RegisterAgain,
    /// Changes its account again and again.
    ChangeOften,
    /// Reads the unmatched transfers of its account and ignores one.
    Ignore,
}

impl Ownership {
    /// Every kind, with its word.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Prove, "prove its account"),
        (Self::ProveAndReplaceKeys, "prove its account and replace its keys"),
        (Self::ProveByStranger, "have a stranger prove its account"),
        (Self::TakeAnothers, "use another's account"),
        (Self::RegisterAgain, "be registered by somebody else"),
        (Self::ChangeOften, "change its account often"),
        (Self::Ignore, "ignore unmatched money"),
    ];
}
