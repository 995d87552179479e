//! The handle of payments: opens, reads, cancels and watches them.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use engine::{
    audit::{self, Actor},
    idempotency::{IdempotencyKey, IdempotencyRecord, RequestDigests, Resource},
    ids::{MerchantId, PaymentId, SlugToken},
    merchant::Merchant,
    money::{Currency, Money},
    mutant,
    payment::{Canceller, Command, Draft, Payment, Rejection, RestartRejection, Terms},
    time::Timestamp,
};
use ractor::ActorRef;
use storage::{Batch, CommitError, Page, PaymentQuery, Volume, VolumeQuery, Write};
use tokio::sync::{oneshot, watch};

use crate::{
    access::Access,
    chain::ledger::Ledger,
    error::EngineError,
    merchants::handle::Merchants,
    payments::{
        messages::{Order, RegistryMsg, SessionError},
        watchers::Watch,
    },
};

const DAY_MS: u64 = 86_400_000;

/// The result of opening a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The session in its current state.
    pub payment: Arc<Payment>,
    /// Whether an earlier request with the same idempotency key opened it.
    pub is_replay: bool,
}

/// Payments and the transfers to merchants' accounts. Cheap to clone.
#[derive(Clone)]
pub struct Payments {
    pub(crate) access: Access,
    pub(crate) merchants: Merchants,
    ledger: Arc<Ledger>,
    registry: ActorRef<RegistryMsg>,
    /// The block time up to which payments may expire.
    irreversible: Arc<watch::Sender<Timestamp>>,
    /// Payments opened through this engine.
    opened: Arc<AtomicU64>,
}

impl Payments {
    pub(crate) fn new(
        access: Access,
        ledger: Arc<Ledger>,
        merchants: Merchants,
        registry: ActorRef<RegistryMsg>,
        irreversible: watch::Sender<Timestamp>,
    ) -> Self {
        Self { access, merchants, ledger, registry, irreversible: Arc::new(irreversible), opened: Arc::default() }
    }

    /// Returns the same handle for another actor of the audit log.
    pub(crate) fn by(&self, actor: Arc<Actor>) -> Self {
        Self { access: self.access.by(Arc::clone(&actor)), merchants: self.merchants.by(actor), ..self.clone() }
    }

    /// Opens a payment session. An `Ok` means it is durable. Requests with the same idempotency key open one session,
    /// also concurrently.
    ///
    /// # Errors
    /// [`EngineError::InactiveMerchant`], [`EngineError::OnHold`], [`EngineError::Quota`], [`EngineError::KeyReused`], [`EngineError::NoRate`], [`EngineError::HbdOffPeg`], [`EngineError::LedgerUnavailable`] before the
    /// chain was ever reached, [`EngineError::Overloaded`], store errors.
    pub async fn open(
        &self,
        merchant: &Merchant,
        draft: Draft,
        key: Option<&IdempotencyKey>,
    ) -> Result<Opened, EngineError> {
        let digests = key.map(|key| RequestDigests::of_creation(key, &draft));
        self.open_once(merchant, draft, digests).await
    }

    /// Opens a session with the terms of an expired payment of the merchant. Every request for the same payment returns the
    /// same session, also concurrently.
    ///
    /// # Errors
    /// [`EngineError::Restart`], and as [`Payments::open`].
    pub async fn restart(&self, merchant: &Merchant, expired: &Payment) -> Result<Opened, EngineError> {
        if !merchant.restart_enabled {
            return Err(EngineError::Restart(RestartRejection::Disabled));
        }
        let draft = expired.restarted(self.access.now()).map_err(EngineError::Restart)?;
        self.open_once(merchant, draft, Some(RequestDigests::of_restart(expired.id))).await
    }

