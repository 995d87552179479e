//! Merchants: record, registration, updates and credentials.

use std::time::Duration;

pub use crate::api_key::{ApiKey, KeyDigest, Scope, Scopes, api_key_text};
use crate::{
    account::AccountName,
    api_key::MAX_KEYS,
    fields::{self, UrlRule, Violation},
    ids::{KeyId, MerchantId},
    mutant,
    ownership::{Ownership, Rejection},
    time::Timestamp,
    webhook::{Endpoint, Secret, Secrets, Subscriptions, TooManySecrets},
};

/// The stored record of a merchant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merchant {
    /// The id.
    pub id: MerchantId,
    /// The version, incremented by every write; used for optimistic concurrency control.
    pub version: u64,
    /// The business name shown at checkout.
    pub name: String,
    /// The ledger account that receives payments.
    pub hive_account: AccountName,
    /// The URL of the logo.
    pub icon_url: Option<String>,
    /// The URL of the webhook endpoint.
    pub webhook_url: Option<String>,
    /// The events that the endpoint is subscribed to.
    pub webhook_events: Subscriptions,
    /// The support contact for customers: `https:` or `mailto:`.
    pub support_url: Option<String>,
    /// Whether it may create payments and accept x402 payments.
    pub is_active: bool,
    /// Whether x402 payments are accepted.
    pub x402_enabled: bool,
    /// Whether customers may start an expired payment again.
    pub restart_enabled: bool,
    /// Whether it may use the admin operations.
    pub is_admin: bool,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Its API keys, at least one; the first is shown in its record.
    pub keys: Vec<ApiKey>,
    /// The webhook signing secrets.
    pub secrets: Secrets,
    /// Its webhook endpoints besides the one of `webhook_url`, in the order of their creation.
    pub endpoints: Vec<Endpoint>,
    /// The verification of its account.
    pub ownership: Ownership,
}

/// A validated registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// The business name.
    pub name: String,
    /// The ledger account; its existence is not validated here.
    pub hive_account: AccountName,
    /// The URL of the logo.
    pub icon_url: Option<String>,
}

impl Registration {
    /// Validates the input of a caller.
    ///
    /// # Errors
    /// Every invalid field.
    pub fn check(name: &str, hive_account: &str, icon_url: Option<&str>) -> Result<Self, Vec<Violation>> {
        let mut violations = Vec::new();
        let name = keep(&mut violations, business_name(name));
        let account = keep(&mut violations, receiving_account(hive_account));
        let icon = keep(&mut violations, icon_url.map(|url| https_url("iconUrl", url)).transpose());
        match (name, account, icon) {
            (Some(name), Some(hive_account), Some(icon_url)) => Ok(Self { name, hive_account, icon_url }),
            _ => Err(violations),
        }
    }
}

/// A validated update of a merchant's record. `None` leaves a field unchanged; `Some(None)` clears it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Update {
    /// The business name.
    pub name: Option<String>,
    /// The ledger account.
    pub hive_account: Option<AccountName>,
    /// The URL of the logo.
    pub icon_url: Option<Option<String>>,
    /// The URL of the webhook endpoint.
    pub webhook_url: Option<Option<String>>,
    /// The events that the endpoint is subscribed to.
    pub webhook_events: Option<Subscriptions>,
    /// The support contact for customers.
    pub support_url: Option<Option<String>>,
    /// Whether x402 payments are accepted.
    pub x402_enabled: Option<bool>,
    /// Whether customers may start an expired payment again.
    pub restart_enabled: Option<bool>,
}

/// An unvalidated update.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawUpdate {
    /// See [`Update::name`].
    pub name: Option<String>,
    /// See [`Update::hive_account`].
    pub hive_account: Option<String>,
    /// See [`Update::icon_url`].
    pub icon_url: Option<Option<String>>,
    /// See [`Update::webhook_url`].
    pub webhook_url: Option<Option<String>>,
    /// See [`Update::webhook_events`].
    pub webhook_events: Option<Vec<String>>,
    /// See [`Update::support_url`].
    pub support_url: Option<Option<String>>,
    /// See [`Update::x402_enabled`].
    pub x402_enabled: Option<bool>,
    /// See [`Update::restart_enabled`].
    pub restart_enabled: Option<bool>,
}

