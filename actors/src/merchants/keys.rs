//! API keys beyond the first.

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
    /// Gives a merchant a new API key; every other stops at once.
    ///
    /// # Errors
    /// [`EngineError::MerchantNotFound`]; store errors.
    pub async fn reissue_api_key(&self, id: MerchantId) -> Result<(Merchant, String), EngineError> {
        let text = api_key_text(self.access.context.env.entropy.bytes());
        let key = self.access.context.env.entropy.key_id(self.access.now());
        let merchant = self.change(id, Change::ReissueKey { id: key, text: text.clone() }).await?;
        Ok((merchant, text))
    }

    /// Gives a merchant a further API key.
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

    /// Takes one of a merchant's API keys back, at once.
    ///
    /// # Errors
    /// As [`Merchants::create_api_key`].
    pub async fn revoke_api_key(&self, id: MerchantId, key: KeyId) -> Result<(), EngineError> {
        self.change(id, Change::RevokeKey(key)).await.map(drop)
    }

    /// Says whether merchants may roll their keys by themselves.
    #[must_use]
    pub fn allows_key_roll(&self) -> bool {
        self.access.context.settings.key_roll
    }

    /// Gives one of a merchant's API keys a successor; the old one stops at once, or goes on for `overlap`.
    ///
    /// # Errors
    /// [`EngineError::NoKeyRoll`] where support does this; as [`Merchants::create_api_key`].
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
