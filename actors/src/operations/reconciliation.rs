//! The daily reconciliation: the ledger entries of every merchant's account on a day (UTC, by the chain's clock) are
//! compared with the ledger's own history of the account.
//!
//! It runs in the background, one account after the other. If no node serves account history, the day is `not_checked`,
//! which is not `ok`; it is retried every hour.

use std::{sync::Arc, time::Duration};

use engine::{
    account::AccountName,
    audit::{self, Entry},
    ids::MerchantId,
    ledger::{Transfer, match_refund_memo},
    mutant,
    ownership::merchant_in_proof_memo,
    payment::Payment,
    reconciliation::{Day, Difference, LedgerEntry, Outcome, compare, end_of_day},
    time::Timestamp,
};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use storage::{Batch, Duty, MerchantQuery, ReadError, Write};

use crate::{
    chain::{ledger::Ledger, nodes::pool::NodesError, notes},
    context::Context,
    duties::Term,
    timer::Timer,
};

/// Delay after a day's end: account history may lag behind the blocks.
const SETTLES: Duration = Duration::from_secs(600);
/// Delay after a difference before the day is checked again and an alarm is raised.
const RECHECK: Duration = Duration::from_secs(600);
/// Delay after nodes returned no history.
const AFTER_FAILURE: Duration = Duration::from_secs(3_600);
/// Maximum number of checks of a day.
const MAX_TRIES: u32 = 24;
/// Consecutive accounts without a response after which the check stops.
const MAX_SILENCE: u32 = 3;
/// Time after the registration of an account from which it is watched for certain.
const WATCHED_AFTER: Duration = Duration::from_secs(60);
/// Ledger entries read at once.
const PAGE: usize = 500;

#[derive(Debug)]
pub(crate) enum Msg {
    /// Check whether a day is over, or continue the running check.
    Look,
}

pub(crate) struct Reconciler {
    pub(crate) context: Arc<Context>,
    pub(crate) ledger: Arc<Ledger>,
}

#[derive(Default)]
pub(crate) struct State {
    /// The first block time that is not reconciled; `None` before it is read.
    from: Option<Timestamp>,
    /// The running check.
    check: Option<Check>,
    tries: u32,
    not_before: Timestamp,
    /// The remaining accounts of a day with a difference.
    again: Option<Again>,
    next: Option<Timer>,
}

/// The remaining accounts of a day.
#[derive(Debug, Default)]
struct Again {
    /// Accounts with differences or without a response; the others agreed.
    accounts: Vec<AccountName>,
    /// The number of operations of those that agreed.
    operations: u64,
}

/// A running check.
struct Check {
    day: Day,
    /// The last compared account.
    after: Option<AccountName>,
    silence: u32,
    differing: Vec<(AccountName, Difference)>,
    again: Again,
}

/// Why an account was not compared.
#[derive(Debug, thiserror::Error)]
enum Unchecked {
    #[error(transparent)]
    Nodes(#[from] NodesError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl Actor for Reconciler {
    type Msg = Msg;
    type State = State;
    type Arguments = ();

    async fn pre_start(&self, myself: ActorRef<Msg>, (): ()) -> Result<State, ActorProcessingErr> {
        let next = Some(Timer::send(&myself, self.context.settings.background_interval(), Msg::Look));
        let not_before = Timestamp::EPOCH;
        Ok(State { from: None, check: None, tries: 0, not_before, again: None, next })
    }

    async fn handle(&self, myself: ActorRef<Msg>, _look: Msg, state: &mut State) -> Result<(), ActorProcessingErr> {
        // One account per message, so that a shutdown does not wait for a whole day.
        let goes_on = match self.work(state).await {
            Ok(goes_on) => goes_on,
            Err(error) => {
                self.context.read_failed(&error);
                state.check = None;
                false
            }
        };
        if goes_on {
            state.next = None;
            myself.cast(Msg::Look)?;
        } else {
            state.next = Some(Timer::send(&myself, self.context.settings.background_interval(), Msg::Look));
        }
        Ok(())
    }
}

impl Reconciler {
    /// Performs the next step; returns whether the next one is due at once.
    async fn work(&self, state: &mut State) -> Result<bool, ReadError> {
        let Some(term) = self.context.duties.held(Duty::Reconciliation) else {
            // Every engine continues from the stored state.
            *state = State { next: state.next.take(), ..State::default() };
            return Ok(false);
        };
        if let Some(mut check) = state.check.take() {
            if self.next_account(&mut check, state.again.as_ref()).await? {
                state.check = Some(check);
            } else {
                self.end(state, check, term).await?;
            }
            return Ok(true);
        }
        if !self.ledger.view.is_followed() {
            return Ok(false);
        }
        let from = match state.from {
            Some(from) => from,
            None => self.begin(term).await?,
        };
        state.from = Some(from);
        let to = end_of_day(from);
        let settles = if mutant!("reconciled-too-early") { Duration::ZERO } else { SETTLES };
        if self.ledger.view.irreversible_time() < to + settles || self.context.now() < state.not_before {
            return Ok(false);
        }
        state.tries += 1;
        let operations = state.again.as_ref().map_or(0, |again| again.operations);
        let day = Day { from, to, checked_at: self.context.now(), operations, ..Day::default() };
        state.check = Some(Check { day, after: None, silence: 0, differing: Vec::new(), again: Again::default() });
        Ok(true)
    }

