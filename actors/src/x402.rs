//! Payments by HTTP 402: verify and settle, for a session of ours or for requirements that a caller brings along.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use engine::{
    account::AccountName,
    hive::Authorized,
    ids::PaymentId,
    ledger::TxId,
    merchant::Merchant,
    money::Money,
    mutant,
    payment::{Claim, Command, Payment, Rejection, State},
    x402::{
        Expected, PaymentPayload, Presented, Reason, Refused, Requirements, authorize, candidate_ids, check_balance,
        is_bound,
    },
};
use storage::{Claimed, Fate, Purpose};

use crate::{
    Gateway, GatewayError,
    context::Context,
    environment::{Account, TxStatus},
    payment::SessionError,
    settlement::HOLD,
};

mod requirements;

pub use requirements::Retry;

use requirements::is_same;

/// Rounds of fetching delegates: an account, its delegates, theirs.
const MAX_ROUNDS: usize = 4;
/// How long a repeated settle waits at least before it says that the outcome is still open.
const LEAST_WAIT: Duration = Duration::from_secs(3);

/// A payment that an agent hands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct X402Request {
    /// What it is for.
    pub target: Target,
    /// The payment.
    pub payload: PaymentPayload,
}

/// What an agent pays for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A session of ours.
    Session(PaymentId),
    /// Requirements of somebody else's server; we only verify and broadcast.
    Requirements(Requirements),
}

/// A payment that was settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The transaction.
    pub tx_id: TxId,
    /// Who paid.
    pub payer: AccountName,
    /// The block it is in, where that is known.
    pub block_num: Option<u32>,
    /// How much reached the one who was to be paid.
    pub amount: Money,
    /// Whether a success that was told before is told again, because its caller is known.
    pub is_replay: bool,
}

/// Why a payment was not verified or settled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum X402Error {
    /// A verdict about the payment.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// No verdict: the engine or the ledger could not be asked.
    #[error(transparent)]
    Unavailable(#[from] GatewayError),
}

/// Returns the word under which a verdict is counted.
fn verdict_word<T>(verdict: &Result<T, X402Error>) -> &'static str {
    match verdict {
        Ok(_) => "success",
        Err(X402Error::Refused(refused)) => refused.reason.word(),
        Err(X402Error::Unavailable(_)) => "unavailable",
    }
}

/// A payment that passed every check.
struct Checked {
    presented: Presented,
    authorized: Authorized,
}

impl Gateway {
    /// Checks a payment and changes nothing. Returns who would pay.
    ///
    /// # Errors
    /// [`X402Error::Refused`] by the first check that fails.
    pub async fn x402_verify(&self, request: &X402Request) -> Result<AccountName, X402Error> {
        let verdict = self.verified(request).await;
        self.context().metrics.judged("verify", verdict_word(&verdict));
        verdict
    }

    async fn verified(&self, request: &X402Request) -> Result<AccountName, X402Error> {
        let payload = &request.payload;
        if let Some(claimed) = self.claimed_before(payload).await? {
            return Err(duplicate(&claimed, &request.target).into());
        }
        let checked = match &request.target {
            Target::Session(id) => {
                let payment = self.x402_session(*id).await?;
                self.check_session(&payment, payload).await?
            }
            Target::Requirements(requirements) => self.check_requirements(requirements, payload).await?,
        };
        Ok(checked.presented.payer)
    }

    /// Checks a payment, claims its transaction for this one purpose, brings it onto the chain and completes.
    /// The same transaction for the same session gets the same answer, however often it is asked.
    ///
    /// # Errors
    /// [`X402Error::Refused`]; with [`Reason::SettlementPending`] the same request may be repeated until it is decided.
    pub async fn x402_settle(&self, request: &X402Request) -> Result<Settled, X402Error> {
        self.x402_settle_under(request, None).await
    }

    /// Does as [`Gateway::x402_settle`]; for requirements of other servers a success is told again under the same key.
    /// A session needs no key: its receipt is told to whoever shows its payment.
    ///
    /// # Errors
    /// As [`Gateway::x402_settle`], and [`GatewayError::KeyReused`] where the key stands for something else.
    pub async fn x402_settle_under(&self, request: &X402Request, retry: Option<&Retry>) -> Result<Settled, X402Error> {
        let verdict = match &request.target {
            Target::Session(id) => self.settle_session(*id, &request.payload).await,
            Target::Requirements(requirements) => self.settle_requirements(requirements, &request.payload, retry).await,
        };
        self.context().metrics.judged("settle", verdict_word(&verdict));
        verdict
    }

    // ---- a session of ours ----------------------------------------------------------------------------------------

