//! Setup of a load test: payments to read, and signed transactions that pay them.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use actors::{environment::Clock as _, hive_rpc::HiveRpc, system::SystemClock};
use bytes::Bytes;
use engine::{
    hive::{Asset, Pack, PrivateKey, Transfer},
    money::{Currency, Money},
    x402::{NETWORK, SCHEME},
};
use http::{HeaderName, HeaderValue, StatusCode};
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    args::{Args, Workload},
    wire::{Connection, LoadRequest},
};
use crate::commands::{
    failure::Failure,
    payer::{
        exchange::new_nonce,
        quote::{Quote, transaction_json},
    },
    signing::Anchor,
};

/// Number of connections that create payments during setup.
const SETUP_CONNECTIONS: u32 = 32;
/// Time until signed transactions expire: longer than a measurement, and within the gateway's maximum.
const EXPIRES_IN: Duration = Duration::from_secs(3_000);
/// Timeout of a call to the ledger node.
const NODE_TIMEOUT: Duration = Duration::from_secs(10);
/// Amount of each payment in smallest units: small, because x402-settle really pays.
const UNITS: u64 = 1;

/// The data that requests are generated from.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    /// The created payments.
    pub(super) payments: Vec<TestPayment>,
    /// Request bodies for x402-verify and x402-settle.
    pub(super) signed: Vec<Bytes>,
    /// The path of the paid route, for gate and its upstream.
    pub(super) path: String,
    /// A payment header for each request of gate.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
}

/// A payment created for the measurement.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct TestPayment {
    pub(super) id: String,
    pub(super) slug: String,
}

impl Prepared {
    /// Creates payments, and signs transfers for them if the workload needs them.
    pub(super) async fn of(args: &Args, target: SocketAddr) -> Result<Self, Failure> {
        match args.workload {
            Workload::Gate => return sign_for_gate(args, target).await,
            Workload::Upstream => return Ok(Self { path: path_of(args.upstream.as_ref()), ..Self::default() }),
            _ => {}
        }
        // The workload `create` needs no existing payments; one is created to detect an invalid API key early.
        let count = if args.workload == Workload::Create { 1 } else { args.sessions };
        let payments = create_payments(args, target, count).await?;
        let signed = if args.workload.needs_signatures() { sign(args, target, &payments).await? } else { Vec::new() };
        Ok(Self { payments, signed, ..Self::default() })
    }
}

/// Returns the request that creates a payment.
pub(super) fn create_request() -> LoadRequest {
    let body = r#"{"amount":"1","currency":"HBD","description":"A measured article","metadata":{"orderId":"load"}}"#;
    LoadRequest::post("/api/public/payments", Bytes::from_static(body.as_bytes()))
}

