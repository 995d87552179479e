//! The actors that the supervisor starts.

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Child {
    Merchants,
    Sessions,
    Facilitator,
    Scanner,
    Webhooks,
    Rates,
    Housekeeper,
    VirtualTransfers,
    Bookkeeper,
}

// A child that is missing has no metric of its crashes.
const _: () = assert!(Child::ALL.len() == Child::Bookkeeper as usize + 1);

impl Child {
    /// Every child, in the order they are started.
    pub(crate) const ALL: [Self; 9] = [
        Self::Merchants,
        Self::Sessions,
        Self::Facilitator,
        Self::Scanner,
        Self::Webhooks,
        Self::Rates,
        Self::Housekeeper,
        Self::VirtualTransfers,
        Self::Bookkeeper,
    ];

    /// Returns whether it is started again when it ends. Everybody holds the address of the others: without them the engine ends.
    pub(crate) const fn is_restarted(self) -> bool {
        !matches!(self, Self::Merchants | Self::Sessions | Self::Facilitator)
    }

    /// Returns its name in metrics.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Merchants => "merchants",
            Self::Sessions => "sessions",
            Self::Facilitator => "facilitator",
            Self::Scanner => "scanner",
            Self::Webhooks => "webhooks",
            Self::Rates => "rates",
            Self::Housekeeper => "housekeeper",
            Self::VirtualTransfers => "virtual transfers",
            Self::Bookkeeper => "bookkeeper",
        }
    }
}
