//! The gateway and its development ledger, as a shop and its customers use them.

use std::time::Duration;

use actors::hive_rpc::HiveRpc;
use engine::{
    hive::{Asset, Pack, PrivateKey, Transaction, Transfer},
    money::Money,
};
use reqwest::{Client, Method, Url};
use serde_json::{Map, Value, json};
use tokio::time::{sleep, timeout};

use crate::commands::{
    failure::Failure,
    output::print,
    rest_client::{RestClient, text},
    signing::Anchor,
};

/// The customer: an account of the development ledger with a large balance.
pub(super) const PAYER: &str = "alice";

/// Timeout of a call to the ledger.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Time in which the event must come.
const EVENT_TIMEOUT: Duration = Duration::from_secs(120);
/// Interval between reads of the events.
const POLL: Duration = Duration::from_millis(200);

/// A gateway on a development ledger, and one of its merchants.
pub(super) struct Sandbox {
    client: RestClient,
    ledger: Client,
    control: Url,
    node: String,
    metadata: Vec<(String, String)>,
    /// Whether steps are printed.
    is_shown: bool,
    /// The merchant's id.
    pub(super) merchant: String,
    /// The merchant's Hive account.
    pub(super) account: String,
    /// Whether the merchant has proven the account.
    pub(super) is_proven: bool,
    /// The cursor at the start.
    start: String,
}

/// A payment that was created.
pub(super) struct Created {
    pub(super) id: String,
    pub(super) memo: String,
}

impl Sandbox {
    /// Reads the merchant of the API key and the end of its events.
    ///
    /// # Errors
    /// If the gateway does not follow a development ledger.
    pub(super) async fn open(
        client: RestClient,
        control: Url,
        node: String,
        metadata: Vec<(String, String)>,
        is_shown: bool,
    ) -> Result<Self, Failure> {
        let merchant = client.call(Method::GET, &["merchants", "me"], &[], None, None).await?;
        let network = text(&merchant, "network");
        if network != "development" {
            return Err(Failure::Other(format!(
                "the gateway follows the network {network}; trigger needs a development ledger: hivetill dev"
            )));
        }
        let ledger = Client::builder().no_proxy().timeout(TIMEOUT).build();
        let ledger = ledger.map_err(|error| Failure::Other(format!("cannot create a client: {error}")))?;
        let [id, account] = ["id", "hiveAccount"].map(|member| text(&merchant, member).to_owned());
        let is_proven = merchant["accountVerified"] == true;
        let start = String::new();
        let mut sandbox =
            Self { client, ledger, control, node, metadata, is_shown, merchant: id, account, is_proven, start };
        let mut is_end = false;
        while !is_end {
            let page = sandbox.events(&sandbox.start).await?;
            text(&page, "nextCursor").clone_into(&mut sandbox.start);
            is_end = page["hasMore"] != true;
        }
        Ok(sandbox)
    }

    /// Prints a step.
    pub(super) fn step(&self, step: &str) -> Result<(), Failure> {
        if self.is_shown { print(&format!("{step}\n")) } else { Ok(()) }
    }

    pub(super) async fn create(&self, units: u64, expires_in_seconds: Option<u64>) -> Result<Created, Failure> {
        let metadata: Map<String, Value> =
            self.metadata.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
        let mut body = json!({
            "amount": units.to_string(), "currency": "HBD", "description": "A test by hivetill trigger",
            "metadata": metadata,
        });
        if let Some(seconds) = expires_in_seconds {
            body["expiresInSeconds"] = seconds.into();
        }
        let made = self.post(&["payments"], Some(&body)).await?;
        let id = text(&made, "id").to_owned();
        self.step(&format!("created {id} of 1.500 HBD"))?;
        Ok(Created { memo: format!("pos-{id}"), id })
    }

    /// Transfers play money to the merchant.
    pub(super) async fn transfer(&self, from: &str, money: Money, memo: &str) -> Result<(), Failure> {
        self.step(&format!("{from} pays {money}"))?;
        let params = json!({ "from": from, "to": self.account, "amount": money.to_string(), "memo": memo });
        self.control("transfer", params).await.map(drop)
    }

