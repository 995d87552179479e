//! Requests to cancel a payment: whether one is in force, and the status that the customer sees.

use proto::v1::{self, PaymentStatus};
use serde::Serialize;
use utoipa::ToSchema;

use super::{schema::StatusWord, words::status_word};

/// Returns the request to cancel that is undecided or in force.
pub(crate) fn standing(payment: &v1::Payment) -> Option<&v1::Cancellation> {
    payment.cancellation.as_ref().filter(|request| request.dropped_at.is_none())
}

/// Returns the request to cancel that no block has decided yet.
pub(crate) fn undecided(payment: &v1::Payment) -> Option<&v1::Cancellation> {
    standing(payment).filter(|_| payment.status == PaymentStatus::Pending as i32)
}

/// The status of a payment whose cancellation was requested, limited to what a visitor of its page may see.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Requested<'a> {
    id: &'a str,
    status: StatusWord,
    cancel_requested: bool,
}

impl<'a> Requested<'a> {
    pub(crate) fn of(payment: &'a v1::Payment) -> Self {
        Self {
            id: &payment.id,
            status: StatusWord(status_word(payment.status)),
            cancel_requested: standing(payment).is_some(),
        }
    }
}
