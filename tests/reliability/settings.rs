//! A merchant that changes its settings under load: creates, rolls and revokes keys, changes its name, its endpoint and
//! its webhook secret.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

use super::{client::Client, model::Plan};
use crate::harness::{Hook, Receiver, pause};

/// The number of keys of a merchant is limited; above this number some are revoked.
const MANY_KEYS: usize = 6;

/// The acknowledged settings of a merchant.
pub(super) struct SettingsClient {
    client: Client,
    url: String,
    changes: u64,
    /// Valid keys by their ids.
    live: BTreeMap<String, String>,
    /// Revoked keys.
    dead: Vec<String>,
    /// Fields of the record and their values.
    report: BTreeMap<&'static str, Value>,
    secrets: Vec<String>,
    /// Secrets whose response was lost: signatures made with them cannot be verified.
    lost_secrets: u64,
}

impl SettingsClient {
    pub(super) fn new(client: Client, receiver: &Receiver) -> Self {
        let secrets = vec![client.model.shops[client.shop].secret.clone()];
        Self {
            client,
            url: receiver.url(),
            changes: 0,
            live: BTreeMap::new(),
            dead: Vec::new(),
            report: BTreeMap::new(),
            secrets,
            lost_secrets: 0,
        }
    }

    /// Runs until the campaign ends.
    pub(super) fn run(mut self) -> Self {
        while !self.client.environment.has_ended() {
            self.changes += 1;
            match self.client.random.below(8) {
                0 => self.make_key(),
                1 => self.roll_key(),
                2 => self.revoke_key(),
                3 => {
                    let name = json!(format!("Shop number {}", self.changes));
                    self.print_progress("name", name);
                }
                4 => {
                    let url = json!(format!("{}&change={}", self.url, self.changes));
                    self.print_progress("webhookUrl", url);
                }
                5 => self.change_secret(),
                _ => self.client.go(Plan::Cancel),
            }
            self.check();
            pause(Duration::from_millis(self.client.random.between(50, 250)));
        }
        self
    }

    fn key(&self) -> String {
        self.client.model.shops[self.client.shop].key.clone()
    }

    fn place(&self, rest: &str) -> String {
        format!("/api/public/merchants/{}{rest}", self.client.model.shops[self.client.shop].id)
    }

    fn make_key(&mut self) {
        let (path, key) = (self.place("/api-keys"), self.key());
        let body = json!({ "name": "a till", "scopes": ["payments:read", "merchant:write"] });
        let Some(response) = self.client.environment.ask_once(|api| api.post(&path, &body).bearer(&key)) else {
            return;
        };
        match response.status {
            201 => self.learn(&response.json()),
            // Keys whose response was lost.
            409 => self.tidy_keys(),
            503 => {}
            status => self.client.environment.record_violation(format!("a key: {status} {}", response.text())),
        }
    }

    fn learn(&mut self, made: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.client.environment.count("keys acknowledged");
        self.live.insert(text(&made["key"]["id"]), text(&made["apiKey"]));
    }

    fn roll_key(&mut self) {
        let Some(id) = self.live.keys().next().cloned() else { return };
        let (path, key) = (self.place(&format!("/api-keys/{id}/roll")), self.key());
        // From here on either one may be valid, until the change is acknowledged.
        let Some(old) = self.live.remove(&id) else { return };
        let Some(response) = self.client.environment.ask_once(|api| api.post(&path, &json!({})).bearer(&key)) else {
            return;
        };
        match response.status {
            200 => {
                self.dead.push(old);
                self.learn(&response.json());
            }
            503 => {}
            status => self.client.environment.record_violation(format!("rolling a key: {status} {}", response.text())),
        }
    }

    fn revoke_key(&mut self) {
        if self.live.len() < MANY_KEYS {
            return;
        }
        if let Some((id, key)) = self.live.pop_first() {
            self.revoke(&id);
            self.dead.push(key);
        }
    }

    fn revoke(&self, id: &str) {
        let (path, key) = (self.place(&format!("/api-keys/{id}")), self.key());
        let Some(response) = self.client.environment.request(|api| api.request("DELETE", &path).bearer(&key)) else {
            return;
        };
        // The second time it is already deleted.
        if !matches!(response.status, 200 | 404) {
            self.client.environment.record_violation(format!(
                "revoking a key: {} {}",
                response.status,
                response.text()
            ));
        }
    }

    fn tidy_keys(&self) {
        let (path, key) = (self.place("/api-keys"), self.key());
        let Some(response) = self.client.environment.request(|api| api.get(&path).bearer(&key)) else { return };
        let keys = response.json();
        // The first one is in use.
        for id in keys["data"].as_array().into_iter().flatten().skip(1).filter_map(|key| key["id"].as_str()) {
            if !self.live.contains_key(id) {
                self.revoke(id);
            }
        }
    }

    fn print_progress(&mut self, member: &'static str, value: Value) {
        let (path, key, body) = (self.place(""), self.key(), json!({ member: value }));
        let Some(response) = self.client.environment.request(|api| api.post(&path, &body).bearer(&key)) else { return };
        if response.status != 200 {
            return self.client.environment.record_violation(format!(
                "{member}: {} {}",
                response.status,
                response.text()
            ));
        }
        self.client.environment.count("settings acknowledged");
        self.report.insert(member, value);
    }

    fn change_secret(&mut self) {
        // At most three replaced secrets are valid at once; a rotation without a grace adds none.
        let grace_hours = if self.secrets.len() as u64 + self.lost_secrets > 3 { 0 } else { 24 };
        let (path, key, body) = (self.place("/webhook-secret"), self.key(), json!({ "graceHours": grace_hours }));
        let response = self.client.environment.ask_once(|api| api.post(&path, &body).bearer(&key));
        match response.filter(|response| response.status != 503) {
            None => self.lost_secrets += 1,
            Some(response) if response.status == 200 => {
                self.client.environment.count("settings acknowledged");
                self.secrets.push(response.json()["webhookSecret"].as_str().unwrap_or_default().to_owned());
            }
            Some(response) => {
                self.client.environment.record_violation(format!("a secret: {} {}", response.status, response.text()));
            }
        }
    }

    /// Compares the gateway's records with what was acknowledged.
    pub(super) fn check(&self) {
        let me = |key: &str| self.client.environment.request(|api| api.get("/api/public/merchants/me").bearer(key));
        let Some(response) = me(&self.key()) else { return };
        let record = response.json();
        for (member, value) in &self.report {
            if record[*member] != *value {
                let is = &record[*member];
                self.client.environment.record_violation(format!("{member} was acknowledged as {value} and is {is}"));
            }
        }
        if let Some(response) = self.live.values().next_back().and_then(|key| me(key))
            && response.status != 200
        {
            self.client.environment.record_violation(format!(
                "an acknowledged key: {} {}",
                response.status,
                response.text()
            ));
        }
        if let Some(response) = self.dead.last().and_then(|key| me(key))
            && response.status != 401
        {
            self.client.environment.record_violation(format!(
                "an ended key opens: {} {}",
                response.status,
                response.text()
            ));
        }
    }

    /// Returns whether a webhook is signed with an acknowledged secret, or may be signed with one whose response was
    /// lost.
    pub(super) fn is_signed(&self, hook: &Hook) -> bool {
        let is_under = |secret: &String| {
            hook.is_signed_by_legacy_rule("x-hivetill-signature", secret)
                || (hook.headers.contains_key("x-hivetill-signature-previous")
                    && hook.is_signed_by_legacy_rule("x-hivetill-signature-previous", secret))
        };
        self.secrets.iter().any(is_under) || self.lost_secrets > 1
    }
}
