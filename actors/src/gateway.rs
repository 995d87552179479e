//! The handle through which everything is asked of an engine: who asks, may they, and what is the answer.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use engine::{
    account::AccountName,
    audit::{self, Actor},
    fields::Violation,
    hive::Network,
    idempotency::{self, IdempotencyKey, Made, Remembered},
    ids::{MerchantId, PaymentId, SlugToken},
    merchant::{ApiKey, KeyDigest, KeyRejection, Merchant, Update},
    money::FeePercent,
    mutant, ownership,
    payment::{Canceller, Command, Draft, Payment, Rejection, Terms},
    time::Timestamp,
    webhook::{Secret, TooManySecrets},
};
use prometheus_client::registry::Registry;
use ractor::ActorRef;
use storage::{Batch, CommitError, ListedMerchant, MerchantQuery, Page, PaymentQuery, Write};
use tokio::sync::{Semaphore, oneshot};

use crate::{
    chain::ledger_view::LedgerStatus,
    context::Context,
    merchants::actor::{self, Change, MerchantError},
    metrics::LedgerCollector,
    payments::{
        payment::{Order, SessionError},
        registry::{self, Watch},
    },
    x402::facilitator,
};

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GatewayError {
    /// No key, or none of ours.
    #[error("the API key is missing or invalid")]
    Unauthenticated,
    /// The key is good and may not do this.
    #[error("the API key may not do this")]
    Forbidden,
    /// The operation needs an admin's key.
    #[error("this needs an admin's API key")]
    AdminOnly,
    /// The merchant is switched off.
    #[error("the merchant account is inactive")]
    InactiveMerchant,
    /// The merchant is on hold until somebody has looked at it.
    #[error("the merchant account is on hold")]
    OnHold {
        /// Whom to talk to.
        contact: String,
    },
    /// The merchant takes as much of the store as it may.
    #[error("{0}")]
    Quota(engine::quota::Reached),
    /// Fields break their rules.
    #[error("{} is invalid", .0.first().map_or("the request", |v| v.field.as_str()))]
    Invalid(Vec<Violation>),
    /// The ledger has no such account.
    #[error("the ledger has no account {0}")]
    UnknownAccount(AccountName),
    /// There is no such payment, or it is not the caller's.
    #[error("no such payment")]
    PaymentNotFound,
    /// There is no such delivery, or it is not the caller's.
    #[error("no such delivery")]
    DeliveryNotFound,
    /// The event is older than what is kept.
    #[error("the event is older than the retention")]
    EventForgotten,
    /// The cursor names no place in the list of events.
    #[error("{0}")]
    Misplaced(engine::event_list::Misplaced),
    /// The merchant has no webhook endpoint.
    #[error("the merchant has no webhook endpoint")]
    NoEndpoint,
    /// There is no such merchant.
    #[error("no such merchant")]
    MerchantNotFound,
    /// The merchant has not proven the account, or the account has changed since.
    #[error("the merchant has not proven that it owns @{account}: it is {}", .standing.as_str())]
    NotProven {
        /// The account.
        account: AccountName,
        /// Where the proof stands.
        standing: ownership::Standing,
    },
    /// What is known of the merchant's account refuses.
    #[error("{0}")]
    Ownership(ownership::Rejection),
    /// Nobody may register.
    #[error("registration is closed")]
    RegistrationClosed,
    /// No merchant is set up to be paid by invoices.
    #[error("no merchant is set up to be paid by invoices")]
    NoOperator,
    /// No such transfer to an account of the caller's is unmatched.
    #[error("no such unmatched transfer")]
    TransferNotFound,
    /// The transfer was put to a session before.
    #[error("the transfer is assigned to payment {0}")]
    TransferAssigned(PaymentId),
    /// The transfer was settled by x402 for somebody's resource: it is a sale.
    #[error("the transfer was settled by x402 for {0}")]
    TransferSettled(String),
    /// The payment's state refuses.
    #[error("{0}")]
    Rejected(Rejection),
    /// The merchant's keys do not allow it.
    #[error("{0}")]
    Key(KeyRejection),
    /// As many webhook secrets sign as may.
    #[error("{}", TooManySecrets { possible_at: *possible_at })]
    TooManySecrets {
        /// When the first of them ends.
        possible_at: Timestamp,
    },
    /// Keys are rolled by support only, in this installation.
    #[error("API keys are reissued by the operator")]
    NoKeyRoll,
    /// The merchant used more idempotency keys in a day than are remembered.
    #[error("too many idempotency keys were used in the last 24 hours")]
    TooManyIdempotencyKeys,
    /// The idempotency key stands for another request.
    #[error("the idempotency key was used for another request")]
    KeyReused,
    /// The payer's `payment-identifier` names another payment.
    #[error("the payment-identifier names another payment")]
    IdentifierReused,
    /// No ledger node answers, or the ledger is not followed yet.
    #[error("no ledger node responds")]
    LedgerUnavailable,
    /// No price of HIVE was ever read.
    #[error("no price of HIVE is known yet")]
    NoRate,
    /// HBD is off its peg, and the settings refuse payments in it until it is back.
    #[error("HBD is off its peg")]
    HbdOffPeg,
    /// The merchant watches its events as often as it may.
    #[error("too many streams of events are open")]
    TooManyStreams,
    /// Too much is waiting; come back later.
    #[error("the engine is overloaded")]
    Overloaded,
    /// Somebody else kept changing the same record; come back later.
    #[error("the record changed during each attempt")]
    Contended,
    /// A stored row that is needed is damaged.
    #[error("the {table} record {key} is damaged")]
    Damaged {
        /// The table.
        table: &'static str,
        /// The row's key.
        key: String,
    },
    /// The store failed. Whether the change was made only the record will tell, after a restart.
    #[error("the store failed")]
    StoreFailed,
}

