//! Agents that pay at the checkout URL or through the facilitator, and read the verdict from the response.

use engine::{
    hive::Operation,
    x402::{Refused, decode_header, encode_header},
};
use serde_json::json;

use super::{
    orders::{key_of, slug_of},
    *,
};

const NETWORK: &str = "hive:mainnet";
const SETTLE: &str = "/api/public/x402/settle";
const VERIFY: &str = "/api/public/x402/verify";

/// How an agent submits its payment.
enum Way {
    /// At the checkout URL.
    Checkout(String),
    /// Through the facilitator, without authentication.
    Facilitator,
    /// Through the facilitator, by a server with a merchant's API key, optionally with an idempotency key.
    Seller { key: String, name: Option<String> },
}

/// Settles a payment: through the facade, where there is one.
pub(in crate::clients) async fn settle_payment(
    sim: &Arc<Simulation>,
    engine: &Running,
    number: usize,
    request: &X402Request,
) -> Result<actors::Settled, X402Error> {
    let Some(endpoint) = engine.process.endpoint() else { return engine.x402.settle(request).await };
    let session = session_of(sim, request);
    let client = Client { sim, engine, endpoint, ip: agent_ip(number), session, exceeds_limit: true };
    client.settle(number, request).await
}

/// Verifies a payment: through the facade, where there is one.
pub(in crate::clients) async fn verify_payment(
    sim: &Arc<Simulation>,
    engine: &Running,
    number: usize,
    request: &X402Request,
) -> Result<AccountName, X402Error> {
    let Some(endpoint) = engine.process.endpoint() else { return engine.x402.verify(request).await };
    let session = session_of(sim, request);
    let client = Client { sim, engine, endpoint, ip: agent_ip(number), session, exceeds_limit: true };
    let reply = client.send("POST", VERIFY, "", Some(&client.body(request))).await;
    let reported = json_of(&reply);
    client.verdict(&reply, reported["isValid"] == true, reported["invalidReason"].as_str()).await?;
    let payer = reported["payer"].as_str().and_then(|payer| AccountName::parse(payer).ok());
    if payer.is_none() {
        client.violate(
            "responses-are-durable",
            format!("a payment that can be settled names no payer: {reported}"),
            None,
        );
    }
    payer.ok_or(X402Error::Unavailable(EngineError::StoreFailed))
}

fn session_of(sim: &Simulation, request: &X402Request) -> u32 {
    let Target::Session(id) = request.target else { return u32::MAX };
    sim.session(id).unwrap_or(u32::MAX)
}

/// Returns the IP address of an agent.
fn agent_ip(number: usize) -> IpAddr {
    Ipv4Addr::new(10, 5, 0, u8::try_from(number).unwrap_or(u8::MAX)).into()
}

