//! Payment by HTTP 402 from outside: agents at a checkout URL, other servers at the facilitator.

mod attacks;
mod checkout;
mod crashes;
mod facilitator;
mod races;
mod replays;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use engine::{
    hive::{ChainId, Pack, PrivateKey, Transaction},
    x402::Reason,
};
use serde_json::{Value, json};

use crate::harness::{Api, Ledger, Payer, Response, Shop};

/// Returns every test of this module.
pub(crate) fn all() -> Vec<libtest_mimic::Trial> {
    [checkout::tests(), facilitator::tests(), attacks::tests(), races::tests(), crashes::tests(), replays::tests()]
        .into_iter()
        .flatten()
        .collect()
}

/// The price of an order.
const PRICE: &str = "1.500 HBD";
const VERIFY: &str = "/api/public/x402/verify";
const SETTLE: &str = "/api/public/x402/settle";

pub(crate) fn encode(json: &Value) -> String {
    BASE64_STANDARD.encode(json.to_string())
}

#[track_caller]
fn decode(value: &str) -> Value {
    let bytes = BASE64_STANDARD.decode(value).unwrap_or_else(|error| panic!("{error}: {value}"));
    serde_json::from_slice(&bytes).expect("JSON")
}

/// Returns an unused nonce.
pub(crate) fn nonce() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{:032x}", COUNT.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn json_of(transaction: &Transaction) -> Value {
    serde_json::from_str(&transaction.to_condenser_json()).expect("JSON")
}

/// A payment of version 1.
pub(crate) fn v1(transaction: &Value, nonce: &str) -> Value {
    let payload = json!({ "signedTransaction": transaction, "nonce": nonce });
    json!({ "x402Version": 1, "scheme": "exact", "network": "hive:mainnet", "payload": payload })
}

/// A payment of version 2 for accepted requirements.
fn v2(transaction: &Value, nonce: &str, accepted: &Value) -> Value {
    let payload = json!({ "signedTransaction": transaction, "nonce": nonce });
    json!({ "x402Version": 2, "accepted": accepted, "payload": payload })
}

/// Signs again with these keys over this packing and chain.
fn sign(transaction: &mut Transaction, chain: ChainId, pack: Pack, keys: &[&str]) {
    transaction.signatures.clear();
    for key in keys {
        transaction.sign(chain, pack, &PrivateKey::from_wif(key).expect("a key"));
    }
}

/// Pays a new session of the shop as an agent does: verified, settled, and rejected a second time. Returns the payment.
#[track_caller]
pub(crate) fn pay_once(shop: &Shop, ledger: &Ledger, agent: &Payer) -> Value {
    let payment = shop.open_payment();
    let signed = ledger.signed(agent, &[(&shop.account.name, PRICE, &payment.memo)]);
    let (target, shown) = (session(&payment.id), v1(&json_of(&signed), &nonce()));
    assert_eq!(verify(&shop.api, &target, &shown)["isValid"], true);
    assert_eq!(settle(&shop.api, &target, &shown)["success"], true);
    assert_eq!(verify(&shop.api, &target, &shown)["isValid"], false);
    shown
}

/// Pays a new session at its checkout URL. Returns the payment header.
#[track_caller]
pub(crate) fn show_at_address(shop: &Shop, ledger: &Ledger, agent: &Payer) -> String {
    let payment = shop.open_payment();
    let signed = ledger.signed(agent, &[(&shop.account.name, PRICE, &payment.memo)]);
    let header = encode(&v1(&json_of(&signed), &nonce()));
    let response = shop.api.get(&format!("/for/{}", payment.slug)).header("x-payment", &header).send();
    assert_eq!(response.status, 200, "{}", response.text());
    header
}

/// Requests a checkout URL as a program does, with or without a payment.
fn visit(api: &Api, path: &str, payment: Option<&Value>) -> Response {
    let request = api.get(path);
    match payment {
        Some(payment) if payment["x402Version"] == 2 => request.header("PAYMENT-SIGNATURE", &encode(payment)).send(),
        Some(payment) => request.header("x-payment", &encode(payment)).send(),
        None => request.send(),
    }
}

/// Returns the first payment option that a checkout URL offers, in either version.
#[track_caller]
fn offer(api: &Api, path: &str, version: u8) -> Value {
    let response = visit(api, path, None);
    assert_eq!(response.status, 402, "{}", response.text());
    let header = response.header(if version == 1 { "x-payment" } else { "payment-required" });
    decode(header.expect("requirements"))["accepts"][0].clone()
}

