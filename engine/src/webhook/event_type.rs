//! What events tell of, and which of them a merchant's endpoint is sent.

use crate::fields::Violation;

/// What an event tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    /// A payment reached another status. Every endpoint is sent it.
    StatusChanged,
    /// A payment has exceptions that it did not have before.
    Exception,
    /// A payment was settled by x402 for a resource of the merchant's server.
    X402Settled,
    /// A change of a proven account was requested, cancelled, or took effect.
    AccountChange,
}

impl EventType {
    /// Every type, in a fixed order.
    pub const ALL: [Self; 4] = [Self::StatusChanged, Self::Exception, Self::X402Settled, Self::AccountChange];

    /// Returns the wire name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StatusChanged => "payment.status_changed",
            Self::Exception => "payment.exception",
            Self::X402Settled => "x402.settled",
            Self::AccountChange => "merchant.account_change",
        }
    }

    /// Parses the wire name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Returns whether it tells of a payment.
    #[must_use]
    pub const fn is_payment_event(self) -> bool {
        matches!(self, Self::StatusChanged | Self::Exception)
    }

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// The events that a merchant's endpoint is sent. The list of events holds all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscriptions(u32);

impl Default for Subscriptions {
    fn default() -> Self {
        Self(EventType::StatusChanged.bit())
    }
}

impl Subscriptions {
    /// Checks a list of words.
    ///
    /// # Errors
    /// An unknown word; a list without the one event that every endpoint is sent.
    pub fn check(words: &[String]) -> Result<Self, Violation> {
        let mut bits = 0;
        for word in words {
            let known = EventType::ALL.map(EventType::as_str).join(", ");
            let unknown = || Violation::new("webhookEvents", format_args!("must hold only {known}"));
            bits |= EventType::parse(word).ok_or_else(unknown)?.bit();
        }
        Self::from_bits(bits).ok_or_else(|| {
            Violation::new("webhookEvents", "must hold payment.status_changed, which every endpoint is sent")
        })
    }

    /// Returns whether the endpoint is sent such an event.
    #[must_use]
    pub const fn has(self, kind: EventType) -> bool {
        self.0 & kind.bit() != 0
    }

    /// Returns the types, in their order.
    pub fn types(self) -> impl Iterator<Item = EventType> {
        EventType::ALL.into_iter().filter(move |kind| self.has(*kind))
    }

    /// Returns the stored form.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Reads the stored form; none where it has a bit that stands for nothing, or lacks the first.
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
    fn a_list_of_events_reads_back_and_never_lacks_the_first() {
        let words = |words: &[&str]| Subscriptions::check(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
        let both = words(&["x402.settled", "payment.status_changed"]).unwrap();
        assert_eq!(both.types().collect::<Vec<_>>(), [EventType::StatusChanged, EventType::X402Settled]);
        assert_eq!(Subscriptions::from_bits(both.bits()), Some(both));
        for wrong in [&[][..], &["x402.settled"], &["payment.status_changed", "payment.created"]] {
            assert_eq!(words(wrong).unwrap_err().field, "webhookEvents");
        }
        assert_eq!((Subscriptions::from_bits(0), Subscriptions::from_bits(16 | 1)), (None, None));
        assert_eq!(Subscriptions::default().types().collect::<Vec<_>>(), [EventType::StatusChanged]);
    }
}