/// The handle of a running engine. Cheap to clone.
#[derive(Clone)]
pub struct Gateway {
    context: Arc<Context>,
    sessions: ActorRef<registry::Msg>,
    merchants: ActorRef<actor::Msg>,
    facilitator: ActorRef<facilitator::Msg>,
    /// Who acts through this handle, for the audit log.
    by: Option<Arc<Actor>>,
    /// What may wait at once; ractor's mailboxes have no bound of their own.
    waiting: Arc<Semaphore>,
}

/// A session that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The session, as it stands now.
    pub payment: Arc<Payment>,
    /// Whether it was opened earlier, by the same request under the same idempotency key.
    pub is_replay: bool,
}

/// How the engine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    /// Where the ledger stands.
    pub ledger: LedgerStatus,
    /// Whether payments can be created: the chain is read from a known block on.
    pub is_following: bool,
    /// Sessions that are awake.
    pub awake: usize,
    /// Damaged rows of the store that were met since the start.
    pub damaged_rows: u64,
}

impl Gateway {
    pub(crate) fn new(
        context: Arc<Context>,
        sessions: ActorRef<registry::Msg>,
        merchants: ActorRef<actor::Msg>,
        facilitator: ActorRef<facilitator::Msg>,
    ) -> Self {
        let waiting = Arc::new(Semaphore::new(context.settings.max_waiting_calls));
        Self { context, sessions, merchants, facilitator, by: None, waiting }
    }

    /// Returns the same handle for somebody whose deeds the audit log tells; without it they are the operator's.
    #[must_use]
    pub fn by(&self, actor: Actor) -> Self {
        Self { by: Some(Arc::new(actor)), ..self.clone() }
    }

