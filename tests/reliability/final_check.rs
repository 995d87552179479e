//! The final comparison of the ledger's own blocks with the gateway's records, its events and the webhooks.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{
    client::look,
    environment::Environment,
    model::{Model, Remembered},
    seconds,
};
use crate::harness::{Hook, Ledger, Shop};

/// One transfer in a block.
#[derive(Debug, Clone)]
pub(super) struct Moved {
    tx_id: String,
    units: u64,
    block_time: String,
}

impl Moved {
    pub(super) const fn units(&self) -> u64 {
        self.units
    }
}

/// The transfers of all blocks, by memo.
pub(super) type Chain = BTreeMap<String, Vec<Moved>>;

/// Reads every block from the ledger itself.
pub(super) fn read_chain(ledger: &Ledger) -> Chain {
    let mut chain = Chain::new();
    let mut next = 1;
    loop {
        let params = json!({ "starting_block_num": next, "count": 200 });
        let range = ledger.call("block_api.get_block_range", &params).expect("blocks");
        let blocks = range["blocks"].as_array().expect("a list");
        if blocks.is_empty() {
            return chain;
        }
        next += blocks.len();
        for block in blocks {
            let ids = block["transaction_ids"].as_array().into_iter().flatten();
            for (id, transaction) in ids.zip(block["transactions"].as_array().into_iter().flatten()) {
                for operation in transaction["operations"].as_array().into_iter().flatten() {
                    let value = &operation["value"];
                    let (Some(memo), Some(units)) = (value["memo"].as_str(), number(&value["amount"]["amount"])) else {
                        continue;
                    };
                    chain.entry(memo.to_owned()).or_default().push(Moved {
                        tx_id: id.as_str().unwrap_or_default().to_owned(),
                        units,
                        block_time: seconds(&block["timestamp"]).to_owned(),
                    });
                }
            }
        }
    }
}

fn number(value: &Value) -> Option<u64> {
    value.as_str()?.parse().ok()
}

/// Sums for the report.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) by_status: BTreeMap<String, u64>,
    /// Units on which records and blocks agree.
    pub(super) units: u64,
}

/// Compares one payment with the blocks. Returns the difference, which may only be late, or none.
pub(super) fn differs(
    environment: &Environment,
    model: &Model,
    chain: &Chain,
    now: &str,
    payment: &Remembered,
    sums: &mut Sums,
) -> Option<String> {
    let record = look(environment, model, payment)?;
    let none = Vec::new();
    let moved = chain.get(&format!("pos-{}", payment.id)).unwrap_or(&none);
    let reported: BTreeSet<_> = list(&record["transfers"]).iter().filter_map(|t| reported_of(t)).collect();
    let real: BTreeSet<_> = moved.iter().map(|moved| (moved.tx_id.as_str(), moved.units)).collect();
    if reported != real {
        return Some(format!("{}: the blocks have {real:?}, the record has {reported:?}", payment.id));
    }
    if payment.plan.is_x402() && payment.shown.is_some() && moved.len() != 1 {
        return Some(format!("{}: settled once and {} times on the ledger", payment.id, moved.len()));
    }
    let (asked, expires) = (number(&record["amount"]["value"])?, seconds(&record["expiresAt"]));
    let in_time: u64 = moved.iter().filter(|m| m.block_time.as_str() <= expires).map(|m| m.units).sum();
    let is_paid = in_time >= asked;
    let is_right = match record["status"].as_str()? {
        "completed" => is_paid && number(&record["amountPaid"])? >= asked,
        "user_cancelled" => {
            let cutoff = seconds(&record["cutoff"]);
            payment.plan.may_be_cancelled() && moved.iter().all(|moved| moved.block_time.as_str() > cutoff)
        }
        "system_cancelled" => !is_paid && expires < now,
        "pending" => !is_paid && expires >= now,
        _ => false,
    };
    if !is_right {
        return Some(format!("{} ({:?}): {in_time} of {asked} came in time; {record}", payment.id, payment.plan));
    }
    *sums.by_status.entry(record["status"].as_str()?.to_owned()).or_default() += 1;
    sums.units += moved.iter().map(|moved| moved.units).sum::<u64>();
    None
}

fn reported_of(transfer: &Value) -> Option<(&str, u64)> {
    let is_final = transfer["finality"] == "irreversible";
    Some((transfer["txId"].as_str()?, number(&transfer["amount"]["value"])?)).filter(|_| is_final)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Reads a shop's events from a cursor, which advances.
pub(super) fn read_events(environment: &Environment, shop: &Shop, cursor: &mut String) -> Vec<Value> {
    let mut events = Vec::new();
    loop {
        let path = format!("/api/public/events?limit=100&after={cursor}");
        let Some(response) = environment.request(|api| api.get(&path).bearer(&shop.key)) else { return events };
        if response.status != 200 {
            environment.record_violation(format!("events after {cursor:?}: {} {}", response.status, response.text()));
            return events;
        }
        let part = response.json();
        events.extend_from_slice(list(&part["events"]));
        part["nextCursor"].as_str().unwrap_or_default().clone_into(cursor);
        if part["hasMore"] != true {
            return events;
        }
    }
}

/// The event type that every endpoint receives.
const STATUS_CHANGED: &str = "payment.status_changed";

/// Compares a shop's events with its payments and with its endpoint's requests. Returns what is missing.
pub(super) fn untold(shop: &Shop, ends: &BTreeMap<String, String>, events: &[Value], hooks: &[Hook]) -> Vec<String> {
    let mut missing = Vec::new();
    let mut reported: BTreeMap<(&str, u64), BTreeSet<&str>> = BTreeMap::new();
    let mut ended: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut bodies = BTreeMap::new();
    for event in events {
        let (data, id) = (&event["data"], event["id"].as_str().unwrap_or_default());
        let of = data["id"].as_str().unwrap_or_default();
        if bodies.insert(id, event).is_some() {
            missing.push(format!("{id} stands twice in the list of {}", shop.id));
        }
        reported.entry((of, data["sequence"].as_u64().unwrap_or_default())).or_default().insert(id);
        if event["type"] == STATUS_CHANGED && data["status"] != "processing" {
            ended.entry(of).or_default().push(data["status"].as_str().unwrap_or_default());
        }
    }
    for ((payment, sequence), ids) in &reported {
        if ids.len() != 1 {
            missing.push(format!("{payment} has the events {ids:?} for its sequence {sequence}"));
        }
    }
    for (payment, status) in ends {
        if ended.get(payment.as_str()).map(Vec::as_slice) != Some(&[status.as_str()]) {
            missing.push(format!("{payment} is {status} and its events have {:?}", ended.get(payment.as_str())));
        }
    }
    let came: BTreeSet<String> = hooks.iter().map(|hook| hook.header("webhook-id").to_owned()).collect();
    // The endpoint subscribes to no other type.
    let is_sent = |id: &&&str| bodies[**id]["type"] == STATUS_CHANGED;
    for id in bodies.keys().filter(is_sent).filter(|id| !came.contains(**id)) {
        missing.push(format!("no webhook for {id}: {}", bodies[id]["data"]["id"]));
    }
    for hook in hooks {
        match bodies.get(hook.header("webhook-id")) {
            Some(event) if **event == hook.json() => {}
            Some(event) => missing.push(format!("a webhook contains {} and the list {event}", hook.json())),
            None => missing.push(format!("a webhook is missing in the list: {}", hook.json())),
        }
    }
    missing
}
