//! Entries of the audit log: actor, action, subject and changed fields, without secrets.

use crate::{
    ids::{KeyId, MerchantId},
    merchant::Merchant,
    mutant,
    ownership::PendingChange,
    time::Timestamp,
    webhook::{Endpoint, EventType},
};

/// The actor of an audit event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Actor {
    /// The authenticated merchant; `None` for the operator on the gRPC port and for registrations.
    pub merchant: Option<MerchantId>,
    /// The API key of the request.
    pub key: Option<KeyId>,
    /// The client's IP address, if known.
    pub ip: Option<String>,
}

/// An audit event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The sequence number, from 1 without gaps; 0 until it is stored.
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The actor.
    pub actor: Actor,
    /// The action in `snake_case`, past tense.
    pub action: String,
    /// The merchant concerned.
    pub merchant: MerchantId,
    /// The object concerned, such as a payment or an API key.
    pub subject: Option<String>,
    /// The changed fields.
    pub changes: Vec<FieldChange>,
}

/// A changed field. The values of secrets are omitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldChange {
    /// The name of the field in the REST interface.
    pub field: String,
    /// The previous value.
    pub before: Option<String>,
    /// The new value.
    pub after: Option<String>,
}

impl Entry {
    /// Returns the audit event of a change of a merchant's record.
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
        for endpoint in before.iter().flat_map(|before| &before.endpoints) {
            let now = after.endpoints.iter().find(|now| now.id == endpoint.id);
            if now.is_some_and(|now| now.secrets.current != endpoint.secrets.current) {
                let field = format!("webhookEndpoints.{}.secret", endpoint.id);
                changes.push(FieldChange { field, before: None, after: None });
            }
        }
        Self { seq: 0, at, actor, action: action.to_owned(), merchant: after.id, subject, changes }
    }
}

/// Returns the fields of a merchant that the audit log may contain.
fn fields_of(merchant: &Merchant) -> Vec<(&'static str, Option<String>)> {
    let keys: Vec<String> = merchant
        .keys
        .iter()
        .map(|key| {
            let end = key.expires_at.map(|end| format!(" until {end}")).unwrap_or_default();
            format!("{} …{} [{}]{end}", key.id, key.last4, key.scopes)
        })
        .collect();
    let endpoints: Vec<String> = merchant.endpoints.iter().map(shown_endpoint).collect();
    vec![
        ("name", Some(merchant.name.clone())),
        ("hiveAccount", Some(merchant.hive_account.to_string()).filter(|_| !mutant!("audit-leaves-out-accounts"))),
        ("accountVerification", Some(merchant.ownership.verification_status().as_str().to_owned())),
        ("pendingAccount", merchant.ownership.pending.as_ref().map(pending_of)),
        ("iconUrl", merchant.icon_url.as_deref().map(without_query)),
        ("webhookUrl", merchant.webhook_url.as_deref().map(without_query)),
        ("supportUrl", merchant.support_url.as_deref().map(without_query)),
        ("isActive", Some(merchant.is_active.to_string())),
        ("x402Enabled", Some(merchant.x402_enabled.to_string())),
        ("restartEnabled", Some(merchant.restart_enabled.to_string())),
        ("apiKeys", Some(keys.join(", "))),
        ("webhookEndpoints", Some(endpoints.join(", ")).filter(|text| !text.is_empty())),
    ]
}

/// Describes an endpoint without its secrets.
fn shown_endpoint(endpoint: &Endpoint) -> String {
    let events: Vec<_> = endpoint.events.types().map(EventType::as_str).collect();
    let state = if endpoint.is_enabled { "" } else { " disabled" };
    format!("{} {} [{}]{state}", endpoint.id, without_query(&endpoint.url), events.join(" "))
}

/// Describes a pending account change and the proofs given so far.
fn pending_of(pending: &PendingChange) -> String {
    let proofs = [("current", pending.current), ("new", pending.new)];
    let proven: Vec<_> = proofs.iter().filter(|(_, proof)| proof.is_some()).map(|(whose, _)| *whose).collect();
    let proven = if proven.is_empty() { "no account".to_owned() } else { proven.join(" and ") };
    format!("{} from {}, proven by {proven}", pending.account, pending.effective_at)
}

/// Removes the query of a URL, which may contain tokens.
fn without_query(url: &str) -> String {
    match url.split_once('?') {
        Some((place, _)) => format!("{place}?…"),
        None => url.to_owned(),
    }
}
