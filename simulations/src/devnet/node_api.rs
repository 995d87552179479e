//! The API of a node: its methods, and how their parameters are read.

use serde_json::Value;

use super::{failure::Failure, host::Host, shape::Shape};
use crate::ledger::View;

/// The node that executes a call.
pub(super) struct NodeApi<'h> {
    pub(super) host: &'h mut Host,
    pub(super) node: usize,
}

/// The result of a call.
pub(super) type CallResult = Result<Value, Failure>;

/// Every method, as `jsonrpc.get_methods` lists them.
pub(super) const METHODS: &[&str] = &[
    "account_by_key_api.get_key_references",
    "account_history_api.get_account_history",
    "account_history_api.get_ops_in_block",
    "account_history_api.get_transaction",
    "block_api.get_block",
    "block_api.get_block_header",
    "block_api.get_block_range",
    "condenser_api.broadcast_transaction",
    "condenser_api.broadcast_transaction_synchronous",
    "condenser_api.get_account_count",
    "condenser_api.get_account_history",
    "condenser_api.get_accounts",
    "condenser_api.get_active_witnesses",
    "condenser_api.get_block",
    "condenser_api.get_block_header",
    "condenser_api.get_chain_properties",
    "condenser_api.get_config",
    "condenser_api.get_conversion_requests",
    "condenser_api.get_current_median_history_price",
    "condenser_api.get_dynamic_global_properties",
    "condenser_api.get_expiring_vesting_delegations",
    "condenser_api.get_feed_history",
    "condenser_api.get_follow_count",
    "condenser_api.get_hardfork_version",
    "condenser_api.get_key_references",
    "condenser_api.get_next_scheduled_hardfork",
    "condenser_api.get_open_orders",
    "condenser_api.get_order_book",
    "condenser_api.get_ops_in_block",
    "condenser_api.get_potential_signatures",
    "condenser_api.get_required_signatures",
    "condenser_api.get_reward_fund",
    "condenser_api.get_transaction",
    "condenser_api.get_transaction_hex",
    "condenser_api.get_version",
    "condenser_api.get_vesting_delegations",
    "condenser_api.get_withdraw_routes",
    "condenser_api.get_witness_schedule",
    "condenser_api.get_witnesses_by_vote",
    "condenser_api.is_known_transaction",
    "condenser_api.lookup_account_names",
    "condenser_api.lookup_accounts",
    "condenser_api.verify_account_authority",
    "condenser_api.verify_authority",
    "database_api.find_accounts",
    "database_api.find_hbd_conversion_requests",
    "database_api.find_limit_orders",
    "database_api.find_vesting_delegations",
    "database_api.find_withdraw_vesting_routes",
    "database_api.find_witnesses",
    "database_api.get_active_witnesses",
    "database_api.get_config",
    "database_api.get_current_price_feed",
    "database_api.get_dynamic_global_properties",
    "database_api.get_feed_history",
    "database_api.get_hardfork_properties",
    "database_api.get_reward_funds",
    "database_api.get_transaction_hex",
    "database_api.get_version",
    "database_api.get_witness_schedule",
    "database_api.is_known_transaction",
    "database_api.list_accounts",
    "database_api.list_hbd_conversion_requests",
    "database_api.list_vesting_delegations",
    "database_api.list_witnesses",
    "database_api.verify_account_authority",
    "database_api.verify_authority",
    "jsonrpc.get_methods",
    "network_broadcast_api.broadcast_transaction",
    "network_broadcast_api.broadcast_transaction_synchronous",
    "rc_api.find_rc_accounts",
    "transaction_status_api.find_transaction",
];

