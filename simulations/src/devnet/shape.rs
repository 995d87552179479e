//! The shapes of responses: amounts, transactions, operations and headers in both forms.

use engine::{
    hive::{Asset, Form, Operation, Symbol},
    ledger::TxId,
};
use serde_json::{Value, json};

use crate::ledger::{Block, Included, VirtualOperation};

/// How an API writes amounts and operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// `condenser_api`: `"1.000 HBD"`, `["transfer", {…}]`.
    Condenser,
    /// The other APIs: `{"amount":"1000","precision":3,"nai":"@@000000013"}`, `{"type":"transfer_operation", …}`.
    Nai,
}

impl Shape {
    pub(super) fn amount(self, asset: Asset) -> Value {
        match self {
            Self::Condenser => Value::from(asset.to_string()),
            Self::Nai => json!({
                "amount": asset.units.to_string(),
                "precision": asset.symbol.precision(),
                "nai": asset.symbol.nai(),
            }),
        }
    }

    pub(super) fn units(self, units: i64, symbol: Symbol) -> Value {
        self.amount(Asset { units, symbol })
    }

    pub(super) const fn form(self) -> Form {
        match self {
            Self::Condenser => Form::Condenser,
            Self::Nai => Form::Hf26,
        }
    }

    pub(super) fn operation(self, operation: &Operation) -> Value {
        let mut text = String::new();
        operation.write(&mut text, self.form());
        serde_json::from_str(&text).expect("an operation is JSON")
    }

    pub(super) fn virtual_operation(self, operation: &VirtualOperation) -> Value {
        let (name, members) = match operation {
            VirtualOperation::FillRecurrentTransfer { from, to, amount, memo, remaining_executions } => (
                "fill_recurrent_transfer",
                json!({
                    "from": from.as_str(), "to": to.as_str(), "amount": self.amount(*amount), "memo": memo,
                    "remaining_executions": remaining_executions, "extensions": [],
                }),
            ),
            VirtualOperation::FailedRecurrentTransfer {
                from,
                to,
                amount,
                memo,
                remaining_executions,
                consecutive_failures,
            } => (
                "failed_recurrent_transfer",
                json!({
                    "from": from.as_str(), "to": to.as_str(), "amount": self.amount(*amount), "memo": memo,
                    "consecutive_failures": consecutive_failures, "remaining_executions": remaining_executions,
                    "deleted": *remaining_executions == 0 || *consecutive_failures >= 10, "extensions": [],
                }),
            ),
            VirtualOperation::FillTransferFromSavings { from, to, amount, request_id, memo } => (
                "fill_transfer_from_savings",
                json!({
                    "from": from.as_str(), "to": to.as_str(), "amount": self.amount(*amount),
                    "request_id": request_id, "memo": memo,
                }),
            ),
        };
        self.named(name, &members)
    }

    /// The first virtual operation of every block. This chain pays no rewards, so the amounts are 0.
    fn producer_reward(self, block: &Block) -> Value {
        let nothing = Asset { units: 0, symbol: Symbol::Vests };
        let members = json!({ "producer": block.header.witness, "vesting_shares": self.amount(nothing) });
        self.named("producer_reward", &members)
    }

    fn named(self, name: &str, members: &Value) -> Value {
        match self {
            Self::Condenser => json!([name, members]),
            Self::Nai => json!({ "type": format!("{name}_operation"), "value": members }),
        }
    }

    /// A transaction without its id, as blocks of `block_api` hold it.
    pub(super) fn transaction(self, included: &Included) -> Value {
        serde_json::from_str(&included.transaction.to_json(self.form())).expect("a transaction is JSON")
    }

    /// A transaction with its position, as in every other response.
    pub(super) fn placed_transaction(self, included: &Included, block: u32, place: usize) -> Value {
        let mut json = self.transaction(included);
        json["transaction_id"] = Value::from(included.id.to_string());
        json["block_num"] = Value::from(block);
        json["transaction_num"] = Value::from(place);
        json
    }

    /// A block, with everything that JSON-RPC returns of it.
    pub(super) fn block(self, block: &Block, signing_key: &str) -> Value {
        let transactions: Vec<Value> = block
            .transactions
            .iter()
            .enumerate()
            .map(|(place, included)| match self {
                Self::Condenser => self.placed_transaction(included, block.number(), place),
                Self::Nai => self.transaction(included),
            })
            .collect();
        let mut json = header(block);
        json["witness_signature"] = Value::from(block.witness_signature.to_string());
        json["transactions"] = Value::from(transactions);
        json["block_id"] = Value::from(block.id.to_string());
        json["signing_key"] = Value::from(signing_key);
        json["transaction_ids"] = block.transactions.iter().map(|included| included.id.to_string()).collect();
        json
    }

    /// The operations of a block, its virtual operations, and `foreign` virtual operations.
    pub(super) fn happenings(self, block: &Block, only_virtual: bool, foreign: Vec<Value>) -> Vec<Value> {
        let time = block.time().to_ledger();
        let entry = |tx_id: TxId, tx_in_block: u32, op_in_trx: usize, is_virtual: bool, op: Value| {
            let mut json = json!({
                "trx_id": tx_id.to_string(), "block": block.number(), "trx_in_block": tx_in_block,
                "op_in_trx": op_in_trx, "virtual_op": is_virtual, "timestamp": time, "op": op,
            });
            if self == Self::Nai {
                json["operation_id"] = Value::from(0);
            }
            json
        };
        let mut entries = Vec::new();
        if !only_virtual {
            for (place, included) in (0u32..).zip(&block.transactions) {
                for (op_in_trx, operation) in included.transaction.operations.iter().enumerate() {
                    entries.push(entry(included.id, place, op_in_trx, false, self.operation(operation)));
                }
            }
        }
        let virtual_operations = block.virtual_operations.iter().map(|operation| self.virtual_operation(operation));
        let virtual_operations = std::iter::once(self.producer_reward(block)).chain(virtual_operations).chain(foreign);
        for (op_in_trx, operation) in (1..).zip(virtual_operations) {
            entries.push(entry(TxId::default(), u32::MAX, op_in_trx, true, operation));
        }
        entries
    }
}

/// A block's header.
pub(super) fn header(block: &Block) -> Value {
    json!({
        "previous": block.header.previous.to_string(),
        "timestamp": block.time().to_ledger(),
        "witness": block.header.witness,
        "transaction_merkle_root": hex::encode(block.header.transaction_merkle_root),
        "extensions": [],
    })
}