    async fn settle_session(&self, id: PaymentId, payload: &PaymentPayload) -> Result<Settled, X402Error> {
        let payment = self.x402_session(id).await?;
        if let Some(claimed) = self.claimed_before(payload).await? {
            if is_this(&claimed, payload) && claimed.purpose == Purpose::Session(id) {
                return self.follow_session(id, &claimed, payload).await;
            }
            return Err(duplicate(&claimed, &Target::Session(id)).into());
        }
        // Whoever broadcast it: what paid the session has the same receipt.
        if let Some(tx_id) = payment.paid_by.filter(|id| candidate_ids(&payload.transaction).contains(id)) {
            return self.outcome(&payment, tx_id).await;
        }
        let checked = match self.check_session(&payment, payload).await {
            Ok(checked) => checked,
            // The same request may have claimed it, and even have settled it, while this one was looking.
            Err(refused) => match self.claimed_for(id, payload).await? {
                Some(claimed) => return self.follow_session(id, &claimed, payload).await,
                None => return Err(refused),
            },
        };
        let now = self.now();
        let claim = Claim {
            tx_id: checked.authorized.tx_id,
            nonce: payload.nonce.clone(),
            payer: checked.presented.payer,
            transfers: checked.presented.transfers,
            signed_json: payload.transaction.to_condenser_json(),
            expiration: payload.transaction.expiration,
            claimed_at: now,
            finality: self.context().settings.x402.finality_of(payment.quote.usd_cents),
        };
        let (payer, tx_id) = (claim.payer, claim.tx_id);
        let claimed =
            Claimed { tx_id, nonce: claim.nonce.clone(), purpose: Purpose::Session(id), fate: Fate::Open, at: now };
        if mutant!("broadcast-before-claim") {
            let _ = self.context().nodes.broadcast(&claim.signed_json).await;
        }
        match self.order(id, Command::Claim(Arc::new(claim)), None).await {
            Ok(_) => self.follow_session(id, &claimed, payload).await,
            Err(SessionError::Claimed(other)) if other.tx_id == tx_id && other.purpose == Purpose::Session(id) => {
                self.follow_session(id, &other, payload).await
            }
            Err(SessionError::Claimed(_)) => {
                Err(Refused::new(Reason::DuplicateSettlement, "the transaction or its nonce was used before")
                    .by(&payer)
                    .into())
            }
            // The same request twice at once: both wait for the one outcome, and it may be there already.
            Err(SessionError::Rejected { rejection, payment }) => match self.claimed_for(id, payload).await? {
                Some(claimed) => self.follow_session(id, &claimed, payload).await,
                None if payment.paid_by == Some(tx_id) => self.outcome(&payment, tx_id).await,
                None => Err(self.rejected(&rejection, &payment).by(&payer).into()),
            },
            Err(error) => Err(GatewayError::from(error).into()),
        }
    }

    /// Looks up whether this very transaction is claimed for this very session.
    async fn claimed_for(&self, id: PaymentId, payload: &PaymentPayload) -> Result<Option<Claimed>, X402Error> {
        let claimed = self.claimed_before(payload).await?;
        Ok(claimed.filter(|claimed| is_this(claimed, payload) && claimed.purpose == Purpose::Session(id)))
    }

    async fn x402_session(&self, id: PaymentId) -> Result<Arc<Payment>, X402Error> {
        match self.any_payment(id).await {
            Err(GatewayError::PaymentNotFound) => {
                Err(Refused::new(Reason::SessionNotFound, "there is no such session").into())
            }
            found => Ok(found?),
        }
    }

    async fn check_session(&self, payment: &Payment, payload: &PaymentPayload) -> Result<Checked, X402Error> {
        let merchant = self.merchant(payment.merchant).await?;
        self.check_open(payment, &merchant)?;
        let required = Requirements {
            amount: payment.amount,
            pay_to: payment.pay_to,
            resource: String::new(),
            valid_before: None,
        };
        required.check_accepted(payload.accepted.as_ref())?;
        let expected = Expected::of_session(payment);
        let checked = self.check_payment(&expected, payload).await?;
        if !is_bound(&expected, &checked.presented) {
            self.check_unseen(payload, &checked).await?;
        }
        Ok(checked)
    }

    fn check_open(&self, payment: &Payment, merchant: &Merchant) -> Result<(), Refused> {
        if payment.state != State::Pending {
            return Err(Refused::new(Reason::SessionNotPending, format_args!("the session is {}", payment.state)));
        }
        if payment.is_expired(self.now()) {
            return Err(Refused::new(Reason::SessionExpired, "the session has expired"));
        }
        if payment.undecided_cancellation().is_some() {
            return Err(Refused::new(Reason::SessionCancelling, "the session is being cancelled"));
        }
        if !merchant.is_active {
            return Err(Refused::new(Reason::MerchantInactive, "the merchant is inactive"));
        }
        if !merchant.x402_enabled {
            return Err(Refused::new(Reason::X402Disabled, "the merchant does not take x402"));
        }
        Ok(())
    }

