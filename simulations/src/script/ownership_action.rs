//! How merchants prove that they own ledger accounts, or use others' accounts, with the keywords of scenario files.

/// What a merchant does about the ownership of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnershipAction {
    /// It proves the account whose proof is missing, by a transfer of the account to itself.
    Prove,
    /// It sends the transfer that proves its account when the challenge is over.
    ProveTooLate,
    /// As [`OwnershipAction::Prove`], and the account's keys are replaced right after the transfer.
    ProveAndReplaceKeys,
    /// It requests a challenge, and another account sends the proof.
    ProveByThirdParty,
    /// It changes its account to another merchant's, and tries to read and resolve that account's unmatched transfers.
    UseOthersAccount,
    /// Another merchant registers with its account, and tries the same.
    RegisterByOther,
    /// It changes its account more often than allowed.
    ChangeOften,
    /// It reads the unmatched transfers of its account and ignores one.
    Ignore,
}

impl OwnershipAction {
    /// Every kind, with its keyword in scenario files.
    pub const ALL: [(Self, &'static str); 8] = [
        (Self::Prove, "prove its account"),
        (Self::ProveTooLate, "prove its account too late"),
        (Self::ProveAndReplaceKeys, "prove its account and replace its keys"),
        (Self::ProveByThirdParty, "have a third party prove its account"),
        (Self::UseOthersAccount, "use another's account"),
        (Self::RegisterByOther, "be registered by a third party"),
        (Self::ChangeOften, "change its account often"),
        (Self::Ignore, "ignore unmatched money"),
    ];
}
