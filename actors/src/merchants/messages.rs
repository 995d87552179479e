//! The messages between the actor of merchants and its callers.

use std::collections::{BTreeMap, BTreeSet};

use engine::{
    account::AccountName,
    audit::Actor,
    hive::PublicKey,
    ids::{EndpointId, KeyId, MerchantId},
    merchant::{ApiKey, KeyRejection, Merchant, Registration, Update},
    mutant,
    ownership::{AuthorityDigest, Nonce, Proof, Rejection},
    time::Timestamp,
    webhook::{EndpointDraft, EndpointRejection, EndpointUpdate, Secret, TooManySecrets},
};
use tokio::sync::oneshot;

use crate::error::EngineError;

/// Why a merchant was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MerchantError {
    /// The merchant does not exist.
    #[error("no merchant {0}")]
    NotFound(MerchantId),
    /// The store is overloaded.
    #[error("the store is overloaded")]
    Overloaded,
    /// The store is temporarily unreachable. Nothing was changed.
    #[error("the store is unavailable")]
    Unavailable,
    /// The rules of API keys reject the change.
    #[error("{0}")]
    Key(KeyRejection),
    /// The rules of account ownership reject the change.
    #[error("{0}")]
    Ownership(Rejection),
    /// The maximum number of webhook secrets is valid.
    #[error("{0}")]
    Secrets(TooManySecrets),
    /// The rules of webhook endpoints reject the change.
    #[error("{0}")]
    Endpoint(EndpointRejection),
    /// Repeated concurrent changes of the merchant.
    #[error("the merchant kept changing")]
    Contended,
    /// A stored row that is needed is damaged.
    #[error("the {table} record {key} is damaged")]
    Damaged {
        /// The table.
        table: &'static str,
        /// The row's key.
        key: String,
    },
    /// The store failed; whether the change was stored is known after a restart.
    #[error("the outcome is unknown")]
    Unknown,
}

/// A newly registered merchant, with the only copies of its credentials.
#[derive(Debug)]
pub struct Registered {
    /// The merchant.
    pub merchant: Merchant,
    /// Its API key, shown once.
    pub api_key: String,
    /// Its webhook secret, shown once.
    pub secret: Secret,
}

/// A change of a merchant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Update(Update),
    SetActive(bool),
    Secret {
        secret: Secret,
        previous_valid_until: Option<Timestamp>,
    },
    /// A new key that replaces all others.
    ReissueKey {
        id: KeyId,
        text: String,
    },
    AddKey(Box<ApiKey>),
    RevokeKey(KeyId),
    RollKey {
        old: KeyId,
        id: KeyId,
        text: String,
        valid_until: Option<Timestamp>,
    },
    KeyUsed(KeyId),
    AddEndpoint {
        id: EndpointId,
        draft: Box<EndpointDraft>,
        secret: Secret,
    },
    UpdateEndpoint {
        id: EndpointId,
        update: Box<EndpointUpdate>,
    },
    RemoveEndpoint(EndpointId),
    EndpointSecret {
        id: EndpointId,
        secret: Secret,
        previous_valid_until: Option<Timestamp>,
    },
    /// A challenge for an account.
    Challenge {
        account: AccountName,
        cancels: bool,
        authority: AuthorityDigest,
        nonce: Nonce,
    },
    /// Keys that signed a challenge; more signatures are required.
    SignedKeys {
        nonce: Nonce,
        keys: BTreeSet<PublicKey>,
    },
    /// A challenge was completed.
    Proven {
        nonce: Nonce,
        proof: Proof,
    },
    /// Verification by the operator.
    Vouched {
        account: AccountName,
        proof: Proof,
    },
    CancelPending,
    /// A pending change takes effect or lapses when due. A consent counts if the authority that gave it is active.
    Settle(BTreeMap<AccountName, AuthorityDigest>),
    /// The current active authority of an account.
    Authority {
        account: AccountName,
        digest: AuthorityDigest,
    },
}

impl Change {
    /// Returns the action of its audit event, and the id of the key or endpoint concerned; `None` without an audit event.
    pub(crate) fn audit_action(&self) -> Option<(&'static str, Option<String>)> {
        Some(match self {
            Self::AddEndpoint { id, .. } => ("webhook_endpoint_created", Some(id.to_string())),
            Self::UpdateEndpoint { id, .. } => ("webhook_endpoint_updated", Some(id.to_string())),
            Self::RemoveEndpoint(id) => ("webhook_endpoint_deleted", Some(id.to_string())),
            Self::EndpointSecret { id, .. } => ("webhook_secret_rotated", Some(id.to_string())),
            Self::Update(_) => ("merchant_updated", None),
            Self::SetActive(true) => ("merchant_activated", None),
            Self::SetActive(false) => ("merchant_deactivated", None),
            Self::Secret { .. } => ("webhook_secret_rotated", None),
            Self::ReissueKey { id, .. } => ("api_key_reissued", Some(id.to_string())),
            Self::AddKey(key) => ("api_key_created", Some(key.id.to_string())),
            Self::RevokeKey(_) if mutant!("revocation-not-audited") => return None,
            Self::RevokeKey(id) => ("api_key_revoked", Some(id.to_string())),
            Self::RollKey { old, .. } => ("api_key_rolled", Some(old.to_string())),
            Self::Proven { .. } => ("account_proven", None),
            Self::Vouched { .. } => ("account_vouched_for", None),
            Self::CancelPending => ("account_change_cancelled", None),
            Self::Settle(_) => ("account_change_settled", None),
            Self::Authority { .. } => ("account_authority_read", None),
            Self::KeyUsed(_) | Self::Challenge { .. } | Self::SignedKeys { .. } => return None,
        })
    }
}

/// Messages to the actor of merchants.
pub(crate) enum MerchantMsg {
    Register {
        registration: Registration,
        is_admin: bool,
        is_active: bool,
        by: Actor,
        reply: oneshot::Sender<Result<Registered, MerchantError>>,
    },
    Unwatch(Vec<AccountName>),
    Change {
        id: MerchantId,
        change: Change,
        by: Actor,
        reply: Option<oneshot::Sender<Result<Merchant, MerchantError>>>,
    },
}

impl From<MerchantError> for EngineError {
    fn from(error: MerchantError) -> Self {
        match error {
            MerchantError::NotFound(_) => Self::MerchantNotFound,
            MerchantError::Key(rejection) => Self::Key(rejection),
            MerchantError::Ownership(rejection) => Self::Ownership(rejection),
            MerchantError::Endpoint(EndpointRejection::NotFound) => Self::EndpointNotFound,
            MerchantError::Endpoint(EndpointRejection::TooMany) => Self::TooManyEndpoints,
            MerchantError::Endpoint(EndpointRejection::TooManySecrets(refused)) | MerchantError::Secrets(refused) => {
                Self::TooManySecrets { possible_at: refused.possible_at }
            }
            MerchantError::Overloaded => Self::Overloaded,
            MerchantError::Unavailable => Self::Unavailable,
            MerchantError::Contended => Self::Contended,
            MerchantError::Damaged { table, key } => Self::Damaged { table, key },
            MerchantError::Unknown => Self::StoreFailed,
        }
    }
}