    fn rejected(&self, rejection: &Rejection, payment: &Payment) -> Refused {
        match rejection {
            Rejection::InFlight { .. } => {
                Refused::new(Reason::DuplicateSettlement, "another transaction is paying this session")
            }
            Rejection::Detected { .. } => {
                Refused::new(Reason::DuplicateSettlement, "the session is being paid already")
            }
            Rejection::Expired { .. } => Refused::new(Reason::SessionExpired, "the session has expired"),
            Rejection::Cancelling { .. } => Refused::new(Reason::SessionCancelling, "the session is being cancelled"),
            _ => Refused::new(Reason::SessionNotPending, format_args!("the session is {}", payment.state)),
        }
    }

    /// Waits for the outcome of a claim; whatever it is, who signed is known.
    async fn follow_session(
        &self,
        id: PaymentId,
        claimed: &Claimed,
        payload: &PaymentPayload,
    ) -> Result<Settled, X402Error> {
        self.await_session(id, claimed).await.map_err(|error| match error {
            X402Error::Refused(refused) if refused.payer.is_none() => match sender(payload) {
                Some(payer) => refused.by(&payer).into(),
                None => refused.into(),
            },
            other => other,
        })
    }

    /// Waits, for as long as a payer should, until the claimed transaction's fate is known.
    async fn await_session(&self, id: PaymentId, claimed: &Claimed) -> Result<Settled, X402Error> {
        let left = (claimed.at + HOLD).since(self.now()).max(LEAST_WAIT);
        let mut watch = self.watch_payment(id).await?.snapshots;
        let mut last = None;
        let decided = tokio::time::timeout(left, async {
            while let Some(payment) = watch.recv().await {
                // A session that left `pending`, or let go of the claim, has its answer; `processing` is one, too.
                let is_decided = payment.state != State::Pending || !holds(&payment, claimed.tx_id);
                last = Some(payment);
                if is_decided {
                    return;
                }
            }
        });
        tokio::select! {
            biased;
            // Nothing can be decided any more in this life, and who waits would only delay the next.
            _ = self.context().fatal.raised() => return Err(GatewayError::StoreFailed.into()),
            // Out of time is an outcome like any other: the last snapshot tells.
            _ = decided => {}
        }
        let payment = match last {
            Some(payment) => payment,
            None => self.any_payment(id).await?,
        };
        self.outcome(&payment, claimed.tx_id).await
    }

    async fn outcome(&self, payment: &Payment, tx_id: TxId) -> Result<Settled, X402Error> {
        let credit = payment.transfers.iter().find(|c| c.tx_id == tx_id && c.to == payment.pay_to);
        if payment.paid_by == Some(tx_id)
            && let Some(credit) = credit
        {
            let block_num = credit.block.map(|block| block.place.block_num);
            return Ok(Settled { tx_id, payer: credit.from, block_num, amount: credit.money, is_replay: false });
        }
        let payer = payment.claim.as_ref().filter(|claim| claim.tx_id == tx_id).map(|claim| claim.payer);
        let by = |refused: Refused| match &payer {
            Some(payer) => refused.by(payer),
            None => refused,
        };
        if payment.state == State::Completed {
            let message = "another transaction has paid this session; a refund is the merchant's to make";
            return Err(by(Refused::new(Reason::DuplicateSettlement, message).with_tx(tx_id)).into());
        }
        if holds(payment, tx_id) {
            let message = "the transaction is on its way; ask again with the same payment";
            return Err(by(Refused::new(Reason::SettlementPending, message).with_tx(tx_id)).into());
        }
        let claimed = self.context().env.store.claim(tx_id).await.map_err(|error| self.read_failed(&error))?;
        Err(match claimed.map(|claimed| claimed.fate) {
            Some(Fate::Refused { reason, message }) => Refused::new(reason, message),
            _ => Refused::new(Reason::InvalidTransactionState, "the transaction did not happen before it expired"),
        }
        .into())
    }

    // ---- both ------------------------------------------------------------------------------------------------------