    /// Returns the time from which reconciliation starts: the present one, for a store without a check.
    async fn begin(&self, term: Term) -> Result<Timestamp, ReadError> {
        if let Some(time) = self.reconciled_to().await? {
            return Ok(time);
        }
        let time = self.ledger.view.irreversible_time();
        if let Err(error) = self.context.env.store.commit(term.guarding(Batch::of(notes::reconcile_after(time)))).await
        {
            self.context.commit_failed(&error);
        }
        Ok(time + Duration::from_secs(1))
    }

    /// Returns when the stored reconciliation of a day was made.
    async fn checked_at(&self, from: Timestamp) -> Result<Option<Timestamp>, ReadError> {
        let after = Timestamp::from_millis(from.millis() + 1);
        let days = self.context.env.store.reconciled_days(Some(after), 1).await?;
        Ok(days.first().filter(|day| day.from == from).map(|day| day.checked_at))
    }

    /// Returns up to which time the store is reconciled.
    async fn reconciled_to(&self) -> Result<Option<Timestamp>, ReadError> {
        let note = self.context.env.store.note(notes::RECONCILED).await?;
        let millis = note.and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
        Ok(millis.map(Timestamp::from_millis))
    }

    /// Compares the next account; returns whether there was one.
    async fn next_account(&self, check: &mut Check, again: Option<&Again>) -> Result<bool, ReadError> {
        let mut page = self.context.env.store.accounts_since(check.after, 1).await?;
        let Some((account, since)) = page.pop() else { return Ok(false) };
        if mutant!("reconciliation-skips-accounts") && check.day.accounts > 0 {
            return Ok(false);
        }
        check.after = Some(account);
        let span = (check.day.from.max(since + WATCHED_AFTER), check.day.to);
        if span.0 >= span.1 {
            return Ok(true);
        }
        if again.is_some_and(|again| !again.accounts.contains(&account)) {
            check.day.accounts += 1;
            return Ok(true);
        }
        if check.silence >= MAX_SILENCE {
            check.day.unchecked += 1;
            check.again.accounts.push(account);
            return Ok(true);
        }
        match self.compare(&account, span).await {
            Ok((operations, difference)) => {
                check.silence = 0;
                check.day.accounts += 1;
                check.day.operations += operations;
                if difference.is_none() {
                    check.again.operations += operations;
                } else {
                    check.again.accounts.push(account);
                    check.differing.push((account, difference));
                }
            }
            Err(Unchecked::Nodes(_)) if mutant!("missing-history-is-agreement") => check.day.accounts += 1,
            Err(Unchecked::Nodes(error)) => {
                check.silence += 1;
                check.day.unchecked += 1;
                check.day.obstacle = Some(error.to_string());
                check.again.accounts.push(account);
            }
            Err(Unchecked::Read(error)) => return Err(error),
        }
        Ok(true)
    }

    async fn compare(
        &self,
        account: &AccountName,
        span: (Timestamp, Timestamp),
    ) -> Result<(u64, Difference), Unchecked> {
        let mut chain = self.ledger.nodes.history(account, span).await?;
        // The transfer that proves an account is not a payment.
        chain.retain(|transfer| merchant_in_proof_memo(transfer).is_none());
        let ledger_entries = self.ledger_entries(account, span).await?;
        let mut refunds = Vec::new();
        for transfer in chain.iter().filter(|transfer| transfer.from == *account) {
            if self.is_refund(transfer).await? {
                refunds.push(transfer.tx_id);
            }
        }
        let is_refund =
            |transfer: &Transfer| refunds.contains(&transfer.tx_id) && match_refund_memo(&transfer.memo).is_some();
        Ok((chain.len() as u64, compare(account, &chain, &ledger_entries, is_refund)))
    }

