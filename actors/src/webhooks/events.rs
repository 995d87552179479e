//! The events of a merchant: the list in order, and streams without gaps.

use std::{pin::pin, sync::Arc, time::Duration};

use engine::{
    event_list::{Cursor, CursorError, Epoch, EventList},
    ids::{EventId, MerchantId},
    mutant,
};
use storage::EventRecord;
use tokio::{sync::Notify, time::timeout};

use crate::{error::EngineError, webhooks::handle::Webhooks};

/// Maximum number of events per read.
const AT_ONCE: usize = 100;
/// Interval of reading the list without a notification, in case another engine added an event.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// The same while other engines add events.
const MAX_WAIT_AMONG_OTHERS: Duration = Duration::from_secs(1);

/// A position in a merchant's list of events, given by a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// Before the first event.
    Beginning,
    /// The position of a cursor.
    Cursor(Cursor),
    /// The current position of an event in the list.
    Event(EventId),
}

/// A page of a merchant's list of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPage {
    /// The events, in order.
    pub events: Vec<EventRecord>,
    /// The position after the last event of the page.
    pub next: Cursor,
    /// The epoch of the store.
    pub epoch: Epoch,
    /// Whether there are more.
    pub has_more: bool,
}

/// A stream of a merchant's events. No event is missed between two calls of [`EventWatch::next`].
pub struct EventWatch {
    webhooks: Webhooks,
    merchant: MerchantId,
    after: u64,
    epoch: Epoch,
    notifier: Arc<Notify>,
}

impl EventWatch {
    /// Returns the position after which it watches.
    #[must_use]
    pub const fn position(&self) -> Cursor {
        Cursor { epoch: self.epoch, seq: self.after }
    }

    /// Waits at most a few seconds for the next events; then returns `None`, and may be called again.
    ///
    /// # Errors
    /// Store errors.
    pub async fn next(&mut self) -> Result<Vec<EventRecord>, EngineError> {
        let mut notified = pin!(self.notifier.notified());
        // A notification counts from here on, so that an event stored after the read wakes this call.
        notified.as_mut().enable();
        let mut events = self.webhooks.read_events(self.merchant, self.after, AT_ONCE).await?;
        if events.is_empty() {
            // With or without a notification, the list is read again.
            let is_alone = self.webhooks.access.context.duties.is_alone();
            let _ = timeout(if is_alone { MAX_WAIT } else { MAX_WAIT_AMONG_OTHERS }, notified).await;
            events = self.webhooks.read_events(self.merchant, self.after, AT_ONCE).await?;
        }
        if let Some(last) = events.last() {
            self.after = last.seq + u64::from(mutant!("stream-leaves-out-events"));
        }
        Ok(events)
    }
}

impl Webhooks {
    /// Returns at most `limit` events of a merchant after a position. Events older than the retention are skipped.
    ///
    /// # Errors
    /// [`EngineError::Misplaced`], [`EngineError::EventForgotten`]; store errors.
    pub async fn events(&self, merchant: MerchantId, after: After, limit: usize) -> Result<EventPage, EngineError> {
        let list = self.event_list(merchant).await?;
        let after = self.event_place(merchant, &list, after).await?;
        let mut events = self.read_events(merchant, after, limit.saturating_add(1)).await?;
        let has_more = events.len() > limit;
        events.truncate(limit);
        let next = list.cursor(events.last().map_or(after, |event| event.seq));
        Ok(EventPage { events, next, epoch: list.epoch(), has_more })
    }

    async fn event_list(&self, merchant: MerchantId) -> Result<EventList, EngineError> {
        self.access.context.env.store.event_list(merchant).await.map_err(|e| self.access.read_failed(&e))
    }

    /// Returns the position in a merchant's list that a client's cursor refers to.
    async fn event_place(&self, merchant: MerchantId, list: &EventList, after: After) -> Result<u64, EngineError> {
        let event = match after {
            After::Beginning => return Ok(0),
            After::Cursor(cursor) => return list.resolve(cursor).map_err(EngineError::Misplaced),
            After::Event(event) => event,
        };
        let place = self.access.context.env.store.event_place(event).await.map_err(|e| self.access.read_failed(&e))?;
        match place.filter(|(owner, _)| *owner == merchant) {
            Some((_, place)) => Ok(place),
            None if list.epoch() == Epoch::FIRST => Err(EngineError::EventForgotten),
            // The event may be one from before a restore of the store that has not happened again yet.
            None => Err(EngineError::Misplaced(CursorError::EpochMismatch { resume_from: list.cursor(0) })),
        }
    }

    /// Returns an event of a merchant, and the epoch of its cursor.
    ///
    /// # Errors
    /// [`EngineError::EventForgotten`], also for another merchant's event; store errors.
    pub async fn event(&self, merchant: MerchantId, id: EventId) -> Result<(EventRecord, Epoch), EngineError> {
        let store = &self.access.context.env.store;
        let place = store.event_place(id).await.map_err(|e| self.access.read_failed(&e))?;
        let (_, place) = place.filter(|(owner, _)| *owner == merchant).ok_or(EngineError::EventForgotten)?;
        let event = store.event(merchant, place).await.map_err(|e| self.access.read_failed(&e))?;
        let event = event.filter(|event| event.id == id).ok_or(EngineError::EventForgotten)?;
        let list = store.event_list(merchant).await.map_err(|e| self.access.read_failed(&e))?;
        Ok((event, list.epoch()))
    }

    /// Watches a merchant's events after a position, or from now on.
    ///
    /// # Errors
    /// [`EngineError::TooManyStreams`], [`EngineError::Misplaced`], [`EngineError::EventForgotten`]; store errors.
    pub async fn watch_events(&self, merchant: MerchantId, after: Option<After>) -> Result<EventWatch, EngineError> {
        let notifier = self.notifier.stream_of(merchant).ok_or(EngineError::TooManyStreams)?;
        let list = self.event_list(merchant).await?;
        let after = match after {
            Some(after) => self.event_place(merchant, &list, after).await?,
            None => list.tail.last,
        };
        Ok(EventWatch { webhooks: self.clone(), merchant, after, epoch: list.epoch(), notifier })
    }

    async fn read_events(
        &self,
        merchant: MerchantId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<EventRecord>, EngineError> {
        self.access.context.env.store.events(merchant, after, limit).await.map_err(|e| self.access.read_failed(&e))
    }
}
