//! Payment by HTTP 402 over a small engine: what is asked for, what is shown, and every answer to it.

mod address;
mod facilitator;
mod properties;
mod receipts;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use engine::x402::Reason;
use proto::v1::{self, settle_payment_response::Outcome};
use serde_json::{Value, json};

use super::{Site, TestResponse};

const TRANSACTION: &str = r#"{"ref_block_num":1,"ref_block_prefix":2,"expiration":"2025-11-20T14:05:00","operations":[["transfer",{"from":"agent","to":"blue.mugs","amount":"10.500 HBD","memo":"x402:n-1"}]],"extensions":[],"signatures":["1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f"]}"#;
const TRANSACTION_HF26: &str = r#"{"ref_block_num":1,"ref_block_prefix":2,"expiration":"2025-11-20T14:05:00","operations":[{"type":"transfer_operation","value":{"from":"agent","to":"blue.mugs","amount":{"amount":"10500","precision":3,"nai":"@@000000013"},"memo":"x402:n-1"}}],"extensions":[],"signatures":["1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f"]}"#;

fn transaction() -> Value {
    serde_json::from_str(TRANSACTION).expect("JSON")
}

/// A payment of version 1.
fn v1_payload() -> Value {
    let payload = json!({ "signedTransaction": transaction(), "nonce": "n-1" });
    json!({ "x402Version": 1, "scheme": "exact", "network": "hive:mainnet", "payload": payload })
}

/// A payment of version 2.
fn v2_payload() -> Value {
    json!({
        "x402Version": 2,
        "resource": { "url": "https://shop.example/a" },
        "accepted": {
            "scheme": "exact", "network": "hive:mainnet", "amount": "10500", "asset": "HBD", "payTo": "blue.mugs",
            "maxTimeoutSeconds": 60, "extra": { "rate": 0.5 },
        },
        "payload": { "signedTransaction": transaction(), "nonce": "n-1" },
        "extensions": { "payment-identifier": { "info": { "id": "0123456789abcdef" } } },
    })
}

fn encode(json: &Value) -> String {
    BASE64_STANDARD.encode(json.to_string())
}

fn decode(value: &str) -> Value {
    // The strict alphabet: official clients refuse any other.
    let bytes = BASE64_STANDARD.decode(value).unwrap_or_else(|e| panic!("{e}: {value}"));
    serde_json::from_slice(&bytes).expect("JSON")
}

fn refused(reason: Reason, payer: Option<&str>, tx_id: Option<&str>) -> Outcome {
    let name = format!("X402_REASON_{}", reason.as_str().to_uppercase());
    Outcome::Refused(v1::X402Refusal {
        reason: v1::X402Reason::from_str_name(&name).expect("a reason").into(),
        message: "because".to_owned(),
        payer: payer.map(str::to_owned),
        tx_id: tx_id.map(str::to_owned),
    })
}

impl Site {
    fn leads_to(&self, outcome: Outcome) {
        *self.fake.outcome.lock().expect("one test") = outcome;
    }

    fn shown(&self) -> Vec<v1::X402Payment> {
        std::mem::take(&mut *self.fake.x402_payments.lock().expect("one test"))
    }

    /// Sends a request as a program does.
    async fn agent(&self, path: &str, headers: &str) -> TestResponse {
        self.send("GET", path, headers, "").await
    }
}

impl TestResponse {
    /// Returns what both response headers say, which is the same.
    fn receipt(&self) -> Value {
        let one = self.header("x-payment-response").expect("version 1's header");
        assert_eq!(Some(one), self.header("payment-response"));
        decode(one)
    }

    fn has_requirements(&self) -> bool {
        let headers = ["x-payment", "payment-required"].map(|name| self.header(name).is_some());
        assert_eq!(headers[0], headers[1], "{self:?}");
        assert_eq!(headers[0], self.json().get("accepts").is_some(), "{self:?}");
        headers[0]
    }
}
