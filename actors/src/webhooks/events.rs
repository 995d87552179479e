//! A merchant's events as they happen: read from the list in order, and waited for without missing one.

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use engine::{
    event_list::{Cursor, Epoch, EventList, Misplaced},
    ids::{EventId, MerchantId},
};
use storage::EventRecord;
use tokio::{sync::Notify, time::timeout};

use crate::gateway::{Gateway, GatewayError};

/// Streams of one merchant at once.
const MAX_STREAMS: usize = 100;
/// Events given out at once.
const AT_ONCE: usize = 100;
/// The list is looked at this often even if nobody rings, in case another engine put something in.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Bells of the merchants whose events somebody waits for.
#[derive(Debug, Default)]
pub(crate) struct EventBells(Mutex<BTreeMap<MerchantId, Weak<Notify>>>);

impl EventBells {
    /// Wakes who waits for events of a merchant.
    pub(crate) fn ring(&self, merchant: MerchantId) {
        let mut bells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match bells.get(&merchant).map(Weak::upgrade) {
            None => {}
            Some(Some(bell)) => bell.notify_waiters(),
            Some(None) => drop(bells.remove(&merchant)),
        }
    }

    /// Returns a merchant's bell, unless it has as many holders as it may have.
    fn hold(&self, merchant: MerchantId) -> Option<Arc<Notify>> {
        let mut bells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = bells.entry(merchant).or_default();
        let bell = place.upgrade().unwrap_or_else(|| {
            let bell = Arc::new(Notify::new());
            *place = Arc::downgrade(&bell);
            bell
        });
        (Arc::strong_count(&bell) <= MAX_STREAMS).then_some(bell)
    }
}

/// A place in a merchant's list of events, as a client names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// Before the first event.
    Beginning,
    /// The place of a cursor that was given out.
    Cursor(Cursor),
    /// The place of an event in the list as it is now.
    Event(EventId),
}

/// A part of a merchant's list of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPage {
    /// The events, in order.
    pub events: Vec<EventRecord>,
    /// Where the next part begins: the place of the last one here.
    pub next: Cursor,
    /// The epoch of the store.
    pub epoch: Epoch,
    /// Whether there are more.
    pub has_more: bool,
}

/// Somebody who waits for a merchant's events. Nothing is missed between two calls of [`EventWatch::next`].
pub struct EventWatch {
    gateway: Gateway,
    merchant: MerchantId,
    after: u64,
    epoch: Epoch,
    bell: Arc<Notify>,
}

impl EventWatch {
    /// Returns the place after which it watches.
    #[must_use]
    pub const fn position(&self) -> Cursor {
        Cursor { epoch: self.epoch, place: self.after }
    }

    /// Waits for what comes next, a few seconds at most: then it returns none, and may be called again.
    ///
    /// # Errors
    /// Store errors.
    pub async fn next(&mut self) -> Result<Vec<EventRecord>, GatewayError> {
        let mut rung = pin!(self.bell.notified());
        // From here on a ring counts, so an event stored after the reading wakes us.
        rung.as_mut().enable();
        let mut events = self.gateway.read_events(self.merchant, self.after, AT_ONCE).await?;
        if events.is_empty() {
            // Rung or not, the list is looked at again.
            let _ = timeout(MAX_WAIT, rung).await;
            events = self.gateway.read_events(self.merchant, self.after, AT_ONCE).await?;
        }
        if let Some(last) = events.last() {
            self.after = last.seq;
        }
        Ok(events)
    }
}

impl Gateway {
    /// Returns a merchant's events after a place in its list, at most `limit`. Events older than what is kept are passed
    /// over.
    ///
    /// # Errors
    /// [`GatewayError::Misplaced`], [`GatewayError::EventForgotten`]; store errors.
    pub async fn events(&self, merchant: MerchantId, after: After, limit: usize) -> Result<EventPage, GatewayError> {
        let list = self.event_list(merchant).await?;
        let after = self.event_place(merchant, &list, after).await?;
        let mut events = self.read_events(merchant, after, limit.saturating_add(1)).await?;
        let has_more = events.len() > limit;
        events.truncate(limit);
        let next = list.cursor(events.last().map_or(after, |event| event.seq));
        Ok(EventPage { events, next, epoch: list.epoch(), has_more })
    }

