//! Additional webhook endpoints of a merchant, each with its URL, its event types and its secrets.
//!
//! Every merchant has a default endpoint: its `webhookUrl`, with the merchant's secrets and subscriptions. Its id has the
//! bits of the merchant's id, so that it needs no record of its own.

use crate::{
    fields::{self, UrlRule, Violation},
    ids::{EndpointId, MerchantId},
    merchant::Merchant,
    time::Timestamp,
    webhook::{EventType, Secret, Secrets, TooManySecrets},
};

/// Maximum number of additional endpoints of a merchant.
pub const MAX_ENDPOINTS: usize = 16;
/// Maximum characters of the description of an endpoint.
const DESCRIPTION_MAX_CHARS: usize = 100;

/// An additional endpoint of a merchant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The id.
    pub id: EndpointId,
    /// The URL.
    pub url: String,
    /// What it is for, for people; may be empty.
    pub description: String,
    /// The events that it receives.
    pub events: EventTypes,
    /// Its signing secrets.
    pub secrets: Secrets,
    /// Whether the merchant has not disabled it. Health disables an endpoint independently.
    pub is_enabled: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// At least one event type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTypes(u32);

impl EventTypes {
    /// Validates a list of event types; `field` is its name in the request.
    ///
    /// # Errors
    /// An unknown type, or no type.
    pub fn check(field: &str, words: &[String]) -> Result<Self, Violation> {
        let mut bits = 0;
        for word in words {
            let known = || EventType::ALL.map(EventType::as_str).join(", ");
            let kind = EventType::parse(word);
            let kind = kind.ok_or_else(|| Violation::new(field, format_args!("must contain only {}", known())))?;
            bits |= kind.bit();
        }
        Self::from_bits(bits).ok_or_else(|| Violation::new(field, "must contain at least one event type"))
    }

    /// Returns whether `kind` is one of them.
    #[must_use]
    pub const fn has(self, kind: EventType) -> bool {
        self.0 & kind.bit() != 0
    }

    /// Returns the types in order.
    pub fn types(self) -> impl Iterator<Item = EventType> {
        EventType::ALL.into_iter().filter(move |kind| self.has(*kind))
    }

    /// Returns the stored form.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Decodes the stored form; `None` for unknown bits and without a type.
    #[must_use]
    pub fn from_bits(bits: u32) -> Option<Self> {
        let known = EventType::ALL.into_iter().fold(0, |all, kind| all | kind.bit());
        (bits & !known == 0 && bits != 0).then_some(Self(bits))
    }
}

/// A validated new endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointDraft {
    url: String,
    description: String,
    events: EventTypes,
}

impl EndpointDraft {
    /// Validates the input of a caller.
    ///
    /// # Errors
    /// Every invalid field.
    pub fn check(
        url: &str,
        description: &str,
        events: &[String],
        allow_insecure: bool,
    ) -> Result<Self, Vec<Violation>> {
        let raw = RawEndpointUpdate {
            url: Some(url.to_owned()),
            description: Some(description.to_owned()),
            events: Some(events.to_vec()),
            is_enabled: None,
        };
        let update = EndpointUpdate::check(raw, allow_insecure)?;
        match (update.url, update.description, update.events) {
            (Some(url), Some(description), Some(events)) => Ok(Self { url, description, events }),
            _ => Err(Vec::new()),
        }
    }

    /// Returns the URL.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// A validated update of an endpoint; `None` leaves a field unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EndpointUpdate {
    /// The URL.
    pub url: Option<String>,
    /// What it is for; empty for nothing.
    pub description: Option<String>,
    /// The events that it receives.
    pub events: Option<EventTypes>,
    /// Whether it receives events.
    pub is_enabled: Option<bool>,
}

/// An unvalidated update of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawEndpointUpdate {
    /// See [`EndpointUpdate::url`].
    pub url: Option<String>,
    /// See [`EndpointUpdate::description`].
    pub description: Option<String>,
    /// See [`EndpointUpdate::events`].
    pub events: Option<Vec<String>>,
    /// See [`EndpointUpdate::is_enabled`].
    pub is_enabled: Option<bool>,
}

