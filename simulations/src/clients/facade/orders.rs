//! Sessions created and cancelled through the facade.

use serde_json::json;

use super::*;

/// An order of a shop.
pub(super) struct Order {
    pub(super) session: u32,
    pub(super) merchant: usize,
    pub(super) money: Money,
    pub(super) lifetime_seconds: Option<u64>,
}

impl Order {
    /// Returns the body of its request.
    pub(super) fn body(&self) -> Value {
        let mut body = json!({
            "amount": self.money.units.to_string(),
            "currency": self.money.currency.code(),
            "description": "A blue mug",
            "metadata": { "order": self.session.to_string(), "items": ["mug", "tea"] },
        });
        if let Some(seconds) = self.lifetime_seconds {
            body["expiresInSeconds"] = seconds.into();
        }
        body
    }

    /// Returns its idempotency key: every other shop sends one.
    pub(super) fn key(&self) -> Option<String> {
        self.session.is_multiple_of(2).then(|| format!("order-{}", self.session))
    }
}

/// The paths at which sessions are opened.
const CREATE: [&str; 2] = ["/api/public/payments", "/api/public/payments/create"];

impl Client<'_> {
    pub(super) async fn create(&self, engine: &Running, order: &Order) -> Again {
        let (sim, session) = (self.sim, order.session);
        let Some(shop) = sim.clients().merchants.get(&order.merchant).cloned() else { return Again::In(1_000) };
        let path = CREATE[usize::from(session % 3 == 0)];
        let mut sent = request(self.ip, "POST", path, &shop.api_key, Some(&order.body()));
        sent.headers.extend(order.key().map(|key| ("idempotency-key", key)));
        let reply = self.ask(sent).await;
        match (reply.status, reason_of(&reply).as_deref()) {
            (201, _) => {}
            (403, Some("inactive_merchant")) => return Again::No,
            (401, _) => {
                // The response with the new key was lost: the operator issues another.
                if let Ok((_, key)) = engine.merchants.reissue_api_key(shop.id).await
                    && let Some(shop) = sim.clients().merchants.get_mut(&order.merchant)
                {
                    shop.api_key = key;
                }
                return Again::In(1_000);
            }
            (status, reason) => {
                if sim.is_sound() || !(status == 503 || reason == Some("conflict")) {
                    sim.refuse(format!("session {session} is not created: {status} {reason:?}"), None);
                }
                return Again::In(1_500);
            }
        }
        let reported = json_of(&reply);
        let id = reported["id"].as_str().and_then(|id| id.parse::<PaymentId>().ok());
        let durable = id.and_then(|id| sim.observe(|observer| Some(Arc::clone(&observer.payments.get(&id)?.payment))));
        let Some(payment) = durable else {
            self.violate(
                "acknowledged-create-survives",
                format!("{} was created and is not durable", reported["id"]),
                None,
            );
            return Again::No;
        };
        self.hold_terms(order, &shop, &payment, &reported, path == CREATE[0]);
        if reply.header("idempotent-replayed").is_some() {
            sim.mark("an idempotency key is reused");
        }
        if order.key().is_some() {
            sim.observe(|observer| observer.opens(session, payment.id));
        }
        sim.observe(|observer| observer.responded(&Response::Created(&payment)));
        if sim.loses_reply() {
            return Again::In(1_000);
        }
        sim.event(Source::Merchant, "created", Some(session), payment.amount.units, || {
            format!(
                "shop {} creates session {session} over {} until {}",
                order.merchant, payment.amount, payment.expires_at
            )
        });
        let known = Session::of(&payment);
        sim.observe(|observer| {
            if let Some(durable) = observer.payments.get_mut(&known.id) {
                durable.session = Some(session);
            }
        });
        sim.clients().sessions.insert(session, known);
        Again::No
    }

    /// Checks a new session and its response against the request.
    fn hold_terms(&self, order: &Order, shop: &Shop, payment: &Payment, reported: &Value, is_long: bool) {
        let is_reported = !is_long
            || (reported["amount"]["value"].as_str() == Some(payment.amount.units.to_string().as_str())
                && reported["amount"]["currency"] == payment.amount.currency.code()
                && reported["description"] == payment.description
                && reported["expiresAt"] == payment.expires_at.to_string());
        let is_ordered = payment.amount == order.money
            && payment.merchant == shop.id
            && payment.description == "A blue mug"
            && payment.metadata.get("order") == Some(&engine::fields::MetadataValue::Text(order.session.to_string()));
        let is_named = reported["slug"] == payment.slug_text();
        self.hold("responses-are-durable", payment.id, is_reported && is_ordered && is_named, || {
            format!("an order of {} returns {reported}, and {} is durable", order.money, payment.amount)
        });
    }

    pub(super) async fn cancel(&self, by_merchant: bool) -> Again {
        let (sim, session) = (self.sim, self.session);
        let Some(known) = sim.clients().sessions.get(&session).cloned() else { return Again::In(1_000) };
        let by = if by_merchant { Canceller::Merchant } else { Canceller::Customer };
        let before = sim.durable_state(known.id);
        let reply = if by_merchant {
            let Some(key) = key_of(sim, known.merchant) else { return Again::In(1_000) };
            self.send("POST", &format!("/api/public/payments/{}/cancel", known.id), &key, None).await
        } else {
            let Some(slug) = slug_of(sim, known.id) else { return Again::In(1_000) };
            // Every other customer returns from a wallet, with the public id and the cookie of the page.
            let (path, token) = match session % 2 {
                0 => (format!("/for/{slug}/cancel"), String::new()),
                _ => match self.form_token(&slug).await {
                    Some(token) => (format!("/checkout/{}/cancel", known.id), token),
                    None => (format!("/for/{slug}/cancel"), String::new()),
                },
            };
            // Most customers use a browser.
            let headers = if session % 4 < 3 { vec![("accept", "text/html".to_owned())] } else { Vec::new() };
            self.post_form(&path, &[("token", &token)], headers).await
        };
        match (reply.status, reason_of(&reply).as_deref()) {
            // A browser is redirected to the page.
            (200 | 303, _) => {
                if reply.status == 200 {
                    let reported = json_of(&reply);
                    self.hold_state(known.id, before, reported["status"].as_str().unwrap_or_default());
                }
                let payment = sim.observe(|observer| Some(Arc::clone(&observer.payments.get(&known.id)?.payment)));
                if let Some(payment) = payment {
                    sim.observe(|observer| observer.responded(&Response::Cancelled(&payment)));
                }
                sim.event(Source::Payer, "cancel_requested", Some(session), 0, || {
                    format!("the {} of session {session} requests its cancellation", by.as_str())
                });
                Again::No
            }
            (409, reason) if reason != Some("conflict") => {
                let reason = reason.unwrap_or("its page names the reason");
                if sim.requires_outcome(session, RequiredOutcome::Cancelled) {
                    sim.refuse(format!("session {session} is not cancelled: {reason}"), Some(known.id));
                }
                sim.mark("a cancel loses the race");
                Again::No
            }
            // The merchant has not received its new key yet.
            (401, _) if by_merchant => Again::In(1_000),
            (503, _) | (409, _) => Again::In(1_000),
            (status, reason) => {
                sim.refuse(format!("session {session} is not cancelled: {status} {reason:?}"), Some(known.id));
                Again::No
            }
        }
    }

    /// Reads the CSRF token of a checkout page's forms from its cookie.
    pub(super) async fn form_token(&self, slug: &str) -> Option<String> {
        let mut sent = request(self.ip, "GET", &format!("/for/{slug}"), "", None);
        sent.headers.push(("accept", "text/html".to_owned()));
        let page = self.ask(sent).await;
        let cookie = page.header("set-cookie")?.strip_prefix("hivetill-checkout=")?;
        Some(cookie.split(';').next()?.to_owned())
    }

    /// Sends a form like a browser.
    pub(super) async fn post_form(
        &self,
        path: &str,
        fields: &[(&str, &str)],
        headers: Vec<(&'static str, String)>,
    ) -> Reply {
        let body: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut sent = request(self.ip, "POST", path, "", None);
        sent.headers.push(("content-type", "application/x-www-form-urlencoded".to_owned()));
        sent.headers.extend(headers);
        sent.body = body.join("&").into();
        self.ask(sent).await
    }
}

/// Returns the API key of a merchant that its shop knows.
pub(super) fn key_of(sim: &Simulation, merchant: MerchantId) -> Option<String> {
    sim.clients().merchants.values().find(|shop| shop.id == merchant).map(|shop| shop.api_key.clone())
}

/// Returns the secret part of a checkout URL.
pub(super) fn slug_of(sim: &Simulation, id: PaymentId) -> Option<String> {
    sim.observe(|observer| Some(observer.payments.get(&id)?.payment.slug_text()))
}