    async fn event_list(&self, merchant: MerchantId) -> Result<EventList, GatewayError> {
        self.context().env.store.event_list(merchant).await.map_err(|e| self.read_failed(&e))
    }

    /// Returns the place in a merchant's list that a client names.
    async fn event_place(&self, merchant: MerchantId, list: &EventList, after: After) -> Result<u64, GatewayError> {
        let event = match after {
            After::Beginning => return Ok(0),
            After::Cursor(cursor) => return list.place(cursor).map_err(GatewayError::Misplaced),
            After::Event(event) => event,
        };
        let place = self.context().env.store.event_place(event).await.map_err(|e| self.read_failed(&e))?;
        match place.filter(|(owner, _)| *owner == merchant) {
            Some((_, place)) => Ok(place),
            None if list.epoch() == Epoch::FIRST => Err(GatewayError::EventForgotten),
            // It may be one that the store had before it was restored, and that is not announced again yet.
            None => Err(GatewayError::Misplaced(Misplaced::OtherEpoch { go_on: list.cursor(0) })),
        }
    }

    /// Returns an event of a merchant, and the epoch of its cursor.
    ///
    /// # Errors
    /// [`GatewayError::EventForgotten`], for another merchant's event too; store errors.
    pub async fn event(&self, merchant: MerchantId, id: EventId) -> Result<(EventRecord, Epoch), GatewayError> {
        let store = &self.context().env.store;
        let place = store.event_place(id).await.map_err(|e| self.read_failed(&e))?;
        let (_, place) = place.filter(|(owner, _)| *owner == merchant).ok_or(GatewayError::EventForgotten)?;
        let event = store.event(merchant, place).await.map_err(|e| self.read_failed(&e))?;
        let event = event.filter(|event| event.id == id).ok_or(GatewayError::EventForgotten)?;
        let list = store.event_list(merchant).await.map_err(|e| self.read_failed(&e))?;
        Ok((event, list.epoch()))
    }

    /// Watches a merchant's events from a place in its list on, or from now on.
    ///
    /// # Errors
    /// [`GatewayError::TooManyStreams`], [`GatewayError::Misplaced`], [`GatewayError::EventForgotten`]; store errors.
    pub async fn watch_events(&self, merchant: MerchantId, after: Option<After>) -> Result<EventWatch, GatewayError> {
        let bell = self.context().event_bells.hold(merchant).ok_or(GatewayError::TooManyStreams)?;
        let list = self.event_list(merchant).await?;
        let after = match after {
            Some(after) => self.event_place(merchant, &list, after).await?,
            None => list.tail.last,
        };
        Ok(EventWatch { gateway: self.clone(), merchant, after, epoch: list.epoch(), bell })
    }

    async fn read_events(
        &self,
        merchant: MerchantId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<EventRecord>, GatewayError> {
        self.context().env.store.events(merchant, after, limit).await.map_err(|e| self.read_failed(&e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merchant_has_so_many_streams_and_no_more_until_one_ends() {
        let bells = EventBells::default();
        let merchant = MerchantId::from_bits(1);
        let mut held: Vec<_> = (0..MAX_STREAMS).map(|_| bells.hold(merchant).unwrap()).collect();
        assert!(bells.hold(merchant).is_none());
        assert!(bells.hold(MerchantId::from_bits(2)).is_some(), "another merchant's are its own");
        held.pop();
        assert!(bells.hold(merchant).is_some());
        held.clear();
        bells.ring(merchant);
        assert!(!bells.0.lock().unwrap().contains_key(&merchant), "nobody waits, nothing is kept");
    }
}
