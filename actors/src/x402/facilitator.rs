//! Settles payments for other people's servers: claims, broadcasts, and tells of a success once.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use engine::{idempotency::Remembered, ledger::TxId, payment::ClaimFinality, time::Timestamp};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use storage::{Batch, Claimed, CommitError, Facilitation, Fate, Purpose, Write};
use tokio::sync::oneshot;

use crate::{
    context::Context,
    environment::TxStatus,
    payments::{
        payment::{SessionError, read_failed},
        settlement::{HandedIn, hand_in},
    },
    timer::Task,
};

/// How often a transaction's fate is looked up, first and after a while.
const EARLY: Duration = Duration::from_millis(500);
const LATER: Duration = Duration::from_secs(5);
/// How long early lasts.
const EARLY_UNTIL: Duration = Duration::from_secs(30);

pub(crate) enum Msg {
    /// Bring a claimed transaction onto the chain, and say when its fate is stored.
    Follow(Box<Claimed>, oneshot::Sender<()>),
    /// The fate of a transaction is stored.
    Decided(TxId),
}

pub(crate) struct Facilitator {
    pub(crate) context: Arc<Context>,
}

#[derive(Default)]
pub(crate) struct Open {
    followed: BTreeMap<TxId, Followed>,
}

struct Followed {
    _task: Task,
    waiting: Vec<oneshot::Sender<()>>,
}

impl Actor for Facilitator {
    type Msg = Msg;
    type State = Open;
    type Arguments = ();

    async fn pre_start(&self, myself: ActorRef<Msg>, (): ()) -> Result<Open, ActorProcessingErr> {
        let mut open = Open::default();
        for claimed in self.context.env.store.open_facilitations().await? {
            // A process that died may have broadcast it.
            self.follow(&myself, &mut open, claimed, true);
        }
        Ok(open)
    }

    async fn handle(&self, myself: ActorRef<Msg>, message: Msg, open: &mut Open) -> Result<(), ActorProcessingErr> {
        match message {
            Msg::Follow(claimed, waiting) => {
                let tx_id = claimed.tx_id;
                let stored = self.context.sound(self.context.env.store.claim(tx_id).await)?.flatten();
                if stored.is_some_and(|stored| stored.fate == Fate::Open) {
                    if !open.followed.contains_key(&tx_id) {
                        self.follow(&myself, open, *claimed, false);
                    }
                    if let Some(followed) = open.followed.get_mut(&tx_id) {
                        followed.waiting.push(waiting);
                    }
                }
            }
            // Dropping the entry tells everybody who waits.
            Msg::Decided(tx_id) => drop(open.followed.remove(&tx_id)),
        }
        Ok(())
    }
}

impl Facilitator {
    fn follow(&self, myself: &ActorRef<Msg>, open: &mut Open, claimed: Claimed, may_be_out: bool) {
        let tx_id = claimed.tx_id;
        let Purpose::Facilitated(facilitation) = claimed.purpose else { return };
        let (context, myself) = (Arc::clone(&self.context), myself.clone());
        let task = Task::persistent(move |begun| {
            let (context, myself, facilitation) = (Arc::clone(&context), myself.clone(), facilitation.clone());
            async move {
                // A crash may have come after the broadcast.
                let may_be_out = may_be_out || begun > 0;
                let fate = bring_in(&context, tx_id, &facilitation, claimed.at, may_be_out).await;
                while let Err(error) = decide(&context, tx_id, Fate::Open, fate.clone()).await {
                    tracing::warn!(%tx_id, %error, "cannot store the settlement outcome of {tx_id}: {error}");
                    if error != SessionError::Overloaded {
                        break;
                    }
                    tokio::time::sleep(EARLY).await;
                }
                let _ = myself.cast(Msg::Decided(tx_id));
            }
        });
        open.followed.insert(tx_id, Followed { _task: task, waiting: Vec::new() });
    }
}