impl EndpointUpdate {
    /// Validates the input of a caller.
    ///
    /// # Errors
    /// Every invalid field.
    pub fn check(raw: RawEndpointUpdate, allow_insecure: bool) -> Result<Self, Vec<Violation>> {
        let url = |text: String| fields::url("url", &text, UrlRule::Webhook { allow_insecure }).map(|()| text);
        let description = |text: String| match text.trim() {
            "" => Ok(String::new()),
            text => fields::text("description", text, DESCRIPTION_MAX_CHARS),
        };
        let url = raw.url.map(url).transpose();
        let description = raw.description.map(description).transpose();
        let events = raw.events.map(|words| EventTypes::check("events", &words)).transpose();
        match (url, description, events) {
            (Ok(url), Ok(description), Ok(events)) => Ok(Self { url, description, events, is_enabled: raw.is_enabled }),
            (url, description, events) => {
                Err([url.err(), description.err(), events.err()].into_iter().flatten().collect())
            }
        }
    }
}

/// The reason why a merchant's endpoints were not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EndpointRejection {
    /// The merchant has no endpoint with this id.
    #[error("no such webhook endpoint")]
    NotFound,
    /// The merchant has the maximum number of endpoints.
    #[error("a merchant has at most {MAX_ENDPOINTS} webhook endpoints besides its `webhookUrl`")]
    TooMany,
    /// Too many replaced secrets are still valid.
    #[error(transparent)]
    TooManySecrets(#[from] TooManySecrets),
}

impl EndpointId {
    /// Returns the id of a merchant's default endpoint, its `webhookUrl`.
    #[must_use]
    pub const fn default_of(merchant: MerchantId) -> Self {
        Self::from_bits(merchant.bits())
    }
}

/// Where an event is sent.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The endpoint.
    pub id: EndpointId,
    /// Its URL; `None` for the default endpoint of a merchant without a `webhookUrl`, whose deliveries are held.
    pub url: Option<&'a str>,
    /// The secrets that sign.
    pub secrets: &'a Secrets,
    /// Whether the merchant has not disabled it.
    pub is_enabled: bool,
}

impl Endpoint {
    fn target(&self) -> Target<'_> {
        Target { id: self.id, url: Some(&self.url), secrets: &self.secrets, is_enabled: self.is_enabled }
    }
}

