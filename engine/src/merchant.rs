//! A merchant: who may ask for money, where it goes, and the credentials that prove it.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::{
    account::AccountName,
    fields::{self, UrlRule, Violation},
    ids::{KeyId, MerchantId},
    time::Timestamp,
    webhook::{Secret, Secrets},
};

/// A registered merchant as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merchant {
    /// Its id.
    pub id: MerchantId,
    /// How often it was written; what a writer must have read to replace it.
    pub version: u64,
    /// The business name shown at checkout.
    pub name: String,
    /// The ledger account that receives payments.
    pub hive_account: AccountName,
    /// The logo's address.
    pub icon_url: Option<String>,
    /// Where webhooks go.
    pub webhook_url: Option<String>,
    /// Where customers find help: `https:` or `mailto:`.
    pub support_url: Option<String>,
    /// Whether it may create payments and take x402.
    pub is_active: bool,
    /// Whether agents may pay its sessions by x402.
    pub x402_enabled: bool,
    /// Whether its key opens the admin operations.
    pub is_admin: bool,
    /// When it registered.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// The key that speaks for it.
    pub key: ApiKey,
    /// What its webhooks are signed with.
    pub secrets: Secrets,
}

/// What is kept of an API key; the key itself was shown once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// The record's id.
    pub id: KeyId,
    /// What the key hashes to.
    pub digest: KeyDigest,
    /// Its last four characters, to tell keys apart.
    pub last4: String,
    /// When it was issued.
    pub created_at: Timestamp,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
}

/// What an API key hashes to. Keys carry 192 bits of randomness, so one round of a keyed hash is enough.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyDigest(pub [u8; 32]);

impl KeyDigest {
    /// Hashes the text of a key.
    #[must_use]
    pub fn of(key: &str) -> Self {
        let mut mac = Hmac::<Sha256>::new_from_slice(b"hivetill api key 1").expect("HMAC takes a key of any length");
        mac.update(key.as_bytes());
        Self(mac.finalize().into_bytes().into())
    }

    /// Compares without telling by time where two digests differ.
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

/// Hides the digest from logs.
impl std::fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyDigest(..)")
    }
}

/// What every API key starts with.
pub const API_KEY_PREFIX: &str = "sk_live_";

/// Writes an API key from 24 random bytes: `sk_live_` and 48 hex characters.
#[must_use]
pub fn api_key_text(random: [u8; 24]) -> String {
    format!("{API_KEY_PREFIX}{}", hex::encode(random))
}

impl ApiKey {
    /// Returns the record of a key that is being issued.
    #[must_use]
    pub fn issue(id: KeyId, text: &str, now: Timestamp) -> Self {
        let last4 = text.chars().rev().take(4).collect::<Vec<_>>().into_iter().rev().collect();
        Self { id, digest: KeyDigest::of(text), last4, created_at: now, last_used_at: None }
    }

    /// Says whether a use at `now` is worth writing down: the record is exact to the minute, not to the request.
    #[must_use]
    pub fn use_is_news(&self, now: Timestamp) -> bool {
        self.last_used_at.is_none_or(|last| now.since(last).as_secs() >= 60)
    }
}

/// What a merchant registers with, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// The business name.
    pub name: String,
    /// The ledger account; its existence is the ledger's to confirm.
    pub hive_account: AccountName,
    /// The logo.
    pub icon_url: Option<String>,
}

impl Registration {
    /// Checks what a caller wrote.
    ///
    /// # Errors
    /// Every field that breaks its rule.
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

/// A change of a merchant's record, checked. `None` leaves a field as it is; `Some(None)` clears it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Update {
    /// The business name.
    pub name: Option<String>,
    /// The ledger account.
    pub hive_account: Option<AccountName>,
    /// The logo.
    pub icon_url: Option<Option<String>>,
    /// The webhook endpoint.
    pub webhook_url: Option<Option<String>>,
    /// Where customers find help.
    pub support_url: Option<Option<String>>,
    /// The x402 switch.
    pub x402_enabled: Option<bool>,
}

/// What a caller wrote into an update, unchecked.
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
    /// See [`Update::support_url`].
    pub support_url: Option<Option<String>>,
    /// See [`Update::x402_enabled`].
    pub x402_enabled: Option<bool>,
}

