//! The dev ledger as a payer and a tester see it: JSON-RPC to its node, orders to its control port.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use engine::{
    hive::{Asset, ChainId, Operation, Pack, PrivateKey, RecurrentTransfer, Transaction, Transfer, tapos_of},
    ledger::BlockId,
    time::Timestamp,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::http::Api;

/// A dev ledger.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    pub(crate) rpc: Api,
    pub(crate) control: Api,
}

/// An account with its active key.
#[derive(Clone, Debug)]
pub(crate) struct Payer {
    pub(crate) name: String,
    pub(crate) key: String,
}

impl Payer {
    /// Signs a text as Keychain's `requestSignBuffer` does: its SHA-256.
    pub(crate) fn sign(&self, text: &str) -> String {
        let key = PrivateKey::from_wif(&self.key).expect("a key");
        let digest: [u8; 32] = Sha256::digest(text).into();
        key.sign(&digest).0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Ledger {
    pub(crate) fn new(rpc: &str, control: &str) -> Self {
        Self { rpc: Api::new(rpc), control: Api::new(control) }
    }

    /// Sends a command to the ledger's control port.
    #[track_caller]
    pub(crate) fn order(&self, method: &str, params: &Value) -> Value {
        self.call_at(&self.control, &format!("control.{method}"), params).expect("the order is followed")
    }

    /// Calls a method of the node.
    #[track_caller]
    pub(crate) fn call(&self, method: &str, params: &Value) -> Result<Value, Value> {
        self.call_at(&self.rpc, method, params)
    }

    #[track_caller]
    fn call_at(&self, api: &Api, method: &str, params: &Value) -> Result<Value, Value> {
        try_call(api, method, params).expect("the ledger responds")
    }

    /// Calls a method of a node that may be unreachable.
    pub(crate) fn try_call(&self, method: &str, params: &Value) -> Option<Result<Value, Value>> {
        try_call(&self.rpc, method, params)
    }

    /// Produces blocks now.
    #[track_caller]
    pub(crate) fn produce(&self, count: u32) {
        self.order("produce", &json!({ "count": count }));
    }

    /// Produces blocks automatically, or on request only.
    #[track_caller]
    pub(crate) fn auto_produce(&self, on: bool) {
        self.order("auto_produce", &json!({ "on": on }));
    }

    /// Stops finality, or lets it catch up.
    #[track_caller]
    pub(crate) fn hold_irreversibility(&self, held: bool) {
        self.order("hold_irreversibility", &json!({ "held": held }));
    }

    /// Moves the chain's clock.
    #[track_caller]
    pub(crate) fn advance(&self, seconds: u64) {
        self.order("advance_time", &json!({ "seconds": seconds, "blocks": 6 }));
    }

    /// Disconnects the node, or connects it again.
    #[track_caller]
    pub(crate) fn disconnect(&self, disconnected: bool) {
        self.order("node", &json!({ "disconnected": disconnected }));
    }

    /// Creates an account of this run with a balance in both currencies.
    #[track_caller]
    pub(crate) fn account(&self, prefix: &str) -> Payer {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("{prefix}{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let params = json!({ "name": name, "balances": ["1000000.000 HBD", "1000000.000 HIVE"] });
        let made = self.order("create_account", &params);
        let key = made["keys"]["active"].as_str().expect("its key").to_owned();
        Payer { name, key }
    }

    /// Signs a transfer as a wallet does and broadcasts it. Returns the transaction's id.
    #[track_caller]
    pub(crate) fn transfer(&self, payer: &Payer, to: &str, amount: &str, memo: &str) -> String {
        self.try_transfers(payer, &[(to, amount, memo)]).expect("the node takes the transfer")
    }

    /// Broadcasts several transfers in one transaction, which the node may reject.
    #[track_caller]
    pub(crate) fn try_transfers(&self, payer: &Payer, transfers: &[(&str, &str, &str)]) -> Result<String, Value> {
        let transaction = self.signed(payer, transfers);
        self.broadcast(&transaction)?;
        Ok(transaction.id(Pack::Legacy).to_string())
    }

    /// Signs without sending.
    #[track_caller]
    pub(crate) fn signed(&self, payer: &Payer, transfers: &[(&str, &str, &str)]) -> Transaction {
        self.try_signed(payer, transfers).expect("the node is there")
    }

    /// Signs where the node, which returns the reference block, may be unreachable.
    pub(crate) fn try_signed(&self, payer: &Payer, transfers: &[(&str, &str, &str)]) -> Option<Transaction> {
        let operation = |(to, amount, memo): &(&str, &str, &str)| {
            Operation::Transfer(Transfer {
                from: payer.name.clone(),
                to: (*to).to_owned(),
                amount: Asset::parse(amount).expect("an amount"),
                memo: (*memo).to_owned(),
            })
        };
        self.signed_operations(payer, transfers.iter().map(operation).collect())
    }

    /// Creates a recurrent transfer of two payments, a day apart; the first is executed at once.
    #[track_caller]
    pub(crate) fn create_recurrent_transfer(&self, payer: &Payer, to: &str, amount: &str, memo: &str) {
        let agreement = RecurrentTransfer {
            from: payer.name.clone(),
            to: to.to_owned(),
            amount: Asset::parse(amount).expect("an amount"),
            memo: memo.to_owned(),
            recurrence: 24,
            executions: 2,
            extensions: Vec::new(),
        };
        let agreed = self.signed_operations(payer, vec![Operation::RecurrentTransfer(agreement)]);
        let transaction = agreed.expect("the node is there");
        self.broadcast(&transaction).expect("the node takes the agreement");
    }

    fn signed_operations(&self, payer: &Payer, operations: Vec<Operation>) -> Option<Transaction> {
        // Transactions with equal contents have equal ids, so that something in them must differ.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let spread = COUNT.fetch_add(1, Ordering::Relaxed) % 500;
        let head = self.try_call("condenser_api.get_dynamic_global_properties", &json!([]))?.ok()?;
        let text = |member: &str| head[member].as_str().expect("a text").to_owned();
        let block = BlockId::parse(&text("head_block_id")).expect("a block's id");
        let (ref_block_num, ref_block_prefix) = tapos_of(block);
        let time = Timestamp::parse_ledger(&text("time")).expect("a time");
        let mut transaction = Transaction {
            ref_block_num,
            ref_block_prefix,
            expiration: time + Duration::from_secs(60 + spread),
            operations,
            signatures: Vec::new(),
        };
        let key = PrivateKey::from_wif(&payer.key).expect("a key");
        transaction.sign(ChainId::MAINNET, Pack::Legacy, &key);
        Some(transaction)
    }

    /// Broadcasts a signed transaction.
    #[track_caller]
    pub(crate) fn broadcast(&self, transaction: &Transaction) -> Result<(), Value> {
        self.try_broadcast(transaction).expect("the node responds")
    }

    /// Broadcasts a signed transaction to a node that may be unreachable.
    pub(crate) fn try_broadcast(&self, transaction: &Transaction) -> Option<Result<(), Value>> {
        let json: Value = serde_json::from_str(&transaction.to_condenser_json()).expect("JSON");
        Some(self.try_call("condenser_api.broadcast_transaction", &json!([json]))?.map(|_| ()))
    }
}

fn try_call(api: &Api, method: &str, params: &Value) -> Option<Result<Value, Value>> {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let response: Value = serde_json::from_slice(&api.post("/", &body).try_send().ok()?.body).ok()?;
    Some(match response.get("error") {
        Some(error) => Err(error.clone()),
        None => Ok(response["result"].clone()),
    })
}