    /// Opens a session, or returns the one that an earlier request with the same digests opened.
    async fn open_once(
        &self,
        merchant: &Merchant,
        draft: Draft,
        digests: Option<RequestDigests>,
    ) -> Result<Opened, EngineError> {
        if !merchant.is_active {
            return Err(EngineError::InactiveMerchant);
        }
        if !self.ledger.view.is_followed() {
            return Err(EngineError::LedgerUnavailable);
        }
        let _permit = self.access.permit()?;
        let settings = &self.access.context.settings;
        let now = self.access.now();
        let terms = Terms {
            merchant: merchant.id,
            pay_to: merchant.hive_account,
            fee_percent: settings.fee_percent,
            fee_mode: settings.fee_mode.clone(),
            rate: self.ledger.quoting_rate(),
            default_lifetime: settings.session_lifetime,
            grace: settings.session_grace,
            livemode: settings.network().is_live(),
        };
        let env = &self.access.context.env;
        self.check_peg(draft.amount, merchant.id, digests.map(|digests| digests.key)).await?;
        let id = env.entropy.payment_id(now);
        let remembered = digests.map(|RequestDigests { key, fingerprint }| IdempotencyRecord {
            merchant: merchant.id,
            key,
            fingerprint,
            resource: Resource::Payment(id),
            at: now,
        });
        let payment = Payment::open(draft, terms, id, env.entropy.slug(), now).map_err(|_| EngineError::NoRate)?;
        let payment = Arc::new(payment);
        let mut batch = Batch::of(Write::Payment { payment: Arc::clone(&payment), expected: None });
        if let Some(remembered) = remembered.filter(|_| !mutant!("idempotency-key-not-stored")) {
            batch = batch.and(Write::Remember { remembered, most: settings.idempotency_keys });
        }
        // Checked after the key: a repeated request gets its response even if the quota is used up by now.
        batch.writes.extend(self.merchants.limits(&payment));
        if mutant!("create-acknowledged-before-commit") {
            let store = Arc::clone(&env.store);
            tokio::spawn(async move { store.commit(batch).await });
            return Ok(Opened { payment, is_replay: false });
        }
        match env.store.commit(batch).await {
            Ok(()) => {}
            Err(CommitError::Remembered(earlier)) => {
                let same = remembered.is_some_and(|new| new.fingerprint == earlier.fingerprint);
                let Resource::Payment(id) = earlier.resource else { return Err(EngineError::KeyReused) };
                if !same && !mutant!("facade-key-reuse-returns-the-first") {
                    return Err(EngineError::KeyReused);
                }
                let payment = self.get(merchant.id, id).await?;
                return Ok(Opened { payment, is_replay: true });
            }
            Err(CommitError::OnHold(refusal)) => return Err(self.merchants.refused(merchant.id, refusal).await),
            Err(error) => return Err(self.access.commit_failed(error)),
        }
        self.opened.fetch_add(1, Ordering::Relaxed);
        self.access.context.metrics.created.inc();
        env.probe.reach("gateway: created, not adopted");
        self.send(RegistryMsg::Adopt(Arc::clone(&payment)))?;
        Ok(Opened { payment, is_replay: false })
    }

    /// Returns a merchant's payment.
    ///
    /// # Errors
    /// [`EngineError::PaymentNotFound`], also for another merchant's payment.
    pub async fn get(&self, merchant: MerchantId, id: PaymentId) -> Result<Arc<Payment>, EngineError> {
        let payment = self.any(id).await?;
        let is_own = payment.merchant == merchant || mutant!("other-merchant-is-authorized");
        if is_own { Ok(payment) } else { Err(EngineError::PaymentNotFound) }
    }

    /// Returns the payment of any merchant, for the checkout page, which limits what is shown.
    ///
    /// # Errors
    /// [`EngineError::PaymentNotFound`].
    pub async fn any(&self, id: PaymentId) -> Result<Arc<Payment>, EngineError> {
        let found = self.access.context.env.store.payment(id).await.map_err(|e| self.access.read_failed(&e))?;
        found.map(Arc::new).ok_or(EngineError::PaymentNotFound)
    }

    /// Returns the payment of a checkout slug.
    ///
    /// # Errors
    /// [`EngineError::PaymentNotFound`].
    pub async fn by_slug(&self, slug: SlugToken) -> Result<Arc<Payment>, EngineError> {
        let found =
            self.access.context.env.store.payment_by_slug(slug).await.map_err(|e| self.access.read_failed(&e))?;
        found.map(Arc::new).ok_or(EngineError::PaymentNotFound)
    }

    /// Lists a merchant's payments, newest first.
    ///
    /// # Errors
    /// Store errors.
    pub async fn list(&self, query: PaymentQuery) -> Result<Page<Payment>, EngineError> {
        self.access.context.env.store.payments(query).await.map_err(|e| self.access.read_failed(&e))
    }

    /// Requests the cancellation of a payment on behalf of the customer; block time decides it. Repeating it returns
    /// the payment unchanged.
    ///
    /// # Errors
    /// [`EngineError::Rejected`] because of its state or a transfer in flight.
    pub async fn cancel_checkout(&self, id: PaymentId) -> Result<Arc<Payment>, EngineError> {
        self.request_cancellation(id, Canceller::Customer, None).await
    }

    /// The same on behalf of its merchant, with an audit event.
    ///
    /// # Errors
    /// As [`Payments::cancel_checkout`], and [`EngineError::PaymentNotFound`], also for another merchant's payment.
    pub async fn cancel(&self, merchant: MerchantId, id: PaymentId) -> Result<Arc<Payment>, EngineError> {
        self.get(merchant, id).await?;
        let audit_entry = self.access.entry("payment_cancel_requested", merchant, Some(id.to_string()), Vec::new());
        self.request_cancellation(id, Canceller::Merchant, Some(audit_entry)).await
    }

