//! A merchant and its requests: registers, opens payments, and reads their status.

use serde_json::{Value, json};

use super::{
    http::{Api, RequestBuilder, Response},
    ledger::{Ledger, Payer},
    receiver::Receiver,
    wait::until,
};

/// A registered merchant.
#[derive(Clone)]
pub(crate) struct Shop {
    pub(crate) api: Api,
    pub(crate) id: String,
    pub(crate) key: String,
    pub(crate) secret: String,
    /// Its account on the ledger, with the active key.
    pub(crate) account: Payer,
}

/// Returns the body of an order: 1.500 HBD for a mug.
pub(crate) fn order() -> Value {
    json!({ "amount": "1500", "currency": "HBD", "description": "A blue mug" })
}

impl Shop {
    /// Registers a merchant with a new account.
    #[track_caller]
    pub(crate) fn open(api: &Api, ledger: &Ledger) -> Self {
        Self::open_for(api, ledger.account("shop"))
    }

    /// Registers a merchant for an account.
    #[track_caller]
    pub(crate) fn open_for(api: &Api, account: Payer) -> Self {
        let body = json!({ "name": format!("Shop of {}", account.name), "hiveAccount": account.name });
        let made = api.post("/api/public/merchants/register", &body).send().ok(201);
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        Self {
            api: api.clone(),
            id: text(&made["merchant"]["id"]),
            key: text(&made["apiKey"]),
            secret: text(&made["webhookSecret"]),
            account,
        }
    }

    /// Starts a request with the merchant's key.
    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.api.get(path).bearer(&self.key)
    }

    /// Starts a POST with the merchant's key.
    pub(crate) fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        self.api.post(path, body).bearer(&self.key)
    }

    /// Proves ownership of its account by signature.
    #[track_caller]
    pub(crate) fn prove(self) -> Self {
        let proven = self.response(&self.challenge(&json!({})), &[&self.account]).ok(200);
        assert_eq!((&proven["complete"], &proven["merchant"]["accountVerified"]), (&json!(true), &json!(true)));
        self
    }

    /// Requests a challenge for one of its accounts.
    #[track_caller]
    pub(crate) fn challenge(&self, body: &Value) -> Value {
        self.post(&format!("/api/public/merchants/{}/account-proof", self.id), body).send().ok(200)
    }

    /// Submits signatures over a challenge.
    #[track_caller]
    pub(crate) fn response(&self, challenge: &Value, signers: &[&Payer]) -> Response {
        let text = challenge["text"].as_str().expect("a text");
        let signatures: Vec<_> = signers.iter().map(|signer| signer.sign(text)).collect();
        self.put_proof(&json!({ "nonce": challenge["nonce"], "signatures": signatures }))
    }

    /// Submits a proof.
    #[track_caller]
    pub(crate) fn put_proof(&self, body: &Value) -> Response {
        let path = format!("/api/public/merchants/{}/account-proof", self.id);
        self.api.put(&path, body).bearer(&self.key).send()
    }

    /// Sets the URL of its webhook endpoint.
    #[track_caller]
    pub(crate) fn set_webhook(&self, receiver: &Receiver) {
        self.update(&json!({ "webhookUrl": receiver.url() })).ok(200);
    }

    /// Updates its record.
    #[track_caller]
    pub(crate) fn update(&self, body: &Value) -> Response {
        self.post(&format!("/api/public/merchants/{}", self.id), body).send()
    }

    /// Opens a payment of 1.500 HBD.
    #[track_caller]
    pub(crate) fn open_payment(&self) -> Opened {
        self.open_with(&order())
    }

    /// Opens a payment.
    #[track_caller]
    pub(crate) fn open_with(&self, body: &Value) -> Opened {
        Opened::of(&self.post("/api/public/payments", body).send().ok(201))
    }

    /// Reads a payment's record.
    #[track_caller]
    pub(crate) fn payment(&self, id: &str) -> Value {
        self.get(&format!("/api/public/payments/{id}")).send().ok(200)
    }

    /// Requests the cancellation of a payment.
    #[track_caller]
    pub(crate) fn cancel(&self, id: &str) -> Response {
        self.api.request("POST", &format!("/api/public/payments/{id}/cancel")).bearer(&self.key).send()
    }

    /// Cancels a payment and waits until the cancellation is decided.
    #[track_caller]
    pub(crate) fn cancelled(&self, id: &str) -> Value {
        self.cancel(id).ok(200);
        self.until_status(id, "user_cancelled")
    }

    /// Waits until a payment's record satisfies a condition, and returns it.
    #[track_caller]
    pub(crate) fn until(&self, id: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        until_or(&format!("{id} to be {what}"), || {
            last = self.payment(id);
            if is(&last) { Ok(last.clone()) } else { Err(last.to_string()) }
        })
    }

    /// Waits until a payment is in a state.
    #[track_caller]
    pub(crate) fn until_status(&self, id: &str, status: &str) -> Value {
        self.until(id, status, |payment| payment["status"] == status)
    }
}

/// As `until`; prints the last record on failure.
#[track_caller]
fn until_or<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let watch = super::wait::Stopwatch::start();
    until(what, || match look() {
        Ok(found) => Some(found),
        Err(seen) => {
            assert!(watch.elapsed() < super::wait::TIMEOUT / 2, "waited for {what}; it is {seen}");
            None
        }
    })
}

/// The response to the creation of a payment.
#[derive(Debug, Clone)]
pub(crate) struct Opened {
    pub(crate) id: String,
    pub(crate) slug: String,
    pub(crate) memo: String,
}

impl Opened {
    #[track_caller]
    pub(crate) fn of(body: &Value) -> Self {
        let text = |member: &str| body[member].as_str().unwrap_or_else(|| panic!("no {member} in {body}")).to_owned();
        let id = text("id");
        Self { memo: format!("pos-{id}"), slug: text("slug"), id }
    }
}
