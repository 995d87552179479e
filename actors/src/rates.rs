//! Reads the witnesses' price of HIVE now and then, and keeps the last one.

use std::{sync::Arc, time::Duration};

use engine::payment::Rate;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use storage::{Batch, Write};

use crate::{context::Context, timer::Timer};

/// How soon a failed reading is tried again.
const RETRY: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) enum Msg {
    /// Read the price.
    Read,
}

pub(crate) struct Rates {
    pub(crate) context: Arc<Context>,
}

impl Actor for Rates {
    type Msg = Msg;
    type State = Option<Timer>;
    type Arguments = ();

    async fn pre_start(&self, myself: ActorRef<Msg>, (): ()) -> Result<Option<Timer>, ActorProcessingErr> {
        if let Some(rate) = self.context.sound(self.context.env.store.rate().await)?.flatten() {
            self.context.set_rate(rate);
        }
        myself.cast(Msg::Read)?;
        Ok(None)
    }

    async fn handle(
        &self,
        myself: ActorRef<Msg>,
        _read: Msg,
        next: &mut Option<Timer>,
    ) -> Result<(), ActorProcessingErr> {
        let wait = match self.context.nodes.price().await {
            Ok(Some(price)) => {
                let rate = Rate { price, at: self.context.env.clock.now() };
                match self.context.env.store.commit(Batch::of(Write::Rate(rate))).await {
                    Ok(()) => self.context.set_rate(rate),
                    Err(error) => self.context.give_up_on(&error),
                }
                self.context.settings.rate_interval
            }
            Ok(None) => self.context.settings.rate_interval,
            Err(error) => {
                tracing::debug!(%error, "the price of HIVE cannot be read: {error}");
                RETRY
            }
        };
        *next = Some(Timer::send(&myself, wait, Msg::Read));
        Ok(())
    }
}