    /// Returns the engine's time: the later of the wall clock and the newest head block.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.context.now()
    }

    /// Returns the network whose payments are taken.
    #[must_use]
    pub fn network(&self) -> Network {
        self.context.settings.network()
    }

    /// Returns the fee of payments created now.
    #[must_use]
    pub fn fee_percent(&self) -> FeePercent {
        self.context.settings.fee_percent
    }

    /// Returns whether webhooks may go to plain http.
    #[must_use]
    pub fn allows_insecure_webhooks(&self) -> bool {
        self.context.settings.allow_insecure_webhooks
    }

    /// Returns the merchant an API key speaks for, and notes the key's use.
    ///
    /// # Errors
    /// [`GatewayError::Unauthenticated`] for unknown and malformed keys alike.
    pub async fn authenticate(&self, api_key: &str) -> Result<Arc<Merchant>, GatewayError> {
        self.authenticate_key(api_key).await.map(|(merchant, _)| merchant)
    }

    /// The same, with what is kept of the key.
    ///
    /// # Errors
    /// As [`Gateway::authenticate`].
    pub async fn authenticate_key(&self, api_key: &str) -> Result<(Arc<Merchant>, ApiKey), GatewayError> {
        let digest = KeyDigest::of(api_key);
        let found = self.context.env.store.merchant_by_key(digest).await.map_err(|e| self.read_failed(&e))?;
        let now = self.now();
        let found = found.and_then(|merchant| merchant.key(&digest, now).cloned().map(|key| (merchant, key)));
        let (merchant, key) = found.ok_or(GatewayError::Unauthenticated)?;
        if key.use_is_news(now) {
            let (change, by) = (Change::KeyUsed(key.id), Actor::default());
            let _ = self.merchants.cast(actor::Msg::Change { id: merchant.id, change, by, reply: None });
        }
        Ok((merchant, key))
    }

    /// Returns a merchant.
    ///
    /// # Errors
    /// [`GatewayError::MerchantNotFound`].
    pub async fn merchant(&self, id: MerchantId) -> Result<Arc<Merchant>, GatewayError> {
        let found = self.context.env.store.merchant(id).await.map_err(|e| self.read_failed(&e))?;
        found.ok_or(GatewayError::MerchantNotFound)
    }

    /// Lists merchants, newest first.
    ///
    /// # Errors
    /// Store errors.
    pub async fn merchants(&self, query: MerchantQuery) -> Result<Page<ListedMerchant>, GatewayError> {
        self.context.env.store.merchants(query).await.map_err(|e| self.read_failed(&e))
    }

    /// Changes a merchant; a new account must exist on the ledger. A proven account is exchanged later, when both accounts
    /// have agreed.
    ///
    /// # Errors
    /// As [`Gateway::register`], and [`GatewayError::MerchantNotFound`].
    pub async fn update_merchant(&self, id: MerchantId, update: Update) -> Result<Merchant, GatewayError> {
        if let Some(account) = &update.hive_account {
            // Cheap, so that a merchant beyond its changes asks no node.
            let merchant = self.merchant(id).await?;
            merchant.with_account(*account, Duration::ZERO, self.now()).map_err(GatewayError::Ownership)?;
            self.check_account(account).await?;
        }
        if let Some(Some(url)) = &update.webhook_url
            && !self.context.env.webhooks.accepts(url)
        {
            let violation = Violation::new("webhookUrl", "must not name a private or reserved address");
            return Err(GatewayError::Invalid(vec![violation]));
        }
        self.change(id, Change::Update(update)).await
    }

    /// Switches a merchant on or off.
    ///
    /// # Errors
    /// [`GatewayError::MerchantNotFound`]; store errors.
    pub async fn set_merchant_active(&self, id: MerchantId, is_active: bool) -> Result<Merchant, GatewayError> {
        self.change(id, Change::SetActive(is_active)).await
    }

    /// Gives a merchant a new webhook secret. The old one stops at once, or signs beside it for `grace`.
    ///
    /// # Errors
    /// [`GatewayError::MerchantNotFound`]; store errors.
    pub async fn rotate_webhook_secret(
        &self,
        id: MerchantId,
        grace: Duration,
    ) -> Result<(Secret, Option<Timestamp>), GatewayError> {
        let secret = Secret::from_random(self.context.env.entropy.bytes());
        let previous_valid_until = (!grace.is_zero()).then(|| self.now() + grace);
        self.change(id, Change::Secret { secret: secret.clone(), previous_valid_until }).await?;
        Ok((secret, previous_valid_until))
    }

    /// Returns who acts through this handle.
    pub(crate) fn doer(&self) -> Actor {
        self.by.as_deref().cloned().unwrap_or_default()
    }

    /// Opens a payment session. An `Ok` means it is durable. Under an idempotency key the same request opens one session,
    /// however often and from however many callers at once it comes.
    ///
    /// # Errors
    /// [`GatewayError::InactiveMerchant`], [`GatewayError::OnHold`], [`GatewayError::Quota`], [`GatewayError::KeyReused`], [`GatewayError::NoRate`], [`GatewayError::HbdOffPeg`], [`GatewayError::LedgerUnavailable`] before the
    /// chain was ever reached, [`GatewayError::Overloaded`], store errors.
    pub async fn open_payment(
        &self,
        merchant: &Merchant,
        draft: Draft,
        key: Option<&IdempotencyKey>,
    ) -> Result<Opened, GatewayError> {
        if !merchant.is_active {
            return Err(GatewayError::InactiveMerchant);
        }
        if !self.context.ledger.is_followed() {
            return Err(GatewayError::LedgerUnavailable);
        }
        let _place = self.waiting.try_acquire().map_err(|_| GatewayError::Overloaded)?;
        let settings = &self.context.settings;
        let now = self.now();
        let terms = Terms {
            merchant: merchant.id,
            pay_to: merchant.hive_account,
            fee_percent: settings.fee_percent,
            fee_mode: settings.fee_mode.clone(),
            rate: self.context.quoting_rate(),
            default_lifetime: settings.session_lifetime,
            grace: settings.session_grace,
            livemode: settings.network().is_live(),
        };
        let env = &self.context.env;
        let key = key.map(|key| key.digest("create payment"));
        self.check_peg(draft.amount, merchant.id, key).await?;
        let id = env.entropy.payment_id(now);
        let remembered = key.map(|key| Remembered {
            merchant: merchant.id,
            key,
            fingerprint: idempotency::fingerprint(&draft),
            made: Made::Payment(id),
            at: now,
        });
        let payment = Payment::open(draft, terms, id, env.entropy.slug(), now).map_err(|_| GatewayError::NoRate)?;
        let payment = Arc::new(payment);
        let mut batch = Batch::of(Write::Payment { payment: Arc::clone(&payment), expected: None });
        if let Some(remembered) = remembered.filter(|_| !mutant!("key-not-remembered")) {
            batch = batch.and(Write::Remember { remembered, most: settings.idempotency_keys });
        }
        // After the key: who repeats a request gets its answer, whatever the merchant has by now.
        batch.writes.extend(self.limits(&payment));
        if mutant!("create-told-before-stored") {
            let store = Arc::clone(&env.store);
            tokio::spawn(async move { store.commit(batch).await });
            return Ok(Opened { payment, is_replay: false });
        }
        match env.store.commit(batch).await {
            Ok(()) => {}
            Err(CommitError::Remembered(earlier)) => {
                let same = remembered.is_some_and(|new| new.fingerprint == earlier.fingerprint);
                let Made::Payment(id) = earlier.made else { return Err(GatewayError::KeyReused) };
                if !same && !mutant!("facade-other-order-gets-the-first") {
                    return Err(GatewayError::KeyReused);
                }
                let payment = self.payment(merchant.id, id).await?;
                return Ok(Opened { payment, is_replay: true });
            }
            Err(CommitError::OnHold(refusal)) => return Err(self.refused(merchant.id, refusal).await),
            Err(error) => return Err(self.commit_failed(error)),
        }
        self.context.opened.fetch_add(1, Ordering::Relaxed);
        self.context.metrics.created.inc();
        env.probe.reach("gateway: created, not adopted");
        self.tell_sessions(registry::Msg::Adopt(Arc::clone(&payment)))?;
        Ok(Opened { payment, is_replay: false })
    }

    /// Returns a merchant's payment.
    ///
    /// # Errors
    /// [`GatewayError::PaymentNotFound`], for another merchant's payment too.
    pub async fn payment(&self, merchant: MerchantId, id: PaymentId) -> Result<Arc<Payment>, GatewayError> {
        let payment = self.any_payment(id).await?;
        let is_own = payment.merchant == merchant || mutant!("another-shop-is-let-in");
        if is_own { Ok(payment) } else { Err(GatewayError::PaymentNotFound) }
    }

    /// Returns a payment, whoever's it is: for the checkout page, which decides what a stranger may see.
    ///
    /// # Errors
    /// [`GatewayError::PaymentNotFound`].
    pub async fn any_payment(&self, id: PaymentId) -> Result<Arc<Payment>, GatewayError> {
        let found = self.context.env.store.payment(id).await.map_err(|e| self.read_failed(&e))?;
        found.map(Arc::new).ok_or(GatewayError::PaymentNotFound)
    }

    /// Returns the payment a checkout address names.
    ///
    /// # Errors
    /// [`GatewayError::PaymentNotFound`].
    pub async fn payment_by_slug(&self, slug: SlugToken) -> Result<Arc<Payment>, GatewayError> {
        let found = self.context.env.store.payment_by_slug(slug).await.map_err(|e| self.read_failed(&e))?;
        found.map(Arc::new).ok_or(GatewayError::PaymentNotFound)
    }

    /// Lists a merchant's payments, newest first.
    ///
    /// # Errors
    /// Store errors.
    pub async fn payments(&self, query: PaymentQuery) -> Result<Page<Payment>, GatewayError> {
        self.context.env.store.payments(query).await.map_err(|e| self.read_failed(&e))
    }

    /// Requests the cancellation of a payment for a customer; block time decides it. Repeating it returns the payment
    /// as it is.
    ///
    /// # Errors
    /// [`GatewayError::Rejected`] where its state or money on its way refuses.
    pub async fn cancel_checkout(&self, id: PaymentId) -> Result<Arc<Payment>, GatewayError> {
        self.cancel(id, Canceller::Customer, None).await
    }

    /// The same for its merchant; the audit log is told.
    ///
    /// # Errors
    /// As [`Gateway::cancel_checkout`], and [`GatewayError::PaymentNotFound`], for another merchant's payment too.
    pub async fn cancel_payment(&self, merchant: MerchantId, id: PaymentId) -> Result<Arc<Payment>, GatewayError> {
        self.payment(merchant, id).await?;
        let told = self.entry("payment_cancel_requested", merchant, Some(id.to_string()), Vec::new());
        self.cancel(id, Canceller::Merchant, Some(told)).await
    }

    async fn cancel(
        &self,
        id: PaymentId,
        by: Canceller,
        told: Option<audit::Entry>,
    ) -> Result<Arc<Payment>, GatewayError> {
        let command = Command::Cancel { by, block_interval: self.context.settings.block_interval };
        match self.order(id, command, told).await {
            Err(SessionError::Rejected { rejection: Rejection::AlreadyCancelled { .. }, payment }) => Ok(payment),
            answer => answer.map_err(Into::into),
        }
    }

    /// Notes that the checkout page opened a wallet or knows a transaction id: a later cancellation leaves the customer
    /// more time. Repeating it changes nothing.
    ///
    /// # Errors
    /// [`GatewayError::Rejected`] where the payment takes no money any more; [`GatewayError::PaymentNotFound`].
    pub async fn report_wallet(&self, id: PaymentId) -> Result<Arc<Payment>, GatewayError> {
        match self.order(id, Command::ReportWallet, None).await {
            Err(SessionError::Rejected { rejection: Rejection::Unchanged { .. }, payment }) => Ok(payment),
            answer => answer.map_err(Into::into),
        }
    }

    /// Returns the payment now and after every change, until it has reached a final state.
    ///
    /// # Errors
    /// [`GatewayError::PaymentNotFound`].
    pub async fn watch_payment(&self, id: PaymentId) -> Result<Watch, GatewayError> {
        let (reply, answer) = oneshot::channel();
        self.tell_sessions(registry::Msg::Watch(id, reply))?;
        answer.await.map_err(|_| GatewayError::StoreFailed)?.map_err(Into::into)
    }

    /// Says how the engine is.
    ///
    /// # Errors
    /// [`GatewayError::StoreFailed`] when it is on its way down.
    pub async fn health(&self) -> Result<Health, GatewayError> {
        let (reply, answer) = oneshot::channel();
        self.tell_sessions(registry::Msg::CountAwake(reply))?;
        let awake = answer.await.map_err(|_| GatewayError::StoreFailed)?;
        let damaged_rows = self.context.env.store.damaged_rows();
        let (ledger, is_following) = (self.context.ledger.status(), self.context.ledger.is_followed());
        Ok(Health { ledger, is_following, awake, damaged_rows })
    }

    /// Shows what the engine counts under the registry's prefix.
    pub fn register_metrics(&self, registry: &mut Registry) {
        self.context.metrics.register(registry);
        let (context, waiting) = (Arc::clone(&self.context), Arc::clone(&self.waiting));
        registry.register_collector(Box::new(LedgerCollector { context, waiting }));
    }

    /// Returns how many deliveries of any merchant wait for the present moment, at most `limit`.
    ///
    /// # Errors
    /// Store errors.
    pub async fn due_deliveries(&self, limit: usize) -> Result<usize, GatewayError> {
        let due = self.context.env.store.due_deliveries(self.now(), limit).await;
        due.map(|due| due.len()).map_err(|e| self.read_failed(&e))
    }

    pub(crate) fn sessions(&self) -> &ActorRef<registry::Msg> {
        &self.sessions
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Has a session carry out a command, which the audit log is told of in the same commit.
    pub(crate) async fn order(
        &self,
        id: PaymentId,
        command: Command,
        told: Option<audit::Entry>,
    ) -> Result<Arc<Payment>, SessionError> {
        let _place = self.waiting.try_acquire().map_err(|_| SessionError::Overloaded)?;
        let (mut order, answer) = Order::awaited(command);
        order.told = told.map(Box::new);
        self.sessions.cast(registry::Msg::Order(id, order)).map_err(|_| SessionError::Unknown)?;
        answer.await.unwrap_or(Err(SessionError::Unknown))
    }

    pub(crate) async fn change(&self, id: MerchantId, change: Change) -> Result<Merchant, GatewayError> {
        let _place = self.waiting.try_acquire().map_err(|_| GatewayError::Overloaded)?;
        let (reply, answer) = oneshot::channel();
        self.tell_merchants(actor::Msg::Change { id, change, by: self.doer(), reply: Some(reply) })?;
        answer.await.map_err(|_| GatewayError::StoreFailed)?.map_err(Into::into)
    }

    fn tell_sessions(&self, message: registry::Msg) -> Result<(), GatewayError> {
        self.sessions.cast(message).map_err(|_| GatewayError::StoreFailed)
    }

    pub(crate) fn tell_merchants(&self, message: actor::Msg) -> Result<(), GatewayError> {
        self.merchants.cast(message).map_err(|_| GatewayError::StoreFailed)
    }

    pub(crate) fn tell_facilitator(&self, message: facilitator::Msg) -> Result<(), GatewayError> {
        self.facilitator.cast(message).map_err(|_| GatewayError::StoreFailed)
    }
}

impl From<SessionError> for GatewayError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::NotFound(_) => Self::PaymentNotFound,
            SessionError::Rejected { rejection, .. } => Self::Rejected(rejection),
            SessionError::Overloaded => Self::Overloaded,
            SessionError::Claimed(_) | SessionError::Assigned(_) | SessionError::Contended => Self::Contended,
            SessionError::Damaged { table, key } => Self::Damaged { table, key },
            SessionError::Unknown => Self::StoreFailed,
        }
    }
}

impl From<MerchantError> for GatewayError {
    fn from(error: MerchantError) -> Self {
        match error {
            MerchantError::NotFound(_) => Self::MerchantNotFound,
            MerchantError::Key(rejection) => Self::Key(rejection),
            MerchantError::Ownership(rejection) => Self::Ownership(rejection),
            MerchantError::Secrets(refused) => Self::TooManySecrets { possible_at: refused.possible_at },
            MerchantError::Overloaded => Self::Overloaded,
            MerchantError::Contended => Self::Contended,
            MerchantError::Damaged { table, key } => Self::Damaged { table, key },
            MerchantError::Unknown => Self::StoreFailed,
        }
    }
}
