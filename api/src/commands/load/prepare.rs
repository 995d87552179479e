//! What is made before the measurement: payments to read, and signed transactions that pay them.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use actors::hive_rpc::HiveRpc;
use bytes::Bytes;
use engine::{
    hive::{Asset, Pack, PrivateKey, Transfer},
    money::{Currency, Money},
    x402::{NETWORK, SCHEME},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Args, Workload,
    wire::{Ask, Connection},
};
use crate::commands::{failure::Failure, signing::Anchor};

/// Connections that open payments beforehand.
const OPENERS: u32 = 32;
/// How long a signed transaction lives: longer than any measurement, and within what the gateway takes.
const EXPIRES_IN: Duration = Duration::from_secs(3_000);
/// How long one call to the ledger may take.
const NODE_TIMEOUT: Duration = Duration::from_secs(10);
/// What every payment here asks for, in thousandths: little, because settling really pays.
const UNITS: u64 = 1;

/// What workers choose from.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    /// Payments that exist.
    pub(super) payments: Vec<Opened>,
    /// Bodies for verify and settle.
    pub(super) signed: Vec<Bytes>,
}

/// A payment made for the measurement.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Opened {
    pub(super) id: String,
    pub(super) slug: String,
}

impl Prepared {
    /// Opens payments, and signs transfers for them where the workload wants some.
    pub(super) async fn of(args: &Args, target: SocketAddr) -> Result<Self, Failure> {
        // Creating needs nothing that exists; one payment shows a wrong key before the clock runs.
        let wanted = if args.workload == Workload::Create { 1 } else { args.sessions };
        let payments = open(args, target, wanted).await?;
        let signed = if args.workload.needs_signatures() { sign(args, target, &payments).await? } else { Vec::new() };
        Ok(Self { payments, signed })
    }
}

/// The request that opens a payment.
pub(super) fn creation() -> Ask {
    let body = r#"{"amount":"1","currency":"HBD","description":"A measured article","metadata":{"orderId":"load"}}"#;
    Ask::post("/api/public/payments", Bytes::from_static(body.as_bytes()))
}

async fn open(args: &Args, target: SocketAddr, wanted: u32) -> Result<Vec<Opened>, Failure> {
    let left = Arc::new(AtomicU32::new(wanted));
    let openers = (0..OPENERS.min(wanted)).map(|_| {
        let (left, api_key) = (Arc::clone(&left), args.api_key.clone());
        tokio::spawn(async move {
            let mut connection = Connection::open(target, &api_key).await.map_err(lost)?;
            let mut opened = Vec::new();
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                let answer = connection.send(creation()).await.map_err(lost)?;
                opened.push(read::<Opened>(answer.status.as_u16(), &answer.body)?);
            }
            Ok::<_, Failure>(opened)
        })
    });
    let openers: Vec<_> = openers.collect();
    let mut opened = Vec::new();
    for opener in openers {
        opened.extend(opener.await.map_err(|error| Failure::Other(error.to_string()))??);
    }
    Ok(opened)
}

async fn sign(args: &Args, target: SocketAddr, payments: &[Opened]) -> Result<Vec<Bytes>, Failure> {
    let other = |error: &dyn std::fmt::Display| Failure::Other(error.to_string());
    let wif =
        args.key.as_deref().ok_or_else(|| Failure::Other("--key or HIVETILL_KEY is needed to sign".to_owned()))?;
    let key = PrivateKey::from_wif(wif).map_err(|error| Failure::Other(format!("--key or HIVETILL_KEY {error}")))?;
    let node = HiveRpc::new(&args.node, NODE_TIMEOUT).map_err(|error| other(&error))?;
    let anchor = Anchor::of(&node).await.map_err(|error| Failure::Other(format!("--node {}: {error}", args.node)))?;
    let mut connection = Connection::open(target, &args.api_key).await.map_err(lost)?;
    let me = connection.send(Ask::get("/api/public/merchants/me".to_owned())).await.map_err(lost)?;
    let me: Value = read(me.status.as_u16(), &me.body)?;
    let Some(pay_to) = me["hiveAccount"].as_str() else {
        return Err(Failure::Other("the merchant has no hiveAccount".to_owned()));
    };
    let mut signed = Vec::with_capacity(payments.len());
    for Opened { id, .. } in payments {
        let transfer = Transfer {
            from: args.account.to_string(),
            to: pay_to.to_owned(),
            amount: Asset::from(Money::new(UNITS, Currency::Hbd)),
            memo: format!("pos-{id}"),
        };
        let transaction = anchor.sign(vec![transfer], EXPIRES_IN, Pack::Legacy, &key).map_err(|error| other(&error))?;
        let transaction: Value =
            serde_json::from_str(&transaction.to_condenser_json()).map_err(|error| other(&error))?;
        let payload = json!({
            "x402Version": 1, "scheme": SCHEME, "network": NETWORK,
            "payload": { "signedTransaction": transaction, "nonce": id },
        });
        signed.push(json!({ "sessionId": id, "paymentPayload": payload }).to_string().into());
    }
    Ok(signed)
}

fn lost(error: impl std::fmt::Display) -> Failure {
    Failure::Other(error.to_string())
}

fn read<T: for<'a> Deserialize<'a>>(status: u16, body: &[u8]) -> Result<T, Failure> {
    if !(200..300).contains(&status) {
        let told = String::from_utf8_lossy(&body[..body.len().min(300)]);
        return Err(Failure::Other(format!("the gateway responded with {status} before the measurement: {told}")));
    }
    serde_json::from_slice(body).map_err(|error| Failure::Other(format!("unreadable response: {error}")))
}
