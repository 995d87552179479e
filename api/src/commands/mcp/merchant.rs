//! The tools of a merchant: calls of the gateway's REST API with the merchant's key.

use std::{fmt, time::Duration};

use engine::money::Money;
use reqwest::{
    Client, Method, Url,
    header::{AUTHORIZATION, HeaderValue},
    redirect::Policy,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    advice,
    wallet_tools::{Refused, parse, refused},
};
use crate::commands::failure::Failure;

const TIMEOUT: Duration = Duration::from_secs(30);

/// The gateway's API as a merchant sees it.
pub(super) struct Merchant {
    client: Client,
    base: Url,
    authorization: HeaderValue,
}

/// Hides the key.
impl fmt::Debug for Merchant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Merchant").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
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
        let unfit = || Failure::Other("HIVETILL_API_KEY is not a valid header value".to_owned());
        let mut authorization = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| unfit())?;
        authorization.set_sensitive(true);
        let client = Client::builder().redirect(Policy::none()).timeout(TIMEOUT).build();
        let client = client.map_err(|error| Failure::Other(format!("cannot create a client: {error}")))?;
        let mut base = base.clone();
        base.set_query(None);
        Ok(Self { client, base, authorization })
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
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            // Each segment is escaped, so that an id cannot select another route.
            segments.pop_if_empty().extend(["api", "public"]).extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = self.client.request(method, url).header(AUTHORIZATION, self.authorization.clone());
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some(key) = idempotency_key {
            request = request.header("idempotency-key", key);
        }
        let unreachable = |error: reqwest::Error| {
            let message = format!("the gateway is unreachable: {}", error.without_url());
            refused("gateway_unreachable", &message, advice::after_call(503))
        };
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status().as_u16();
        let body: Value = response.json().await.map_err(unreachable)?;
        if status < 300 {
            return Ok(body);
        }
        let text = |member: &str| body[member].as_str().unwrap_or_default().to_owned();
        let mut result = refused(&text("reason"), &text("statusMessage"), advice::after_call(status));
        result["httpStatus"] = status.into();
        result["details"] = body["details"].clone();
        Err(result)
    }
}