impl Merchant {
    /// Returns an endpoint of the merchant, the default one included.
    #[must_use]
    pub fn target(&self, id: EndpointId) -> Option<Target<'_>> {
        if id == EndpointId::default_of(self.id) {
            let url = self.webhook_url.as_deref();
            return Some(Target { id, url, secrets: &self.secrets, is_enabled: true });
        }
        self.endpoints.iter().find(|endpoint| endpoint.id == id).map(Endpoint::target)
    }

    /// Returns the endpoints that an event is sent to, the default one first. An endpoint that the merchant disabled gets
    /// no deliveries, not even held ones.
    pub fn subscribers(&self, kind: EventType) -> impl Iterator<Item = EndpointId> {
        let default = self.webhook_events.has(kind).then_some(EndpointId::default_of(self.id));
        let others = self.endpoints.iter().filter(move |endpoint| endpoint.is_enabled && endpoint.events.has(kind));
        default.into_iter().chain(others.map(|endpoint| endpoint.id))
    }

    /// Returns the merchant with one more endpoint.
    ///
    /// # Errors
    /// [`EndpointRejection::TooMany`].
    pub fn with_endpoint(
        &self,
        id: EndpointId,
        draft: EndpointDraft,
        secret: Secret,
        now: Timestamp,
    ) -> Result<Self, EndpointRejection> {
        if self.endpoints.len() >= MAX_ENDPOINTS {
            return Err(EndpointRejection::TooMany);
        }
        let EndpointDraft { url, description, events } = draft;
        let secrets = Secrets::only(secret);
        let endpoint =
            Endpoint { id, url, description, events, secrets, is_enabled: true, created_at: now, updated_at: now };
        let mut next = self.next(now);
        next.endpoints.push(endpoint);
        Ok(next)
    }

    /// Returns the merchant with a changed endpoint.
    ///
    /// # Errors
    /// [`EndpointRejection::NotFound`].
    pub fn with_endpoint_updated(
        &self,
        id: EndpointId,
        update: EndpointUpdate,
        now: Timestamp,
    ) -> Result<Self, EndpointRejection> {
        self.with_endpoint_changed(id, now, |endpoint| {
            endpoint.url = update.url.unwrap_or_else(|| endpoint.url.clone());
            endpoint.description = update.description.unwrap_or_else(|| endpoint.description.clone());
            endpoint.events = update.events.unwrap_or(endpoint.events);
            endpoint.is_enabled = update.is_enabled.unwrap_or(endpoint.is_enabled);
            Ok(())
        })
    }

    /// Returns the merchant with a new secret of an endpoint. The previous one is invalid at once, or remains valid until
    /// `previous_valid_until`.
    ///
    /// # Errors
    /// [`EndpointRejection::NotFound`]; [`EndpointRejection::TooManySecrets`].
    pub fn with_endpoint_secret(
        &self,
        id: EndpointId,
        secret: Secret,
        previous_valid_until: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Self, EndpointRejection> {
        self.with_endpoint_changed(id, now, |endpoint| {
            endpoint.secrets = endpoint.secrets.rotated(secret, previous_valid_until, now)?;
            Ok(())
        })
    }

    /// Returns the merchant without an endpoint.
    ///
    /// # Errors
    /// [`EndpointRejection::NotFound`].
    pub fn without_endpoint(&self, id: EndpointId, now: Timestamp) -> Result<Self, EndpointRejection> {
        let mut next = self.next(now);
        next.endpoints.retain(|endpoint| endpoint.id != id);
        if next.endpoints.len() == self.endpoints.len() { Err(EndpointRejection::NotFound) } else { Ok(next) }
    }

    fn with_endpoint_changed(
        &self,
        id: EndpointId,
        now: Timestamp,
        change: impl FnOnce(&mut Endpoint) -> Result<(), EndpointRejection>,
    ) -> Result<Self, EndpointRejection> {
        let mut next = self.next(now);
        let endpoint = next.endpoints.iter_mut().find(|endpoint| endpoint.id == id);
        let endpoint = endpoint.ok_or(EndpointRejection::NotFound)?;
        change(endpoint)?;
        endpoint.updated_at = now;
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ids::KeyId,
        merchant::{Credentials, Registration, api_key_text},
    };

    const NOW: Timestamp = Timestamp::from_seconds(200);

    fn merchant() -> Merchant {
        let registration = Registration::check("Blue Mugs", "blue.mugs", None).unwrap();
        let credentials = Credentials {
            id: MerchantId::from_bits(1),
            key_id: KeyId::from_bits(2),
            api_key: &api_key_text([7; 24]),
            secret: Secret::from_random([3; 32]),
        };
        Merchant::register(registration, credentials, false, Timestamp::from_seconds(100))
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn draft(events: &[&str]) -> EndpointDraft {
        EndpointDraft::check("https://books.example/hook", " the books ", &words(events), false).unwrap()
    }

    fn secret(n: u8) -> Secret {
        Secret::from_random([n; 32])
    }

    #[test]
    fn every_bad_field_of_an_endpoint_is_named() {
        let violations =
            EndpointDraft::check("http://books.example", &"x".repeat(101), &words(&["payment.created"]), false);
        let fields: Vec<_> = violations.unwrap_err().into_iter().map(|violation| violation.field).collect();
        assert_eq!(fields, ["url", "description", "events"]);
        assert_eq!(EventTypes::check("events", &[]).unwrap_err().field, "events");
        assert_eq!((EventTypes::from_bits(0), EventTypes::from_bits(1 << 31)), (None, None));
        let both = EventTypes::check("events", &words(&["refund.completed", "payment.exception"])).unwrap();
        assert_eq!(both.types().collect::<Vec<_>>(), [EventType::Exception, EventType::RefundCompleted]);
        assert_eq!(EventTypes::from_bits(both.bits()), Some(both));
    }

    #[test]
    fn events_go_to_the_default_endpoint_and_to_enabled_subscribers() {
        let (books, stock) = (EndpointId::from_bits(7), EndpointId::from_bits(8));
        let merchant = merchant()
            .with_endpoint(books, draft(&["refund.completed", "payment.status_changed"]), secret(4), NOW)
            .unwrap()
            .with_endpoint(stock, draft(&["payment.status_changed"]), secret(5), NOW)
            .unwrap();
        let default = EndpointId::default_of(merchant.id);
        let sent = |merchant: &Merchant, kind| merchant.subscribers(kind).collect::<Vec<_>>();
        assert_eq!(sent(&merchant, EventType::StatusChanged), [default, books, stock]);
        assert_eq!(sent(&merchant, EventType::RefundCompleted), [books]);
        assert_eq!(sent(&merchant, EventType::X402Settled), []);
        let off = EndpointUpdate { is_enabled: Some(false), ..EndpointUpdate::default() };
        let merchant = merchant.with_endpoint_updated(books, off, NOW).unwrap();
        assert_eq!(sent(&merchant, EventType::StatusChanged), [default, stock]);
        assert!(merchant.target(books).is_some_and(|target| !target.is_enabled && target.url.is_some()));
        assert!(merchant.target(default).is_some_and(|target| target.url.is_none()), "it has no webhookUrl");
        let merchant = merchant.without_endpoint(stock, NOW).unwrap();
        assert!(merchant.target(stock).is_none());
        assert_eq!(merchant.without_endpoint(stock, NOW), Err(EndpointRejection::NotFound));
    }

    #[test]
    fn an_update_keeps_absent_fields_and_endpoints_have_secrets_of_their_own() {
        let id = EndpointId::from_bits(7);
        let made = merchant().with_endpoint(id, draft(&["refund.completed"]), secret(4), NOW).unwrap();
        assert_eq!((made.endpoints[0].description.as_str(), made.version), ("the books", 2));
        let url = Some("https://new.example/hook".to_owned());
        let later = Timestamp::from_seconds(300);
        let raw = RawEndpointUpdate { url, description: Some(String::new()), ..RawEndpointUpdate::default() };
        let update = EndpointUpdate::check(raw, false).unwrap();
        let updated = made.with_endpoint_updated(id, update, later).unwrap();
        let expected = Endpoint {
            url: "https://new.example/hook".to_owned(),
            description: String::new(),
            updated_at: later,
            ..made.endpoints[0].clone()
        };
        assert_eq!(updated.endpoints, [expected]);
        let until = Timestamp::from_seconds(400);
        let rotated = updated.with_endpoint_secret(id, secret(6), Some(until), later).unwrap();
        assert_eq!(rotated.endpoints[0].secrets.current, secret(6));
        assert_eq!(rotated.endpoints[0].secrets.previous, [(secret(4), until)]);
        assert_eq!(rotated.secrets, made.secrets, "the default endpoint keeps its own");
        let unknown = EndpointId::from_bits(9);
        assert_eq!(rotated.with_endpoint_secret(unknown, secret(6), None, later), Err(EndpointRejection::NotFound));
        let rotate = |merchant: Merchant, n| merchant.with_endpoint_secret(id, secret(n), Some(until), later);
        let full = rotate(rotated, 8).and_then(|merchant| rotate(merchant, 9)).unwrap();
        assert!(matches!(rotate(full, 10), Err(EndpointRejection::TooManySecrets(_))));
    }

    #[test]
    fn a_merchant_has_at_most_sixteen_endpoints() {
        let mut merchant = merchant();
        for n in 10..26 {
            let id = EndpointId::from_bits(n);
            merchant = merchant.with_endpoint(id, draft(&["refund.completed"]), secret(4), NOW).unwrap();
        }
        let more = merchant.with_endpoint(EndpointId::from_bits(99), draft(&["refund.completed"]), secret(4), NOW);
        assert_eq!(more, Err(EndpointRejection::TooMany));
    }
}