/// Stores a claim before anything is broadcast, and with it the key it was asked for under.
pub(crate) async fn claim(
    context: &Context,
    claimed: &Claimed,
    remembered: Option<Remembered>,
) -> Result<(), ClaimError> {
    let batch = Batch::of(Write::Claim(claimed.clone()));
    let batch = match remembered {
        Some(remembered) => batch.and(Write::Remember { remembered, most: context.settings.idempotency_keys }),
        None => batch,
    };
    context.env.store.commit(batch).await.map_err(|error| match error {
        CommitError::Remembered(earlier) => ClaimError::Remembered(earlier),
        error => ClaimError::Failed(failed(context, error)),
    })
}

/// Why a claim was not stored.
pub(crate) enum ClaimError {
    /// The key stands for an earlier request.
    Remembered(Box<Remembered>),
    /// Anything else.
    Failed(SessionError),
}

/// Marks a settled payment as told: only one caller ever gets the success.
pub(crate) async fn tell(context: &Context, tx_id: TxId, block_num: Option<u32>) -> Result<(), SessionError> {
    let settled = |told| Fate::Settled { told, block_num };
    decide(context, tx_id, settled(false), settled(true)).await
}

async fn decide(context: &Context, tx_id: TxId, expected: Fate, fate: Fate) -> Result<(), SessionError> {
    let mut told = Vec::new();
    // A settlement is announced with the commit that makes it one.
    if let (Fate::Open, Fate::Settled { block_num, .. }) = (&expected, &fate) {
        let failed = |error: storage::ReadError| read_failed(context, &error);
        let claimed = context.sound(context.env.store.claim(tx_id).await).map_err(failed)?.flatten();
        if let Some(claimed) = claimed {
            told = context.sale_events(&claimed, *block_num, context.now()).await.map_err(failed)?;
        }
    }
    let mut batch = Batch::of(Write::Fate { tx_id, expected, fate });
    let (merchants, events): (Vec<_>, Vec<_>) = told.into_iter().unzip();
    batch.writes.extend(events);
    context.env.store.commit(batch).await.map_err(|error| failed(context, error))?;
    merchants.into_iter().for_each(|merchant| context.announced(merchant));
    Ok(())
}

fn failed(context: &Context, error: CommitError) -> SessionError {
    context.give_up_on(&error);
    match error {
        CommitError::Claimed(by) => SessionError::Claimed(by),
        CommitError::Assigned(to) => SessionError::Assigned(to),
        CommitError::Overloaded => SessionError::Overloaded,
        CommitError::Conflict { .. }
        | CommitError::Remembered(_)
        | CommitError::OnHold(_)
        | CommitError::QuotaReached(_)
        | CommitError::KeysFull => SessionError::Contended,
        CommitError::Unknown(_) => SessionError::Unknown,
    }
}

/// Hands the transaction in until its fate is certain.
async fn bring_in(
    context: &Context,
    tx_id: TxId,
    facilitation: &Facilitation,
    since: Timestamp,
    mut may_be_out: bool,
) -> Fate {
    let expiration = facilitation.expiration;
    loop {
        let irreversible_time = context.ledger.irreversible_time();
        if context.now() < expiration {
            match hand_in(context, tx_id, &facilitation.signed_json, expiration, &mut may_be_out).await {
                HandedIn::Accepted if facilitation.finality == ClaimFinality::Accepted => {
                    return Fate::Settled { told: false, block_num: None };
                }
                HandedIn::Accepted => may_be_out = true,
                HandedIn::Refused(refused) => {
                    return Fate::Refused { reason: refused.reason, message: refused.message };
                }
                HandedIn::Unknown => {}
            }
        }
        match context.nodes.find_transaction(tx_id, expiration).await {
            Ok(TxStatus::InIrreversibleBlock(block_num)) => {
                return Fate::Settled { told: false, block_num: Some(block_num) };
            }
            Ok(TxStatus::InReversibleBlock(block_num)) if facilitation.finality == ClaimFinality::InBlock => {
                return Fate::Settled { told: false, block_num: Some(block_num) };
            }
            Ok(TxStatus::ExpiredIrreversible) => return Fate::Buried,
            Ok(TxStatus::Unknown) if irreversible_time > expiration => return Fate::Buried,
            _ => {}
        }
        let wait = if context.now().since(since) < EARLY_UNTIL { EARLY } else { LATER };
        tokio::time::sleep(wait).await;
    }
}
