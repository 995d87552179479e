//! The leases of the engines, and the duties that they hold.

use engine::time::Timestamp;

use crate::{
    duty::{Duty, EngineId},
    store::{
        error::Read,
        topic::topic,
        wrapped::{Call, Wrapped},
    },
};

/// An engine that has a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineLease {
    /// Whose it is.
    pub engine: EngineId,
    /// Since when it has one.
    pub since: Timestamp,
    /// Until when, by the store's clock, unless it is renewed.
    pub until: Timestamp,
}

/// A duty and who holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DutyRecord {
    /// The duty.
    pub duty: Duty,
    /// The engine that took it last; none once it was released.
    pub holder: Option<EngineId>,
    /// How often the holder has changed.
    pub term: u64,
}

/// The engines and their duties, from one snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Membership {
    /// The engines with a lease, also one that has run out and was not ended yet.
    pub engines: Vec<EngineLease>,
    /// Every duty that was ever taken.
    pub duties: Vec<DutyRecord>,
}

impl Membership {
    /// Returns an engine's lease.
    #[must_use]
    pub fn lease(&self, engine: EngineId) -> Option<&EngineLease> {
        self.engines.iter().find(|lease| lease.engine == engine)
    }

    /// Returns until when a duty is held, unless its holder renews its lease.
    #[must_use]
    pub fn until(&self, record: &DutyRecord) -> Option<Timestamp> {
        self.lease(record.holder?).map(|lease| lease.until)
    }
}

topic! {
    /// Duties and the leases of the engines that hold them.
    Duties {
        /// Returns the engines that have a lease: a few rows.
        leases() -> Vec<EngineLease>;
        /// Returns the engines that have a lease, and who holds which duty.
        membership() -> Membership;
    }
}
