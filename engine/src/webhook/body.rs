//! Webhook bodies: serialized once, then stored, signed and sent as these bytes.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::{
    fields::MetadataValue,
    ids::{EventId, MerchantId, PaymentId},
    ledger::TxId,
    mutant,
    payment::{Event, Exception, ExceptionEvent, Payment, State},
    time::Timestamp,
    webhook::EventType,
};

/// Returns the body of `payment.status_changed`.
#[must_use]
pub fn status_changed(payment: &Payment, event: &Event) -> Vec<u8> {
    let id = payment.id.to_string();
    let at = event.at.to_string();
    let body = Body {
        r#type: EventType::StatusChanged.as_str(),
        id: event.id.to_string(),
        created_at: &at,
        timestamp: &at,
        data: Data {
            id: &id,
            payment_id: &id,
            merchant_id: payment.merchant.to_string(),
            status: if mutant!("event-has-old-state") { event.from } else { event.to }.as_str(),
            previous_status: event.from.as_str(),
            provider_id: "hive",
            internal_id: payment.paid_by.map(|tx_id| tx_id.to_string()),
            sequence: event.sequence,
            exceptions: words(&payment.exceptions()),
            new_exceptions: None,
            metadata: metadata(payment),
            livemode: payment.livemode,
        },
    };
    bytes_of(&body)
}

/// Returns the body of `payment.exception`.
#[must_use]
pub fn exception(payment: &Payment, ExceptionEvent { event, new }: &ExceptionEvent) -> Vec<u8> {
    let id = payment.id.to_string();
    let at = event.at.to_string();
    let previous = payment.previous_state.unwrap_or(payment.state);
    bytes_of(&Body {
        r#type: EventType::Exception.as_str(),
        id: event.id.to_string(),
        created_at: &at,
        timestamp: &at,
        data: Data {
            id: &id,
            payment_id: &id,
            merchant_id: payment.merchant.to_string(),
            status: payment.state.as_str(),
            previous_status: previous.as_str(),
            provider_id: "hive",
            internal_id: payment.paid_by.map(|tx_id| tx_id.to_string()),
            sequence: event.sequence,
            exceptions: words(&payment.exceptions()),
            new_exceptions: Some(words(new)),
            metadata: metadata(payment),
            livemode: payment.livemode,
        },
    })
}

/// An x402 payment settled for a resource of a merchant's server.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SettledSale<'a> {
    /// The transaction.
    pub tx_id: String,
    /// The merchant.
    pub merchant_id: String,
    /// The payer.
    pub payer: &'a str,
    /// The payee.
    pub pay_to: &'a str,
    /// The amount, smallest units.
    pub value: String,
    /// The amount as on the ledger.
    pub formatted: String,
    /// The currency.
    pub currency: &'static str,
    /// The resource, as its server describes it.
    pub resource: &'a str,
    /// The block, unless acceptance by a node was sufficient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_num: Option<u32>,
    /// Whether it uses real money.
    pub livemode: bool,
}

/// Returns the event id of a sale for a merchant, derived from the transaction and its claim time, so that an event
/// announced again after a restore keeps its id.
#[must_use]
pub fn sale_event_id(tx_id: TxId, merchant: MerchantId, claimed_at: Timestamp) -> EventId {
    let hash = Sha256::new().chain_update(tx_id.0).chain_update(merchant.bits().to_be_bytes()).finalize();
    let mut random = [0; 10];
    random.copy_from_slice(&hash[..10]);
    EventId::new(claimed_at, random)
}

