//! A client under load: creates, pays, cancels and reads payments, and records what was acknowledged.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use serde_json::{Value, json};
use simulations::random::Random;

use super::{
    environment::{Environment, hbd},
    model::{Model, Plan, Remembered, Shown},
};
use crate::{
    harness::{Payer, Shop, Stopwatch, TIMEOUT, pause},
    x402::{encode, json_of, nonce, v1},
};

pub(super) const PAYMENTS: &str = "/api/public/payments";

/// A client with its own shop.
pub(super) struct Client {
    pub(super) environment: Arc<Environment>,
    pub(super) model: Arc<Model>,
    pub(super) random: Random,
    /// The index of its shop.
    pub(super) shop: usize,
    pub(super) payer: Payer,
    orders: u64,
    /// Payments to be paid after their expiry.
    overdue: VecDeque<Remembered>,
}

impl Client {
    pub(super) fn new(
        environment: &Arc<Environment>,
        model: &Arc<Model>,
        random: Random,
        shop: usize,
        payer: Payer,
    ) -> Self {
        let (environment, model) = (Arc::clone(environment), Arc::clone(model));
        Self { environment, model, random, shop, payer, orders: 0, overdue: VecDeque::new() }
    }

    fn shop(&self) -> &Shop {
        &self.model.shops[self.shop]
    }

    /// Runs until the campaign ends; returns the client with its remaining late payments.
    pub(super) fn run(mut self) -> Self {
        while !self.environment.has_ended() {
            let weights = Plan::ALL.map(|(_, weight)| weight);
            let (plan, _) = Plan::ALL[self.random.weighted(&weights)];
            self.go(plan);
            if self.random.below(4) == 0 {
                self.pay_overdue();
            }
            if self.random.below(3) == 0
                && let Some(payment) = self.model.any(&mut self.random)
            {
                look(&self.environment, &self.model, &payment);
            }
            pause(Duration::from_millis(self.random.between(5, 90)));
        }
        self
    }

    /// Executes one plan.
    pub(super) fn go(&mut self, plan: Plan) {
        let units = self.random.between(1_000, 5_000);
        let Some(payment) = self.order(plan, units) else { return };
        match plan {
            Plan::Exact => self.transfer(&payment, units),
            Plan::Parts => {
                let part = self.random.between(1, units - 1);
                self.transfer(&payment, part);
                self.transfer(&payment, units - part);
            }
            Plan::TooLittle => self.transfer(&payment, units / 2),
            Plan::TooMuch => self.transfer(&payment, units + 500),
            Plan::Twice => {
                self.transfer(&payment, units);
                self.transfer(&payment, units);
            }
            Plan::TooLate => self.overdue.push_back(payment),
            Plan::Agent => self.show(&payment, units),
            Plan::Facilitated => self.settle(&payment, units),
            Plan::Cancel => self.cancel(&payment),
            Plan::Race => {
                self.transfer(&payment, units);
                self.cancel(&payment);
            }
            Plan::Abandon => {}
        }
    }

    fn order(&mut self, plan: Plan, units: u64) -> Option<Remembered> {
        self.orders += 1;
        let order = format!("order-{}-{}", self.payer.name, self.orders);
        let body = json!({
            "amount": units.to_string(), "currency": "HBD", "description": format!("Number {order}"),
            "expiresInSeconds": if plan.is_short() { 60 } else { 86_400 }, "metadata": { "orderId": order },
        });
        let shop = self.shop();
        let create = || {
            let request = |api: &crate::harness::Api| {
                api.post(PAYMENTS, &body).bearer(&shop.key).header("idempotency-key", &order)
            };
            let response = self.environment.request(request)?;
            if response.status != 201 {
                self.environment.record_violation(format!("{order}: {} {}", response.status, response.text()));
                return None;
            }
            Some(response.json())
        };
        let made = create()?;
        let id = self.model.record(&self.environment, self.shop, plan, &made);
        self.environment.count("payments acknowledged");
        // The shop repeats the request.
        if self.orders.is_multiple_of(5) {
            let again = create()?;
            if again["id"] != made["id"] || again["slug"] != made["slug"] || again["createdAt"] != made["createdAt"] {
                self.environment.record_violation(format!("{order} made {id}, and again {}", again["id"]));
            }
        }
        Some(Remembered { id, shop: self.shop, plan, made, end: None, shown: None })
    }

    fn transfer(&self, payment: &Remembered, units: u64) {
        self.environment.pay(&self.payer, &self.shop().account.name, units, &memo(payment));
    }

    fn cancel(&self, payment: &Remembered) {
        let (path, key) = (format!("{PAYMENTS}/{}/cancel", payment.id), &self.shop().key);
        let Some(response) = self.environment.request(|api| api.request("POST", &path).bearer(key)) else { return };
        match (response.status, payment.plan) {
            (200, _) => {
                self.environment.count("cancels acknowledged");
                self.model.compare(&self.environment, payment, &response.json());
            }
            (409, Plan::Race) => {}
            (status, _) => {
                self.environment.record_violation(format!("cancel of {}: {status} {}", payment.id, response.text()));
            }
        }
    }

