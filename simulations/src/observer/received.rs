//! Webhooks as a receiver parses them.

use engine::ids::{DeliveryId, EventId, PaymentId};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    id: String,
    data: Data,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    /// None in events of no payment.
    payment_id: Option<String>,
    status: Option<String>,
    sequence: Option<u32>,
}

impl Body {
    fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

type Read = (DeliveryId, u32, EventId, Option<PaymentId>, String, u32);

/// Reads a webhook as a receiver does: delivery, attempt, event, payment (none in tests and in events of no payment),
/// status, sequence.
#[must_use]
pub fn read_webhook(headers: &[(String, String)], body: &[u8]) -> Option<Read> {
    let header = |name: &str| headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let body = Body::read(body)?;
    Some((
        header("X-Hivetill-Delivery")?.parse().ok()?,
        header("X-Hivetill-Attempt")?.parse().ok()?,
        body.id.parse().ok()?,
        match body.data.payment_id {
            Some(id) if id.starts_with("test_") => None,
            Some(id) => Some(id.parse().ok()?),
            None => None,
        },
        body.data.status.unwrap_or_default(),
        body.data.sequence.unwrap_or_default(),
    ))
}
