//! Payments as agents encode them: the text of either version, which the engine reads as a server forwards it.

use base64::{Engine, prelude::BASE64_STANDARD};
use engine::{
    hive::Operation,
    x402::{FacilitatorRequest, PaymentTarget},
};
use serde_json::{Value, json};

use super::*;

mod malformed;

/// The payment that an agent encodes.
pub(super) struct Meant {
    pub(super) transaction: Transaction,
    pub(super) nonce: String,
    /// What it accepted: as much in all, to this account.
    pub(super) price: Money,
    pub(super) pay_to: AccountName,
    /// Selects the version and encoding.
    pub(super) style: u32,
    /// The `payment-identifier`, on every third.
    pub(super) named: String,
}

impl Meant {
    const fn version(&self) -> Version {
        if self.style.is_multiple_of(2) { Version::V1 } else { Version::V2 }
    }

    /// Returns a number that differs between the payments of a simulation.
    const fn choice(&self) -> u64 {
        self.transaction.expiration.seconds()
    }

    fn identifier(&self) -> Option<String> {
        self.style.is_multiple_of(3).then(|| format!("agents-payment-of-{}", self.named))
    }

    fn amount(&self) -> String {
        if self.style % 4 < 2 { self.price.to_string() } else { self.price.units.to_string() }
    }

    fn text(&self) -> Value {
        let operations = self.transaction.operations.iter().filter_map(|operation| match operation {
            Operation::Transfer(transfer) => {
                let amount = transfer.amount.money().map(|money| money.to_string());
                let (from, to, memo) = (&transfer.from, &transfer.to, &transfer.memo);
                Some(json!(["transfer", { "from": from, "to": to, "amount": amount, "memo": memo }]))
            }
            _ => None,
        });
        let expiration = self.transaction.expiration.to_string();
        let signed = json!({
            "ref_block_num": self.transaction.ref_block_num,
            "ref_block_prefix": self.transaction.ref_block_prefix,
            "expiration": expiration.get(..19),
            "operations": operations.collect::<Vec<_>>(),
            "extensions": [],
            "signatures": self.transaction.signatures.iter().map(|one| hex::encode(one.0)).collect::<Vec<_>>(),
        });
        let payload = json!({ "signedTransaction": signed, "nonce": self.nonce });
        let mut text = match self.version() {
            Version::V1 => {
                json!({ "x402Version": 1, "scheme": "exact", "network": "hive:mainnet", "payload": payload })
            }
            Version::V2 => json!({
                "x402Version": 2,
                "resource": { "url": "https://payer.example/claimed-resource" },
                "accepted": {
                    "scheme": "exact",
                    "network": "hive:mainnet",
                    "amount": self.amount(),
                    "asset": self.price.currency.code(),
                    "payTo": self.pay_to.as_str(),
                },
                "payload": payload,
            }),
        };
        if let Some(id) = self.identifier() {
            text["extensions"] = json!({ "payment-identifier": { "info": { "required": false, "id": id } } });
        }
        text
    }

    /// Returns the payment for a session as the engine reads it, from a header or from a body.
    pub(super) fn read_for(&self, sim: &Simulation, session: PaymentId) -> Option<PaymentPayload> {
        let text = self.text();
        malformed::try_payment(sim, &text, self.choice());
        let read = if self.style % 5 < 2 {
            let header = BASE64_STANDARD.encode(text.to_string());
            PaymentPayload::decode_header(&header).ok().and_then(Result::ok)
        } else {
            let body = json!({ "sessionId": session.to_string(), "paymentPayload": text }).to_string();
            let asked = FacilitatorRequest::parse(body.as_bytes()).ok().and_then(Result::ok);
            asked.filter(|asked| asked.target == PaymentTarget::Session(session)).map(|asked| asked.payload)
        };
        self.compare(sim, read)
    }

    /// Returns the payment and the requirements of a seller as the engine reads them.
    pub(super) fn read_at(&self, sim: &Simulation, wanted: &Requirements) -> Option<(PaymentPayload, Requirements)> {
        let mut requirements = json!({
            "scheme": "exact",
            "network": "hive:mainnet",
            "payTo": wanted.pay_to.as_str(),
            "asset": wanted.amount.currency.code(),
        });
        match self.version() {
            Version::V1 => {
                requirements["maxAmountRequired"] = json!(wanted.amount.to_string());
                requirements["resource"] = json!(wanted.resource);
            }
            Version::V2 => {
                requirements["amount"] = json!(wanted.amount.units.to_string());
                requirements["resource"] = json!({ "url": wanted.resource });
            }
        }
        if let Some(until) = wanted.valid_before {
            requirements["validBefore"] = json!(until.to_string());
        }
        malformed::try_requirements(sim, &requirements, self.choice());
        let body = json!({ "paymentRequirements": requirements, "paymentPayload": self.text() }).to_string();
        let asked = FacilitatorRequest::parse(body.as_bytes()).ok().and_then(Result::ok)?;
        let PaymentTarget::Requirements(requirements) = asked.target else { return None };
        if requirements != *wanted {
            let text = format!("{wanted:?} is read as {requirements:?}");
            sim.observe(|observer| observer.violate("payments-are-read", text, None));
        }
        Some((self.compare(sim, Some(asked.payload))?, requirements))
    }

    fn compare(&self, sim: &Simulation, read: Option<PaymentPayload>) -> Option<PaymentPayload> {
        let is_same = read.as_ref().is_some_and(|read| {
            let accepted = read.accepted.as_ref().map(|accepted| (accepted.pay_to.as_str(), &*accepted.asset));
            let wanted = (self.pay_to.as_str(), self.price.currency.code());
            read.version == self.version()
                && read.transaction == self.transaction
                && read.nonce == self.nonce
                && read.identifier == self.identifier()
                && accepted == (self.version() == Version::V2).then_some(wanted)
                && read.accepted.as_ref().is_none_or(|accepted| accepted.amount == self.amount())
        });
        sim.observe(|observer| {
            if is_same {
                observer.passes("payments-are-read");
            } else {
                let text = format!("a payment is written as {} and read as {read:?}", self.text());
                observer.violate("payments-are-read", text, None);
            }
        });
        read
    }
}
