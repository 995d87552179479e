//! The actors that the supervisor starts.

/// An actor of the supervisor.
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

// A child that is missing here has no metric of its crashes.
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

    /// Returns whether the supervisor restarts it. The other actors hold the address of each remaining one: without it
    /// the engine shuts down.
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