/// Returns the body of `x402.settled`.
#[must_use]
pub fn settled(id: EventId, sale: &SettledSale<'_>, at: Timestamp) -> Vec<u8> {
    let at = at.to_string();
    let kind = EventType::X402Settled.as_str();
    bytes_of(&Body { r#type: kind, id: id.to_string(), created_at: &at, timestamp: &at, data: sale })
}

/// A change of a merchant's verified account.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountChange {
    /// The merchant.
    pub merchant_id: String,
    /// `requested`, `cancelled` or `completed`.
    pub change: &'static str,
    /// The current account.
    pub hive_account: String,
    /// The new account of a requested or cancelled change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_account: Option<String>,
    /// The earliest time a requested change takes effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective_at: Option<String>,
    /// Whether it uses real money.
    pub livemode: bool,
}

/// Returns the body of `merchant.account_change`.
#[must_use]
pub fn account_change(id: EventId, change: &AccountChange, at: Timestamp) -> Vec<u8> {
    let at = at.to_string();
    let kind = EventType::AccountChange.as_str();
    bytes_of(&Body { r#type: kind, id: id.to_string(), created_at: &at, timestamp: &at, data: change })
}

fn words(exceptions: &[Exception]) -> Vec<&'static str> {
    exceptions.iter().map(|exception| exception.as_str()).collect()
}

fn metadata(payment: &Payment) -> BTreeMap<&str, Value<'_>> {
    let kept = payment.metadata.iter().filter(|_| !mutant!("event-without-metadata"));
    kept.map(|(key, value)| (key.as_str(), Value(value))).collect()
}

/// Returns the body of a test event: of any type, for a payment that does not exist (`test_…`), never live. `status` is
/// the status of payment events.
#[must_use]
pub fn test_event(
    id: EventId,
    merchant: MerchantId,
    payment: PaymentId,
    (kind, status): (EventType, State),
    at: Timestamp,
) -> Vec<u8> {
    let merchant_id = merchant.to_string();
    let account = "test".to_owned();
    match kind {
        EventType::StatusChanged | EventType::Exception => {}
        EventType::X402Settled => {
            let sale = SettledSale {
                tx_id: "0".repeat(40),
                merchant_id,
                payer: "test",
                pay_to: "test",
                value: "1".to_owned(),
                formatted: "0.001 HBD".to_owned(),
                currency: "HBD",
                resource: "https://example.com/test",
                block_num: None,
                livemode: false,
            };
            return settled(id, &sale, at);
        }
        EventType::AccountChange => {
            let change = AccountChange {
                merchant_id,
                change: "cancelled",
                hive_account: account.clone(),
                pending_account: Some(account),
                effective_at: None,
                livemode: false,
            };
            return account_change(id, &change, at);
        }
    }
    let (at, is_exception) = (at.to_string(), kind == EventType::Exception);
    let payment = format!("test_{}", payment.to_string().trim_start_matches(PaymentId::PREFIX));
    let exceptions = if is_exception { words(&[Exception::Underpaid]) } else { Vec::new() };
    bytes_of(&Body {
        r#type: kind.as_str(),
        id: id.to_string(),
        created_at: &at,
        timestamp: &at,
        data: Data {
            id: &payment,
            payment_id: &payment,
            merchant_id,
            status: status.as_str(),
            previous_status: if status == State::Failed { State::Processing } else { State::Pending }.as_str(),
            provider_id: "hive",
            internal_id: None,
            sequence: 1,
            new_exceptions: is_exception.then(|| exceptions.clone()),
            exceptions,
            metadata: BTreeMap::new(),
            livemode: false,
        },
    })
}

fn bytes_of<T: Serialize>(body: &Body<'_, T>) -> Vec<u8> {
    // The capacity of a body without metadata.
    let mut bytes = Vec::with_capacity(640);
    serde_json::to_writer(&mut bytes, body).expect("texts and numbers always serialize");
    bytes
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a, T> {
    r#type: &'a str,
    id: String,
    created_at: &'a str,
    timestamp: &'a str,
    data: T,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    id: &'a str,
    payment_id: &'a str,
    merchant_id: String,
    status: &'a str,
    previous_status: &'a str,
    provider_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    internal_id: Option<String>,
    sequence: u32,
    exceptions: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_exceptions: Option<Vec<&'a str>>,
    metadata: BTreeMap<&'a str, Value<'a>>,
    livemode: bool,
}

struct Value<'a>(&'a MetadataValue);

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            MetadataValue::Text(text) => text.serialize(serializer),
            MetadataValue::List(list) => list.serialize(serializer),
        }
    }
}
