//! Invalid requests to the facade: invalid orders, another merchant's ids, forged forms, too many requests.

use serde_json::json;

use super::{orders::slug_of, *};
use crate::random::Random;

/// The description in invalid orders: no payment with it may ever exist.
pub(super) const ILL: &str = "Not to be sold";
/// Different invalid requests of a visit.
const MISTAKES: usize = 5;
/// Burst size and refill rate per second of checkout requests of one IP address.
const BURST: u64 = 30;
/// How many requests a caller sends that exceeds the rate limit.
const RUSH: u64 = 40;

/// Wrong API keys that one IP address may send in a minute.
const GUESSES: u32 = 10;

/// An invalid request, and how it must be refused.
struct Mistake {
    request: Request,
    status: u16,
    reason: &'static str,
    field: Option<&'static str>,
}

impl Client<'_> {
    /// Returns the random stream of this visit.
    fn random(&self) -> Random {
        let tag = format!("visit {} {}", self.session, self.sim.now_ms());
        Random::new(self.sim.script.seed).fork(&tag)
    }

    /// Returns an IP address that no other client uses.
    fn outsider(random: &mut Random) -> IpAddr {
        let bits = u32::try_from(random.below(1 << 24)).unwrap_or(0);
        Ipv4Addr::from_bits(0x0b00_0000 | bits).into()
    }

    /// Sends invalid orders: each is refused with its own reason, and none creates a session.
    pub(super) async fn send_invalid_orders(&self, known: &Session, key: &str) {
        let mut random = self.random();
        let mut invalid_requests = self.invalid_requests(key, &mut random);
        for _ in 0..MISTAKES {
            let Mistake { request, status, reason, field } =
                invalid_requests.swap_remove(random.index(invalid_requests.len()));
            let shown = format!("{} {}", request.method, request.path);
            let reply = self.ask(request).await;
            let reported = json_of(&reply);
            let fields: Vec<_> =
                reported["details"].as_array().into_iter().flatten().map(|one| &one["field"]).collect();
            let names = field.is_none_or(|field| fields.iter().any(|named| *named == field));
            let is_refused = reply.status == status && reported["reason"] == reason && names;
            // The API key is checked before the body: the merchant may not have received its new key yet.
            let is_excused = reply.status == 503 || reply.status == 401;
            self.hold("mistakes-are-named", known.id, is_refused || is_excused, || {
                format!("{shown} with {reason} about {field:?} gets {}: {}", reply.status, text_of(&reply))
            });
        }
        self.sim.observe(|observer| {
            match observer.payments.values().find(|known| known.payment.description == ILL).map(|k| k.payment.id) {
                None => observer.passes("mistakes-change-nothing"),
                Some(id) => {
                    let text = format!("an invalid order created {id}");
                    observer.violate("mistakes-change-nothing", text, Some(id));
                }
            }
        });
    }

    fn invalid_requests(&self, key: &str, random: &mut Random) -> Vec<Mistake> {
        const PATH: &str = "/api/public/payments";
        let good = || json!({ "amount": "1000", "currency": "HBD", "description": ILL });
        let send = |method, path: &str, key: &str, body: Option<&Value>| request(self.ip, method, path, key, body);
        let order = |field: &'static str, value: Value, reason| {
            let mut body = good();
            match value {
                Value::Null => drop(body.as_object_mut().and_then(|body| body.remove(field))),
                value => body[field] = value,
            }
            Mistake { request: send("POST", PATH, key, Some(&body)), status: 400, reason, field: Some(field) }
        };
        let raw = |text: String, status, reason, field| {
            let mut request = send("POST", PATH, key, Some(&Value::Null));
            request.body = text.into();
            Mistake { request, status, reason, field }
        };
        let mut text_plain = send("POST", PATH, key, None);
        text_plain.headers.push(("content-type", "text/plain".to_owned()));
        text_plain.body = good().to_string().into();
        let wrong_key = format!("sk_live_{:048x}", random.draw());
        let outsider = Self::outsider(random);
        let invalid = "validation_failed";
        vec![
            raw("{\"amount\": ".to_owned(), 400, "malformed_json", Some("body")),
            raw("[]".to_owned(), 400, invalid, Some("body")),
            raw(good().to_string().replacen('{', "{\"amount\":\"1\",", 1), 400, invalid, Some("amount")),
            raw(format!("{{\"description\":\"{}\"}}", "x".repeat(70_000)), 413, "body_too_large", None),
            order("colour", "blue".into(), "unknown_field"),
            order("amount", 1_000.into(), invalid),
            order("amount", Value::Null, invalid),
            order("amount", "-5".into(), invalid),
            order("currency", "EUR".into(), invalid),
            order("description", Value::Null, invalid),
            order("expiresInSeconds", 5.into(), invalid),
            order("redirectUrl", "javascript:alert(1)".into(), invalid),
            Mistake { request: text_plain, status: 415, reason: "unsupported_media_type", field: None },
            Mistake {
                request: send("POST", PATH, "", Some(&good())),
                status: 401,
                reason: "invalid_api_key",
                field: None,
            },
            Mistake {
                request: request(outsider, "POST", PATH, &wrong_key, Some(&good())),
                status: 401,
                reason: "invalid_api_key",
                field: None,
            },
            Mistake {
                request: send("POST", "/api/public/payment", key, Some(&good())),
                status: 404,
                reason: "unknown_route",
                field: None,
            },
            Mistake {
                request: send("DELETE", PATH, key, None),
                status: 405,
                reason: "method_not_allowed",
                field: None,
            },
        ]
    }

    /// Another merchant requests the session, and one that does not exist: the responses must be the same.
    pub(super) async fn access_others_payment(&self, known: &Session) {
        let other = self.sim.clients().merchants.values().find(|shop| shop.id != known.merchant).cloned();
        let Some(other) = other else { return };
        let mut bits = [0; 16];
        self.random().fill(&mut bits);
        let unknown = PaymentId::from_bits(u128::from_be_bytes(bits) >> 1);
        let resolution = json!({ "kind": "accepted" });
        for (method, path, body) in [
            ("GET", "", None),
            ("GET", "/status", None),
            ("GET", "/transfers", None),
            ("GET", "/refund", None),
            ("POST", "/cancel", None),
            ("POST", "/resolve", Some(&resolution)),
            ("DELETE", "/metadata", None),
            ("DELETE", "/note", None),
        ] {
            let at = |id: PaymentId| format!("/api/public/payments/{id}{path}");
            let theirs = self.send(method, &at(known.id), &other.api_key, body).await;
            let nobodys = self.send(method, &at(unknown), &other.api_key, body).await;
            if theirs.status == 503 || nobodys.status == 503 {
                continue;
            }
            let bare = |reply: &Reply| {
                let mut reported = json_of(reply);
                reported["requestId"] = Value::Null;
                reported
            };
            let is_same = theirs.status == nobodys.status && theirs.status >= 400 && bare(&theirs) == bare(&nobodys);
            self.hold("anothers-is-unknown", known.id, is_same, || {
                format!(
                    "{method} {path} of another's payment gets {}: {}, and of an unknown one {}",
                    theirs.status,
                    text_of(&theirs),
                    nobodys.status
                )
            });
        }
        self.intrude_by_grpc(known, unknown, &other.api_key).await;
        self.sim.mark("a client requests another merchant's data");
    }

    /// Returns whether no step of the script cancels the session.
    fn nobody_cancels(&self) -> bool {
        let session = self.session;
        !self
            .sim
            .script
            .steps
            .iter()
            .any(|step| matches!(step.action, Action::Cancel { session: other, .. } if other == session))
    }

    /// Checks that a session is not cancelled without a valid request.
    pub(super) fn hold_uncancelled(&self, known: &Session) {
        if self.nobody_cancels() {
            let is_asked = self.sim.durable_state(known.id).is_some_and(|durable| durable.cancellation.is_some());
            self.hold("forms-need-their-token", known.id, !is_asked, || {
                format!("{} is being cancelled without a request that has a token", known.id)
            });
        }
    }

    /// Sends forms with a wrong CSRF token, or with that of another session.
    pub(super) async fn forge_forms(&self, known: &Session, key: &str) {
        let mut random = self.random();
        let other = self.sim.clients().sessions.values().find(|other| other.id != known.id).cloned();
        let others = match other.and_then(|other| slug_of(self.sim, other.id)) {
            Some(slug) => self.form_token(&slug).await,
            None => None,
        };
        let drawn = format!("{:016x}{:016x}", random.draw(), random.draw());
        for token in [drawn, String::new()].into_iter().chain(others) {
            let reply =
                self.post_form(&format!("/checkout/{}/cancel", known.id), &[("token", &token)], Vec::new()).await;
            let is_refused = reason_of(&reply).as_deref() == Some("invalid_form_token");
            self.hold("forms-need-their-token", known.id, is_refused || reply.status == 503, || {
                format!("a cancellation of {} without its token gets {}", known.id, reply.status)
            });
        }
        self.forge_at_the_dashboard(known, key).await;
        self.hold_uncancelled(known);
        self.sim.mark("a client forges a form");
    }

    /// Exceeds the rate limit, from an IP address of its own.
    pub(super) async fn exceed_rate_limit(&self, known: &Session) {
        let Some(slug) = slug_of(self.sim, known.id) else { return };
        let ip = Self::outsider(&mut self.random());
        let rusher = Client { endpoint: Arc::clone(&self.endpoint), ip, exceeds_limit: true, ..*self };
        let (began, began_wall) = (self.sim.now_ms(), self.wall());
        let mut taken = 0;
        for sent in 0..RUSH {
            let reply = rusher.send("GET", &format!("/for/{slug}/status"), "", None).await;
            if reply.status == 429 {
                self.hold("limits-are-kept", known.id, sent >= BURST, || {
                    format!("an IP address is refused at request {sent} of {BURST}")
                });
            } else {
                taken += 1;
            }
        }
        // The rate limiter uses the wall clock, which may step.
        let passed =
            (self.sim.now_ms() - began).max(self.wall().since(began_wall).as_millis().try_into().unwrap_or(u64::MAX));
        let most = BURST.saturating_add(passed / 1_000 + 1);
        self.hold("limits-are-kept", known.id, taken <= most, || {
            format!("{taken} requests of an IP address were accepted, and {most} are allowed")
        });
        self.rush_to_log_in(known).await;
        self.sim.mark("a client exceeds a rate limit");
    }

    /// Guesses API keys at the dashboard's login until the IP address is locked out.
    async fn rush_to_log_in(&self, known: &Session) {
        let mut random = self.random().fork("login");
        let ip = Self::outsider(&mut random);
        let guesser = Client { endpoint: Arc::clone(&self.endpoint), ip, exceeds_limit: true, ..*self };
        let began = self.wall();
        for guess in 0..GUESSES + 2 {
            let key = format!("sk_live_{:048x}", random.draw());
            let headers = vec![("sec-fetch-site", "same-origin".to_owned())];
            let reply = guesser.post_form("/dashboard/login", &[("key", &key)], headers).await;
            let is_right = match reply.status {
                401 => guess < GUESSES,
                429 => guess >= GUESSES,
                status => status == 503,
            };
            // The limit refills meanwhile, and the lockout ends.
            self.hold("limits-are-kept", known.id, is_right || self.wall() != began, || {
                format!("guess {guess} of a key at the login gets {}", reply.status)
            });
        }
    }
}
