//! Settles payments for other servers: claims, broadcasts, and reports a success once.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use engine::{
    ledger::TxId,
    payment::ClaimFinality,
    time::Timestamp,
    x402::{ClaimOutcome, ClaimRecord, Facilitation, Purpose},
};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::oneshot;

use crate::{
    chain::{
        ledger::Ledger,
        submission::{SubmitOutcome, shared, submit},
    },
    context::Context,
    environment::TxStatus,
    payments::messages::SessionError,
    timer::Task,
    webhooks::notifier::Notifier,
    x402::claims::{FacilitatorMsg, decide},
};

/// Polling intervals for a transaction's outcome: at first, and later.
const EARLY: Duration = Duration::from_millis(500);
const LATER: Duration = Duration::from_secs(5);
/// Time after which polling slows down.
const EARLY_UNTIL: Duration = Duration::from_secs(30);

pub(crate) struct Facilitator {
    pub(crate) context: Arc<Context>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) notifier: Arc<Notifier>,
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
    type Msg = FacilitatorMsg;
    type State = Open;
    type Arguments = ();

    async fn pre_start(&self, myself: ActorRef<FacilitatorMsg>, (): ()) -> Result<Open, ActorProcessingErr> {
        let mut open = Open::default();
        // An engine with a shared store takes over only claims that no engine follows.
        if !self.context.env.store.is_shared() {
            for claimed in self.context.env.store.open_facilitations().await? {
                // The previous process may have broadcast it.
                self.follow(&myself, &mut open, claimed, true);
            }
        }
        Ok(open)
    }

    async fn handle(
        &self,
        myself: ActorRef<FacilitatorMsg>,
        message: FacilitatorMsg,
        open: &mut Open,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            FacilitatorMsg::Follow { claimed, is_new, decided: waiting } => {
                let tx_id = claimed.tx_id;
                let stored = self.context.sound(self.context.env.store.claim(tx_id).await);
                // A damaged record may be open: following its transaction is harmless.
                let is_open = match &stored {
                    Ok(stored) => stored.as_ref().and_then(Option::as_ref).is_some_and(|it| it.outcome.is_open()),
                    Err(error) => {
                        self.context.read_failed(error);
                        true
                    }
                };
                if is_open {
                    if !open.followed.contains_key(&tx_id) {
                        self.follow(&myself, open, *claimed, !is_new);
                    }
                    if let Some(followed) = open.followed.get_mut(&tx_id) {
                        followed.waiting.push(waiting);
                    }
                }
            }
            FacilitatorMsg::Adopt(claimed) => {
                if !open.followed.contains_key(&claimed.tx_id) {
                    self.follow(&myself, open, *claimed, true);
                }
            }
            // Dropping the entry closes the channels of the waiting callers, which wakes them.
            FacilitatorMsg::Decided(tx_id) => drop(open.followed.remove(&tx_id)),
        }
        Ok(())
    }
}

impl Facilitator {
    fn follow(&self, myself: &ActorRef<FacilitatorMsg>, open: &mut Open, claimed: ClaimRecord, is_adopted: bool) {
        let tx_id = claimed.tx_id;
        let Purpose::Facilitated(facilitation) = claimed.purpose else { return };
        let (context, ledger) = (Arc::clone(&self.context), Arc::clone(&self.ledger));
        let (notifier, myself) = (Arc::clone(&self.notifier), myself.clone());
        let task = Task::persistent(move |begun| {
            let (context, ledger) = (Arc::clone(&context), Arc::clone(&ledger));
            let (notifier, myself, facilitation) = (Arc::clone(&notifier), myself.clone(), facilitation.clone());
            async move {
                // The task may have panicked after the broadcast.
                let is_adopted = is_adopted || begun > 0;
                if is_adopted && !shared(&context, tx_id).await {
                    let _ = myself.cast(FacilitatorMsg::Decided(tx_id));
                    return;
                }
                let mut possibly_sent = is_adopted;
                loop {
                    let outcome =
                        submit_until_final(&context, &ledger, tx_id, &facilitation, claimed.at, possibly_sent).await;
                    match decide(&context, &notifier, tx_id, outcome).await {
                        Ok(()) => break,
                        // Another engine has decided it, or may have broadcast it: then a refusal is not final.
                        Err(SessionError::Contended) if !is_open(&context, tx_id).await => break,
                        Err(SessionError::Contended) => possibly_sent = true,
                        Err(error) => {
                            tracing::warn!(%tx_id, %error, "cannot store the settlement outcome of {tx_id}: {error}");
                            tokio::time::sleep(EARLY).await;
                        }
                    }
                }
                let _ = myself.cast(FacilitatorMsg::Decided(tx_id));
            }
        });
        open.followed.insert(tx_id, Followed { _task: task, waiting: Vec::new() });
    }
}

/// Returns whether a claim is open; one whose record is damaged is not followed.
async fn is_open(context: &Context, tx_id: TxId) -> bool {
    match context.sound(context.env.store.claim(tx_id).await) {
        Ok(claimed) => claimed.flatten().is_some_and(|claimed| claimed.outcome.is_open()),
        Err(error) => {
            context.read_failed(&error);
            true
        }
    }
}

/// Submits the transaction until its outcome is certain.
async fn submit_until_final(
    context: &Context,
    ledger: &Ledger,
    tx_id: TxId,
    facilitation: &Facilitation,
    since: Timestamp,
    mut possibly_sent: bool,
) -> ClaimOutcome {
    let expiration = facilitation.expiration;
    loop {
        let irreversible_time = ledger.view.irreversible_time();
        if context.now() < expiration {
            match submit(context, ledger, tx_id, &facilitation.signed_json, expiration, &mut possibly_sent).await {
                SubmitOutcome::Accepted if facilitation.finality == ClaimFinality::Accepted => {
                    return ClaimOutcome::Settled { is_reported: false, block_num: None };
                }
                SubmitOutcome::Accepted | SubmitOutcome::Unknown => {}
                SubmitOutcome::Refused(refused) => {
                    return ClaimOutcome::Refused { reason: refused.reason, message: refused.message };
                }
            }
        }
        match ledger.nodes.find_transaction(tx_id, expiration).await {
            Ok(TxStatus::InIrreversibleBlock(block_num)) => {
                return ClaimOutcome::Settled { is_reported: false, block_num: Some(block_num) };
            }
            Ok(TxStatus::InReversibleBlock(block_num)) if facilitation.finality == ClaimFinality::InBlock => {
                return ClaimOutcome::Settled { is_reported: false, block_num: Some(block_num) };
            }
            Ok(TxStatus::ExpiredIrreversible) => return ClaimOutcome::Expired,
            Ok(TxStatus::Unknown) if irreversible_time > expiration => return ClaimOutcome::Expired,
            _ => {}
        }
        let wait = if context.now().since(since) < EARLY_UNTIL { EARLY } else { LATER };
        tokio::time::sleep(wait).await;
    }
}