impl Update {
    /// Validates the input of a caller.
    ///
    /// # Errors
    /// Every invalid field.
    pub fn check(raw: RawUpdate, allow_insecure_webhooks: bool) -> Result<Self, Vec<Violation>> {
        let webhook = |text: String| {
            fields::url("webhookUrl", &text, UrlRule::Webhook { allow_insecure: allow_insecure_webhooks })
                .map(|()| text)
        };
        let mut violations = Vec::new();
        let name = keep(&mut violations, raw.name.map(|name| business_name(&name)).transpose());
        let account = keep(&mut violations, raw.hive_account.map(|name| receiving_account(&name)).transpose());
        let icon = keep(&mut violations, nested(raw.icon_url, |url| https_url("iconUrl", &url)));
        let webhook_url = keep(&mut violations, nested(raw.webhook_url, webhook));
        let support = |text: String| fields::url("supportUrl", &text, UrlRule::Contact).map(|()| text);
        let support_url = keep(&mut violations, nested(raw.support_url, support));
        let events = raw.webhook_events.map(|words| Subscriptions::check(&words)).transpose();
        let webhook_events = keep(&mut violations, events);
        match (name, account, icon, webhook_url, webhook_events, support_url) {
            (
                Some(name),
                Some(hive_account),
                Some(icon_url),
                Some(webhook_url),
                Some(webhook_events),
                Some(support_url),
            ) => {
                let (x402_enabled, restart_enabled) = (raw.x402_enabled, raw.restart_enabled);
                Ok(Self {
                    name,
                    hive_account,
                    icon_url,
                    webhook_url,
                    webhook_events,
                    support_url,
                    x402_enabled,
                    restart_enabled,
                })
            }
            _ => Err(violations),
        }
    }
}

fn keep<T>(violations: &mut Vec<Violation>, result: Result<T, Violation>) -> Option<T> {
    result.map_err(|violation| violations.push(violation)).ok()
}

fn nested<T, U>(
    value: Option<Option<T>>,
    check: impl Fn(T) -> Result<U, Violation>,
) -> Result<Option<Option<U>>, Violation> {
    value.map(|inner| inner.map(check).transpose()).transpose()
}

fn business_name(name: &str) -> Result<String, Violation> {
    let name = name.trim();
    fields::text("name", name, fields::NAME_MAX_CHARS)
}

fn https_url(field: &str, url: &str) -> Result<String, Violation> {
    fields::url(field, url, UrlRule::Https).map(|()| url.to_owned())
}

fn receiving_account(name: &str) -> Result<AccountName, Violation> {
    let account = AccountName::parse(name).map_err(|e| Violation::new("hiveAccount", e))?;
    if account.cannot_receive() {
        return Err(Violation::new(
            "hiveAccount",
            format_args!("must be an account of your own: {account} cannot keep a payment"),
        ));
    }
    Ok(account)
}

/// The reason why a merchant's API keys were not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyRejection {
    /// The merchant has no key with this id.
    #[error("no such API key")]
    NotFound,
    /// The merchant has the maximum number of keys.
    #[error("a merchant has at most {MAX_KEYS} API keys")]
    TooMany,
    /// The key is the last one.
    #[error("the last API key cannot be revoked")]
    Last,
}

/// Ids and credentials of a new merchant.
#[derive(Debug)]
pub struct Credentials<'a> {
    /// The merchant's id.
    pub id: MerchantId,
    /// The key record's id.
    pub key_id: KeyId,
    /// The API key.
    pub api_key: &'a str,
    /// The webhook secret.
    pub secret: Secret,
}