impl NodeApi<'_> {
    pub(super) fn call(&mut self, method: &str, params: &Value) -> CallResult {
        let Some((api, name)) = method.split_once('.') else {
            return Err(Failure::method(
                "api_itr != data._registered_apis.end()",
                &format!("Could not find API {method}"),
            ));
        };
        if self.host.nodes[self.node].lacks_apis.iter().any(|lacking| lacking == api) {
            return Err(Failure::method(
                "api_itr != data._registered_apis.end()",
                &format!("Could not find API {api}"),
            ));
        }
        let found = self
            .call_globals(api, name, params)
            .or_else(|| self.call_blocks(api, name, params))
            .or_else(|| self.call_accounts(api, name, params));
        let found = match found {
            None => self.call_transactions(api, name, params),
            found => found,
        };
        found.unwrap_or_else(|| Self::unknown_method(api, name))
    }

    /// Calls a method about the chain as a whole.
    fn call_globals(&self, api: &str, name: &str, params: &Value) -> Option<CallResult> {
        Some(match (api, name) {
            ("condenser_api", "get_dynamic_global_properties") => Ok(self.properties(Shape::Condenser)),
            ("database_api", "get_dynamic_global_properties") => Ok(self.properties(Shape::Nai)),
            ("condenser_api" | "database_api", "get_config") => Ok(self.config()),
            ("condenser_api" | "database_api", "get_version") => Ok(self.version()),
            ("condenser_api", "get_chain_properties") => Ok(self.chain_properties()),
            ("condenser_api", "get_hardfork_version") => Ok(Value::from("1.28.0")),
            ("condenser_api", "get_next_scheduled_hardfork") => Ok(self.next_hardfork()),
            ("database_api", "get_hardfork_properties") => Ok(self.hardforks()),
            ("condenser_api", "get_current_median_history_price") => Ok(self.price(Shape::Condenser)),
            ("database_api", "get_current_price_feed") => Ok(self.price(Shape::Nai)),
            ("condenser_api", "get_feed_history") => Ok(self.feed(Shape::Condenser)),
            ("database_api", "get_feed_history") => Ok(self.feed(Shape::Nai)),
            ("condenser_api", "get_order_book") => Ok(self.order_book()),
            ("condenser_api", "get_active_witnesses") => Ok(self.witnesses()),
            ("database_api", "get_active_witnesses") => Ok(serde_json::json!({ "witnesses": self.witnesses() })),
            ("condenser_api", "get_reward_fund") => self.reward_fund(params),
            ("database_api", "get_reward_funds") => Ok(serde_json::json!({ "funds": [self.post_fund(Shape::Nai)] })),
            ("condenser_api", "get_witness_schedule") => Ok(self.witness_schedule(Shape::Condenser)),
            ("database_api", "get_witness_schedule") => Ok(self.witness_schedule(Shape::Nai)),
            ("rc_api", "find_rc_accounts") => self.rc_accounts(params),
            ("jsonrpc", "get_methods") => Ok(Value::from(METHODS.to_vec())),
            _ => return None,
        })
    }

    /// Calls a method about blocks, operations and transactions in blocks.
    fn call_blocks(&self, api: &str, name: &str, params: &Value) -> Option<CallResult> {
        Some(match (api, name) {
            ("condenser_api", "get_block") => self.condenser_block(params),
            ("condenser_api", "get_block_header") => self.condenser_header(params),
            ("block_api", "get_block") => self.block(params),
            ("block_api", "get_block_header") => self.header(params),
            ("block_api", "get_block_range") => self.block_range(params),
            ("condenser_api", "get_ops_in_block") => self.condenser_operations(params),
            ("condenser_api", "get_account_history") => self.condenser_account_history(params),
            ("account_history_api", "get_account_history") => self.account_history(params),
            ("account_history_api", "get_ops_in_block") => self.operations(params),
            ("condenser_api", "get_transaction") => self.condenser_transaction(params),
            ("account_history_api", "get_transaction") => self.transaction(params),
            ("transaction_status_api", "find_transaction") => self.find_transaction(params),
            ("condenser_api" | "database_api", "is_known_transaction") => self.is_known_transaction(api, params),
            _ => return None,
        })
    }

    /// Calls a method about accounts.
    fn call_accounts(&self, api: &str, name: &str, params: &Value) -> Option<CallResult> {
        Some(match (api, name) {
            ("condenser_api", "get_accounts") => self.condenser_accounts(params),
            ("condenser_api", "lookup_account_names") => self.lookup_account_names(params),
            ("condenser_api", "lookup_accounts") => self.lookup_accounts(params),
            ("condenser_api", "get_account_count") => Ok(Value::from(self.host.chain.accounts().count())),
            ("database_api", "find_accounts") => self.find_accounts(params),
            ("database_api", "list_accounts") => self.list_accounts(params),
            ("condenser_api" | "account_by_key_api", "get_key_references") => self.key_references(api, params),
            ("condenser_api" | "database_api", "verify_account_authority") => {
                self.verify_account_authority(api, params)
            }
            _ => return None,
        })
    }

    /// Calls a method about transactions that are sent, signed or verified.
    fn call_transactions(&mut self, api: &str, name: &str, params: &Value) -> Option<CallResult> {
        Some(match (api, name) {
            ("condenser_api" | "network_broadcast_api", "broadcast_transaction") => self.broadcast(api, params),
            ("condenser_api" | "network_broadcast_api", "broadcast_transaction_synchronous") => {
                self.broadcast_synchronously(api, params)
            }
            ("condenser_api" | "database_api", "verify_authority") => self.verify_authority(api, params),
            ("condenser_api" | "database_api", "get_transaction_hex") => self.transaction_hex(api, params),
            ("condenser_api", "get_potential_signatures") => self.potential_signatures(params),
            ("condenser_api", "get_required_signatures") => self.required_signatures(params),
            ("condenser_api", "get_follow_count") => self.follow_count(params),
            _ => return None,
        })
    }

    /// Returns an empty response for a method about features that the chain does not have, or the error of an unknown one.
    fn unknown_method(api: &str, name: &str) -> CallResult {
        if let Some(nothing) = Self::nothing_of(api, name) {
            return Ok(nothing);
        }
        let known = METHODS.iter().any(|each| each.split('.').next() == Some(api));
        Err(if known {
            Failure::method("method_itr != api_itr->second.end()", &format!("Could not find method {name}"))
        } else {
            Failure::method("api_itr != data._registered_apis.end()", &format!("Could not find API {api}"))
        })
    }

    /// Returns the chain as this node shows it.
    pub(super) fn view(&self) -> View<'_> {
        self.host.nodes[self.node].node.view(&self.host.chain)
    }
}

