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
        Expected, PaymentPayload, Presented, Proof, Reason, Refused, Requirements, authorize, candidate_ids,
        check_balance,
    },
};
use storage::{Claimed, Fate, Purpose};

use crate::{
    Gateway, GatewayError,
    environment::{Account, TxStatus},
    payments::{payment::SessionError, settlement::HOLD},
    x402::requirements::{Caller, is_for},
};

/// Rounds of fetching delegates: an account, its delegates, theirs.
const MAX_ROUNDS: usize = 4;
/// How long a repeated settle waits at least before it says that the outcome is still open.
pub(crate) const LEAST_WAIT: Duration = Duration::from_secs(3);

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
    /// Whether an earlier request showed this payment: this request did not make it.
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
pub(crate) struct Checked {
    pub(crate) presented: Presented,
    pub(crate) authorized: Authorized,
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
        let checked = match &request.target {
            Target::Session(id) => {
                let payment = self.x402_session(*id).await?;
                self.refuse_claimed(&request.target, payment.pay_to, payload).await?;
                self.check_session(&payment, payload).await?
            }
            Target::Requirements(requirements) => {
                self.refuse_claimed(&request.target, requirements.pay_to, payload).await?;
                self.check_requirements(requirements, payload).await?
            }
        };
        Ok(checked.presented.payer)
    }

    /// Checks a payment, claims its transaction for this one purpose, brings it onto the chain and completes.
    /// The payer of a session gets the same receipt however often it shows the same payment.
    ///
    /// # Errors
    /// [`X402Error::Refused`]; with [`Reason::SettlementPending`] the same request may be repeated until it is decided.
    pub async fn x402_settle(&self, request: &X402Request) -> Result<Settled, X402Error> {
        self.x402_settle_for(request, &Caller::default()).await
    }

    /// Does as [`Gateway::x402_settle`]; for requirements of other servers the same seller gets the same success under
    /// the same idempotency key. A session needs no key.
    ///
    /// # Errors
    /// As [`Gateway::x402_settle`], [`GatewayError::KeyReused`] where the key stands for something else, and
    /// [`GatewayError::IdentifierReused`].
    pub async fn x402_settle_for(&self, request: &X402Request, caller: &Caller) -> Result<Settled, X402Error> {
        let verdict = match &request.target {
            Target::Session(id) => self.settle_session(*id, &request.payload).await,
            Target::Requirements(requirements) => {
                self.settle_requirements(requirements, &request.payload, caller).await
            }
        };
        self.context().metrics.judged("settle", verdict_word(&verdict));
        verdict
    }

    // ---- a session of ours ----------------------------------------------------------------------------------------

    async fn settle_session(&self, id: PaymentId, payload: &PaymentPayload) -> Result<Settled, X402Error> {
        let payment = self.x402_session(id).await?;
        match self.seen(payment.pay_to, payload).await? {
            Seen::Never => {}
            Seen::ByItsPayer(claimed) if claimed.purpose == Purpose::Session(id) => {
                return self.follow_session(id, &claimed, payload, true).await;
            }
            seen => return Err(duplicate(&seen, &Target::Session(id))),
        }
        // A wallet's payment has no receipt: its transaction is public, and anybody can show it.
        if let Some(tx_id) = wallet_transfer(&payment, payload) {
            return Err(self.wallet_payment(tx_id, payload).await.into());
        }
        let checked = match self.check_session(&payment, payload).await {
            Ok(checked) => checked,
            // The same request may have claimed it, and even have settled it, while this one was looking.
            Err(refused) => match self.claimed_for(&payment, payload).await? {
                Some(claimed) => return self.follow_session(id, &claimed, payload, true).await,
                None => return Err(refused),
            },
        };
        let now = self.now();
        let claim = Claim {
            tx_id: checked.authorized.tx_id,
            nonce: payload.nonce.clone(),
            identifier: payload.identifier.clone(),
            proof: self.proof(payload, &checked),
            payer: checked.presented.payer,
            transfers: checked.presented.transfers,
            signed_json: payload.transaction.to_condenser_json(),
            expiration: payload.transaction.expiration,
            claimed_at: now,
            finality: self.context().settings.x402.finality_of(payment.quote.usd_cents),
        };
        let (payer, tx_id) = (claim.payer, claim.tx_id);
        let claimed = Claimed {
            tx_id,
            pay_to: payment.pay_to,
            nonce: claim.nonce.clone(),
            identifier: claim.identifier.clone(),
            proof: claim.proof.clone(),
            purpose: Purpose::Session(id),
            fate: Fate::Open,
            at: now,
        };
        if mutant!("broadcast-before-claim") {
            let _ = self.context().nodes.broadcast(&claim.signed_json).await;
        }
        match self.order(id, Command::Claim(Arc::new(claim)), None).await {
            Ok(_) => self.follow_session(id, &claimed, payload, false).await,
            Err(SessionError::Claimed(other)) => match self.seen_as(*other, payload) {
                Seen::ByItsPayer(other) if other.purpose == Purpose::Session(id) => {
                    self.follow_session(id, &other, payload, true).await
                }
                seen => Err(duplicate(&seen, &Target::Session(id)).by(&payer)),
            },
            // The same request twice at once: both wait for the one outcome, and it may be there already.
            Err(SessionError::Rejected { rejection, payment }) => match self.claimed_for(&payment, payload).await? {
                Some(claimed) => self.follow_session(id, &claimed, payload, true).await,
                None if wallet_transfer(&payment, payload).is_some() => {
                    Err(sent_by_wallet().by(&payer).with_tx(tx_id).into())
                }
                None => Err(self.rejected(&rejection, &payment).by(&payer).into()),
            },
            Err(SessionError::Assigned(_)) => Err(assigned().by(&payer).with_tx(tx_id).into()),
            Err(error) => Err(GatewayError::from(error).into()),
        }
    }

    /// Looks up whether this payer claimed this very payment for this session.
    async fn claimed_for(&self, payment: &Payment, payload: &PaymentPayload) -> Result<Option<Claimed>, X402Error> {
        Ok(match self.seen(payment.pay_to, payload).await? {
            Seen::ByItsPayer(claimed) if claimed.purpose == Purpose::Session(payment.id) => Some(*claimed),
            _ => None,
        })
    }

    /// Refuses a payment that a wallet sent. Names it only to its payer.
    async fn wallet_payment(&self, tx_id: TxId, payload: &PaymentPayload) -> Refused {
        let payer = match sender(payload) {
            Some(payer) if !payload.transaction.signatures.is_empty() => payer,
            _ => return sent_by_wallet(),
        };
        match self.authorized(&payer, payload).await {
            Ok(_) => sent_by_wallet().by(&payer).with_tx(tx_id),
            // What nobody can verify is nobody's.
            Err(_) => sent_by_wallet(),
        }
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
        self.check_unseen(payload, &checked).await?;
        Ok(checked)
    }

    fn check_open(&self, payment: &Payment, merchant: &Merchant) -> Result<(), Refused> {
        if payment.state != State::Pending {
            return Err(Refused::new(Reason::SessionNotPending, format_args!("the session is {}", payment.state)));
        }
        if payment.is_expired(self.now()) && !mutant!("verifies-what-is-over") {
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

    /// Waits for the outcome of a claim whose payer shows it; whatever it is, the payer is verified.
    async fn follow_session(
        &self,
        id: PaymentId,
        claimed: &Claimed,
        payload: &PaymentPayload,
        is_replay: bool,
    ) -> Result<Settled, X402Error> {
        let settled = self.await_session(id, claimed).await.map_err(|error| match error {
            X402Error::Refused(refused) if refused.payer.is_none() => match sender(payload) {
                Some(payer) => refused.by(&payer).into(),
                None => refused.into(),
            },
            other => other,
        })?;
        Ok(Settled { is_replay: is_replay && !mutant!("replay-not-told"), ..settled })
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
                if is_decided && !mutant!("agents-wait-the-hold") {
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

    /// Looks up whether the transaction under either of its ids, its nonce or its identifier is claimed. Until the
    /// signatures are checked such a claim can only refuse.
    pub(crate) async fn seen(&self, pay_to: AccountName, payload: &PaymentPayload) -> Result<Seen, X402Error> {
        let store = &self.context().env.store;
        for tx_id in candidate_ids(&payload.transaction) {
            if let Some(claimed) = store.claim(tx_id).await.map_err(|error| self.read_failed(&error))? {
                return Ok(self.seen_as(claimed, payload));
            }
        }
        if let Some(identifier) = payload.identifier.clone() {
            let found = store.claim_by_identifier(pay_to, identifier).await;
            if let Some(claimed) = found.map_err(|error| self.read_failed(&error))? {
                return Ok(self.seen_as(claimed, payload));
            }
        }
        let nonce = store.claim_by_nonce(pay_to, payload.nonce.clone()).await;
        let nonce = nonce.map_err(|error| self.read_failed(&error))?;
        if let Some(claimed) = nonce.filter(|_| !mutant!("nonce-claimed-twice")) {
            return Ok(self.seen_as(claimed, payload));
        }
        Ok(Seen::Never)
    }

    /// Says who shows a payment of which something is claimed.
    pub(crate) fn seen_as(&self, claimed: Claimed, payload: &PaymentPayload) -> Seen {
        let is_shown = claimed.proof.is_shown_by(&claimed.nonce, payload, self.context().settings.chain_id);
        if is_shown || mutant!("anybody-shows-a-payment") {
            return Seen::ByItsPayer(Box::new(claimed));
        }
        let is_this = candidate_ids(&payload.transaction).contains(&claimed.tx_id);
        if !is_this && payload.identifier.is_some() && payload.identifier == claimed.identifier {
            return Seen::UnderItsIdentifier;
        }
        Seen::ByOthers
    }

    async fn refuse_claimed(
        &self,
        target: &Target,
        pay_to: AccountName,
        payload: &PaymentPayload,
    ) -> Result<(), X402Error> {
        match self.seen(pay_to, payload).await? {
            Seen::Never => Ok(()),
            seen => Err(duplicate(&seen, target)),
        }
    }

    pub(crate) fn proof(&self, payload: &PaymentPayload, checked: &Checked) -> Proof {
        Proof::of(&payload.transaction, self.context().settings.chain_id, &checked.authorized)
    }

    /// Local checks first, then the ledger's word on keys and funds.
    pub(crate) async fn check_payment(
        &self,
        expected: &Expected,
        payload: &PaymentPayload,
    ) -> Result<Checked, X402Error> {
        let context = self.context();
        let max_expiration = context.settings.x402.max_expiration;
        let presented =
            expected.check(&payload.transaction, payload.version, &payload.nonce, self.now(), max_expiration)?;
        let (authorized, payer_account) = self.authorized(&presented.payer, payload).await?;
        check_balance(&presented, &payer_account.balances)?;
        Ok(Checked { presented, authorized })
    }

    /// Checks the signatures against the payer's authority as the ledger has it.
    async fn authorized(
        &self,
        payer: &AccountName,
        payload: &PaymentPayload,
    ) -> Result<(Authorized, Arc<Account>), X402Error> {
        let context = self.context();
        let mut wanted = BTreeSet::from([*payer]);
        let mut accounts = BTreeMap::<AccountName, Arc<Account>>::new();
        for _ in 0..MAX_ROUNDS {
            let fetched = context.accounts.get(&wanted, &context.nodes, self.now()).await;
            let fetched = fetched.map_err(|error| {
                tracing::debug!(%error, "cannot read the payer's authority: {error}");
                GatewayError::LedgerUnavailable
            })?;
            let is_news = fetched.keys().any(|name| !accounts.contains_key(name));
            accounts.extend(fetched);
            let Some(payer_account) = accounts.get(payer) else {
                let message = format!("the ledger has no account {payer}");
                return Err(Refused::new(Reason::AccountNotFound, message).into());
            };
            let authorities = accounts.iter().map(|(name, account)| (*name, account.active.clone())).collect();
            match authorize(&payload.transaction, payer, context.settings.chain_id, &authorities) {
                Ok(authorized) => return Ok((authorized, Arc::clone(payer_account))),
                Err(Ok(denied)) if is_news => wanted = denied.unknown,
                Err(Ok(denied)) => return Err(Refused::new(Reason::Authority, denied).into()),
                Err(Err(refused)) => return Err(refused.into()),
            }
        }
        Err(Refused::new(Reason::Authority, "the authority is delegated too deeply").into())
    }

    /// What the chain has already is public: whoever shows it may have read it there.
    pub(crate) async fn check_unseen(&self, payload: &PaymentPayload, checked: &Checked) -> Result<(), X402Error> {
        let tx_id = checked.authorized.tx_id;
        let status = self.context().nodes.find_transaction(tx_id, payload.transaction.expiration).await;
        match status.map_err(|_| GatewayError::LedgerUnavailable)? {
            TxStatus::Unknown | TxStatus::ExpiredReversible | TxStatus::ExpiredIrreversible => Ok(()),
            // An account may need no signature at all: who shows its transaction need not be its payer.
            _ if payload.transaction.signatures.is_empty() => Err(sent_by_wallet().into()),
            _ => Err(sent_by_wallet().by(&checked.presented.payer).with_tx(tx_id).into()),
        }
    }
}

fn holds(payment: &Payment, tx_id: TxId) -> bool {
    payment.claim.as_ref().is_some_and(|claim| claim.tx_id == tx_id)
}

/// Returns the transaction that is shown, where the scanner found it before anybody claimed it.
fn wallet_transfer(payment: &Payment, payload: &PaymentPayload) -> Option<TxId> {
    let ids = candidate_ids(&payload.transaction);
    let credited = payment.transfers.iter().map(|credit| credit.tx_id);
    credited.chain(payment.paid_by).find(|tx_id| ids.contains(tx_id))
}

fn sent_by_wallet() -> Refused {
    let message = "the transaction was sent without x402: it is credited as a wallet's, and has no receipt";
    Refused::new(Reason::DuplicateSettlement, message)
}

pub(crate) fn assigned() -> Refused {
    Refused::new(Reason::DuplicateSettlement, "the transaction was sent without x402, and its money pays a session")
}

/// Returns who sends the transfers of a claimed transaction: they were checked before it was claimed.
fn sender(payload: &PaymentPayload) -> Option<AccountName> {
    payload.transaction.operations.first()?.payment().map(|(from, ..)| from)
}

/// What is known of a payment that is shown.
pub(crate) enum Seen {
    /// Nothing of it was ever claimed.
    Never,
    /// Its payer shows the claimed payment again: same nonce, same bytes, signed by the same keys.
    ByItsPayer(Box<Claimed>),
    /// Another payment was claimed under the payer's own name for it.
    UnderItsIdentifier,
    /// The transaction or the nonce is claimed, and nothing proves that this is the payer.
    ByOthers,
}

/// Returns the refusal of a payment of which something is claimed. Names the transaction only to its payer, and only for
/// what it was claimed for.
pub(crate) fn duplicate(seen: &Seen, target: &Target) -> X402Error {
    let refused = Refused::new(Reason::DuplicateSettlement, "the transaction or its nonce was used before");
    match seen {
        Seen::UnderItsIdentifier => GatewayError::IdentifierReused.into(),
        Seen::ByItsPayer(claimed) if is_target(claimed, target) => refused.with_tx(claimed.tx_id).into(),
        _ => refused.into(),
    }
}

fn is_target(claimed: &Claimed, target: &Target) -> bool {
    match target {
        Target::Session(id) => claimed.purpose == Purpose::Session(*id),
        Target::Requirements(requirements) => is_for(claimed, requirements),
    }
}

impl X402Error {
    /// Adds the verified payer to a refusal.
    pub(crate) fn by(self, payer: &AccountName) -> Self {
        match self {
            Self::Refused(refused) => Self::Refused(refused.by(payer)),
            other => other,
        }
    }
}
