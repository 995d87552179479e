//! Broadcasts, and the calls of wallets before them.

use std::collections::BTreeSet;

use engine::{
    hive::{Pack, PublicKey, Transaction},
    ledger::TxId,
};
use serde_json::{Value, json};

use super::{
    failure::Failure,
    node_api::{CallResult, NodeApi, param, texts},
};
use crate::ledger::Refused;

impl NodeApi<'_> {
    pub(super) fn broadcast(&mut self, api: &str, params: &Value) -> CallResult {
        self.submit(api, params)?;
        Ok(json!({}))
    }

    /// Broadcasts a transaction whose sender waits for its block: the response is completed when it is in one.
    pub(super) fn broadcast_synchronously(&mut self, api: &str, params: &Value) -> CallResult {
        let id = self.submit(api, params)?;
        Ok(json!({ "id": id.to_string(), "expiration": param(params, 0, "trx")?["expiration"] }))
    }

    fn submit(&mut self, api: &str, params: &Value) -> Result<TxId, Failure> {
        let transaction = read_transaction(api, params)?;
        let oldest = params.get("max_block_age").and_then(Value::as_i64).and_then(|age| u64::try_from(age).ok());
        if let Some(oldest) = oldest {
            let seconds = self.host.now().since(self.view().head().1).as_secs();
            if seconds >= oldest {
                return Err(Refused::StaleHead { seconds }.into());
            }
        }
        if self.view().refuses_broadcasts() {
            return Err(Refused::Expired.into());
        }
        if self.view().swallows_broadcasts() {
            return Ok(transaction.id(Pack::Legacy));
        }
        Ok(self.host.chain.broadcast(transaction)?)
    }

    /// Checks signatures and authority only. `condenser_api` knows the legacy packing alone, as on a real node.
    pub(super) fn verify_authority(&self, api: &str, params: &Value) -> CallResult {
        let transaction = read_transaction(api, params)?;
        let pack = match params.get("pack").and_then(Value::as_str) {
            Some("hf26") => Pack::Hf26,
            None | Some("legacy") => Pack::Legacy,
            Some(_) => return Err(Failure::params("pack is legacy or hf26")),
        };
        self.host.chain.verify_authority(&transaction, pack)?;
        Ok(if api == "condenser_api" { Value::Bool(true) } else { json!({ "valid": true }) })
    }

    pub(super) fn transaction_hex(&self, api: &str, params: &Value) -> CallResult {
        let hex = hex::encode(read_transaction(api, params)?.signed_bytes(Pack::Legacy));
        Ok(if api == "condenser_api" { Value::from(hex) } else { json!({ "hex": hex }) })
    }

    /// Every key that could sign for a required account or its delegates.
    pub(super) fn potential_signatures(&self, params: &Value) -> CallResult {
        let keys = self.potential(&read_transaction("condenser_api", params)?)?;
        Ok(keys.into_iter().map(|key| key.to_string()).collect())
    }

    /// Those of the offered keys that could sign.
    pub(super) fn required_signatures(&self, params: &Value) -> CallResult {
        let potential = self.potential(&read_transaction("condenser_api", params)?)?;
        let offered = texts(params, 1, "available_keys")?;
        Ok(offered.into_iter().filter(|key| PublicKey::parse(key).is_ok_and(|key| potential.contains(&key))).collect())
    }

    fn potential(&self, transaction: &Transaction) -> Result<BTreeSet<PublicKey>, Failure> {
        let accounts = self.authorities();
        let mut keys = BTreeSet::new();
        for (role, name) in transaction.required().map_err(Refused::from)? {
            let mut level = vec![name];
            for _depth in 0..=2 {
                let authorities: Vec<_> = level
                    .iter()
                    .filter_map(|name| engine::hive::Authorities::authority(&accounts, role, name))
                    .collect();
                keys.extend(authorities.iter().flat_map(|authority| authority.key_auths.keys()));
                level = authorities.iter().flat_map(|authority| authority.account_auths.keys().cloned()).collect();
            }
        }
        Ok(keys)
    }
}

/// Reads a transaction in the forms that the API takes: condenser_api only its own, the others both.
fn read_transaction(api: &str, params: &Value) -> Result<Transaction, Failure> {
    let json = param(params, 0, "trx")?;
    let first = &json["operations"][0];
    if api == "condenser_api" && first.is_object() {
        return Err(Failure::params("Invalid cast from type 'object_type' to Array"));
    }
    Transaction::parse(json.to_string().as_bytes()).map_err(|error| Refused::from(error).into())
}
