//! Reads the prices of HIVE and HBD periodically, keeps the latest, and reports HBD that is off its peg.

use std::{sync::Arc, time::Duration};

use engine::{money::HbdPrice, payment::Rate, time::Timestamp};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use storage::{Batch, CommitError, Duty, Write};

use crate::{chain::ledger::Ledger, context::Context, duties::held::Term, timer::Timer};

/// Interval until a failed read is retried.
const RETRY: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) enum Msg {
    /// Read the prices.
    Read,
}

pub(crate) struct Rates {
    pub(crate) context: Arc<Context>,
    pub(crate) ledger: Arc<Ledger>,
}

pub(crate) struct State {
    next: Option<Timer>,
    /// Whether HBD was off its peg when last read.
    is_off_peg: bool,
}

impl Actor for Rates {
    type Msg = Msg;
    type State = State;
    type Arguments = ();

    async fn pre_start(&self, myself: ActorRef<Msg>, (): ()) -> Result<State, ActorProcessingErr> {
        if let Some(rate) = self.context.sound(self.context.env.store.rate().await)?.flatten() {
            self.ledger.set_rate(rate);
        }
        myself.cast(Msg::Read)?;
        Ok(State { next: None, is_off_peg: false })
    }

    async fn handle(&self, myself: ActorRef<Msg>, _read: Msg, state: &mut State) -> Result<(), ActorProcessingErr> {
        let wait = match self.context.duties.held(Duty::Rates) {
            Some(term) => self.read(state, term).await,
            None => self.follow(state).await,
        };
        state.next = Some(Timer::send(&myself, wait, Msg::Read));
        Ok(())
    }
}

/// Returns a price in US dollars for logs and metrics.
#[expect(clippy::float_arithmetic, reason = "shown, and never counted with")]
pub(crate) fn usd(price: HbdPrice) -> f64 {
    f64::from(u32::try_from(price.micro_usd()).unwrap_or(u32::MAX)) / 1_000_000.0
}

impl Rates {
    /// Reads the prices and stores them; returns when to read again.
    async fn read(&self, state: &mut State, term: Term) -> Duration {
        match self.ledger.nodes.price().await {
            Ok(Some(price)) => {
                let hbd = self.hbd_price().await;
                let rate = Rate { price, hbd, at: self.context.env.clock.now() };
                if let Err(error) = self.store(rate, term).await {
                    self.context.commit_failed(&error);
                    return RETRY;
                }
                self.compare_with_peg(hbd, state);
                self.context.settings.rate_interval
            }
            Ok(None) => self.context.settings.rate_interval,
            Err(error) => {
                tracing::debug!(%error, "cannot read the price of HIVE: {error}");
                RETRY
            }
        }
    }

    /// Stores prices; if another engine has stored others, adopts those.
    async fn store(&self, rate: Rate, term: Term) -> Result<(), CommitError> {
        let expected = self.stored_at();
        let stored = self.context.env.store.commit(term.guarding(Batch::of(Write::Rate { rate, expected }))).await;
        match stored {
            Ok(()) => self.ledger.set_rate(rate),
            Err(CommitError::Conflict { .. }) => self.learn().await,
            Err(_) => {}
        }
        stored
    }

    /// Adopts the prices stored by another engine; returns when to check again.
    async fn follow(&self, state: &mut State) -> Duration {
        self.learn().await;
        self.compare_with_peg(self.ledger.rate().and_then(|rate| rate.hbd), state);
        self.context.settings.background_interval().min(self.context.settings.rate_interval)
    }

    async fn learn(&self) {
        match self.context.sound(self.context.env.store.rate().await) {
            Ok(Some(Some(rate))) => self.ledger.set_rate(rate),
            Ok(_) => {}
            Err(error) => self.context.read_failed(&error),
        }
    }

    /// Returns when the current prices were read.
    fn stored_at(&self) -> Option<Timestamp> {
        self.ledger.rate().map(|rate| rate.at)
    }

    /// Returns the current price of HBD of a majority of the nodes, or the last one.
    async fn hbd_price(&self) -> Option<HbdPrice> {
        match self.ledger.nodes.hbd_price().await {
            Ok(price) => price,
            Err(error) => {
                tracing::debug!(%error, "cannot read the price of HBD: {error}");
                self.ledger.rate().and_then(|rate| rate.hbd)
            }
        }
    }

    /// Logs when HBD leaves the bounds of its peg, and when it is back.
    fn compare_with_peg(&self, hbd: Option<HbdPrice>, state: &mut State) {
        let peg = self.context.settings.hbd_peg;
        let usd = usd(hbd.unwrap_or(HbdPrice::PEG));
        let is_off_peg = hbd.is_some_and(|hbd| !hbd.is_within(peg.percent));
        if is_off_peg && !state.is_off_peg {
            let percent = peg.percent;
            let what = if peg.refuses { "payments in HBD are refused" } else { "payments in HBD use the market price" };
            tracing::warn!(usd, percent, "1 HBD costs {usd} USD, more than {percent} % off its peg: {what}");
        } else if state.is_off_peg && !is_off_peg {
            tracing::info!(usd, "1 HBD costs {usd} USD: it is at its peg again and is valued at one dollar");
        }
        state.is_off_peg = is_off_peg;
    }
}
