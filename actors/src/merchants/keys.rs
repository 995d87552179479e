//! API keys beyond the first, and the audit log: what the handle does for whoever minds a merchant.

use std::time::Duration;

use engine::{
    account::AccountName,
    audit::{self, Entry},
    ids::{KeyId, MerchantId},
    merchant::{ApiKey, Merchant, Scopes, api_key_text},
    time::Timestamp,
};
use storage::{AuditQuery, Batch, Write};

use crate::{
    gateway::{Gateway, GatewayError},
    merchants::actor::Change,
};

impl Gateway {
    /// Gives a merchant a new API key; every other stops at once.
    ///
    /// # Errors
    /// [`GatewayError::MerchantNotFound`]; store errors.
    pub async fn reissue_api_key(&self, id: MerchantId) -> Result<(Merchant, String), GatewayError> {
        let text = api_key_text(self.context().env.entropy.bytes());
        let key = self.context().env.entropy.key_id(self.now());
        let merchant = self.change(id, Change::ReissueKey { id: key, text: text.clone() }).await?;
        Ok((merchant, text))
    }

    /// Gives a merchant a further API key.
    ///
    /// # Errors
    /// [`GatewayError::Key`]; [`GatewayError::MerchantNotFound`]; store errors.
    pub async fn create_api_key(
        &self,
        id: MerchantId,
        name: &str,
        scopes: Scopes,
    ) -> Result<(ApiKey, String), GatewayError> {
        let text = api_key_text(self.context().env.entropy.bytes());
        let now = self.now();
        let key = ApiKey::issue(self.context().env.entropy.key_id(now), &text, name, scopes, now);
        self.change(id, Change::AddKey(Box::new(key.clone()))).await?;
        Ok((key, text))
    }

    /// Takes one of a merchant's API keys back, at once.
    ///
    /// # Errors
    /// As [`Gateway::create_api_key`].
    pub async fn revoke_api_key(&self, id: MerchantId, key: KeyId) -> Result<(), GatewayError> {
        self.change(id, Change::RevokeKey(key)).await.map(drop)
    }

    /// Says whether merchants may roll their keys by themselves.
    #[must_use]
    pub fn allows_key_roll(&self) -> bool {
        self.context().settings.key_roll
    }

    /// Gives one of a merchant's API keys a successor; the old one stops at once, or goes on for `overlap`.
    ///
    /// # Errors
    /// [`GatewayError::NoKeyRoll`] where support does this; as [`Gateway::create_api_key`].
    pub async fn roll_api_key(
        &self,
        id: MerchantId,
        old: KeyId,
        overlap: Duration,
    ) -> Result<(ApiKey, String, Option<Timestamp>), GatewayError> {
        if !self.context().settings.key_roll {
            return Err(GatewayError::NoKeyRoll);
        }
        let now = self.now();
        let text = api_key_text(self.context().env.entropy.bytes());
        let new = self.context().env.entropy.key_id(now);
        let valid_until = (!overlap.is_zero()).then(|| now + overlap);
        let change = Change::RollKey { old, id: new, text: text.clone(), valid_until };
        let merchant = self.change(id, change).await?;
        let key = merchant.keys.into_iter().find(|key| key.id == new);
        key.map(|key| (key, text, valid_until)).ok_or(GatewayError::Contended)
    }

    /// Returns entries of the audit log, newest first.
    ///
    /// # Errors
    /// Store errors.
    pub async fn audit(&self, query: AuditQuery) -> Result<Vec<Entry>, GatewayError> {
        self.context().env.store.audit(query).await.map_err(|e| self.read_failed(&e))
    }

    /// Notes in the audit log that the records of a Hive account are exported.
    ///
    /// # Errors
    /// Store errors.
    pub async fn note_account_export(&self, account: AccountName) -> Result<(), GatewayError> {
        // It concerns no single merchant.
        let merchant = self.doer().merchant.unwrap_or(MerchantId::from_bits(0));
        let deed = self.deed("account_exported", merchant, Some(account.to_string()), Vec::new());
        self.context().env.store.commit(Batch::of(deed)).await.map_err(|e| self.commit_failed(e))
    }

    /// Returns the audit log's line of a deed, to be stored with the deed.
    pub(crate) fn entry(
        &self,
        action: &str,
        merchant: MerchantId,
        subject: Option<String>,
        changes: Vec<audit::Change>,
    ) -> Entry {
        let (at, actor, action) = (self.now(), self.doer(), action.to_owned());
        Entry { seq: 0, at, actor, action, merchant, subject, changes }
    }

    /// The same as a write of the deed's batch.
    pub(crate) fn deed(
        &self,
        action: &str,
        merchant: MerchantId,
        subject: Option<String>,
        changes: Vec<audit::Change>,
    ) -> Write {
        Write::Audit(Box::new(self.entry(action, merchant, subject, changes)))
    }
}
