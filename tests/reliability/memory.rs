//! The oracle: what was acknowledged, and whether an answer contradicts it.

use std::{collections::BTreeMap, sync::Mutex};

use serde_json::{Value, json};
use simulations::random::Random;

use super::world::{World, locked};
use crate::harness::Shop;

/// What a client meant to do with its payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    /// One transfer of the whole amount.
    Exact,
    /// Two transfers that come to it.
    Parts,
    /// Too little, and no time for the rest.
    TooLittle,
    /// More than was asked.
    TooMuch,
    /// The whole amount, twice.
    Twice,
    /// The whole amount after the end.
    TooLate,
    /// By HTTP 402 at the checkout address.
    Agent,
    /// By HTTP 402 through the facilitator.
    Facilitated,
    /// Cancelled.
    Cancel,
    /// Paid and cancelled at once: either may win.
    Race,
    /// Left alone.
    Abandon,
}

impl Plan {
    /// Every plan, and how often it is drawn.
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

    /// Says whether its payment lives for a minute only.
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

/// A payment by HTTP 402 whose success was told.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    /// The header that was shown.
    pub(super) header: String,
    /// What it was answered with.
    pub(super) receipt: Value,
}

/// One acknowledged payment.
#[derive(Debug, Clone)]
pub(super) struct Remembered {
    pub(super) id: String,
    pub(super) shop: usize,
    pub(super) plan: Plan,
    /// The answer to its creation.
    pub(super) made: Value,
    /// How it ended, once anybody was told.
    pub(super) end: Option<Value>,
    pub(super) shown: Option<Shown>,
}

/// Everything that was acknowledged.
pub(super) struct Memory {
    pub(super) shops: Vec<Shop>,
    payments: Mutex<Payments>,
}

/// In the order in which they were acknowledged, and where each is by its id.
#[derive(Default)]
struct Payments {
    list: Vec<Remembered>,
    places: BTreeMap<String, usize>,
}

/// What creation fixes for good.
const TERMS: [&str; 10] =
    ["id", "slug", "amount", "fee", "net", "currency", "description", "expiresAt", "createdAt", "checkoutUrl"];

impl Memory {
    pub(super) fn new(shops: Vec<Shop>) -> Self {
        Self { shops, payments: Mutex::default() }
    }

    /// Remembers a payment whose creation was acknowledged. Another key that made the same one is a violation.
    pub(super) fn remember(&self, world: &World, shop: usize, plan: Plan, made: &Value) -> String {
        let id = made["id"].as_str().unwrap_or_default().to_owned();
        let mut payments = locked(&self.payments);
        let place = payments.list.len();
        if payments.places.insert(id.clone(), place).is_some() {
            world.violated(format!("{id} was made by two keys"));
        }
        payments.list.push(Remembered { id: id.clone(), shop, plan, made: made.clone(), end: None, shown: None });
        id
    }

    /// Returns how many payments are remembered.
    pub(super) fn len(&self) -> usize {
        locked(&self.payments).list.len()
    }

    /// Returns every payment since so many.
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

    /// Remembers that a payment by HTTP 402 was told to have succeeded.
    pub(super) fn settled(&self, id: &str, shown: Shown) {
        self.change(id, |payment| payment.shown = Some(shown));
    }

    /// Holds a record against what was acknowledged, and remembers its end.
    pub(super) fn hold(&self, world: &World, payment: &Remembered, record: &Value) {
        for member in TERMS {
            // The address of the checkout page has the gateway's port in it, which is another after every start.
            let same = match member {
                "checkoutUrl" => record[member].is_string(),
                "amount" => record[member]["value"] == payment.made[member]["value"],
                _ => record[member] == payment.made[member],
            };
            if !same {
                let (is, was) = (&record[member], &payment.made[member]);
                world.violated(format!("{}: {member} is {is} and was acknowledged as {was}", payment.id));
            }
        }
        let end = end(record);
        // What was known when it was asked for: another client may have learned of an end since.
        if payment.end.is_some() && payment.end != end {
            world.violated(format!("{}: its end was {:?} and is {end:?}", payment.id, payment.end));
        }
        if let Some(shown) = &payment.shown
            && (record["status"] != "completed" || record["internalId"] != shown.receipt["txId"])
        {
            let (status, by) = (&record["status"], &record["internalId"]);
            world.violated(format!("{}: receipt {} and yet {status} by {by}", payment.id, shown.receipt));
        }
        self.change(&payment.id, |remembered| match (&remembered.end, end) {
            (Some(was), Some(is)) if *was != is => {
                world.violated(format!("{}: its end was {was} and is {is}", payment.id));
            }
            (None, Some(is)) => remembered.end = Some(is),
            _ => {}
        });
    }
}

/// Returns what can never change again about a payment; none while it is open.
fn end(record: &Value) -> Option<Value> {
    let is_over = ["completed", "user_cancelled", "system_cancelled", "failed"].iter().any(|s| record["status"] == *s);
    is_over.then(|| json!([record["status"], record["internalId"], record["completedAt"], record["cancelledBy"]]))
}