/// Reads the parameter at a place of an array, or by name of an object: the two APIs differ in just that.
pub(super) fn param<'p>(params: &'p Value, place: usize, name: &str) -> Result<&'p Value, Failure> {
    let found = if params.is_array() { params.get(place) } else { params.get(name) };
    found.filter(|value| !value.is_null()).ok_or_else(|| Failure::params(&format!("missing parameter {name}")))
}

/// Reads a whole number; hived also takes it as a string.
pub(super) fn number(params: &Value, place: usize, name: &str) -> Result<u32, Failure> {
    let value = param(params, place, name)?;
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    number
        .and_then(|number| u32::try_from(number).ok())
        .ok_or_else(|| Failure::params(&format!("{name} must be a whole number of 32 bits")))
}

/// Reads a text.
pub(super) fn text<'p>(params: &'p Value, place: usize, name: &str) -> Result<&'p str, Failure> {
    param(params, place, name)?.as_str().ok_or_else(|| Failure::params(&format!("{name} must be a string")))
}

/// Reads a list of texts.
pub(super) fn texts<'p>(params: &'p Value, place: usize, name: &str) -> Result<Vec<&'p str>, Failure> {
    let wrong = || Failure::params(&format!("{name} must be an array of strings"));
    param(params, place, name)?
        .as_array()
        .ok_or_else(wrong)?
        .iter()
        .map(|each| each.as_str().ok_or_else(wrong))
        .collect()
}

/// Reads a flag that may be missing.
pub(super) fn flag(params: &Value, place: usize, name: &str) -> bool {
    param(params, place, name).is_ok_and(|value| value == &Value::Bool(true))
}