/// Creates a number of payments over several connections.
async fn create_payments(args: &Args, target: SocketAddr, count: u32) -> Result<Vec<TestPayment>, Failure> {
    let remaining = Arc::new(AtomicU32::new(count));
    let tasks = (0..SETUP_CONNECTIONS.min(count)).map(|_| {
        let (remaining, api_key) = (Arc::clone(&remaining), args.sent_api_key().to_owned());
        tokio::spawn(async move {
            let mut connection = Connection::open(target, &api_key).await.map_err(request_failed)?;
            let mut payments = Vec::new();
            while remaining.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1)).is_ok() {
                let response = connection.send(create_request()).await.map_err(request_failed)?;
                payments.push(read::<TestPayment>(response.status.as_u16(), &response.body)?);
            }
            Ok::<_, Failure>(payments)
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let mut payments = Vec::new();
    for task in tasks {
        payments.extend(task.await.map_err(|error| Failure::Other(error.to_string()))??);
    }
    Ok(payments)
}

/// Signs a transfer for each payment. Returns the request bodies of the facilitator.
async fn sign(args: &Args, target: SocketAddr, payments: &[TestPayment]) -> Result<Vec<Bytes>, Failure> {
    let (key, anchor) = payer(args).await?;
    let mut connection = Connection::open(target, args.sent_api_key()).await.map_err(request_failed)?;
    let response = connection.send(LoadRequest::get("/api/public/merchants/me".to_owned())).await;
    let response = response.map_err(request_failed)?;
    let merchant: Value = read(response.status.as_u16(), &response.body)?;
    let Some(pay_to) = merchant["hiveAccount"].as_str() else {
        return Err(Failure::Other("the merchant has no hiveAccount".to_owned()));
    };
    let mut signed = Vec::with_capacity(payments.len());
    for TestPayment { id, .. } in payments {
        let transfer = Transfer {
            from: args.account.to_string(),
            to: pay_to.to_owned(),
            amount: Asset::from(Money::new(UNITS, Currency::Hbd)),
            memo: format!("pos-{id}"),
        };
        let transaction = anchor.sign(vec![transfer], EXPIRES_IN, Pack::Legacy, &key).map_err(request_failed)?;
        let transaction = transaction_json(&transaction);
        let payload = json!({
            "x402Version": 1, "scheme": SCHEME, "network": NETWORK,
            "payload": { "signedTransaction": transaction, "nonce": id },
        });
        signed.push(json!({ "sessionId": id, "paymentPayload": payload }).to_string().into());
    }
    Ok(signed)
}

/// Reads the payer's key, and the state of the chain that transactions refer to.
async fn payer(args: &Args) -> Result<(PrivateKey, Anchor), Failure> {
    let wif =
        args.key.as_deref().ok_or_else(|| Failure::Other("--key or HIVETILL_KEY is needed to sign".to_owned()))?;
    let key = PrivateKey::from_wif(wif).map_err(|error| Failure::Other(format!("--key or HIVETILL_KEY {error}")))?;
    let node = HiveRpc::new(&args.node, NODE_TIMEOUT).map_err(request_failed)?;
    let anchor = Anchor::of(&node).await.map_err(|error| Failure::Other(format!("--node {}: {error}", args.node)))?;
    Ok((key, anchor))
}

/// Reads the price of a route at a gate, and signs a payment for each request.
async fn sign_for_gate(args: &Args, target: SocketAddr) -> Result<Prepared, Failure> {
    let refused = |why: &dyn std::fmt::Display| Failure::Other(format!("--url {}: {why}", args.url));
    let path = path_of(Some(&args.url));
    let mut connection = Connection::open(target, "").await.map_err(request_failed)?;
    let response = connection.send(LoadRequest::get(path.clone())).await.map_err(request_failed)?;
    if response.status != StatusCode::PAYMENT_REQUIRED {
        let status = response.status;
        return Err(refused(&format_args!("responded with {status}, not with 402: use a route with a price")));
    }
    let quote = Quote::read(&response.headers, &response.body, Currency::Hbd).map_err(|error| refused(&error))?;
    if quote.session.is_some() {
        return Err(refused(&"is a checkout, which is paid once: use a route of a gate"));
    }
    quote.check(&args.account, quote.total, SystemClock.now()).map_err(|error| refused(&error))?;
    let (key, anchor) = payer(args).await?;
    let mut headers = Vec::new();
    for _ in 0..args.sessions {
        let nonce = new_nonce();
        let transfers = quote.transfers(&args.account, &nonce);
        let transaction = anchor.sign(transfers, EXPIRES_IN, Pack::Legacy, &key).map_err(request_failed)?;
        let (name, value) = quote.header(&transaction, &nonce).map_err(request_failed)?;
        headers.push((HeaderName::from_static(name), HeaderValue::from_str(&value).map_err(request_failed)?));
    }
    Ok(Prepared { path, headers, ..Prepared::default() })
}

/// Returns the path and query of a URL.
fn path_of(url: Option<&Url>) -> String {
    let Some(url) = url else { return "/".to_owned() };
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{}{query}", url.path())
}

fn request_failed(error: impl std::fmt::Display) -> Failure {
    Failure::Other(error.to_string())
}

/// Parses the body of a successful response.
fn read<T: for<'a> Deserialize<'a>>(status: u16, body: &[u8]) -> Result<T, Failure> {
    if !(200..300).contains(&status) {
        let text = String::from_utf8_lossy(&body[..body.len().min(300)]);
        return Err(Failure::Other(format!("the gateway responded with {status} before the measurement: {text}")));
    }
    serde_json::from_slice(body).map_err(|error| Failure::Other(format!("invalid response: {error}")))
}
