//! How merchants manage their keys, events and accounts, and what the operator decides, with the keywords of scenario files.

/// An action of a merchant about its own records, or of the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManagementAction {
    /// It has a test event sent to its endpoint.
    SendTest,
    /// It subscribes its endpoint to all types of events, or to the mandatory one only.
    Subscribe,
    /// It creates a second endpoint with other types of events; later it changes, tests, enables or deletes it.
    ManageEndpoint,
    /// It reads its events, deliveries, unmatched transfers, sales, volume and bills page by page.
    Read,
    /// It waits for its events for some minutes.
    WatchEvents,
    /// It creates an API key with some of the scopes.
    CreateKey,
    /// It revokes one of its API keys.
    RevokeKey,
    /// It rolls one of its API keys; the old one is valid for some minutes more.
    RollKey,
    /// It uses every API key that it was ever given.
    UseKeys,
    /// It proves its account by a signature.
    ProveBySignature,
    /// It cancels the pending change of its account.
    CancelAccountChange,
    /// A payer pays its oldest unpaid invoice.
    PayInvoice,
    /// The operator lifts its compliance hold.
    ClearHold,
    /// The operator gives it compliance limits of its own, or takes them away.
    SetLimits,
    /// The operator replaces the fee tiers.
    SetFeeTiers,
    /// The operator makes the invoices of the months that are over.
    MakeInvoices,
}

impl ManagementAction {
    /// Every kind, with its keyword in scenario files.
    pub const ALL: [(Self, &'static str); 16] = [
        (Self::SendTest, "send a test event"),
        (Self::Subscribe, "change its subscription"),
        (Self::ManageEndpoint, "manage a second endpoint"),
        (Self::Read, "read its records"),
        (Self::WatchEvents, "watch its events"),
        (Self::CreateKey, "create a key"),
        (Self::RevokeKey, "revoke a key"),
        (Self::RollKey, "roll a key with an overlap"),
        (Self::UseKeys, "use all its keys"),
        (Self::ProveBySignature, "prove its account by a signature"),
        (Self::CancelAccountChange, "cancel its account change"),
        (Self::PayInvoice, "have its invoice paid"),
        (Self::ClearHold, "be cleared"),
        (Self::SetLimits, "be given limits of its own"),
        (Self::SetFeeTiers, "set the fee tiers"),
        (Self::MakeInvoices, "make invoices"),
    ];

    /// Returns whether it is no action of one merchant.
    #[must_use]
    pub const fn is_operators(self) -> bool {
        matches!(self, Self::SetFeeTiers | Self::MakeInvoices)
    }
}
