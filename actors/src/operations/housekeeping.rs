//! Background maintenance: indexes new payments for search, deletes old idempotency keys, events and personal data
//! after their retention, credits transfers that preceded their session, and invoices past months.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use engine::{
    account::AccountName, audit, billing::Month, idempotency::KEY_LIFETIME, ids::MerchantId, ledger::TxId, mutant,
    ownership::AuthorityDigest, time::Timestamp,
};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use storage::{Batch, Duty, WaitingTransferKey, Write};

use crate::{
    chain::ledger::Ledger,
    context::Context,
    duties::held::Term,
    error::EngineError,
    merchants::{
        handle::Merchants,
        messages::{Change, MerchantMsg},
    },
    operations::{billing, retention::Pass},
    payments::{handle::Payments, waiting},
    timer::Timer,
};

/// Opened payments per second above which maintenance waits.
const BUSY_PER_SECOND: u128 = 500;
/// Maximum time that maintenance waits: search must read payments that are not indexed.
const MAX_PATIENCE: Duration = Duration::from_secs(300);
/// Payments indexed in one commit.
const BATCH: usize = 500;
/// Minimum number of unindexed payments for a commit: reading fewer costs a search little.
const ENOUGH: u64 = 50;
/// Maximum time that fewer wait.
const INDEX_INTERVAL: Duration = Duration::from_secs(300);
/// Interval of deleting expired idempotency keys.
const FORGET_INTERVAL: Duration = Duration::from_secs(300);
/// Interval of checks for invoices whose session ended unpaid, and of retries after a failure.
const BILL_INTERVAL: Duration = Duration::from_secs(3_600);
const BILL_RETRY: Duration = Duration::from_secs(60);
/// Maximum number of commits that delete old keys, and of commits that delete old events, per run; the rest waits for
/// the next run.
const PRUNINGS: usize = 50;
/// Claims that are read and deleted at once.
const CLAIMS: usize = 1_000;
/// Retention of claims without a merchant after their transactions expired.
const CLAIM_RETENTION: Duration = Duration::from_secs(7 * 86_400);
/// Accounts processed at once.
const ACCOUNTS: usize = 1_000;

#[derive(Debug)]
pub(crate) enum Msg {
    /// Run the due tasks.
    Look,
    /// Continue with the transfers that wait for their sessions.
    Attach,
}

pub(crate) struct Housekeeper {
    pub(crate) context: Arc<Context>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) payments: Payments,
    pub(crate) merchants: Merchants,
}

pub(crate) struct Round {
    opened_before: u64,
    /// How long maintenance has waited.
    waited: Duration,
    /// The number of opened payments at the last complete indexing, and the time of the next one for a few payments.
    indexed_up_to: u64,
    index_at: Timestamp,
    forget_at: Timestamp,
    /// The time of the next billing check, and the month up to which it is done.
    bill_at: Timestamp,
    billed: Option<Month>,
    /// The position in the claims.
    claims_after: Option<TxId>,
    /// The position in the waiting transfers.
    unmatched_after: Option<WaitingTransferKey>,
    personal: Pass,
    next: Option<Timer>,
}

impl Housekeeper {
    /// Adds words of new payments to the search index; returns whether there are more.
    async fn index(&self, round: &mut Round, opened: u64) -> bool {
        let now = self.context.now();
        if opened - round.indexed_up_to < ENOUGH && now < round.index_at {
            return false;
        }
        match self.context.env.store.index_search(now, BATCH).await {
            Ok(BATCH) => return true,
            Ok(_) => (round.indexed_up_to, round.index_at) = (opened, now + INDEX_INTERVAL),
            Err(error) => {
                self.context.commit_failed(&error);
                tracing::warn!(%error, "cannot extend the search index: {error}");
            }
        }
        false
    }

    /// Idempotency keys expire after a day; their rows are deleted later.
    async fn forget_keys(&self, round: &mut Round, term: Term) {
        let now = self.context.now();
        if now < round.forget_at {
            return;
        }
        round.forget_at = now + FORGET_INTERVAL;
        self.forget_dead_keys(now, term).await;
        self.forget_events(now, term).await;
        self.unwatch_accounts(now).await;
        self.forget_claims(round, term).await;
    }

