//! Additional webhook endpoints of merchants.

use std::time::Duration;

use engine::{
    fields::Violation,
    ids::{EndpointId, MerchantId},
    time::Timestamp,
    webhook::{EndpointDraft, EndpointUpdate, Secret},
};

use crate::{
    error::EngineError,
    merchants::{handle::Merchants, messages::Change},
};

impl Merchants {
    /// Creates an additional webhook endpoint; returns its id and its secret.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] for a URL with a private address; [`EngineError::TooManyEndpoints`];
    /// [`EngineError::MerchantNotFound`]; store errors.
    pub async fn create_endpoint(
        &self,
        merchant: MerchantId,
        draft: EndpointDraft,
    ) -> Result<(EndpointId, Secret), EngineError> {
        self.check_url(draft.url())?;
        let entropy = &self.access.context.env.entropy;
        let id = entropy.endpoint_id(self.access.now());
        let secret = Secret::from_random(entropy.bytes());
        let change = Change::AddEndpoint { id, draft: Box::new(draft), secret: secret.clone() };
        self.change(merchant, change).await?;
        Ok((id, secret))
    }

    /// Changes an additional webhook endpoint. The health of an endpoint with a new URL starts over.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] for a URL with a private address; [`EngineError::EndpointNotFound`];
    /// [`EngineError::MerchantNotFound`]; store errors.
    pub async fn update_endpoint(
        &self,
        merchant: MerchantId,
        id: EndpointId,
        update: EndpointUpdate,
    ) -> Result<(), EngineError> {
        update.url.as_deref().map_or(Ok(()), |url| self.check_url(url))?;
        self.change(merchant, Change::UpdateEndpoint { id, update: Box::new(update) }).await.map(drop)
    }

    /// Deletes an additional webhook endpoint. Its pending deliveries fail.
    ///
    /// # Errors
    /// [`EngineError::EndpointNotFound`]; [`EngineError::MerchantNotFound`]; store errors.
    pub async fn delete_endpoint(&self, merchant: MerchantId, id: EndpointId) -> Result<(), EngineError> {
        self.change(merchant, Change::RemoveEndpoint(id)).await.map(drop)
    }

    /// Rotates the secret of an additional webhook endpoint. The old one is invalid at once, or also signs for `grace`.
    ///
    /// # Errors
    /// [`EngineError::EndpointNotFound`]; [`EngineError::TooManySecrets`]; [`EngineError::MerchantNotFound`]; store
    /// errors.
    pub async fn rotate_endpoint_secret(
        &self,
        merchant: MerchantId,
        id: EndpointId,
        grace: Duration,
    ) -> Result<(Secret, Option<Timestamp>), EngineError> {
        if id == EndpointId::default_of(merchant) {
            return self.rotate_webhook_secret(merchant, grace).await;
        }
        let secret = Secret::from_random(self.access.context.env.entropy.bytes());
        let previous_valid_until = (!grace.is_zero()).then(|| self.access.now() + grace);
        let change = Change::EndpointSecret { id, secret: secret.clone(), previous_valid_until };
        self.change(merchant, change).await?;
        Ok((secret, previous_valid_until))
    }

    /// Checks that webhooks may be sent to a URL.
    fn check_url(&self, url: &str) -> Result<(), EngineError> {
        if self.access.context.env.webhooks.accepts(url) {
            return Ok(());
        }
        Err(EngineError::Invalid(vec![Violation::new("url", "must not name a private or reserved address")]))
    }
}
