//! Signed offers and receipts: the keys of the installation in the store, and what they sign.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use engine::{
    ids::MerchantId,
    payment::{Payment, State},
    time::Timestamp,
    x402::{OfferTerms, ReceiptKey, ReceiptKeys, ReceiptTerms, Signer},
};
use storage::{Batch, CommitError, Write};

use crate::{
    error::EngineError,
    x402::handle::{Settled, X402},
};

/// How long an engine signs with a key before it reads the stored one again: a rotation reaches every engine within this time.
const SIGNER_LIFETIME: Duration = Duration::from_secs(10);
/// Maximum number of retries after a concurrent change of the keys.
const MAX_CONFLICTS: usize = 5;

/// The signer of the key that was read last, and when it was read.
#[derive(Debug, Default)]
pub(crate) struct SignerCache(Mutex<Option<(Timestamp, Arc<Signer>)>>);

impl SignerCache {
    fn get(&self, now: Timestamp) -> Option<Arc<Signer>> {
        let cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, signer) = cached.as_ref().filter(|(read_at, _)| now.since(*read_at) < SIGNER_LIFETIME)?;
        Some(Arc::clone(signer))
    }

    fn set(&self, now: Timestamp, keys: &ReceiptKeys) -> Arc<Signer> {
        let signer = Arc::new(Signer::new(&keys.current));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, Arc::clone(&signer)));
        signer
    }
}

impl X402 {
    /// Returns the public keys of signed offers and receipts, the current one first. Creates the first key if the settings
    /// have offers and receipts signed.
    ///
    /// # Errors
    /// Store errors.
    pub async fn public_receipt_keys(&self) -> Result<Vec<[u8; 32]>, EngineError> {
        let keys =
            if self.signs() { Some(self.existing_receipt_keys().await?) } else { self.stored_receipt_keys().await? };
        Ok(keys.iter().flat_map(ReceiptKeys::public_keys).collect())
    }

    /// Replaces the key that signs offers and receipts, and returns the new public key. The old one remains in the key set.
    /// This engine signs with the new key from now on, others within ten seconds.
    ///
    /// # Errors
    /// [`EngineError::Contended`] after repeated concurrent changes; store errors.
    pub async fn rotate_receipt_key(&self) -> Result<[u8; 32], EngineError> {
        for _ in 0..MAX_CONFLICTS {
            let (stored, now) = (self.stored_receipt_keys().await?, self.access.now());
            let key = ReceiptKey::new(self.access.context.env.entropy.bytes());
            let public = key.public();
            let (keys, expected) = match &stored {
                Some(keys) => (keys.rotate(key, now), keys.version),
                None => (ReceiptKeys::create(key, now), 0),
            };
            let merchant = self.access.actor().merchant.unwrap_or(MerchantId::from_bits(0));
            let subject = Some(engine::x402::receipt_key_id(&public));
            let entry = self.access.audit_event("receipt_key_rotated", merchant, subject, Vec::new());
            if self.store_receipt_keys(&keys, expected, Some(entry)).await? {
                self.signers.set(now, &keys);
                return Ok(public);
            }
        }
        Err(EngineError::Contended)
    }

    /// Signs the offer of a payment at the URL of its checkout page. `None` if the payment is not open, or the settings have
    /// offers unsigned.
    ///
    /// # Errors
    /// Store errors.
    pub async fn sign_offer(&self, payment: &Payment, url: &str) -> Result<Option<String>, EngineError> {
        let is_open = payment.state == State::Pending && !payment.is_expired(self.access.now());
        if !is_open || !self.signs() {
            return Ok(None);
        }
        let valid_until = payment.expires_at;
        let terms = OfferTerms { url, amount: payment.amount, pay_to: &payment.pay_to, valid_until };
        Ok(Some(self.signer().await?.sign_offer(&terms)))
    }

    /// Signs the receipt of a settled payment for the URL of its checkout page. `None` if the settings have receipts unsigned.
    /// A repeated request gets the same receipt: it is issued at the time of completion.
    ///
    /// # Errors
    /// Store errors.
    pub async fn sign_receipt(
        &self,
        settled: &Settled,
        payment: &Payment,
        url: &str,
    ) -> Result<Option<String>, EngineError> {
        if !self.signs() {
            return Ok(None);
        }
        let issued_at = payment.completed_at.unwrap_or_else(|| self.access.now());
        let (payer, tx_id) = (settled.payer.as_str(), settled.tx_id.to_string());
        let terms = ReceiptTerms { url, payer, tx_id: &tx_id, issued_at };
        Ok(Some(self.signer().await?.sign_receipt(&terms)))
    }

    fn signs(&self) -> bool {
        self.access.context.settings.x402.signs
    }

    async fn signer(&self) -> Result<Arc<Signer>, EngineError> {
        let now = self.access.now();
        match self.signers.get(now) {
            Some(signer) => Ok(signer),
            None => Ok(self.signers.set(now, &self.existing_receipt_keys().await?)),
        }
    }

    async fn stored_receipt_keys(&self) -> Result<Option<ReceiptKeys>, EngineError> {
        self.access.context.env.store.receipt_keys().await.map_err(|error| self.access.read_failed(&error))
    }

    /// Returns the stored keys, or creates the first one. Of engines that create it at the same time, one succeeds, and the
    /// others read its key.
    async fn existing_receipt_keys(&self) -> Result<ReceiptKeys, EngineError> {
        for _ in 0..MAX_CONFLICTS {
            if let Some(keys) = self.stored_receipt_keys().await? {
                return Ok(keys);
            }
            let key = ReceiptKey::new(self.access.context.env.entropy.bytes());
            let keys = ReceiptKeys::create(key, self.access.now());
            if self.store_receipt_keys(&keys, 0, None).await? {
                tracing::info!("receipt key created: offers and receipts of x402 payments are signed");
                return Ok(keys);
            }
        }
        Err(EngineError::Contended)
    }

    /// Returns whether the keys were stored in place of the version `expected`.
    async fn store_receipt_keys(
        &self,
        keys: &ReceiptKeys,
        expected: u64,
        audit: Option<Write>,
    ) -> Result<bool, EngineError> {
        let write = Write::ReceiptKeys { keys: Box::new(keys.clone()), expected };
        let batch: Batch = std::iter::once(write).chain(audit).collect();
        match self.access.context.env.store.commit(batch).await {
            Ok(()) => Ok(true),
            Err(CommitError::Conflict { .. }) => Ok(false),
            Err(error) => Err(self.access.commit_failed(error)),
        }
    }
}
