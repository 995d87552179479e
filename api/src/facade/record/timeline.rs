//! The timeline of a payment, as far as its record contains it.

use engine::time::Timestamp;
use proto::{ApiError, v1};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    names::{disposition_name, exception_name, finality_name, resolution_name, status_name},
    payment::Payment,
    schema::{Text, Time},
    value::{instant, money},
};

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// When.
    pub(crate) at: Timestamp,
    /// What happened.
    pub(crate) what: String,
}

/// An entry of a timeline.
#[derive(Serialize, ToSchema)]
pub(crate) struct Entry<'a> {
    at: Time,
    event: &'a str,
}

impl<'a> Entry<'a> {
    pub(crate) const fn of(step: &'a Step) -> Self {
        Self { at: Text(step.at), event: step.what.as_str() }
    }
}

/// Returns the timeline, oldest first, with the transfers that the record contains.
///
/// # Errors
/// `internal` if the amount of a transfer is missing or its currency is unknown.
pub(crate) fn of(payment: &v1::Payment) -> Result<Vec<Step>, ApiError> {
    let mut steps = vec![Step { at: instant(payment.created_at), what: "created".to_owned() }];
    let mut add = |at: Option<proto::time::Timestamp>, what: String| steps.push(Step { at: instant(at), what });
    if let Some(request) = &payment.cancellation {
        let by = if request.by == v1::CancelledBy::Merchant as i32 { "merchant" } else { "customer" };
        let cutoff = instant(request.cutoff);
        add(
            request.requested_at,
            format!("cancellation requested by the {by}; transfers in blocks up to {cutoff} still count"),
        );
        if request.dropped_at.is_some() {
            add(request.dropped_at, "cancellation dropped: money came before the cutoff".to_owned());
        }
    }
    if payment.wallet_opened_at.is_some() {
        add(payment.wallet_opened_at, "wallet opened on the checkout page".to_owned());
    }
    for transfer in &payment.transfers {
        add(transfer.block_time.or(payment.updated_at), transferred(transfer)?);
    }
    for refund in &payment.refunds {
        add(refund.at, format!("refund {}", refund.tx_id));
    }
    if let Some(resolution) = &payment.resolution {
        add(resolution.at, format!("resolved: {}", resolution_name(resolution.kind)));
    }
    let status = status_name(payment.status);
    if status == "pending" {
        add(payment.expires_at, "expires".to_owned());
    } else {
        let reason = payment.status_reason().rest_name().map(|reason| format!(" ({reason})")).unwrap_or_default();
        add(payment.completed_at.or(payment.updated_at), format!("{status}{reason}"));
    }
    // Block times have a resolution of one second; the creation stays first.
    steps[1..].sort_by_key(|step| step.at);
    Ok(steps)
}

fn transferred(transfer: &v1::Transfer) -> Result<String, ApiError> {
    let amount = money(transfer.amount.as_ref())?;
    let (from, finality) = (&transfer.from_account, finality_name(transfer.finality));
    let block = transfer.block_num.map(|number| format!(" in block {number}")).unwrap_or_default();
    let disposition = disposition_name(transfer.disposition);
    Ok(format!("{amount} from @{from}{block}, {finality}, {disposition}, transaction {}", transfer.tx_id))
}

/// Returns the JSON record of a payment, with links below `base_url`.
///
/// # Errors
/// `internal` if the engine returns no known currency.
pub(crate) fn record(base_url: &str, payment: &v1::Payment) -> Result<serde_json::Value, ApiError> {
    Ok(serde_json::to_value(Payment::of(base_url, payment)?).unwrap_or_default())
}

/// Returns the status of a payment in the words of the interface.
pub(crate) fn status(payment: &v1::Payment) -> &'static str {
    status_name(payment.status)
}

/// Returns the exceptions of a payment in the words of the interface.
pub(crate) fn exceptions(payment: &v1::Payment) -> Vec<&'static str> {
    payment.exceptions.iter().map(|wire| exception_name(*wire)).collect()
}
