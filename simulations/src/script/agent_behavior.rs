//! How agents deviate from an honest payment, with the keywords of scenario files.

/// How an agent deviates from an honest payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentBehavior {
    /// It does not.
    Honest,
    /// It sends two settlement requests at the same moment.
    Twice,
    /// It also broadcasts its transaction itself.
    OwnBroadcast,
    /// It presents a transaction that it made for another session.
    Replay {
        /// That session.
        of: u32,
    },
    /// It pays less than the amount.
    TooLittle,
    /// It pays in the other currency.
    OtherCurrency,
    /// Its transaction expires within seconds.
    Expiring,
    /// Its account has no money.
    NoMoney,
    /// Its memo is `x402:<nonce>` and names no session.
    NonceMemo,
    /// It does not pay: it takes the transaction that paid the session from the public chain, and presents it without its
    /// signatures, at this session and at another one.
    ShowPublicTransaction,
    /// It signs a second transaction under the nonce of its first.
    SameNonce,
    /// It presents another payment under the `payment-identifier` of one that was claimed before.
    SameIdentifier,
    /// The memo of the fee's transfer names another session.
    OtherFeeMemo,
    /// It sends its money away just before it pays with it.
    SpendFirst,
    /// Its transaction expires hours later.
    FarExpiration,
    /// Its transaction holds one transfer more than is asked for.
    FurtherTransfer,
    /// It pays the fee in the other currency.
    OtherFeeCurrency,
    /// It pays a smaller fee.
    SmallFee,
    /// The keys of its account are replaced within seconds after it signed.
    ReplaceKeys,
}

impl AgentBehavior {
    /// Every kind without fields but [`AgentBehavior::Honest`], with its keyword in scenario files.
    pub const ALL: [(Self, &'static str); 17] = [
        (Self::Twice, "twice"),
        (Self::OwnBroadcast, "own broadcast"),
        (Self::TooLittle, "too little"),
        (Self::OtherCurrency, "other currency"),
        (Self::Expiring, "expiring"),
        (Self::NoMoney, "insufficient funds"),
        (Self::NonceMemo, "nonce memo"),
        (Self::ShowPublicTransaction, "public transaction"),
        (Self::SameNonce, "same nonce"),
        (Self::SameIdentifier, "same identifier"),
        (Self::OtherFeeMemo, "other fee memo"),
        (Self::SpendFirst, "spent balance"),
        (Self::FarExpiration, "far expiration"),
        (Self::FurtherTransfer, "further transfer"),
        (Self::OtherFeeCurrency, "other fee currency"),
        (Self::SmallFee, "small fee"),
        (Self::ReplaceKeys, "replaces its keys"),
    ];

    /// Returns whether it deviates in the transfer of the fee.
    pub const fn is_about_fee(self) -> bool {
        matches!(self, Self::OtherFeeMemo | Self::OtherFeeCurrency | Self::SmallFee)
    }
}
