//! The body of a webhook: written once, stored, signed and sent as those bytes for ever.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::{
    fields::MetadataValue,
    ids::{EventId, MerchantId, PaymentId},
    mutant,
    payment::{Event, Payment, State},
    time::Timestamp,
};

/// Writes the body of `payment.status_changed`, the one event type.
#[must_use]
pub fn status_changed(payment: &Payment, event: &Event) -> Vec<u8> {
    let id = payment.id.to_string();
    let at = event.at.to_string();
    let body = Body {
        r#type: "payment.status_changed",
        id: event.id.to_string(),
        created_at: &at,
        timestamp: &at,
        data: Data {
            id: &id,
            payment_id: &id,
            merchant_id: payment.merchant.to_string(),
            status: if mutant!("event-tells-the-old-state") { event.from } else { event.to }.word(),
            previous_status: event.from.word(),
            provider_id: "hive",
            internal_id: payment.paid_by.map(|tx_id| tx_id.to_string()),
            sequence: event.sequence,
            exceptions: payment.exceptions().into_iter().map(crate::payment::Exception::word).collect(),
            metadata: payment
                .metadata
                .iter()
                .filter(|_| !mutant!("event-without-metadata"))
                .map(|(key, value)| (key.as_str(), Value(value)))
                .collect(),
            livemode: payment.livemode,
        },
    };
    bytes_of(&body)
}

/// Writes the body of a test event: of the same type, for a payment that does not exist (`test_…`), never live.
#[must_use]
pub fn test_event(id: EventId, merchant: MerchantId, payment: PaymentId, at: Timestamp) -> Vec<u8> {
    let at = at.to_string();
    let payment = format!("test_{}", payment.to_string().trim_start_matches(PaymentId::PREFIX));
    let body = Body {
        r#type: "payment.status_changed",
        id: id.to_string(),
        created_at: &at,
        timestamp: &at,
        data: Data {
            id: &payment,
            payment_id: &payment,
            merchant_id: merchant.to_string(),
            status: State::Completed.word(),
            previous_status: State::Pending.word(),
            provider_id: "hive",
            internal_id: None,
            sequence: 1,
            exceptions: Vec::new(),
            metadata: BTreeMap::new(),
            livemode: false,
        },
    };
    bytes_of(&body)
}

fn bytes_of(body: &Body<'_>) -> Vec<u8> {
    // Room for one without metadata.
    let mut bytes = Vec::with_capacity(640);
    serde_json::to_writer(&mut bytes, body).expect("texts and numbers always serialize");
    bytes
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    r#type: &'a str,
    id: String,
    created_at: &'a str,
    timestamp: &'a str,
    data: Data<'a>,
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
    internal_id: Option<String>,
    sequence: u32,
    exceptions: Vec<&'a str>,
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