impl Merchant {
    /// Creates a merchant: active, with x402 enabled.
    #[must_use]
    pub fn register(registration: Registration, credentials: Credentials<'_>, is_admin: bool, now: Timestamp) -> Self {
        let scopes = Scopes::initial(is_admin);
        Self {
            id: credentials.id,
            version: 1,
            name: registration.name,
            hive_account: registration.hive_account,
            icon_url: registration.icon_url,
            webhook_url: None,
            webhook_events: Subscriptions::default(),
            support_url: None,
            is_active: true,
            x402_enabled: true,
            restart_enabled: false,
            is_admin,
            created_at: now,
            updated_at: now,
            keys: vec![ApiKey::issue(credentials.key_id, credentials.api_key, "", scopes, now)],
            secrets: Secrets::only(credentials.secret),
            endpoints: Vec::new(),
            ownership: Ownership::default(),
        }
    }

    /// Returns the merchant after an update. The change of a verified account is pending for at least `wait`.
    ///
    /// # Errors
    /// As [`Merchant::with_account`].
    pub fn updated(&self, update: Update, wait: Duration, now: Timestamp) -> Result<Self, Rejection> {
        let moved = update.hive_account.map(|account| self.with_account(account, wait, now)).transpose()?;
        let mut next = Self { version: self.version, ..moved.unwrap_or_else(|| self.clone()) }.next(now);
        next.name = update.name.unwrap_or(next.name);
        next.icon_url = update.icon_url.unwrap_or(next.icon_url);
        next.webhook_url = update.webhook_url.unwrap_or(next.webhook_url);
        next.webhook_events = update.webhook_events.unwrap_or(next.webhook_events);
        next.support_url = update.support_url.unwrap_or(next.support_url);
        next.x402_enabled = update.x402_enabled.unwrap_or(next.x402_enabled);
        next.restart_enabled = update.restart_enabled.unwrap_or(next.restart_enabled);
        Ok(next)
    }

    /// Returns the merchant, activated or deactivated.
    #[must_use]
    pub fn set_active(&self, is_active: bool, now: Timestamp) -> Self {
        Self { is_active, ..self.next(now) }
    }

