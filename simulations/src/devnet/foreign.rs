//! Blocks of a later hard fork: nodes return operations and extensions that this version does not know.
//!
//! The chain itself does not change; only the responses with whole blocks are changed, for all nodes alike.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{failure::Failure, params::read, shape::Shape};

/// What nodes add to blocks from a number on, until the next such call.
#[derive(Debug)]
pub(super) struct Foreign {
    first_block: u32,
    operations: Vec<Value>,
    virtual_operations: Vec<Value>,
    place: Where,
    extensions: Vec<Value>,
}

/// The position of the operations.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Where {
    /// First in every transaction.
    Before,
    /// Last in every transaction.
    After,
    /// In a transaction of their own, before all others.
    #[default]
    Alone,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Order {
    operations: Vec<Value>,
    #[serde(default)]
    virtual_operations: Vec<Value>,
    #[serde(default)]
    place: Where,
    #[serde(default)]
    extensions: Vec<Value>,
}

impl Foreign {
    /// Reads what nodes add to blocks from `first_block` on.
    pub(super) fn read(first_block: u32, params: &Value) -> Result<Self, Failure> {
        let Order { operations, virtual_operations, place, extensions } = read(params)?;
        Ok(Self { first_block, operations, virtual_operations, place, extensions })
    }
}

/// Returns the virtual operations that nodes add to those of a block.
pub(super) fn virtual_operations(orders: &[Foreign], number: u32, shape: Shape) -> Vec<Value> {
    let shown = in_force(orders, number).map(|order| order.virtual_operations.as_slice()).unwrap_or_default();
    shown.iter().map(|operation| shaped(shape, operation)).collect()
}

fn in_force(orders: &[Foreign], number: u32) -> Option<&Foreign> {
    orders.iter().rev().find(|order| order.first_block <= number)
}

/// Changes a block that a node returns.
pub(super) fn show(orders: &[Foreign], number: u32, shape: Shape, block: &mut Value) {
    let Some(order) = in_force(orders, number) else { return };
    if order.operations.is_empty() {
        return;
    }
    let added = order.operations.iter().map(|operation| shaped(shape, operation));
    if let (Where::Alone, Some(transactions), Some(time)) =
        (order.place, block["transactions"].as_array().cloned(), block["timestamp"].as_str())
    {
        let own = json!({
            "ref_block_num": 0, "ref_block_prefix": 0, "expiration": time, "operations": added.collect::<Vec<_>>(),
            "extensions": order.extensions, "signatures": [],
        });
        let id = Value::from(format!("{number:08x}{}", "f".repeat(32)));
        let ids = block["transaction_ids"].as_array().cloned().unwrap_or_default();
        block["transactions"] = std::iter::once(own).chain(transactions).collect();
        block["transaction_ids"] = std::iter::once(id).chain(ids).collect();
        return;
    }
    let added: Vec<Value> = added.collect();
    for transaction in block["transactions"].as_array_mut().into_iter().flatten() {
        let own = transaction["operations"].as_array().cloned().unwrap_or_default();
        let [first, second] = if matches!(order.place, Where::Before) { [&added, &own] } else { [&own, &added] };
        let operations = first.iter().chain(second).cloned().collect();
        transaction["operations"] = operations;
        transaction["extensions"] = Value::from(order.extensions.clone());
    }
}

/// Encodes an operation like an API; values that are no operation of the newer form are unchanged.
fn shaped(shape: Shape, operation: &Value) -> Value {
    match (shape, operation["type"].as_str()) {
        (Shape::Condenser, Some(name)) => json!([name.trim_end_matches("_operation"), operation["value"]]),
        _ => operation.clone(),
    }
}