    /// Claims for other servers are deleted some days after their transactions expired: a repeated payment is then
    /// refused as expired. Claims of transfers to a watched account are sales of its merchant, and remain.
    async fn forget_claims(&self, round: &mut Round, term: Term) {
        let (store, watched) = (&self.context.env.store, &self.ledger.watched);
        let expired_before = self.ledger.view.irreversible_time().minus(CLAIM_RETENTION);
        for _ in 0..PRUNINGS {
            let (found, next) = match store.forgettable_claims(expired_before, round.claims_after, CLAIMS).await {
                Ok(walked) => walked,
                Err(error) => return self.context.read_failed(&error),
            };
            round.claims_after = next;
            let forgotten = found.into_iter().filter(|claimed| !watched.contains(&claimed.pay_to));
            let forgotten: Vec<_> = forgotten.map(|claimed| claimed.tx_id).collect();
            if !forgotten.is_empty()
                && let Err(error) = store.commit(term.guarding(Batch::of(Write::ForgetClaims(forgotten)))).await
            {
                return self.context.commit_failed(&error);
            }
            if next.is_none() {
                return;
            }
        }
    }

    /// Deletes at least as many expired keys as were created since the last run, because stored keys count against
    /// their merchants.
    async fn forget_dead_keys(&self, now: Timestamp, term: Term) {
        let kept = if mutant!("keys-deleted-early") { Duration::from_secs(3_600) } else { KEY_LIFETIME };
        let (store, made_before) = (&self.context.env.store, now.minus(kept));
        for _ in 0..PRUNINGS {
            match store.oldest_key().await {
                Ok(Some(oldest)) if oldest < made_before => {}
                Ok(_) => return,
                Err(error) => return self.context.read_failed(&error),
            }
            if let Err(error) = store.commit(term.guarding(Batch::of(Write::Forget { made_before }))).await {
                return self.context.commit_failed(&error);
            }
        }
    }

    /// A month is past when all of its blocks are scanned and irreversible: then its invoices are created.
    async fn bill(&self, round: &mut Round) {
        let (now, over) = (self.context.now(), Month::of(self.ledger.view.irreversible_time()));
        let over = if mutant!("invoices-before-the-month-ends") { over.next() } else { over };
        let is_time = now >= round.bill_at || round.billed != Some(over);
        if !is_time || self.context.settings.billing.merchant.is_none() || !self.ledger.view.is_followed() {
            return;
        }
        round.billed = Some(over);
        let done = billing::bill_what_is_over(&self.context, &self.payments, over).await;
        // An invalid setting is not retried.
        let is_vain = matches!(done, Ok(()) | Err(EngineError::NoOperator));
        round.bill_at = now + if is_vain { BILL_INTERVAL } else { BILL_RETRY };
    }

    /// Applies or drops pending changes of proven accounts when due.
    async fn settle_accounts(&self) {
        match self.context.env.store.pending_accounts(self.context.now(), ACCOUNTS).await {
            Ok(due) => {
                for id in due {
                    let Some(active) = self.authorities_of(id).await else { continue };
                    let (change, by) = (Change::Settle(active), audit::Actor::default());
                    let _ = self.merchants.tell(MerchantMsg::Change { id, change, by, reply: None });
                }
            }
            Err(error) => self.context.read_failed(&error),
        }
    }

    /// Returns the active authorities on which a merchant's pending change depends; `None` if it must be checked again
    /// later.
    async fn authorities_of(&self, id: MerchantId) -> Option<BTreeMap<AccountName, AuthorityDigest>> {
        let read = self.context.sound(self.context.env.store.merchant(id).await);
        let merchant = read.map_err(|error| self.context.read_failed(&error)).ok()?.flatten()?;
        let pending = merchant.ownership.pending.as_ref()?;
        if !pending.is_proven() {
            return Some(BTreeMap::new());
        }
        match self.ledger.authorities(&BTreeSet::from([merchant.hive_account, pending.account])).await {
            Ok(found) => Some(found.iter().map(|(account, active)| (*account, AuthorityDigest::of(active))).collect()),
            Err(error) => {
                tracing::info!(merchant.id = %id, "account change of merchant {id} delayed until the nodes respond: {error}");
                None
            }
        }
    }

