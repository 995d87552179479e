//! Prices that an engine may use for a payment.

use std::collections::VecDeque;

/// How long after a price was replaced an engine that did not read it itself may still use it, milliseconds: such an engine reads
/// the stored price every 30 seconds, and may be paused for two minutes.
const USED_ELSEWHERE_MS: u64 = 200_000;

/// The durable readings of a price, newest first, each with the time at which it became durable, milliseconds.
#[derive(Debug, Clone)]
pub(crate) struct Readings<T>(VecDeque<(T, u64)>);

impl<T> Default for Readings<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T: Copy> Readings<T> {
    /// Returns the readings of a price that was in force before the first reading.
    pub(super) fn of(price: T) -> Self {
        Self(VecDeque::from([(price, 0)]))
    }

    /// Returns the newest reading.
    pub(super) fn last(&self) -> Option<T> {
        self.0.front().map(|(price, _)| *price)
    }

    /// Returns the readings that a payment may be worth.
    pub(crate) fn iter(&self) -> impl Iterator<Item = T> {
        self.0.iter().map(|(price, _)| *price)
    }

    /// Records a reading. The one before it stays valid, since a payment may be in progress, and where several engines share a store
    /// also those that were replaced recently.
    pub(super) fn record(&mut self, price: T, now_ms: u64, is_shared: bool) {
        self.0.push_front((price, now_ms));
        let is_used = |replaced_ms: u64| is_shared && replaced_ms + USED_ELSEWHERE_MS >= now_ms;
        // A reading is replaced when the one after it becomes durable.
        while self.0.len() > 2 && self.0.get(self.0.len() - 2).is_some_and(|(_, at)| !is_used(*at)) {
            self.0.pop_back();
        }
    }
}