    async fn ledger_entries(
        &self,
        account: &AccountName,
        span: (Timestamp, Timestamp),
    ) -> Result<Vec<LedgerEntry>, ReadError> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let (page, next) = self.context.env.store.ledger_entries(*account, span, after, PAGE).await?;
            all.extend(page);
            if next.is_none() {
                return Ok(all);
            }
            after = next;
        }
    }

    /// Returns whether a transfer should have been recorded as a refund.
    async fn is_refund(&self, transfer: &Transfer) -> Result<bool, ReadError> {
        let Some(id) = match_refund_memo(&transfer.memo) else { return Ok(false) };
        let payment = self.context.sound(self.context.env.store.payment(id).await)?.flatten();
        Ok(payment.is_some_and(|payment: Payment| payment.accepts_refund(transfer)))
    }

    /// Ends a check: a difference is checked again, a missing response is retried, and the rest is stored.
    async fn end(&self, state: &mut State, check: Check, term: Term) -> Result<(), ReadError> {
        let Check { mut day, differing, again, .. } = check;
        if !differing.is_empty() && state.again.is_none() {
            state.again = Some(again);
            state.not_before = self.context.now() + RECHECK;
            return Ok(());
        }
        let mut writes = Vec::new();
        let mut differences = 0;
        for (account, difference) in differing {
            differences += (difference.missing.len() + difference.extra.len()) as u64;
            let merchants = self.merchants_of(&account).await?;
            writes.extend(merchants.iter().map(|merchant| self.audit_event(*merchant, &account)));
            let finding = day.record_mismatch(account, merchants, difference);
            let list = |moved: &[engine::reconciliation::Movement]| {
                let texts: Vec<_> = moved.iter().map(|moved| format!("{} ({})", moved.tx_id, moved.money)).collect();
                texts.join(", ")
            };
            let merchants = finding.merchants.iter().map(MerchantId::to_string).collect::<Vec<_>>().join(", ");
            tracing::error!(
                account = %finding.account,
                %merchants,
                missing = %list(&finding.missing),
                extra = %list(&finding.extra),
                "reconciliation of {} for the day from {}: {} operations are missing in the store, {} are not on the ledger",
                finding.account, day.from, finding.missing_count, finding.extra_count,
            );
        }
        let outcome = day.outcome();
        // A day with a difference is reported at once; accounts without a response may still follow.
        let is_done = day.unchecked == 0 || state.tries >= MAX_TRIES || outcome == Outcome::Mismatch;
        if outcome == Outcome::NotChecked && state.tries == 1 {
            let (unchecked, obstacle) = (day.unchecked, day.obstacle.clone().unwrap_or_default());
            tracing::warn!(
                unchecked,
                obstacle,
                "reconciliation for the day from {} is not possible: {obstacle}",
                day.from
            );
        }
        let (from, to) = (day.from, day.to);
        let expected = self.checked_at(from).await?;
        writes.push(Write::Reconciliation { day: Box::new(day), expected });
        if is_done {
            writes.push(notes::reconciled_to(to, self.reconciled_to().await?));
        }
        writes.extend(term.guard());
        self.context.env.probe.reach("reconciliation: checked, not stored");
        if let Err(error) = self.context.env.store.commit(Batch::from(writes)).await {
            self.context.commit_failed(&error);
            // Another engine may have continued.
            (state.from, state.not_before) = (None, self.context.now() + AFTER_FAILURE);
            return Ok(());
        }
        self.context.metrics.record_reconciliation(outcome);
        self.context.metrics.reconciliation_differences.inc_by(differences);
        state.again = None;
        if is_done {
            (state.from, state.tries, state.not_before) = (Some(to), 0, Timestamp::EPOCH);
        } else {
            state.not_before = self.context.now() + AFTER_FAILURE;
        }
        Ok(())
    }

    /// Returns the merchants that have the account now.
    async fn merchants_of(&self, account: &AccountName) -> Result<Vec<MerchantId>, ReadError> {
        let query = MerchantQuery { query: Some(account.to_string()), ..MerchantQuery::all(100) };
        let listed = self.context.env.store.merchants(query).await?.items.into_iter();
        let theirs = listed.filter(|listed| listed.merchant.hive_account == *account);
        Ok(theirs.map(|listed| listed.merchant.id).collect())
    }

    /// Returns the audit event of a difference, which has no actor.
    fn audit_event(&self, merchant: MerchantId, account: &AccountName) -> Write {
        Write::Audit(Box::new(Entry {
            seq: 0,
            at: self.context.now(),
            actor: audit::Actor::default(),
            action: "books_differ".to_owned(),
            merchant,
            subject: Some(account.to_string()),
            changes: Vec::new(),
        }))
    }
}
