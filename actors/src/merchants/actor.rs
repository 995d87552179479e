//! Writes to merchants, one at a time: registration, updates, secrets, keys.

use std::{collections::BTreeSet, sync::Arc};

use engine::{
    account::AccountName,
    audit::{self, Entry},
    ids::{EndpointId, MerchantId},
    merchant::{Credentials, Merchant, Registration, api_key_text},
    ownership::Rejection,
    time::Timestamp,
    webhook::{EndpointRejection, Secret},
};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use storage::{Batch, CommitError, ReadError, Write};

use crate::{
    chain::ledger::Ledger,
    context::Context,
    merchants::messages::{Change, MerchantError, MerchantMsg, Registered},
    webhooks::{announcements::account_event, notifier::Notifier},
};

/// Maximum number of retries of a change after a concurrent write.
const MAX_CONFLICTS: usize = 5;

pub(crate) struct MerchantActor {
    pub(crate) context: Arc<Context>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) notifier: Arc<Notifier>,
}

/// Applies a change that concerns the merchant's account.
fn own(merchant: &Merchant, change: &Change, now: Timestamp) -> Result<Merchant, Rejection> {
    match change {
        Change::Challenge { account, cancels, authority, nonce } => {
            let question = merchant.challenge_target(Some(*account), *cancels)?;
            Ok(merchant.with_challenge(question, *authority, *nonce, now).0)
        }
        Change::SignedKeys { nonce, keys } => merchant.with_signed_keys(*nonce, keys.iter().copied(), now),
        Change::Proven { nonce, proof } => merchant.with_proof(*nonce, *proof, now),
        Change::Vouched { account, proof } => merchant.verified_by_operator(*account, *proof, now),
        Change::CancelPending => merchant.without_pending(now),
        Change::Settle(active) => Ok(merchant.with_due_change_applied(active, now).unwrap_or_else(|| merchant.clone())),
        Change::Authority { account, digest } => {
            Ok(merchant.with_authority(account, *digest, now).unwrap_or_else(|| merchant.clone()))
        }
        _ => Ok(merchant.clone()),
    }
}

/// Applies a change of the merchant's additional webhook endpoints.
fn with_endpoints(merchant: &Merchant, change: Change, now: Timestamp) -> Result<Merchant, EndpointRejection> {
    match change {
        Change::AddEndpoint { id, draft, secret } => merchant.with_endpoint(id, *draft, secret, now),
        Change::UpdateEndpoint { id, update } => merchant.with_endpoint_updated(id, *update, now),
        Change::RemoveEndpoint(id) => merchant.without_endpoint(id, now),
        Change::EndpointSecret { id, secret, previous_valid_until } => {
            merchant.with_endpoint_secret(id, secret, previous_valid_until, now)
        }
        _ => Ok(merchant.clone()),
    }
}

/// Returns writes that reset the health of the endpoints to which it no longer applies: they have another URL, or were
/// deleted, or enabled by their merchant.
fn reset_endpoints(before: &Merchant, after: &Merchant) -> Vec<Write> {
    let merchant = after.id;
    let default = EndpointId::default_of(merchant);
    let has_moved = after.webhook_url != before.webhook_url;
    let mut reset: Vec<EndpointId> = Some(default).filter(|_| has_moved).into_iter().collect();
    for known in &before.endpoints {
        let now = after.endpoints.iter().find(|now| now.id == known.id);
        if now.is_none_or(|now| now.url != known.url || now.is_enabled && !known.is_enabled) {
            reset.push(known.id);
        }
    }
    reset.into_iter().map(|endpoint| Write::EnableEndpoint { merchant, endpoint }).collect()
}

impl Actor for MerchantActor {
    type Msg = MerchantMsg;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _myself: ActorRef<MerchantMsg>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        _myself: ActorRef<MerchantMsg>,
        message: MerchantMsg,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        match message {
            MerchantMsg::Register { registration, is_admin, is_active, by, reply } => {
                let _ = reply.send(self.register(registration, is_admin, is_active, by).await);
            }
            MerchantMsg::Unwatch(accounts) => self.unwatch(accounts).await,
            MerchantMsg::Change { id, change, by, reply } => {
                let changed = self.change(id, &change, &by).await;
                if let Some(reply) = reply {
                    let _ = reply.send(changed);
                }
            }
        }
        Ok(())
    }
}

impl MerchantActor {
    async fn register(
        &self,
        registration: Registration,
        is_admin: bool,
        is_active: bool,
        by: audit::Actor,
    ) -> Result<Registered, MerchantError> {
        let env = &self.context.env;
        let now = self.context.now();
        let api_key = api_key_text(env.entropy.bytes());
        let secret = Secret::from_random(env.entropy.bytes());
        let credentials = Credentials {
            id: env.entropy.merchant_id(now),
            key_id: env.entropy.key_id(now),
            api_key: &api_key,
            secret: secret.clone(),
        };
        let mut merchant = Merchant::register(registration, credentials, is_admin, now);
        merchant.is_active = is_active;
        self.watch(&merchant.hive_account);
        let entry = Entry::of_merchant(by, "merchant_registered", None, &merchant, None, now);
        self.commit(&merchant, None, vec![Write::Audit(Box::new(entry))]).await?;
        tracing::info!(merchant.id = %merchant.id, account = %merchant.hive_account, "merchant {} registered", merchant.id);
        Ok(Registered { merchant, api_key, secret })
    }

