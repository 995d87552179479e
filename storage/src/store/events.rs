//! The lists of events.

use engine::{
    event_list::{Epoch, EventList},
    ids::{EventId, MerchantId},
    time::Timestamp,
};

use crate::{
    batch::EventRecord,
    store::{
        error::Read,
        topic::topic,
        wrapped::{Call, Wrapped},
    },
};

topic! {
    /// The lists of events.
    Events {
        /// Returns an event by its position in the merchant's list.
        event(merchant: MerchantId, seq: u64) -> Option<EventRecord>;

        /// Returns the merchant of an event, and the event's position in the merchant's list.
        event_place(event: EventId) -> Option<(MerchantId, u64)>;

        /// Returns at most `limit` events of a merchant after `after`, in order.
        events(merchant: MerchantId, after: u64, limit: usize) -> Vec<EventRecord>;

        /// Returns the epoch that a merchant's cursors need, and the end of its list of events.
        event_list(merchant: MerchantId) -> EventList;

        /// Returns when the oldest stored event happened.
        oldest_event() -> Option<Timestamp>;

        /// Returns the current epoch; [`Epoch::PENDING`] after a restore, until [`Write::BeginEpoch`](crate::Write::BeginEpoch) names it.
        epoch() -> Epoch;
    }
}