    /// Stops watching accounts that their merchants left long ago.
    async fn unwatch_accounts(&self, now: Timestamp) {
        match self.context.env.store.retired_accounts(now, ACCOUNTS).await {
            Ok(retired) if retired.is_empty() => {}
            Ok(retired) => drop(self.merchants.tell(MerchantMsg::Unwatch(retired))),
            Err(error) => self.context.read_failed(&error),
        }
    }

    /// Deletes events and deliveries after their retention.
    async fn forget_events(&self, now: Timestamp, term: Term) {
        let kept = self.context.settings.event_retention / if mutant!("events-deleted-early") { 2 } else { 1 };
        let (store, happened_before) = (&self.context.env.store, now.minus(kept));
        let mut before = None;
        for _ in 0..PRUNINGS {
            match store.oldest_event().await {
                // An event with a damaged position remains the oldest.
                Ok(Some(oldest)) if oldest < happened_before && before != Some(oldest) => before = Some(oldest),
                Ok(_) => return,
                Err(error) => return self.context.read_failed(&error),
            }
            if let Err(error) = store.commit(term.guarding(Batch::of(Write::Prune { happened_before }))).await {
                return self.context.commit_failed(&error);
            }
        }
    }
}

impl Actor for Housekeeper {
    type Msg = Msg;
    type State = Round;
    type Arguments = ();

    async fn pre_start(&self, myself: ActorRef<Msg>, (): ()) -> Result<Round, ActorProcessingErr> {
        let now = self.context.now();
        let next = Some(Timer::send(&myself, self.context.settings.background_interval(), Msg::Look));
        Ok(Round {
            opened_before: 0,
            waited: Duration::ZERO,
            indexed_up_to: 0,
            index_at: now,
            forget_at: now + FORGET_INTERVAL,
            bill_at: now + FORGET_INTERVAL,
            billed: None,
            claims_after: None,
            unmatched_after: None,
            personal: Pass::starting(now + FORGET_INTERVAL),
            next,
        })
    }

    async fn handle(&self, myself: ActorRef<Msg>, msg: Msg, round: &mut Round) -> Result<(), ActorProcessingErr> {
        match msg {
            Msg::Look => self.look(&myself, round).await,
            Msg::Attach => self.attach_waiting(&myself, round).await,
        }
    }
}

impl Housekeeper {
    async fn look(&self, myself: &ActorRef<Msg>, round: &mut Round) -> Result<(), ActorProcessingErr> {
        let opened = self.payments.opened();
        let Some(term) = self.context.duties.held(Duty::Housekeeping) else {
            round.next = Some(Timer::send(myself, self.context.settings.background_interval(), Msg::Look));
            return Ok(());
        };
        let interval = self.context.settings.background_interval();
        let is_busy = u128::from(opened - round.opened_before) * 1_000 > BUSY_PER_SECOND * interval.as_millis();
        round.opened_before = opened;
        if is_busy && round.waited < MAX_PATIENCE {
            round.waited += interval;
        } else {
            round.waited = Duration::ZERO;
            if self.index(round, opened).await {
                round.next = None;
                myself.cast(Msg::Look)?;
                return Ok(());
            }
            self.forget_keys(round, term).await;
            self.bill(round).await;
            self.settle_accounts().await;
            round.personal.go_on(&self.context, &self.payments).await;
            return self.attach_waiting(myself, round).await;
        }
        round.next = Some(Timer::send(myself, interval, Msg::Look));
        Ok(())
    }

    /// Processes the next transfers that wait for their sessions, and continues until all are processed: after a
    /// restore, or if third parties name sessions that never existed, many wait in vain.
    async fn attach_waiting(&self, myself: &ActorRef<Msg>, round: &mut Round) -> Result<(), ActorProcessingErr> {
        let after = round.unmatched_after.take();
        round.unmatched_after = waiting::attach_waiting(&self.context, self.payments.registry(), after).await;
        round.next = if round.unmatched_after.is_some() {
            myself.cast(Msg::Attach)?;
            None
        } else {
            Some(Timer::send(myself, self.context.settings.background_interval(), Msg::Look))
        };
        Ok(())
    }
}