    async fn change(&self, id: MerchantId, change: &Change, by: &audit::Actor) -> Result<Merchant, MerchantError> {
        for _ in 0..MAX_CONFLICTS {
            let merchant = match self.context.env.store.merchant(id).await {
                Ok(Some(merchant)) => merchant,
                Ok(None) => return Err(MerchantError::NotFound(id)),
                Err(error) => {
                    self.context.read_failed(&error);
                    return Err(match error {
                        ReadError::Damaged { table, key, .. } => MerchantError::Damaged { table, key },
                        ReadError::Unavailable(_) => MerchantError::Unavailable,
                        ReadError::Failed(_) => MerchantError::Unknown,
                    });
                }
            };
            let now = self.context.now();
            let changed = self.changed(&merchant, change, now)?;
            if changed.version == merchant.version {
                return Ok(changed);
            }
            let entry = change.audit_action().map(|(action, subject)| {
                Entry::of_merchant(by.clone(), action, Some(&merchant), &changed, subject, now)
            });
            self.watch(&changed.hive_account);
            let mut beside: Vec<Write> = entry.map(|entry| Write::Audit(Box::new(entry))).into_iter().collect();
            let event = account_event(&self.context, &merchant, &changed, now);
            let has_event = event.is_some();
            beside.extend(event);
            beside.extend(reset_endpoints(&merchant, &changed));
            match self.commit(&changed, Some(merchant.version), beside).await {
                Ok(()) => {
                    if has_event {
                        self.notifier.announced(id);
                    }
                    return Ok(changed);
                }
                Err(MerchantError::Contended) => {}
                Err(error) => return Err(error),
            }
        }
        Err(MerchantError::Contended)
    }

    /// Returns a merchant after a change, at the same version if it changes nothing.
    fn changed(&self, merchant: &Arc<Merchant>, change: &Change, now: Timestamp) -> Result<Merchant, MerchantError> {
        let changed = match change.clone() {
            Change::Update(update) => {
                let wait = self.context.settings.account_change_wait;
                Ok(merchant.updated(update, wait, now).map_err(MerchantError::Ownership)?)
            }
            Change::SetActive(is_active) => Ok(merchant.set_active(is_active, now)),
            Change::Secret { secret, previous_valid_until } => {
                let changed = merchant.with_secret(secret, previous_valid_until, now);
                Ok(changed.map_err(MerchantError::Secrets)?)
            }
            Change::AddEndpoint { .. }
            | Change::UpdateEndpoint { .. }
            | Change::RemoveEndpoint(_)
            | Change::EndpointSecret { .. } => {
                Ok(with_endpoints(merchant, change.clone(), now).map_err(MerchantError::Endpoint)?)
            }
            Change::ReissueKey { id, text } => Ok(merchant.with_only_key(id, &text, now)),
            Change::AddKey(key) => merchant.with_key(*key, now),
            Change::RevokeKey(key) => merchant.without_key(key, now),
            Change::RollKey { old, id, text, valid_until } => {
                merchant.with_rolled_key(old, id, &text, valid_until, now)
            }
            // Concurrent requests may record the same minute.
            Change::KeyUsed(key) => {
                let is_news = merchant.keys.iter().any(|known| known.id == key && known.should_record_use(now));
                Ok(if is_news { merchant.key_used(key, now) } else { Merchant::clone(merchant) })
            }
            Change::Challenge { .. }
            | Change::SignedKeys { .. }
            | Change::Proven { .. }
            | Change::Vouched { .. }
            | Change::CancelPending
            | Change::Settle(_)
            | Change::Authority { .. } => Ok(own(merchant, change, now).map_err(MerchantError::Ownership)?),
        };
        changed.map_err(MerchantError::Key)
    }

    /// Stops watching accounts without a merchant. It runs here, between two registrations, so that no registration
    /// finds an account that is watched in memory but no longer in the store.
    async fn unwatch(&self, accounts: Vec<AccountName>) {
        let store = &self.context.env.store;
        if let Err(error) = store.commit(accounts.iter().copied().map(Write::Unwatch).collect()).await {
            return self.context.commit_failed(&error);
        }
        let watched: BTreeSet<_> = match store.watched_accounts(None, usize::MAX).await {
            Ok(watched) => watched.into_iter().collect(),
            Err(error) => return self.context.read_failed(&error),
        };
        for account in accounts.iter().filter(|account| !watched.contains(account)) {
            self.ledger.watched.remove(account);
            tracing::info!(%account, "no longer watching @{account}");
        }
    }

    /// Watched before it is stored, so that no transfer in between is overlooked.
    fn watch(&self, account: &AccountName) {
        if !self.ledger.watched.contains(account) {
            self.ledger.watched.extend([*account]);
        }
    }

    async fn commit(
        &self,
        merchant: &Merchant,
        expected: Option<u64>,
        beside: Vec<Write>,
    ) -> Result<(), MerchantError> {
        let mut batch = Batch::of(Write::Merchant { merchant: Box::new(merchant.clone()), expected });
        batch.writes.extend(beside);
        self.context.env.store.commit(batch).await.map_err(|error| match error {
            CommitError::Overloaded => MerchantError::Overloaded,
            CommitError::Unavailable(_) => MerchantError::Unavailable,
            CommitError::Conflict { .. }
            | CommitError::Claimed(_)
            | CommitError::Assigned(_)
            | CommitError::Remembered(_)
            | CommitError::Deposed(_)
            | CommitError::OnHold(_)
            | CommitError::QuotaReached(_)
            | CommitError::KeysFull => MerchantError::Contended,
            CommitError::Unknown(_) => MerchantError::Unknown,
        })
    }
}