    /// Returns the merchant with a new webhook secret. The previous one is invalid at once, or remains valid until
    /// `previous_valid_until`.
    ///
    /// # Errors
    /// [`TooManySecrets`] if too many previous secrets are still valid.
    pub fn with_secret(
        &self,
        secret: Secret,
        previous_valid_until: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Self, TooManySecrets> {
        let secrets = self.secrets.rotated(secret, previous_valid_until, now)?;
        Ok(Self { secrets, ..self.next(now) })
    }

    /// Returns the valid API key with this digest.
    #[must_use]
    pub fn key(&self, digest: &KeyDigest, now: Timestamp) -> Option<&ApiKey> {
        self.keys.iter().find(|key| key.digest.matches(digest) && key.is_valid(now))
    }

    /// Returns the merchant with one new API key; all others are revoked.
    #[must_use]
    pub fn with_only_key(&self, id: KeyId, text: &str, now: Timestamp) -> Self {
        let key = ApiKey::issue(id, text, "", Scopes::initial(self.is_admin), now);
        Self { keys: vec![key], ..self.next(now) }
    }

    /// Returns the merchant with an additional key.
    ///
    /// # Errors
    /// [`KeyRejection::TooMany`].
    pub fn with_key(&self, key: ApiKey, now: Timestamp) -> Result<Self, KeyRejection> {
        let mut next = self.next(now);
        next.keys.retain(|key| key.is_valid(now));
        if next.keys.len() >= MAX_KEYS {
            return Err(KeyRejection::TooMany);
        }
        next.keys.push(key);
        Ok(next)
    }

    /// Returns the merchant without one of its keys.
    ///
    /// # Errors
    /// [`KeyRejection::NotFound`]; [`KeyRejection::Last`] if it is the only key.
    pub fn without_key(&self, id: KeyId, now: Timestamp) -> Result<Self, KeyRejection> {
        let mut next = self.next(now);
        next.keys.retain(|key| key.is_valid(now));
        let before = next.keys.len();
        if !mutant!("revoked-key-stays") {
            next.keys.retain(|key| key.id != id);
        }
        match next.keys.len() {
            after if after == before => Err(KeyRejection::NotFound),
            0 => Err(KeyRejection::Last),
            _ => Ok(next),
        }
    }

    /// Returns the merchant with one of its keys replaced. The old key remains valid until `valid_until`, or is revoked
    /// at once.
    ///
    /// # Errors
    /// [`KeyRejection::NotFound`]; [`KeyRejection::TooMany`].
    pub fn with_rolled_key(
        &self,
        old: KeyId,
        id: KeyId,
        text: &str,
        valid_until: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Self, KeyRejection> {
        let mut next = self.next(now);
        next.keys.retain(|key| key.is_valid(now));
        let at = next.keys.iter().position(|key| key.id == old).ok_or(KeyRejection::NotFound)?;
        let before = next.keys[at].clone();
        next.keys[at] = ApiKey::issue(
            id,
            text,
            &before.name,
            if mutant!("rolled-key-gets-all-scopes") { Scopes::MERCHANT } else { before.scopes },
            now,
        );
        if let Some(end) = valid_until {
            let end = before.expires_at.map_or(end, |earlier| earlier.min(end));
            next.keys.push(ApiKey { expires_at: Some(end).filter(|_| !mutant!("rolled-key-never-ends")), ..before });
        }
        if next.keys.len() > MAX_KEYS { Err(KeyRejection::TooMany) } else { Ok(next) }
    }

    /// Returns the merchant with a key's last use set to `now`.
    #[must_use]
    pub fn key_used(&self, id: KeyId, now: Timestamp) -> Self {
        let mut used = self.clone();
        used.version += 1;
        for key in used.keys.iter_mut().filter(|key| key.id == id) {
            key.last_used_at = Some(now);
        }
        used
    }

    pub(crate) fn next(&self, now: Timestamp) -> Self {
        Self { version: self.version + 1, updated_at: now, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{Actor, Entry};

    fn merchant() -> Merchant {
        let registration = Registration::check(" Blue Mugs ", "blue.mugs", None).unwrap();
        let credentials = Credentials {
            id: MerchantId::from_bits(1),
            key_id: KeyId::from_bits(2),
            api_key: &api_key_text([7; 24]),
            secret: Secret::from_random([3; 32]),
        };
        Merchant::register(registration, credentials, false, Timestamp::from_seconds(100))
    }

    #[test]
    fn a_new_merchant_is_active_with_x402_and_without_admin_privileges() {
        let merchant = merchant();
        assert_eq!(merchant.name, "Blue Mugs");
        assert!(merchant.is_active && merchant.x402_enabled && !merchant.is_admin);
        assert_eq!(merchant.keys[0].last4, "0707");
        assert!(merchant.keys[0].digest.matches(&KeyDigest::of(&api_key_text([7; 24]))));
        assert!(!merchant.keys[0].digest.matches(&KeyDigest::of(&api_key_text([8; 24]))));
    }

    #[test]
    fn every_bad_field_of_a_registration_is_named() {
        let violations = Registration::check("", "null", Some("http://x/y.png")).unwrap_err();
        let fields: Vec<_> = violations.iter().map(|v| v.field.as_str()).collect();
        assert_eq!(fields, ["name", "hiveAccount", "iconUrl"]);
        for account in ["Shop", "ab", "hive.fund", "steem.dao", "temp", "a..bcd", "way-too-long-name-x"] {
            assert_eq!(Registration::check("x", account, None).unwrap_err()[0].field, "hiveAccount", "{account}");
        }
    }

    fn updated(merchant: &Merchant, raw: RawUpdate, at: u64) -> Merchant {
        let update = Update::check(raw, false).unwrap();
        merchant.updated(update, Duration::from_secs(60), Timestamp::from_seconds(at)).unwrap()
    }

    #[test]
    fn an_update_keeps_absent_fields_and_clears_null_fields() {
        let raw = RawUpdate { webhook_url: Some(Some("https://x.example/h".to_owned())), ..RawUpdate::default() };
        let with_hook = updated(&merchant(), raw, 200);
        assert_eq!(with_hook.webhook_url.as_deref(), Some("https://x.example/h"));
        assert_eq!((with_hook.version, with_hook.name.as_str()), (2, "Blue Mugs"));
        let cleared = RawUpdate { webhook_url: Some(None), x402_enabled: Some(false), ..RawUpdate::default() };
        let cleared = updated(&with_hook, cleared, 300);
        assert_eq!((cleared.webhook_url, cleared.x402_enabled), (None, false));
    }

    #[test]
    fn a_key_use_is_written_at_most_once_a_minute() {
        let used = merchant().key_used(KeyId::from_bits(2), Timestamp::from_seconds(100));
        assert!(!used.keys[0].should_record_use(Timestamp::from_seconds(159)));
        assert!(used.keys[0].should_record_use(Timestamp::from_seconds(160)));
    }

    fn another(n: u128) -> ApiKey {
        let text = format!("sk_live_{n:048}");
        ApiKey::issue(KeyId::from_bits(n), &text, "till", Scopes::MERCHANT, Timestamp::from_seconds(100))
    }

    #[test]
    fn keys_are_limited_and_the_last_one_cannot_be_revoked() {
        let now = Timestamp::from_seconds(200);
        let mut merchant = merchant();
        for n in 3..22 {
            merchant = merchant.with_key(another(n), now).unwrap();
        }
        assert_eq!(merchant.with_key(another(99), now), Err(KeyRejection::TooMany));
        assert_eq!(merchant.without_key(KeyId::from_bits(99), now), Err(KeyRejection::NotFound));
        for n in 2..21 {
            merchant = merchant.without_key(KeyId::from_bits(n), now).unwrap();
        }
        assert_eq!(merchant.without_key(KeyId::from_bits(21), now), Err(KeyRejection::Last));
    }

    #[test]
    fn a_rolled_key_is_valid_during_its_overlap_beside_its_successor() {
        let (now, end) = (Timestamp::from_seconds(200), Timestamp::from_seconds(300));
        let (old, new) = (api_key_text([7; 24]), api_key_text([8; 24]));
        let (old_id, new_id) = (KeyId::from_bits(2), KeyId::from_bits(9));
        let rolled = merchant().with_rolled_key(old_id, new_id, &new, Some(end), now).unwrap();
        let opens = |merchant: &Merchant, text: &str, at| merchant.key(&KeyDigest::of(text), at).is_some();
        assert!(opens(&rolled, &old, now) && opens(&rolled, &new, now));
        assert!(!opens(&rolled, &old, end) && opens(&rolled, &new, end));
        assert_eq!((rolled.keys[0].id, rolled.keys[0].scopes), (new_id, Scopes::MERCHANT));
        let at_once = merchant().with_rolled_key(old_id, new_id, &new, None, now).unwrap();
        assert!(!opens(&at_once, &old, now));
        assert_eq!(rolled.with_only_key(KeyId::from_bits(10), "sk_live_y", now).keys.len(), 1);
    }

    #[test]
    fn audit_events_contain_changed_fields_and_no_secrets() {
        let before = merchant();
        let raw =
            RawUpdate { webhook_url: Some(Some("https://x.example/h?token=1".to_owned())), ..RawUpdate::default() };
        let after = updated(&before, raw, 200);
        let after = after.with_secret(Secret::from_random([9; 32]), None, Timestamp::from_seconds(200)).expect("space");
        let at = Timestamp::from_seconds(200);
        let entry = Entry::of_merchant(Actor::default(), "merchant_updated", Some(&before), &after, None, at);
        let fields: Vec<_> = entry.changes.iter().map(|change| change.field.as_str()).collect();
        assert_eq!(fields, ["webhookUrl", "webhookSecret"]);
        let text = format!("{entry:?}");
        assert!(!text.contains("whsec_") && !text.contains("token=1"), "{text}");
    }
}
