//! Work that waits for a quiet moment: the words of new payments go into the search index.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::{context::Context, timer::Timer};

/// How often it looks whether the moment is quiet.
const INTERVAL: Duration = Duration::from_secs(2);
/// Payments opened within an interval above which it is not.
const BUSY: u64 = 1_000;
/// How often it lets a busy moment pass before it works all the same: search has to read what is not indexed.
const MAX_PATIENCE: u32 = 150;
/// Payments indexed in one commit.
const BATCH: usize = 500;

#[derive(Debug)]
pub(crate) enum Msg {
    Look,
}

pub(crate) struct Housekeeper {
    pub(crate) context: Arc<Context>,
}

pub(crate) struct Round {
    opened_before: u64,
    waited: u32,
    next: Option<Timer>,
}

impl Actor for Housekeeper {
    type Msg = Msg;
    type State = Round;
    type Arguments = ();

    async fn pre_start(&self, myself: ActorRef<Msg>, (): ()) -> Result<Round, ActorProcessingErr> {
        Ok(Round { opened_before: 0, waited: 0, next: Some(Timer::send(&myself, INTERVAL, Msg::Look)) })
    }

    async fn handle(&self, myself: ActorRef<Msg>, _look: Msg, round: &mut Round) -> Result<(), ActorProcessingErr> {
        let opened = self.context.opened.load(Ordering::Relaxed);
        let is_busy = opened - round.opened_before > BUSY;
        round.opened_before = opened;
        if is_busy && round.waited < MAX_PATIENCE {
            round.waited += 1;
        } else {
            round.waited = 0;
            match self.context.env.store.index_search(self.context.now(), BATCH).await {
                Ok(BATCH) => {
                    round.next = None;
                    myself.cast(Msg::Look)?;
                    return Ok(());
                }
                Ok(_) => {}
                Err(error) => {
                    self.context.give_up_on(&error);
                    tracing::warn!(%error, "the search index could not be extended: {error}");
                }
            }
        }
        round.next = Some(Timer::send(&myself, INTERVAL, Msg::Look));
        Ok(())
    }
}
