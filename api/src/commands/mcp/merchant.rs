//! The tools of a merchant: calls of the gateway's REST API with the merchant's key.

use engine::money::Money;
use reqwest::{Method, Url};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    advice,
    wallet_tools::{Refused, parse, refused},
};
use crate::commands::{
    failure::Failure,
    rest_client::{CallError, RestClient, text},
};

/// The gateway's API as a merchant sees it.
#[derive(Debug)]
pub(super) struct Merchant {
    client: RestClient,
}

/// Arguments of `create_payment`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Create {
    amount: String,
    description: String,
    redirect_url: Option<String>,
    cancel_url: Option<String>,
    metadata: Option<Map<String, Value>>,
    expires_in_seconds: Option<u64>,
    idempotency_key: Option<String>,
}

/// Arguments of `list_payments`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    status: Option<String>,
    query: Option<String>,
    limit: Option<u64>,
    cursor: Option<String>,
}

/// Arguments of tools for one payment.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    id: String,
}

impl Merchant {
    pub(super) fn new(base: &Url, key: &str) -> Result<Self, Failure> {
        Ok(Self { client: RestClient::new(base, key)? })
    }

    pub(super) async fn create_payment(&self, arguments: Value) -> Result<Value, Refused> {
        let arguments: Create = parse(arguments)?;
        let amount = Money::parse_ledger(&arguments.amount).map_err(|error| {
            refused("bad_arguments", &format!("amount {error}"), "Correct the amount, such as \"1.500 HBD\".")
        })?;
        let mut body = json!({
            "amount": amount.units.to_string(), "currency": amount.currency.code(), "description": arguments.description,
        });
        let optional = [
            ("redirectUrl", arguments.redirect_url.map(Value::from)),
            ("cancelUrl", arguments.cancel_url.map(Value::from)),
            ("metadata", arguments.metadata.map(Value::from)),
            ("expiresInSeconds", arguments.expires_in_seconds.map(Value::from)),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                body[name] = value;
            }
        }
        self.call(Method::POST, &["payments"], &[], Some(&body), arguments.idempotency_key.as_deref()).await
    }

    pub(super) async fn get_payment(&self, arguments: Value) -> Result<Value, Refused> {
        let One { id } = parse(arguments)?;
        self.call(Method::GET, &["payments", &id], &[], None, None).await
    }

    pub(super) async fn refund_plan(&self, arguments: Value) -> Result<Value, Refused> {
        let One { id } = parse(arguments)?;
        self.call(Method::GET, &["payments", &id, "refund"], &[], None, None).await
    }

    pub(super) async fn list_payments(&self, arguments: Value) -> Result<Value, Refused> {
        let List { status, query, limit, cursor } = parse(arguments)?;
        let limit = limit.map(|limit| limit.to_string());
        let all = [("status", status), ("query", query), ("limit", limit), ("cursor", cursor)];
        let given: Vec<_> = all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        self.call(Method::GET, &["payments"], &given, None, None).await
    }

    async fn call(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, String)],
        body: Option<&Value>,
        idempotency_key: Option<&str>,
    ) -> Result<Value, Refused> {
        let (status, body) = match self.client.call(method, path, query, body, idempotency_key).await {
            Ok(body) => return Ok(body),
            Err(error @ CallError::Unreachable(_)) => {
                return Err(refused("gateway_unreachable", &error.to_string(), advice::after_call(503)));
            }
            Err(CallError::Refused { status, body }) => (status, body),
        };
        let mut result = refused(text(&body, "reason"), text(&body, "statusMessage"), advice::after_call(status));
        result["httpStatus"] = status.into();
        result["details"] = body["details"].clone();
        Err(result)
    }
}
