//! Changes of a merchant's record, with the keywords of scenario files.

/// A change of a merchant's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MerchantChange {
    /// A new webhook secret is issued.
    RotateSecret {
        /// How long the old secret signs too, seconds.
        grace_seconds: u64,
    },
    /// An administrator deactivates the merchant.
    SwitchOff,
    /// An administrator activates it again.
    SwitchOn,
    /// It receives payments on its other account.
    OtherAccount,
    /// Its webhook endpoint is removed.
    NoEndpoint,
    /// Its webhook endpoint is set again.
    Endpoint,
    /// It disables x402.
    NoX402,
    /// A new API key is issued.
    NewKey,
}

impl MerchantChange {
    /// Every kind without fields, with its keyword in scenario files.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::SwitchOff, "be deactivated"),
        (Self::SwitchOn, "be activated"),
        (Self::OtherAccount, "use its other account"),
        (Self::NoEndpoint, "remove its endpoint"),
        (Self::Endpoint, "set its endpoint"),
        (Self::NoX402, "refuse agents"),
        (Self::NewKey, "roll its key"),
    ];
}
