//! Writes to merchants, one after the other: registration, updates, secrets, keys.

use std::sync::Arc;

use engine::{
    account::AccountName,
    ids::MerchantId,
    merchant::{Credentials, Merchant, Registration, Update, api_key_text},
    time::Timestamp,
    webhook::Secret,
};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use storage::{Batch, CommitError, Write};
use tokio::sync::oneshot;

use crate::context::Context;

/// How often a change is decided anew when another writer was faster.
const MAX_CONFLICTS: usize = 5;

/// Why a merchant was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MerchantError {
    /// There is no such merchant.
    #[error("no merchant {0}")]
    NotFound(MerchantId),
    /// The store takes no more for the moment.
    #[error("the store has more to write than it can")]
    Overloaded,
    /// Other writers kept changing the merchant.
    #[error("the merchant kept changing")]
    Contended,
    /// The store failed; whether it was written only a restart can tell.
    #[error("the outcome is unknown")]
    Unknown,
}

/// A merchant just registered, with the only copies of its credentials.
#[derive(Debug)]
pub struct Registered {
    /// The merchant.
    pub merchant: Merchant,
    /// Its API key, shown once.
    pub api_key: String,
    /// Its webhook secret, shown once.
    pub secret: Secret,
}

/// What changes about a merchant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Update(Update),
    SetActive(bool),
    Secret { secret: Secret, previous_valid_until: Option<Timestamp> },
    ApiKey(String),
    KeyUsed,
}

pub(crate) enum Msg {
    Register { registration: Registration, is_admin: bool, reply: oneshot::Sender<Result<Registered, MerchantError>> },
    Change { id: MerchantId, change: Change, reply: Option<oneshot::Sender<Result<Merchant, MerchantError>>> },
}

pub(crate) struct Merchants {
    pub(crate) context: Arc<Context>,
}

impl Actor for Merchants {
    type Msg = Msg;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _myself: ActorRef<Msg>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(&self, _myself: ActorRef<Msg>, message: Msg, (): &mut ()) -> Result<(), ActorProcessingErr> {
        match message {
            Msg::Register { registration, is_admin, reply } => {
                let _ = reply.send(self.register(registration, is_admin).await);
            }
            Msg::Change { id, change, reply } => {
                let changed = self.change(id, &change).await;
                if let Some(reply) = reply {
                    let _ = reply.send(changed);
                }
            }
        }
        Ok(())
    }
}

impl Merchants {
    async fn register(&self, registration: Registration, is_admin: bool) -> Result<Registered, MerchantError> {
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
        let merchant = Merchant { is_admin, ..Merchant::register(registration, credentials, now) };
        self.watch(&merchant.hive_account);
        self.commit(&merchant, None, None).await?;
        tracing::info!(merchant.id = %merchant.id, account = %merchant.hive_account, "merchant {} registered", merchant.id);
        Ok(Registered { merchant, api_key, secret })
    }

    async fn change(&self, id: MerchantId, change: &Change) -> Result<Merchant, MerchantError> {
        for _ in 0..MAX_CONFLICTS {
            let merchant = match self.context.env.store.merchant(id).await {
                Ok(Some(merchant)) => merchant,
                Ok(None) => return Err(MerchantError::NotFound(id)),
                Err(error) => {
                    self.context.read_failed(&error);
                    return Err(MerchantError::Unknown);
                }
            };
            let now = self.context.now();
            let changed = match change.clone() {
                Change::Update(update) => merchant.updated(update, now),
                Change::SetActive(is_active) => merchant.set_active(is_active, now),
                Change::Secret { secret, previous_valid_until } => {
                    merchant.with_secret(secret, previous_valid_until, now)
                }
                Change::ApiKey(text) => merchant.with_key(self.context.env.entropy.key_id(now), &text, now),
                // Many requests may have asked for the same minute.
                Change::KeyUsed if !merchant.key.use_is_news(now) => return Ok(merchant),
                Change::KeyUsed => merchant.key_used(now),
            };
            self.watch(&changed.hive_account);
            // What is known of the old address says nothing of the new one.
            let moved = (changed.webhook_url != merchant.webhook_url).then_some(Write::EnableEndpoint { merchant: id });
            match self.commit(&changed, Some(merchant.version), moved).await {
                Ok(()) => return Ok(changed),
                Err(MerchantError::Contended) => {}
                Err(error) => return Err(error),
            }
        }
        Err(MerchantError::Contended)
    }

    /// Watched before it is stored: a transfer in between must not be overlooked.
    fn watch(&self, account: &AccountName) {
        if !self.context.watched.contains(account) {
            self.context.watched.extend([account.clone()]);
        }
    }

    async fn commit(
        &self,
        merchant: &Merchant,
        expected: Option<u64>,
        beside: Option<Write>,
    ) -> Result<(), MerchantError> {
        let write = Write::Merchant { merchant: Box::new(merchant.clone()), expected };
        let batch = Batch { writes: [write].into_iter().chain(beside).collect() };
        self.context.env.store.commit(batch).await.map_err(|error| {
            self.context.give_up_on(&error);
            match error {
                CommitError::Overloaded => MerchantError::Overloaded,
                CommitError::Conflict { .. } | CommitError::Claimed(_) | CommitError::Remembered(_) => {
                    MerchantError::Contended
                }
                CommitError::Unknown(_) => MerchantError::Unknown,
            }
        })
    }
}
