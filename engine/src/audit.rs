//! The audit log's entries: who did what to whom, from where, and what changed by it; never a secret.

use crate::{
    ids::{KeyId, MerchantId},
    merchant::Merchant,
    ownership::PendingChange,
    time::Timestamp,
};

/// Who acts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Actor {
    /// The merchant whose key was shown; none for the operator at the engine's own port, and for who registers.
    pub merchant: Option<MerchantId>,
    /// That key.
    pub key: Option<KeyId>,
    /// Where the request came from, as far as it is known.
    pub ip: Option<String>,
}

/// One line of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its place in the log, from 1 without gaps; 0 until it is stored.
    pub seq: u64,
    /// When it was done.
    pub at: Timestamp,
    /// Who did it.
    pub actor: Actor,
    /// What was done, one `snake_case` word in the past tense.
    pub action: String,
    /// Whom it concerns.
    pub merchant: MerchantId,
    /// What of theirs: a payment, a key.
    pub subject: Option<String>,
    /// What changed by it.
    pub changes: Vec<FieldChange>,
}

/// A field that changed. A secret's values are not told, only that it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldChange {
    /// The field, by its name of the REST interface.
    pub field: String,
    /// What it was.
    pub before: Option<String>,
    /// What it is.
    pub after: Option<String>,
}

impl Entry {
    /// Returns the entry of a change of a merchant.
    #[must_use]
    pub fn of_merchant(
        actor: Actor,
        action: &str,
        before: Option<&Merchant>,
        after: &Merchant,
        subject: Option<String>,
        at: Timestamp,
    ) -> Self {
        let mut changes = Vec::new();
        let old: Vec<_> = before.map(fields_of).unwrap_or_default();
        for (field, value) in fields_of(after) {
            let was = old.iter().find(|(name, _)| *name == field).and_then(|(_, value)| value.clone());
            if was != value {
                changes.push(FieldChange { field: field.to_owned(), before: was, after: value });
            }
        }
        if before.is_some_and(|before| before.secrets.current != after.secrets.current) {
            changes.push(FieldChange { field: "webhookSecret".to_owned(), before: None, after: None });
        }
        Self { seq: 0, at, actor, action: action.to_owned(), merchant: after.id, subject, changes }
    }
}

/// What may be told of a merchant.
fn fields_of(merchant: &Merchant) -> Vec<(&'static str, Option<String>)> {
    let keys: Vec<String> = merchant
        .keys
        .iter()
        .map(|key| {
            let end = key.expires_at.map(|end| format!(" until {end}")).unwrap_or_default();
            format!("{} …{} [{}]{end}", key.id, key.last4, key.scopes)
        })
        .collect();
    vec![
        ("name", Some(merchant.name.clone())),
        ("hiveAccount", Some(merchant.hive_account.to_string())),
        ("accountVerification", Some(merchant.ownership.verification_status().as_str().to_owned())),
        ("pendingAccount", merchant.ownership.pending.as_ref().map(pending_of)),
        ("iconUrl", merchant.icon_url.as_deref().map(without_query)),
        ("webhookUrl", merchant.webhook_url.as_deref().map(without_query)),
        ("supportUrl", merchant.support_url.as_deref().map(without_query)),
        ("isActive", Some(merchant.is_active.to_string())),
        ("x402Enabled", Some(merchant.x402_enabled.to_string())),
        ("apiKeys", Some(keys.join(", "))),
    ]
}

/// Names a pending change and whose proofs it has.
fn pending_of(pending: &PendingChange) -> String {
    let proofs = [("current", pending.current), ("new", pending.new)];
    let proven: Vec<_> = proofs.iter().filter(|(_, proof)| proof.is_some()).map(|(whose, _)| *whose).collect();
    let proven = if proven.is_empty() { "nobody".to_owned() } else { proven.join(" and ") };
    format!("{} from {}, proven by {proven}", pending.account, pending.effective_at)
}

/// Some put tokens into the query of a URL.
fn without_query(url: &str) -> String {
    match url.split_once('?') {
        Some((place, _)) => format!("{place}?…"),
        None => url.to_owned(),
    }
}