    /// Calls a control method of the ledger.
    pub(super) async fn control(&self, method: &str, params: Value) -> Result<Value, Failure> {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": format!("control.{method}"), "params": params });
        let failed = |why: &str| Failure::Other(format!("the ledger's control methods at {}: {why}", self.control));
        let sent = self.ledger.post(self.control.clone()).json(&call).send().await;
        let response = sent.map_err(|error| failed(&error.without_url().to_string()))?;
        let mut response: Value = response.json().await.map_err(|_| failed("the response is no JSON"))?;
        match response["error"]["message"].as_str() {
            Some(why) => Err(failed(why)),
            None => Ok(response["result"].take()),
        }
    }

    /// Signs a transfer to the merchant.
    pub(super) async fn sign(&self, key: &PrivateKey, money: Money, memo: &str) -> Result<Transaction, Failure> {
        let failed = |why: String| Failure::Other(format!("the ledger at {}: {why}", self.node));
        let node = HiveRpc::new(&self.node, TIMEOUT).map_err(|error| failed(error.to_string()))?;
        let anchor = Anchor::of(&node).await.map_err(|error| failed(format!("the node {error}")))?;
        let transfer = Transfer {
            from: PAYER.to_owned(),
            to: self.account.clone(),
            amount: Asset::from(money),
            memo: memo.to_owned(),
        };
        let signed = anchor.sign(vec![transfer], Duration::from_secs(60), Pack::Legacy, key);
        signed.map_err(|error| Failure::Other(error.to_string()))
    }

    pub(super) async fn post(&self, path: &[&str], body: Option<&Value>) -> Result<Value, Failure> {
        Ok(self.client.call(Method::POST, path, &[], body, None).await?)
    }

    pub(super) async fn delete(&self, path: &[&str]) -> Result<Value, Failure> {
        Ok(self.client.call(Method::DELETE, path, &[], None, None).await?)
    }

    /// Waits for the event of a payment's status.
    pub(super) async fn status(&self, payment: &Created, status: &str) -> Result<Value, Failure> {
        self.step(&format!("waiting until {} is {status}", payment.id))?;
        self.event("payment.status_changed", |data| data["id"] == payment.id.as_str() && data["status"] == status).await
    }

    /// Waits for the event of a payment's exception.
    pub(super) async fn exception(&self, payment: &Created, exception: &str) -> Result<Value, Failure> {
        self.step(&format!("waiting until {} has the exception {exception}", payment.id))?;
        let is_new = |data: &Value| {
            let new = data["newExceptions"].as_array();
            data["id"] == payment.id.as_str() && new.is_some_and(|new| new.iter().any(|each| each == exception))
        };
        self.event("payment.exception", is_new).await
    }

    /// Waits for an event since the start.
    pub(super) async fn event(&self, kind: &str, is_wanted: impl Fn(&Value) -> bool) -> Result<Value, Failure> {
        let found = async {
            let mut cursor = self.start.clone();
            loop {
                let page = self.events(&cursor).await?;
                let events = page["events"].as_array().map(Vec::as_slice).unwrap_or_default();
                if let Some(event) = events.iter().find(|event| event["type"] == kind && is_wanted(&event["data"])) {
                    return Ok::<Value, Failure>(event.clone());
                }
                text(&page, "nextCursor").clone_into(&mut cursor);
                if page["hasMore"] != true {
                    sleep(POLL).await;
                }
            }
        };
        let seconds = EVENT_TIMEOUT.as_secs();
        let late = |_| Failure::Other(format!("no {kind} came within {seconds} seconds: see the log of the gateway"));
        timeout(EVENT_TIMEOUT, found).await.map_err(late)?
    }

    /// Returns the events behind a cursor.
    async fn events(&self, cursor: &str) -> Result<Value, Failure> {
        let query = [("after", cursor.to_owned()), ("limit", "100".to_owned())];
        Ok(self.client.call(Method::GET, &["events"], &query, None, None).await?)
    }
}
