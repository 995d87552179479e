//! The handle of merchants: authenticates, reads and changes them.

use std::{sync::Arc, time::Duration};

use engine::{
    account::AccountName,
    audit::Actor,
    fields::Violation,
    ids::MerchantId,
    merchant::{ApiKey, KeyDigest, Merchant, Update},
    time::Timestamp,
    webhook::Secret,
};
use ractor::ActorRef;
use storage::{ListedMerchant, MerchantQuery, Page};
use tokio::sync::oneshot;

use crate::{
    access::Access,
    chain::{ledger::Ledger, nodes::pool::NodesError},
    error::EngineError,
    merchants::messages::{Change, MerchantMsg},
};

/// Merchants, their API keys, accounts and limits. Cheap to clone.
#[derive(Clone)]
pub struct Merchants {
    pub(crate) access: Access,
    pub(crate) ledger: Arc<Ledger>,
    actor: ActorRef<MerchantMsg>,
}

impl Merchants {
    pub(crate) fn new(access: Access, ledger: Arc<Ledger>, actor: ActorRef<MerchantMsg>) -> Self {
        Self { access, ledger, actor }
    }

    /// Returns the same handle for another actor of the audit log.
    pub(crate) fn by(&self, actor: Arc<Actor>) -> Self {
        Self { access: self.access.by(actor), ..self.clone() }
    }

    /// Returns the merchant of an API key, and records the use of the key.
    ///
    /// # Errors
    /// [`EngineError::Unauthenticated`] for unknown and malformed keys.
    pub async fn authenticate(&self, api_key: &str) -> Result<Arc<Merchant>, EngineError> {
        self.authenticate_key(api_key).await.map(|(merchant, _)| merchant)
    }

    /// The same, with the record of the key.
    ///
    /// # Errors
    /// As [`Merchants::authenticate`].
    pub async fn authenticate_key(&self, api_key: &str) -> Result<(Arc<Merchant>, ApiKey), EngineError> {
        let digest = KeyDigest::of(api_key);
        let found =
            self.access.context.env.store.merchant_by_key(digest).await.map_err(|e| self.access.read_failed(&e))?;
        let now = self.access.now();
        let found = found.and_then(|merchant| merchant.key(&digest, now).cloned().map(|key| (merchant, key)));
        let (merchant, key) = found.ok_or(EngineError::Unauthenticated)?;
        if key.should_record_use(now) {
            let (change, by) = (Change::KeyUsed(key.id), Actor::default());
            let _ = self.actor.cast(MerchantMsg::Change { id: merchant.id, change, by, reply: None });
        }
        Ok((merchant, key))
    }

    /// Returns a merchant.
    ///
    /// # Errors
    /// [`EngineError::MerchantNotFound`].
    pub async fn get(&self, id: MerchantId) -> Result<Arc<Merchant>, EngineError> {
        self.access.merchant(id).await
    }

    /// Lists merchants, newest first.
    ///
    /// # Errors
    /// Store errors.
    pub async fn list(&self, query: MerchantQuery) -> Result<Page<ListedMerchant>, EngineError> {
        self.access.context.env.store.merchants(query).await.map_err(|e| self.access.read_failed(&e))
    }

    /// Changes a merchant; a new account must exist on the ledger. A proven account changes later, after both accounts
    /// have signed.
    ///
    /// # Errors
    /// As [`Merchants::register`], and [`EngineError::MerchantNotFound`].
    pub async fn update(&self, id: MerchantId, update: Update) -> Result<Merchant, EngineError> {
        if let Some(account) = &update.hive_account {
            // Checked first: a merchant above its limit of changes causes no request to a node.
            let merchant = self.access.merchant(id).await?;
            merchant.with_account(*account, Duration::ZERO, self.access.now()).map_err(EngineError::Ownership)?;
            self.check_account(account).await?;
        }
        if let Some(Some(url)) = &update.webhook_url
            && !self.access.context.env.webhooks.accepts(url)
        {
            let violation = Violation::new("webhookUrl", "must not name a private or reserved address");
            return Err(EngineError::Invalid(vec![violation]));
        }
        self.change(id, Change::Update(update)).await
    }

    /// Activates or deactivates a merchant.
    ///
    /// # Errors
    /// [`EngineError::MerchantNotFound`]; store errors.
    pub async fn set_active(&self, id: MerchantId, is_active: bool) -> Result<Merchant, EngineError> {
        self.change(id, Change::SetActive(is_active)).await
    }

    /// Rotates a merchant's webhook secret. The old one is invalid at once, or also signs for `grace`.
    ///
    /// # Errors
    /// [`EngineError::MerchantNotFound`]; store errors.
    pub async fn rotate_webhook_secret(
        &self,
        id: MerchantId,
        grace: Duration,
    ) -> Result<(Secret, Option<Timestamp>), EngineError> {
        let secret = Secret::from_random(self.access.context.env.entropy.bytes());
        let previous_valid_until = (!grace.is_zero()).then(|| self.access.now() + grace);
        self.change(id, Change::Secret { secret: secret.clone(), previous_valid_until }).await?;
        Ok((secret, previous_valid_until))
    }

    /// Checks that an account exists on the ledger.
    pub(crate) async fn check_account(&self, name: &AccountName) -> Result<(), EngineError> {
        match self.ledger.nodes.account(name).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(EngineError::UnknownAccount(*name)),
            Err(NodesError::Unavailable(_) | NodesError::Unknown(_) | NodesError::Disagree { .. }) => {
                Err(EngineError::LedgerUnavailable)
            }
        }
    }

    pub(crate) async fn change(&self, id: MerchantId, change: Change) -> Result<Merchant, EngineError> {
        let _permit = self.access.permit()?;
        let (reply, answer) = oneshot::channel();
        self.tell(MerchantMsg::Change { id, change, by: self.access.actor(), reply: Some(reply) })?;
        answer.await.map_err(|_| EngineError::StoreFailed)?.map_err(Into::into)
    }

    /// Sends a message to the actor of merchants.
    ///
    /// # Errors
    /// [`EngineError::StoreFailed`] while the engine shuts down.
    pub(crate) fn tell(&self, message: MerchantMsg) -> Result<(), EngineError> {
        self.actor.cast(message).map_err(|_| EngineError::StoreFailed)
    }
}