    /// Looks up whether the transaction, under either of its ids, or its nonce is claimed.
    async fn claimed_before(&self, payload: &PaymentPayload) -> Result<Option<Claimed>, X402Error> {
        let store = &self.context().env.store;
        for tx_id in candidate_ids(&payload.transaction) {
            if let Some(claimed) = store.claim(tx_id).await.map_err(|error| self.read_failed(&error))? {
                return Ok(Some(claimed));
            }
        }
        Ok(store.claim_by_nonce(payload.nonce.clone()).await.map_err(|error| self.read_failed(&error))?)
    }

    /// Local checks first, then the ledger's word on keys and funds.
    async fn check_payment(&self, expected: &Expected, payload: &PaymentPayload) -> Result<Checked, X402Error> {
        let context = self.context();
        let max_expiration = context.settings.x402.max_expiration;
        let presented =
            expected.check(&payload.transaction, payload.version, &payload.nonce, self.now(), max_expiration)?;
        let payer = presented.payer;
        let mut wanted = BTreeSet::from([payer]);
        let mut accounts = BTreeMap::<AccountName, Arc<Account>>::new();
        for _ in 0..MAX_ROUNDS {
            let fetched = context.accounts.get(&wanted, &context.nodes, self.now()).await;
            let fetched = fetched.map_err(|error| {
                tracing::debug!(%error, "no authority to check against: {error}");
                GatewayError::LedgerUnavailable
            })?;
            let is_news = fetched.keys().any(|name| !accounts.contains_key(name));
            accounts.extend(fetched);
            let Some(payer_account) = accounts.get(&payer) else {
                let message = format!("the ledger has no account {payer}");
                return Err(Refused::new(Reason::AccountNotFound, message).by(&payer).into());
            };
            let authorities = accounts.iter().map(|(name, account)| (*name, account.active.clone())).collect();
            match authorize(&payload.transaction, &payer, context.settings.chain_id, &authorities) {
                Ok(authorized) => {
                    check_balance(&presented, &payer_account.balances)?;
                    return Ok(Checked { presented, authorized });
                }
                Err(Ok(denied)) if is_news => wanted = denied.unknown,
                Err(Ok(denied)) => return Err(Refused::new(Reason::Authority, denied).by(&payer).into()),
                Err(Err(refused)) => return Err(refused.into()),
            }
        }
        Err(Refused::new(Reason::Authority, "the authority is delegated too deeply").by(&payer).into())
    }

    /// A transfer whose memo names nobody could be somebody else's, taken off the chain.
    async fn check_unseen(&self, payload: &PaymentPayload, checked: &Checked) -> Result<(), X402Error> {
        let tx_id = checked.authorized.tx_id;
        let status = self.context().nodes.find_transaction(tx_id, payload.transaction.expiration).await;
        match status.map_err(|_| GatewayError::LedgerUnavailable)? {
            TxStatus::Unknown | TxStatus::ExpiredReversible | TxStatus::ExpiredIrreversible => Ok(()),
            _ => {
                let message = "the transaction is on the chain already and names no session";
                Err(Refused::new(Reason::DuplicateSettlement, message).by(&checked.presented.payer).into())
            }
        }
    }
}

fn holds(payment: &Payment, tx_id: TxId) -> bool {
    payment.claim.as_ref().is_some_and(|claim| claim.tx_id == tx_id)
}

/// Says whether a claim is on the transaction that is shown, and not only on its nonce.
fn is_this(claimed: &Claimed, payload: &PaymentPayload) -> bool {
    candidate_ids(&payload.transaction).contains(&claimed.tx_id)
}

/// Returns who sends the transfers of a claimed transaction: they were checked before it was claimed.
fn sender(payload: &PaymentPayload) -> Option<AccountName> {
    payload.transaction.operations.first()?.payment().map(|(from, ..)| from)
}

/// The refusal of a transaction or nonce that is taken; the transaction is told to who asked for the same thing.
fn duplicate(claimed: &Claimed, target: &Target) -> Refused {
    let refused = Refused::new(Reason::DuplicateSettlement, "the transaction or its nonce was used before");
    let same = match (&claimed.purpose, target) {
        (Purpose::Session(id), Target::Session(wanted)) => id == wanted,
        (Purpose::Facilitated(facilitation), Target::Requirements(wanted)) => is_same(facilitation, wanted),
        _ => false,
    };
    if same { refused.with_tx(claimed.tx_id) } else { refused }
}

impl Context {
    /// Looks up which session a transaction was claimed for.
    pub(crate) async fn claimed_session(&self, tx_id: TxId) -> Result<Option<PaymentId>, storage::ReadError> {
        let claimed = self.env.store.claim(tx_id).await?;
        Ok(claimed.and_then(|claimed| match claimed.purpose {
            Purpose::Session(id) => Some(id),
            Purpose::Facilitated(_) => None,
        }))
    }
}