impl Response {
    /// Returns the value of both response headers, which is the same.
    #[track_caller]
    fn receipt(&self) -> Value {
        let one =
            self.header("x-payment-response").unwrap_or_else(|| panic!("no receipt: {} {}", self.status, self.text()));
        assert_eq!(Some(one), self.header("payment-response"));
        decode(one)
    }

    /// Expects a response without a payment request, with this status and reason.
    #[track_caller]
    fn closed(&self, status: u16, word: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        let body = self.json();
        assert_eq!((&body["reason"], &body["statusCode"]), (&json!(word), &json!(status)), "{body}");
        assert!(body["requestId"].is_string() && body.get("accepts").is_none(), "{body}");
        assert!(self.header("x-payment").is_none() && self.header("payment-required").is_none());
        assert_eq!(self.header("access-control-allow-origin"), Some("*"));
        body
    }

    /// Expects a rejected payment: the reason, and the payment options.
    #[track_caller]
    fn denied(&self, word: &str) -> Value {
        assert_eq!(self.status, 402, "{}", self.text());
        let (body, receipt) = (self.json(), self.receipt());
        for reason in [&body["error"], &body["reason"], &body["errorReason"], &receipt["errorReason"]] {
            assert_eq!(*reason, word, "{body}");
        }
        assert_eq!((&body["success"], &receipt["success"]), (&json!(false), &json!(false)));
        assert!(body["accepts"].is_array(), "{body}");
        assert!(self.header("x-payment").is_some() && self.header("payment-required").is_some());
        body
    }
}

/// Requests a verdict, and checks that its shape is valid.
#[track_caller]
fn verify(api: &Api, target: &Value, payment: &Value) -> Value {
    let verdict = judge(api, VERIFY, target, payment);
    let reason = verdict.get("invalidReason");
    assert_eq!(verdict["isValid"] == true, reason.is_none(), "{verdict}");
    is_of_the_list(reason);
    verdict
}

/// Settles, and checks that the shape of the response is valid.
#[track_caller]
fn settle(api: &Api, target: &Value, payment: &Value) -> Value {
    let outcome = judge(api, SETTLE, target, payment);
    assert!(outcome["transaction"].is_string() && outcome["network"] == "hive:mainnet", "{outcome}");
    assert_eq!(outcome["transaction"], outcome["txId"], "{outcome}");
    let reason = outcome.get("errorReason");
    assert_eq!(outcome["success"] == true, reason.is_none(), "{outcome}");
    is_of_the_list(reason);
    outcome
}

fn judge(api: &Api, path: &str, target: &Value, payment: &Value) -> Value {
    let mut body = json!({ "paymentPayload": payment });
    body.as_object_mut().expect("an object").extend(target.as_object().expect("an object").clone());
    api.post(path, &body).send().ok(200)
}

#[track_caller]
fn is_of_the_list(reason: Option<&Value>) {
    if let Some(word) = reason {
        assert!(word.as_str().is_some_and(|word| Reason::parse(word).is_some()), "{word} is not of the list");
    }
}

/// Identifies a session.
fn session(id: &str) -> Value {
    json!({ "sessionId": id })
}

/// Returns the block of a transaction on the chain.
fn block_of(ledger: &Ledger, tx_id: &str) -> Option<u64> {
    let found = ledger.call("transaction_status_api.find_transaction", &json!({ "transaction_id": tx_id })).ok()?;
    found["block_num"].as_u64()
}

/// Counts the transfers on the chain with this memo.
pub(crate) fn transfers_with_memo(ledger: &Ledger, memo: &str) -> usize {
    let head = ledger.order("status", &json!({}))["head"]["number"].as_u64().expect("a number");
    let mut count = 0;
    for number in 1..=head {
        let block = ledger.call("condenser_api.get_block", &json!([number])).expect("a block");
        for transaction in block["transactions"].as_array().into_iter().flatten() {
            let operations = transaction["operations"].as_array().expect("operations").iter();
            count += operations.filter(|operation| operation[1]["memo"] == memo).count();
        }
    }
    count
}

/// Waits until a session is paid irreversibly, exactly once.
#[track_caller]
fn paid_for_good(shop: &Shop, id: &str) -> Value {
    let record = shop.until(id, "paid for good", |p| p["status"] == "completed" && p["amountPaid"] == "1500");
    assert_eq!(record["exceptions"], json!([]), "{record}");
    assert_eq!(record["transfers"].as_array().map(Vec::len), Some(1), "{record}");
    record
}