    /// Signs a payment by HTTP 402; returns it as a header value.
    fn sign(&self, payment: &Remembered, units: u64) -> Option<Value> {
        let (memo, amount, watch) = (memo(payment), hbd(units), Stopwatch::start());
        while watch.elapsed() < TIMEOUT {
            let transfer = (self.shop().account.name.as_str(), amount.as_str(), memo.as_str());
            if let Some(signed) = self.environment.ledger().try_signed(&self.payer, &[transfer]) {
                return Some(v1(&json_of(&signed), &nonce()));
            }
            pause(Duration::from_millis(50));
        }
        None
    }

    /// Sends a signed payment to the checkout URL until it is accepted.
    fn show(&self, payment: &Remembered, units: u64) {
        let Some(shown) = self.sign(payment, units) else { return };
        let header = encode(&shown);
        let watch = Stopwatch::start();
        while watch.elapsed() < TIMEOUT {
            let Some((status, body)) = visit(&self.environment, payment, &header) else { return };
            match status {
                200 => {
                    self.environment.count("settlements acknowledged");
                    return self.model.record_settlement(&payment.id, Shown { header, receipt: body });
                }
                402 if is_nobodys_fault(&body["error"]) => pause(Duration::from_millis(100)),
                _ => {
                    return self
                        .environment
                        .record_violation(format!("a good payment for {}: {status} {body}", payment.id));
                }
            }
        }
        self.environment.record_violation(format!("{} was not settled for {TIMEOUT:?}", payment.id));
    }

    /// Settles the payment through the facilitator.
    fn settle(&self, payment: &Remembered, units: u64) {
        let Some(shown) = self.sign(payment, units) else { return };
        let body = json!({ "paymentPayload": shown, "sessionId": payment.id });
        let watch = Stopwatch::start();
        while watch.elapsed() < TIMEOUT {
            let Some(response) = self.environment.request(|api| api.post("/api/public/x402/settle", &body)) else {
                return;
            };
            let reported = response.json();
            if reported["success"] == true {
                self.environment.count("settlements acknowledged");
                let receipt = json!({
                    "success": true, "txId": reported["transaction"], "payer": reported["payer"], "sessionId": payment.id,
                    "status": "completed",
                });
                return self.model.record_settlement(&payment.id, Shown { header: encode(&shown), receipt });
            }
            if !is_nobodys_fault(&reported["errorReason"]) {
                return self
                    .environment
                    .record_violation(format!("a good settle for {}: {} {reported}", payment.id, response.status));
            }
            pause(Duration::from_millis(100));
        }
        self.environment.record_violation(format!("{} was not settled for {TIMEOUT:?}", payment.id));
    }

    /// Pays expired payments.
    pub(super) fn pay_overdue(&mut self) {
        let Some(payment) = self.overdue.front().cloned() else { return };
        let Some(record) = look(&self.environment, &self.model, &payment) else { return };
        if record["status"] == "system_cancelled" {
            self.transfer(&payment, payment.made["amount"]["value"].as_str().and_then(|u| u.parse().ok()).unwrap_or(1));
            self.overdue.pop_front();
        }
    }
}

fn memo(payment: &Remembered) -> String {
    format!("pos-{}", payment.id)
}

/// Returns whether a response requests a retry from the caller instead of rejecting the payment.
pub(super) fn is_nobodys_fault(word: &Value) -> bool {
    ["settlement_pending", "unexpected_settle_error", "unexpected_verify_error"].iter().any(|known| word == known)
}

/// Sends a payment by HTTP 402 to its checkout URL.
fn visit(environment: &Environment, payment: &Remembered, header: &str) -> Option<(u16, Value)> {
    let path = format!("/for/{}", payment.made["slug"].as_str()?);
    let response = environment.request(|api| api.get(&path).header("x-payment", header))?;
    Some((response.status, serde_json::from_slice(&response.body).unwrap_or(Value::Null)))
}

/// Reads a payment and compares it with what was acknowledged; requests its receipt again, too.
pub(super) fn look(environment: &Environment, model: &Model, payment: &Remembered) -> Option<Value> {
    let (path, key) = (format!("{PAYMENTS}/{}", payment.id), &model.shops[payment.shop].key);
    let response = environment.request(|api| api.get(&path).bearer(key))?;
    if response.status != 200 {
        environment.record_violation(format!(
            "{} was acknowledged and is {} {}",
            payment.id,
            response.status,
            response.text()
        ));
        return None;
    }
    let record = response.json();
    model.compare(environment, payment, &record);
    if let Some(shown) = &payment.shown {
        let (status, mut body) = visit(environment, payment, &shown.header)?;
        // A repeated receipt is marked as such.
        let is_marked = body.as_object_mut().and_then(|body| body.remove("replayed")) == Some(Value::Bool(true));
        let was_marked = shown.receipt.get("replayed").is_some();
        let mut receipt = shown.receipt.clone();
        receipt.as_object_mut().and_then(|receipt| receipt.remove("replayed"));
        if status != 200 || body != receipt || !(is_marked || was_marked) {
            environment
                .record_violation(format!("{}: receipt was {} and is {status} {body}", payment.id, shown.receipt));
        }
    }
    Some(record)
}
