//! Requests to cancel a payment: whether one is in force, and the status that the customer sees.

use proto::v1::{self, PaymentStatus};
use serde::Serialize;
use utoipa::ToSchema;

use super::{names::status_name, schema::StatusName};

/// Returns the request to cancel that is undecided or in force.
pub(crate) fn active_request(payment: &v1::Payment) -> Option<&v1::Cancellation> {
    payment.cancellation.as_ref().filter(|request| request.dropped_at.is_none())
}

/// Returns the request to cancel that no block has decided yet.
pub(crate) fn undecided(payment: &v1::Payment) -> Option<&v1::Cancellation> {
    active_request(payment).filter(|_| payment.status == PaymentStatus::Pending as i32)
}

/// The status of a payment whose cancellation was requested, limited to what a visitor of its page may see.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Requested<'a> {
    id: &'a str,
    status: StatusName,
    cancel_requested: bool,
}

impl<'a> Requested<'a> {
    pub(crate) fn of(payment: &'a v1::Payment) -> Self {
        Self {
            id: &payment.id,
            status: StatusName(status_name(payment.status)),
            cancel_requested: active_request(payment).is_some(),
        }
    }
}
