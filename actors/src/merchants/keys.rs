//! API keys of merchants.

use std::time::Duration;

use engine::{
    ids::{KeyId, MerchantId},
    merchant::{ApiKey, Merchant, Scopes, api_key_text},
    time::Timestamp,
};

use crate::{
    error::EngineError,
    merchants::{handle::Merchants, messages::Change},
};

impl Merchants {
    /// Replaces all API keys of a merchant by a new one.
    ///
    /// # Errors
    /// [`EngineError::MerchantNotFound`]; store errors.
    pub async fn reissue_api_key(&self, id: MerchantId) -> Result<(Merchant, String), EngineError> {
        let text = api_key_text(self.access.context.env.entropy.bytes());
        let key = self.access.context.env.entropy.key_id(self.access.now());
        let merchant = self.change(id, Change::ReissueKey { id: key, text: text.clone() }).await?;
        Ok((merchant, text))
    }

    /// Creates an additional API key.
    ///
    /// # Errors
    /// [`EngineError::Key`]; [`EngineError::MerchantNotFound`]; store errors.
    pub async fn create_api_key(
        &self,
        id: MerchantId,
        name: &str,
        scopes: Scopes,
    ) -> Result<(ApiKey, String), EngineError> {
        let text = api_key_text(self.access.context.env.entropy.bytes());
        let now = self.access.now();
        let key = ApiKey::issue(self.access.context.env.entropy.key_id(now), &text, name, scopes, now);
        self.change(id, Change::AddKey(Box::new(key.clone()))).await?;
        Ok((key, text))
    }

    /// Revokes an API key at once.
    ///
    /// # Errors
    /// As [`Merchants::create_api_key`].
    pub async fn revoke_api_key(&self, id: MerchantId, key: KeyId) -> Result<(), EngineError> {
        self.change(id, Change::RevokeKey(key)).await.map(drop)
    }

    /// Returns whether merchants may roll their keys.
    #[must_use]
    pub fn allows_key_roll(&self) -> bool {
        self.access.context.settings.key_roll
    }

    /// Replaces an API key by a new one; the old one is revoked at once, or after `overlap`.
    ///
    /// # Errors
    /// [`EngineError::NoKeyRoll`] if only the operator rolls keys; as [`Merchants::create_api_key`].
    pub async fn roll_api_key(
        &self,
        id: MerchantId,
        old: KeyId,
        overlap: Duration,
    ) -> Result<(ApiKey, String, Option<Timestamp>), EngineError> {
        if !self.access.context.settings.key_roll {
            return Err(EngineError::NoKeyRoll);
        }
        let now = self.access.now();
        let text = api_key_text(self.access.context.env.entropy.bytes());
        let new = self.access.context.env.entropy.key_id(now);
        let valid_until = (!overlap.is_zero()).then(|| now + overlap);
        let change = Change::RollKey { old, id: new, text: text.clone(), valid_until };
        let merchant = self.change(id, change).await?;
        let key = merchant.keys.into_iter().find(|key| key.id == new);
        key.map(|key| (key, text, valid_until)).ok_or(EngineError::Contended)
    }
}
