//! Event types and subscriptions of webhook endpoints.

use crate::fields::Violation;

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    /// The status of a payment changed. Every endpoint is subscribed to it.
    StatusChanged,
    /// A payment has new exceptions.
    Exception,
    /// An x402 payment was settled for a resource of the merchant's server.
    X402Settled,
    /// A change of a verified account was requested, was cancelled, or took effect.
    AccountChange,
    /// A refund of a payment is irreversible.
    RefundCompleted,
    /// A transfer to a merchant's account matches no payment.
    TransferUnmatched,
}

impl EventType {
    /// Every type, in a fixed order.
    pub const ALL: [Self; 6] = [
        Self::StatusChanged,
        Self::Exception,
        Self::X402Settled,
        Self::AccountChange,
        Self::RefundCompleted,
        Self::TransferUnmatched,
    ];

    /// Returns the wire name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StatusChanged => "payment.status_changed",
            Self::Exception => "payment.exception",
            Self::X402Settled => "x402.settled",
            Self::AccountChange => "merchant.account_change",
            Self::RefundCompleted => "refund.completed",
            Self::TransferUnmatched => "transfer.unmatched",
        }
    }

    /// Parses the wire name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Returns whether it is an event of a payment.
    #[must_use]
    pub const fn is_payment_event(self) -> bool {
        matches!(self, Self::StatusChanged | Self::Exception | Self::RefundCompleted)
    }

    pub(super) const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// The event types that an endpoint is subscribed to. The event list contains all types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscriptions(u32);

impl Default for Subscriptions {
    fn default() -> Self {
        Self(EventType::StatusChanged.bit())
    }
}

impl Subscriptions {
    /// Validates a list of event types.
    ///
    /// # Errors
    /// An unknown type, or a list without the mandatory type.
    pub fn check(words: &[String]) -> Result<Self, Violation> {
        let mut bits = 0;
        for word in words {
            let known = EventType::ALL.map(EventType::as_str).join(", ");
            let unknown = || Violation::new("webhookEvents", format_args!("must contain only {known}"));
            bits |= EventType::parse(word).ok_or_else(unknown)?.bit();
        }
        Self::from_bits(bits).ok_or_else(|| {
            Violation::new(
                "webhookEvents",
                "must contain payment.status_changed, to which every endpoint is subscribed",
            )
        })
    }

    /// Returns whether the endpoint is subscribed to `kind`.
    #[must_use]
    pub const fn has(self, kind: EventType) -> bool {
        self.0 & kind.bit() != 0
    }

    /// Returns the types in order.
    pub fn types(self) -> impl Iterator<Item = EventType> {
        EventType::ALL.into_iter().filter(move |kind| self.has(*kind))
    }

    /// Returns the stored form.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Decodes the stored form; `None` for unknown bits and without the mandatory type.
    #[must_use]
    pub fn from_bits(bits: u32) -> Option<Self> {
        let known = EventType::ALL.into_iter().fold(0, |all, kind| all | kind.bit());
        (bits & !known == 0 && bits & EventType::StatusChanged.bit() != 0).then_some(Self(bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscriptions_round_trip_and_require_status_changed() {
        let words = |words: &[&str]| Subscriptions::check(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
        let both = words(&["x402.settled", "payment.status_changed"]).unwrap();
        assert_eq!(both.types().collect::<Vec<_>>(), [EventType::StatusChanged, EventType::X402Settled]);
        assert_eq!(Subscriptions::from_bits(both.bits()), Some(both));
        for wrong in [&[][..], &["x402.settled"], &["payment.status_changed", "payment.created"]] {
            assert_eq!(words(wrong).unwrap_err().field, "webhookEvents");
        }
        assert_eq!((Subscriptions::from_bits(0), Subscriptions::from_bits(64 | 1)), (None, None));
        assert_eq!(Subscriptions::default().types().collect::<Vec<_>>(), [EventType::StatusChanged]);
    }
}