impl Update {
    /// Checks what a caller wrote.
    ///
    /// # Errors
    /// Every field that breaks its rule.
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
        match (name, account, icon, webhook_url, support_url) {
            (Some(name), Some(hive_account), Some(icon_url), Some(webhook_url), Some(support_url)) => {
                Ok(Self { name, hive_account, icon_url, webhook_url, support_url, x402_enabled: raw.x402_enabled })
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
    fields::text("name", name, fields::NAME_MAX_CHARS).map(|()| name.to_owned())
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

/// The freshly made parts of a new merchant.
#[derive(Debug)]
pub struct Credentials<'a> {
    /// The merchant's id.
    pub id: MerchantId,
    /// The key record's id.
    pub key_id: KeyId,
    /// The text of the API key.
    pub api_key: &'a str,
    /// The webhook secret.
    pub secret: Secret,
}

impl Merchant {
    /// Registers a merchant: active, with x402 on.
    #[must_use]
    pub fn register(registration: Registration, credentials: Credentials<'_>, now: Timestamp) -> Self {
        Self {
            id: credentials.id,
            version: 1,
            name: registration.name,
            hive_account: registration.hive_account,
            icon_url: registration.icon_url,
            webhook_url: None,
            support_url: None,
            is_active: true,
            x402_enabled: true,
            is_admin: false,
            created_at: now,
            updated_at: now,
            key: ApiKey::issue(credentials.key_id, credentials.api_key, now),
            secrets: Secrets::only(credentials.secret),
        }
    }

    /// Returns the merchant after an update.
    #[must_use]
    pub fn updated(&self, update: Update, now: Timestamp) -> Self {
        let mut next = self.next(now);
        next.name = update.name.unwrap_or(next.name);
        next.hive_account = update.hive_account.unwrap_or(next.hive_account);
        next.icon_url = update.icon_url.unwrap_or(next.icon_url);
        next.webhook_url = update.webhook_url.unwrap_or(next.webhook_url);
        next.support_url = update.support_url.unwrap_or(next.support_url);
        next.x402_enabled = update.x402_enabled.unwrap_or(next.x402_enabled);
        next
    }

    /// Returns the merchant switched on or off.
    #[must_use]
    pub fn set_active(&self, is_active: bool, now: Timestamp) -> Self {
        Self { is_active, ..self.next(now) }
    }

    /// Returns the merchant with a new webhook secret. The old one stops at once, or signs beside it until
    /// `previous_valid_until`.
    #[must_use]
    pub fn with_secret(&self, secret: Secret, previous_valid_until: Option<Timestamp>, now: Timestamp) -> Self {
        Self { secrets: self.secrets.rotated(secret, previous_valid_until), ..self.next(now) }
    }

    /// Returns the merchant with a new API key; the old one stops at once.
    #[must_use]
    pub fn with_key(&self, id: KeyId, text: &str, now: Timestamp) -> Self {
        Self { key: ApiKey::issue(id, text, now), ..self.next(now) }
    }

    /// Returns the merchant with its key's last use set to `now`; nothing else about it changed.
    #[must_use]
    pub fn key_used(&self, now: Timestamp) -> Self {
        let mut used = self.clone();
        used.version += 1;
        used.key.last_used_at = Some(now);
        used
    }

    fn next(&self, now: Timestamp) -> Self {
        Self { version: self.version + 1, updated_at: now, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merchant() -> Merchant {
        let registration = Registration::check(" Blue Mugs ", "blue.mugs", None).unwrap();
        let credentials = Credentials {
            id: MerchantId::from_bits(1),
            key_id: KeyId::from_bits(2),
            api_key: &api_key_text([7; 24]),
            secret: Secret::from_random([3; 32]),
        };
        Merchant::register(registration, credentials, Timestamp::from_seconds(100))
    }

    #[test]
    fn a_new_merchant_is_active_takes_x402_and_is_nobodys_admin() {
        let merchant = merchant();
        assert_eq!(merchant.name, "Blue Mugs");
        assert!(merchant.is_active && merchant.x402_enabled && !merchant.is_admin);
        assert_eq!(merchant.key.last4, "0707");
        assert!(merchant.key.digest.matches(&KeyDigest::of(&api_key_text([7; 24]))));
        assert!(!merchant.key.digest.matches(&KeyDigest::of(&api_key_text([8; 24]))));
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

    #[test]
    fn an_update_leaves_what_it_does_not_name_and_clears_what_it_nulls() {
        let raw = RawUpdate { webhook_url: Some(Some("https://x.example/h".to_owned())), ..RawUpdate::default() };
        let with_hook = merchant().updated(Update::check(raw, false).unwrap(), Timestamp::from_seconds(200));
        assert_eq!(with_hook.webhook_url.as_deref(), Some("https://x.example/h"));
        assert_eq!((with_hook.version, with_hook.name.as_str()), (2, "Blue Mugs"));
        let cleared = RawUpdate { webhook_url: Some(None), x402_enabled: Some(false), ..RawUpdate::default() };
        let cleared = with_hook.updated(Update::check(cleared, false).unwrap(), Timestamp::from_seconds(300));
        assert_eq!((cleared.webhook_url, cleared.x402_enabled), (None, false));
    }

    #[test]
    fn a_key_use_is_written_at_most_once_a_minute() {
        let used = merchant().key_used(Timestamp::from_seconds(100));
        assert!(!used.key.use_is_news(Timestamp::from_seconds(159)));
        assert!(used.key.use_is_news(Timestamp::from_seconds(160)));
    }
}