    async fn request_cancellation(
        &self,
        id: PaymentId,
        by: Canceller,
        audit_entry: Option<audit::Entry>,
    ) -> Result<Arc<Payment>, EngineError> {
        let command = Command::Cancel { by, block_interval: self.access.context.settings.block_interval };
        match self.order(id, command, audit_entry).await {
            Err(SessionError::Rejected { rejection: Rejection::AlreadyCancelled { .. }, payment }) => Ok(payment),
            response => response.map_err(Into::into),
        }
    }

    /// Records that the checkout page opened a wallet or reported a transaction id, so that a later cancellation allows
    /// more time. Repeating it changes nothing.
    ///
    /// # Errors
    /// [`EngineError::Rejected`] if the payment accepts no transfer any more; [`EngineError::PaymentNotFound`].
    pub async fn report_wallet(&self, id: PaymentId) -> Result<Arc<Payment>, EngineError> {
        match self.order(id, Command::ReportWallet, None).await {
            Err(SessionError::Rejected { rejection: Rejection::Unchanged { .. }, payment }) => Ok(payment),
            response => response.map_err(Into::into),
        }
    }

    /// Returns the payment now and after every change, until a final state.
    ///
    /// # Errors
    /// [`EngineError::PaymentNotFound`].
    pub async fn watch(&self, id: PaymentId) -> Result<Watch, EngineError> {
        let (snapshots, changes) = Watch::channel();
        let (added, is_added) = oneshot::channel();
        self.send(RegistryMsg::Watch { id, snapshots, added })?;
        is_added.await.map_err(|_| EngineError::StoreFailed)?;
        Ok(Watch::new(self.any(id).await?, changes))
    }

    /// Refuses a new payment in HBD while it is off its peg, if the settings require it. A repeated request returns its
    /// existing payment.
    async fn check_peg(&self, amount: Money, merchant: MerchantId, key: Option<[u8; 32]>) -> Result<(), EngineError> {
        let context = &self.access.context;
        let is_off_peg = self.ledger.quoting_rate().is_some_and(|rate| rate.hbd.is_some());
        if amount.currency != Currency::Hbd
            || !is_off_peg
            || !context.settings.hbd_peg.refuses
            || mutant!("off-peg-not-refused")
        {
            return Ok(());
        }
        if let Some(key) = key
            && context.env.store.remembered(merchant, key).await.map_err(|e| self.access.read_failed(&e))?.is_some()
        {
            return Ok(());
        }
        Err(EngineError::HbdOffPeg)
    }

    /// Returns the payment volume of the last `days` UTC days, including today.
    ///
    /// # Errors
    /// Store errors.
    pub async fn volume(&self, merchant: MerchantId, days: u64) -> Result<Volume, EngineError> {
        let query = VolumeQuery { merchant, last_day: self.access.now().millis() / DAY_MS, days };
        self.access.context.env.store.volume(query).await.map_err(|e| self.access.read_failed(&e))
    }

    /// Executes a command on a session, with an audit event in the same commit.
    pub(crate) async fn order(
        &self,
        id: PaymentId,
        command: Command,
        audit_entry: Option<audit::Entry>,
    ) -> Result<Arc<Payment>, SessionError> {
        let _permit = self.access.permit().map_err(|_| SessionError::Overloaded)?;
        let (mut order, response) = Order::awaited(command);
        order.audit_entry = audit_entry.map(Box::new);
        self.registry.cast(RegistryMsg::Order(id, order)).map_err(|_| SessionError::Unknown)?;
        response.await.unwrap_or(Err(SessionError::Unknown))
    }

    /// Returns the number of payments opened through this engine.
    pub(crate) fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// Returns the registry of active payments, for the actors that send to it.
    pub(crate) fn registry(&self) -> &ActorRef<RegistryMsg> {
        &self.registry
    }

    /// Activates a payment that another engine may have changed, and follows its claim.
    pub(crate) fn refresh(&self, id: PaymentId) -> Result<(), EngineError> {
        if self.access.context.env.store.is_shared() { self.send(RegistryMsg::Refresh(id)) } else { Ok(()) }
    }

    /// Activates a new payment.
    pub(crate) fn adopt(&self, payment: Arc<Payment>) -> Result<(), EngineError> {
        self.send(RegistryMsg::Adopt(payment))
    }

    /// Expires due payments: every block up to this time is scanned and irreversible.
    pub(crate) fn advanced(&self, time: Timestamp) {
        self.irreversible.send_modify(|latest| *latest = time.max(*latest));
    }

    /// Returns the number of active payments.
    ///
    /// # Errors
    /// [`EngineError::StoreFailed`] while the engine shuts down.
    pub(crate) async fn count_active(&self) -> Result<usize, EngineError> {
        let (reply, response) = oneshot::channel();
        self.send(RegistryMsg::CountActive(reply))?;
        response.await.map_err(|_| EngineError::StoreFailed)
    }

    fn send(&self, message: RegistryMsg) -> Result<(), EngineError> {
        self.registry.cast(message).map_err(|_| EngineError::StoreFailed)
    }
}
