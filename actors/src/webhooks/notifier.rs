//! Notifies of new events: the dispatcher of the outbox, and the streams of a merchant's events.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use engine::ids::MerchantId;
use engine::mutant;
use tokio::sync::Notify;

/// Maximum number of event streams per merchant.
const MAX_STREAMS: usize = 100;

/// Notifies of new events.
#[derive(Debug, Default)]
pub(crate) struct Notifier {
    outbox: Notify,
    events: EventNotifiers,
}

impl Notifier {
    /// Wakes the dispatcher and the streams of a merchant: it has a new event.
    pub(crate) fn announced(&self, merchant: MerchantId) {
        self.outbox_changed();
        self.has_event(merchant);
    }

    /// Wakes the dispatcher: the outbox has something new.
    pub(crate) fn outbox_changed(&self) {
        self.outbox.notify_one();
    }

    /// Wakes the streams of a merchant: it has a new event.
    pub(crate) fn has_event(&self, merchant: MerchantId) {
        if !mutant!("streams-not-woken") {
            self.events.notify(merchant);
        }
    }

    /// Waits until the outbox has something new.
    pub(crate) async fn outbox_change(&self) {
        self.outbox.notified().await;
    }

    /// Returns the notifier of a merchant's events, unless it has the maximum number of streams.
    pub(crate) fn stream_of(&self, merchant: MerchantId) -> Option<Arc<Notify>> {
        self.events.hold(merchant)
    }
}

/// Notifiers of the merchants with event streams.
#[derive(Debug, Default)]
struct EventNotifiers(Mutex<BTreeMap<MerchantId, Weak<Notify>>>);

impl EventNotifiers {
    /// Wakes the streams of a merchant.
    fn notify(&self, merchant: MerchantId) {
        let mut notifiers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match notifiers.get(&merchant).map(Weak::upgrade) {
            None => {}
            Some(Some(notifier)) => notifier.notify_waiters(),
            Some(None) => drop(notifiers.remove(&merchant)),
        }
    }

    /// Returns a merchant's notifier, unless it has the maximum number of holders.
    fn hold(&self, merchant: MerchantId) -> Option<Arc<Notify>> {
        let mut notifiers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = notifiers.entry(merchant).or_default();
        let notifier = place.upgrade().unwrap_or_else(|| {
            let notifier = Arc::new(Notify::new());
            *place = Arc::downgrade(&notifier);
            notifier
        });
        (Arc::strong_count(&notifier) <= MAX_STREAMS).then_some(notifier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merchant_has_so_many_streams_and_no_more_until_one_ends() {
        let notifiers = EventNotifiers::default();
        let merchant = MerchantId::from_bits(1);
        let mut held: Vec<_> = (0..MAX_STREAMS).map(|_| notifiers.hold(merchant).unwrap()).collect();
        assert!(notifiers.hold(merchant).is_none());
        assert!(notifiers.hold(MerchantId::from_bits(2)).is_some(), "another merchant's are its own");
        held.pop();
        assert!(notifiers.hold(merchant).is_some());
        held.clear();
        notifiers.notify(merchant);
        assert!(!notifiers.0.lock().unwrap().contains_key(&merchant), "nobody waits, nothing is kept");
    }
}