impl Client<'_> {
    async fn settle(&self, number: usize, request: &X402Request) -> Result<actors::Settled, X402Error> {
        let way = self.way(number, request);
        let reply = match &way {
            Way::Checkout(slug) => {
                let mut sent = super::request(self.ip, "GET", &format!("/for/{slug}"), "", None);
                sent.headers.push(("x-payment", encode_header(&payload(request).to_string())));
                self.ask(sent).await
            }
            Way::Facilitator => self.send("POST", SETTLE, "", Some(&self.body(request))).await,
            Way::Seller { key, name } => {
                let mut sent = super::request(self.ip, "POST", SETTLE, key, Some(&self.body(request)));
                sent.headers.extend(name.clone().map(|name| ("idempotency-key", name)));
                self.ask(sent).await
            }
        };
        let reported = json_of(&reply);
        let receipt = reply.header("x-payment-response").and_then(decode_header);
        let receipt: Value = receipt.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default();
        let reasons = [&receipt["errorReason"], &reported["errorReason"], &reported["error"], &reported["reason"]];
        let reason = reasons.into_iter().find_map(Value::as_str);
        self.verdict(&reply, reported["success"] == true, reason).await?;
        let transfer = request.payload.transaction.operations.iter().find_map(|operation| match operation {
            Operation::Transfer(transfer) => Some(transfer),
            _ => None,
        });
        let amount = transfer.and_then(|transfer| transfer.amount.money());
        let settled = amount.and_then(|amount| {
            Some(actors::Settled {
                tx_id: TxId::parse(reported["txId"].as_str()?)?,
                payer: AccountName::parse(reported["payer"].as_str()?).ok()?,
                block_num: None,
                amount: Money::new(
                    reported["amount"].as_str().map_or(Some(amount.units), |units| units.parse().ok())?,
                    amount.currency,
                ),
                is_replay: reported["replayed"] == true,
            })
        });
        if settled.is_none() {
            self.violate("responses-are-durable", format!("a success reports {reported}"), None);
        }
        settled.ok_or(X402Error::Unavailable(EngineError::StoreFailed))
    }

    /// Reads a verdict; after a rate limit, waits for the `Retry-After`.
    async fn verdict(&self, reply: &Reply, is_success: bool, reason: Option<&str>) -> Result<(), X402Error> {
        if reply.status == 200 && is_success {
            return Ok(());
        }
        if reply.status == 429 || reply.status >= 500 {
            if reply.status == 429 {
                self.sim.mark("an agent exceeds the rate limit");
            }
            let seconds = reply.header("retry-after").and_then(|seconds| seconds.parse().ok()).unwrap_or(1);
            self.sim.sleep(u64::min(seconds, 60) * 1_000).await;
            return Err(X402Error::Unavailable(EngineError::Overloaded));
        }
        // The merchant has not received its new key yet, or is deactivated.
        if reply.status == 401 || json_of(reply)["reason"] == "inactive_merchant" {
            return Err(X402Error::Unavailable(EngineError::Unauthenticated));
        }
        let reason = match reason {
            Some("session_completed" | "payment_detected" | "payment_in_flight") => Some(Reason::SessionNotPending),
            // A transaction of many transfers, taken from the chain, may exceed the size limit of a request.
            Some("headers_too_large" | "body_too_large") => Some(Reason::InvalidPayload),
            _ if [413, 431].contains(&reply.status) => Some(Reason::InvalidPayload),
            Some(word) => Reason::parse(word),
            None => None,
        };
        match reason {
            Some(reason) => Err(X402Error::Refused(Refused::new(reason, "as the response reports"))),
            None => {
                let text = format!("a payment gets {}: {}", reply.status, text_of(reply));
                self.violate("mistakes-are-named", text, None);
                Err(X402Error::Unavailable(EngineError::StoreFailed))
            }
        }
    }

    fn way(&self, number: usize, request: &X402Request) -> Way {
        match &request.target {
            Target::Session(id) => {
                let merchant = self.sim.observe(|observer| Some(observer.payments.get(id)?.payment.merchant));
                let key = merchant.and_then(|merchant| key_of(self.sim, merchant));
                match (number % 3, slug_of(self.sim, *id), key) {
                    (0, Some(slug), _) => Way::Checkout(slug),
                    (1, _, Some(key)) => Way::Seller { key, name: None },
                    _ => Way::Facilitator,
                }
            }
            // Every other server uses an API key, and an idempotency key.
            Target::Requirements(_) => {
                let seller = self.sim.clients().merchants.get(&0).map(|shop| shop.api_key.clone());
                let name = self.sim.hive().id_of(&request.payload.transaction).to_string();
                match seller.filter(|_| number.is_multiple_of(2)) {
                    Some(key) => Way::Seller { key, name: Some(name) },
                    None => Way::Facilitator,
                }
            }
        }
    }

    fn body(&self, request: &X402Request) -> Value {
        let mut body = json!({ "paymentPayload": payload(request) });
        match &request.target {
            Target::Session(id) => body["sessionId"] = id.to_string().into(),
            Target::Requirements(requirements) => {
                body["paymentRequirements"] = json!({
                    "scheme": "exact",
                    "network": NETWORK,
                    "maxAmountRequired": requirements.amount.to_string(),
                    "payTo": requirements.pay_to.as_str(),
                    "resource": requirements.resource,
                });
            }
        }
        body
    }
}

/// Encodes a payment in version 1.
fn payload(request: &X402Request) -> Value {
    let PaymentPayload { transaction, nonce, .. } = &request.payload;
    let signed: Value = serde_json::from_str(&transaction.to_condenser_json()).unwrap_or_default();
    json!({
        "x402Version": 1,
        "scheme": "exact",
        "network": NETWORK,
        "payload": { "signedTransaction": signed, "nonce": nonce },
    })
}
