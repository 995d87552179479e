//! The model: what was acknowledged, and whether a response contradicts it.

use std::{collections::BTreeMap, sync::Mutex};

use serde_json::{Value, json};
use simulations::random::Random;

use super::environment::{Environment, locked};
use crate::harness::Shop;

/// The planned use of a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    /// One transfer of the whole amount.
    Exact,
    /// Two transfers that add up to the amount.
    Parts,
    /// Too little, without enough time for the rest.
    TooLittle,
    /// More than the amount.
    TooMuch,
    /// The whole amount, twice.
    Twice,
    /// The whole amount after the expiry.
    TooLate,
    /// By HTTP 402 at the checkout URL.
    Agent,
    /// By HTTP 402 through the facilitator.
    Facilitated,
    /// Cancelled.
    Cancel,
    /// Paid and cancelled concurrently: either may win.
    Race,
    /// Left open.
    Abandon,
}

impl Plan {
    /// Every plan, with its weight.
    pub(super) const ALL: [(Self, u32); 11] = [
        (Self::Exact, 28),
        (Self::Parts, 10),
        (Self::TooLittle, 6),
        (Self::TooMuch, 7),
        (Self::Twice, 5),
        (Self::TooLate, 7),
        (Self::Agent, 14),
        (Self::Facilitated, 6),
        (Self::Cancel, 8),
        (Self::Race, 5),
        (Self::Abandon, 4),
    ];

    /// Returns whether its payment has a lifetime of one minute.
    pub(super) const fn is_short(self) -> bool {
        matches!(self, Self::TooLittle | Self::TooLate)
    }

    pub(super) const fn may_be_cancelled(self) -> bool {
        matches!(self, Self::Cancel | Self::Race)
    }

    pub(super) const fn is_x402(self) -> bool {
        matches!(self, Self::Agent | Self::Facilitated)
    }
}

/// A payment by HTTP 402 that was reported as successful.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    /// The header with the payment.
    pub(super) header: String,
    /// The response.
    pub(super) receipt: Value,
}

/// One acknowledged payment.
#[derive(Debug, Clone)]
pub(super) struct Remembered {
    pub(super) id: String,
    pub(super) shop: usize,
    pub(super) plan: Plan,
    /// The response to its creation.
    pub(super) made: Value,
    /// Its final state, once it was reported.
    pub(super) end: Option<Value>,
    pub(super) shown: Option<Shown>,
}

/// Everything that was acknowledged.
pub(super) struct Model {
    pub(super) shops: Vec<Shop>,
    payments: Mutex<Payments>,
}

/// In the order of their acknowledgement, with the index of each by its id.
#[derive(Default)]
struct Payments {
    list: Vec<Remembered>,
    places: BTreeMap<String, usize>,
}

/// The fields that never change after the creation.
const TERMS: [&str; 10] =
    ["id", "slug", "amount", "fee", "net", "currency", "description", "expiresAt", "createdAt", "checkoutUrl"];

impl Model {
    pub(super) fn new(shops: Vec<Shop>) -> Self {
        Self { shops, payments: Mutex::default() }
    }

    /// Records a payment whose creation was acknowledged. A payment that another key created before is a violation.
    pub(super) fn record(&self, environment: &Environment, shop: usize, plan: Plan, made: &Value) -> String {
        let id = made["id"].as_str().unwrap_or_default().to_owned();
        let mut payments = locked(&self.payments);
        let place = payments.list.len();
        if payments.places.insert(id.clone(), place).is_some() {
            environment.record_violation(format!("{id} was made by two keys"));
        }
        payments.list.push(Remembered { id: id.clone(), shop, plan, made: made.clone(), end: None, shown: None });
        id
    }

    /// Returns the number of recorded payments.
    pub(super) fn len(&self) -> usize {
        locked(&self.payments).list.len()
    }

    /// Returns the payments after the first `count`.
    pub(super) fn since(&self, count: usize) -> Vec<Remembered> {
        locked(&self.payments).list.iter().skip(count).cloned().collect()
    }

    /// Draws one of them.
    pub(super) fn any(&self, random: &mut Random) -> Option<Remembered> {
        let list = &locked(&self.payments).list;
        (!list.is_empty()).then(|| random.pick(list).clone())
    }

    fn change(&self, id: &str, change: impl FnOnce(&mut Remembered)) {
        let mut payments = locked(&self.payments);
        if let Some(place) = payments.places.get(id).copied() {
            change(&mut payments.list[place]);
        }
    }

    /// Records that a payment by HTTP 402 was reported as successful.
    pub(super) fn record_settlement(&self, id: &str, shown: Shown) {
        self.change(id, |payment| payment.shown = Some(shown));
    }

    /// Compares a record with what was acknowledged, and records its final state.
    pub(super) fn compare(&self, environment: &Environment, payment: &Remembered, record: &Value) {
        for member in TERMS {
            // The checkout URL contains the gateway's port, which changes at every start.
            let same = match member {
                "checkoutUrl" => record[member].is_string(),
                "amount" => record[member]["value"] == payment.made[member]["value"],
                _ => record[member] == payment.made[member],
            };
            if !same {
                let (is, was) = (&record[member], &payment.made[member]);
                environment.record_violation(format!("{}: {member} is {is} and was acknowledged as {was}", payment.id));
            }
        }
        let end = end(record);
        // What was known before the request: another client may have read a final state since.
        if payment.end.is_some() && payment.end != end {
            environment.record_violation(format!("{}: its end was {:?} and is {end:?}", payment.id, payment.end));
        }
        if let Some(shown) = &payment.shown
            && (record["status"] != "completed" || record["internalId"] != shown.receipt["txId"])
        {
            let (status, by) = (&record["status"], &record["internalId"]);
            environment.record_violation(format!("{}: receipt {} and yet {status} by {by}", payment.id, shown.receipt));
        }
        self.change(&payment.id, |remembered| match (&remembered.end, end) {
            (Some(was), Some(is)) if *was != is => {
                environment.record_violation(format!("{}: its end was {was} and is {is}", payment.id));
            }
            (None, Some(is)) => remembered.end = Some(is),
            _ => {}
        });
    }
}

/// Returns the fields of a payment that can never change again; none while it is open.
fn end(record: &Value) -> Option<Value> {
    let is_over = ["completed", "user_cancelled", "system_cancelled", "failed"].iter().any(|s| record["status"] == *s);
    is_over.then(|| json!([record["status"], record["internalId"], record["completedAt"], record["cancelledBy"]]))
}
