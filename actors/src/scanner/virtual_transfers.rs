//! Reads transfers that blocks do not contain: recurrent transfers, and withdrawals from savings.
//!
//! They pay no session but must be listed for the merchant. This reader follows the scanner independently; if no node
//! serves account history, it waits and logs that once.

use std::{sync::Arc, time::Duration};

use engine::ledger::Transfer;
use futures_util::future::join_all;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use storage::{Batch, Duty, ReadError, Unmatched, UnmatchedReason, Write};

use crate::{
    chain::{ledger::Ledger, nodes::pool::NodesError, notes},
    context::Context,
    duties::Term,
    scanner::unknown_operations,
    timer::Timer,
    webhooks::{announcements::unmatched_events, notifier::Notifier},
};

/// Blocks per request.
const AT_ONCE: u32 = 16;
/// Uneventful blocks after which the position is stored.
const STORE_EVERY: u32 = 100;
/// Number of newer blocks, ten minutes, that the scanner may have read before nodes without a block no longer count as
/// merely lagging.
const MAX_LAG: u32 = 200;
/// Backoff for nodes without account history.
const AFTER_FAILURE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) enum Msg {
    /// Compare with the scanner's progress.
    Look,
}

pub(crate) struct VirtualTransfers {
    pub(crate) context: Arc<Context>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) notifier: Arc<Notifier>,
}

pub(crate) struct Position {
    /// The last block read; `None` before the scanner has started.
    read: Option<u32>,
    stored: Option<u32>,
    was_available: bool,
    next: Option<Timer>,
}

impl Actor for VirtualTransfers {
    type Msg = Msg;
    type State = Position;
    type Arguments = ();

    async fn pre_start(&self, myself: ActorRef<Msg>, (): ()) -> Result<Position, ActorProcessingErr> {
        let stored = self.stored().await?;
        let next = Some(Timer::send(&myself, self.context.settings.background_interval(), Msg::Look));
        Ok(Position { read: stored, stored, was_available: true, next })
    }

    async fn handle(
        &self,
        myself: ActorRef<Msg>,
        _look: Msg,
        position: &mut Position,
    ) -> Result<(), ActorProcessingErr> {
        let wait = match self.read_on(position).await {
            Ok(more) => {
                position.was_available = true;
                if more { Duration::ZERO } else { self.context.settings.background_interval() }
            }
            Err(error) => {
                if position.was_available {
                    tracing::warn!(%error, "cannot read recurrent transfers and savings: {error}");
                }
                position.was_available = false;
                AFTER_FAILURE
            }
        };
        position.next = Some(Timer::send(&myself, wait, Msg::Look));
        Ok(())
    }
}

impl VirtualTransfers {
    async fn stored(&self) -> Result<Option<u32>, ReadError> {
        let note = self.context.env.store.note(notes::VIRTUAL_TRANSFERS).await?;
        Ok(note.and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes))
    }

    /// Reads the next blocks below the scanner's position; returns whether there are more.
    async fn read_on(&self, position: &mut Position) -> Result<bool, NodesError> {
        let Some(term) = self.context.duties.held(Duty::VirtualTransfers) else {
            position.read = None;
            return Ok(false);
        };
        if !self.ledger.view.is_followed() {
            return Ok(false);
        }
        let scanned = self.ledger.view.status().scanned_num;
        if position.read.is_none() {
            position.stored = self.stored().await.unwrap_or_default();
            position.read = position.stored;
        }
        let Some(read) = position.read else { return Ok(false) };
        if scanned <= read {
            // After a start the scanner's stored position may be lower: it is stored less often.
            return Ok(false);
        }
        let wanted = read + 1..=scanned.min(read.saturating_add(AT_ONCE));
        let requested = join_all(wanted.clone().map(|number| self.ledger.nodes.virtual_operations(number))).await;
        // Read after the blocks: an account may have been added while they were requested.
        if let Err(error) = self.ledger.watch_added().await {
            self.context.read_failed(&error);
            return Ok(false);
        }
        let mut last = read;
        let mut kept = Vec::new();
        let mut stopped_by = None;
        for (number, response) in wanted.clone().zip(requested) {
            match response {
                Ok(Some(returned)) => {
                    last = number;
                    unknown_operations::note(&self.context, number, &returned.unknown);
                    kept.extend(
                        returned.transfers.into_iter().filter(|transfer| self.ledger.watched.contains(&transfer.to)),
                    );
                }
                // These nodes lag behind those of the scanner. It is logged if that persists.
                Ok(None) => {
                    stopped_by = (scanned - number > MAX_LAG).then_some(NodesError::Unknown(number));
                    break;
                }
                Err(error) => {
                    stopped_by = Some(error);
                    break;
                }
            }
        }
        if !kept.is_empty() || last - position.stored.unwrap_or(0) >= STORE_EVERY {
            self.store(position, last, kept, term).await;
        } else {
            position.read = Some(last);
        }
        stopped_by.map_or(Ok(last == *wanted.end() && last < scanned), Err)
    }

    /// Stores the transfers, their events and the position in one commit; after a failure the blocks are read again.
    async fn store(&self, position: &mut Position, last: u32, kept: Vec<Transfer>, term: Term) {
        let reason = UnmatchedReason::UnsupportedOperation;
        let kept: Vec<_> = kept.into_iter().map(|transfer| Unmatched::open(transfer, reason)).collect();
        let unmatched: Vec<_> = kept.iter().collect();
        let events = match unmatched_events(&self.context, &unmatched, self.context.now()).await {
            Ok(events) => events,
            Err(error) => {
                self.context.read_failed(&error);
                position.read = None;
                return;
            }
        };
        let (merchants, events): (Vec<_>, Vec<_>) = events.into_iter().unzip();
        let stored = [notes::virtual_transfers_read_to(last, position.stored)];
        let batch: Batch = kept.into_iter().map(Write::Unmatched).chain(events).chain(stored).collect();
        match self.context.env.store.commit(term.guarding(batch)).await {
            Ok(()) => {
                (position.read, position.stored) = (Some(last), Some(last));
                merchants.into_iter().for_each(|merchant| self.notifier.announced(merchant));
            }
            Err(error) => {
                self.context.commit_failed(&error);
                // Another engine may have continued.
                position.read = None;
                tracing::warn!(%error, "cannot store unmatched transfers: {error}");
            }
        }
    }
}
