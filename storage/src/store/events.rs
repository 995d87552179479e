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
        /// Returns an event of a merchant by its place in the merchant's list.
        event(merchant: MerchantId, seq: u64) -> Option<EventRecord>;

        /// Returns whose an event is, and its place in the list.
        event_place(event: EventId) -> Option<(MerchantId, u64)>;

        /// Returns a merchant's events after `after`, in order, at most `limit`.
        events(merchant: MerchantId, after: u64, limit: usize) -> Vec<EventRecord>;

        /// Returns what a merchant's cursors are read with, and the end of its list of events.
        event_list(merchant: MerchantId) -> EventList;

        /// Returns when the oldest event that is kept happened.
        oldest_event() -> Option<Timestamp>;

        /// Returns the current epoch; [`Epoch::PENDING`] after a restore, until [`Write::BeginEpoch`](crate::Write::BeginEpoch) names it.
        epoch() -> Epoch;
    }
}
