//! Requests to the facade that read: sessions, lists, events and pages.

use std::collections::BTreeSet;

use super::{
    orders::{key_of, slug_of},
    *,
};

/// Payments on a page of a list.
const PAGE: usize = 20;

impl Client<'_> {
    pub(super) async fn call(&self, call: FacadeCall) -> Again {
        let Some(known) = self.sim.clients().sessions.get(&self.session).cloned() else { return Again::In(5_000) };
        let Some(key) = key_of(self.sim, known.merchant) else { return Again::No };
        match call {
            FacadeCall::Read => self.read(&known, &key).await,
            FacadeCall::List => self.list(&known, &key).await,
            FacadeCall::ViewCheckout => self.view_checkout(&known).await,
            FacadeCall::RepeatOrder => self.repeat_order(&known, &key).await,
            FacadeCall::ChangeOrder => self.change_order(&known, &key).await,
            FacadeCall::InvalidOrders => self.send_invalid_orders(&known, &key).await,
            FacadeCall::AccessOthersPayment => self.access_others_payment(&known).await,
            FacadeCall::ForgeForms => self.forge_forms(&known, &key).await,
            FacadeCall::Dashboard => self.dashboard(&known, &key).await,
            FacadeCall::ExceedRateLimit => self.exceed_rate_limit(&known).await,
            FacadeCall::Grpc => self.call_grpc(&known, &key).await,
            FacadeCall::Watch => return self.watch(&known, &key).await,
        }
        Again::No
    }

    /// Assigns the oldest unmatched transfer to this session.
    pub(super) async fn assign(&self, engine: &Running) -> Again {
        let Some(known) = self.sim.clients().sessions.get(&self.session).cloned() else { return Again::In(1_000) };
        let Some(key) = key_of(self.sim, known.merchant) else { return Again::In(1_000) };
        let (mut oldest, mut cursor) = (None, String::new());
        for _ in 0..20 {
            let path = format!("/api/public/unmatched?status=open&limit=100{cursor}");
            let list = self.send("GET", &path, &key, None).await;
            if reason_of(&list).as_deref() == Some("account_not_proven") {
                // A failure is retried at the next check.
                if let Ok(merchant) = engine.merchants.get(known.merchant).await {
                    verify_by_operator(self.sim, engine, &merchant).await;
                }
                return Again::In(1_000);
            }
            self.hold_taken(&known, "the list of unmatched transfers", &list, 200);
            if list.status != 200 {
                return Again::In(1_000);
            }
            let reported = json_of(&list);
            let last = reported["data"].as_array().and_then(|data| data.last()).and_then(|one| one["id"].as_str());
            oldest = last.map(str::to_owned).or(oldest);
            match reported["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        let Some(oldest) = oldest else { return Again::In(2_000) };
        let body = serde_json::json!({ "paymentId": known.id.to_string() });
        let path = format!("/api/public/unmatched/{oldest}/assign");
        let before = self.sim.durable_state(known.id);
        let reply = self.send("POST", &path, &key, Some(&body)).await;
        match reply.status {
            200 => {
                self.hold_state(known.id, before, json_of(&reply)["status"].as_str().unwrap_or_default());
                let is_durable = self.sim.observe(|observer| observer.assignments.values().any(|id| *id == known.id));
                self.hold("responses-are-durable", known.id, is_durable, || {
                    format!("{oldest} is reported as assigned to {} and is not", known.id)
                });
                self.sim.mark("a merchant assigns a transfer");
                Again::No
            }
            409 if reason_of(&reply).as_deref() != Some("conflict") => Again::No,
            401 | 403 | 409 | 503 => Again::In(1_000),
            _ => {
                self.hold_taken(&known, "an assignment", &reply, 200);
                Again::No
            }
        }
    }

    /// Checks that a valid request was not refused, whatever else its response contains.
    pub(super) fn hold_taken(&self, known: &Session, shown: &str, reply: &Reply, wanted: u16) {
        // The merchant may not have received its new key yet.
        let is_taken = [wanted, 401, 503].contains(&reply.status);
        self.hold("valid-requests-are-taken", known.id, is_taken, || {
            format!("{shown} of {} is refused: {} {:?}", known.id, reply.status, reason_of(reply))
        });
    }

    /// Reads a session: the whole, its status, and its customer's view.
    async fn read(&self, known: &Session, key: &str) {
        let path = format!("/api/public/payments/{}", known.id);
        let before = self.sim.durable_state(known.id);
        let whole = self.send("GET", &path, key, None).await;
        if whole.status == 200 {
            let reported = json_of(&whole);
            self.hold_state(known.id, before, reported["status"].as_str().unwrap_or_default());
            let is_it = reported["id"] == known.id.to_string()
                && reported["merchantId"] == known.merchant.to_string()
                && reported["amount"]["value"].as_str() == Some(known.amount.units.to_string().as_str())
                && reported["payTo"] == known.pay_to.to_string()
                && reported["memo"] == memo_of(known.id);
            self.hold("responses-are-durable", known.id, is_it, || format!("{} is reported as {reported}", known.id));
        }
        let before = self.sim.durable_state(known.id);
        let state = self.send("GET", &format!("{path}/status"), key, None).await;
        if state.status == 200 {
            self.hold_state(known.id, before, json_of(&state)["status"].as_str().unwrap_or_default());
        }
        let Some(slug) = slug_of(self.sim, known.id) else { return };
        let before = self.sim.durable_state(known.id);
        let live = self.send("GET", &format!("/for/{slug}/status"), "", None).await;
        if live.status == 200 {
            self.hold_state(known.id, before, json_of(&live)["status"].as_str().unwrap_or_default());
        }
        for (shown, reply) in [("a read", whole), ("the state", state), ("the live state", live)] {
            self.hold_taken(known, shown, &reply, 200);
        }
    }

    /// Reads the newest payments of a merchant, and its events.
    async fn list(&self, known: &Session, key: &str) {
        let before = self.newest(known.merchant);
        let page = self.send("GET", &format!("/api/public/payments?limit={PAGE}"), key, None).await;
        self.hold_taken(known, "the list", &page, 200);
        if page.status == 200 && before == self.newest(known.merchant) {
            let reported = json_of(&page);
            let ids: Vec<_> = reported["data"].as_array().into_iter().flatten().map(|one| &one["id"]).collect();
            let is_it = ids.iter().copied().eq(before.iter());
            self.hold("lists-match-the-payments", known.id, is_it, || {
                format!("a list has {ids:?} and should have {before:?}")
            });
        }
        let mut after = String::new();
        let mut seen = BTreeSet::new();
        let first = self.kept_events_of(known.merchant);
        for _ in 0..100 {
            let events = self.send("GET", &format!("/api/public/events?limit=100{after}"), key, None).await;
            self.hold_taken(known, "the list of events", &events, 200);
            if events.status != 200 {
                return;
            }
            let reported = json_of(&events);
            let ids = reported["events"].as_array().into_iter().flatten().filter_map(|event| event["id"].as_str());
            seen.extend(ids.map(str::to_owned));
            after = format!("&after={}", reported["nextCursor"].as_str().unwrap_or_default());
            if reported["hasMore"] != true {
                break;
            }
        }
        // Retention deletes events meanwhile, and not all at once.
        let kept: BTreeSet<_> = first.intersection(&self.kept_events_of(known.merchant)).cloned().collect();
        let all = self.events_of(known.merchant, Timestamp::EPOCH);
        let is_whole = kept.is_subset(&seen) && seen.is_subset(&all);
        self.hold("lists-match-the-payments", known.id, is_whole, || {
            let (missing, strange) = (kept.difference(&seen).next(), seen.difference(&all).next());
            format!("{} events are listed; missing is {missing:?}, strange is {strange:?}", seen.len())
        });
    }

    /// Returns the newest durable payments of a merchant.
    fn newest(&self, merchant: MerchantId) -> Vec<Value> {
        self.sim.observe(|observer| {
            let own = observer.payments.values().filter(|known| known.payment.merchant == merchant);
            let mut ids: Vec<_> = own.map(|known| known.payment.id).collect();
            ids.sort_unstable_by_key(|id| core::cmp::Reverse(id.bits()));
            ids.into_iter().take(PAGE).map(|id| id.to_string().into()).collect()
        })
    }

    /// Returns the events of a merchant that retention keeps.
    fn kept_events_of(&self, merchant: MerchantId) -> BTreeSet<String> {
        let from = self.sim.observe(|observer| observer.model.events_from);
        self.events_of(merchant, from)
    }

    /// Returns the events of a merchant since `from`, as they became durable.
    fn events_of(&self, merchant: MerchantId, from: Timestamp) -> BTreeSet<String> {
        self.sim.observe(|observer| {
            let own = observer.events.values().filter(|event| event.merchant == merchant && event.at >= from);
            own.map(|event| event.id.to_string()).collect()
        })
    }

    /// Requests the checkout as a browser and as a program.
    async fn view_checkout(&self, known: &Session) {
        let Some(slug) = slug_of(self.sim, known.id) else { return };
        let mut page = request(self.ip, "GET", &format!("/for/{slug}"), "", None);
        page.headers.push(("accept", "text/html".to_owned()));
        let page = self.ask(page).await;
        self.hold_taken(known, "the checkout page", &page, 200);
        let before = self.sim.durable_state(known.id);
        let asked = self.send("GET", &format!("/for/{slug}"), "", None).await;
        let after = self.sim.durable_state(known.id);
        let open =
            [before, after].into_iter().flatten().any(|durable| durable.state == engine::payment::State::Pending);
        let is_right = match asked.status {
            402 => {
                let reported = json_of(&asked);
                let offer = &reported["accepts"][0];
                open && offer["payTo"] == known.pay_to.to_string()
            }
            // Ended, paid, processing, or its merchant accepts no agents.
            403 | 409 | 410 | 503 => true,
            _ => false,
        };
        self.hold("responses-are-durable", known.id, is_right, || {
            format!("a program that requests {} gets {}: {}", known.id, asked.status, text_of(&asked))
        });
    }

    /// Repeats the order that created the session: the response is the same session.
    async fn repeat_order(&self, known: &Session, key: &str) {
        let Some((order, name)) = order_of(self.sim, self.session)
            .and_then(|order| Some((order.key()?, order)))
            .map(|(name, order)| (order, name))
        else {
            return;
        };
        let mut sent = request(self.ip, "POST", "/api/public/payments", key, Some(&order.body()));
        sent.headers.push(("idempotency-key", name));
        let reply = self.ask(sent).await;
        if reply.status == 201 {
            let id = json_of(&reply)["id"].as_str().and_then(|id| id.parse().ok());
            self.sim.observe(|observer| observer.opens(self.session, id.unwrap_or(known.id)));
            self.sim.mark("an idempotency key is reused");
        }
        let is_excused = self.may_refuse_orders(&reply);
        self.hold("valid-requests-are-taken", known.id, reply.status == 201 || is_excused, || {
            format!("the repeated order of {} is refused: {} {}", known.id, reply.status, text_of(&reply))
        });
    }

    /// Sends another order with the idempotency key of the session: it is refused.
    async fn change_order(&self, known: &Session, key: &str) {
        let Some(mut order) = order_of(self.sim, self.session) else { return };
        let Some(name) = order.key() else { return };
        order.money = Money::new(order.money.units + 1, order.money.currency);
        let mut sent = request(self.ip, "POST", "/api/public/payments", key, Some(&order.body()));
        sent.headers.push(("idempotency-key", name));
        let reply = self.ask(sent).await;
        let is_refused = reason_of(&reply).as_deref() == Some("idempotency_key_reused");
        self.hold("keys-stand-for-one-order", known.id, is_refused || self.may_refuse_orders(&reply), || {
            format!("another order with the key of {} gets {}: {}", known.id, reply.status, text_of(&reply))
        });
        self.sim.mark("another request reuses an idempotency key");
    }

    /// Returns whether an order may be refused for an unrelated reason.
    fn may_refuse_orders(&self, reply: &Reply) -> bool {
        let reason = reason_of(reply);
        // The merchant has not received its new key yet, or is deactivated.
        reply.status == 503
            || reply.status == 401
            || matches!(reason.as_deref(), Some("inactive_merchant" | "conflict"))
    }
}
